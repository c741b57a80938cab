"""
Filters that Spark hands to the data source: conditions on the facts of changes, applied before values are decoded on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from ndb_formats.columnar.batches import RowBatch

__all__ = ["RowFilters"]

Bools = npt.NDArray[np.bool_]
_COMPARE: dict[type[Filter], Callable[[Any, Any], Any]] = {
    EqualTo: np.equal,
    GreaterThan: np.greater,
    GreaterThanOrEqual: np.greater_equal,
    LessThan: np.less,
    LessThanOrEqual: np.less_equal,
}
_NUMBERS = frozenset({"epoch", "timestamp", "server_id", "position", "row", "transaction_id"})
_NAMES = frozenset({"database", "table", "operation"})
_MAX = 2**64 - 1


@attrs.frozen
class RowFilters:
    """
    Conditions that all hold of a row.

    Attributes:
        conditions: Column, comparison, value. Values are numbers for numbers and texts for names.
    """

    conditions: tuple[tuple[str, str, Any], ...] = ()

    @classmethod
    def of(cls, filters: Iterable[Filter]) -> tuple[RowFilters, list[Filter]]:
        """Return the filters that can be applied exactly, and those that are left to Spark."""
        taken, rest = [], []
        for each in filters:
            condition = _condition(each)
            if condition is None:
                rest.append(each)
            else:
                taken.append(condition)
        return cls(tuple(taken)), rest

    def kept(self, batch: RowBatch) -> Bools:
        """Return which rows all conditions hold of. Shape (rows,)."""
        kept = np.ones(len(batch), np.bool_)
        compare = {kind.__name__: function for kind, function in _COMPARE.items()}
        for column, name, value in self.conditions:
            if column in _NAMES:
                fact = {"database": batch.database, "table": batch.table, "operation": batch.operation.name}[column]
                kept &= fact in value
                continue
            values = batch.records.column(column)
            known = values.fill_null(0).to_numpy(zero_copy_only=False)
            found = np.isin(known, np.array(value, known.dtype)) if name == "In" else compare[name](known, value)
            kept &= found & values.is_valid().to_numpy(zero_copy_only=False)
        return kept


def _condition(each: Filter) -> tuple[str, str, Any] | None:
    """Return a filter as a condition; None if it cannot be applied exactly."""
    attribute: tuple[str, ...] = tuple(getattr(each, "attribute", ()))
    if len(attribute) != 1 or not isinstance(each, (*_COMPARE, In)):
        return None
    column, given = str(attribute[0]), getattr(each, "value", None)
    if column in _NAMES and isinstance(each, EqualTo | In):
        texts = tuple(given) if isinstance(each, In) else (given,)
        return column, "In", texts
    if column not in _NUMBERS:
        return None
    numbers = [_number(column, value) for value in (given if isinstance(each, In) else (given,))]
    if any(number is None for number in numbers):
        return None
    return column, type(each).__name__, numbers if isinstance(each, In) else numbers[0]


def _number(column: str, value: object) -> int | None:
    """Return a value as the number that the binlog has; None if it has no such number."""
    if column == "timestamp":
        if not isinstance(value, datetime) or value.tzinfo is None or value.microsecond:
            return None
        number = int(value.timestamp())
    elif isinstance(value, int | Decimal) and value == int(value):
        number = int(value)
    else:
        return None
    return number if 0 <= number <= (_MAX if column in ("epoch", "transaction_id", "position") else 2**31 - 1) else None
