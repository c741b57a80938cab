"""
Columns of one cluster's rows in a bucket, read when they are first needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conflict.grid.folder import Folder
from conflict.grid.ranges import FIXED, Ranges, refuse_out_of_range

__all__ = ["GridColumns"]

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
    ranges: Ranges = FIXED
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
            refuse_out_of_range(self.history, self.paths, table, self.ranges)
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
