"""
The different shapes of row events in a segment: table, operation, and the columns of both images.
"""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.grid.tables import TableNumbers
from conflict.ingestion.segment_arrays import UnreadableError
from ndb_formats.columnar.tables import BatchShape
from ndb_formats.constants import APPLY_STATUS
from ndb_formats.schema.tables import Schema
from ndb_formats.types.column_types import WireType

__all__ = ["RowShapes"]

Int32 = npt.NDArray[np.int32]


@attrs.define(eq=False)
class RowShapes:
    """
    The shapes of rows met in a segment. Lists are indexed by the number of a shape in the table register.

    Attributes:
        schema: The tables to read.
        numbers: Their numbers.
        of_status: Whether its rows are of `ndb_apply_status`.
        table: Number of its table.
        operation: `Operation` of its rows.
        before: Bitmap of the columns of the before image; no bytes if there is none.
        after: Bitmap of the columns of the after image; no bytes if there is none.
        types: Wire types of the columns of each table met.
    """

    schema: Schema
    numbers: TableNumbers
    of_status: list[bool] = attrs.field(factory=list)
    table: list[int] = attrs.field(factory=list)
    operation: list[int] = attrs.field(factory=list)
    before: list[bytes] = attrs.field(factory=list)
    after: list[bytes] = attrs.field(factory=list)
    types: dict[str, tuple[WireType, ...]] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return len(self.table)

    def add(self, shape: BatchShape) -> None:
        """
        Add a new shape.

        Raises:
            UnreadableError: Its rows cannot be resolved, or the columns of its table have changed.
        """
        status = shape.table_map.full_name == APPLY_STATUS
        self.of_status.append(status)
        self.table.append(0 if status else self._table(shape))
        self.operation.append(int(shape.operation))
        width = (len(shape.layout.codecs) + 7) // 8
        for bitmaps, columns in ((self.before, shape.before), (self.after, shape.after)):
            bitmaps.append(b"" if columns is None else sum(1 << each for each in columns).to_bytes(width, "little"))

    def _table(self, shape: BatchShape) -> int:
        table = self.schema.find(shape.table_map.database, shape.table_map.table)
        carried = shape.before if shape.before is not None else shape.after
        if table is None or not table.primary_key or not set(table.key_ordinals) <= set(carried or ()):
            raise UnreadableError
        if self.types.setdefault(table.full_name, shape.layout.types) != shape.layout.types:
            raise UnreadableError
        return self.numbers.number(table.full_name)

    def tables_of(self, shape: Int32) -> npt.NDArray[np.int16]:
        """Return the table number of each row by its shape."""
        return np.array(self.table, np.int16)[shape]

    def operations_of(self, shape: Int32) -> npt.NDArray[np.int8]:
        """Return the operation of each row by its shape."""
        return np.array(self.operation, np.int8)[shape]

    def columns_of(self, shape: Int32) -> tuple[pa.DictionaryArray, pa.DictionaryArray]:
        """Return the columns that the before and after image of each row carry, by its shape."""
        before, after = (pa.array(bitmaps, pa.binary()).dictionary_encode() for bitmaps in (self.before, self.after))
        first, second = (
            pa.DictionaryArray.from_arrays(each.indices.take(pa.array(shape)), each.dictionary)
            for each in (before, after)
        )
        return first, second
