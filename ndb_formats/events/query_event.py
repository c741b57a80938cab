"""
Query: a statement as text; in an NDB binlog only BEGIN, COMMIT and DDL.

    thread id      u32
    seconds        u32  execution time
    database size  u8
    error code     u16
    status size    u16
    status         variables of the session
    database       name, NUL
    statement      until the end
"""

from __future__ import annotations

import attrs

from ndb_formats.cursor import Cursor

__all__ = ["QueryEvent", "decode_query"]


@attrs.frozen
class QueryEvent:
    """One statement, with the database it ran in."""

    database: str
    statement: str


def decode_query(body: bytes) -> QueryEvent:
    """
    Decode the body of a Query event.

    Raises:
        TruncatedError: The body ends too early.
    """
    cursor = Cursor(body)
    cursor.skip(8)
    database_size = cursor.uint(1)
    cursor.skip(2)
    cursor.skip(cursor.uint(2))
    database = cursor.text(database_size)
    cursor.skip(1)
    return QueryEvent(database, cursor.rest().decode("utf-8", "surrogateescape"))
