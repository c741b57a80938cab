"""
Channels that moved, and epochs that were applied again, with their rows from a History on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.config.arguments import StageProgress
from conflict.engine.columnar.order import schedule_of
from conflict.engine.kernels.arrays import EpochApplies
from conflict.history.grid.epoch_files import read_summaries
from conflict.history.grid.schemas import KEYLESS, log_part
from conflict.history.tasks import Runner
from conflict.history.timeline import EpochApply
from conflict.results.cutovers import ChannelMoves, RowOfEpoch, moves_of
from conflict.runs.rows.task_inputs import TaskInputs
from conflict.runs.rows.touched_rows import change_of
from ndb_formats.events.rows_event import Operation

_Row = tuple[int, int, RowOfEpoch]  # epoch, ordinal, and the row


@attrs.frozen
class _Task:
    """
    One bucket whose rows of some epochs are wanted.

    Attributes:
        run: The run.
        bucket: Number of the bucket.
        epochs: By cluster, its own epochs.
    """

    run: TaskInputs
    bucket: int
    epochs: Mapping[str, frozenset[int]]


def find_moves(runner: Runner, run: TaskInputs, applies: EpochApplies, progress: StageProgress) -> ChannelMoves:
    """
    Return what became of channels.

    Args:
        runner: Runs the tasks.
        run: The run.
        applies: The epoch applies.
        progress: Called with the name of the stage, tasks done, and their number.
    """
    own = {cluster.name: list(_applies(run, number, applies)) for number, cluster in enumerate(run.clusters)}
    own = {name: each for name, each in own.items() if each}
    if not own:
        return ChannelMoves()
    times = {
        name: {each.number: each.committed for each in summaries if each.committed is not None}
        for name in own
        for summaries in [read_summaries(run.history, name, run.manifest.batches)]
    }
    moves = moves_of(own, times)
    if not moves.repeats:
        return moves
    epochs = {name: frozenset(each) for name, each in moves.repeated.items()}
    tasks = [_Task(run, bucket, epochs) for bucket in range(run.manifest.buckets)]
    rows: dict[str, list[_Row]] = {name: list(_keyless(run, name, each)) for name, each in epochs.items()}
    for part in runner(_rows_of_bucket, tasks, partial(progress, "reading epochs that were applied again")):
        for name, found in part.items():
            rows.setdefault(name, []).extend(found)
    changes: dict[tuple[str, int], list[RowOfEpoch]] = {}
    for name, found in rows.items():
        for epoch, _, row in sorted(found):
            changes.setdefault((name, epoch), []).append(row)
    return moves.with_changes(changes)


def _applies(run: TaskInputs, number: int, applies: EpochApplies) -> Sequence[EpochApply]:
    """Return the epoch applies of a cluster, if its channel moved or it applied an epoch again."""
    mine = applies.applier == number
    foreign, servers = applies.foreign_epoch[mine], applies.source_server[mine]
    once = (foreign[1:] > foreign[:-1]).all() or len(np.unique(foreign)) == len(foreign)
    if once and (servers == servers[:1]).all():
        return ()
    return schedule_of(applies, number, run.clusters[1 - number].name).applies()


def _rows_of_bucket(task: _Task) -> dict[str, list[_Row]]:
    """Return the row changes of the epochs in a bucket."""
    bucket = task.run.load_bucket(task.bucket)
    tables = [table.full_name for table in task.run.numbers.tables]
    found: dict[str, list[_Row]] = {}
    for side, name in enumerate(bucket.clusters):
        rows, wanted = bucket.rows[side], np.array(sorted(task.epochs.get(name, ())), np.uint64)
        chosen = np.flatnonzero(np.isin(rows.epoch, wanted) & (rows.operation <= max(Operation)))
        keys = rows.key[chosen]
        columns = (rows.epoch[chosen], rows.ordinal[chosen], bucket.key_table[keys], rows.operation[chosen])
        texts, identities = (each.to_pylist() for each in bucket.row_keys(keys).values())
        found[name] = [
            (epoch, ordinal, (tables[table], Operation(operation).name, *key))
            for epoch, ordinal, table, operation, *key in zip(
                *(each.tolist() for each in columns), texts, identities, strict=True
            )
        ]
    return found


def _keyless(run: TaskInputs, name: str, epochs: frozenset[int]) -> Iterator[_Row]:
    """Yield the row changes of the epochs in tables without a primary key."""
    paths = [log_part("keyless", name, batch) for batch in run.manifest.batches]
    table, layouts = run.history.read_tables(paths, KEYLESS), run.manifest.layouts(run.numbers)
    wanted = pc.is_in(table["epoch"], value_set=pa.array(sorted(epochs), pa.uint64()))
    for row in table.filter(pc.and_(table["own"], wanted)).to_pylist():
        change = change_of(row, layouts, run, name)
        yield row["epoch"], row["ordinal"], (change.table, change.operation.name, "", change.key)
