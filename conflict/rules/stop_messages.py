"""
Why an applier stops: the server's error numbers and our messages; the same in both engines.
"""

from __future__ import annotations

from enum import IntEnum

from conflict.rules.functions import ConflictFunction, Image
from ndb_formats.events.rows_event import Operation

__all__ = [
    "StopError",
    "blob_refresh",
    "duplicate_value",
    "missing_information",
    "no_such_table",
    "no_transaction_ids",
    "role_not_set",
]


class StopError(IntEnum):
    """Server error numbers of an applier's stops."""

    DUPLICATE_VALUE = 1022
    NO_SUCH_TABLE = 1146
    # What the handler reports of all that NDB's conflict detection cannot go on with.
    FROM_NDB = 1296


def missing_information(function: ConflictFunction, operation: Operation, image: Image) -> str:
    """Say that an event lacks the value that a function compares."""
    return (
        f"{function} needs column {function.column} in the {image.value} image of every {operation.name}, "
        "and this one does not carry it; log the table with another binlog_type"
    )


def no_such_table(table: str, cluster: str) -> str:
    """Say that a table was refused where its changes arrive."""
    return f"table {table} does not exist on {cluster}; its CREATE TABLE was refused there"


def role_not_set(function: ConflictFunction, cluster: str) -> str:
    """Say that a function needs a role that its cluster does not have."""
    return f"{function} needs ndb_applier_conflict_role to be PRIMARY, SECONDARY or PASS on {cluster}; it is NONE"


def no_transaction_ids(function: ConflictFunction) -> str:
    """Say that events do not tell their transaction."""
    return f"{function} judges transactions, and this event has no transaction id; set ndb_log_transaction_id=ON"


def blob_refresh(table: str) -> str:
    """Say that a row cannot be sent again."""
    return (
        f"a transaction in conflict touched table {table}, whose blobs cannot be refreshed (1627); "
        "keep tables with blobs out of such transactions"
    )


def duplicate_value(table: str) -> str:
    """Say that two rows would hold one unique value."""
    return (
        f"another row of {table} has the same value of a unique key; "
        "let each cluster take such values from a range of its own"
    )
