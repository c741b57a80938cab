"""
The setup of the two clusters, and what follows from it for the kernels. Computes docs/functions.md, "The table".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from conflict.columnar.kernels.arrays import Bool, EpochApplies, Int16, Int64, Logged, each_read_only
from conflict.columnar.kernels.event_masks import EventMasks, event_masks, reflects
from conflict.columnar.kernels.records import RULE, Rules
from conflict.history.model import Position
from conflict.rules.decision import unwritten_value
from conflict.rules.roles import Role
from conflict.rules.stops import Misfit, active_function
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Table

__all__ = [
    "ClusterSetup",
    "held_columns",
    "masks_of",
    "rules_of",
    "steps_before",
    "transactional_tables",
]


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

    def over_time(self, table: int) -> tuple[TableSetup, ...]:
        """Return the setups of a table, one after the other."""
        return (self.first.get(table, self.setups[table]), *self.versions.get(table, ()))


def steps_before(steps: Sequence[Position], applies: EpochApplies) -> Int64:
    """Return how many of some changes of definitions come before each epoch apply of the cluster. Shape (applies,)."""
    follows = applies.group.astype(np.int64) + ~applies.traced
    found = np.zeros(len(applies), np.int64)
    for epoch, group in steps:
        found += (applies.epoch > np.uint64(epoch)) | ((applies.epoch == np.uint64(epoch)) & (follows > group))
    return found


def rules_of(clusters: Sequence[ClusterSetup]) -> Rules:
    """Return what each applier does with each table, in the form that the kernels read."""
    tables = len(clusters[0].setups)
    count = tables + max(sum(map(len, cluster.versions.values())) for cluster in clusters)
    resolve_columns = [_resolve_column(clusters, table) for table in range(tables)]
    records = np.zeros((len(clusters), count), RULE)
    cells = np.zeros((len(clusters), count, len(Operation) + 1), np.int8)  # operations are numbered from 1
    for number, cluster in enumerate(clusters):
        records[number]["next"] = np.arange(count)
        numbered = [(table, table, cluster.over_time(table)[0]) for table in range(tables)]
        for table, later in cluster.versions.items():
            last = table
            for setup in later:
                records[number, last]["next"] = last = len(numbered)
                numbered.append((last, table, setup))
        for place, table, setup in numbered:
            rule, function = records[number, place], active_function(setup.function, cluster.role)
            column = resolve_columns[table]
            rule["unwritten"] = 0 if column is None else unwritten_value(setup.table.columns[column])
            rule["whole_rows"], rule["skips"] = not setup.format.updated_only, cluster.skip_missing
            if function is None:
                continue  # every cell is `Cell.APPLY`
            rule["gci_bits"], rule["refreshes"] = function.gci_bits, function.spec.refreshes
            rule["reflects"] = reflects(setup, cluster.role)
            rule["secondary"] = function.spec.uses_role and cluster.role is Role.SECONDARY
            if not rule["secondary"]:  # the secondary follows the primary: every cell is `Cell.APPLY`
                cells[number, place, 1:] = [function.spec.cell(operation) for operation in Operation]
    return Rules(*each_read_only(records, cells))


def _resolve_column(clusters: Sequence[ClusterSetup], table: int) -> int | None:
    """Return the position of the column that a function of either cluster compares; None if none does."""
    setups = (setup for cluster in clusters for setup in (cluster.setups[table], *cluster.over_time(table)))
    judging = ((setup.table, setup.function) for setup in setups if setup.function is not None)
    return next((each.ordinal(function.column) for each, function in judging if function.column is not None), None)


def masks_of(clusters: Sequence[ClusterSetup]) -> EventMasks:
    """Return which columns the events carry that each cluster's applier logs."""
    return event_masks([(cluster.role, cluster.setups) for cluster in clusters])


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
