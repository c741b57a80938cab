"""
What stops an applier, or keeps changes from it, whatever the conflict function.

Source: MySQL manual, "NDB Cluster Replication Known Issues", "ndb_replication Table"; error numbers as recorded.
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.checking.codes import code
from conflict.checking.findings import Finding, Fix, Place
from conflict.checking.statements import identifier, set_in_row, statement
from conflict.checking.subject import PlacedTable, Subject
from conflict.compatibility.reasons import ReasonKind, foreign_key_stops, unique_key_stops
from conflict.rules.stops import ServerStop

__all__ = ["blobs_in_reach", "foreign_keys", "no_primary_key", "row_slices", "unique_keys"]


def no_primary_key(subject: Subject) -> Iterator[Finding]:
    """Yield tables without a primary key."""
    for placed in _receiving(subject):
        if not placed.table.primary_key:
            function = "" if placed.function is None else f", and {placed.function} judges nothing"
            sentence = (
                "The table has no primary key: the applier looks for a row with the values of the before image, and "
                f"stops with error {ServerStop.ROW_NOT_FOUND.error:d} if there is none{function}."
            )
            fix = statement(
                f"ALTER TABLE {identifier(placed.table)} ADD PRIMARY KEY (...);",
                "on every cluster: ",
            )
            yield Finding(code(40), (placed.place,), sentence, fix)


def unique_keys(subject: Subject) -> Iterator[Finding]:
    """Yield unique keys besides the primary key."""
    for placed in _receiving(subject):
        for key in placed.table.unique_keys:
            columns = ", ".join(key)
            sentence = f"{unique_key_stops(columns)} (error {ServerStop.DUPLICATE_VALUE.error:d})."
            fix = Fix(f"give each cluster its own range of values of {columns}.")
            yield Finding(code(41), (placed.place,), sentence, fix, ReasonKind.UNIQUE_KEYS.server)


def foreign_keys(subject: Subject) -> Iterator[Finding]:
    """Yield foreign keys."""
    for placed in _receiving(subject):
        for key in placed.table.foreign_keys:
            errors = f"{ServerStop.PARENT_MISSING.error:d}, or {ServerStop.PARENT_NEEDED.error:d} the other way round"
            sentence = f"{foreign_key_stops(key)} (error {errors})."
            drop = f"ALTER TABLE {identifier(placed.table)} DROP FOREIGN KEY `{key.name}`;"
            fix = statement(drop, "change the rows of both tables on one cluster alone, or: ")
            yield Finding(code(42), (placed.place,), sentence, fix, ReasonKind.FOREIGN_KEYS.server)


def blobs_in_reach(subject: Subject) -> Iterator[Finding]:
    """Yield tables with blobs on clusters where transactions are rejected."""
    for arrival in subject.arrivals:
        for reason in arrival.reasons:
            if reason.kind is ReasonKind.BLOBS_IN_REACH and arrival.here.setup.refusal is None:
                fix = Fix(f"{ServerStop.BLOB_REFRESH.advice}.")
                yield Finding(code(43), (arrival.here.place,), f"{reason.message}.", fix, reason.server)


def row_slices(subject: Subject) -> Iterator[Finding]:
    """Yield tables of which a server logs some rows alone."""
    for placed in subject.tables:
        row = placed.row
        if row is not None and (row.binlog_row_slice_count or 1) > 1:
            sentence = (
                f"The server logs one of {row.binlog_row_slice_count} slices of the rows (binlog_row_slice_count): "
                "changes of other rows do not arrive, unless other servers log the other slices and are replicated, "
                "too."
            )
            fix = set_in_row(placed, "binlog_row_slice_count", "NULL, binlog_row_slice_id = NULL")
            yield Finding(code(44), (placed.place,), sentence, fix)
    for cluster in subject.clusters:
        count = (cluster.variables or {}).get("ndb_log_row_slice_count", "1")
        if count.isdecimal() and int(count) > 1:
            sentence = (
                f"The server logs one of {count} slices of the rows (ndb_log_row_slice_count): changes of other rows "
                "do not arrive, unless other servers log the other slices and are replicated, too."
            )
            fix = Fix("set ndb_log_row_slice_count = 1 under [mysqld] in the my.cnf of ", (cluster.name,), ".")
            yield Finding(code(44), (Place(cluster.name),), sentence, fix)


def _receiving(subject: Subject) -> Iterator[PlacedTable]:
    """Yield tables that changes of another cluster arrive at."""
    for placed in subject.tables:
        sources = subject.links.sources(placed.cluster.name)
        logged = [there for source in sources if (there := subject.on(source, placed.table)) is not None]
        if placed.setup.refusal is None and any(there.logging.format.logged for there in logged):
            yield placed
