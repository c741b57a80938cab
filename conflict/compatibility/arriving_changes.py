"""
How each kind of change arrives under an update format, and how the applier handles it.

`FunctionSpec.needs` says which image a function reads, and `ndb_formats.rules.update_format.ndb_columns` which
columns an event carries.
Source: MySQL manual, "NDB Cluster Replication Conflict Resolution"; an update that arrives as a write is
applied as an insert, as recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial

import attrs

from conflict.rules.functions import ConflictFunction
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.event_columns import EventColumns
from ndb_formats.rules.update_format import UpdateFormat, ndb_columns
from ndb_formats.schema.tables import Table

__all__ = ["ArrivingChange", "Change", "Handling", "arriving_changes"]


class Change(Enum):
    """The kinds of change that functions and formats distinguish."""

    INSERT = "insert"
    UPDATE = "update"
    UPDATE_SETTING = "update that sets {column}"
    UPDATE_LEAVING = "update that does not set {column}"
    DELETE = "delete"

    @property
    def operation(self) -> Operation:
        """The operation of the statement; the event may have another one."""
        return {Change.INSERT: Operation.WRITE_ROW, Change.DELETE: Operation.DELETE_ROW}.get(self, Operation.UPDATE_ROW)


class Handling(Enum):
    """How the applier handles a change."""

    JUDGED = "is judged"
    AS_INSERT = "arrives as a write, and is rejected as ROW_ALREADY_EXISTS where the row exists"
    STOPS = "lacks what the function compares, and stops the applier with error 1296"
    NOT_LOGGED = "is not logged, and never arrives"


@attrs.frozen
class ArrivingChange:
    """
    One kind of change as it arrives on the applier.

    Attributes:
        change: The kind of statement.
        event: The event that arrives; None if nothing is logged.
        needed: The image in which the function reads its column, ``before`` or ``after``; None if it reads none.
        handling: How the applier handles it.
        column: The function's column, if it has one.
    """

    change: Change
    event: EventColumns | None
    needed: str | None
    handling: Handling
    column: str | None = None

    @property
    def name(self) -> str:
        """The change in words."""
        return self.change.value.format(column=self.column)

    @property
    def is_update(self) -> bool:
        """Whether the statement changes a row and keeps its key."""
        return self.change.operation is Operation.UPDATE_ROW


def arriving_changes(
    function: ConflictFunction, table: Table, update_format: UpdateFormat
) -> tuple[ArrivingChange, ...]:
    """
    Return every kind of change that the table allows, as it arrives.

    Args:
        function: The function; its column must be one of the table.
        table: The table.
        update_format: How the cluster that makes the changes logs them.
    """
    arriving = partial(_arriving, function, table, update_format)
    place = None if function.column is None else table.ordinal(function.column)
    return (arriving(Change.INSERT), *_updates(arriving, table, place), arriving(Change.DELETE))


def _updates(arriving: Callable[..., ArrivingChange], table: Table, place: int | None) -> list[ArrivingChange]:
    """
    Return one update of each kind.

    An update of a key column is a delete and an insert, so it is left out. Updates of one column are enough: if an
    image of several columns lacks the function's column, so does the image of one of them alone.
    """
    key = frozenset(table.key_ordinals)
    settable = [each for each, column in enumerate(table.columns) if each not in key and column.generated is None]
    if place is None:
        return [arriving(Change.UPDATE, [each]) for each in settable[:1]]
    others = [arriving(Change.UPDATE_LEAVING, [each]) for each in settable if each != place]
    lacking = [each for each in others if each.handling is Handling.STOPS]
    carrying = [each for each in others if each.handling is not Handling.STOPS]
    setting = []
    if place in settable:
        setting = [arriving(Change.UPDATE_SETTING, [place])]
    elif lacking and carrying:  # a generated column: it is set with the columns that it is computed from
        setting = [attrs.evolve(carrying[0], change=Change.UPDATE_SETTING)]
    return setting + (lacking or carrying)[:1]


def _arriving(
    function: ConflictFunction, table: Table, update_format: UpdateFormat, change: Change, written: Sequence[int] = ()
) -> ArrivingChange:
    event = ndb_columns(update_format, table, change.operation, written)
    if event is None:
        return ArrivingChange(change, None, None, Handling.NOT_LOGGED, function.column)
    image = function.spec.needs.get(event.operation)
    needed = None if image is None or function.column is None else image.value
    if needed is not None and table.ordinal(function.column or "") not in (getattr(event, needed) or ()):
        handling = Handling.STOPS
    elif change.operation is not Operation.WRITE_ROW and event.operation is Operation.WRITE_ROW:
        handling = Handling.JUDGED if _judges_writes(function) else Handling.AS_INSERT
    else:
        handling = Handling.JUDGED
    return ArrivingChange(change, event, needed, handling, function.column)


def _judges_writes(function: ConflictFunction) -> bool:
    """Whether a write of an existing row can win: with the server's _INS functions, and if a rule in Python says so."""
    return function.spec.conditional_write or function.spec.python is not None
