"""
The rows of an exceptions table, column by column. Computes docs/functions.md, "Exceptions tables".

`conflict.rules.exceptions_table.ExceptionsTable` computes the same row by row.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.image_values import ImageReader, ImageValues
from conflict.columnar.kernels.arrays import Int64
from conflict.columnar.kernels.provenance import ABSENT_IMAGE, DEFAULT_IMAGE
from conflict.columnar.output.operation_images import AFTER, BEFORE, OperationImages
from conflict.results.arrow_rows import arrow_array, row_schema
from conflict.rules.exceptions_definition import ColumnRole, RoleKind
from conflict.rules.exceptions_table import READ_ROW, UNKNOWN_TRANSACTION_ID, ExceptionsTable, number_value
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.default_values import default_value, implied_value
from ndb_formats.schema.tables import Column

__all__ = ["exceptions_rows"]

# Image numbers that stand for a value of no image; the last one is that of a logged event, too.
_NULL, _DEFAULT, _IMPLIED = ABSENT_IMAGE, ABSENT_IMAGE - 1, DEFAULT_IMAGE
# The first columns of every exceptions table; the fourth is the number.
_SERVER, _SOURCE_SERVER, _SOURCE_EPOCH = range(3)
_NOT_NUMBERED = 0


def exceptions_rows(
    result: BucketResult, reader: ImageReader, exceptions: ExceptionsTable, applier: int, table: int, chosen: Int64
) -> pa.Table:
    """
    Return the rows of an exceptions table, without their numbers.

    Args:
        result: The bucket.
        reader: Of its images.
        exceptions: The exceptions table.
        applier: Number of the cluster that rejected the operations.
        table: Number of their table.
        chosen: Numbers of the decisions that rejected them. Shape (rows,).

    Raises:
        FormatError: A value cannot be decoded.
    """
    schema = row_schema(exceptions.table)
    shown = {place: role for place, role in enumerate(exceptions.roles) if role.source >= 0}

    def images(batch: slice) -> Int64:
        operations = OperationImages(result, applier, table, chosen[batch])
        numbers = [_numbers(operations, exceptions, role) for role in shown.values()]
        return np.stack(numbers) if numbers else np.zeros(0, np.int64)

    parts = [schema.empty_table()]
    for batch, values in reader.in_batches(table, len(chosen), images):
        operations = OperationImages(result, applier, table, chosen[batch])
        columns = [
            _of_images(operations, exceptions, place, values, field.type)
            if place in shown
            else _plain(operations, exceptions, place, field.type)
            for place, field in enumerate(schema)
        ]
        parts.append(pa.table(columns, schema=schema))
    return pa.concat_tables(parts)


def _plain(operations: OperationImages, exceptions: ExceptionsTable, place: int, kind: pa.DataType) -> pa.Array:
    """Return a column that shows no column of the main table. `place` is its position."""
    column, role = exceptions.table.columns[place], exceptions.roles[place]
    match role.kind:
        case RoleKind.FIXED:
            return pa.array(_fixed(operations, place)).cast(kind)
        case RoleKind.OPERATION:
            return _by_number(column, _operation_types(operations), kind)
        case RoleKind.CAUSE:
            return _by_number(column, operations.cause, kind)
        case RoleKind.TRANSACTION:
            ids = _transaction_ids(operations)
            return pa.array(ids, mask=(ids == np.uint64(UNKNOWN_TRANSACTION_ID)) & column.nullable).cast(kind)
    return arrow_array([default_value(column)], kind).take(pa.array(np.zeros(len(operations), np.int8)))


def _fixed(operations: OperationImages, place: int) -> np.ndarray:
    """Return one of the first four columns; rows have no number yet."""
    result, applier = operations.result, operations.applier
    if place == _SOURCE_EPOCH:
        return result.applies.foreign_epoch[operations.apply]
    servers = {_SERVER: result.clusters[applier].server_id, _SOURCE_SERVER: result.clusters[1 - applier].server_id}
    return np.full(len(operations), servers.get(place, _NOT_NUMBERED), np.uint64)


def _by_number(column: Column, numbers: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Return numbers as a column shows them."""
    shown = [number_value(column, number) for number in range(int(numbers.max(initial=0)) + 1)]
    return arrow_array(shown, kind).take(pa.array(numbers))


def _operation_types(operations: OperationImages) -> np.ndarray:
    """Return the numbers of ``NDB$OP_TYPE``; reads show only in rejected transactions."""
    kinds, (with_transaction, rows) = operations.operation.copy(), operations.with_transaction
    flags = operations.result.bucket.changes[1 - operations.applier].array("flags")[rows]
    kinds[with_transaction[flags & ConflictFlag.READ != 0]] = READ_ROW
    return kinds


def _transaction_ids(operations: OperationImages) -> np.ndarray:
    """Return the ids of rejected transactions, `UNKNOWN_TRANSACTION_ID` where none is logged. Shape (operations,)."""
    ids, (with_transaction, rows) = (
        np.full(len(operations), UNKNOWN_TRANSACTION_ID, np.uint64),
        operations.with_transaction,
    )
    logged = operations.result.bucket.changes[1 - operations.applier].column("transaction_id").take(pa.array(rows))
    ids[with_transaction] = pc.fill_null(logged, UNKNOWN_TRANSACTION_ID).to_numpy()
    return ids


def _of_images(
    operations: OperationImages, exceptions: ExceptionsTable, place: int, values: ImageValues, kind: pa.DataType
) -> pa.Array:
    """Return a column that shows one of the main table."""
    column, role = exceptions.table.columns[place], exceptions.roles[place]
    found = values.column(role.source, _numbers(operations, exceptions, role), kind)
    implied = implied_value(exceptions.source.columns[role.source])
    return found.extended([None, default_value(column), implied]).all_rows()


def _numbers(operations: OperationImages, exceptions: ExceptionsTable, role: ColumnRole) -> Int64:
    """Return the image that each row has a column from; `_NULL`, `_DEFAULT` or `_IMPLIED` where there is none."""
    before, after = (operations.column(which, role.source) for which in (BEFORE, AFTER))
    if role.kind is RoleKind.KEY:
        return np.where(after == ABSENT_IMAGE, before, after)
    deleted = operations.operation == Operation.DELETE_ROW
    new = np.where(operations.given(AFTER), np.where(after == ABSENT_IMAGE, _DEFAULT, after), _NULL)
    unwritten = _NULL if exceptions.source.columns[role.source].nullable else _DEFAULT
    missing = np.where(deleted | (after != ABSENT_IMAGE), _IMPLIED, unwritten)
    old = np.where(operations.given(BEFORE), np.where(before == ABSENT_IMAGE, missing, before), _NULL)
    if role.version:
        return old if role.version == "OLD" else new
    return np.where(deleted, old, new)
