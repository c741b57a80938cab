"""
The images with which a change of a row is logged, under any setting.

NDB tables follow their binlog type and other tables ``binlog_row_image``; neither is affected by the setting of the
other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from ndb_formats.errors import SchemaError
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.row_image_rules import (
    EventColumns,
    RowImageRule,
    image_columns,
    image_event,
    inserted_columns,
    ordered,
    stored_columns,
    updated_columns,
)
from ndb_formats.rules.update_format import (
    UpdateFormat,
    effective_format,
    is_ndb,
    key_change,
    ndb_columns,
    ndb_event,
    stored_marks,
)
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import ABSENT, Absent, Value

# A row: an image with all columns, or values by ordinal.
Row = RowImage | Mapping[int, Value]


@attrs.frozen
class Logging:
    """
    The settings of a server for the logging of rows; the engine of a table decides which applies.

    Attributes:
        update_format: The format of NDB tables.
        row_image: ``binlog_row_image``, for all other tables.
    """

    update_format: UpdateFormat = attrs.field(factory=lambda: effective_format(None))
    row_image: RowImageRule = RowImageRule.FULL


@attrs.frozen
class LoggedImages:
    """One rows event: the operation as logged, and its images; None if the operation has no such image."""

    operation: Operation
    before: RowImage | None
    after: RowImage | None


def images(
    table: Table,
    layout: RowLayout,
    before: Row | None,
    after: Row | None,
    written: Collection[int],
    logging: Logging,
) -> tuple[LoggedImages, ...]:
    """
    Return the events of a change of a row, in order: none if it is not logged, two if it changes the key under NDB.

    Args:
        table: The table.
        layout: The layout of its rows.
        before: The whole row before the change; None for an insert.
        after: The whole row after the change; None for a delete.
        written: Ordinals of the columns that the statement names (insert) or sets (update).
        logging: The server's settings.

    Raises:
        SchemaError: There is neither row, or a row lacks a column that is logged.
    """
    rows = _encoded(layout, before), _encoded(layout, after)
    if rows == (None, None):
        message = "a change needs the row before it or the row after it"
        raise SchemaError(message, table=table.full_name)
    if is_ndb(table):
        columns = _ndb_events(table, *rows, written, logging.update_format)
    else:
        columns = _other_events(table, *rows, written, logging.row_image)
    return tuple(
        LoggedImages(event.operation, image_of(layout, rows[0], event.before), image_of(layout, rows[1], event.after))
        for event in columns
    )


def marked_columns(table: Table, operation: Operation, written: Collection[int]) -> frozenset[int]:
    """
    Return the ordinals of the columns that count as written by a statement.

    Args:
        table: The table.
        operation: The operation of the statement.
        written: Ordinals of the columns that the statement names (insert) or sets (update).
    """
    if is_ndb(table):
        return stored_marks(table, written) if operation is Operation.UPDATE_ROW else stored_columns(table)
    return inserted_columns(table, written) if operation is Operation.WRITE_ROW else updated_columns(table, written)


def logged_columns(table: Table, operation: Operation, marked: frozenset[int], logging: Logging) -> EventColumns | None:
    """
    Return the columns of the event of a change, under the setting that applies to the table; None if it is not logged.

    A change of the primary key under NDB is a delete and an insert.

    Args:
        table: The table.
        operation: The operation of the statement.
        marked: Ordinals of the columns that count as written (see `marked_columns`).
        logging: The server's settings.
    """
    if is_ndb(table):
        return ndb_event(logging.update_format, table, operation, marked)
    return image_event(logging.row_image, table, operation, marked)


def padding_is_set(table: Table, event: EventColumns) -> tuple[bool, ...]:
    """
    Return, for each column bitmap of an event, whether its unused bits are 1.

    Nothing reads these bits; they show how the server made the bitmap. NDB sets all bits but in tables with virtual
    columns, and in the before image of the minimal types. Other engines set them if the statement reads or writes all
    columns as a whole, which `minimal` and `noblob` images do not show; here all columns are taken for that.
    """
    present = [columns for columns in (event.before, event.after) if columns is not None]
    if not is_ndb(table):
        return tuple(len(columns) == len(table.columns) for columns in present)
    if len(stored_columns(table)) < len(table.columns):
        return (False,) * len(present)
    key = ordered(table.key_ordinals)
    minimal = event.operation is Operation.UPDATE_ROW and event.before == key != () and event.after != key
    return (not minimal, True)[: len(present)]


_Payloads = Mapping[int, bytes | None]


def _encoded(layout: RowLayout, row: Row | None) -> _Payloads | None:
    if row is None:
        return None
    if isinstance(row, RowImage):
        return dict(zip(row.present, row.payloads, strict=True))
    return {ordinal: None if value is None else layout.codecs[ordinal].encode(value) for ordinal, value in row.items()}


def image_of(layout: RowLayout, row: _Payloads | None, present: tuple[int, ...] | None) -> RowImage | None:
    """
    Return the image of a row with some of its columns; None if `present` is.

    Args:
        layout: The layout of the table's rows.
        row: The bytes of the row's columns by ordinal; None is NULL.
        present: Ordinals of the columns of the image, ascending.

    Raises:
        SchemaError: The row lacks one of them.
    """
    if present is None:
        return None
    payloads = [_payload(layout, row or {}, ordinal) for ordinal in present]
    return RowImage(layout, present, tuple(payloads))


def _payload(layout: RowLayout, row: _Payloads, ordinal: int) -> bytes | None:
    payload: bytes | Absent | None = row.get(ordinal, ABSENT)
    if payload is ABSENT:
        message = "the row has no value of this column, which is logged"
        raise SchemaError(message, table=layout.table, column=layout.names[ordinal])
    return payload


def _operation(before: _Payloads | None, after: _Payloads | None) -> Operation:
    if before is None:
        return Operation.WRITE_ROW
    return Operation.DELETE_ROW if after is None else Operation.UPDATE_ROW


def _ndb_events(
    table: Table, before: _Payloads | None, after: _Payloads | None, written: Collection[int], rule: UpdateFormat
) -> tuple[EventColumns, ...]:
    if before is not None and after is not None:
        if not written:
            return ()  # SET c = c: the server does not pass it to NDB
        old, new = ([row.get(ordinal) for ordinal in table.key_ordinals] for row in (before, after))
        if old != new:
            if key_of(table.key_columns, old) != key_of(table.key_columns, new):
                return key_change(rule, table)
            written = stored_columns(table)
    event = ndb_columns(rule, table, _operation(before, after), written)
    return () if event is None else (event,)


def _other_events(
    table: Table, before: _Payloads | None, after: _Payloads | None, written: Collection[int], rule: RowImageRule
) -> tuple[EventColumns, ...]:
    if before == after:
        return ()  # other engines do not log an update that changes nothing
    return (image_columns(rule, table, _operation(before, after), written),)
