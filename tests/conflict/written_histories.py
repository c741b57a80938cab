"""Histories in memory, written as a grid on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from conflict.history.epochs import BinlogEpoch
from conflict.history.grid.epoch_files import write_schedule
from conflict.history.grid.folder import Folder
from conflict.history.grid.key_numbering import KINDS, KeyRun, KeyTask, number_keys
from conflict.history.grid.manifest import Manifest, SegmentFacts, with_files, with_schedule, write_manifest
from conflict.history.grid.writer import PartBuilder, join_logs, write_parts
from conflict.history.model import History
from conflict.history.run import TableNumbers, table_definitions
from conflict.history.scheduling.schedule_columns import ScheduleColumns
from conflict.history.shown_effects import Effect
from conflict.history.timeline import EpochApply, Position, RowChange, Transaction
from ndb_formats.events.rows_event import ConflictFlag, Operation

# By own epoch and group, the effect on each row (table, key).
Shown = Mapping[Position, Mapping[tuple[str, bytes], Effect]]


def write_history(
    history: History,
    numbers: TableNumbers,
    folder: Folder,
    *,
    buckets: int = 1,
    epochs_per_segment: int = 2**31,
    shown: Mapping[str, Shown] | None = None,
) -> Manifest:
    """
    Write a History that is in memory.

    Args:
        history: The History.
        numbers: Its tables.
        folder: Where it goes.
        buckets: Into how many buckets keys are divided.
        epochs_per_segment: How many epochs a segment has.
        shown: Per cluster, what its binlog shows of its applier's work; nothing if left out.
    """
    facts: dict[str, tuple[SegmentFacts, ...]] = {}
    places: dict[tuple[str, str], list[bytes]] = {(kind, each.name): [] for kind in KINDS for each in history.clusters}
    schedule: dict[str, ScheduleColumns] = {}
    for cluster, other in zip(history.clusters, reversed(history.clusters), strict=True):
        transactions = [item for item in cluster.timeline if isinstance(item, Transaction)]
        applies = [item for item in cluster.timeline if isinstance(item, EpochApply)]
        schedule[cluster.name] = ScheduleColumns.of_applies(other.name, applies)
        epochs = _epochs(transactions, (shown or {}).get(cluster.name, {}))
        segments = [epochs[start : start + epochs_per_segment] for start in range(0, len(epochs), epochs_per_segment)]
        written = [
            _write_segment(folder, cluster.name, number, segment, PartBuilder(numbers, buckets, ()))
            for number, segment in enumerate(segments)
        ]
        facts[cluster.name] = tuple(each for each, _ in written)
        for kind in KINDS:
            places[kind, cluster.name] = [own[kind] for _, own in written]
    types = {name: layout.types for name, layout in history.layouts.items()}
    segments_of = {name: range(len(segments)) for name, segments in facts.items()}
    run = KeyRun(history=folder, batches=(), batch=0, segments=segments_of, numbers=numbers, types=types)
    tasks = KeyTask.of_buckets(run, buckets, places)
    files = [each for task in tasks for each in number_keys(task)]
    for name, own in facts.items():
        files += join_logs(folder, name, range(len(own)), 0)
    folder.delete("staged")
    write_schedule(folder, schedule.items())
    manifest = Manifest(
        buckets=buckets,
        batches=(0,),
        clusters={cluster.name: cluster.server_id for cluster in history.clusters},
        tables=table_definitions(numbers),
        files={cluster.name: () for cluster in history.clusters},
        segments=facts,
        types=types,
        resolve_columns=dict(numbers.resolve_columns),
        errors={},
        left_out={},
        assumed=history.assumed,
        last_epochs={name: segments[-1].last_epoch if segments else 0 for name, segments in facts.items()},
        epochs_left_out={},
        changes=sum(segment.changes for segments in facts.values() for segment in segments),
    )
    manifest = with_schedule(folder, with_files(folder, manifest, 0, files))
    write_manifest(folder, manifest)
    return manifest


def _epochs(transactions: Sequence[Transaction], shown: Shown) -> list[BinlogEpoch]:
    """Return own transactions and shown effects by epoch, in order."""
    own = {number: tuple(group) for number, group in groupby(transactions, key=lambda transaction: transaction.epoch)}
    effects: dict[int, list[tuple[int, RowChange]]] = {}
    for (number, group), rows in sorted(shown.items()):
        effects.setdefault(number, []).extend((group, _consequence(*row, effect)) for row, effect in rows.items())
    return [
        BinlogEpoch(number, own.get(number, ()), (), tuple(effects.get(number, ())))
        for number in sorted(own.keys() | effects.keys())
    ]


def _consequence(table: str, key: bytes, effect: Effect) -> RowChange:
    """Return a change without images that has an effect on a row."""
    refresh = effect in {Effect.REFRESHED, Effect.REFRESHED_ABSENT}
    deletes = effect in {Effect.DELETED, Effect.REFRESHED_ABSENT}
    operation = Operation.DELETE_ROW if deletes else Operation.WRITE_ROW
    return RowChange(table, key, operation, None, None, flags=ConflictFlag.REFRESH if refresh else ConflictFlag(0))


def _write_segment(
    folder: Folder, cluster: str, number: int, epochs: Sequence[BinlogEpoch], builder: PartBuilder
) -> tuple[SegmentFacts, dict[str, bytes]]:
    changes = 0
    for epoch in epochs:
        builder.add(epoch)
        changes += sum(len(transaction.changes) for transaction in epoch.transactions)
    keyless = builder.keyless()
    places = write_parts(folder, cluster, number, builder.tables(), keyless)
    return SegmentFacts("", 0, 0, epochs[0].number, epochs[-1].number, changes, keyless=len(keyless)), places
