"""
Which policies are compared if the user does not say it: every function that the tables and the log allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from conflict.history.run import Run
from conflict.rules.functions import (
    Argument,
    ConflictFunction,
)
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import TableSetup
from conflict.whatif.comparing.pairs import (
    BY_COMMIT_TIME,
    LOWEST,
    OVERWRITE,
    Policy,
    function_on,
    named,
    parse_policies,
    role_on,
)
from ndb_formats.schema.tables import Table

_TYPES = ("int", "bigint")  # that a function can compare, if they are unsigned


def primary_of(run: Run) -> str:
    """Return the primary of a run: by role, else the one cluster with a function by epoch, else the first cluster."""
    primaries = [cluster.name for cluster in run.clusters if cluster.role is Role.PRIMARY]
    judging = [
        name
        for name, tables in run.setups.first.items()
        if any(setup.function is not None and setup.function.spec.refreshes for setup in tables.values())
    ]
    return (primaries or judging or [run.clusters[0].name])[0]


def all_policies(run: Run, asked: Sequence[Policy]) -> tuple[Policy, ...]:
    """Return policies, the functions of the run among them and marked."""
    given = {
        name: {table: setup.function for table, setup in tables.items() if setup.function is not None}
        for name, tables in run.setups.first.items()
    }
    same = [policy for policy in asked if _is_configured(run, policy, given)]
    if same:
        return tuple(attrs.evolve(policy, configured=policy is same[0]) for policy in asked)
    functions = {function for functions in given.values() for function in functions.values()}
    names = sorted(named(function, primary_of(run)) for function in functions)
    return (Policy(", ".join(names) or OVERWRITE, configured=True), *asked)


def _is_configured(run: Run, policy: Policy, given: Mapping[str, Mapping[str, ConflictFunction]]) -> bool:
    """Whether a policy gives every cluster the functions and the role that it has."""
    if policy.by_table:
        return all(given[cluster.name] == dict(policy.by_table) for cluster in run.clusters)
    return all(
        set(given[cluster.name].values()) == {function_on(cluster.name, policy, "")} - {None}
        and (
            policy.function is None
            or not policy.function.spec.uses_role
            or cluster.role is role_on(cluster.name, policy)
        )
        for cluster in run.clusters
    )


def own_columns(run: Run, kept: Mapping[str, str]) -> dict[str, str | None]:
    """Return the tables that policies are tried on, and the column of each that is kept; None where none is."""
    setups = [each for tables in run.setups.first.values() for each in tables.items()]
    judged = [name for name, setup in setups if setup.function is not None or setup.refusal is not None]
    return {name: kept.get(name) for name in dict.fromkeys(judged or [name for name, _ in setups])}


def default_policies(run: Run, columns: Mapping[str, str | None]) -> tuple[Policy, ...]:
    """
    Return all policies: functions by epoch, those by column for each column, and policies of other products.

    Args:
        run: The run.
        columns: What `own_columns` returned; functions that compare a column are tried if each table has one.
    """
    names, primary = list(run.links.server_ids), primary_of(run)
    specs = [spec for spec in run.configuration.functions if spec.own is None]
    texts = [f"{spec.name}()" for spec in specs if spec.argument is Argument.GCI_BITS]
    texts += [f"NDB$EPOCH()@{name}" for name in names if name != primary]
    if columns and None not in columns.values():
        texts += [spec.name for spec in (*specs, LOWEST) if spec.argument is Argument.COLUMN]
    texts += [*BY_COMMIT_TIME, OVERWRITE]
    return parse_policies(",".join(texts), run.configuration.functions, names, primary, columns)


def kept_columns(run: Run, asked: Sequence[Policy] = ()) -> dict[str, str]:
    """
    Return, by table, the column whose values the History keeps for functions that compare one.

    That is the one that a function of the run compares; else the first one of the policies that were asked for; else,
    if none was asked for, the only column of the table that a function can compare.

    Args:
        run: The run.
        asked: The policies that were asked for; empty for all.
    """
    found = {}
    for tables in run.setups.first.values():
        for name, setup in tables.items():
            compiled = [policy for policy in asked if not policy.in_python]
            wanted = [column for policy in compiled if (column := policy.column_of(name)) is not None]
            column = _kept(setup, wanted, any_column=not asked)
            if column is not None:
                found[name] = column
    return found


def _kept(setup: TableSetup, wanted: Sequence[str], *, any_column: bool) -> str | None:
    if setup.function is not None and setup.function.column is not None:
        return setup.function.column
    there = [column for column in wanted if setup.table.find(column) is not None]
    if there:
        return there[0]
    possible = comparable_columns(setup.table) if any_column else []
    return possible[0] if len(possible) == 1 else None


def comparable_columns(table: Table) -> list[str]:
    """Return the columns of a table that a function can compare."""
    return [
        column.name
        for column in table.columns
        if column.type in _TYPES and column.unsigned and column.name not in table.primary_key
    ]
