"""
Conflict functions of one's own, by name: where they are found, and how they join those of the server.

A user names a resolver ``module:name``, by an entry point in the group `ndb_conflict.functions`, or by its name alone
one that comes with the program (`conflict.resolvers`); `conflict_fn` names it by its own name. Run files and model
files have tables:

    [[conflict_function]]
    name = "AT_LEAST"               # a row of cells: see `conflict.rules.rows_of_cells`
    ...
    [[conflict_function]]
    rule = "my_rules:sum_of_deltas" # or: a resolver in Python; modules of the working directory are found
    [[conflict_function]]
    name = "mine"
    command = "python my.py"        # or: a program that answers JSON lines
    needs = { update = ["changed before"] }
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import attrs

from conflict.documents import Must, Name, read
from conflict.errors import ConfigurationError
from conflict.resolvers.resolver import Resolver, resolver, spec_of_rule
from conflict.rules.checked_rule import NAME, NAME_WORDS
from conflict.rules.functions import FUNCTIONS, FunctionSpec
from conflict.rules.rows_of_cells import row_of_cells

ENTRY_POINTS = "ndb_conflict.functions"
# The resolvers that come with the program, by name (docs/resolvers.md).
SHIPPED = {
    "last_writer": "conflict.resolvers.examples.last_writer:last_writer",
    "first_writer": "conflict.resolvers.examples.first_writer:first_writer",
    "sum_of_deltas": "conflict.resolvers.examples.sum_of_deltas:sum_of_deltas",
    "certification": "conflict.resolvers.examples.certification:certification",
    "pgactive": "conflict.resolvers.examples.postgres:pgactive",
    "spock": "conflict.resolvers.examples.postgres:spock",
}
# A resolver as users give it: by name, as a value, or as a plain function.
Given = str | Resolver | Callable[[Any, Any], object]


@attrs.frozen
class _Declared:
    """What a table ``[[conflict_function]]`` says of a program."""

    name: Annotated[str, Must(f"a name for conflict_fn: {NAME_WORDS}", NAME.fullmatch)]
    command: Name
    column: bool = False
    needs: dict[str, str | list[str]] = attrs.field(factory=dict)
    reads: list[str] | None = None
    transactional: bool = False
    refreshes: bool = False

    @property
    def spec(self) -> FunctionSpec:
        """The function."""
        declared = {each.name: getattr(self, each.name) for each in attrs.fields(_Declared)[2:]}
        return Resolver.command(self.command, name=self.name, **declared).spec


@attrs.frozen
class _InPython:
    """A table ``[[conflict_function]]`` that names a resolver in Python."""

    rule: Name


def policies_of_tables(tables: object) -> tuple[FunctionSpec, ...]:
    """
    Return the functions that the tables ``[[conflict_function]]`` of a run file or a model file define.

    Raises:
        ConfigurationError: An entry is missing or wrong; the message names the table, the entry and its values.
    """
    given: list[dict[str, Any]] = read(list[dict[str, Any]], tables, "conflict_function")
    return tuple(_of_table(each, f"conflict_function#{number}") for number, each in enumerate(given, 1))


def _of_table(entries: Mapping[str, Any], place: str) -> FunctionSpec:
    if "command" in entries:
        declared: _Declared = read(_Declared, entries, place)
        return declared.spec
    if "rule" in entries:
        named: _InPython = read(_InPython, entries, place)
        return load_functions([named.rule], ())[-1]
    return row_of_cells(entries, place)


def python_function(name: str, rule: object) -> FunctionSpec:
    """
    Return a rule, or a resolver, as a conflict function; its results are checked.

    Args:
        name: The Python name of a rule.
        rule: A resolver, or a function of a row and an operation, which takes a column.

    Raises:
        ConfigurationError: It is not such a function, or `conflict_fn` cannot contain its name.
    """
    return rule.spec if isinstance(rule, Resolver) else spec_of_rule(name, rule)


def load_functions(references: Iterable[Given], known: Sequence[FunctionSpec] = FUNCTIONS) -> tuple[FunctionSpec, ...]:
    """
    Return the known functions, followed by those of a user.

    Args:
        references: Each a resolver; or ``module:name``, the name of one that comes with the program, or of an entry
            point. Modules of the working directory are found.
        known: The known functions.

    Raises:
        ConfigurationError: A rule cannot be found or used, or has the name or counter of another function.
    """
    functions = tuple(known)
    for reference in references:
        try:
            functions = add_functions(functions, [_spec_of(reference)])
        except ConfigurationError as error:
            message = f"function {reference if isinstance(reference, str) else ''}: {error}".replace(" :", ":")
            raise ConfigurationError(message) from error
    return functions


def reference_of(given: Given) -> str:
    """Return the name by which `load_functions` finds a resolver again, as far as one finds it."""
    if isinstance(given, str):
        return given
    rule = given.rule if isinstance(given, Resolver) else given
    return f"{getattr(rule, '__module__', '')}:{getattr(rule, '__qualname__', getattr(given, 'name', ''))}"


def _spec_of(given: Given) -> FunctionSpec:
    if isinstance(given, str):
        return python_function(*_named(given))
    return given.spec if isinstance(given, Resolver) else resolver(given).spec


def asked_function(given: Given, known: Sequence[FunctionSpec] = FUNCTIONS) -> tuple[str, tuple[FunctionSpec, ...]]:
    """
    Return a function that a user asks for as `conflict_fn` has it, and the functions that are known with it.

    Args:
        given: A `conflict_fn`; or what `load_functions` takes, a name also with an argument: ``module:name(column)``.
        known: The known functions.

    Raises:
        ConfigurationError: As of `load_functions`.
    """
    if not isinstance(given, str):
        functions = load_functions([given], known)
        return f"{functions[-1].name}()", functions
    name, parenthesis, rest = given.partition("(")
    if name.strip() in {spec.name for spec in known} or not (":" in name or is_reference(name.strip())):
        return given, tuple(known)
    functions = load_functions([name.strip()], known)
    spec = functions[-1]
    if spec.own is not None and not spec.own.takes_column and rest.strip(" )"):
        message = f"{given}: {spec.name} takes no column; give {name.strip()}()"
        raise ConfigurationError(message)
    return f"{spec.name}{parenthesis or '('}{rest or ')'}", functions


def is_reference(name: str) -> bool:
    """Whether a name without a module is that of a resolver that comes with the program, or of an entry point."""
    return name in SHIPPED or bool(entry_points(group=ENTRY_POINTS, name=name))


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
    module, colon, path = SHIPPED.get(reference, reference).partition(":")
    if not colon:
        points = entry_points(group=ENTRY_POINTS, name=reference)
        if not points:
            known = ", ".join(sorted(each.name for each in entry_points(group=ENTRY_POINTS))) or "none"
            message = (
                f"use module:name, {', '.join(SHIPPED)}, or an entry point of the group {ENTRY_POINTS}; of these there "
                f"are {known}"
            )
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
