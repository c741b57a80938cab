"""
How engines other than NDB log the changes of a table: ``binlog_row_image``.

    event         full   minimal      noblob
    insert, AI    all    given        given, and all that are not blobs
    update, BI    all    PKE          PKE, and all that are not blobs
    update, AI    all    written      written, and all that are not blobs
    delete, BI    all    PKE          PKE, and all that are not blobs

PKE, the primary key equivalent, is the primary key, else the first unique key whose columns are all NOT NULL, else all
columns. The given columns of an insert get their value from the statement, from AUTO_INCREMENT, from a default that is
not a constant, or as generated columns. Virtual columns are logged like stored ones. A statement writes more columns
than it names: ON UPDATE CURRENT_TIMESTAMP columns, and generated columns that depend on a written one; so it is with
NDB's formats, too.
Sources: the manual on ``binlog_row_image``; MySQL's `TABLE::mark_columns_per_binlog_row_image`,
`TABLE::mark_generated_columns` and `COPY_INFO`; recordings of NDB and InnoDB.

Choices, where there is no recording:
    - A unique key over the prefix of a column is no PKE. `Table` does not have prefixes, so this is known only of BLOB
      and TEXT columns, which cannot be in a key without one.
    - An indexed virtual column counts as written only if a column that it depends on is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum

import attrs

from ndb_formats.errors import SettingError, did_you_mean
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.row_keys import serving_key
from ndb_formats.schema.tables import Column, Table


@attrs.frozen
class EventColumns:
    """
    The columns of one rows event.

    Attributes:
        operation: The operation as logged, which can differ from that of the statement.
        before: Ordinals of the columns of the before image, ascending; None for a write.
        after: Ordinals of the columns of the after image, ascending; None for a delete.
    """

    operation: Operation
    before: tuple[int, ...] | None
    after: tuple[int, ...] | None


def ordered(columns: Collection[int]) -> tuple[int, ...]:
    """Return ordinals of columns in ascending order, as in an event."""
    return tuple(sorted(columns))


def stored_columns(table: Table) -> frozenset[int]:
    """Return the ordinals of all columns but virtual generated ones, which are not stored."""
    return frozenset(ordinal for ordinal, column in enumerate(table.columns) if column.generated != "virtual")


def updated_columns(table: Table, written: Collection[int]) -> frozenset[int]:
    """
    Return the ordinals of the columns that an update writes, virtual ones included.

    Args:
        table: The table.
        written: Ordinals of the columns that the statement sets.
    """
    updated = set(written)
    if updated:
        updated |= {ordinal for ordinal, column in enumerate(table.columns) if column.on_update}
    names = {table.columns[ordinal].name for ordinal in updated}
    for ordinal, column in enumerate(table.columns):  # a generated column depends on no later generated column
        if names.intersection(column.depends_on):
            updated.add(ordinal)
            names.add(column.name)
    return frozenset(updated)


# JSON, GEOMETRY and VECTOR are no blobs to the server and stay in noblob images (recorded in `blobs`).
_BLOBS = frozenset({"tinyblob", "blob", "mediumblob", "longblob", "tinytext", "text", "mediumtext", "longtext"})


class RowImageRule(Enum):
    """The values of ``binlog_row_image``, spelled as in the manual."""

    FULL = "full"
    MINIMAL = "minimal"
    NOBLOB = "noblob"


def parse_row_image(value: str) -> RowImageRule:
    """
    Return the rule of a name, in any letter case.

    Raises:
        SettingError: There is no such rule; the message lists the rules.
    """
    try:
        return RowImageRule(value.strip().lower())
    except ValueError:
        names = ", ".join(rule.value for rule in RowImageRule)
        meant = did_you_mean(value, (rule.value for rule in RowImageRule))
        message = f"binlog_row_image {value!r} is not known{meant}; there are {names}"
        raise SettingError(message) from None


def primary_key_equivalent(table: Table) -> frozenset[int]:
    """Return the ordinals of the columns that identify a row."""
    place = serving_key(table)
    key = table.unique_keys[place] if not table.primary_key and place is not None else table.primary_key
    return frozenset(table.ordinal(name) for name in key) or frozenset(range(len(table.columns)))


def inserted_columns(table: Table, given: Collection[int]) -> frozenset[int]:
    """
    Return the ordinals of the columns that an insert gives a value to.

    Args:
        table: The table.
        given: Ordinals of the columns that the statement names; all if it names none, and all under REPLACE and ON
            DUPLICATE KEY UPDATE.
    """
    by_server = (
        ordinal
        for ordinal, column in enumerate(table.columns)
        if column.auto_increment or column.computed_default or column.generated
    )
    return frozenset(given).union(by_server)


def image_columns(
    rule: RowImageRule, table: Table, operation: Operation, written: Collection[int] = ()
) -> EventColumns:
    """
    Return the columns of the event of a change.

    Args:
        rule: The value of ``binlog_row_image``.
        table: The table, of any engine but NDB.
        operation: The operation of the statement; WRITE_ROW is an insert.
        written: Ordinals of the columns that the statement names (insert, see `inserted_columns`) or sets (update).
    """
    marked = inserted_columns(table, written) if operation is Operation.WRITE_ROW else updated_columns(table, written)
    return image_event(rule, table, operation, marked)


def image_event(rule: RowImageRule, table: Table, operation: Operation, marked: frozenset[int]) -> EventColumns:
    """
    Return the columns of the event of a change.

    Args:
        rule: The value of ``binlog_row_image``.
        table: The table, of any engine but NDB.
        operation: The operation of the statement.
        marked: Ordinals of all columns that get a value: those of `inserted_columns` or `updated_columns`.
    """
    logged = _LOGGED[rule]
    before = None if operation is Operation.WRITE_ROW else logged(table, primary_key_equivalent(table))
    after = None if operation is Operation.DELETE_ROW else logged(table, marked)
    return EventColumns(operation, before, after)


def is_left_out_of_noblob(column: Column) -> bool:
    """Return whether noblob images leave a column out unless it is needed."""
    return column.type in _BLOBS


# The columns of an image by rule, if `needed` are those that it has under MINIMAL.
_LOGGED: dict[RowImageRule, Callable[[Table, frozenset[int]], tuple[int, ...]]] = {
    RowImageRule.FULL: lambda table, needed: tuple(range(len(table.columns))),
    RowImageRule.MINIMAL: lambda table, needed: ordered(needed),
    RowImageRule.NOBLOB: lambda table, needed: ordered(
        needed.union(ordinal for ordinal, column in enumerate(table.columns) if not is_left_out_of_noblob(column))
    ),
}
