"""
What a logged change looks like in another format, or why the log does not tell.

The columns of an event show what is known of the columns that its statement set. `relogged_columns` decides on columns
alone, so that it serves rows and whole arrays of rows; `changed_columns` gives what it needs of the values.

    event                                    the columns that the statement set
    update without some column that is       those of its after image, without an unchanged key
    no blob, or (other engines) with a
    before image that lacks one
    any other update                         hidden: at least its blobs (NDB, noblob) and the columns that changed value
    insert of another engine, all columns    hidden: at least the columns that differ from a declared default
    update logged as a write                 as for an update; its key is that of the row before

Where the format of the log is known (`logged_as`), types 2, 4, 6 and 8 and minimal images hide nothing.

A column that a before image has and an after image lacks did not change, so its value is known in both.

Choices:
    - A write of all stored columns of an NDB table is an insert, unless the log is known to have type 2 or 3. These
      log updates of all columns in the same way, and nothing in the event tells them apart.
    - A read event (conflict flag READ) has set no column.

Source: `ndb_formats.rules.update_format`, `ndb_formats.rules.row_image_rules`; docs/writing-binlogs.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import attrs

from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.images import LoggedImages, Logging, image_of, logged_columns, marked_columns
from ndb_formats.rules.row_image_rules import (
    EventColumns,
    RowImageRule,
    inserted_columns,
    is_left_out_of_noblob,
    stored_columns,
)
from ndb_formats.rules.update_format import UpdateFormat, changing_key_columns, is_ndb
from ndb_formats.schema.default_values import value_of_insert
from ndb_formats.schema.tables import Column, Table
from ndb_formats.types.values import ABSENT


class Basis(StrEnum):
    """What the columns of a relogged event rest on."""

    EXACT = "exact"
    CHANGED_VALUES = "columns that changed value"


class Obstacle(StrEnum):
    """Why the log does not tell what a change looks like in another format."""

    OLD_VALUES = "the log has no old value of these columns"
    NEW_VALUES = "the log has no new value of these columns"
    HIDDEN = "which columns were set is hidden, and there is no old value to compare"
    AMBIGUOUS = "it is an insert, or an update logged as a write"
    UNCHANGED = "no column changed value, and which columns were set is hidden"


@attrs.frozen
class SetColumns:
    """
    What an event shows of the columns that count as written.

    Attributes:
        certain: Ordinals of columns that were written.
        possible: Ordinals of columns that may have been written, `certain` among them.
        compared: Whether `certain` has every column that changed value.
    """

    certain: frozenset[int]
    possible: frozenset[int]
    compared: bool = True

    @classmethod
    def known(cls, columns: Iterable[int]) -> SetColumns:
        """Return columns that are known exactly."""
        return cls(frozenset(columns), frozenset(columns))


@attrs.frozen
class Relogged:
    """
    One event in another format.

    Attributes:
        event: Its columns; None if that format does not log it, or there is an obstacle.
        basis: What its columns rest on.
        obstacle: Why its columns are not known; None if they are.
        lacking: Ordinals of the columns that the obstacle is about.
    """

    event: EventColumns | None
    basis: Basis = Basis.EXACT
    obstacle: Obstacle | None = None
    lacking: tuple[int, ...] = ()


@attrs.frozen
class LoggedAs:
    """
    The format of a log, as far as it is known; None is not known.

    Attributes:
        update_format: Of NDB tables.
        row_image: Of all other tables.
    """

    update_format: UpdateFormat | None = None
    row_image: RowImageRule | None = None


def relogged_columns(
    table: Table,
    source: EventColumns,
    changed: frozenset[int],
    logging: Logging,
    *,
    logged_as: LoggedAs = LoggedAs(),
    reads: bool = False,
) -> Relogged:
    """
    Return the columns of a logged event under other settings.

    Args:
        table: The table; its engine decides which setting applies.
        source: The columns of the event as logged.
        changed: Ordinals of the columns that have another value than before (see `changed_columns`).
        logging: The other settings.
        logged_as: The format of the log.
        reads: Whether it is a read event.
    """
    operation = statement_operation(table, source)
    written = SetColumns.known(()) if reads else set_columns(table, source, changed, logged_as)
    least, most = (logged_columns(table, operation, each, logging) for each in (written.certain, written.possible))
    if operation is Operation.WRITE_ROW and _may_be_update(table, logged_as):
        as_update = logged_columns(table, Operation.UPDATE_ROW, stored_columns(table), logging)
        if as_update != least:
            return Relogged(None, obstacle=Obstacle.AMBIGUOUS)
    basis = Basis.EXACT
    if least != most:
        if not written.compared:
            return Relogged(None, obstacle=Obstacle.HIDDEN)
        if operation is Operation.UPDATE_ROW and not written.certain:
            return Relogged(None, obstacle=Obstacle.UNCHANGED)
        basis = Basis.CHANGED_VALUES
    if least is None:
        return Relogged(None)
    before, after = known_values(table, source, operation)
    if lacking := tuple(sorted(set(least.before or ()) - before)):
        return Relogged(None, basis, Obstacle.OLD_VALUES, lacking)
    if lacking := tuple(sorted(set(least.after or ()) - after)):
        return Relogged(None, basis, Obstacle.NEW_VALUES, lacking)
    return Relogged(least, basis)


def set_columns(
    table: Table, source: EventColumns, changed: frozenset[int], logged_as: LoggedAs = LoggedAs()
) -> SetColumns:
    """
    Return what an event shows of the columns that count as written; arguments as for `relogged_columns`.
    """
    operation = statement_operation(table, source)
    after = frozenset(source.after or ())
    if operation is Operation.DELETE_ROW:
        return SetColumns.known(())
    if not is_ndb(table):
        if logged_as.row_image is RowImageRule.MINIMAL:
            return SetColumns.known(after)
        if logged_as.row_image is RowImageRule.NOBLOB:
            changed |= after & _left_out(table)
        return (_other_insert if source.before is None else _other_update)(table, source, changed)
    if operation is Operation.WRITE_ROW:
        return SetColumns.known(stored_columns(table))
    known = logged_as.update_format
    if known is not None and known.updated_only and table.key_ordinals and not changed & set(table.key_ordinals):
        return SetColumns.known(after - set(table.key_ordinals))
    return _ndb_set(table, source, changed)


def changed_columns(table: Table, layout: RowLayout, logged: LoggedImages) -> frozenset[int]:
    """
    Return the ordinals of the columns whose value differs from the one before.

    Of an insert of another engine than NDB: of those that differ from their declared default, or have none.

    Args:
        table: The table.
        layout: The layout of its rows.
        logged: The event as logged.
    """
    before, after = logged.before, logged.after
    if after is None:
        return frozenset()
    if before is None:
        return frozenset() if is_ndb(table) else _not_defaults(table, layout, after)
    old = dict(zip(before.present, before.payloads, strict=True))
    new = zip(after.present, after.payloads, strict=True)
    # An empty JSON diff changes nothing.
    return frozenset(
        ordinal
        for ordinal, payload in new
        if (payload if ordinal in after.partial else ordinal in old and old[ordinal] != payload)
    )


def relog(layout: RowLayout, logged: LoggedImages, event: EventColumns) -> LoggedImages:
    """
    Return a logged event with the columns that `relogged_columns` gave for it.

    Args:
        layout: The layout of the table's rows.
        logged: The event as logged.
        event: Its columns in the other format.
    """
    old, new = (
        {} if image is None else dict(zip(image.present, image.payloads, strict=True))
        for image in (logged.before, logged.after)
    )
    # What an image lacks the other one has, with the same value: `relogged_columns` checked that.
    before, after = image_of(layout, new | old, event.before), image_of(layout, old | new, event.after)
    if after is not None and logged.after is not None and logged.after.partial:
        after = attrs.evolve(after, partial=tuple(each for each in logged.after.partial if each in after.present))
    return LoggedImages(event.operation, before, after)


def statement_operation(table: Table, source: EventColumns) -> Operation:
    """Return the operation of the statement: an NDB write of some stored columns and not of others is an update."""
    after = frozenset(source.after or ())
    is_update = source.operation is Operation.WRITE_ROW and is_ndb(table) and after and stored_columns(table) - after
    return Operation.UPDATE_ROW if is_update else source.operation


def _may_be_update(table: Table, logged_as: LoggedAs) -> bool:
    """Return whether a write of all columns can be an update."""
    known = logged_as.update_format
    return is_ndb(table) and bool(table.key_ordinals) and known is not None and known.as_write


def known_values(table: Table, source: EventColumns, operation: Operation) -> tuple[frozenset[int], frozenset[int]]:
    """Return the ordinals of the columns whose old, and whose new, value an event has."""
    before, after = frozenset(source.before or ()), frozenset(source.after or ())
    if operation is not Operation.UPDATE_ROW:
        return before, after
    if source.before is None:
        return after & frozenset(table.key_ordinals), after
    return before, before | after


def _ndb_set(table: Table, source: EventColumns, changed: frozenset[int]) -> SetColumns:
    stored, key, after = stored_columns(table), frozenset(table.key_ordinals), frozenset(source.after or ())
    if key & changed:
        return SetColumns.known(stored)  # an equal key with other bytes: the server writes all columns
    blobs = frozenset(ordinal for ordinal in stored if table.columns[ordinal].is_blob)
    if key and stored - blobs - (key - changing_key_columns(table)) - after:
        return SetColumns.known(after - key)
    certain = (after & blobs) | marked_columns(table, Operation.UPDATE_ROW, changed)
    return SetColumns(certain & after, after - key, after - key - blobs <= frozenset(source.before or ()))


def _other_update(table: Table, source: EventColumns, changed: frozenset[int]) -> SetColumns:
    before, after = frozenset(source.before or ()), frozenset(source.after or ())
    blobs, every = _left_out(table), frozenset(range(len(table.columns)))
    if every - blobs - after or every - blobs - before:
        return SetColumns.known(after)  # only minimal images lack such a column
    certain = marked_columns(table, Operation.UPDATE_ROW, changed) & after
    return SetColumns(certain | (after - before), after)


def _other_insert(table: Table, source: EventColumns, changed: frozenset[int]) -> SetColumns:
    after, every = frozenset(source.after or ()), frozenset(range(len(table.columns)))
    if every - _left_out(table) - after:
        return SetColumns.known(after)
    given = changed if after == every else changed | (after & _left_out(table))
    return SetColumns(inserted_columns(table, given) & after, after)


def _left_out(table: Table) -> frozenset[int]:
    return frozenset(ordinal for ordinal, column in enumerate(table.columns) if is_left_out_of_noblob(column))


def _not_defaults(table: Table, layout: RowLayout, after: RowImage) -> frozenset[int]:
    """Return the ordinals of the columns of a new row that differ from their declared default."""
    columns = ((ordinal, table.columns[ordinal], after.raw(ordinal)) for ordinal in after.present)
    return frozenset(
        ordinal
        for ordinal, column, payload in columns
        if not has_default(column) or payload != default_payload(layout, ordinal, column)
    )


def has_default(column: Column) -> bool:
    """Return whether an insert that leaves a column out stores a constant, which can be NULL."""
    return value_of_insert(column) is not ABSENT


def default_payload(layout: RowLayout, ordinal: int, column: Column) -> bytes | None:
    """Return the bytes of that constant; None is NULL."""
    value = value_of_insert(column)
    return None if value is None or value is ABSENT else layout.codecs[ordinal].encode(value)
