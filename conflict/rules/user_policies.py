"""
A user's own conflict functions: rows of cells in a run file, and rules in Python.

A row of cells is like the rows of `conflict.rules.functions.FUNCTIONS`, and runs on every engine:

    [[conflict_function]]
    name = "AT_LEAST"               # in conflict_fn: AT_LEAST(version)
    write = "reject if present"
    update = "at least"
    delete = "equal"

A rule in Python is a function of a `RowState` and an `IncomingOperation` that returns a `Decision`. The user names it
``module:name``, or by an entry point in the group `ndb_conflict.functions`; `conflict_fn` names it by its Python name.
It must be pure, because the applier can go over an epoch more than once. Only the reference engine runs it.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import attrs

from conflict.documents import Must, one_of, read
from conflict.errors import ConfigurationError
from conflict.rules.decision import Cause, Decision, IncomingOperation, RowState, Verdict
from conflict.rules.functions import FUNCTIONS, OF_POLICIES, Cell, FunctionSpec, is_comparing
from ndb_formats.events.rows_event import Operation

ENTRY_POINTS = "ndb_conflict.functions"
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_NAME_WORDS = "letters, digits, _ and $, and no digit first"
_LARGEST = 2**64 - 1
_CELLS = {cell.words: cell for cell in Cell if cell not in OF_POLICIES}
_NOT_FOR = {
    "write": {Cell.EQUAL, Cell.REJECT_IF_MISSING},
    "update": {Cell.REJECT_IF_PRESENT},
    "delete": {Cell.REJECT_IF_PRESENT},
}


def _cell(operation: str) -> Must:
    """Return what the cell of an operation must be."""
    return one_of([words for words, cell in _CELLS.items() if cell not in _NOT_FOR[operation]], _CELLS.__getitem__)


@attrs.frozen
class _Row:
    """A table ``[[conflict_function]]``."""

    name: Annotated[str, Must(f"a name for conflict_fn: {_NAME_WORDS}", _NAME.fullmatch)]
    write: Annotated[Cell, _cell("write")]
    update: Annotated[Cell, _cell("update")]
    delete: Annotated[Cell, _cell("delete")]

    def __attrs_post_init__(self) -> None:
        cells = {self.write, self.update, self.delete}
        if Cell.BY_EPOCH in cells and any(map(is_comparing, cells)):
            message = (
                f"{self.name} compares a column for one operation and epochs for another; use one or the other for all "
                "three"
            )
            raise ConfigurationError(message)

    @property
    def spec(self) -> FunctionSpec:
        """The function."""
        return FunctionSpec(self.name, f"Ndb_conflict_fn_{self.name.lower()}", self.write, self.update, self.delete)


def policies_of_tables(tables: object) -> tuple[FunctionSpec, ...]:
    """
    Return the functions that the tables ``[[conflict_function]]`` of a run file define.

    Raises:
        ConfigurationError: An entry is missing or wrong; the message names the table, the entry and its values.
    """
    return tuple(row.spec for row in read(tuple[_Row, ...], tables, "conflict_function"))


@attrs.frozen
class CheckedRule:
    """
    A user's rule, whose results are checked.

    Attributes:
        name: The function's name, for messages.
        rule: The user's function.
    """

    name: str
    rule: Callable[[RowState, IncomingOperation], object]

    def __call__(self, row: RowState, incoming: IncomingOperation) -> Decision:
        """
        Decide on one operation.

        Raises:
            ConfigurationError: The rule raised an exception, or its result is no possible decision on this operation.
        """
        try:
            decision = self.rule(row, incoming)
        except Exception as error:
            message = f"{self._context(row, incoming)}: it failed with {type(error).__name__}: {error}"
            raise ConfigurationError(message) from error
        fault = _fault(decision, row, incoming)
        if fault is not None:
            message = f"{self._context(row, incoming)}: it returned {decision!r}; {fault}"
            raise ConfigurationError(message)
        assert isinstance(decision, Decision)
        return decision

    def _context(self, row: RowState, incoming: IncomingOperation) -> str:
        operation = incoming.operation.name.split("_")[0].lower()
        return f"function {self.name}, {operation} of a row that {'exists' if row.exists else 'does not exist'}"


def _fault(decision: object, row: RowState, incoming: IncomingOperation) -> str | None:
    """Return why a rule's result is no possible decision; None if it is one."""
    if not isinstance(decision, Decision):
        return "a conflict.rules.decision.Decision is needed"
    if decision.verdict not in (Verdict.APPLIED, Verdict.REJECTED, Verdict.IGNORED):
        return "the verdict must be APPLIED, REJECTED or IGNORED"
    if (decision.verdict is Verdict.REJECTED) is (decision.cause not in set(Cause) - {Cause.NONE}):
        return "a rejected operation needs a cause, and no other has one"
    if decision.verdict is Verdict.APPLIED and not row.exists and incoming.operation is not Operation.WRITE_ROW:
        return "a missing row cannot be changed: reject the operation (Cause.ROW_DOES_NOT_EXIST) or ignore it"
    for value in (decision.incoming, decision.stored):
        if value is not None and not (isinstance(value, int) and 0 <= value <= _LARGEST):
            return "the values compared must be whole numbers from 0 to 2^64 - 1, or None"
    return None


def python_function(name: str, rule: object) -> FunctionSpec:
    """
    Return a user's rule in Python as a conflict function; its results are checked.

    Args:
        name: Its Python name.
        rule: A function of a `RowState` and an `IncomingOperation`.

    Raises:
        ConfigurationError: It is not such a function, or `conflict_fn` cannot contain its name.
    """
    _check_name(name)
    if not callable(rule):
        message = f"{name} is {type(rule).__name__}; a function of a RowState and an IncomingOperation is needed"
        raise ConfigurationError(message)
    try:
        inspect.signature(rule).bind(None, None)
    except (TypeError, ValueError) as error:
        message = f"{name} must take two values, a RowState and an IncomingOperation ({error})"
        raise ConfigurationError(message) from error
    # With these cells no image must carry the column; the rule gets None where one does not.
    cells = (Cell.REJECT_IF_PRESENT, Cell.REJECT_IF_MISSING, Cell.REJECT_IF_MISSING)
    return FunctionSpec(name, f"Ndb_conflict_fn_{name}", *cells, python=CheckedRule(name, rule))


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        message = f"{name!r} is no name for conflict_fn: use {_NAME_WORDS}"
        raise ConfigurationError(message)


def load_functions(references: Iterable[str], known: Sequence[FunctionSpec] = FUNCTIONS) -> tuple[FunctionSpec, ...]:
    """
    Return the known functions, followed by rules in Python.

    Args:
        references: Each ``module:name``, or the name of an entry point. Modules of the working directory are found.
        known: The known functions.

    Raises:
        ConfigurationError: A rule cannot be found or used, or has the name or counter of another function.
    """
    functions = tuple(known)
    for reference in references:
        try:
            functions = add_functions(functions, [python_function(*_named(reference))])
        except ConfigurationError as error:
            message = f"function {reference}: {error}"
            raise ConfigurationError(message) from error
    return functions


def add_functions(known: Sequence[FunctionSpec], added: Iterable[FunctionSpec]) -> tuple[FunctionSpec, ...]:
    """
    Return the known functions, followed by the added ones.

    Raises:
        ConfigurationError: Two have the same name or counter.
    """
    functions = list(known)
    for spec in added:
        for other in functions:
            if spec.name == other.name or spec.counter == other.counter:
                whose = "of the server" if other in FUNCTIONS else "given before"
                message = f"{other.name} (counter {other.counter}) is a function {whose}; give {spec.name} another name"
                raise ConfigurationError(message)
        functions.append(spec)
    return tuple(functions)


def _named(reference: str) -> tuple[str, object]:
    """Return the Python name of a rule, and the rule."""
    module, colon, path = reference.partition(":")
    if not colon:
        points = entry_points(group=ENTRY_POINTS, name=reference)
        if not points:
            known = ", ".join(sorted(each.name for each in entry_points(group=ENTRY_POINTS))) or "none"
            message = f"use module:name or an entry point of the group {ENTRY_POINTS}; there are {known}"
            raise ConfigurationError(message)
        (entry,) = tuple(points)[:1]
        module, path = entry.module, entry.attr
    here = str(Path.cwd())
    if here not in sys.path:
        # As `python -m` does, but last, so that no file here hides a library.
        sys.path.append(here)
    try:
        found: object = importlib.import_module(module)
    except Exception as error:
        message = f"module {module} cannot be imported ({type(error).__name__}: {error})"
        raise ConfigurationError(message) from error
    for name in path.split("."):
        if not hasattr(found, name):
            message = f"{getattr(found, '__name__', found)} has no {name}"
            raise ConfigurationError(message)
        found = getattr(found, name)
    return path.rsplit(".", maxsplit=1)[-1], found
