"""
How engines other than NDB log the changes of a table: ``binlog_row_image``.

    event         full   minimal                       noblob
    insert, AI    all    given a value by anybody      as minimal, and all that are no blobs
    update, BI    all    PKE                           PKE, and all that are no blobs
    update, AI    all    written                       written, and all that are no blobs
    delete, BI    all    PKE                           PKE, and all that are no blobs

PKE, the primary key equivalent, is the primary key, else the first unique key whose columns are all
NOT NULL, else all columns. An insert's columns are given a value by the statement, by AUTO_INCREMENT, by a
default that is no constant, or as generated columns. Virtual columns are logged like stored ones.
Sources: the manual on ``binlog_row_image``; MySQL's `TABLE::mark_columns_per_binlog_row_image`; recordings.

Choices, where nothing is recorded:
    - A unique key over the beginning of a column is no PKE. Which keys those are the definition here tells only
      of BLOB and TEXT columns, which cannot be in a key otherwise.
    - An indexed virtual column counts as written only if what it is made of is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum

from ndb_formats.errors import SettingError
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.event_columns import EventColumns, ordered, updated_columns
from ndb_formats.schema.tables import Column, Table

__all__ = ["RowImageRule", "image_columns", "inserted_columns", "parse_row_image", "primary_key_equivalent"]

# JSON, GEOMETRY and VECTOR are types of their own to the server and stay in noblob images (recorded in `blobs`).
_BLOBS = frozenset({"tinyblob", "blob", "mediumblob", "longblob", "tinytext", "text", "mediumtext", "longtext"})


class RowImageRule(Enum):
    """The values of ``binlog_row_image``, spelled as in the manual."""

    FULL = "full"
    MINIMAL = "minimal"
    NOBLOB = "noblob"


def parse_row_image(value: str) -> RowImageRule:
    """
    Return the rule of that name, in any case.

    Raises:
        SettingError: There is no such rule; the message lists those there are.
    """
    try:
        return RowImageRule(value.strip().lower())
    except ValueError:
        names = ", ".join(rule.value for rule in RowImageRule)
        message = f"binlog_row_image {value!r} is not known; there are {names}"
        raise SettingError(message) from None


def primary_key_equivalent(table: Table) -> frozenset[int]:
    """Return the positions of the columns that tell which row is meant."""
    for key in (table.primary_key, *table.unique_keys):
        columns = [table.find(name) for name in key]
        if key and (key == table.primary_key or all(_whole_and_not_null(column) for column in columns)):
            return frozenset(table.ordinal(name) for name in key)
    return frozenset(range(len(table.columns)))


def _whole_and_not_null(column: Column | None) -> bool:
    """Whether a part of a unique key always tells a row; None is a part that is an expression."""
    return column is not None and not column.nullable and column.type not in _BLOBS


def inserted_columns(table: Table, given: Collection[int]) -> frozenset[int]:
    """
    Return the positions of the columns that an insert gives a value to.

    Args:
        table: The table.
        given: Positions of the columns that the statement names; all if it names none, and all under REPLACE
            and ON DUPLICATE KEY UPDATE.
    """
    by_server = (
        place
        for place, column in enumerate(table.columns)
        if column.auto_increment or column.computed_default or column.generated
    )
    return frozenset(given).union(by_server)


def image_columns(
    rule: RowImageRule, table: Table, operation: Operation, written: Collection[int] = ()
) -> EventColumns:
    """
    Return which columns the event of a change carries.

    Args:
        rule: The value of ``binlog_row_image``.
        table: The table, of any engine but NDB.
        operation: What the statement did to the row: WRITE_ROW inserts it.
        written: Positions of the columns that the statement names (insert, see `inserted_columns`) or sets (update).
    """
    logged = _LOGGED[rule]
    before, after = None, None
    if operation is not Operation.WRITE_ROW:
        before = logged(table, primary_key_equivalent(table))
    if operation is Operation.WRITE_ROW:
        after = logged(table, inserted_columns(table, written))
    elif operation is Operation.UPDATE_ROW:
        after = logged(table, updated_columns(table, written))
    return EventColumns(operation, before, after)


# What an image holds, by rule, if `needed` are the columns that it cannot do without.
_LOGGED: dict[RowImageRule, Callable[[Table, frozenset[int]], tuple[int, ...]]] = {
    RowImageRule.FULL: lambda table, needed: tuple(range(len(table.columns))),
    RowImageRule.MINIMAL: lambda table, needed: ordered(needed),
    RowImageRule.NOBLOB: lambda table, needed: ordered(
        needed.union(place for place, column in enumerate(table.columns) if column.type not in _BLOBS)
    ),
}
