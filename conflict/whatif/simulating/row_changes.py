"""
The changes of a simulation's users as row changes: what the reference engine and a History take.

The rows of simulated tables have an INT key and BIGINT columns. Data columns of a before image are left NULL: the
arrays of a simulation do not hold them, and no function of the server reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import attrs
import numpy as np

from conflict.engine.kernels.arrays import Int64
from conflict.history.timeline import RowChange, Transaction
from conflict.rules.table_setup import TableSetup
from conflict.whatif.simulating.configuration import DATABASE, Model
from conflict.whatif.simulating.kernels.world import RESOLVE_BIT, World
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowImage, RowLayout, layout_of_types
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.row_image_rules import EventColumns
from ndb_formats.rules.update_format import ndb_columns
from ndb_formats.schema.row_keys import key_of
from ndb_formats.types.column_types import WireType

_KEY_BYTES, _VALUE_BYTES = 4, 8
_INT, _BIGINT = WireType(ColumnCode.LONG), WireType(ColumnCode.LONGLONG)


def row_of(key_offsets: Int64, key: int) -> tuple[int, int]:
    """Return the table of a row, and its number there; `key_offsets` as of `Simulated`."""
    table = int(np.searchsorted(key_offsets, key, "right")) - 1
    return table, key - int(key_offsets[table])


@attrs.frozen(eq=False)
class SimulatedChanges:
    """
    What users of a simulation changed so far.

    Attributes:
        model: What is simulated.
        world: All that happened; also as interpreted kernels have it.
        key_offsets: See `Simulated`.
        setups: By cluster, its tables.
        layouts: How the rows of each table are read, by ``database.table``.
    """

    model: Model
    world: World
    key_offsets: Int64
    setups: Sequence[Sequence[TableSetup]]
    layouts: dict[str, RowLayout]

    @classmethod
    def of(cls, model: Model, world: World, key_offsets: Int64) -> SimulatedChanges:
        """Return those of a simulation."""
        setups = [tuple(model.setups[site.name].values()) for site in model.sites]
        layouts = {
            setup.table.full_name: layout_of_types(setup.table, (_INT, *[_BIGINT] * (len(setup.table.columns) - 1)))
            for setup in setups[0]
        }
        return cls(model, world, key_offsets, setups, layouts)

    def transactions(self, side: int, first: int) -> Iterator[Transaction]:
        """Yield the transactions of a cluster's users, from a change on, which begins one."""
        rows, stop = self.world.changes.rows, int(self.world.site[side]["stop"])
        own = (place for place in range(first, stop) if not rows[place]["relayed"])
        for (epoch, group), places in groupby(
            own, lambda place: (int(rows[place]["epoch"]), int(rows[place]["group"]))
        ):
            mine = list(places)
            identity = side << 48 | int(self.world.made.transaction[mine[0]]) + 1
            yield Transaction(epoch, group, tuple(self._change(side, place, identity) for place in mine))

    def _change(self, side: int, place: int, identity: int) -> RowChange:
        """Return one row change with the columns that its table logs."""
        change, both = self.world.changes.rows[place], self.world.changes.values[place]
        made, carried = self.world.made.columns, int(self.world.made.carried[place])
        number, row = row_of(self.key_offsets, int(change["key"]))
        setup, table = self.setups[side][number], self.model.tables[number]
        name = f"{DATABASE}.{table.name}"
        key, resolve = row.to_bytes(_KEY_BYTES, "little"), table.columns + 1
        values = [_payload(int(made[place, column])) for column in range(table.columns)]
        written = {column + 1 for column in range(table.columns) if carried >> column & 1}
        if carried & int(RESOLVE_BIT):
            written.add(resolve)
        operation = Operation(int(change["operation"]))
        columns = _columns(setup, operation, written)
        old, new = (int(both[name]).to_bytes(_VALUE_BYTES, "little") for name in ("before", "after"))
        return RowChange(
            name,
            key_of(setup.table.columns[:1], [key]),
            operation,
            _image(self.layouts[name], columns.before, [key, *[None] * len(values), old]),
            _image(self.layouts[name], columns.after, [key, *values, new]),
            identity,
        )


def _columns(setup: TableSetup, operation: Operation, written: set[int]) -> EventColumns:
    """Return the columns of both images of a logged operation; an insert is logged as an update's write is."""
    updates = operation is Operation.WRITE_ROW and setup.format.as_write
    if updates:
        return EventColumns(operation, None, tuple(sorted({0, *written})))
    found = ndb_columns(setup.format, setup.table, operation, written)
    assert found is not None
    return found


def _image(layout: RowLayout, columns: tuple[int, ...] | None, row: list[bytes | None]) -> RowImage | None:
    return None if columns is None else RowImage(layout, columns, tuple(row[place] for place in columns))


def _payload(value: int) -> bytes | None:
    return value.to_bytes(_VALUE_BYTES, "little") if value else None
