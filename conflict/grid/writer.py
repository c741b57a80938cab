"""
Rows, keys and takes to the parts of a grid, and a whole History made in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.grid.folder import Folder
from conflict.grid.key_buckets import PartBuilder, TableNumbers
from conflict.grid.manifest import MANIFEST, Manifest, SegmentFacts, table_definitions
from conflict.grid.schemas import (
    CHANGES,
    CONSEQUENCES,
    KEYS,
    SCHEDULE,
    STAGED_CHANGES,
    STAGED_CONSEQUENCES,
    keys_part,
    never_null,
    part,
)
from conflict.history.epochs import BinlogEpoch
from conflict.history.model import EpochApply, History, Transaction
from ndb_formats.columnar.key_texts import key_texts
from ndb_formats.events.row_image import layout_of_types
from ndb_formats.types.column_types import WireType

__all__ = ["KeyTask", "number_keys", "schedule_table", "write_history", "write_parts"]


@attrs.frozen
class KeyTask:
    """
    One bucket whose keys get numbers.

    Attributes:
        history: Folder of the History.
        bucket: The bucket.
        batch: How many times keys were numbered before.
        segments: Numbers of the new runs of each cluster.
        numbers: The tables.
        types: Wire types of the columns of each table that the runs mention.
    """

    history: Folder
    bucket: int
    batch: int
    segments: Mapping[str, Sequence[int]]
    numbers: TableNumbers
    types: Mapping[str, tuple[WireType, ...]]


def number_keys(task: KeyTask) -> None:
    """
    Give the keys of a bucket dense numbers, in the order in which they appear, and write the final parts of new runs.

    A key keeps the number that it has. What is written depends on the staged parts and earlier batches alone, so that
    a task that was killed can run again.
    """
    history, bucket = task.history, task.bucket
    places = [(cluster, segment, bucket) for cluster, segments in task.segments.items() for segment in segments]
    kinds = (("changes", STAGED_CHANGES, CHANGES), ("consequences", STAGED_CONSEQUENCES, CONSEQUENCES))
    parts = [
        (part(kind, *place), history.read_table(part(f"staged/{kind}", *place), staged), final)
        for kind, staged, final in kinds
        for place in places
    ]
    known = history.read_tables((keys_part(bucket, batch) for batch in range(task.batch)), KEYS).column("identity")
    chunks = [chunk for _, table, _ in parts for chunk in table.column("identity").chunks]
    # Keys that are known come first and once each, so they get their own numbers again.
    encoded = pa.chunked_array([*known.chunks, *chunks], pa.binary()).combine_chunks().dictionary_encode()
    keys, start = encoded.indices, len(known)
    for path, table, final in parts:
        if len(table):
            columns = [keys.slice(start, len(table)), *table.drop_columns(["identity"]).columns]
            history.write_table(path, never_null(pa.table(columns, schema=final)))
        start += len(table)
    history.write_table(keys_part(bucket, task.batch), _keys_table(task, encoded.dictionary, len(known)))


def _keys_table(task: KeyTask, identities: pa.BinaryArray, first: int) -> pa.Table:
    """Return the keys from number `first` on as `KEYS`."""
    new = identities[first:]
    if not len(new):
        return KEYS.empty_table()
    _, offsets, data = new.buffers()
    bounds = np.frombuffer(offsets, np.int32)[new.offset : new.offset + len(new) + 1].astype(np.int64)
    plain = np.frombuffer(data or b"", np.uint8)
    tables = plain[bounds[:-1]] | plain[bounds[:-1] + 1].astype(np.int16) << 8
    columns = [
        pa.array(np.arange(first, first + len(new), dtype=np.int32)),
        pa.array(tables.astype(np.int16)),
        new,
        _key_texts(task, tables, plain, bounds),
    ]
    return pa.table(columns, schema=KEYS)


def _key_texts(
    task: KeyTask, tables: npt.NDArray[np.int16], data: npt.NDArray[np.uint8], bounds: npt.NDArray[np.int64]
) -> pa.Array:
    """Return keys for people to read."""
    texts, rows = [pa.array([], pa.string())], [np.zeros(0, np.int64)]
    for number in np.unique(tables).tolist():
        table = task.numbers.tables[number]
        rows.append(np.flatnonzero(tables == number))
        layout = layout_of_types(table, task.types[table.full_name])
        texts.append(key_texts(table, layout, data, bounds[rows[-1]] + 2, bounds[rows[-1] + 1]))
    return pa.concat_arrays(texts).take(pa.array(np.argsort(np.concatenate(rows))))


def schedule_table(applies: Sequence[tuple[str, EpochApply]]) -> pa.Table:
    """Return the takes of both appliers as `SCHEDULE`."""
    rows = [
        (
            applier,
            apply.source,
            apply.foreign_epoch,
            apply.epoch,
            apply.group,
            apply.traced,
            apply.restarted,
            *apply.arrived,
        )
        for applier, apply in applies
    ]
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEDULE)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEDULE, strict=True)], schema=SCHEDULE
    )


def write_history(
    history: History, numbers: TableNumbers, folder: Folder, *, buckets: int = 1, epochs_per_segment: int = 2**31
) -> Manifest:
    """
    Write a History that was made in memory.

    Args:
        history: What happened.
        numbers: Its tables.
        folder: Where it goes.
        buckets: Into how many buckets keys are divided.
        epochs_per_segment: How many epochs stand in one run.
    """
    facts: dict[str, tuple[SegmentFacts, ...]] = {}
    applies: list[tuple[str, EpochApply]] = []
    for cluster in history.clusters:
        transactions = [item for item in cluster.timeline if isinstance(item, Transaction)]
        applies += [(cluster.name, item) for item in cluster.timeline if isinstance(item, EpochApply)]
        epochs = [list(group) for _, group in groupby(transactions, key=lambda transaction: transaction.epoch)]
        segments = [epochs[start : start + epochs_per_segment] for start in range(0, len(epochs), epochs_per_segment)]
        facts[cluster.name] = tuple(
            _write_segment(folder, cluster.name, number, segment, PartBuilder(numbers, buckets, ()))
            for number, segment in enumerate(segments)
        )
    types = {name: layout.types for name, layout in history.layouts.items()}
    runs_of = {name: range(len(segments)) for name, segments in facts.items()}
    for bucket in range(buckets):
        number_keys(KeyTask(folder, bucket, 0, runs_of, numbers, types))
    folder.delete("staged")
    folder.write_table("schedule.parquet", schedule_table(applies))
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
    folder.write_json(MANIFEST, manifest.to_json())
    return manifest


def _write_segment(
    folder: Folder, cluster: str, number: int, epochs: Sequence[Sequence[Transaction]], builder: PartBuilder
) -> SegmentFacts:
    changes = 0
    for epoch in epochs:
        builder.add(BinlogEpoch(epoch[0].epoch, tuple(epoch), (), ()))
        changes += sum(len(transaction.changes) for transaction in epoch)
    write_parts(folder, cluster, number, builder.tables())
    return SegmentFacts("", 0, 0, epochs[0][0].epoch, epochs[-1][0].epoch, changes)


def write_parts(
    folder: Folder, cluster: str, segment: int, parts: Iterable[tuple[int, pa.Table, pa.Table, pa.Table]]
) -> None:
    """Write the parts of one run, keys still as bytes."""
    for bucket, staged, images, consequences in parts:
        place = (cluster, segment, bucket)
        folder.write_table(part("staged/changes", *place), staged)
        folder.write_table(part("staged/consequences", *place), consequences)
        folder.write_table(part("images", *place), images)
