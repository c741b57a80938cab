"""
The ledger: what the appliers did in one part of a run, as columns. Computes docs/result.md, "The output folder".

Both engines fill it, and `write_part` makes files and figures of it. A part is a bucket, or rows that the reference
engine resolves. Its tables are Arrow tables, in which tables, operations, verdicts and causes are numbers. Operations
that were simply applied are counted; they have a line only if every operation is to have one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.config.database_names import DatabaseNames
from conflict.engine.ledger.contradictions import (
    CONTRADICTIONS,
    OTHER_VALUES,
    contradictions_path,
    kind_text,
    marked_text,
)
from conflict.engine.ledger.layout import (
    OUTCOME_PLACE,
    OUTCOMES,
    ROW_KEY,
    STAGED,
    UNDECIDED,
    in_epoch_ranges,
    labelled,
    merged_path,
    outcomes_path,
    overwritten_path,
    rows_in_part_path,
    rows_path,
    staged_exceptions_path,
    undecided_path,
)
from conflict.engine.ledger.resolution import NotKnown
from conflict.engine.ledger.summary import BucketSummary
from conflict.history.grid.folder import Folder
from conflict.history.restarts import Stretch
from conflict.history.roles import Mark
from conflict.history.shown_effects import Effect
from conflict.rules.counters import moved_counters
from conflict.rules.decision import Cause, Decision, Verdict, decision_text, outcome_bit
from conflict.rules.functions import FunctionSpec
from ndb_formats.events.rows_event import Operation

Bool = npt.NDArray[np.bool_]
Int = npt.NDArray[np.integer]
Int64 = npt.NDArray[np.int64]
# A column of numbers is an array where it is never NULL.
LedgerColumn: TypeAlias = npt.NDArray[Any] | pa.Array

# Open decisions of one applier. The verdict is -1 if it did not reach the operation; `candidates` is the sum of an
# `outcome_bit` for each decision that is possible.
OPEN_DECISIONS = pa.schema(
    [
        ("source_epoch", pa.uint64()),
        *ROW_KEY,
        ("table", pa.int16()),
        ("operation", pa.int8()),
        ("verdict", pa.int8()),
        ("cause", pa.int8()),
        ("candidates", pa.int64()),
    ]
)
# Rows for which a binlog shows another effect, other values or another mark than was derived. Effects are sums of
# `1 << effect`; the mark is that in the binlog if it contradicts the result, numbered from 1, else 0.
CONTRADICTED = pa.schema(
    [
        ("epoch", pa.uint64()),
        ("group", pa.int32()),
        *ROW_KEY,
        ("table", pa.int16()),
        ("derived", pa.int8()),
        ("shown", pa.int8()),
        ("mark", pa.int8()),
    ]
)
_NUMBERED: dict[str, type[IntEnum]] = {
    "operation": Operation,
    "winner_operation": Operation,
    "verdict": Verdict,
    "cause": Cause,
    "own_cause": Cause,
}
_BY_BIT = {
    outcome_bit(verdict, cause): Decision(verdict, cause)
    for verdict in Verdict
    for cause in (Cause if verdict is Verdict.REJECTED else (Cause.NONE,))
}


def has_a_line(verdict: Int, logged: Bool, *, every: bool) -> Int64:
    """Return which operations have a line: `every` one, or what appliers logged and what was not simply applied."""
    return np.flatnonzero((verdict != Verdict.APPLIED) | logged | every)


def outcome_table(columns: Mapping[str, LedgerColumn], schema: pa.Schema = OUTCOMES) -> pa.Table:
    """
    Return outcomes as `OUTCOMES`, or other rows with some of its columns; with dictionaries in place of some strings.

    Args:
        columns: By the names of the schema; of verdicts, causes and operations the numbers, 0 for no operation.
        schema: The columns.
    """
    arrays = {name: _arrow(columns[name]) for name in schema.names if name not in _NUMBERED}
    for name, kind in _NUMBERED.items():
        if name not in schema.names:
            continue
        labels = {int(each): each.name for each in kind if each or kind is Verdict}
        arrays[name] = labelled(columns[name] - min(labels), list(labels.values()))
    fields = [pa.field(name, arrays[name].type, nullable=arrays[name].null_count > 0) for name in schema.names]
    return pa.table([arrays[name] for name in schema.names], schema=pa.schema(fields))


def outcome_places(columns: Mapping[str, LedgerColumn]) -> pa.StructArray:
    """Return what tells outcomes from others as `OUTCOME_PLACE`, given its columns and maybe more."""
    fields = list(OUTCOME_PLACE.type)
    arrays = [_arrow(columns[field.name]).cast(field.type) for field in fields]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def staged_exceptions(rows: pa.Table, *others: LedgerColumn) -> pa.Table:
    """Return rows of an exceptions table without numbers, with the columns of `STAGED` beside them."""
    for field, column in zip(STAGED, others, strict=True):
        rows = rows.append_column(field, _arrow(column))
    return rows


def _arrow(column: LedgerColumn) -> pa.Array:
    return column if isinstance(column, pa.Array) else pa.array(column)


def kinds_of(table: pa.Table, names: Sequence[str]) -> tuple[list[tuple[int, ...]], Int64]:
    """
    Return the few different rows that some columns of small numbers have, and which of them each row has.

    Args:
        table: The rows.
        names: The columns.
    """
    columns = [table.column(name).to_numpy().astype(np.int64) for name in names]
    of_each = np.zeros(len(table), np.int64)
    for column in columns:
        least, most = int(column.min(initial=0)), int(column.max(initial=0))
        of_each = of_each * (most - least + 1) + column - least
        of_each = (np.cumsum(np.bincount(of_each) > 0) - 1)[of_each]
    places = np.zeros(int(of_each.max(initial=-1)) + 1, np.int64)
    places[of_each] = np.arange(len(table))
    return list(zip(*(column[places].tolist() for column in columns), strict=True)), of_each


def candidates_of(bits: int) -> tuple[Decision, ...]:
    """Return the decisions whose `outcome_bit` a number holds."""
    return tuple(decision for bit, decision in _BY_BIT.items() if bits & bit)


def _decided(verdict: int, cause: int) -> Decision | None:
    return None if verdict < 0 else Decision(Verdict(verdict), Cause(cause))


def undecided_table(found: pa.Table, tables: Sequence[str]) -> pa.Table:
    """Return `OPEN_DECISIONS` as `UNDECIDED`; `tables` are the names of the tables."""
    kinds, of_each = kinds_of(found, OPEN_DECISIONS.names[3:])
    texts = [
        (
            tables[table],
            Operation(operation).name,
            decision_text(decided) if (decided := _decided(verdict, cause)) else None,
            sorted({decision_text(candidate) for candidate in candidates_of(bits)}),
        )
        for table, operation, verdict, cause, bits in kinds
    ]
    columns = _spread(texts, of_each, ("table", "operation", "decided", "candidates"), UNDECIDED)
    columns |= {name: found.column(name) for name in ("source_epoch", "key", "identity")}
    return pa.table([columns[name] for name in UNDECIDED.names], schema=UNDECIDED)


def _spread(
    kinds: Sequence[tuple[object, ...]], of_each: Int64, names: Sequence[str], schema: pa.Schema
) -> dict[str, pa.Array]:
    """Return columns, given the few different rows that they have, and which of them each row has."""
    columns = zip(*kinds, strict=True) if kinds else [()] * len(names)
    return {
        name: pa.array(column, schema.field(name).type).take(pa.array(of_each))
        for name, column in zip(names, columns, strict=True)
    }


def _slack(found: pa.Table, functions: Sequence[FunctionSpec | None]) -> tuple[dict[str, int], dict[str, int]]:
    """Return by how much `OPEN_DECISIONS` can lower each counter, and raise it; `functions` are those of the tables."""
    less, more = Counter[str](), Counter[str]()
    kinds, of_each = kinds_of(found, OPEN_DECISIONS.names[3:])
    for (table, operation, verdict, cause, bits), count in zip(kinds, np.bincount(of_each).tolist(), strict=True):
        spec = functions[table]
        if spec is None:
            continue
        now = moved_counters(spec, Operation(operation), _decided(verdict, cause))
        moved = [moved_counters(spec, Operation(operation), candidate) for candidate in candidates_of(bits)]
        for counter in {*now, *(name for each in moved for name in each)}:
            less[counter] += count * (now[counter] - min(each[counter] for each in moved))
            more[counter] += count * (max(each[counter] for each in moved) - now[counter])
    return dict(less), dict(more)


def _contradictions(found: pa.Table, tables: Sequence[str]) -> tuple[pa.Table, dict[str, dict[str, int]]]:
    """Return `CONTRADICTED` as `CONTRADICTIONS`, and how many of each kind there are per table."""
    kinds, of_each = kinds_of(found, CONTRADICTED.names[4:])
    texts = [(tables[table], *_effects(*effects)) for table, *effects in kinds]
    counts: dict[str, dict[str, int]] = {}
    for (table, derived, shown), number in zip(texts, np.bincount(of_each).tolist(), strict=True):
        counts.setdefault(table, {})[kind_text(derived, shown)] = number
    columns = _spread(texts, of_each, ("table", "derived", "shown"), CONTRADICTIONS)
    columns |= {name: found.column(name) for name in ("epoch", "group", "key", "identity")}
    return pa.table([columns[name] for name in CONTRADICTIONS.names], schema=CONTRADICTIONS), counts


def _effects(derived: int, shown: int, mark: int) -> tuple[str | None, str | None]:
    """Return derived and shown effects as results name them."""
    first, second = (
        " and ".join(effect.name for effect in Effect if bits >> effect & 1) or None for bits in (derived, shown)
    )
    if first == second:
        second = marked_text(second, list(Mark)[mark - 1]) if mark else OTHER_VALUES
    return first, second


@attrs.frozen(eq=False)
class FinalTable:
    """
    The final rows of one table.

    Attributes:
        table: ``database.table``.
        rows: Per cluster that has it, its rows; empty if they are not wanted.
        differing: Number of rows that differ between the clusters; None if only their values can tell.
        in_part: Per cluster, the rows with values that only its server knows; see `with_unknown`.
    """

    table: str
    rows: Mapping[str, pa.Table]
    differing: int | None
    in_part: Mapping[str, pa.Table] = attrs.field(factory=dict)


@attrs.frozen(eq=False)
class ClusterLedger:
    """
    What the applier of one cluster did in a part of a run. Tables are numbered as in `LedgerPart.tables`.

    Attributes:
        name: The cluster.
        functions: The conflict function of each table.
        counts: Number of operations by table, verdict and cause. Shape (tables, verdicts, causes).
        refreshes: Number of rows that it refreshed, by table. Shape (tables,).
        counters: Its status counters.
        stretches: The same by the counters of an SQL node to which they belong.
        outcomes: The operations that have a line, as `OUTCOMES`; None without any.
        merged: What was written in place of operations that were merged, as `MERGED`; None without any.
        overwritten: The changes of its own cluster that it overwrote unseen, as `OVERWRITTEN`; None without any.
        undecided: Its `OPEN_DECISIONS`.
        compared: Number of rows, per epoch apply, that were compared with its binlog.
        contradicted: Those that differ, as `CONTRADICTED`.
        rows: Number of final rows by table, as far as they are known.
        not_known: By table, what was never known of its rows; tables that are known as a whole are left out.
        unexplained: Number of its own updates and deletes that found no row.
        copied: Number of rows that it copied for changes of definitions; None if there were no such changes.
        exceptions: By exceptions table, its rows without numbers, with the columns of `STAGED`.
    """

    name: str
    functions: Sequence[FunctionSpec | None]
    counts: Int64
    refreshes: Int64
    counters: Mapping[str, int]
    outcomes: pa.Table | None
    overwritten: pa.Table | None
    undecided: pa.Table
    compared: int
    contradicted: pa.Table
    rows: Mapping[str, int]
    not_known: Mapping[str, NotKnown] = attrs.field(factory=dict)
    unexplained: int = 0
    copied: int | None = None
    exceptions: Mapping[str, pa.Table] = attrs.field(factory=dict)
    stretches: Mapping[Stretch, Mapping[str, int]] = attrs.field(factory=dict)
    merged: pa.Table | None = None


@attrs.frozen(eq=False)
class LedgerPart:
    """
    One part of a run. Clusters and final rows are made as they are written.

    Attributes:
        number: The bucket as which it is written.
        tables: Names of the tables.
        clusters: What each applier did.
        final: The final rows.
        databases: The names that clusters use for databases which appliers rename.
        epoch_range: The width of ranges of epochs, see `ResultOptions`.
    """

    number: int
    tables: Sequence[str]
    clusters: Iterable[ClusterLedger]
    final: Iterable[FinalTable]
    databases: DatabaseNames = attrs.field(factory=DatabaseNames)
    epoch_range: int | None = None


def write_part(part: LedgerPart, out: Folder) -> BucketSummary:
    """Write a part of the result, and return what it adds to the figures."""
    summary = BucketSummary()
    for cluster in part.clusters:
        _write_cluster(part, cluster, out, summary)
    for each in part.final:
        summary.differing_rows[each.table] = each.differing
        for name, rows in each.rows.items():
            if len(rows):
                out.write_table(rows_path(name, part.databases.own_name(name, each.table), part.number), rows)
        for name, rows in each.in_part.items():
            if len(rows):
                out.write_table(rows_in_part_path(name, part.databases.own_name(name, each.table), part.number), rows)
    return summary


def _write_cluster(part: LedgerPart, cluster: ClusterLedger, out: Folder, summary: BucketSummary) -> None:
    """Write what one applier did, and add it to the figures."""
    name, tables = cluster.name, part.tables
    if cluster.outcomes is not None:
        for first, rows in in_epoch_ranges(cluster.outcomes, "epoch", part.epoch_range):
            out.write_table(outcomes_path(name, part.number, first), rows)
    if cluster.merged is not None:
        out.write_table(merged_path(name, part.number), cluster.merged)
    if cluster.overwritten is not None:
        for first, rows in in_epoch_ranges(cluster.overwritten, "applied_epoch", part.epoch_range):
            out.write_table(overwritten_path(name, part.number, first), rows)
    summary.overwritten[name] = 0 if cluster.overwritten is None else len(cluster.overwritten)
    for table, rows in cluster.exceptions.items():
        out.write_table(staged_exceptions_path(name, table, part.number), rows)
    if len(cluster.undecided):
        out.write_table(undecided_path(name, part.number), undecided_table(cluster.undecided, tables))
    if len(cluster.contradicted):
        rows, summary.contradictions[name] = _contradictions(cluster.contradicted, tables)
        out.write_table(contradictions_path(name, part.number), rows)
    summary.undecided[name] = len(cluster.undecided)
    summary.less[name], summary.more[name] = _slack(cluster.undecided, cluster.functions)
    summary.counters[name] = dict(cluster.counters)
    summary.stretches[name] = {each: dict(counters) for each, counters in cluster.stretches.items()}
    summary.tables[name] = table_figures(tables, cluster.counts, cluster.refreshes)
    summary.rows[name] = dict(cluster.rows)
    summary.unexplained[name] = cluster.unexplained
    summary.compared += cluster.compared
    summary.contradicted += len(cluster.contradicted)
    if cluster.not_known:
        summary.not_known[name] = {table: attrs.asdict(each) for table, each in cluster.not_known.items()}
    if cluster.copied is not None:
        summary.copied[name] = cluster.copied


def _told(counts: Int64, verdict: Verdict) -> bool:
    """Whether a verdict is told of: merges, which no server makes, are where there are some."""
    return verdict is not Verdict.MERGED or bool(counts[verdict].any())


def table_figures(tables: Sequence[str], counts: Int64, refreshes: Int64) -> dict[str, dict[str, int]]:
    """
    Return the figures of each table: operations by verdict, those rejected by cause, and refreshed rows.

    Args:
        tables: Names of the tables.
        counts: Number of operations. Shape (tables, verdicts, causes).
        refreshes: Number of refreshed rows. Shape (tables,).
    """
    return {
        table: {
            **{each.name.lower(): int(counts[number, each].sum()) for each in Verdict if _told(counts[number], each)},
            **{each.name: int(counts[number, Verdict.REJECTED, each]) for each in Cause if each},
            "refreshes": int(refreshes[number]),
        }
        for number, table in enumerate(tables)
    }
