"""
How many conflicts a result holds, where and when. Computes docs/conflicts.md.

A conflict is an operation that an applier rejected: an outcome with the verdict REJECTED.

Why transactions are in conflict: for each, the operation that put it there. Computes docs/conflicts.md, "Transactions".

A transaction is in conflict because one of its operations is (`own_cause` in its outcome), or because it touched a row
that a transaction in conflict had touched before it in its epoch. All operations of both are rejected, so outcomes
alone tell which one depends on which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from conflict.config.database_names import DatabaseNames
from conflict.config.option_values import By
from conflict.engine.ledger.layout import OUTCOMES, UNDECIDED
from conflict.history.grid.folder import Folder
from conflict.history.grid.schemas import PLACE
from conflict.rules.decision import Cause, Verdict
from ndb_formats.events.rows_event import Operation

Int64 = npt.NDArray[np.int64]
# What tells a transaction from others in the outcomes of all appliers.
TRANSACTION = ("applier", "source", "source_epoch", "epoch", "group")
_EPOCH = TRANSACTION[:-1]
# What `root_outcomes` needs of outcomes.
_ROOT_COLUMNS = (*TRANSACTION, "table", "key", "identity", "ordinal", "cause", "own_cause")
_NONE = -1
_ROW = ("table", "identity")


def root_outcomes(outcomes: pa.Table) -> Int64:
    """
    Return, for each outcome of a transaction in conflict, the one that put it there: of its own transaction if one did.

    Of several, it is the first one of the nearest transactions, in the order of the log.

    Args:
        outcomes: Rejected operations, with the columns `_ROOT_COLUMNS`.

    Returns:
        Row numbers; -1 where an operation was rejected for itself. Shape (outcomes,).
    """
    roots = np.full(len(outcomes), _NONE)
    rows = np.flatnonzero(pc.equal(outcomes["cause"], Cause.TRANS_IN_CONFLICT.name).to_numpy())
    if not len(rows):
        return roots
    mine = outcomes.take(pa.array(rows))
    group, ordinal = (mine[name].to_numpy().astype(np.int64) for name in ("group", "ordinal"))
    transaction = numbered(mine, TRANSACTION)
    # A root is the rank of an outcome in the order of the log, so that the least one is the first one.
    order = np.lexsort((ordinal, group))
    rank = np.empty(len(rows), np.int64)
    rank[order] = np.arange(len(rows))
    found = np.full(transaction.max() + 1, len(rows))
    own = mine["own_cause"].is_valid().to_numpy()
    np.minimum.at(found, transaction[own], rank[own])
    before, after = _dependencies(numbered(mine, (*_EPOCH, *_ROW)), group, transaction)
    _spread(found, before, after, len(rows))
    known = found[transaction] < len(rows)
    roots[rows[known]] = rows[order[found[transaction[known]]]]
    return roots


def numbered(table: pa.Table, names: Sequence[str]) -> Int64:
    """Return numbers from 0 on, equal where the given columns are equal. Shape (rows,)."""
    numbers = np.zeros(len(table), np.int64)
    for name in names:
        codes = table[name].combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
        _, numbers = np.unique(numbers * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    return numbers.astype(np.int64)


def _dependencies(row: Int64, group: Int64, transaction: Int64) -> tuple[Int64, Int64]:
    """Return the transactions of one epoch that touched a row one right after the other. Each of shape (pairs,)."""
    order = np.lexsort((group, row))
    row, transaction = row[order], transaction[order]
    follows = (row[1:] == row[:-1]) & (transaction[1:] != transaction[:-1])
    return transaction[:-1][follows], transaction[1:][follows]


def _spread(found: Int64, before: Int64, after: Int64, none: int) -> None:
    """Give each transaction without a root, `none`, the first root of those that it depends on, nearest ones first."""
    while True:
        open_pairs = found[after] == none
        before, after = before[open_pairs], after[open_pairs]
        lower = found[before] < none
        if not lower.any():
            return
        roots = found[before[lower]]
        np.minimum.at(found, after[lower], roots)


# Units of time, the shortest first.
UNITS = {By.SECOND: timedelta(seconds=1), By.MINUTE: timedelta(minutes=1), By.HOUR: timedelta(hours=1)}
_MOST_UNITS = 120  # more than that: only the busiest ones are shown


_COUNT: tuple[list[str], str] = ([], "count_all")
_NEEDED = tuple(dict.fromkeys((*_ROOT_COLUMNS, "time", "transaction_id", "operation", *PLACE)))
_ROOT = {
    "root_transaction_id": "transaction_id",
    "root_table": "table",
    "root_key": "key",
    "root_identity": "identity",
    "root_operation": "operation",
    "root_cause": "own_cause",
    "root_file": "file",
    "root_position": "position",
    "root_payload_position": "payload_position",
    "root_row": "row",
}


@attrs.frozen
class Totals:
    """
    Conflicts in all.

    Attributes:
        conflicts: How many there are.
        tables: In how many tables.
        keys: On how many rows.
        transactions: Of how many transactions.
        of_gone_rows: How many are deletes of a row that was gone already: nothing is lost or refreshed with them.
        appliers: The clusters whose appliers rejected them, sorted.
        first: Commit time of the first one; None if there are none, or it is not known.
        last: Commit time of the last one.
    """

    conflicts: int
    tables: int
    keys: int
    transactions: int
    appliers: tuple[str, ...]
    first: datetime | None
    last: datetime | None
    of_gone_rows: int = 0


@attrs.frozen
class Beside:
    """
    What a result counts beside its conflicts, and is not as many.

    Attributes:
        refreshed: By applier, the rows that it refreshed.
        open_decisions: Decisions that the binlogs leave open.
        open_conflicts: Of these, those that are conflicts as the result decides them, and so are counted.
    """

    refreshed: Mapping[str, int]
    open_decisions: int
    open_conflicts: int


@attrs.frozen
class Chosen:
    """
    Which conflicts of a result are counted.

    Attributes:
        since: Those that committed then or later, a moment with an offset; None for all.
        until: Those that committed before.
        table: Those of this table, ``database.table``; None for all.
        identity: Those of this row of the table; None for all.
        key: Its key as text.
    """

    since: datetime | None = None
    until: datetime | None = None
    table: str | None = None
    identity: bytes | None = None
    key: str = ""

    def words(self, form: str) -> str:
        """Return what was chosen, for a sentence; moments in this form."""
        since = "" if self.since is None else f" since {self.since:{form}} UTC"
        until = "" if self.until is None else f" before {self.until:{form}} UTC"
        row = "" if self.identity is None else f" {self.key}"
        return f"{'' if self.table is None else f' of {self.table}{row}'}{since}{until}"


ALL = Chosen()


def read_conflicts(
    out: Folder,
    clusters: Iterable[str],
    since: datetime | None = None,
    columns: Sequence[str] = _NEEDED,
    *,
    until: datetime | None = None,
    table: str | None = None,
) -> pa.Table:
    """
    Return the conflicts of a result.

    Args:
        out: Folder of the result.
        clusters: Its clusters.
        since: Leave out what committed before; None for all. With an offset.
        columns: The columns to read, of `OUTCOMES`, and `applier`.
        until: Leave out what committed then or later.
        table: Of this table alone, ``database.table``.
    """
    chosen, kind = pads.field("verdict") == Verdict.REJECTED.name, OUTCOMES.field("time").type
    if since is not None:
        chosen &= pads.field("time") >= pa.scalar(since, kind)
    if until is not None:
        chosen &= pads.field("time") < pa.scalar(until, kind)
    if table is not None:
        chosen &= pads.field("table") == table
    return read_outcomes(out, clusters, chosen, [name for name in columns if name != "applier"])


def read_refresh_times(out: Folder, clusters: Iterable[str]) -> pa.Table:
    """Return the commit time of each refresh operation that appliers received; columns `applier` and `time`."""
    return read_outcomes(out, clusters, pads.field("refresh"), ["time"])


def read_outcomes(
    out: Folder, clusters: Iterable[str], chosen: pads.Expression, wanted: Sequence[str] = OUTCOMES.names
) -> pa.Table:
    """Return the columns `wanted` of the outcomes that are `chosen`, with `applier` before them."""
    parts = []
    for cluster in clusters:
        path = f"outcomes/applier={cluster}"
        if out.exists(path):
            found = pads.dataset(out.here(path), schema=OUTCOMES, format="parquet", partitioning=None)
            part = found.to_table(list(wanted), filter=chosen)
            parts.append(part.add_column(0, "applier", pa.array([cluster] * len(part), pa.string())))
    if parts:
        return pa.concat_tables(parts)
    schema = pa.schema([("applier", pa.string()), *(OUTCOMES.field(name) for name in wanted)])
    return schema.empty_table()


def totals_of(conflicts: pa.Table) -> Totals:
    """Return conflicts in all."""
    times = pc.min_max(conflicts["time"]).as_py()
    return Totals(
        len(conflicts),
        _distinct(conflicts, ("table",)),
        _distinct(conflicts, _ROW),
        _distinct(conflicts, TRANSACTION),
        tuple(sorted(pc.unique(conflicts["applier"]).to_pylist())),
        times["min"],
        times["max"],
        int(pc.sum(deletes_of_gone_rows(conflicts)).as_py() or 0),
    )


def deletes_of_gone_rows(conflicts: pa.Table) -> pa.ChunkedArray:
    """Return which conflicts are deletes of rows that were gone: `conflict.rules.lost_updates.loses` does not hold."""
    deletes = pc.equal(conflicts["operation"], Operation.DELETE_ROW.name)
    causes = pc.coalesce(conflicts["own_cause"], conflicts["cause"])
    return pc.and_(deletes, pc.equal(causes, Cause.ROW_DOES_NOT_EXIST.name))


def read_beside(out: Folder, run: Mapping[str, Any]) -> Beside:
    """Return what a result, whose `run.json` is given, counts beside its conflicts."""
    refreshed = {name: sum(each.get("refreshes", 0) for each in own.values()) for name, own in run["tables"].items()}
    paths = [path for name in run["tables"] if out.exists(path := f"undecided/applier={name}")]
    read = partial(pads.dataset, schema=UNDECIDED, format="parquet", partitioning=None)
    decided = [text for path in paths for text in read(out.here(path)).to_table(["decided"])["decided"].to_pylist()]
    return Beside(refreshed, len(decided), sum(text in Cause.__members__ for text in decided))


def at_a_glance(totals: Totals) -> tuple[By, ...]:
    """Return what to count by if nobody says it; of the units of time the shortest one with few of them."""
    span = timedelta(0) if totals.first is None or totals.last is None else totals.last - totals.first
    unit = next((unit for unit, length in UNITS.items() if span <= _MOST_UNITS * length), By.HOUR)
    return By.TABLE, By.CAUSE, unit, By.KEY, By.TRANSACTION


def count_conflicts(conflicts: pa.Table, by: By, databases: DatabaseNames) -> pa.Table:
    """
    Count conflicts; the counts of all rows add up to their number.

    Args:
        conflicts: What `read_conflicts` returned.
        by: What to count by.
        databases: The names that clusters use for databases which appliers rename: a table has that of its applier
            in counts by table. A row has one name, whoever rejected its changes.

    Returns:
        A row per table and applier, unit of time, row of a table, cause and applier, or transaction. Column
        `conflicts` is how many there are; the other columns are in docs/conflicts.md. Times are in order, all others
        by their number.
    """
    counted: pa.Table = _COUNTS[by](conflicts)
    if by is not By.TABLE:
        return counted
    pairs = zip(counted["applier"].to_pylist(), counted["table"].to_pylist(), strict=True)
    names = pa.array([databases.own_name(*each) for each in pairs], pa.string())
    return counted.set_column(counted.schema.get_field_index("table"), "table", names)


def _by_table(conflicts: pa.Table) -> pa.Table:
    names = ("applier", "table")
    counts = conflicts.group_by(list(names)).aggregate([_COUNT, ("time", "min"), ("time", "max")])
    for counted, key in (("keys", (*names, "identity")), ("transactions", (*TRANSACTION, "table"))):
        distinct = conflicts.group_by(list(key)).aggregate([]).group_by(list(names)).aggregate([_COUNT])
        distinct = distinct.rename_columns({"count_all": counted})
        counts = counts.join(distinct, list(names))
    return _sorted(counts, ["applier", "table", "conflicts", "keys", "transactions", "first", "last"])


def _by_time(conflicts: pa.Table, unit: By) -> pa.Table:
    times = conflicts.append_column(unit, pc.floor_temporal(conflicts["time"], unit=unit.value))
    counts = times.group_by([unit]).aggregate([_COUNT])
    for counted, key in (("keys", _ROW), ("transactions", TRANSACTION)):
        distinct = times.group_by([unit, *key]).aggregate([]).group_by([unit]).aggregate([_COUNT])
        # A time that is not known is NULL, which a join does not match.
        found = dict(zip(distinct[unit].to_pylist(), distinct["count_all"].to_pylist(), strict=True))
        counts = counts.append_column(counted, pa.array([found[time] for time in counts[unit].to_pylist()]))
    counts = counts.rename_columns({"count_all": "conflicts"}).sort_by(unit)
    return counts.select([unit, "conflicts", "keys", "transactions"])


def _by_key(conflicts: pa.Table) -> pa.Table:
    # Clusters can have other names for the columns of a key, and so other texts for a row.
    counts = conflicts.group_by(list(_ROW)).aggregate([_COUNT, ("key", "min"), ("time", "min"), ("time", "max")])
    counts = counts.rename_columns(["key" if name == "key_min" else name for name in counts.column_names])
    return _sorted(counts, ["table", "key", "identity", "conflicts", "first", "last"])


def _by_cause(conflicts: pa.Table) -> pa.Table:
    counts = conflicts.group_by(["applier", "cause", "own_cause"]).aggregate([_COUNT])
    return _sorted(counts, ["applier", "cause", "own_cause", "conflicts"])


def _by_transaction(conflicts: pa.Table) -> pa.Table:
    numbered = conflicts.append_column("number", pa.array(np.arange(len(conflicts))))
    counts = numbered.group_by(list(TRANSACTION)).aggregate(
        [_COUNT, ("time", "min"), ("transaction_id", "max"), ("number", "min")]
    )
    roots = root_outcomes(conflicts)[counts["number_min"].to_numpy()]
    counts = counts.rename_columns(
        {"count_all": "conflicts", "time_min": "time", "transaction_id_max": "transaction_id"}
    )
    root = conflicts.select(list(_ROOT.values())).take(pa.array(roots, mask=roots < 0)).rename_columns(list(_ROOT))
    for name in _ROOT:
        counts = counts.append_column(name, root[name])
    names = ["applier", "source", "source_epoch", "epoch", "group", "transaction_id", "time", "conflicts", *_ROOT]
    return _sorted(counts, names)


_COUNTS: dict[By, Callable[[pa.Table], pa.Table]] = {
    By.TABLE: _by_table,
    **{unit: partial(_by_time, unit=unit) for unit in UNITS},
    By.KEY: _by_key,
    By.CAUSE: _by_cause,
    By.TRANSACTION: _by_transaction,
}


def _sorted(counts: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return counts with the columns `names`, most conflicts first, then in the order of the columns."""
    new = {"count_all": "conflicts", "time_min": "first", "time_max": "last"}
    counts = counts.rename_columns([new.get(name, name) for name in counts.column_names]).select(names)
    ties = [(name, "ascending") for name in names if name != "conflicts"]
    return counts.sort_by([("conflicts", "descending"), *ties])


def _distinct(conflicts: pa.Table, names: Sequence[str]) -> int:
    """Return how many different values some columns have together."""
    return len(conflicts.group_by(list(names)).aggregate([]))
