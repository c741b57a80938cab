"""
The setup of the two clusters, what follows from it for the kernels, and how changes of definitions change it.

Computes docs/functions.md, "The table".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from conflict.config.configuration import ClusterConfiguration
from conflict.engine.kernels.arrays import Bool, EpochApplies, Int8, Int16, Int64, Logged, acting
from conflict.engine.kernels.logged_rows import EventMasks, event_masks
from conflict.engine.kernels.records import RULE, Rules
from conflict.history.grid.key_numbering import SegmentStep
from conflict.history.restarts import Restarts
from conflict.history.run import Run, TableNumbers, misfit
from conflict.history.timeline import DefinitionChange, Position
from conflict.rules.decision import unwritten_value
from conflict.rules.replication_table import Role
from conflict.rules.stops import Misfit
from conflict.rules.table_setup import Refusal, RefusalKind, TableSetup
from ndb_formats.columnar.kernel import each_read_only
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Table

# By table number, the own positions (epoch, group) of statements, and a set of columns before and after each of them.
RequiredOverTime = Mapping[int, tuple[Sequence[Position], Sequence[frozenset[int]]]]


@attrs.frozen
class ClusterSetup:
    """
    The setup of one cluster.

    Attributes:
        name: Its name.
        server_id: Its server id.
        setups: Setup of each table, in the order of the table numbers.
        role: Its role, for the functions that use roles.
        skip_missing: Skip operations that lack the value to compare, instead of stopping the applier.
        versions: By table number, the setups after each change of its definition, in order. `setups` then has what
            holds at any time: a function, an exceptions table.
        first: By table number, the setup before the first change.
        steps: By table number, the own positions (epoch, group) of these changes.
        renewed: By exceptions table, the own positions from which on its rows are counted from 1 again.
        copied: By table number, which of its changes its applier made by copying, for the other cluster.
        wholes: The History tables, in the order of the table numbers; empty if they are the tables of the setups.
        misfits: By table number, a column that the applier may not convert.
        filtered: Tables whose changes its applier drops.
        restarts: By server of its, the own epochs from which on its counters count anew after a restart, in order.
        later_roles: The roles that it takes later, where these change.
    """

    name: str
    server_id: int
    setups: tuple[TableSetup, ...]
    role: Role = Role.NONE
    skip_missing: bool = False
    versions: Mapping[int, tuple[TableSetup, ...]] = attrs.field(factory=dict)
    first: Mapping[int, TableSetup] = attrs.field(factory=dict)
    steps: Mapping[int, tuple[Position, ...]] = attrs.field(factory=dict)
    renewed: Mapping[str, tuple[Position, ...]] = attrs.field(factory=dict)
    copied: Mapping[int, tuple[int, ...]] = attrs.field(factory=dict)
    wholes: tuple[Table, ...] = ()
    misfits: Mapping[int, Misfit] = attrs.field(factory=dict)
    filtered: frozenset[str] = frozenset()
    restarts: Restarts = attrs.field(factory=dict)
    later_roles: frozenset[Role] = frozenset()

    @property
    def roles(self) -> tuple[tuple[int, Role], ...]:
        """Its roles by number, the one at the start first; see `conflict.engine.kernels.arrays.acting`."""
        later = ((number, role) for number, role in enumerate(Role) if role in self.later_roles)
        return ((-1, self.role), *later)

    @property
    def reflects(self) -> Bool:
        """Whether its applier reflects what it applies to each table, in one of its roles. Shape (tables,)."""
        return np.array(
            [any(setup.deployed(role).reflects for _, role in self.roles) for setup in self.setups], np.bool_
        )

    @property
    def tables(self) -> tuple[Table, ...]:
        """The History tables, in the order of the table numbers."""
        return self.wholes or tuple(setup.table for setup in self.setups)

    def drops(self, table: int) -> bool:
        """Whether its applier drops the changes of a table."""
        return self.tables[table].full_name in self.filtered

    def over_time(self, table: int) -> tuple[TableSetup, ...]:
        """Return the setups of a table, one after the other."""
        return (self.first.get(table, self.setups[table]), *self.versions.get(table, ()))


def steps_before(steps: Sequence[Position], applies: EpochApplies) -> Int64:
    """Return how many of some changes of definitions come before each epoch apply of the cluster. Shape (applies,)."""
    found = np.zeros(len(applies), np.int64)
    follows = applies.group.astype(np.int64) + ~applies.traced if steps else found
    for epoch, group in steps:
        found += (applies.epoch > np.uint64(epoch)) | ((applies.epoch == np.uint64(epoch)) & (follows > group))
    return found


def required_columns(table: Table) -> frozenset[int]:
    """Return the positions of the columns that a new row must be given, besides its key."""
    required = (place for place, column in enumerate(table.columns) if column.must_be_given)
    return frozenset(required).difference(table.key_ordinals)


def required_over_time(clusters: Sequence[ClusterSetup], side: int) -> RequiredOverTime:
    """
    Return what new rows must be given that appliers make of the changes of a cluster, of tables that change.

    It is what the applier has as often changed as the cluster; `conflict.runs.resolving.other_forms` finds
    where that differs.
    """
    cluster, other = clusters[side], clusters[1 - side]
    found = {}
    for table, steps in cluster.steps.items():
        versions = other.over_time(table)
        chosen = (versions[min(number, len(versions) - 1)] for number in range(len(steps) + 1))
        found[table] = steps, tuple(required_columns(each.table) for each in chosen)
    return found


def rules_of(clusters: Sequence[ClusterSetup]) -> Rules:
    """Return what each applier does with each table, in the form that the kernels read."""
    tables = len(clusters[0].setups)
    count = tables + max(sum(map(len, cluster.versions.values())) for cluster in clusters)
    resolve_columns = [_resolve_column(clusters, table) for table in range(tables)]
    rows = 1 + max(acting(side, number) for side, cluster in enumerate(clusters) for number, _ in cluster.roles)
    records = np.zeros((max(rows, len(clusters)), count), RULE)
    cells = np.zeros((*records.shape, len(Operation) + 1), np.int8)  # operations are numbered from 1
    records["next"] = np.arange(count)
    for side, cluster in enumerate(clusters):
        numbered = [(table, table, cluster.over_time(table)[0]) for table in range(tables)]
        for table, later in cluster.versions.items():
            last = table
            for setup in later:
                records["next"][side :: len(clusters), last] = last = len(numbered)
                numbered.append((last, table, setup))
        for number, role in cluster.roles:
            row = acting(side, number)
            for place, table, setup in numbered:
                _fill_rule(records[row, place], cells[row, place], setup, role, resolve_columns[table])
                records[row, place]["skips"], records[row, place]["drops"] = cluster.skip_missing, cluster.drops(table)
    return Rules(*each_read_only(records, cells))


def _fill_rule(rule: np.void, cells: Int8, setup: TableSetup, role: Role, resolve_column: int | None) -> None:
    """Fill in what an applier does with a table; where no function judges, every cell is `Cell.APPLY`."""
    deployed = setup.deployed(role)
    rule["unwritten"] = 0 if resolve_column is None else unwritten_value(setup.table.columns[resolve_column])
    rule["whole_rows"] = not setup.format.updated_only
    rule["refreshes"], rule["reflects"] = deployed.refreshes, deployed.reflects
    rule["secondary"] = deployed.as_secondary
    if deployed.judge is not None:
        rule["gci_bits"] = deployed.judge.gci_bits
        cells[1:] = [deployed.judge.spec.cell(operation) for operation in Operation]


def _resolve_column(clusters: Sequence[ClusterSetup], table: int) -> int | None:
    """Return the position of the column that a function of either cluster compares; None if none does."""
    setups = (setup for cluster in clusters for setup in cluster.over_time(table))
    judging = ((setup.table, setup.function) for setup in setups if setup.function is not None)
    return next((each.ordinal(function.column) for each, function in judging if function.column is not None), None)


def masks_of(clusters: Sequence[ClusterSetup]) -> EventMasks:
    """Return which columns the events carry that each cluster's applier logs."""
    primary = Role.PRIMARY
    roles = [primary if primary in cluster.later_roles else cluster.role for cluster in clusters]
    return event_masks([(role, cluster.setups) for role, cluster in zip(roles, clusters, strict=True)])


def held_columns(
    clusters: Sequence[ClusterSetup], applies: EpochApplies, logged: Logged, table_of: Int16, widest: int
) -> Bool:
    """
    Return the columns that each row had that an applier logged, on its cluster. Shape (entries, widest table).

    Args:
        clusters: Both clusters.
        applies: All epoch applies in order.
        logged: What the appliers logged.
        table_of: Table number of each entry. Shape (entries,).
        widest: Number of columns of the widest table.
    """
    tables = len(clusters[0].setups)
    latest = max((len(each.over_time(table)) for each in clusters for table in range(tables)), default=0)
    held = np.zeros((len(clusters), tables, latest, widest), np.bool_)
    version = np.zeros(len(logged), np.int64)
    for number, cluster in enumerate(clusters):
        for table in range(tables):
            for place, setup in enumerate(cluster.over_time(table)):
                shown, places = setup.shown
                stored = [at for at, column in zip(places, shown.columns, strict=True) if column.generated != "virtual"]
                held[number, table, place, stored] = True
        for table, steps in cluster.steps.items():
            mine = np.flatnonzero((logged.cluster == number) & (table_of == table))
            version[mine] = steps_before(steps, applies)[logged.apply[mine]]
    return np.asarray(held[logged.cluster, table_of, version])


def transactional_tables(clusters: Sequence[ClusterSetup]) -> Bool:
    """Return where a row conflict puts its transaction in conflict. Shape (clusters, tables)."""
    return np.array(
        [
            [setup.function is not None and setup.function.spec.transactional for setup in cluster.setups]
            for cluster in clusters
        ],
        np.bool_,
    )


def cluster_setups(
    run: Run,
    numbers: TableNumbers,
    changes: Mapping[str, Sequence[DefinitionChange]],
    steps: Mapping[str, Sequence[SegmentStep]],
    roles: Mapping[str, frozenset[Role]],
) -> tuple[ClusterSetup, ...]:
    """
    Return the setups of both clusters.

    Args:
        run: The run.
        numbers: Its tables.
        changes: Per cluster, the changes of definitions that were read.
        steps: Per cluster, what they do to the rows of each table, in order.
        roles: Per cluster, the roles that it takes later.
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
            filtered=frozenset[str]().union(*run.filtered(cluster).values()),
            restarts=run.restarts_of(cluster),
            later_roles=roles.get(cluster.name, frozenset()),
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
