"""
Columns of one cluster's rows in a bucket, read and checked when they are first needed, and digests of images.

Numbers that index arrays are checked once, in columns. Digests tell whether two images carry the same columns, and if
so, whether with the same values: the upper half is the CRC32 of the set of columns, the lower half that of the image's
bytes. No image has the digest 0.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest
from conflict.history.grid.schemas import RowStep, keys_part
from conflict.history.shown_effects import Effect
from ndb_formats.events.row_image import RowImage, put_image
from ndb_formats.events.rows_event import Operation

__all__ = [
    "COLUMNS_SHIFT",
    "GridColumns",
    "carried_by",
    "digest_of",
    "digests_of_columns",
    "other_values",
    "ranges_of_bucket",
]

# By column, the lowest and the highest number.
Ranges = Mapping[str, tuple[int, int]]
_OPERATIONS = [*Operation, *RowStep]
_FIXED: Ranges = {
    "operation": (min(_OPERATIONS), max(_OPERATIONS)),
    "effect": (min(Effect), max(Effect)),
    "key": (0, 2**31 - 1),
    "table": (0, 2**15 - 1),
    "file": (-1, 2**15 - 1),
}


def ranges_of_bucket(history: Folder, manifest: Manifest, bucket: int, cluster: str) -> Ranges:
    """Return the ranges of the rows of a cluster in a bucket."""
    keys = sum(history.rows(keys_part(bucket, batch)) for batch in range(manifest.batches))
    return {
        **_FIXED,
        "key": (0, keys - 1),
        "table": (0, len(manifest.tables) - 1),
        "file": (-1, len(manifest.files[cluster]) - 1),
    }


def _refuse_out_of_range(history: Folder, paths: Sequence[str], table: pa.Table, ranges: Ranges) -> None:
    """
    Make sure that no number of a table can lead outside the arrays that it indexes.

    Args:
        history: Folder of the History.
        paths: The files that the table was read from.
        table: The rows.
        ranges: By column.

    Raises:
        HistoryError: One can.
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            wrong = _bad_dictionary(column)
        elif name in ranges and len(column):
            least, greatest = (value.as_py() for value in pc.min_max(column).values())
            low, high = ranges[name]
            outside = [number for number in (least, greatest) if not low <= number <= high]
            wrong = f"holds {outside[0]}, which is not from {low} to {high}" if outside else None
        else:
            wrong = None
        if wrong:
            message = (
                f"{history.uri}: column {name} of {paths[0]} and the files beside it {wrong}. "
                "Ingest the binlogs again into another folder"
            )
            raise HistoryError(message)


def _bad_dictionary(column: pa.ChunkedArray) -> str | None:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return "refers to values that it does not have"
    return None


COLUMNS_SHIFT = 32


def carried_by(image: RowImage) -> bytes:
    """Return the columns that an image carries, one bit each, as in `conflict.history.grid.schemas.CHANGES`."""
    return sum(1 << place for place in image.present).to_bytes((len(image.layout.codecs) + 7) // 8, "little")


def digest_of(image: RowImage) -> int:
    """Return the digest of an image."""
    return zlib.crc32(carried_by(image)) << COLUMNS_SHIFT | zlib.crc32(put_image(image))


def other_values(first: int, second: int) -> bool:
    """Whether two digests are of images with the same columns and other values."""
    return first != second and first >> COLUMNS_SHIFT == second >> COLUMNS_SHIFT


def digests_of_columns(carried: Sequence[bytes]) -> npt.NDArray[np.uint64]:
    """Return the upper half of the digests of images by the columns that they carry. Shape (sets,)."""
    return np.array([zlib.crc32(each) << COLUMNS_SHIFT if each else 0 for each in carried], np.uint64)


LAST = 2**64 - 1  # no epoch is higher


@attrs.define(slots=False)
class GridColumns:
    """
    One kind of rows of one cluster in a bucket, all segments joined, up to the last epoch that can be resolved.

    Attributes:
        history: Folder of the History.
        paths: The files, in order.
        schema: Their columns.
        last_epoch: Rows of later epochs are left out; None if there are no later epochs.
        first_epoch: Rows of earlier epochs are left out.
        ranges: Of the numbers that index arrays.
        chosen: Of the rows that are not left out, which ones these are; None for all. Shape (rows,).
    """

    history: Folder
    paths: Sequence[str]
    schema: pa.Schema
    last_epoch: int | None = None
    first_epoch: int = 0
    ranges: Ranges = _FIXED
    chosen: npt.NDArray[np.bool_] | None = None
    _columns: dict[str, pa.ChunkedArray] = attrs.field(factory=dict, repr=False)
    _arrays: dict[str, np.ndarray] = attrs.field(factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.column(self.schema.names[0]))

    def of(self, chosen: npt.NDArray[np.bool_]) -> GridColumns:
        """Return some of all rows. Shape of `chosen` (rows,)."""
        return attrs.evolve(self, chosen=chosen, columns={}, arrays={})

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column by its name."""
        self.read([name])
        return self._columns[name]

    def array(self, name: str) -> np.ndarray:
        """Return a numeric column by its name. Shape (rows,); its dtype is that of the column."""
        if name not in self._arrays:
            chunks = [chunk.to_numpy() for chunk in self.column(name).chunks]
            empty = np.empty(0, self.schema.field(name).type.to_pandas_dtype())
            self._arrays[name] = chunks[0] if len(chunks) == 1 else np.concatenate([empty, *chunks])
        return self._arrays[name]

    def of_rows(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Return a numeric column at some rows; for few rows this costs less than `array`. Shape of `rows`."""
        chunks = [chunk.to_numpy() for chunk in self.column(name).chunks if len(chunk)]
        starts = np.cumsum([0, *map(len, chunks)])
        found = np.empty(len(rows), self.schema.field(name).type.to_pandas_dtype())
        for chunk, start, stop in zip(chunks, starts, starts[1:], strict=False):
            here = np.flatnonzero((start <= rows) & (rows < stop))
            found[here] = chunk[rows[here] - start]
        return found

    def may_be_null(self, name: str) -> bool:
        """Whether the schema of any file lets a column be NULL; the column itself is not read."""
        return any(self.history.may_be_null(path, name) for path in self.paths)

    def read(self, names: Iterable[str]) -> None:
        """Read several columns at once, which costs less than one by one."""
        missing = [name for name in names if name not in self._columns]
        if missing:
            schema = pa.schema([self.schema.field(name) for name in missing])
            table = self.history.read_tables(self.paths, schema)
            _refuse_out_of_range(self.history, self.paths, table, self.ranges)
            if self.last_epoch is not None or self.first_epoch:
                table = table.slice(*self.kept)
            if self.chosen is not None:
                table = table.filter(pa.array(self.chosen))
            self._columns.update(zip(missing, table.columns, strict=True))

    def row(self, number: int) -> dict[str, Any]:
        """Return all columns of one row."""
        self.read(self.schema.names)
        return {name: self._columns[name][number].as_py() for name in self.schema.names}

    @cached_property
    def kept(self) -> tuple[int, int]:
        """The first row that is not left out, and the number of rows from there on that are not."""
        # Rows are in order of epochs, so those that are left out are the first and the last ones.
        epochs = self.history.read_tables(self.paths, pa.schema([self.schema.field("epoch")])).column(0)
        last = LAST if self.last_epoch is None else self.last_epoch
        first = int(pc.sum(pc.less(epochs, pa.scalar(self.first_epoch, pa.uint64()))).as_py() or 0)
        stop = int(pc.sum(pc.less_equal(epochs, pa.scalar(last, pa.uint64()))).as_py() or 0)
        return first, max(stop - first, 0)
