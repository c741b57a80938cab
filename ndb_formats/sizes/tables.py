"""The tables of a log whose sizes are worked out: their definitions, and the defaults of their columns."""

from __future__ import annotations

import attrs
import numpy as np

from ndb_formats.columnar.kernels.sizes import NO_DEFAULT, NULL_DEFAULT
from ndb_formats.columnar.tables import BatchShape, Growing
from ndb_formats.constants import APPLY_STATUS
from ndb_formats.events.agreed_definition import agreed_definition
from ndb_formats.events.row_image import RowLayout
from ndb_formats.events.rows_event import Operation
from ndb_formats.events.table_map import TableMap
from ndb_formats.rules.relogging import default_payload, has_default
from ndb_formats.schema.tables import Schema, Table

# The kinds of changes of a table, in the order of the arrays.
CHANGES = (Operation.WRITE_ROW, Operation.UPDATE_ROW, Operation.DELETE_ROW)


@attrs.frozen(eq=False)
class SizedTable:
    """
    One table.

    Attributes:
        number: Its number.
        name: ``database.table``.
        columns: Names of its columns.
        definition: Its definition; None if there is none, so that its events stay as they are in every format.
        first_column: Number of its first column among those of all tables.
    """

    number: int
    name: str
    columns: tuple[str, ...]
    definition: Table | None
    first_column: int
    _default_sizes: tuple[int | None, ...]

    def default_size(self, ordinal: int) -> int | None:
        """Return the bytes of a column's declared default in an image, 0 for NULL; None if it has none."""
        return self._default_sizes[ordinal]


class SizedTables:
    """
    The tables met so far.

    Attributes:
        found: The tables, by number.
        defaults: Start and length of the default of each column of each table. Shape (columns, 2), int64; the length
            can be `NO_DEFAULT` or `NULL_DEFAULT`.
        default_bytes: The defaults, concatenated. Shape (bytes,), uint8.
    """

    def __init__(self, schema: Schema) -> None:
        self.found: list[SizedTable] = []
        self.defaults = Growing(2, np.int64)
        self.default_bytes = Growing(None, np.uint8)
        self._schema = schema
        self._numbers: dict[tuple[str, tuple[object, ...], Table | None], int] = {}

    def define(self, schema: Schema) -> None:
        """Take other definitions for the tables from here on."""
        self._schema = schema

    def of(self, shape: BatchShape, *, in_epoch: bool) -> SizedTable:
        """
        Return the table of a shape of rows; with another definition than before it is another one of the same name.

        Raises:
            FormatError: Its metadata cannot be read, or a default does not fit its column.
        """
        table_map, layout = shape.table_map, shape.layout
        definition = self._definition(table_map, in_epoch=in_epoch)
        identity = (table_map.full_name, (*layout.names, *layout.types), definition)
        if identity not in self._numbers:
            self._numbers[identity] = len(self.found)
            first, sizes = self._add_defaults(layout, definition)
            self.found.append(SizedTable(len(self.found), table_map.full_name, layout.names, definition, first, sizes))
        return self.found[self._numbers[identity]]

    def _definition(self, table_map: TableMap, *, in_epoch: bool) -> Table | None:
        if table_map.full_name == APPLY_STATUS:
            return None  # always logged with all columns and as writes
        table = agreed_definition(table_map, self._schema.find(table_map.database, table_map.table, any_case=True))
        if table is not None and table.engine is None and in_epoch:
            return attrs.evolve(table, engine="NDB")
        return table

    def _add_defaults(self, layout: RowLayout, table: Table | None) -> tuple[int, tuple[int | None, ...]]:
        first = self.defaults.count
        sizes: list[int | None] = []
        for ordinal, codec in enumerate(layout.codecs):
            column = None if table is None else table.columns[ordinal]
            if column is None or not has_default(column):
                self.defaults.add((0, NO_DEFAULT))
                sizes.append(None)
                continue
            payload = default_payload(layout, ordinal, column)
            if payload is None:
                self.defaults.add((0, NULL_DEFAULT))
                sizes.append(0)
                continue
            self.defaults.add((self.default_bytes.add(payload), len(payload)))
            sizes.append(len(codec.put(payload)))
        return first, tuple(sizes)
