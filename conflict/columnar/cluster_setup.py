"""
The setup of the two clusters, and what follows from it for the kernels. Computes docs/functions.md, "The table".
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from conflict.columnar.bucket import required_bits
from conflict.columnar.kernels.arrays import Bool, each_read_only
from conflict.columnar.kernels.event_masks import EventMasks, event_masks, reflects
from conflict.columnar.kernels.records import RULE, Rules
from conflict.rules.functions import ConflictFunction
from conflict.rules.roles import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import Operation

__all__ = ["ClusterSetup", "judging_function", "masks_of", "rules_of", "transactional_tables"]


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
    """

    name: str
    server_id: int
    setups: tuple[TableSetup, ...]
    role: Role = Role.NONE
    skip_missing: bool = False


def judging_function(setup: TableSetup, role: Role) -> ConflictFunction | None:
    """Return the function by which an applier judges a table, None under role PASS (without a role it stops)."""
    function = setup.function
    return None if function is not None and function.spec.uses_role and role is Role.PASS else function


def rules_of(clusters: Sequence[ClusterSetup]) -> Rules:
    """Return what each applier does with each table, in the form that the kernels read."""
    tables = len(clusters[0].setups)
    records = np.zeros((len(clusters), tables), RULE)
    cells = np.zeros((len(clusters), tables, len(Operation) + 1), np.int8)  # operations are numbered from 1
    for number, cluster in enumerate(clusters):
        for table, setup in enumerate(cluster.setups):
            rule, function = records[number, table], judging_function(setup, cluster.role)
            rule["required"] = (1 << len(set(required_bits(setup.table).values()))) - 1
            rule["whole_rows"], rule["skips"] = not setup.format.updated_only, cluster.skip_missing
            if function is None:
                continue  # every cell is `Cell.APPLY`
            rule["gci_bits"], rule["refreshes"] = function.gci_bits, function.spec.refreshes
            rule["reflects"] = reflects(setup, cluster.role)
            rule["secondary"] = function.spec.uses_role and cluster.role is Role.SECONDARY
            if not rule["secondary"]:  # the secondary follows the primary: every cell is `Cell.APPLY`
                cells[number, table, 1:] = [function.spec.cell(operation) for operation in Operation]
    return Rules(*each_read_only(records, cells))


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
