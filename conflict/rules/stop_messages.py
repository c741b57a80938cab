"""
Applier stops: the server's error numbers and its words, and our messages, which both engines use.
"""

from __future__ import annotations

from enum import Enum, IntEnum

from conflict.rules.foreign_keys import Link
from conflict.rules.functions import ConflictFunction, Image
from ndb_formats.events.rows_event import Operation

__all__ = [
    "ServerStop",
    "StopError",
    "blob_refresh",
    "duplicate_value",
    "missing_information",
    "no_such_table",
    "no_transaction_ids",
    "parent_missing",
    "parent_needed",
    "role_not_set",
    "row_not_found",
]


class StopError(IntEnum):
    """Server error numbers of an applier's stops."""

    DUPLICATE_VALUE = 1022
    ROW_NOT_FOUND = 1032
    NO_SUCH_TABLE = 1146
    # The storage engine's error for everything that conflict detection cannot handle.
    FROM_NDB = 1296
    PARENT_NEEDED = 1451
    PARENT_MISSING = 1452
    NO_CONVERSION = 13146


class ServerStop(Enum):
    """
    Stops that can be told beforehand.

    Attributes:
        error: Server error number.
        words: The server's words, as recorded from its error log.
    """

    MISSING_INFORMATION = (
        StopError.FROM_NDB,
        "Binlog event missing info necessary for conflict detection.  Check binlog format options on upstream cluster.",
    )
    NO_ROLE = (
        StopError.FROM_NDB,
        "Conflict function requires ndb_applier_conflict_role variable to be set. Stopping SQL thread.",
    )
    NO_TRANSACTION_IDS = (
        StopError.FROM_NDB,
        (
            "Transactional conflict detection defined, but events received without transaction ids.  "
            "Check --ndb-log-transaction-id setting on upstream Cluster."
        ),
    )
    BLOB_REFRESH = (
        StopError.FROM_NDB,
        "Transaction conflict handling failed as table has Blobs which cannot be refreshed.",
    )
    DUPLICATE_VALUE = (StopError.DUPLICATE_VALUE, "Can't write; duplicate key in table")
    PARENT_MISSING = (StopError.PARENT_MISSING, "Cannot add or update a child row: a foreign key constraint fails")

    def __init__(self, error: StopError, words: str) -> None:
        self.error = error
        self.words = words


def missing_information(function: ConflictFunction, operation: Operation, image: Image) -> str:
    """Return the message for an event that lacks the value that its function compares."""
    return (
        f"{function} needs column {function.column} in the {image.value} image of every {operation.name}, "
        "and this one does not carry it; log the table with another binlog_type"
    )


def no_such_table(table: str, cluster: str) -> str:
    """Return the message for a change of a table that was refused here."""
    return f"table {table} does not exist on {cluster}; its CREATE TABLE was refused there"


def role_not_set(function: ConflictFunction, cluster: str) -> str:
    """Return the message for a function that needs a role, on a cluster without one."""
    return f"{function} needs ndb_applier_conflict_role to be PRIMARY, SECONDARY or PASS on {cluster}; it is NONE"


def no_transaction_ids(function: ConflictFunction) -> str:
    """Return the message for an event without transaction id under a function that judges transactions."""
    return f"{function} judges transactions, and this event has no transaction id; set ndb_log_transaction_id=ON"


def blob_refresh(table: str) -> str:
    """Return the message for a rejected transaction that touched a table with blobs."""
    return (
        f"a transaction in conflict touched table {table}, whose blobs cannot be refreshed (1627); "
        "keep tables with blobs out of such transactions"
    )


def duplicate_value(table: str) -> str:
    """Return the message for two rows with the same value of a unique key."""
    return f"another row of {table} has the same value of a unique key; give each cluster its own range of such values"


def parent_missing(link: Link) -> str:
    """Return the message for a row whose parent is not there."""
    return (
        f"a row of {link.child} would refer to a row of {link.parent} that does not exist here ({link.key}); "
        "change the rows of both tables on one cluster alone"
    )


def parent_needed(link: Link) -> str:
    """Return the message for a row that goes while others refer to it."""
    return (
        f"a row of {link.child} still refers to the row of {link.parent} that is deleted or changed ({link.key}); "
        "change the rows of both tables on one cluster alone"
    )


def row_not_found(table: str) -> str:
    """Return the message for a change of a row without a key that the applier does not find."""
    return f"no row of {table} has the values of the before image, and the table has no primary key; give it one"
