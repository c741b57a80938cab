"""
The forms of row events in which a cluster of a simulation logs rows, found as rows come.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from conflict.columnar.kernels.arrays import Int32, Int64, UInt64
from conflict.model.kernels.logged_rows import LoggedRows, RowKind
from conflict.model.kernels.row_events import Templates
from conflict.model.kernels.world import RESOLVE_BIT
from ndb_formats.constants import ColumnCode
from ndb_formats.events.extra_row_info import ConflictFlag, ExtraRowInfo
from ndb_formats.events.rows_event import Operation, encode_rows_event
from ndb_formats.events.table_map import TableMap
from ndb_formats.rules.event_columns import EventColumns, ordered, stored_columns
from ndb_formats.rules.update_format import UpdateFormat, ndb_columns
from ndb_formats.schema.tables import Table
from ndb_formats.writing.binlog_writer import BinlogSettings, rows_shape

__all__ = ["LoggedTable", "TemplateSet"]

_WIDTHS = {ColumnCode.LONG: 4, ColumnCode.LONGLONG: 8, ColumnCode.VARCHAR: 1}  # VARCHAR: the empty log_name
_KINDS, _FLAGS = 8, 8  # more than there are


@attrs.frozen
class LoggedTable:
    """
    A table as a cluster logs it.

    Attributes:
        table: Its definition.
        table_map: Its Table_map event.
        format: How it is logged.
    """

    table: Table
    table_map: TableMap
    format: UpdateFormat


@attrs.define
class TemplateSet:
    """
    The forms that were met, numbered in that order.

    Attributes:
        settings: How the server writes.
        tables: The tables by number; `ndb_apply_status` is the last one.
    """

    settings: BinlogSettings
    tables: Sequence[LoggedTable]
    _numbers: dict[tuple[int, int], int] = attrs.field(factory=dict)
    _heads: list[bytes] = attrs.field(factory=list)
    _columns: list[tuple[int, EventColumns]] = attrs.field(factory=list)
    _types: list[int] = attrs.field(factory=list)

    def numbers_of(self, rows: LoggedRows) -> Int32:
        """Return the number of the form of each row event; -1 for one that is not logged. Shape (rows,)."""
        forms = (rows.table.astype(np.int64) + 1) * _KINDS * _FLAGS + rows.kind * _FLAGS + rows.flags
        sets, which = np.unique(_deciding_columns(rows), return_inverse=True)
        both, place = np.unique(forms * len(sets) + which, return_inverse=True)
        found = [self._number(int(each) // len(sets), int(sets[int(each) % len(sets)])) for each in both]
        return np.array(found, np.int32)[place]

    def _number(self, form: int, carried: int) -> int:
        if (form, carried) not in self._numbers:
            self._numbers[form, carried] = self._added(form, carried)
        return self._numbers[form, carried]

    def _added(self, form: int, carried: int) -> int:
        number, kind, flags = form // _FLAGS // _KINDS - 1, RowKind(form // _FLAGS % _KINDS), form % _FLAGS
        logged = self.tables[number]
        columns = None if kind is RowKind.NOTHING else _columns(logged, kind, carried)
        if columns is None:
            return -1
        extra = ExtraRowInfo(0, ConflictFlag(flags) if flags else None)
        shape = rows_shape(self.settings, logged.table, logged.table_map, columns, extra)
        self._heads.append(encode_rows_event(shape))
        self._types.append(int(shape.type))
        self._columns.append((number, columns))
        return len(self._heads) - 1

    def table_of(self, template: int) -> int:
        """Return the number of the table of a form; that of `ndb_apply_status` is -1."""
        return self._columns[template][0]

    def packed(self, ordinals: int) -> Templates:
        """Return all forms in the form that compiled code receives."""
        widths = np.zeros((len(self._heads), ordinals), np.int32)
        nullable: UInt64 = np.zeros(len(self._heads), np.uint64)
        for place, (number, _) in enumerate(self._columns):
            table_map = self.tables[number].table_map
            widths[place, : len(table_map.types)] = [_WIDTHS[each.code] for each in table_map.types]
            nullable[place] = _bits([ordinal for ordinal, null in enumerate(table_map.nullable) if null])
        sizes = [len(head) for head in self._heads]
        starts: Int64 = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Templates(
            heads=np.frombuffer(b"".join(self._heads), np.uint8),
            starts=starts,
            types=np.array(self._types, np.uint8),
            before=np.array([_bits(each.before or ()) for _, each in self._columns], np.uint64),
            after=np.array([_bits(each.after or ()) for _, each in self._columns], np.uint64),
            nullable=nullable,
            widths=widths,
        )


def _deciding_columns(rows: LoggedRows) -> UInt64:
    """Return the written columns of updates, which decide on the columns of their images; 0 for all else."""
    return np.where(rows.kind == RowKind.UPDATE, rows.carried, np.uint64(0))


def _columns(logged: LoggedTable, kind: RowKind, carried: int) -> EventColumns | None:
    """Return the columns of a row event; None if it is not logged."""
    table = logged.table
    if kind is RowKind.STATUS:
        return EventColumns(Operation.WRITE_ROW, None, ordered(stored_columns(table)))
    if kind is RowKind.REFRESH_DELETE:
        return EventColumns(Operation.DELETE_ROW, ordered(table.key_ordinals), None)
    resolve = {len(table.columns) - 1} if carried & int(RESOLVE_BIT) else set()
    written = {bit + 1 for bit in range(len(table.columns) - 1) if carried >> bit & 1} | resolve
    return ndb_columns(logged.format, table, Operation(int(kind)), written)


def _bits(ordinals: Sequence[int]) -> int:
    return sum(1 << ordinal for ordinal in ordinals)
