"""
The changes of users that did not survive, one row each. Computes docs/lost.md.

A change is lost if the other cluster rejected it, or if a change that had not seen it overwrote it: docs/compare.md,
"Lost updates". A result has both: its outcomes, and the changes that appliers overwrote. Images are in the binlogs.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from conflict.config.arguments import StageProgress, no_progress
from conflict.config.configuration import Configuration
from conflict.engine.ledger.layout import OUTCOMES, OVERWRITTEN
from conflict.history.grid.schemas import PLACE
from conflict.operating.repairing.logged_images import images_at
from conflict.results.conflicts import Chosen, deletes_of_gone_rows, numbered, read_conflicts, read_outcomes
from conflict.results.result import Result
from conflict.rules.decision import Verdict
from conflict.runs.run_inputs import configuration_of, run_of_result
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Schema

_WINNER = tuple(name for name in OUTCOMES.names if name.startswith("winner_"))
# A lost change: the change itself; why it was lost; what took its place. `cause` is NULL where no applier rejected it,
# `overwritten_in` the own epoch in which its own cluster's applier overwrote it. `refreshed` says that its row was
# refreshed with the row that the winner left.
LOST = pa.schema(
    [
        ("cluster", pa.string()),
        *(OUTCOMES.field(name) for name in ("epoch", "group", "table", "key", "identity")),
        *(OUTCOMES.field(name) for name in ("operation", "time", "transaction_id")),
        ("rejected_by", pa.string()),
        *(OUTCOMES.field(name) for name in ("cause", "own_cause")),
        ("overwritten_in", pa.uint64()),
        *(OUTCOMES.field(name) for name in _WINNER if name != "winner_refresh"),
        ("refreshed", pa.bool_()),
        *(OUTCOMES.field(name) for name in PLACE),
    ]
)
_ORDER = ("time", "cluster", "epoch", "group", *PLACE)
Int64 = npt.NDArray[np.int64]


def read_lost(result: Result, which: Chosen) -> pa.Table:
    """
    Return the changes that were lost, as `LOST`, in the order in which they committed; without images.

    Args:
        result: The result.
        which: Which of them.
    """
    found = lost_of(result, read_rejected(result))
    return chosen_of(found, which).sort_by([(name, "ascending") for name in _ORDER])


def read_rejected(result: Result) -> pa.Table:
    """
    Return the operations that appliers rejected.

    Returns:
        The columns of `OUTCOMES`, `applier` and `refreshed`. Where the row had been refreshed, what won is the change
        that the refresh sent on.
    """
    found = read_conflicts(result.folder, result.clusters, columns=("applier", *OUTCOMES.names))
    for name, column in _winners(found).items():
        at = found.schema.get_field_index(name)
        found = found.append_column(name, column) if at < 0 else found.set_column(at, name, column)
    return found


def loses(rejected: pa.Table) -> pa.ChunkedArray:
    """Return which operations, as `read_rejected` returned them, are changes of users that are lost."""
    return pc.and_(pc.greater_equal(rejected["ordinal"], 0), pc.invert(deletes_of_gone_rows(rejected)))


def lost_of(result: Result, rejected: pa.Table) -> pa.Table:
    """Return all changes of a result that were lost, as `LOST`; `rejected` is what `read_rejected` returned."""
    parts = [_rejected(rejected), *(_overwritten(result, cluster) for cluster in result.clusters)]
    return _once(pa.concat_tables([part.cast(LOST) for part in parts]))


def count_not_known(result: Result, which: Chosen, lost: pa.Table) -> int:
    """
    Return of how many users' changes the binlogs do not tell whether they were lost.

    Args:
        result: The result.
        which: Which of them.
        lost: Those that were, as `read_lost` returned them; one that was overwritten is lost, rejected or not.
    """
    unknown = (pads.field("verdict") == Verdict.CANNOT_TELL.name) & (pads.field("ordinal") >= 0)
    found = chosen_of(
        read_outcomes(result.folder, result.clusters, unknown, ["table", "identity", "time", *PLACE]), which
    )
    both = pa.concat_tables([lost.select(list(PLACE)), found.select(list(PLACE))])
    codes = numbered(both, PLACE)
    return len(np.setdiff1d(codes[len(lost) :], codes[: len(lost)]))


def with_images(changes: pa.Table, result: Result, progress: StageProgress = no_progress) -> pa.Table:
    """
    Return lost changes with the id of the server that logged them, and both images as far as they are logged.

    Args:
        changes: What `read_lost` returned.
        result: The result that they are of.
        progress: Called with the name of the stage, the files that were read, and their number.

    Raises:
        HistoryError: A binlog of the result is missing or has changed since; or what statements did in files that are
            not given is not known.
    """
    return images_at(changes, *logs_of(result), progress)


def logs_of(result: Result) -> tuple[Configuration, Mapping[str, Schema]]:
    """
    Return the run whose binlogs a result is of, and by cluster the tables where binlogs start that follow purged ones.

    Raises:
        HistoryError: As of `with_images`.
    """
    configuration, schemas = configuration_of(result.run, result.folder.uri), dict[str, Schema]()
    if result.run["inputs"]["history"]:
        run = run_of_result(result.run, result.folder.uri)
        alone = {name for name, each in run.kept_alone.items() if each.statements}
        schemas = {each.name: run.schema_at_start(each) for each in run.clusters if each.name in alone}
    return configuration.with_database_names({}), schemas


def _rejected(found: pa.Table) -> pa.Table:
    """Return the users' changes among rejected operations, without deletes of rows that were gone already."""
    columns = {name: found[name] for name in found.column_names} | {
        "cluster": found["source"],
        "epoch": found["source_epoch"],
        "rejected_by": found["applier"],
        "overwritten_in": pa.nulls(len(found), pa.uint64()),
    }
    return pa.table([columns[name] for name in LOST.names], names=LOST.names).filter(loses(found))


def _winners(rejected: pa.Table) -> dict[str, pa.ChunkedArray]:
    """
    Return the columns `winner_...` and `refreshed`; a refresh is followed back to the change that it sent on.

    A row is refreshed for the operations of an epoch that were rejected on it. What won against them is what the
    refresh sent, unless that came from an earlier refresh itself.
    """
    refreshed = rejected["winner_refresh"].fill_null(False).to_numpy(zero_copy_only=False)
    rows = np.arange(len(rejected))
    if refreshed.any():
        own = ("applier", "epoch", "table", "identity")
        asked = ("winner_cluster", "winner_epoch", "table", "identity")
        both = pa.concat_tables(
            [rejected.select(list(each)).rename_columns(list(own)) for each in (own, asked)],
            promote_options="permissive",
        )
        codes = numbered(both, own)
        first = np.full(int(codes.max()) + 1, -1)
        first[codes[: len(rows)][::-1]] = rows[::-1]
        before = first[codes[len(rows) :]]
        open_rows = refreshed.copy()
        while open_rows.any():
            origin = np.where(open_rows, before[rows], rows)
            rows, open_rows = origin, open_rows & (origin >= 0)
            open_rows[open_rows] = refreshed[rows[open_rows]]
    taken = pa.array(rows, mask=rows < 0)
    found = {name: rejected[name].take(taken) for name in _WINNER if name != "winner_refresh"}
    return found | {"refreshed": pa.chunked_array([pa.array(refreshed)])}


def _overwritten(result: Result, cluster: str) -> pa.Table:
    """Return the changes of a cluster that its applier overwrote."""
    path = f"overwritten/cluster={cluster}"
    found = OVERWRITTEN.empty_table()
    if result.folder.exists(path):
        place = result.folder.here(path)
        found = pads.dataset(place, schema=OVERWRITTEN, format="parquet", partitioning=None).to_table()
    columns = {name: found[name] for name in found.column_names} | {
        "cluster": pa.array([cluster] * len(found), pa.string()),
        "overwritten_in": found["applied_epoch"],
        "refreshed": pa.array([False] * len(found), pa.bool_()),
        **{name: pa.nulls(len(found), pa.string()) for name in ("rejected_by", "cause", "own_cause")},
    }
    return pa.table([columns[name] for name in LOST.names], schema=LOST)


def _once(found: pa.Table) -> pa.Table:
    """
    Return each change once; of one that was rejected and overwritten, the rejection comes first in the table.

    What took its place is what the rejection names, if it names something.
    """
    codes = numbered(found, ("cluster", *PLACE))
    first = np.full(int(codes.max(initial=-1)) + 1, -1)
    first[codes[::-1]] = np.arange(len(found))[::-1]
    overwritten = np.full(len(first), -1)
    later = np.flatnonzero(found["overwritten_in"].is_valid().to_numpy())
    overwritten[codes[later]] = later
    kept = np.sort(first)
    other = overwritten[codes[kept]]
    mine, theirs = found.take(pa.array(kept)), found.take(pa.array(other, mask=other < 0))
    nameless = pc.is_null(mine["winner_cluster"])
    columns = {name: mine[name] for name in LOST.names} | {"overwritten_in": theirs["overwritten_in"]}
    # An update that spells its key anew was rejected as a delete, as a write, or as both.
    operation = found["operation"].to_numpy()
    several = np.zeros(len(first), np.bool_)
    several[codes[operation != operation[first][codes]]] = True
    columns["operation"] = pc.if_else(pa.array(several[codes[kept]]), Operation.UPDATE_ROW.name, mine["operation"])
    for name in (each for each in _WINNER if each in LOST.names):
        columns[name] = pc.if_else(nameless, theirs[name], mine[name])
    return pa.table([columns[name] for name in LOST.names], schema=LOST)


def chosen_of(found: pa.Table, which: Chosen) -> pa.Table:
    """Return those of some changes, with the columns `time`, `table` and `identity`, that are asked for."""
    kind, conditions = LOST.field("time").type, list[pc.Expression]()
    if which.since is not None:
        conditions.append(pc.field("time") >= pa.scalar(which.since, kind))
    if which.until is not None:
        conditions.append(pc.field("time") < pa.scalar(which.until, kind))
    if which.table is not None:
        conditions.append(pc.field("table") == which.table)
    if which.identity is not None:
        conditions.append(pc.field("identity") == which.identity)
    for each in conditions:
        found = found.filter(each)
    return found
