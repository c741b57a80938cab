"""
Steps of a schedule as text, and back: how schedules stand in files, in tests and on pages.

    the clusters hold 1 row
    A updates row 1
    B deletes row 1, inserts row 2
    B applies, in the same epoch
    A is set back

An update is of the first data column, or of the one that it names: ``A updates w of row 1``. A step that goes on in the
open epoch of its cluster says ``in the same epoch``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from conflict.errors import ConfigurationError
from conflict.whatif.diverging.scope import NAMES, Scope
from conflict.whatif.diverging.steps import Apply, Commit, Load, RowWish, Schedule, SetBack, Step
from ndb_formats.events.rows_event import Operation

_VERBS = {Operation.WRITE_ROW: "inserts", Operation.UPDATE_ROW: "updates", Operation.DELETE_ROW: "deletes"}
_JOINS = ", in the same epoch"
_LOAD = re.compile(r"the clusters hold (\d+) rows?")
_STEP = re.compile(rf"({'|'.join(NAMES)}) (.+?)({_JOINS})?")
_WISH = re.compile(rf"({'|'.join(_VERBS.values())}) (?:(\w+) of )?row (\d+)")
_APPLIES, _SET_BACK = "applies", "is set back"


def step_text(step: Step, scope: Scope) -> str:
    """Return a step as text."""
    if isinstance(step, Load):
        return f"the clusters hold {step.rows} row{'' if step.rows == 1 else 's'}"
    cluster = NAMES[step.side]
    if isinstance(step, SetBack):
        return f"{cluster} {_SET_BACK}"
    what = _APPLIES if isinstance(step, Apply) else ", ".join(_wish_text(wish, scope) for wish in step.wishes)
    return f"{cluster} {what}{_JOINS if step.joins else ''}"


def _wish_text(wish: RowWish, scope: Scope) -> str:
    column = f"{_columns(scope)[wish.column]} of " if wish.column > 0 else ""
    return f"{_VERBS[wish.operation]} {column}row {wish.row + 1}"


def schedule_of(texts: Iterable[str], scope: Scope) -> Schedule:
    """
    Return a schedule from the texts of its steps.

    Raises:
        ConfigurationError: One of them is no step, or names a row or a column that the scope does not have.
    """
    return tuple(_step(text, scope) for text in texts)


def _step(text: str, scope: Scope) -> Step:
    load = _LOAD.fullmatch(text)
    if load is not None:
        return Load(int(load[1]))
    found = _STEP.fullmatch(text)
    if found is None:
        message = f"{text!r} is no step of a schedule; write it as in 'A updates row 1' or 'B applies'"
        raise ConfigurationError(message)
    side, what, joins = NAMES.index(found[1]), found[2], found[3] is not None
    if what == _APPLIES:
        return Apply(side, joins)
    if what == _SET_BACK:
        return SetBack(side)
    return Commit(side, tuple(_wish(part, text, scope) for part in what.split(", ")), joins)


def _wish(text: str, step: str, scope: Scope) -> RowWish:
    found, names = _WISH.fullmatch(text), _columns(scope)
    if found is None or not 1 <= int(found[3]) <= scope.rows or (found[2] or names[0]) not in names:
        message = f"{step!r}: {text!r} is no change of a row up to {scope.rows} and of a column {' or '.join(names)}"
        raise ConfigurationError(message)
    operation = next(each for each, verb in _VERBS.items() if verb == found[1])
    column = names.index(found[2] or names[0]) if operation is Operation.UPDATE_ROW else -1
    return RowWish(int(found[3]) - 1, operation, column)


def _columns(scope: Scope) -> list[str]:
    """Return the names of the data columns."""
    return [column.name for column in scope.table.columns[scope.first_data_column :]]
