"""
The setup of the two clusters, and what follows from it for the kernels. Computes docs/functions.md, "The table".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from conflict.columnar.bucket import required_bits
from conflict.columnar.kernels.arrays import Bool, EpochApplies, Int64, each_read_only
from conflict.columnar.kernels.event_masks import EventMasks, event_masks, reflects
from conflict.columnar.kernels.records import RULE, Rules
from conflict.history.model import Position
from conflict.rules.functions import ConflictFunction
from conflict.rules.roles import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Table

__all__ = ["ClusterSetup", "judging_function", "masks_of", "rules_of", "steps_before", "transactional_tables"]


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
        misfits: By table number, a column that the applier may not convert, and the server's message.
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
    misfits: Mapping[int, tuple[str, str]] = attrs.field(factory=dict)

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


def judging_function(setup: TableSetup, role: Role) -> ConflictFunction | None:
    """Return the function by which an applier judges a table, None under role PASS (without a role it stops)."""
    function = setup.function
    return None if function is not None and function.spec.uses_role and role is Role.PASS else function


def rules_of(clusters: Sequence[ClusterSetup]) -> Rules:
    """Return what each applier does with each table, in the form that the kernels read."""
    tables = len(clusters[0].setups)
    count = tables + max(sum(map(len, cluster.versions.values())) for cluster in clusters)
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
            rule, function = records[number, place], judging_function(setup, cluster.role)
            rule["required"] = _required(setup, cluster.wholes[table] if cluster.wholes else setup.table)
            rule["whole_rows"], rule["skips"] = not setup.format.updated_only, cluster.skip_missing
            if function is None:
                continue  # every cell is `Cell.APPLY`
            rule["gci_bits"], rule["refreshes"] = function.gci_bits, function.spec.refreshes
            rule["reflects"] = reflects(setup, cluster.role)
            rule["secondary"] = function.spec.uses_role and cluster.role is Role.SECONDARY
            if not rule["secondary"]:  # the secondary follows the primary: every cell is `Cell.APPLY`
                cells[number, place, 1:] = [function.spec.cell(operation) for operation in Operation]
    return Rules(*each_read_only(records, cells))


def _required(setup: TableSetup, whole: Table) -> int:
    """Return the bits of the columns that a new row must be given."""
    bits = required_bits(whole)
    needed = (bits[place] for place in required_bits(setup.table) if place in bits)
    return sum(1 << bit for bit in set(needed))


def masks_of(clusters: Sequence[ClusterSetup]) -> EventMasks:
    """Return which columns the events carry that each cluster's applier logs."""
    return event_masks([(cluster.role, cluster.setups) for cluster in clusters])


def transactional_tables(clusters: Sequence[ClusterSetup]) -> Bool:
    """Return where a row conflict puts its transaction in conflict. Shape (clusters, tables)."""
    return np.array(
        [
            [setup.function is not None and setup.function.spec.transactional for setup in cluster.setups]
            for cluster in clusters
        ],
        np.bool_,
    )
