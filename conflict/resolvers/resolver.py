"""
A resolver: a conflict function of one's own as one value.

It is a row of cells, a Python function, or a program that answers JSON lines, with what it needs of the images and
what it reads. It stands wherever a function of the server does:

    @conflict.resolver(needs={"update": "changed before"})
    def sum_of_deltas(row, change): ...

    conflict.Resolver.row("NEWEST", write="at least", update="at least", delete="at least")
    conflict.Resolver.command("python my.py", name="mine")
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, overload

import attrs

from conflict.errors import ConfigurationError
from conflict.resolvers.programs import RuleCommand
from conflict.rules.checked_rule import CheckedRule, check_name
from conflict.rules.decision import Decision, IncomingOperation, RowState
from conflict.rules.functions import Cell, FunctionSpec
from conflict.rules.own_rule import EVERYTHING, Image, OwnRule, Read
from conflict.rules.rows_of_cells import row_of_cells
from ndb_formats.errors import did_you_mean
from ndb_formats.events.rows_event import Operation

Rule = Callable[[Any, Any], object]  # of a `FoundRow` and an `IncomingChange`, or what these are made of
# What an image must carry, per kind of operation, in words.
Needs = Mapping[str, str | Sequence[str]]
_OPERATIONS = {"write": Operation.WRITE_ROW, "update": Operation.UPDATE_ROW, "delete": Operation.DELETE_ROW}
_NEEDS = {"column before": Image.BEFORE, "column after": Image.AFTER, "changed before": None}


@attrs.frozen
class Resolver:
    """
    A conflict function of one's own.

    Attributes:
        spec: It as a row of the table of functions, which every engine takes.
        rule: The Python function or the program; None for a row of cells.
    """

    spec: FunctionSpec
    rule: Rule | None = None

    @property
    def name(self) -> str:
        """Its name, as `conflict_fn` has it."""
        return self.spec.name

    def __call__(self, row: RowState, change: IncomingOperation) -> Decision:
        """Decide on one change of another cluster."""
        return self.spec.decide(row, change)

    @classmethod
    def row(cls, name: str, *, write: str, update: str, delete: str) -> Resolver:
        """
        Return a resolver of three cells (docs/functions.md, "The table"), which runs compiled on every engine.

        Raises:
            ConfigurationError: A cell is not known, or not for its kind of operation.
        """
        return cls(row_of_cells({"name": name, "write": write, "update": update, "delete": delete}))

    @classmethod
    def command(cls, command: str | Sequence[str], *, name: str, **declared: object) -> Resolver:
        """
        Return a resolver that asks a program: a line of JSON for each change, and a line of JSON for each answer.

        Args:
            command: The program and its arguments.
            name: Name of the resolver.
            declared: As of `resolver`.
        """
        rule = RuleCommand.of(command)
        return resolver(rule, name=name, **declared)  # type: ignore[call-overload, no-any-return]


@overload
def resolver(rule: Rule, /) -> Resolver: ...
@overload
def resolver(
    rule: None = None,
    /,
    *,
    name: str | None = None,
    column: bool = False,
    needs: Needs | None = None,
    reads: Collection[str] | None = None,
    transactional: bool = False,
    refreshes: bool = False,
) -> Callable[[Rule], Resolver]: ...
def resolver(
    rule: Rule | None = None,
    /,
    *,
    name: str | None = None,
    column: bool = False,
    needs: Needs | None = None,
    reads: Collection[str] | None = None,
    transactional: bool = False,
    refreshes: bool = False,
) -> Resolver | Callable[[Rule], Resolver]:
    """
    Make a resolver of a function of a row and an incoming change; also as a decorator.

    Args:
        rule: The function. It is pure: an applier can go over an epoch more than once.
        name: Its name; that of the function by default.
        column: Whether it takes a resolve column: NAME(column).
        needs: What the images must carry, per kind of operation (write, update, delete): ``column before``,
            ``column after``, or ``changed before``, the old values of all columns that the operation changes. Formats
            that lack it are refused; where an image lacks it all the same, the applier stops.
        reads: What it reads besides the kind of operation, the resolve column and whether the row exists: ``values``,
            ``times``, ``sites``, ``epochs``, ``unseen``. The rest is withheld. Everything by default; the less it
            reads, the fewer states a search has.
        transactional: Whether a conflict rejects the whole transaction, and those that depend on it; their rows are
            refreshed, as by the functions of the server.
        refreshes: Whether rows with rejected changes are refreshed: sent back as they stand here. The other cluster
            judges what comes back.

    Raises:
        ConfigurationError: It cannot be called with two values, or something declared is not known.
    """

    def declare(given: Rule) -> Resolver:
        named = name or str(getattr(given, "__name__", ""))
        takes_column = column or any("column" in each for each in _words(needs))
        spec = spec_of_rule(named, given, takes_column=takes_column)
        assert spec.own is not None
        own = attrs.evolve(
            spec.own,
            needs=_images(needs),
            needs_changed=frozenset(_OPERATIONS[kind] for kind, each in (needs or {}).items() if _CHANGED in each),
            refreshes=refreshes or transactional,
            reads=EVERYTHING if reads is None else _reads(reads),
        )
        return Resolver(attrs.evolve(spec, transactional=transactional, own=own), given)

    return declare if rule is None else declare(rule)


_CHANGED = "changed before"


def spec_of_rule(name: str, rule: object, *, takes_column: bool = True) -> FunctionSpec:
    """
    Return a rule as a conflict function that declares nothing; its results are checked.

    Args:
        name: Its name.
        rule: A function of a row and an operation.
        takes_column: Whether its argument is a resolve column.

    Raises:
        ConfigurationError: It is not such a function, or `conflict_fn` cannot contain its name.
    """
    check_name(name)
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
    own = OwnRule(CheckedRule(name, rule), takes_column=takes_column)
    return FunctionSpec(name, f"Ndb_conflict_fn_{name}", *cells, own=own)


def _words(needs: Needs | None) -> list[str]:
    """
    Return all that is needed, in words.

    Raises:
        ConfigurationError: A kind of operation or a need is not known.
    """
    found = list[str]()
    for kind, given in (needs or {}).items():
        if kind not in _OPERATIONS:
            message = f"needs of {kind!r}{did_you_mean(kind, _OPERATIONS)}; the operations are {', '.join(_OPERATIONS)}"
            raise ConfigurationError(message)
        for each in [given] if isinstance(given, str) else given:
            if each not in _NEEDS:
                known = ", ".join(_NEEDS)
                message = f"{kind} needs {each!r}{did_you_mean(str(each), _NEEDS)}; it can need {known}"
                raise ConfigurationError(message)
            found.append(each)
    return found


def _images(needs: Needs | None) -> dict[Operation, Image]:
    """Return the image that must carry the resolve column, per operation."""
    found = dict[Operation, Image]()
    for kind, given in (needs or {}).items():
        images = [_NEEDS[each] for each in ([given] if isinstance(given, str) else given)]
        chosen = [each for each in images if each is not None]
        if len(chosen) > 1:
            message = f"{kind} needs the column both before and after; give one of them"
            raise ConfigurationError(message)
        if chosen:
            found[_OPERATIONS[kind]] = chosen[0]
    return found


def _reads(words: Collection[str]) -> frozenset[Read]:
    known = {each.value: each for each in Read}
    for word in words:
        if word not in known:
            message = f"reads {word!r}{did_you_mean(str(word), known)}; it can read {', '.join(known)}"
            raise ConfigurationError(message)
    return frozenset(known[word] for word in words)
