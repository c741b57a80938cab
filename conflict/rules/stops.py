"""
What stops an applier: the kinds of stops as one table, and which of them the server finds first.

Both engines, `check` and `requirements` say a stop in the words of this table.
Source: error numbers and the server's words as recorded; the order of its tests is that of docs/functions.md, "One
pass over an epoch".
"""

from __future__ import annotations

import re
from enum import Enum, IntEnum

import attrs

from conflict.rules.replication_table import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import Operation

ROLE_VARIABLE = "ndb_applier_conflict_role"


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
    The kinds of stops, in the order in which the server finds them.

    Names in braces are filled in where a stop is printed.

    Attributes:
        error: Server error number.
        words: The server's words, as recorded from its error log; None if they hold more than we know.
        why: What is wrong, in our words.
        advice: What to do.
    """

    NO_SUCH_TABLE = (
        StopError.NO_SUCH_TABLE,
        "Table '{table}' doesn't exist",
        "table {table} does not exist on {cluster}",
        "its CREATE TABLE was refused there, or it was dropped",
    )
    NO_CONVERSION = (
        StopError.NO_CONVERSION,
        None,
        "column {misfit.place} cannot be converted from {misfit.theirs} to {misfit.mine}",
        "use the same type on both clusters, or set replica_type_conversions",
    )
    ROW_NOT_FOUND = (
        StopError.ROW_NOT_FOUND,
        "Can't find record in '{name}'",
        "no row of {table} has the values of the before image, and the table has no primary key",
        "give it one",
    )
    NO_ROLE = (
        StopError.FROM_NDB,
        "Conflict function requires ndb_applier_conflict_role variable to be set. Stopping SQL thread.",
        f"{{function}} needs {ROLE_VARIABLE} to be PRIMARY, SECONDARY or PASS, and it is NONE",
        "set it on {cluster}",
    )
    BLOB_REFRESH = (
        StopError.FROM_NDB,
        "Transaction conflict handling failed as table has Blobs which cannot be refreshed.",
        "a transaction in conflict changed {table}, whose blobs cannot be refreshed (1627)",
        "keep such tables out of transactions that can be in conflict",
    )
    NO_TRANSACTION_IDS = (
        StopError.FROM_NDB,
        (
            "Transactional conflict detection defined, but events received without transaction ids.  "
            "Check --ndb-log-transaction-id setting on upstream Cluster."
        ),
        "{function} judges transactions, and the other cluster logs no transaction ids",
        "set ndb_log_transaction_id = ON there",
    )
    MISSING_INFORMATION = (
        StopError.FROM_NDB,
        "Binlog event missing info necessary for conflict detection.  Check binlog format options on upstream cluster.",
        "{change} lacks {column} in its {image} image, where {function} looks for it",
        "log the table with another binlog_type",
    )
    RETURNED_EPOCH = (
        StopError.FROM_NDB,
        (
            "SQL thread stopped as applying epoch {lower} from Source ServerId {server} which is lower than previously "
            "applied epoch {higher}."
        ),
        "{later} is compressed and holds a row for {older} that {cluster} skips elsewhere",
        "set ndb_log_transaction_compression = OFF and binlog_transaction_compression = OFF on {source}",
    )
    # Data nodes check these when the applier commits.
    DUPLICATE_VALUE = (
        StopError.DUPLICATE_VALUE,
        "Can't write; duplicate key in table",
        "another row of {table} has the same value of a unique key",
        "give each cluster its own range of such values",
    )
    PARENT_MISSING = (
        StopError.PARENT_MISSING,
        "Cannot add or update a child row: a foreign key constraint fails",
        "a row of {child} would refer to a row of {parent} that does not exist there ({key})",
        "change the rows of both tables on one cluster alone",
    )
    PARENT_NEEDED = (
        StopError.PARENT_NEEDED,
        None,
        "a row of {child} still refers to the row of {parent} that is deleted or changed ({key})",
        "change the rows of both tables on one cluster alone",
    )

    def __init__(self, error: StopError, words: str | None, why: str, advice: str) -> None:
        self.error = error
        self.words = words
        self.why = why
        self.advice = advice

    @property
    def words_of_any(self) -> str | None:
        """The server's words, with dots for the names and numbers that depend on the stop."""
        return None if self.words is None else re.sub(r"\{\w+\}", "...", self.words)

    def words_with(self, **names: object) -> str | None:
        """Return the server's words with names and numbers; None if they hold more than we know."""
        return None if self.words is None else self.words.format(**names)

    def because(self, **names: object) -> str:
        """Return what is wrong: a clause that begins in lower case."""
        return self.why.format(**names)


@attrs.frozen
class Misfit:
    """
    A column that an applier may not convert.

    Attributes:
        place: Its place, from 1, in the tables of both clusters.
        column: Its name on the applier's cluster.
        theirs: Its type on the other cluster, as SQL.
        mine: Its type on the applier's cluster, as SQL.
    """

    place: int
    column: str
    theirs: str
    mine: str


@attrs.frozen
class StopFacts:
    """
    What an applier finds out about an operation, as far as it can stop it.

    Attributes:
        no_table: The cluster does not have the table.
        no_conversion: A column has a type that may not be converted.
        empty: An update whose after image is empty, which has no effect.
        scanned: The row is looked for by its values, as the table has no primary key.
        no_role: The function needs a role, and the cluster has none.
        rejected: The transaction is in conflict, and the pass rejects it.
        blobs: The table has blobs.
        no_transaction_id: The function judges transactions, and the event has no transaction id.
        no_value: The image lacks the value that the function compares.
    """

    no_table: bool = False
    no_conversion: bool = False
    empty: bool = False
    scanned: bool = False
    no_role: bool = False
    rejected: bool = False
    blobs: bool = False
    no_transaction_id: bool = False
    no_value: bool = False


def first_stop(facts: StopFacts) -> ServerStop | None:
    """
    Return why an operation stops its applier before it is judged, None if it does not: the first test that holds.

    A row that is looked for by its values can be missing; the applier finds that out by looking.
    """
    tests = (
        (facts.no_table, ServerStop.NO_SUCH_TABLE),
        (facts.no_conversion, ServerStop.NO_CONVERSION),
        (facts.empty, None),
        (facts.scanned, None),
        (facts.no_role, ServerStop.NO_ROLE),
        (facts.rejected, ServerStop.BLOB_REFRESH if facts.blobs else None),
        (facts.no_transaction_id, ServerStop.NO_TRANSACTION_IDS),
        (facts.no_value, ServerStop.MISSING_INFORMATION),
    )
    return next((stop for holds, stop in tests if holds), None)


def stop_facts(setup: TableSetup, role: Role, operation: Operation, found: StopFacts) -> StopFacts:
    """
    Return the facts about an operation on a table.

    Args:
        setup: The table on the applier's cluster.
        role: Role of that cluster.
        operation: The operation of the event.
        found: What the event and the pass show: `no_conversion`, `empty`, `rejected`; and `no_transaction_id` and
            `no_value`, whether or not the function needs them.
    """
    deployed, keyless = setup.deployed(role), not setup.table.primary_key
    return StopFacts(
        no_table=setup.refusal is not None,
        no_conversion=found.no_conversion,
        empty=found.empty,
        scanned=keyless and operation is not Operation.WRITE_ROW,
        no_role=deployed.lacks_role,
        rejected=found.rejected,
        blobs=found.rejected and any(column.is_blob for column in setup.table.columns),
        no_transaction_id=found.no_transaction_id and deployed.needs_transaction_ids,
        no_value=found.no_value and deployed.judges and not keyless,
    )
