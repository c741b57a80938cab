"""
Columns of one cluster's rows in a bucket, read and checked when they are first needed, and digests of images.

Numbers that index arrays are checked once, in columns. Digests tell whether two images carry the same columns, and if
so, whether with the same values: the upper half is the CRC32 of the set of columns, the lower half that of the image's
bytes. No image has the digest 0.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from conflict.history.grid.schemas import CHANGES, CONSEQUENCES, KEYS, RowStep, epoch_order, keys_part, part
from conflict.history.scheduling.start import Bounds
from conflict.history.shown_effects import Effect, carried_by
from ndb_formats.events.row_image import RowImage, put_image
from ndb_formats.events.rows_event import Operation

# By column, the lowest and the highest number.
Ranges = Mapping[str, tuple[int, int]]
_OPERATIONS = [*Operation, *RowStep]
_FIXED: Ranges = {
    "operation": (min(_OPERATIONS), max(_OPERATIONS)),
    "effect": (min(Effect), max(Effect)),
    "key": (0, 2**31 - 1),
    "table": (0, 2**15 - 1),
    "file": (-1, 2**31 - 1),
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


@attrs.frozen
class KnownImage(RowImage):
    """An image of which a History has the digest alone."""

    digest: int = attrs.field(kw_only=True)


def digest_of(image: RowImage) -> int:
    """Return the digest of an image."""
    if isinstance(image, KnownImage):
        return image.digest
    return zlib.crc32(carried_by(image)) << COLUMNS_SHIFT | zlib.crc32(put_image(image))


def other_values(first: int, second: int) -> bool:
    """Whether two digests are of images with the same columns and other values."""
    return first != second and first >> COLUMNS_SHIFT == second >> COLUMNS_SHIFT


def digests_of_columns(carried: Sequence[bytes]) -> npt.NDArray[np.uint64]:
    """Return the upper half of the digests of images by the columns that they carry. Shape (sets,)."""
    return np.array([zlib.crc32(each) << COLUMNS_SHIFT if each else 0 for each in carried], np.uint64)


@attrs.define(slots=False)
class GridColumns:
    """
    One kind of rows of one cluster in a bucket, all batches joined, up to the last epoch that can be resolved.

    Attributes:
        history: Folder of the History.
        paths: The files, in order.
        schema: Their columns.
        bounds: Rows of other epochs are left out; None to read all.
        ranges: Of the numbers that index arrays.
        stepped: Whether there may be rows of statements, which are not in order (see `epoch_order`).
        chosen: Of the rows that are not left out, which ones these are; None for all. Shape (rows,).
    """

    history: Folder
    paths: Sequence[str]
    schema: pa.Schema
    bounds: Bounds | None = None
    ranges: Ranges = _FIXED
    stepped: bool = False
    chosen: npt.NDArray[np.bool_] | None = None
    _columns: dict[str, pa.ChunkedArray] = attrs.field(factory=dict, repr=False)
    _arrays: dict[str, np.ndarray] = attrs.field(factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.column(self.schema.names[0]))

    def of(self, chosen: npt.NDArray[np.bool_]) -> GridColumns:
        """Return some of the rows; what was read of them stays. Shape of `chosen` (rows,)."""
        mask, every = pa.array(chosen), chosen
        if self.chosen is not None:
            every = self.chosen.copy()
            every[self.chosen] = chosen
        columns = {name: column.filter(mask) for name, column in self._columns.items()}
        return attrs.evolve(self, chosen=every, columns=columns, arrays={})

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
            table = self._read(pa.schema([self.schema.field(name) for name in missing]))
            self._columns.update(zip(missing, table.columns, strict=True))

    def beside(self, kind: str, schema: pa.Schema) -> pa.Table:
        """Return what the files of another kind have of the same rows."""
        return self._read(schema, lambda path: f"{kind}/{path.partition('/')[2]}")

    def _in_files(self, schema: pa.Schema, place: Callable[[str], str] = str) -> pa.Table:
        """Return what `_read` does, in the order of the files."""
        if self.bounds is None:
            table = self.history.read_tables(map(place, self.paths), schema)
        else:
            parts = (self.history.read_rows(place(path), schema, *rows) for path, rows in self.kept.items())
            table = pa.concat_tables([schema.empty_table(), *parts])
        _refuse_out_of_range(self.history, self.paths, table, self.ranges)
        return table

    @cached_property
    def _order(self) -> pa.Array | None:
        """The order of the rows that are not left out; None if it is that of the files."""
        return epoch_order(self._in_files(_MOMENT)) if self.stepped else None

    def _read(self, schema: pa.Schema, place: Callable[[str], str] = str) -> pa.Table:
        """Return columns of the rows; `place`: the file that has them, given the one in `paths`."""
        table = self._in_files(schema, place)
        table = table if self._order is None else table.take(self._order)
        return table if self.chosen is None else table.filter(pa.array(self.chosen))

    def row(self, number: int) -> dict[str, Any]:
        """Return all columns of one row."""
        self.read(self.schema.names)
        return {name: self._columns[name][number].as_py() for name in self.schema.names}

    @cached_property
    def kept(self) -> Mapping[str, tuple[int, int]]:
        """The first row within the bounds and how many rows are, by file; files without any are left out."""
        bounds = Bounds() if self.bounds is None else self.bounds
        # Rows are in order of epochs, so those that are left out are the first and the last ones.
        found = {path: self.history.rows_within(path, "epoch", bounds.first, bounds.last) for path in self.paths}
        return {path: rows for path, rows in found.items() if rows[1]}


_MOMENT = pa.schema([CHANGES.field(name) for name in ("epoch", "group")])
_SCHEMAS = {"changes": CHANGES, "consequences": CONSEQUENCES}


def columns_of_bucket(
    history: Folder, manifest: Manifest, kind: str, cluster: str, bucket: int, bounds: Bounds | None = None
) -> GridColumns:
    """
    Return the rows of a cluster in a bucket.

    Args:
        history: Folder of the History.
        manifest: What the History holds.
        kind: ``changes``, ``consequences``, or ``keys``, which are those of both clusters.
        cluster: The cluster.
        bucket: The bucket.
        bounds: The own epochs to read; None for all.
    """
    batches = manifest.batches
    keys = [keys_part(bucket, batch) for batch in batches]
    ranges = {
        **_FIXED,
        "key": (0, sum(map(history.rows, keys)) - 1),
        "table": (0, len(manifest.tables) - 1),
        "file": (-1, len(manifest.files[cluster]) - 1),
    }
    if kind == "keys":
        return GridColumns(history, keys, KEYS, ranges=ranges)
    paths = [part(kind, cluster, bucket, batch) for batch in batches]
    stepped = kind == "changes" and any(manifest.steps.values())
    return GridColumns(history, paths, _SCHEMAS[kind], bounds, ranges, stepped)
