"""
The setup of clusters for the kernels, where definitions change too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from conflict.columnar.cluster_setup import ClusterSetup
from conflict.columnar.kernels.event_masks import reflects
from conflict.config.configuration import ClusterConfiguration
from conflict.grid.key_numbering import SegmentStep
from conflict.history.model import DefinitionChange, Position
from conflict.history.run import Run
from conflict.history.scheduling.fitting import misfit
from conflict.history.tables import TableNumbers
from conflict.rules.functions import Image
from conflict.rules.stops import Misfit
from conflict.rules.table_setup import Refusal, RefusalKind, TableSetup

__all__ = ["changes_functions", "cluster_setups", "compares_reflected", "ends_apart"]


def changes_functions(over_time: Mapping[str, Mapping[str, Sequence[TableSetup]]]) -> bool:
    """Whether a table has different functions at different times, as a new name can give it; the kernels know one."""
    return any(
        len({setup.function for setup in setups if setup.function is not None}) > 1
        for tables in over_time.values()
        for setups in tables.values()
    )


def cluster_setups(
    run: Run,
    numbers: TableNumbers,
    changes: Mapping[str, Sequence[DefinitionChange]],
    steps: Mapping[str, Sequence[SegmentStep]],
) -> tuple[ClusterSetup, ...]:
    """
    Return the setups of both clusters.

    Args:
        run: The run.
        numbers: Its tables.
        changes: Per cluster, the changes of definitions that were read.
        steps: Per cluster, what they do to the rows of each table, in order.
    """
    setups = run.setups.at_end
    return tuple(
        ClusterSetup(
            cluster.name,
            cluster.server_id,
            tuple(
                _at_any_time(run, cluster.name, table.full_name, setups[cluster.name], numbers)
                for table in numbers.tables
            ),
            cluster.role,
            run.configuration.skip_missing,
            **_over_time(run, cluster, numbers, changes.get(cluster.name, ()), steps.get(cluster.name, ())),
        )
        for cluster in run.clusters
    )


def _at_any_time(
    run: Run, cluster: str, table: str, setups: Mapping[str, TableSetup], numbers: TableNumbers
) -> TableSetup:
    """Return the setup of a table with the function that it had at any time."""
    setup = setups.get(table)
    if setup is None:
        return TableSetup(numbers.tables[numbers.number(table)])  # on the other cluster alone
    if not run.definitions:
        return setup
    known = [moment.setups.get(table) for moment in run.definitions[cluster].moments]
    function = next((each.function for each in known if each is not None and each.function is not None), None)
    refusal = None if setup.refusal is not None and setup.refusal.kind is RefusalKind.DROPPED else setup.refusal
    return attrs.evolve(setup, function=setup.function or function, refusal=refusal)


def _over_time(
    run: Run,
    cluster: ClusterConfiguration,
    numbers: TableNumbers,
    changes: Sequence[DefinitionChange],
    steps: Sequence[SegmentStep],
) -> dict[str, Any]:
    """Return the attributes of `ClusterSetup` that say what changes."""
    known = run.definitions.get(cluster.name)
    if known is None:
        return {}
    versions: dict[int, tuple[TableSetup, ...]] = {}
    positions: dict[int, tuple[Position, ...]] = {}
    renewed: dict[str, tuple[Position, ...]] = {}
    copied: dict[int, tuple[int, ...]] = {}
    left, before = list(steps), known.start
    for change in changes:
        after = change.step.after
        for name in change.step.touched:
            number, place = numbers.number(name), left.pop(0)
            last = versions.get(number, (before.setups.get(name),))[-1]
            now = after.setups.get(name) or _missing(last or _none(numbers, number))
            versions[number] = (*versions.get(number, ()), now)
            if name in change.step.copied and change.step.server_id != cluster.server_id:
                copied[number] = (*copied.get(number, ()), len(positions.get(number, ())))
            positions[number] = (*positions.get(number, ()), (place.epoch, place.group))
            for setup in (before.setups.get(name), after.setups.get(name)) if name in change.step.renewed else ():
                if setup is not None and setup.exceptions is not None:
                    table = setup.exceptions.table.full_name
                    renewed[table] = (*renewed.get(table, ()), (place.epoch, place.group))
        before = after
    first = {number: _missing(setups[0]) for number, setups in versions.items()}
    first |= {numbers.number(name): setup for name, setup in known.start.setups.items()}
    misfits = _misfits(run, cluster.name, numbers)
    return {
        "versions": versions,
        "first": first,
        "steps": positions,
        "renewed": renewed,
        "copied": copied,
        "wholes": numbers.tables,
        "misfits": misfits,
    }


def _missing(setup: TableSetup) -> TableSetup:
    """Return the setup of a table for the time when the cluster does not have it."""
    return attrs.evolve(setup, refusal=Refusal(RefusalKind.DROPPED, 0, None, "the table does not exist"))


def _none(numbers: TableNumbers, number: int) -> TableSetup:
    return TableSetup(numbers.tables[number])


def _misfits(run: Run, cluster: str, numbers: TableNumbers) -> dict[int, Misfit]:
    """Return the tables whose changes an applier cannot take from the start on, with the reason."""
    mine = run.definitions[cluster].start.setups
    theirs = run.definitions[run.links.peer(cluster).name].start.setups
    found = {}
    for name in mine.keys() & theirs.keys():
        reason = misfit(theirs[name], mine[name])
        if reason is not None:
            found[numbers.number(name)] = reason
    return found


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


def compares_reflected(run: Run) -> bool:
    """
    Whether a function on one cluster compares values in before images that the other one's applier reflects.

    The kernels know the key alone of such an image.
    """
    over_time = run.setups.over_time
    for cluster in run.clusters:
        for peer in run.clusters:
            for table, setups in over_time[cluster.name].items() if peer is not cluster else ():
                reflected = any(reflects(setup, peer.role) for setup in over_time[peer.name].get(table, ()))
                if reflected and any(_compares_before(setup) for setup in setups):
                    return True
    return False


def _compares_before(setup: TableSetup) -> bool:
    function = setup.function
    return function is not None and function.column is not None and Image.BEFORE in function.spec.needs.values()
