"""
The images of the operations that an applier received, column by column.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.kernels.arrays import Bool, Int64
from conflict.columnar.kernels.provenance import ABSENT_IMAGE
from conflict.rules.decision import Cause
from ndb_formats.events.rows_event import Operation

__all__ = ["AFTER", "BEFORE", "OperationImages"]

BEFORE, AFTER = 0, 1
# The operation without a before image, and the one without an after image.
_WITHOUT = (Operation.WRITE_ROW, Operation.DELETE_ROW)


class OperationImages:
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

    def __init__(self, result: BucketResult, applier: int, table: int, chosen: Int64) -> None:
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
        """Return which column sets have a column; the last one stands for no image. Shape (sets + 1,)."""
        sets, _ = self.result.bucket.column_sets
        carrying = np.zeros(len(sets.offsets), np.bool_)
        carrying[np.repeat(np.arange(len(sets.offsets) - 1), np.diff(sets.offsets))[sets.columns == ordinal]] = True
        return carrying

    def _logged(self, which: int, ordinal: int) -> Int64:
        """Return the same for operations that the other applier logged; a refresh's before image is the key alone."""
        logged, final = self.result.folded.logged, self.result.final
        numbers = (final.logged_before, final.logged_after)[which][self._entry, ordinal]
        if which == BEFORE:
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
