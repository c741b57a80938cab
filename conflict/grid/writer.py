"""
The staged files of a segment, and a whole History on disk from one in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import pyarrow as pa

from conflict.grid.epoch_files import schedule_table
from conflict.grid.folder import Folder
from conflict.grid.key_numbering import KeyTask, number_keys
from conflict.grid.manifest import Manifest, SegmentFacts, with_files, with_schedule, write_manifest
from conflict.grid.part_builder import PartBuilder
from conflict.grid.schemas import SCHEDULE_PART, keyless_part, part, staged_part
from conflict.history.effects import Effect
from conflict.history.epochs import BinlogEpoch
from conflict.history.model import EpochApply, History, Position, RowChange, Transaction
from conflict.history.tables import TableNumbers, table_definitions
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.rows_event import Operation

__all__ = ["write_history", "write_parts"]

# By own epoch and group, the effect on each row (table, key).
Shown = Mapping[Position, Mapping[tuple[str, bytes], Effect]]


def write_parts(
    folder: Folder,
    cluster: str,
    segment: int,
    parts: Iterable[tuple[int, pa.Table, pa.Table, pa.Table]],
    keyless: pa.Table,
) -> None:
    """
    Write the rows of one segment, keys still as bytes.

    Args:
        folder: Folder of the History.
        cluster: Name of the cluster.
        segment: Number of the segment.
        parts: Bucket, staged changes, images and staged consequences of each bucket that has rows.
        keyless: The rows of tables without a primary key, as `KEYLESS`.
    """
    if len(keyless):
        folder.write_table(keyless_part(cluster, segment), keyless)
    for bucket, staged, images, consequences in parts:
        place = (cluster, segment, bucket)
        folder.write_table(staged_part("changes", *place), staged)
        folder.write_table(staged_part("consequences", *place), consequences)
        folder.write_table(part("images", *place), images)


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
    applies: list[tuple[str, EpochApply]] = []
    for cluster in history.clusters:
        transactions = [item for item in cluster.timeline if isinstance(item, Transaction)]
        applies += [(cluster.name, item) for item in cluster.timeline if isinstance(item, EpochApply)]
        epochs = _epochs(transactions, (shown or {}).get(cluster.name, {}))
        segments = [epochs[start : start + epochs_per_segment] for start in range(0, len(epochs), epochs_per_segment)]
        facts[cluster.name] = tuple(
            _write_segment(folder, cluster.name, number, segment, PartBuilder(numbers, buckets, ()))
            for number, segment in enumerate(segments)
        )
    types = {name: layout.types for name, layout in history.layouts.items()}
    segments_of = {name: range(len(segments)) for name, segments in facts.items()}
    tasks = [KeyTask(folder, bucket, 0, segments_of, numbers, types) for bucket in range(buckets)]
    files = [each for task in tasks for each in number_keys(task)]
    folder.delete("staged")
    folder.write_table(SCHEDULE_PART, schedule_table(applies))
    manifest = Manifest(
        buckets=buckets,
        batches=1,
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
) -> SegmentFacts:
    changes = 0
    for epoch in epochs:
        builder.add(epoch)
        changes += sum(len(transaction.changes) for transaction in epoch.transactions)
    keyless = builder.keyless()
    write_parts(folder, cluster, number, builder.tables(), keyless)
    return SegmentFacts("", 0, 0, epochs[0].number, epochs[-1].number, changes, keyless=len(keyless))
