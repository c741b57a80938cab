"""
Keys of a bucket to dense numbers, and the staged files of new segments to the final ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.grid.folder import Folder
from conflict.grid.schemas import (
    CHANGES,
    CONSEQUENCES,
    KEYS,
    STAGED_CHANGES,
    STAGED_CONSEQUENCES,
    keys_part,
    never_null,
    part,
)
from conflict.grid.tables import TableNumbers
from ndb_formats.columnar.key_texts import key_texts
from ndb_formats.events.row_image import layout_of_types
from ndb_formats.types.column_types import WireType

__all__ = ["KeyTask", "number_keys"]


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
    """

    history: Folder
    bucket: int
    batch: int
    segments: Mapping[str, Sequence[int]]
    numbers: TableNumbers
    types: Mapping[str, tuple[WireType, ...]]


def number_keys(task: KeyTask) -> None:
    """
    Number the new keys of a bucket in the order in which they appear, and write the final files of new segments.

    A known key keeps its number. The result depends only on the staged files and on earlier batches, so a task that was
    killed can run again.
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
    # Known keys come first, once each, so the dictionary gives them their own numbers again.
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
    """
    Return keys as text for people.

    Args:
        task: The task.
        tables: Table number of each key. Shape (keys,).
        data: Identities, one after the other. Shape (bytes,).
        bounds: Where each identity starts in `data`, and where the last one ends. Shape (keys + 1,).
    """
    texts, rows = [pa.array([], pa.string())], [np.zeros(0, np.int64)]
    for number in np.unique(tables).tolist():
        table = task.numbers.tables[number]
        rows.append(np.flatnonzero(tables == number))
        layout = layout_of_types(table, task.types[table.full_name])
        texts.append(key_texts(table, layout, data, bounds[rows[-1]] + 2, bounds[rows[-1] + 1]))
    return pa.concat_arrays(texts).take(pa.array(np.argsort(np.concatenate(rows))))
