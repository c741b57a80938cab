"""
A run that the reference engine resolved, in the form in which the kernels read it.

The kernels leave some of these runs to the reference engine (`conflict.engine.ledger.careful`). What it finds of the
schedule, when epochs were applied and rows judged, holds for other functions too.
"""

from __future__ import annotations

from collections.abc import Collection

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.engine.columnar.bucket import CarefulRows
from conflict.engine.columnar.order import ApplierEpochs, Located
from conflict.engine.ledger.careful import CareKind
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest
from conflict.history.model import History
from conflict.history.tasks import in_process
from conflict.history.timeline import EpochApply, timeline_of
from conflict.runs.resolving.finding_careful import with_respelled
from conflict.runs.resolving.resolve_job import run_of_part
from conflict.runs.rows.task_inputs import TaskInputs, part_of_log
from conflict.runs.settled import Settled, SettleOptions

# Why a run is left to the reference engine whose schedule is as any other.
SETTLED = frozenset(
    (
        *(CareKind.MIDDLE_LINKS, CareKind.MIDDLE_REFRESHES, CareKind.MIDDLE_REJECTED, CareKind.MIDDLE_STOP),
        *(CareKind.MIDDLE_RESPELLED, CareKind.UNLOGGED_DOUBTS, CareKind.CRASH_DOUBTS),
    )
)
_NUMBER_BYTES = 2  # of the table, before the key (docs/jobs.md, `identity`)


def as_kernels_read(
    found: Settled, read: tuple[Folder, Manifest], options: SettleOptions
) -> tuple[TaskInputs, list[ApplierEpochs]]:
    """
    Return what the reference engine settled as the kernels would have.

    Args:
        found: A run that starts in the middle or has rows that were changed without a log, and its result.
        read: The History of its binlogs, and what it holds.
        options: How it was settled.

    Returns:
        What tasks on the History have in common, where rows that were changed without a log are careful ones; and per
        cluster, the epochs that its applier applies.
    """
    resolved, history = found.resolved, found.by_reference
    assert history is not None
    run = resolved.run.from_the_middle if resolved.starts else resolved.run
    common = run_of_part(run, read[0], options.out, part_of_log(run, *read), options.result)
    located = _located(common, _judged_early(history))
    unlogged = {(each.table, each.key) for changes in history.unlogged.values() for each in changes}
    if unlogged:
        keys = dict[int, list[int]]()
        for bucket, key in _located(common, unlogged).values():
            keys.setdefault(bucket, []).append(key)
        numbers = {bucket: np.array(sorted(own), np.int64) for bucket, own in keys.items()}
        tables = np.zeros(len(common.numbers.tables), np.bool_)
        common = common.with_careful(CarefulRows(tables, numbers))
    common = with_respelled(in_process, common, options.progress)
    applied = []
    for cluster in history.clusters:
        applies = [each for each in cluster.timeline if isinstance(each, EpochApply) and each.applied]
        applied.append(ApplierEpochs.of_cluster(attrs.evolve(cluster, timeline=timeline_of([], applies)), located))
    return common, applied


def _judged_early(history: History) -> set[tuple[str, bytes]]:
    """Return table and key of the rows that were judged some time before the commit."""
    applies = (each for cluster in history.clusters for each in cluster.timeline if isinstance(each, EpochApply))
    return {(row.table, row.key) for each in applies for row in each.moments}


def _located(run: TaskInputs, rows: Collection[tuple[str, bytes]]) -> Located:
    """Return bucket and number in it of some rows."""
    found = dict[tuple[str, bytes], tuple[int, int]]()
    numbers = {table.full_name: number for number, table in enumerate(run.numbers.tables)}
    wanted = {numbers[name].to_bytes(_NUMBER_BYTES, "little") + key: (name, key) for name, key in rows}
    for bucket in range(run.manifest.buckets if rows else 0):
        identity = run.load_bucket(bucket, images=False).keys.column("identity").combine_chunks()
        chosen = pc.is_in(identity, value_set=pa.array(wanted, pa.binary())).to_numpy(zero_copy_only=False)
        for key in np.flatnonzero(chosen).tolist():
            found[wanted[identity[key].as_py()]] = bucket, key
    return found
