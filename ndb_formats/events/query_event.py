"""
Query: a statement as text; in an NDB binlog BEGIN, COMMIT and DDL.

    thread id      u32
    seconds        u32  execution time
    database size  u8
    error code     u16
    status size    u16
    status         session variables
    database       name, NUL
    statement      to the end
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ndb_formats.cursor import Cursor

__all__ = ["SESSION", "QueryEvent", "decode_query", "encode_query", "has_ansi_quotes", "session_collation"]

# Session variables of a connection with the defaults of MySQL 9.x: flags, sql_mode, catalog, character sets (client,
# connection, server), and the default collation of utf8mb4; each after its type.
SESSION = b"".join(
    [
        b"\x00" + bytes(4),
        b"\x01" + (0x45A00020).to_bytes(8, "little"),
        b"\x06\x03std",
        b"\x04" + 3 * (255).to_bytes(2, "little"),
        b"\x12" + (255).to_bytes(2, "little"),
    ]
)


@attrs.frozen
class QueryEvent:
    """
    One statement.

    Attributes:
        database: Database that it ran in.
        statement: Its text.
        thread_id: Connection that ran it.
        seconds: Seconds that it took.
        error: Error number on the source.
        status: Session variables, as encoded in the event.
    """

    database: str
    statement: str
    thread_id: int = 0
    seconds: int = 0
    error: int = 0
    status: bytes = attrs.field(default=b"", repr=False)


def decode_query(body: bytes) -> QueryEvent:
    """
    Decode the body of a Query event.

    Raises:
        TruncatedError: The body ends too early.
    """
    cursor = Cursor(body)
    thread_id, seconds, database_size = cursor.uint(4), cursor.uint(4), cursor.uint(1)
    error = cursor.uint(2)
    status = cursor.take(cursor.uint(2))
    database = cursor.text(database_size)
    cursor.skip(1)
    statement = cursor.rest().decode("utf-8", "surrogateescape")
    return QueryEvent(database, statement, thread_id, seconds, error, status)


def encode_query(event: QueryEvent) -> bytes:
    """Return the body of a Query event; the inverse of `decode_query`."""
    database = event.database.encode("utf-8", "surrogateescape")
    head = event.thread_id.to_bytes(4, "little") + event.seconds.to_bytes(4, "little") + bytes([len(database)])
    variables = event.error.to_bytes(2, "little") + len(event.status).to_bytes(2, "little") + event.status
    return head + variables + database + b"\0" + event.statement.encode("utf-8", "surrogateescape")


# Bytes of the session variables that come before the last collation, by type; -1 for a length byte, -2 for a NUL more.
_SIZES = {0: 4, 1: 8, 2: -2, 3: 4, 4: 6, 5: -1, 6: -1, 7: 2, 8: 2}
_SQL_MODE, _CHARSETS, _DATABASE_COLLATION = 1, 4, 8
_ANSI_QUOTES = 4  # of sql_mode


def session_collation(event: QueryEvent) -> int | None:
    """
    Return the number of the collation of a database that the statement makes or runs in, as the event tells it.

    That is the database's own, which is logged where it differs from the server's, else the server's; None without it.
    """
    found = None
    for kind, value in _variables(event):
        if kind in (_CHARSETS, _DATABASE_COLLATION):
            found = int.from_bytes(value[-2:], "little")
    return found


def has_ansi_quotes(event: QueryEvent) -> bool:
    """Whether double quotes stand around names in the statement, by the sql_mode ANSI_QUOTES."""
    return any(kind == _SQL_MODE and value[0] & _ANSI_QUOTES for kind, value in _variables(event))


def _variables(event: QueryEvent) -> Iterator[tuple[int, bytes]]:
    """Yield type and bytes of the session variables, up to one whose size is not known."""
    cursor = Cursor(event.status)
    while cursor.remaining:
        kind = cursor.uint(1)
        size = _SIZES.get(kind)
        if size is None:
            return
        yield kind, cursor.take(cursor.uint(1) + (size == -2) if size < 0 else size)
