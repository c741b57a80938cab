"""
Conflict functions that users write themselves.

One is named as ``module:name``, or by the name of an entry point in the group `ndb_conflict.functions`. What it names
is a plain function from (`RowState`, `IncomingOperation`) to a `Decision`, or a whole `FunctionSpec`. In `conflict_fn`
it is called by its Python name with a column as its argument: ``newest(version)``.

A function sees one operation and the row as it stands, nothing else, and is called again where an epoch is gone over
again: it must be pure. What it returns is checked, so that a slip in it is told and never taken for a result.

cloudpickle carries a spec to other processes (`conflict.jobs.shipping`), and `by_numbers` gives a rule the shape that
those of the kernels have.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from pathlib import Path

import attrs

from conflict.errors import ConfigurationError
from conflict.rules.decision import Cause, Decision, IncomingOperation, RowState, Verdict
from conflict.rules.functions import FUNCTIONS, Argument, ConflictFunction, Decide, FunctionCode, FunctionSpec
from ndb_formats.events.rows_event import Operation

__all__ = ["ENTRY_POINTS", "CheckedDecide", "by_numbers", "load_functions", "user_function"]

ENTRY_POINTS = "ndb_conflict.functions"
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_LARGEST = 2**64 - 1


@attrs.frozen
class CheckedDecide:
    """
    A user's rule, with a look at what it returns.

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


def user_function(name: str, written: object) -> FunctionSpec:
    """
    Return what a user wrote as a conflict function, its rule checked.

    Args:
        name: Its Python name.
        written: A function of row state and operation, or a `FunctionSpec`.

    Raises:
        ConfigurationError: It is neither, or cannot stand in `conflict_fn` under its name.
    """
    if isinstance(written, FunctionSpec):
        _check_name(written.name)
        checked: Decide = CheckedDecide(written.name, written.decide)
        return attrs.evolve(written, decide=checked, code=FunctionCode.USER)
    _check_name(name)
    if not callable(written):
        message = f"{name} is {type(written).__name__}; a function of a RowState and an IncomingOperation is needed"
        raise ConfigurationError(message)
    try:
        inspect.signature(written).bind(None, None)
    except (TypeError, ValueError) as error:
        message = f"{name} must take two values, a RowState and an IncomingOperation ({error})"
        raise ConfigurationError(message) from error
    counter = f"Ndb_conflict_fn_{name}"
    return FunctionSpec(name, counter, Argument.COLUMN, CheckedDecide(name, written), FunctionCode.USER)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        message = f"{name!r} cannot stand in conflict_fn: letters, digits, _ and $ make a name, and no digit starts it"
        raise ConfigurationError(message)


def load_functions(references: Iterable[str]) -> tuple[FunctionSpec, ...]:
    """
    Return all functions that a run knows: the nine of the server, and those that users name.

    Args:
        references: Each ``module:name``, or the name of an entry point. Modules of the working directory are found.

    Raises:
        ConfigurationError: One cannot be found or used, or has the name or counter of another.
    """
    functions = list(FUNCTIONS)
    for reference in references:
        try:
            added = user_function(*_named(reference))
        except ConfigurationError as error:
            message = f"function {reference}: {error}"
            raise ConfigurationError(message) from error
        for other in functions:
            if added.name == other.name or added.counter == other.counter:
                whose = "of the server" if other in FUNCTIONS else "given before"
                message = f"function {reference}: {other.name} (counter {other.counter}) is a function {whose}"
                raise ConfigurationError(f"{message}; give it another name")
        functions.append(added)
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


def by_numbers(function: ConflictFunction) -> Callable[..., tuple[int, int, int, int]]:
    """
    Return a function's rule on numbers, as the kernels have them.

    It takes operation, whether the row exists, whether it was last changed locally, its epoch as it reads back, its
    resolve value, the operation's before and after value (None where the image does not carry the column) and the max
    replicated epoch; it returns verdict, cause, and the two values that were compared, 0 where there are none.
    """

    def decide(
        operation: int,
        exists: bool,
        local: bool,
        epoch: int,
        value: int | None,
        before: int | None,
        after: int | None,
        max_replicated_epoch: int,
    ) -> tuple[int, int, int, int]:
        row = RowState(exists, local, epoch, value) if exists else RowState(exists=False)
        incoming = IncomingOperation(Operation(operation), before, after, max_replicated_epoch)
        made = function.spec.decide(row, incoming)
        return int(made.verdict), int(made.cause), made.incoming or 0, made.stored or 0

    return decide
