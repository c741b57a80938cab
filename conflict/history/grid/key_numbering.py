"""
Keys of a bucket to dense numbers, and what was read of new segments to the files of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.history.grid.blocks import BlockPlace, Parts, ranges_of
from conflict.history.grid.catalogue import FileFacts, facts_of
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import layout_of_grown
from conflict.history.grid.merging import MergedRows
from conflict.history.grid.schemas import (
    CHANGES,
    CONSEQUENCES,
    IMAGES,
    KEYS,
    STAGED_CHANGES,
    STAGED_CONSEQUENCES,
    RowStep,
    epoch_order,
    keys_part,
    never_null,
    part,
    staged_part,
    table_of_rows,
)
from conflict.history.run import TableNumbers
from ndb_formats.columnar.keys import key_texts
from ndb_formats.types.column_types import WireType


@attrs.frozen
class SegmentStep:
    """
    What a statement at the start of a segment does to the rows of one table.

    Attributes:
        segment: Number of the segment.
        table: Number of the table.
        kind: What it does.
        epoch: Own epoch under which it stands.
        group: Its group there.
    """

    segment: int
    table: int
    kind: RowStep
    epoch: int
    group: int


@attrs.frozen(kw_only=True)
class KeyRun:
    """
    What all tasks that number the keys of new segments have in common.

    Attributes:
        history: Folder of the History.
        batches: Numbers of the batches that stay.
        batch: Number of the new one.
        segments: Numbers of the new segments of each cluster.
        numbers: The tables.
        types: Wire types of the columns of each table that the segments mention.
        steps: Per cluster, what statements at the start of these and earlier segments do to rows.
        merged: The rows of the batches after those that stay, which the new one takes over; None for none.
    """

    history: Folder
    batches: Sequence[int]
    batch: int
    segments: Mapping[str, Sequence[int]]
    numbers: TableNumbers
    types: Mapping[str, tuple[WireType, ...]]
    steps: Mapping[str, Sequence[SegmentStep]] = attrs.field(factory=dict)
    merged: MergedRows | None = None

    def merged_of(self, bucket: int) -> MergedRows:
        """Return what the new batch takes over in a bucket."""
        return MergedRows(self.history) if self.merged is None else attrs.evolve(self.merged, bucket=bucket)


Bounds = npt.NDArray[np.int64]


@attrs.frozen
class KeyTask:
    """
    Neighbouring buckets whose keys get numbers.

    Attributes:
        run: What it has in common with others.
        buckets: The buckets.
        places: By kind of rows and cluster, where the block of these buckets starts and ends in the file of each new
            segment. Shape (segments, 2).
    """

    run: KeyRun
    buckets: range
    places: Mapping[tuple[str, str], Bounds]

    @classmethod
    def of_buckets(cls, run: KeyRun, buckets: int, places: Mapping[tuple[str, str], Sequence[bytes]]) -> list[Self]:
        """
        Return the tasks of all buckets.

        Args:
            run: What they have in common.
            buckets: How many there are.
            places: By kind of rows and cluster, what `conflict.history.grid.writer.write_parts` returned for each new
                segment.
        """
        ranges = ranges_of(buckets)
        bounds = {
            each: np.frombuffer(b"".join(own), np.int64).reshape(len(own), len(ranges) + 1)
            for each, own in places.items()
        }
        return [
            cls(run, own, {each: of[:, place : place + 2].copy() for each, of in bounds.items()})
            for place, own in enumerate(ranges)
        ]

    def block_places(self) -> Iterator[tuple[tuple[str, str], BlockPlace]]:
        """Yield where the blocks are, by kind of rows and cluster."""
        for (kind, cluster), bounds in self.places.items():
            for segment, (start, stop) in zip(self.run.segments[cluster], bounds.tolist(), strict=True):
                path = staged_part(kind, cluster, segment)
                yield (kind, cluster), BlockPlace(path, self.buckets, start, stop)


Rows = Mapping[tuple[str, str], Sequence[pa.Table]]
_STAGED = {"changes": STAGED_CHANGES, "consequences": STAGED_CONSEQUENCES}
KINDS = tuple(_STAGED)
_GROUP_ROWS = 1 << 17  # a part of a log needs no others
_KEYED_CHANGES = pa.schema([*CHANGES, *IMAGES])


def number_keys(task: KeyTask) -> list[FileFacts]:
    """
    Number the new keys of buckets, write the files of the new batch, and return what these are.

    The result depends only on the staged files and on earlier batches, so a task that was killed can run again.
    """
    named = list(task.block_places())
    with task.run.history.parts([place for _, place in named]) as parts:
        return [each for bucket in task.buckets for each in _number_keys(task.run, bucket, _rows(task, bucket, parts))]


def _rows(task: KeyTask, bucket: int, parts: Sequence[Parts]) -> Rows:
    """Return the rows of a bucket in each new segment, by kind and cluster, in an order that is always the same."""
    following = iter(parts)
    return {each: [next(following).of(bucket) for _ in bounds] for each, bounds in task.places.items()}


def _number_keys(run: KeyRun, bucket: int, read: Rows) -> list[FileFacts]:
    """
    Number the new keys of a bucket in the order in which they appear, and write its files.

    What the new batch takes over of others comes first in it, as it is. A known key keeps its number.
    """
    history = run.history
    identities = [chunk for parts in read.values() for part in parts for chunk in part.column("identity").chunks]
    merged = run.merged_of(bucket)
    older = history.read_tables((keys_part(bucket, batch) for batch in run.batches), KEYS)
    known = pa.concat_tables([older, merged.keys]).column("identity")
    # Known keys come first, once each, so the dictionary gives them their own numbers again.
    encoded = pa.chunked_array([*known.chunks, *identities], pa.binary()).cast(pa.large_binary()).dictionary_encode()
    dictionary = encoded.chunk(0).dictionary if encoded.num_chunks else pa.array([], pa.large_binary())
    numbers = pa.chunked_array([chunk.indices for chunk in encoded.chunks], pa.int32())
    written, start = [keys_part(bucket, run.batch)], len(known)
    history.write_table(written[0], pa.concat_tables([merged.keys, _keys_table(run, dictionary, len(known))]))
    for (kind, cluster), parts in read.items():
        rows = pa.concat_tables([_STAGED[kind].empty_table(), *parts])
        columns = [numbers.slice(start, len(rows)), *rows.drop_columns(["identity"]).columns]
        start += len(rows)
        if kind == "consequences":
            tables = {kind: pa.table(columns, schema=CONSEQUENCES)}
        else:
            keyed = pa.table(columns, schema=_KEYED_CHANGES)
            keyed = _with_steps(keyed, [len(each) for each in parts], run, cluster, (dictionary, len(known)))
            tables = {kind: keyed.select(CHANGES.names), "images": keyed.select(IMAGES.names)}
        wholes = {
            name: pa.concat_tables([merged.rows(name, cluster, table.schema), table]).unify_dictionaries()
            for name, table in tables.items()
        }
        order = epoch_order(wholes[kind]) if run.steps else None
        for name, whole in wholes.items():
            if len(whole):
                written.append(part(name, cluster, bucket, run.batch))
                ordered = whole if order is None else whole.take(order)
                history.write_table(written[-1], never_null(ordered), _GROUP_ROWS)
    return facts_of(history, written)


def _with_steps(
    rows: pa.Table, sizes: Sequence[int], run: KeyRun, cluster: str, keys: tuple[pa.LargeBinaryArray, int]
) -> pa.Table:
    """
    Put what statements do to rows before the rows of the segments that begin with these statements.

    What earlier segments begin with is put before all rows, for new keys: the other cluster may have changed such a row
    before the statement.

    Args:
        rows: The rows of new segments as `_KEYED_CHANGES`.
        sizes: How many rows each segment has.
        run: What all tasks have in common.
        cluster: The cluster.
        keys: All keys of the bucket, and how many of them are not new.
    """
    steps = run.steps.get(cluster, ())
    if not steps:
        return rows
    (identities, known), segments = keys, run.segments[cluster]
    tables, start = _table_numbers(identities), 0
    parts = [_step_rows(step, tables, known) for step in steps if step.segment not in segments]
    for segment, size in zip(segments, sizes, strict=True):
        parts += [_step_rows(step, tables) for step in steps if step.segment == segment]
        parts.append(rows.slice(start, size))
        start += size
    return pa.concat_tables([rows.schema.empty_table(), *parts]).unify_dictionaries()


def _step_rows(step: SegmentStep, tables: npt.NDArray[np.int16], first: int = 0) -> pa.Table:
    """Return the rows of a step, for the keys of its table from a number on; they have no images, and no binlog."""
    keys = np.flatnonzero(tables == step.table)
    keys = keys[keys >= first]
    known = {"table": step.table, "operation": int(step.kind), "epoch": step.epoch, "group": step.group, "file": -1}
    nothing = {"before_columns": b"", "after_columns": b"", "transaction_id": None, **dict.fromkeys(IMAGES.names)}
    row = table_of_rows([tuple({**nothing, **known}.get(name, 0) for name in _KEYED_CHANGES.names)], _KEYED_CHANGES)
    numbers = pa.array(keys, pa.int32())
    return row.take(pa.array(np.zeros(len(keys), np.int64))).set_column(0, _KEYED_CHANGES.field("key"), numbers)


def _keys_table(run: KeyRun, identities: pa.LargeBinaryArray, first: int) -> pa.Table:
    """Return the keys from number `first` on as `KEYS`."""
    new = identities[first:]
    if not len(new):
        return KEYS.empty_table()
    tables, texts = tables_and_texts(new, run.numbers, run.types)
    numbers = pa.array(np.arange(first, first + len(new), dtype=np.int32))
    return pa.table([numbers, pa.array(tables), new.cast(pa.binary()), texts], schema=KEYS)


def _bytes_of(identities: pa.LargeBinaryArray) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of identities, and where each starts and the last one ends. Shapes (bytes,), (keys + 1,)."""
    _, offsets, data = identities.buffers()
    first, stop = identities.offset, identities.offset + len(identities)
    return np.frombuffer(data or b"", np.uint8), np.frombuffer(offsets, np.int64)[first : stop + 1]


def _table_numbers(identities: pa.LargeBinaryArray) -> npt.NDArray[np.int16]:
    """Return the table number of each identity. Shape (keys,)."""
    if not len(identities):
        return np.zeros(0, np.int16)
    plain, bounds = _bytes_of(identities)
    return (plain[bounds[:-1]] | plain[bounds[:-1] + 1].astype(np.int16) << 8).astype(np.int16)


def tables_and_texts(
    identities: pa.LargeBinaryArray, numbers: TableNumbers, types: Mapping[str, tuple[WireType, ...]]
) -> tuple[npt.NDArray[np.int16], pa.StringArray]:
    """
    Return the table number of each identity, shape (keys,), and its key as text for people.

    Args:
        identities: As `STAGED_CHANGES` has them.
        numbers: The tables.
        types: Wire types of the columns of each table that they are of.
    """
    plain, bounds = _bytes_of(identities)
    tables = _table_numbers(identities)
    texts, rows = [pa.array([], pa.string())], [np.zeros(0, np.int64)]
    for number in np.unique(tables).tolist():
        table = numbers.tables[number]
        rows.append(np.flatnonzero(tables == number))
        layout = layout_of_grown(table, types[table.full_name])
        texts.append(key_texts(table, layout, plain, bounds[rows[-1]] + 2, bounds[rows[-1] + 1]))
    return tables, pa.concat_arrays(texts).take(pa.array(np.argsort(np.concatenate(rows))))
