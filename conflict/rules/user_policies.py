"""
Conflict functions of one's own: a row of cells in a run file, or a rule in Python.

A row of cells is like any other row of `conflict.rules.functions.FUNCTIONS` and runs at full speed on every engine:

    [[conflict_function]]
    name = "AT_LEAST"               # in conflict_fn: AT_LEAST(version)
    write = "reject if present"
    update = "at least"
    delete = "equal"

A rule in Python is a plain function from (`RowState`, `IncomingOperation`) to a `Decision`, named as ``module:name`` or
by an entry point in the group `ndb_conflict.functions`; in `conflict_fn` it goes by its Python name. It sees one
operation and the row as it stands, and is called again where an epoch is gone over again: it must be pure. The
reference engine alone runs it.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import attrs

from conflict.errors import ConfigurationError
from conflict.rules.decision import Cause, Decision, IncomingOperation, RowState, Verdict
from conflict.rules.functions import COMPARING, FUNCTIONS, Cell, FunctionSpec
from ndb_formats.events.rows_event import Operation

__all__ = ["ENTRY_POINTS", "add_functions", "load_functions", "policies_of_tables", "python_function"]

ENTRY_POINTS = "ndb_conflict.functions"
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_LARGEST = 2**64 - 1
_OPERATIONS = ("write", "update", "delete")
_CELLS = {cell.words: cell for cell in Cell}
_NOT_FOR = {
    "write": {Cell.EQUAL, Cell.REJECT_IF_MISSING},
    "update": {Cell.REJECT_IF_PRESENT},
    "delete": {Cell.REJECT_IF_PRESENT},
}


def policies_of_tables(tables: Any) -> tuple[FunctionSpec, ...]:
    """
    Return the functions that tables ``[[conflict_function]]`` define.

    Raises:
        ConfigurationError: An entry is missing or wrong; the message names the table, the entry and what it can be.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        message = "conflict_function must be tables [[conflict_function]]"
        raise ConfigurationError(message)
    found = []
    for number, table in enumerate(tables, 1):
        try:
            found.append(_policy(table))
        except ConfigurationError as error:
            message = f"row {number} of [[conflict_function]]: {error}"
            raise ConfigurationError(message) from error
    return tuple(found)


def _policy(table: Mapping[str, Any]) -> FunctionSpec:
    unknown = sorted(set(table) - {"name", *_OPERATIONS})
    if unknown:
        message = f"unknown entries {', '.join(unknown)}; known are name, {', '.join(_OPERATIONS)}"
        raise ConfigurationError(message)
    name = table.get("name", "")
    _check_name(name)
    write, update, delete = (_cell(operation, table.get(operation)) for operation in _OPERATIONS)
    if Cell.BY_EPOCH in (write, update, delete) and COMPARING & {write, update, delete}:
        message = f"{name} compares a column for one operation and epochs for another; a function does either"
        raise ConfigurationError(message)
    return FunctionSpec(name, f"Ndb_conflict_fn_{name.lower()}", write, update, delete)


def _cell(operation: str, words: Any) -> Cell:
    possible = [each for each, cell in _CELLS.items() if cell not in _NOT_FOR[operation]]
    if words not in possible:
        message = f"{operation} is {words!r}; it can be {', '.join(possible)}"
        raise ConfigurationError(message)
    return _CELLS[words]


@attrs.frozen
class CheckedRule:
    """
    A user's rule; what it returns is checked.

    Attributes:
        name: The function's name, for messages.
        rule: What the user wrote.
    """

    name: str
    rule: Callable[[RowState, IncomingOperation], object]

    def __call__(self, row: RowState, incoming: IncomingOperation) -> Decision:
        """
        Decide on one operation.

        Raises:
            ConfigurationError: The rule failed, or returned what is no decision on this operation.
        """
        try:
            decision = self.rule(row, incoming)
        except Exception as error:
            message = f"{self._place(row, incoming)}: it failed with {type(error).__name__}: {error}"
            raise ConfigurationError(message) from error
        fault = _fault(decision, row, incoming)
        if fault is not None:
            message = f"{self._place(row, incoming)}: it returned {decision!r}; {fault}"
            raise ConfigurationError(message)
        assert isinstance(decision, Decision)
        return decision

    def _place(self, row: RowState, incoming: IncomingOperation) -> str:
        operation = incoming.operation.name.split("_")[0].lower()
        return f"function {self.name}, {operation} of a row that {'exists' if row.exists else 'does not exist'}"


def _fault(decision: object, row: RowState, incoming: IncomingOperation) -> str | None:
    """Say what is wrong with what a rule returned."""
    if not isinstance(decision, Decision):
        return "a conflict.rules.decision.Decision is needed"
    if decision.verdict not in (Verdict.APPLIED, Verdict.REJECTED, Verdict.IGNORED):
        return "the verdict must be APPLIED, REJECTED or IGNORED"
    if (decision.verdict is Verdict.REJECTED) is (decision.cause not in set(Cause) - {Cause.NONE}):
        return "a cause belongs to what is rejected, and to that alone"
    if decision.verdict is Verdict.APPLIED and not row.exists and incoming.operation is not Operation.WRITE_ROW:
        return "what is not there cannot be changed: reject it (conflict.rules.functions.presence_anomaly) or ignore it"
    for value in (decision.incoming, decision.stored):
        if value is not None and not (isinstance(value, int) and 0 <= value <= _LARGEST):
            return "the values compared must be whole numbers from 0 to 2^64 - 1, or None"
    return None


def python_function(name: str, rule: object) -> FunctionSpec:
    """
    Return a rule that a user wrote in Python as a conflict function; what it returns is checked.

    Args:
        name: Its Python name.
        rule: A function of row state and operation.

    Raises:
        ConfigurationError: It is no such function, or cannot stand in `conflict_fn` under its name.
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
    # The cells say which images the rule needs: none. It gets None where an image does not carry the column.
    cells = (Cell.REJECT_IF_PRESENT, Cell.REJECT_IF_MISSING, Cell.REJECT_IF_MISSING)
    return FunctionSpec(name, f"Ndb_conflict_fn_{name}", *cells, python=CheckedRule(name, rule))


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        message = f"{name!r} cannot stand in conflict_fn: letters, digits, _ and $ make a name, and no digit starts it"
        raise ConfigurationError(message)


def load_functions(references: Iterable[str], known: Sequence[FunctionSpec] = FUNCTIONS) -> tuple[FunctionSpec, ...]:
    """
    Return the known functions and rules in Python.

    Args:
        references: Each ``module:name``, or the name of an entry point. Modules of the working directory are found.
        known: The functions that there are already.

    Raises:
        ConfigurationError: One cannot be found or used, or has the name or counter of another.
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
    Return the known functions and more.

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
    """Return the Python name, and what it names."""
    module, colon, path = reference.partition(":")
    if not colon:
        found = entry_points(group=ENTRY_POINTS, name=reference)
        if not found:
            known = ", ".join(sorted(each.name for each in entry_points(group=ENTRY_POINTS))) or "none"
            message = f"give it as module:name; entry points of the group {ENTRY_POINTS} are {known}"
            raise ConfigurationError(message)
        (entry,) = tuple(found)[:1]
        module, path = entry.module, entry.attr
    here = str(Path.cwd())
    if here not in sys.path:
        # As `python -m` does; after all else, so that no file here hides a library.
        sys.path.append(here)
    try:
        place: object = importlib.import_module(module)
    except Exception as error:
        message = f"module {module} cannot be imported ({type(error).__name__}: {error})"
        raise ConfigurationError(message) from error
    for name in path.split("."):
        if not hasattr(place, name):
            message = f"there is no {name} in {getattr(place, '__name__', place)}"
            raise ConfigurationError(message)
        place = getattr(place, name)
    return path.rsplit(".", maxsplit=1)[-1], place
