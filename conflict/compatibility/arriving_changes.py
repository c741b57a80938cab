"""
What arrives of each kind of change under an update format, and whether a conflict function can judge it.

Both come from what is written down once: `FunctionSpec.needs` says what a function compares, and
`ndb_formats.rules.update_format.ndb_columns` which columns an event carries.
Source: MySQL manual, "NDB Cluster Replication Conflict Resolution"; an update that arrives as a write is
applied as an insert, as recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import attrs

from conflict.rules.functions import Argument, ConflictFunction, Image
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.event_columns import EventColumns
from ndb_formats.rules.update_format import UpdateFormat, ndb_columns
from ndb_formats.schema.tables import Table

__all__ = ["Change", "Fate", "JudgedChange", "carries", "judged_changes", "marks", "settable_columns"]


class Change(Enum):
    """A kind of change, as far as functions and formats tell changes apart."""

    INSERT = "insert"
    UPDATE = "update"
    UPDATE_SETTING = "update that sets {column}"
    UPDATE_LEAVING = "update that does not set {column}"
    DELETE = "delete"

    @property
    def is_update(self) -> bool:
        """Whether it changes a row that stays."""
        return self not in (Change.INSERT, Change.DELETE)


class Fate(Enum):
    """What becomes of a change on the applier."""

    JUDGED = "is judged"
    AS_INSERT = "arrives as a write, and is rejected as ROW_ALREADY_EXISTS where the row exists"
    STOPS = "lacks what the function compares, and stops the applier with error 1296"
    NOT_LOGGED = "is not logged, and never arrives"


@attrs.frozen
class JudgedChange:
    """
    One kind of change.

    Attributes:
        change: What the statement does.
        event: What arrives of it; None if nothing does.
        needed: The image in which the function reads its column; None if it needs none.
        fate: What becomes of it.
        column: The function's column, if it has one.
    """

    change: Change
    event: EventColumns | None
    needed: Image | None
    fate: Fate
    column: str | None = None

    @property
    def name(self) -> str:
        """The change in words."""
        return self.change.value.format(column=self.column)


def settable_columns(table: Table) -> list[int]:
    """Return the columns that an update can set; another key makes another row, and is a delete and an insert."""
    key = frozenset(table.key_ordinals)
    return [place for place, column in enumerate(table.columns) if place not in key and column.generated is None]


def carries(event: EventColumns, place: int, image: Image) -> bool:
    """Whether an event has a column in an image."""
    columns = event.before if image is Image.BEFORE else event.after
    return columns is not None and place in columns


def judged_changes(function: ConflictFunction, table: Table, update_format: UpdateFormat) -> tuple[JudgedChange, ...]:
    """
    Return every kind of change that the table allows, and whether the function can judge it.

    Args:
        function: The function; the table must have its column.
        table: The table.
        update_format: How the cluster that makes the changes logs it.
    """
    place = None if function.column is None else table.ordinal(function.column)
    found = [_judge(function, table, update_format, place, Change.INSERT, ())]
    for change, written in _updates(function, table, update_format, place):
        found.append(_judge(function, table, update_format, place, change, written))
    found.append(_judge(function, table, update_format, place, Change.DELETE, ()))
    return tuple(found)


def _updates(
    function: ConflictFunction, table: Table, update_format: UpdateFormat, place: int | None
) -> list[tuple[Change, Sequence[int]]]:
    settable = settable_columns(table)
    if place is None:
        return [(Change.UPDATE, settable[:1])] if settable else []
    others = [[other] for other in settable if other != place]
    # One column is enough to look at: an image that some set of columns lacks the function's column in is also
    # made by one of them alone. One that lacks it stands for all.
    lacking = [
        written
        for written in others
        if _judge(function, table, update_format, place, Change.UPDATE_LEAVING, written).fate is Fate.STOPS
    ]
    carrying = [written for written in others if written not in lacking]
    updates: list[tuple[Change, Sequence[int]]] = []
    if place in settable:
        updates.append((Change.UPDATE_SETTING, (place,)))
    elif lacking and carrying:  # a generated column, which is set with those that it is made of
        updates.append((Change.UPDATE_SETTING, carrying[0]))
    if others:
        updates.append((Change.UPDATE_LEAVING, (lacking or carrying)[0]))
    return updates


def _judges_writes(function: ConflictFunction) -> bool:
    """Whether a write of a row that exists can win: by the server's _INS functions, and if a user's rule says so."""
    return function.spec.conditional_write or function.spec.python is not None


_STATEMENTS = {Change.INSERT: Operation.WRITE_ROW, Change.DELETE: Operation.DELETE_ROW}


def _judge(
    function: ConflictFunction,
    table: Table,
    update_format: UpdateFormat,
    place: int | None,
    change: Change,
    written: Sequence[int],
) -> JudgedChange:
    event = ndb_columns(update_format, table, _STATEMENTS.get(change, Operation.UPDATE_ROW), written)
    if event is None:
        return JudgedChange(change, None, None, Fate.NOT_LOGGED, function.column)
    needed = function.spec.needs.get(event.operation) if function.spec.argument is Argument.COLUMN else None
    if needed is not None and place is not None and not carries(event, place, needed):
        fate = Fate.STOPS
    elif change.is_update and event.operation is Operation.WRITE_ROW and not _judges_writes(function):
        fate = Fate.AS_INSERT
    else:
        fate = Fate.JUDGED
    return JudgedChange(change, event, needed, fate, function.column)


def marks(changes: tuple[JudgedChange, ...]) -> list[str]:
    """Return the marks of what cannot be judged: ``W!``, ``U!`` or ``U?``, ``D!``, ``I!``."""
    fates = {change.change: change.fate for change in changes}
    updates = [fate for change, fate in fates.items() if change.is_update]
    found = []
    if Fate.AS_INSERT in updates:
        found.append("W!")
    if updates and all(fate is Fate.STOPS for fate in updates):
        found.append("U!")
    elif Fate.STOPS in updates:
        found.append("U?")
    if fates.get(Change.DELETE) is Fate.STOPS:
        found.append("D!")
    if fates.get(Change.INSERT) is Fate.STOPS:
        found.append("I!")
    return found
