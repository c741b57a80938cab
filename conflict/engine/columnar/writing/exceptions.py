"""
A bucket's rows of exceptions tables, column by column; they get their numbers later.

`conflict.rules.exceptions_table.ExceptionsTable` computes the same row by row, `exceptions_numbering` the numbers.
Computes docs/functions.md, "Exceptions tables".
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.columnar.image_values import ImageReader, ImageValues
from conflict.engine.columnar.order import operation_orders
from conflict.engine.columnar.setups import steps_before
from conflict.engine.columnar.writing.exceptions_numbering import TrackedRows
from conflict.engine.columnar.writing.outcomes import outcome_columns
from conflict.engine.kernels.arrays import Bool, Int64
from conflict.engine.kernels.provenance import ABSENT_IMAGE, DEFAULT_IMAGE
from conflict.engine.ledger.arrow_rows import arrow_array, row_schema
from conflict.engine.ledger.ledger import LedgerColumn, outcome_places, staged_exceptions
from conflict.rules.decision import Cause, Verdict
from conflict.rules.exceptions_table import (
    READ_ROW,
    UNKNOWN_TRANSACTION_ID,
    ColumnRole,
    ExceptionsTable,
    RoleKind,
    number_value,
)
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.schema.default_values import default_value, implied_value
from ndb_formats.schema.tables import Column

_BEFORE, _AFTER = 0, 1
# The operation without a before image, and the one without an after image.
_WITHOUT = (Operation.WRITE_ROW, Operation.DELETE_ROW)


class _OperationImages:
    """
    The images of some operations of one table that one applier received.

    Attributes:
        result: The bucket.
        applier: Number of the cluster that received them.
        table: Number of the table.
        apply: Number of the epoch apply of each. Shape (operations,).
        operation: `Operation`. Shape (operations,).
        cause: `Cause` of the decision on it. Shape (operations,).
    """

    def __init__(self, result: FoldedBucket, applier: int, table: int, chosen: Int64) -> None:
        """Look up operations by the numbers of the decisions on them, `chosen`. Shape (operations,)."""
        self.result, self.applier, self.table = result, applier, table
        decisions = result.folded.decisions
        self.apply, self.cause = decisions.apply[chosen], decisions.cause[chosen]
        self.operation = decisions.operation[chosen]
        source = decisions.source[chosen].astype(np.int64)
        self._own = source >= 0
        self._row, self._entry = source[self._own], -1 - source[~self._own]
        self._key = decisions.key[chosen][~self._own]

    def __len__(self) -> int:
        return len(self._own)

    @property
    def with_transaction(self) -> tuple[Int64, Int64]:
        """Numbers of the source's own operations that were rejected with their transaction, and their rows there."""
        rejected = self.cause == Cause.TRANS_IN_CONFLICT
        return np.flatnonzero(rejected & self._own), self._row[rejected[self._own]]

    def given(self, which: int) -> Bool:
        """Return which operations have a before or after image. Shape (operations,)."""
        given = np.zeros(len(self._own), np.bool_)
        given[self._own] = self._sets(which) >= 0
        given[~self._own] = self.result.folded.logged.operation[self._entry] != _WITHOUT[which]
        return given

    def column(self, which: int, ordinal: int) -> Int64:
        """Return the image that a column of the before or after image comes from; `ABSENT_IMAGE` if it has none."""
        numbers = np.full(len(self._own), ABSENT_IMAGE, np.int64)
        bucket = self.result.bucket
        first = 0 if self.applier else len(bucket.changes[0])
        carried = self._carrying(ordinal)[self._sets(which)]
        numbers[self._own] = np.where(carried, 2 * (self._row + first) + which, ABSENT_IMAGE)
        if len(self._entry):
            numbers[~self._own] = self._logged(which, ordinal)
        return numbers

    def _sets(self, which: int) -> np.ndarray:
        """Return the column set of the source's before or after images. Shape (own operations,)."""
        _, images = self.result.bucket.column_sets
        side = images[1 - self.applier]
        return (side.before, side.after)[which][self._row]

    def _carrying(self, ordinal: int) -> Bool:
        """Return which column sets have a column; the last one represents no image. Shape (sets + 1,)."""
        sets, _ = self.result.bucket.column_sets
        carrying = np.zeros(len(sets.offsets), np.bool_)
        carrying[np.repeat(np.arange(len(sets.offsets) - 1), np.diff(sets.offsets))[sets.columns == ordinal]] = True
        return carrying

    def _logged(self, which: int, ordinal: int) -> Int64:
        """Return the same for operations that the other applier logged; a refresh's before image is the key alone."""
        logged, final = self.result.folded.logged, self.result.final
        numbers = (final.logged_before, final.logged_after)[which][self._entry, ordinal]
        if which == _BEFORE:
            in_key = ordinal in self.result.bucket.numbers.tables[self.table].key_ordinals
            of_key = self._image_of_key[self._key] if in_key else ABSENT_IMAGE
            numbers = np.where(logged.refresh[self._entry], of_key, numbers)
        return np.where(logged.operation[self._entry] == _WITHOUT[which], ABSENT_IMAGE, numbers)

    @cached_property
    def _image_of_key(self) -> Int64:
        """An image of the first change of each key, the first cluster's if it changed the key. Shape (keys,)."""
        bucket = self.result.bucket
        _, images = bucket.column_sets
        found = np.full(len(bucket.key_table), ABSENT_IMAGE, np.int64)
        for side in (1, 0):
            made = np.flatnonzero(bucket.rows[side].operation <= max(Operation))  # a statement's effect has no image
            keys, places = np.unique(bucket.rows[side].key[made], return_index=True)
            rows = made[places]
            first = side * len(bucket.changes[0])
            found[keys] = 2 * (rows + first) + (images[side].before[rows] < 0)
        return found


# Image numbers that represent a value of no image; the last one is that of a logged event, too.
_NULL, _DEFAULT, _IMPLIED = ABSENT_IMAGE, ABSENT_IMAGE - 1, DEFAULT_IMAGE
# The first columns of every exceptions table; the fourth is the number.
_SERVER, _SOURCE_SERVER, _SOURCE_EPOCH = range(3)
_NOT_NUMBERED = 0


def _exceptions_rows(
    result: FoldedBucket, reader: ImageReader, exceptions: ExceptionsTable, applier: int, table: int, chosen: Int64
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
        operations = _OperationImages(result, applier, table, chosen[batch])
        numbers = [_numbers(operations, exceptions, role) for role in shown.values()]
        return np.stack(numbers) if numbers else np.zeros(0, np.int64)

    parts = [schema.empty_table()]
    for batch, values in reader.in_batches(table, len(chosen), images):
        operations = _OperationImages(result, applier, table, chosen[batch])
        columns = [
            _of_images(operations, exceptions, place, values, field.type)
            if place in shown
            else _plain(operations, exceptions, place, field.type)
            for place, field in enumerate(schema)
        ]
        parts.append(pa.table(columns, schema=schema))
    return pa.concat_tables(parts)


def _plain(operations: _OperationImages, exceptions: ExceptionsTable, place: int, kind: pa.DataType) -> pa.Array:
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


def _fixed(operations: _OperationImages, place: int) -> np.ndarray:
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


def _operation_types(operations: _OperationImages) -> np.ndarray:
    """Return the numbers of ``NDB$OP_TYPE``; reads show only in rejected transactions."""
    kinds, (with_transaction, rows) = operations.operation.copy(), operations.with_transaction
    flags = operations.result.bucket.changes[1 - operations.applier].array("flags")[rows]
    kinds[with_transaction[flags & ConflictFlag.READ != 0]] = READ_ROW
    return kinds


def _transaction_ids(operations: _OperationImages) -> np.ndarray:
    """Return the ids of rejected transactions, `UNKNOWN_TRANSACTION_ID` where none is logged. Shape (operations,)."""
    ids, (with_transaction, rows) = (
        np.full(len(operations), UNKNOWN_TRANSACTION_ID, np.uint64),
        operations.with_transaction,
    )
    logged = operations.result.bucket.changes[1 - operations.applier].column("transaction_id").take(pa.array(rows))
    ids[with_transaction] = pc.fill_null(logged, UNKNOWN_TRANSACTION_ID).to_numpy()
    return ids


def _of_images(
    operations: _OperationImages, exceptions: ExceptionsTable, place: int, values: ImageValues, kind: pa.DataType
) -> pa.Array:
    """Return a column that shows one of the main table."""
    column, role = exceptions.table.columns[place], exceptions.roles[place]
    found = values.column(role.source, _numbers(operations, exceptions, role), kind)
    implied = implied_value(exceptions.source.columns[role.source])
    return found.extended([None, default_value(column), implied]).all_rows()


def _numbers(operations: _OperationImages, exceptions: ExceptionsTable, role: ColumnRole) -> Int64:
    """Return the image that each row has a column from; `_NULL`, `_DEFAULT` or `_IMPLIED` where there is none."""
    before, after = (operations.column(which, role.source) for which in (_BEFORE, _AFTER))
    if role.kind is RoleKind.KEY:
        return np.where(after == ABSENT_IMAGE, before, after)
    deleted = operations.operation == Operation.DELETE_ROW
    new = np.where(operations.given(_AFTER), np.where(after == ABSENT_IMAGE, _DEFAULT, after), _NULL)
    unwritten = _NULL if exceptions.source.columns[role.source].nullable else _DEFAULT
    missing = np.where(deleted | (after != ABSENT_IMAGE), _IMPLIED, unwritten)
    old = np.where(operations.given(_BEFORE), np.where(before == ABSENT_IMAGE, missing, before), _NULL)
    if role.version:
        return old if role.version == "OLD" else new
    return np.where(deleted, old, new)


REJECTED = int(Verdict.REJECTED)


def exceptions_of(result: FoldedBucket, reader: ImageReader, applier: int, chosen: Int64) -> dict[str, pa.Table]:
    """
    Return, by exceptions table, the rows that an applier made, with the columns of `STAGED`.

    Args:
        result: A decided bucket.
        reader: Of its images.
        applier: Number of the applying cluster.
        chosen: Numbers of its decisions that may have rejected an operation. Shape (operations,).

    Raises:
        FormatError: A value cannot be decoded.
    """
    decisions, cluster = result.folded.decisions, result.clusters[applier]
    rejected = chosen[decisions.verdict[chosen] == REJECTED]
    tables = result.bucket.key_table[decisions.key[rejected]]
    found: dict[str, list[pa.Table]] = {}
    for table in range(len(cluster.setups)):
        mine = rejected[tables == table]
        if not len(mine):
            continue
        version = steps_before(cluster.steps.get(table, ()), result.applies)[decisions.apply[mine]]
        for number, setup in enumerate(cluster.over_time(table)):
            these = mine[version == number]
            if setup.exceptions is not None and len(these):
                rows = _exceptions_rows(result, reader, setup.exceptions, applier, table, these)
                staged = staged_exceptions(rows, *_order(result, applier, these))
                found.setdefault(setup.exceptions.table.full_name, []).append(staged)
    return {name: pa.concat_tables(parts) for name, parts in found.items()}


def _order(result: FoldedBucket, applier: int, chosen: Int64) -> tuple[LedgerColumn, ...]:
    """Return the columns of `STAGED`, given the numbers of the decisions that rows represent."""
    decisions, folded = result.folded.decisions, result.folded
    return (
        decisions.apply[chosen].astype(np.int64),
        decisions.cause[chosen] != Cause.TRANS_IN_CONFLICT,
        operation_orders(chosen, decisions, folded.logged, result.applies, result.bucket.rows),
        outcome_places(outcome_columns(result, applier, chosen)),
    )


def tracked_rows(result: FoldedBucket) -> TrackedRows:
    """Return how many exceptions rows pass TRACK made, by cluster and table, and by epoch apply."""
    decisions = result.folded.tracked
    rejected = np.flatnonzero(decisions.verdict == REJECTED)
    rejected = result.told_of(rejected, decisions.apply[rejected])
    appliers, tables = (
        result.applies.applier[decisions.apply[rejected]],
        result.bucket.key_table[decisions.key[rejected]],
    )
    found = {}
    for number, cluster in enumerate(result.clusters):
        for table, setup in enumerate(cluster.setups):
            if setup.exceptions is not None:
                here = rejected[(appliers == number) & (tables == table)]
                if cluster.steps.get(table):
                    version = steps_before(cluster.steps[table], result.applies)[decisions.apply[here]]
                    used = [each.exceptions is not None for each in cluster.over_time(table)]
                    here = here[np.array(used, np.bool_)[version]]
                found[cluster.name, setup.exceptions.table.full_name] = np.unique(
                    decisions.apply[here], return_counts=True
                )
    return found
