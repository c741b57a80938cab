"""
The rows of a bucket as they stood on both clusters at some place in the order of epoch applies, and their file.

A row stands where nothing of it is on its way: every change of it that a cluster made, and everything that an applier
logged of it, had been decided by the other cluster, or came later. So the kernels can go on from there, as if the row
had begun with it. `conflict.engine.columnar.writing.standing` finds these places. Computes docs/windows.md.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.engine.kernels.arrays import Bool, Int32, Int64, UInt64
from conflict.engine.kernels.records import ROW_STATE, Records
from conflict.errors import HistoryError
from conflict.history.grid.columns import GridColumns
from conflict.history.grid.folder import Folder
from conflict.history.grid.schemas import PLACE

NOBODY = -1  # in place of the cluster that wrote a row last
_VERSION = ("exists", "local", "epoch", "value", "table")
# The change that wrote a row last: its cluster by number, and what `outcomes` says of it as ``winner_...``.
WRITER = ("cluster", "epoch", "operation", "refresh", *PLACE)
_KINDS: Mapping[str, npt.DTypeLike] = {
    "cluster": np.int8,
    "epoch": np.uint64,
    "operation": np.int8,
    "refresh": np.bool_,
    "file": np.int32,
    "position": np.uint64,
    "payload_position": np.uint32,
    "row": np.int32,
}


@attrs.frozen(eq=False)
class StandingRows:
    """
    The rows of a bucket as they stood. A key that had no change yet stands with both rows missing.

    Attributes:
        states: `ROW_STATE`, shape (keys, clusters).
        epoch: Own epoch of the last own change that is in it; 0 for none. Shape (keys, clusters).
        group: Group of that epoch. Shape (keys, clusters).
        writer: By the names of `WRITER`, the change that wrote the row last; its cluster is `NOBODY` if there is none.
            Shape (keys, clusters).
        image: Number in `images` of the row; -1 for one that is not there. Shape (keys, clusters).
        images: The rows as images of the binlog. binary, shape (images,).
        carried: Number in `bitmaps` of the columns that each image carries. Shape (images,).
        bitmaps: The different sets of columns, a bit per column.
    """

    states: Records
    epoch: UInt64
    group: Int32
    writer: Mapping[str, npt.NDArray[Any]]
    image: Int64
    images: pa.BinaryArray
    carried: Int32
    bitmaps: Sequence[bytes]

    @classmethod
    def none(cls, key_table: npt.NDArray[np.int16]) -> StandingRows:
        """Return rows that had no change yet. Shape of `key_table`, the table of each key: (keys,)."""
        shape = len(key_table), 2
        states = np.zeros(shape, ROW_STATE)
        states["table"] = key_table[:, None]
        writer = {name: np.zeros(shape, kind) for name, kind in _KINDS.items()}
        writer["cluster"][:] = NOBODY
        images = pa.array([], pa.binary())
        epoch, group = np.zeros(shape, np.uint64), np.zeros(shape, np.int32)
        return cls(states, epoch, group, writer, np.full(shape, -1), images, np.zeros(0, np.int32), ())

    @cached_property
    def exists(self) -> Bool:
        """Whether each row is there. Shape (keys, clusters)."""
        return np.asarray(self.states["exists"])

    def later(self, side: int, changes: GridColumns) -> Bool:
        """Return which own changes of a cluster came later. Shape (changes,)."""
        changes.read(("key", "epoch", "group"))
        key = changes.array("key")
        epoch, last = changes.array("epoch"), self.epoch[key, side]
        return np.asarray((epoch > last) | ((epoch == last) & (changes.array("group") > self.group[key, side])))


_ROWS = pa.schema(
    [
        ("key", pa.int32()),
        ("cluster", pa.int8()),
        ("last_epoch", pa.uint64()),
        ("last_group", pa.int32()),
        *((name, pa.from_numpy_dtype(ROW_STATE[name])) for name in _VERSION),
        ("image", pa.int64()),
        *((f"writer_{name}", pa.from_numpy_dtype(kind)) for name, kind in _KINDS.items()),
    ]
)
_IMAGES = pa.schema([("columns", pa.dictionary(pa.int32(), pa.binary())), ("image", pa.binary())])


def _rows_path(bucket: int) -> str:
    return f"rows/bucket={bucket:05d}.parquet"


def _images_path(bucket: int) -> str:
    return f"images/bucket={bucket:05d}.parquet"


def write_standing(folder: Folder, bucket: int, rows: StandingRows) -> None:
    """Write the rows of a bucket that have been changed."""
    key, cluster = np.nonzero(rows.exists | (rows.epoch > 0) | (rows.writer["cluster"] != NOBODY))
    at = key, cluster
    columns = [
        key,
        cluster,
        rows.epoch[at],
        rows.group[at],
        *(rows.states[name][at] for name in _VERSION),
        rows.image[at],
        *(rows.writer[name][at] for name in WRITER),
    ]
    arrays = [pa.array(each).cast(field.type) for each, field in zip(columns, _ROWS, strict=True)]
    folder.write_table(_rows_path(bucket), pa.table(arrays, schema=_ROWS))
    carried = pa.DictionaryArray.from_arrays(pa.array(rows.carried, pa.int32()), pa.array(rows.bitmaps, pa.binary()))
    folder.write_table(_images_path(bucket), pa.table([carried, rows.images], schema=_IMAGES))


def read_standing(folder: Folder, bucket: int, key_table: npt.NDArray[np.int16]) -> StandingRows:
    """
    Read the rows of a bucket.

    Args:
        folder: Where they are.
        bucket: Its number.
        key_table: Table of each key of the bucket, which may have more keys by now. Shape (keys,).
    """
    rows, found = StandingRows.none(key_table), folder.read_table(_rows_path(bucket), _ROWS)
    columns = {name: found.column(name).to_numpy() for name in _ROWS.names}
    at = columns["key"], columns["cluster"]
    for name in _VERSION:
        rows.states[name][at] = columns[name]
    rows.epoch[at], rows.group[at] = columns["last_epoch"], columns["last_group"]
    rows.image[at] = columns["image"]
    for name in WRITER:
        rows.writer[name][at] = columns[f"writer_{name}"]
    images = folder.read_table(_images_path(bucket), _IMAGES).unify_dictionaries()
    carried = images.column("columns").combine_chunks()
    carried = carried if isinstance(carried, pa.DictionaryArray) else carried.chunk(0)
    return attrs.evolve(
        rows,
        images=pa.concat_arrays([pa.array([], pa.binary()), *images.column("image").chunks]),
        carried=carried.indices.to_numpy().astype(np.int32),
        bitmaps=carried.dictionary.to_pylist(),
    )


def digest_of_keys(identities: pa.ChunkedArray, count: int) -> int:
    """Return a digest of the identities of the first keys of a bucket, which stay as it grows."""
    joined = pa.concat_arrays([pa.array([], pa.binary()), *identities.slice(0, count).chunks])
    _, offsets, data = joined.buffers()
    lengths = np.diff(np.frombuffer(offsets, np.int32, len(joined) + 1))
    return zlib.crc32(lengths.tobytes(), zlib.crc32(data or b""))


def refuse_other_keys(state: Folder, identities: pa.ChunkedArray, bucket: int, known: tuple[int, int]) -> None:
    """
    Make sure that a bucket numbers its keys as it did when its rows were written.

    Args:
        state: Where the rows are.
        identities: The identities of its keys.
        bucket: Its number.
        known: How many keys it had, and their digest.

    Raises:
        HistoryError: It numbers them otherwise.
    """
    count, digest = known
    if len(identities) < count or digest_of_keys(identities, count) != digest:
        message = f"the rows in {state.uri} are those of another History: bucket {bucket} has other keys"
        raise HistoryError(message)
