"""
Changes that reach an applier when a statement has given its table, or theirs, another form.

The kernels know the changes that do not fit from the start on. Where others may not fit, the reference engine decides.
Computes docs/definitions.md, "What a statement does".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from conflict.engine.columnar.setups import ClusterSetup, required_columns
from conflict.history.grid.columns import columns_of_bucket
from conflict.history.run import misfit
from conflict.history.scheduling.schedule_columns import ScheduleColumns, among
from conflict.history.scheduling.start import Bounds
from conflict.history.timeline import Position
from conflict.rules.table_setup import TableSetup
from conflict.runs.rows.task_inputs import TaskInputs
from ndb_formats.events.rows_event import Operation

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]


def meets_another_form(run: TaskInputs, schedule: Mapping[str, ScheduleColumns]) -> bool:
    """
    Whether a change may reach an applier that has its table in a form which it does not fit.

    Args:
        run: The run.
        schedule: Per cluster, the epoch applies of its applier, at their places.
    """
    for cluster, other in (run.clusters, reversed(run.clusters)):
        for table in sorted(cluster.steps.keys() | other.steps.keys()):
            epochs = list(_unfit_epochs(cluster, other, table, schedule[cluster.name].applied_alone()))
            if epochs and _has_changes(run, other.name, table, np.unique(np.concatenate(epochs))):
                return True
    return False


def _unfit_epochs(cluster: ClusterSetup, other: ClusterSetup, table: int, own: ScheduleColumns) -> Iterator[UInt64]:
    """Yield epochs of the other cluster whose changes of a table do not fit when they are applied."""
    steps, foreign = other.steps.get(table, ()), own["foreign_epoch"]
    here = _passed(cluster.steps.get(table, ()), own["epoch"], own["group"] + ~own["traced"])
    # The number of an epoch does not tell whether all of its changes come after a statement with the same number.
    for there in (_passed(steps, foreign, np.full(len(own), side)) for side in (-1, 2**31)):
        for mine, theirs in np.unique(np.stack([here, there]), axis=1).T.tolist():
            if (mine, theirs) != (0, 0) and _is_unfit(other.over_time(table)[theirs], cluster.over_time(table)[mine]):
                yield foreign[(here == mine) & (there == theirs)]


def _passed(steps: Sequence[Position], epoch: UInt64, follows: Int64) -> Int64:
    """Return how many of some statements come before each of some positions."""
    found = np.zeros(len(epoch), np.int64)
    for at, group in steps:
        found += (epoch > np.uint64(at)) | ((epoch == np.uint64(at)) & (follows > group))
    return found


def _is_unfit(source: TableSetup, replica: TableSetup) -> bool:
    """Whether an applier may not convert a column, takes it for another one, or must be given others."""
    pairs = zip(source.shown[1], replica.shown[1], strict=False)
    moved = any(place != other for place, other in pairs)
    return moved or misfit(source, replica) is not None or len({*map(_required, (source, replica))}) > 1


def _required(setup: TableSetup) -> frozenset[int]:
    return required_columns(setup.table)


def _has_changes(run: TaskInputs, cluster: str, table: int, epochs: UInt64) -> bool:
    """Whether a cluster changed rows of a table in some epochs, which are sorted."""
    bounds = Bounds(int(epochs[0]), int(epochs[-1]))
    for bucket in range(run.manifest.buckets):
        columns = partial(columns_of_bucket, run.history, run.manifest, cluster=cluster, bucket=bucket)
        changes = columns("changes", bounds=bounds)
        key, epoch, operation = (changes.array(name) for name in ("key", "epoch", "operation"))
        chosen = key[(operation <= max(Operation)) & among(epoch, epochs)]
        if len(chosen) and (columns("keys").array("table")[chosen] == table).any():
            return True
    return False
