"""
A policy and a binlog type that a History is tried with, as users write them.

A policy is functions of NDB, or the rule of another replication product: a row of the table of functions that is in no
`conflict_fn`, as no server runs it. Computes docs/compare.md, "Rules of other products".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import attrs

from conflict.errors import ConfigurationError
from conflict.resolvers.user_policies import asked_function
from conflict.rules.functions import (
    MAX_GCI_BITS,
    Argument,
    Cell,
    ConflictFunction,
    FunctionSpec,
    typed_function,
    what_was_meant,
)
from conflict.rules.replication_table import Role
from ndb_formats.errors import SettingError, did_you_mean
from ndb_formats.rules.update_format import parse_binlog_type

OVERWRITE = "OVERWRITE"
# The value compared is the moment of the commit.
_LAST_COMMIT = FunctionSpec("LAST_COMMIT", "last_commit", Cell.AT_LEAST, Cell.AT_LEAST, Cell.AT_LEAST)
_FIRST_COMMIT = FunctionSpec(
    "FIRST_COMMIT", "first_commit", Cell.LESS_IF_UNSEEN, Cell.LESS_IF_UNSEEN, Cell.LESS_IF_UNSEEN
)
# The policies that compare moments of commits.
BY_COMMIT_TIME = {spec.name: spec for spec in (_LAST_COMMIT, _FIRST_COMMIT)}
LOWEST = FunctionSpec("LOWEST", "lowest", Cell.LESS, Cell.LESS, Cell.EQUAL)
# What each does, in a line.
MEANINGS = {
    OVERWRITE: "every change is applied, as to a table without a conflict function",
    _FIRST_COMMIT.name: "of two changes that have not seen each other, the one that committed first stays",
    _LAST_COMMIT.name: "the change that committed last stays",
    LOWEST.name: "the change with the lowest value of the column stays",
}


_COMMA = re.compile(r",(?![^(]*\))")  # not one inside parentheses


@attrs.frozen
class Policy:
    """
    What decides when changes meet.

    Attributes:
        name: As users write it.
        function: The conflict function; None where every change is applied.
        primary: The cluster that judges, for functions by epoch; None for functions that both clusters have.
        configured: Whether each table has what the run configures, whatever the rest says.
        by_table: The function of each table, where these compare different columns; empty where all have `function`.
    """

    name: str
    function: ConflictFunction | None = None
    primary: str | None = None
    configured: bool = False
    by_table: tuple[tuple[str, ConflictFunction], ...] = ()

    @property
    def specs(self) -> frozenset[FunctionSpec]:
        """The functions without their arguments."""
        every = [*(function for _, function in self.by_table), self.function]
        return frozenset(function.spec for function in every if function is not None)

    def function_of(self, table: str) -> ConflictFunction | None:
        """Return the function of a table, by its full name."""
        return dict(self.by_table).get(table) if self.by_table else self.function

    @property
    def by_commit_time(self) -> bool:
        """Whether the moments of commits are compared."""
        return self.function is not None and self.function.spec in BY_COMMIT_TIME.values()

    @property
    def in_python(self) -> bool:
        """Whether a rule in Python decides, which only the reference engine calls."""
        return any(spec.own is not None for spec in self.specs)

    def column_of(self, table: str) -> str | None:
        """Return the column that it compares of a table."""
        function = self.function_of(table)
        return None if function is None else function.column


@attrs.frozen
class Pair:
    """
    A policy, and the binlog type in which users' changes are logged; None for as they are logged.
    """

    policy: Policy
    binlog_type: int | None = None

    @property
    def as_it_is(self) -> bool:
        """Whether it is what the run has."""
        return self.policy.configured and self.binlog_type is None


def parse_policies(
    text: str,
    functions: Sequence[FunctionSpec],
    clusters: Sequence[str],
    primary: str,
    columns: Mapping[str, str | None],
) -> tuple[Policy, ...]:
    """
    Return the policies that a text lists, with commas between them.

    Each is a `conflict_fn`, ``OVERWRITE``, ``_LAST_COMMIT``, ``_FIRST_COMMIT`` or ``LOWEST(column)``; ``@CLUSTER``
    after a function by epoch names the primary. A function that compares a column can be given by table, as in
    ``acct=NDB$OLD(ts),bin=NDB$OLD(ver)``, which is one policy; or without a column, for the own one of each table.

    Args:
        text: The text.
        functions: The known conflict functions.
        clusters: Names of the clusters.
        primary: The primary where none is named.
        columns: The tables that policies are tried on, and the column that each has for functions; None for none.

    Raises:
        ConfigurationError: One of them is not known, or its cluster, its table or its column is not.
    """
    names = [each.strip() for each in _COMMA.split(text) if each.strip()]
    if not names:
        message = "--functions names none; give some, as NDB$EPOCH(),NDB$MAX(version),LAST_COMMIT"
        raise ConfigurationError(message)
    specs = {spec.name: spec for spec in (*functions, LOWEST) if spec.argument is Argument.COLUMN}
    found: list[Policy] = []
    by_table: dict[str, ConflictFunction] = {}
    for name in names:
        table, equals, function = (each.strip() for each in name.partition("="))
        full = _full_name(name, table, columns) if equals else ""
        if by_table and (not equals or full in by_table):
            found.append(_by_table(by_table, columns))
            by_table = {}
        if equals:
            by_table[full] = _of_table(name, function, specs)
        elif name in specs:
            found.append(_by_own_column(specs[name], columns))
        else:
            found.append(_policy(name, functions, clusters, primary))
    return tuple(dict.fromkeys([*found, *([_by_table(by_table, columns)] if by_table else [])]))


def _full_name(text: str, table: str, columns: Mapping[str, str | None]) -> str:
    """Return the full name of a table, which may be given without its database if that is unique."""
    names = [name for name in columns if table in (name, name.rpartition(".")[2])]
    if len(names) == 1:
        return names[0]
    fault = (
        f"{' and '.join(names)} have this name"
        if names
        else f"functions are tried on {', '.join(columns)}{did_you_mean(table, columns)}"
    )
    message = f"{text}: which table {table or '(none)'} is meant is not known; {fault}"
    raise ConfigurationError(message)


def _of_table(text: str, function: str, specs: Mapping[str, FunctionSpec]) -> ConflictFunction:
    if not any(function.startswith(name) for name in specs):
        meant = what_was_meant(function, tuple(specs.values()))
        message = f"{text}: by table there are functions that compare a column, {', '.join(specs)}{meant}"
        raise ConfigurationError(message)
    try:
        return typed_function(function, tuple(specs.values()))
    except ConfigurationError as error:
        message = f"{text}: {error}"
        raise ConfigurationError(message) from error


def _by_own_column(spec: FunctionSpec, columns: Mapping[str, str | None]) -> Policy:
    """Return a function that compares the own column of each table."""
    lacking = [table for table, column in columns.items() if column is None]
    if lacking:
        example = f"{lacking[0]}={spec.name}(column)"
        message = f"{spec.name}: which column of {', '.join(lacking)} it compares is not known; name it, as {example}"
        raise ConfigurationError(message)
    return _by_table({table: ConflictFunction(spec, column) for table, column in columns.items()}, columns)


def _by_table(functions: Mapping[str, ConflictFunction], tables: Iterable[str]) -> Policy:
    """Return the policy of functions by table; if all tables have the same one, it is one without tables."""
    if functions.keys() == set(tables) and len(set(functions.values())) == 1:
        function = next(iter(functions.values()))
        return Policy(named(function), function)
    short = Counter(table.rpartition(".")[2] for table in tables)
    names = {table: table if short[each] > 1 else each for table in functions if (each := table.rpartition(".")[2])}
    name = ",".join(f"{names[table]}={function}" for table, function in functions.items())
    return Policy(name, by_table=tuple(functions.items()))


def _policy(text: str, functions: Sequence[FunctionSpec], clusters: Sequence[str], primary: str) -> Policy:
    name, at, cluster = (each.strip() for each in text.rpartition("@")) if "@" in text else (text, "", "")
    if at and cluster not in clusters:
        meant = did_you_mean(cluster, clusters)
        message = f"{text}: there is no cluster {cluster}{meant}; there are {' and '.join(clusters)}"
        raise ConfigurationError(message)
    timed = BY_COMMIT_TIME.get(name.removesuffix("()"))
    if at and (timed is not None or name in {OVERWRITE, OVERWRITE + "()"}):
        message = f"{text}: {name} is the same on both clusters; leave out @{cluster}"
        raise ConfigurationError(message)
    if name in {OVERWRITE, OVERWRITE + "()"}:
        return Policy(OVERWRITE)
    if timed is not None:
        return Policy(timed.name, ConflictFunction(timed, gci_bits=MAX_GCI_BITS))
    try:
        name, functions = asked_function(name, functions)
        function = typed_function(name, (*functions, LOWEST))
    except ConfigurationError as error:
        meant, others = did_you_mean(name, (OVERWRITE, *BY_COMMIT_TIME)), ", ".join((OVERWRITE, *BY_COMMIT_TIME))
        message = f"{text}: {error}; besides functions there are {others} and LOWEST(column){meant}"
        raise ConfigurationError(message) from error
    if _is_on_both(function.spec):
        if at:
            message = f"{text}: both clusters have a function that is no function by epoch; leave out @{cluster}"
            raise ConfigurationError(message)
        return Policy(named(function), function)
    judging = cluster or primary
    return Policy(named(function, judging), function, judging)


def named(function: ConflictFunction, primary: str = "") -> str:
    """Return a function as users write it; a function by epoch with its primary, and without the default argument."""
    return function.short if _is_on_both(function.spec) else f"{function.short} @{primary}"


def _is_on_both(spec: FunctionSpec) -> bool:
    """Whether both clusters have a function: one that compares a column, or a rule of one's own."""
    return spec.argument is Argument.COLUMN or spec.own is not None


def parse_formats(text: str) -> tuple[int, ...]:
    """
    Return the binlog types that a text lists, by number or name.

    Raises:
        ConfigurationError: One of them is not known, or says nothing of its own.
    """
    try:
        found = tuple(parse_binlog_type(each) for each in _words(text))
    except SettingError as error:
        message = f"--formats: {error}"
        raise ConfigurationError(message) from error
    if not found or not {0, 1}.isdisjoint(found):
        message = f"--formats {text}: give binlog types from 2 to 9, as 7,8,9; 0 and 1 log nothing of their own"
        raise ConfigurationError(message)
    return tuple(dict.fromkeys(found))


def _words(text: str) -> Iterable[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def function_on(cluster: str, policy: Policy, table: str) -> ConflictFunction | None:
    """Return the function that a policy gives to a table, by its full name, of a cluster."""
    function = policy.function_of(table)
    if function is None or policy.primary is None or function.spec.uses_role:
        return function
    return function if cluster == policy.primary else None


def role_on(cluster: str, policy: Policy) -> Role:
    """Return the role that a policy gives to a cluster."""
    if policy.function is None or not policy.function.spec.uses_role:
        return Role.NONE
    return Role.PRIMARY if cluster == policy.primary else Role.SECONDARY
