"""
The forms of row events in which a cluster of a simulation logs rows, found as rows come.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from conflict.engine.kernels.arrays import Int32, Int64, UInt64
from conflict.model.kernels.logged_rows import LoggedRows, RowKind
from conflict.model.kernels.row_events import Templates
from conflict.model.kernels.world import RESOLVE_BIT
from ndb_formats.constants import ColumnCode
from ndb_formats.events.extra_row_info import ConflictFlag, ExtraRowInfo
from ndb_formats.events.rows_event import Operation, RowsEvent, encode_rows_event
from ndb_formats.events.table_map import TableMap
from ndb_formats.rules.event_columns import EventColumns, ordered, stored_columns
from ndb_formats.rules.update_format import UpdateFormat, ndb_columns
from ndb_formats.schema.tables import Table
from ndb_formats.writing.binlog_writer import BinlogSettings, rows_shape

__all__ = ["LOG_NAME", "LoggedTable", "TemplateSet"]

LOG_NAME = b"binlog"  # of a row of `ndb_apply_status`
_WIDTHS = {ColumnCode.LONG: 4, ColumnCode.LONGLONG: 8, ColumnCode.VARCHAR: 1 + len(LOG_NAME)}
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

    def forms_of(self, rows: LoggedRows, update_format: UpdateFormat | None = None) -> tuple[Int32, Templates]:
        """
        Return the number of the form of each row event, and all forms.

        Args:
            rows: The row events.
            update_format: How all tables are logged; None for each as it is.

        Returns:
            The numbers, -1 for a row that is not logged, shape (rows,); and the forms by number.
        """
        numbers = self._numbers_of(rows)
        shapes = [self._shape(*pair, update_format) for pair in self._numbers]
        # An insert and an update that is logged as a write can have one form.
        distinct = list(dict.fromkeys(shapes))
        places = {shape: place for place, shape in enumerate(distinct)}
        which = np.array([places[shape] for shape in shapes], np.int32)
        templates = _templates(distinct, rows.after.shape[1])
        return np.where(numbers < 0, np.int32(-1), which[numbers]), templates

    def _numbers_of(self, rows: LoggedRows) -> Int32:
        forms = (rows.table.astype(np.int64) + 1) * _KINDS * _FLAGS + rows.kind * _FLAGS + rows.flags
        sets, which = np.unique(_deciding_columns(rows), return_inverse=True)
        both, place = np.unique(forms * len(sets) + which, return_inverse=True)
        pairs = [(int(each) // len(sets), int(sets[int(each) % len(sets)])) for each in both]
        found = np.array([self._numbers.setdefault(pair, len(self._numbers)) for pair in pairs], np.int32)
        return np.where(rows.kind == RowKind.NOTHING, np.int32(-1), found[place])

    def _shape(self, form: int, written: int, update_format: UpdateFormat | None) -> tuple[TableMap, RowsEvent]:
        """Return the Table_map event of a form, and its rows event without rows."""
        number, kind, flags = form // _FLAGS // _KINDS - 1, RowKind(form // _FLAGS % _KINDS), form % _FLAGS
        logged = self.tables[number]
        columns = _columns(logged.table, update_format or logged.format, kind, written)
        extra = ExtraRowInfo(0, ConflictFlag(flags) if flags else None)
        return logged.table_map, rows_shape(self.settings, logged.table, logged.table_map, columns, extra)


def _templates(shapes: Sequence[tuple[TableMap, RowsEvent]], ordinals: int) -> Templates:
    """Return forms for compiled code."""
    heads = [encode_rows_event(shape) for _, shape in shapes]
    widths = np.zeros((len(shapes), ordinals), np.int32)
    nullable: UInt64 = np.zeros(len(shapes), np.uint64)
    for place, (table_map, _) in enumerate(shapes):
        widths[place, : len(table_map.types)] = [_WIDTHS[each.code] for each in table_map.types]
        nullable[place] = _bits([ordinal for ordinal, null in enumerate(table_map.nullable) if null])
    starts: Int64 = np.cumsum([0, *map(len, heads)], dtype=np.int64)
    return Templates(
        heads=np.frombuffer(b"".join(heads), np.uint8),
        starts=starts,
        types=np.array([shape.type for _, shape in shapes], np.uint8),
        before=np.array([_bits(shape.before or ()) for _, shape in shapes], np.uint64),
        after=np.array([_bits(shape.after or ()) for _, shape in shapes], np.uint64),
        nullable=nullable,
        widths=widths,
    )


def _deciding_columns(rows: LoggedRows) -> UInt64:
    """Return the written columns of updates, which decide on the columns of their images; 0 for all else."""
    return np.where(rows.kind == RowKind.UPDATE, rows.written, np.uint64(0))


def _columns(table: Table, update_format: UpdateFormat, kind: RowKind, written: int) -> EventColumns:
    """Return the columns of a row event."""
    if kind in (RowKind.STATUS, RowKind.NOTHING):
        return EventColumns(Operation.WRITE_ROW, None, ordered(stored_columns(table)))
    if kind is RowKind.REFRESH_DELETE:
        return EventColumns(Operation.DELETE_ROW, ordered(table.key_ordinals), None)
    resolve = {len(table.columns) - 1} if written & int(RESOLVE_BIT) else set()
    ordinals = {bit + 1 for bit in range(len(table.columns) - 1) if written >> bit & 1} | resolve
    found = ndb_columns(update_format, table, Operation(int(kind)), ordinals)
    assert found is not None  # tables of a model are logged
    return found


def _bits(ordinals: Sequence[int]) -> int:
    return sum(1 << ordinal for ordinal in ordinals)
