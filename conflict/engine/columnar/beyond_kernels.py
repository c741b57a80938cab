"""
What the definitions and functions of a run can ask that the kernels do not decide; the reference engine does then.

`conflict.engine.ledger.careful.CareKind` has a kind for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from conflict.config.definitions import AlteredColumn
from conflict.history.run import Run, misfit
from conflict.rules.own_rule import Image
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.schema.altered_values import added_value
from ndb_formats.schema.default_values import implied_value
from ndb_formats.schema.value_conversions import NOT_KNOWN


def changes_functions(over_time: Mapping[str, Mapping[str, Sequence[TableSetup]]]) -> bool:
    """Whether a table has different functions at different times, as a new name can give it; the kernels know one."""
    return any(
        len({setup.function for setup in setups if setup.function is not None}) > 1
        for tables in over_time.values()
        for setups in tables.values()
    )


def ends_apart(run: Run) -> bool:
    """
    Whether a statement counts on one cluster alone, so that changes of the one do not fit tables of the other.

    The kernels know only the changes that do not fit from the start on.
    """
    if not run.definitions:
        return False
    first, second = run.definitions.values()
    return any(
        _are_apart(first.end.setups, second.end.setups, name)
        and not _are_apart(first.start.setups, second.start.setups, name)
        for name in first.end.setups.keys() | second.end.setups.keys()
    )


def _are_apart(first: Mapping[str, TableSetup], second: Mapping[str, TableSetup], name: str) -> bool:
    """Whether one cluster alone has a table, or what it logs does not fit the other one's."""
    mine, theirs = first.get(name), second.get(name)
    if mine is None or theirs is None:
        return mine is not theirs
    return misfit(mine, theirs) is not None or misfit(theirs, mine) is not None


def alters_values(run: Run, *, compared_alone: bool = False) -> bool:
    """
    Whether a statement gives rows values that the kernels do not have.

    These are converted ones, and those of a new column whose definition at the end gives another value.

    Args:
        run: The run.
        compared_alone: Look at columns alone that a conflict function can compare.
    """
    return any(
        each.source is not None or not _is_default_at_end(each, known.setups[table])
        for known in run.definitions.values()
        for step in known.steps
        for table, altered in step.altered.items()
        for each in altered
        if not compared_alone or (each.after.unsigned and each.after.type in ("int", "bigint"))
    )


def _is_default_at_end(altered: AlteredColumn, setup: TableSetup) -> bool:
    """Whether the last definition of a new column, if it is not dropped, gives what rows got in it."""
    table, places = setup.shown
    if altered.place not in places:
        return True
    value, last = added_value(altered.after), table.columns[places.index(altered.place)]
    return last.is_computed if value is NOT_KNOWN else not last.is_computed and implied_value(last) == value


def compares_reflected(run: Run, later_roles: Mapping[str, frozenset[Role]] = MappingProxyType({})) -> bool:
    """
    Whether a function on one cluster compares values in before images that the other one's applier reflects.

    The kernels know the key alone of such an image. `later_roles` is as in `ClusterSetup`, by cluster.
    """
    over_time = run.setups.over_time
    for cluster in run.clusters:
        for peer in run.clusters:
            for table, setups in over_time[cluster.name].items() if peer is not cluster else ():
                roles = {peer.role, *later_roles.get(peer.name, ())}
                theirs = over_time[peer.name].get(table, ())
                reflected = any(setup.deployed(role).reflects for setup in theirs for role in roles)
                if reflected and any(_compares_before(setup) for setup in setups):
                    return True
    return False


def _compares_before(setup: TableSetup) -> bool:
    function = setup.function
    return function is not None and function.column is not None and Image.BEFORE in function.spec.needs.values()
