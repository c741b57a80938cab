"""
What decides a typed History: the conflict function and format of each table on each cluster, and the roles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from conflict.errors import ConfigurationError
from conflict.resolvers.resolver import Resolver
from conflict.resolvers.user_policies import asked_function
from conflict.rules.functions import FUNCTIONS, ConflictFunction, FunctionSpec, typed_function
from conflict.rules.replication_table import ReplicationRow, Role
from conflict.rules.table_setup import TableSetup, set_up
from conflict.typed.schedule import Schedule
from conflict.typed.tables import Tables
from ndb_formats.errors import did_you_mean
from ndb_formats.rules.update_format import parse_binlog_type

Function = str | Resolver | ConflictFunction | None


@attrs.frozen
class Rules:
    """
    What decides.

    Attributes:
        setups: By cluster and table, how the server sets up the table.
        roles: By cluster, its role, for the functions that have roles.
        functions: By table, its function as users write it; None for none.
        binlog_type: NDB binlog type of all tables.
        primary: The primary; empty if no function has one.
        rows: The rows of `mysql.ndb_replication`.
        own: The functions that no server has, and what users call them: a name that finds them, or empty of a value.
    """

    setups: Mapping[str, dict[str, TableSetup]] = attrs.field(repr=False)
    roles: Mapping[str, Role]
    functions: Mapping[str, str | None]
    binlog_type: int = 7
    primary: str = ""
    rows: Sequence[ReplicationRow] = attrs.field(default=(), repr=False)
    own: Sequence[tuple[FunctionSpec, str]] = attrs.field(default=(), repr=False)

    @property
    def words(self) -> str:
        """The rules in words: ``NDB$EPOCH(), binlog type 7, primary A``."""
        different = {text or "no function" for text in self.functions.values()}
        each = (f"{text or 'no function'} on {name}" for name, text in self.functions.items())
        functions = different.pop() if len(different) == 1 else ", ".join(each)
        return f"{functions}, binlog type {self.binlog_type}{f', primary {self.primary}' if self.primary else ''}"


def server_ids(history: Schedule) -> dict[str, int]:
    """Return the server id of each cluster: 1 and 2."""
    return {name: number for number, name in enumerate(history.names, start=1)}


def rules_of(
    history: Schedule, function: Function | Mapping[str, Function], binlog_type: int | str, primary: str | None
) -> Rules:
    """
    Return the rules for all tables of a History; arguments as for `History.resolve`.

    Raises:
        ConfigurationError: A name is not known, a function cannot be read, or the servers refuse a table.
    """
    if primary is not None and primary not in history.names:
        message = f"primary {primary} is no cluster; there are {' and '.join(history.names)}"
        raise ConfigurationError(message)
    named, kind = primary or history.names[0], parse_binlog_type(binlog_type)
    given = _by_table(history.tables, function)
    functions = {name: _parsed(each) for name, each in given.items()}
    specs = tuple({*FUNCTIONS, *(each.spec for each in functions.values() if each is not None)})
    ids = server_ids(history)
    rows = [row for name, each in functions.items() for row in _rows(history.tables, name, each, kind, ids[named])]
    setups = {name: set_up(history.tables.schema, rows, number, None, specs) for name, number in ids.items()}
    _refuse(setups, kind)
    judged = {name: each.spec for name, each in functions.items() if each is not None}
    own = {spec: _reference(given[name]) for name, spec in judged.items() if spec not in FUNCTIONS}
    return Rules(
        setups,
        _roles(history, [*judged.values()], named),
        {name: None if each is None else each.short for name, each in functions.items()},
        kind,
        named if any(spec.refreshes for spec in judged.values()) else "",
        rows,
        list(own.items()),
    )


def _reference(function: Function) -> str:
    """Return what finds a function: ``module:name``, or the name of one that comes with the program."""
    return function.partition("(")[0].strip() if isinstance(function, str) else ""


def _by_table(tables: Tables, function: Function | Mapping[str, Function]) -> dict[str, Function]:
    if not isinstance(function, Mapping):
        return dict.fromkeys(tables.by_name, function)
    given = {tables.named(name).name: each for name, each in function.items()}
    return {name: given.get(name) for name in tables.by_name}


def _parsed(function: Function) -> ConflictFunction | None:
    if function is None or isinstance(function, ConflictFunction):
        return function
    return typed_function(*asked_function(function))


def _rows(
    tables: Tables, name: str, function: ConflictFunction | None, binlog_type: int, primary: int
) -> Iterator[ReplicationRow]:
    """Yield the rows of `mysql.ndb_replication` for a table."""
    table = tables.by_name[name].table
    text = None if function is None else str(function)
    if function is not None and function.spec.on_primary_alone:
        yield ReplicationRow(table.database, table.name, primary, binlog_type, text)
        text = None
    yield ReplicationRow(table.database, table.name, 0, binlog_type, text)


def _roles(history: Schedule, specs: Sequence[FunctionSpec], primary: str) -> dict[str, Role]:
    """Return the role of each cluster: none if no function has roles."""
    if not any(spec.uses_role for spec in specs):
        return dict.fromkeys(history.names, Role.NONE)
    return {name: Role.PRIMARY if name == primary else Role.SECONDARY for name in history.names}


def _refuse(setups: Mapping[str, Mapping[str, TableSetup]], binlog_type: int) -> None:
    """
    Refuse tables that the servers do not create, and those whose changes they do not log.

    Raises:
        ConfigurationError: There is one.
    """
    for name, setup in ((name, setup) for own in setups.values() for name, setup in own.items()):
        if setup.refusal is not None:
            known = [column.name for column in setup.table.columns]
            meant = did_you_mean(setup.refusal.column, known) if setup.refusal.column else ""
            message = f"the servers refuse table {name}: {setup.refusal.message}{meant}"
            raise ConfigurationError(message)
        if not setup.format.logged:
            message = f"binlog type {binlog_type} logs nothing; choose another type"
            raise ConfigurationError(message)
