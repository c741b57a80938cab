"""
Keys of a bucket to dense numbers, and the staged files of new segments to the final ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.history.grid.catalogue import FileFacts, facts_of
from conflict.history.grid.folder import Folder
from conflict.history.grid.schemas import (
    CHANGES,
    CONSEQUENCES,
    IMAGES,
    KEYS,
    STAGED_CHANGES,
    STAGED_CONSEQUENCES,
    RowStep,
    keys_part,
    never_null,
    part,
    staged_part,
    table_of_rows,
)
from conflict.history.run import TableNumbers
from ndb_formats.columnar.keys import key_texts
from ndb_formats.events.row_image import layout_of_types
from ndb_formats.types.column_types import WireType

__all__ = ["KeyTask", "SegmentStep", "number_keys", "tables_and_texts"]


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


@attrs.frozen
class KeyTask:
    """
    The keys of one bucket that get numbers.

    Attributes:
        history: Folder of the History.
        bucket: The bucket.
        batch: How many batches of keys the bucket has already.
        segments: Numbers of the new segments of each cluster.
        numbers: The tables.
        types: Wire types of the columns of each table that the segments mention.
        steps: Per cluster, what statements at the start of these segments do to rows.
    """

    history: Folder
    bucket: int
    batch: int
    segments: Mapping[str, Sequence[int]]
    numbers: TableNumbers
    types: Mapping[str, tuple[WireType, ...]]
    steps: Mapping[str, Sequence[SegmentStep]] = attrs.field(factory=dict)


def number_keys(task: KeyTask) -> list[FileFacts]:
    """
    Number the new keys of a bucket in the order in which they appear, and write the final files of new segments.

    A known key keeps its number. The result depends only on the staged files and on earlier batches, so a task that was
    killed can run again.

    Returns:
        What the files of the bucket are that the batch adds.
    """
    history, bucket = task.history, task.bucket
    places = [(cluster, segment, bucket) for cluster, segments in task.segments.items() for segment in segments]
    kinds = (("changes", STAGED_CHANGES, CHANGES), ("consequences", STAGED_CONSEQUENCES, CONSEQUENCES))
    parts = [
        (part(kind, *place), history.read_table(staged_part(kind, *place), staged), final)
        for kind, staged, final in kinds
        for place in places
    ]
    known = history.read_tables((keys_part(bucket, batch) for batch in range(task.batch)), KEYS).column("identity")
    chunks = [chunk for _, table, _ in parts for chunk in table.column("identity").chunks]
    # Known keys come first, once each, so the dictionary gives them their own numbers again.
    encoded = pa.chunked_array([*known.chunks, *chunks], pa.binary()).combine_chunks().dictionary_encode()
    keys, start = encoded.indices, len(known)
    stepped = _stepped_keys(task, encoded.dictionary)
    for path, table, final in parts:
        columns = [keys.slice(start, len(table)), *table.drop_columns(["identity"]).columns]
        rows, more = pa.table(columns, schema=final), stepped.get(path)
        if more is not None:
            _put_before_images(history, path, len(table), len(more))
            rows = pa.concat_tables([more, rows]).unify_dictionaries()
        if len(rows):
            history.write_table(path, never_null(rows))
        start += len(table)
    new_keys = keys_part(bucket, task.batch)
    history.write_table(new_keys, _keys_table(task, encoded.dictionary, len(known)))
    images = [part("images", *place) for place in places]
    return facts_of(history, [new_keys, *images, *(path for path, _, _ in parts)])


def _stepped_keys(task: KeyTask, identities: pa.BinaryArray) -> dict[str, pa.Table]:
    """Return the rows that statements put before those of a segment, as `CHANGES`, by the path of its file."""
    if not any(task.steps.values()):
        return {}
    tables = np.array([int.from_bytes(each.as_py()[:2], "little") for each in identities], np.int64)
    found: dict[str, list[pa.Table]] = {}
    for cluster, steps in task.steps.items():
        for step in steps:
            keys = np.flatnonzero(tables == step.table)
            rows = [(key, *_step_row(step)) for key in keys.tolist()]
            if rows:
                path = part("changes", cluster, step.segment, task.bucket)
                found.setdefault(path, []).append(table_of_rows(rows, CHANGES))
    return {path: pa.concat_tables(each) for path, each in found.items()}


def _step_row(step: SegmentStep) -> tuple[object, ...]:
    """Return the columns of `CHANGES` after the key; it has no image and comes from no binlog."""
    known = {"table": step.table, "operation": int(step.kind), "epoch": step.epoch, "group": step.group, "file": -1}
    nothing = {"before_columns": b"", "after_columns": b"", "transaction_id": None}
    return tuple({**nothing, **known}.get(name, 0) for name in CHANGES.names if name != "key")


def _put_before_images(history: Folder, path: str, rows: int, more: int) -> None:
    """Put rows without images before those of a segment, unless an earlier run of the task did."""
    place = path.replace("changes/", "images/", 1)
    images = history.read_table(place, IMAGES)
    if len(images) == rows:
        nothing = pa.table([pa.nulls(more, pa.binary())] * len(IMAGES), schema=IMAGES)
        history.write_table(place, pa.concat_tables([nothing, images]))


def _keys_table(task: KeyTask, identities: pa.BinaryArray, first: int) -> pa.Table:
    """Return the keys from number `first` on as `KEYS`."""
    new = identities[first:]
    if not len(new):
        return KEYS.empty_table()
    tables, texts = tables_and_texts(new, task.numbers, task.types)
    numbers = pa.array(np.arange(first, first + len(new), dtype=np.int32))
    return pa.table([numbers, pa.array(tables), new, texts], schema=KEYS)


def tables_and_texts(
    identities: pa.BinaryArray, numbers: TableNumbers, types: Mapping[str, tuple[WireType, ...]]
) -> tuple[npt.NDArray[np.int16], pa.StringArray]:
    """
    Return the table number of each identity, shape (keys,), and its key as text for people.

    Args:
        identities: As `STAGED_CHANGES` has them.
        numbers: The tables.
        types: Wire types of the columns of each table that they are of.
    """
    _, offsets, data = identities.buffers()
    first, stop = identities.offset, identities.offset + len(identities)
    bounds = np.frombuffer(offsets, np.int32)[first : stop + 1].astype(np.int64)
    plain = np.frombuffer(data or b"", np.uint8)
    tables = (plain[bounds[:-1]] | plain[bounds[:-1] + 1].astype(np.int16) << 8).astype(np.int16)
    texts, rows = [pa.array([], pa.string())], [np.zeros(0, np.int64)]
    for number in np.unique(tables).tolist():
        table = numbers.tables[number]
        rows.append(np.flatnonzero(tables == number))
        layout = layout_of_types(table, types[table.full_name])
        texts.append(key_texts(table, layout, plain, bounds[rows[-1]] + 2, bounds[rows[-1] + 1]))
    return tables, pa.concat_arrays(texts).take(pa.array(np.argsort(np.concatenate(rows))))
