"""
The two clusters as tasks need them: how each set up its tables, and what its applier makes of each.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from conflict.bucket import required_bits
from conflict.functions import FunctionCode
from conflict.history import Role
from conflict.kernels.arrays import Bool, FunctionArrays
from conflict.kernels.event_masks import EventMasks, event_masks, reflects
from conflict.setup import TableSetup

__all__ = ["Site", "applied_function", "function_arrays", "masks_of", "transactional_tables"]


@attrs.frozen
class Site:
    """
    One cluster as a task needs it.

    Attributes:
        name: Its name.
        server_id: Its server id.
        setups: How it set up each table, in the order of the table numbers.
        role: What it is for the functions that have roles.
    """

    name: str
    server_id: int
    setups: tuple[TableSetup, ...]
    role: Role = Role.NONE


def applied_function(setup: TableSetup, role: Role) -> FunctionCode:
    """Return the function that an applier uses for a table, its role considered; without a role it stops anyway."""
    if setup.function is None or (setup.function.spec.uses_role and role is Role.PASS):
        return FunctionCode.NONE
    return setup.function.spec.code


def function_arrays(sites: Sequence[Site]) -> FunctionArrays:
    """Return which function each site applies to each table, as arrays."""
    rows = [[_facts(setup, site.role) for setup in site.setups] for site in sites]
    types = (np.int8, np.int8, np.bool_, np.bool_, np.bool_, np.bool_, np.uint64)
    return FunctionArrays(
        *(np.array([[facts[place] for facts in row] for row in rows], kind) for place, kind in enumerate(types))
    )


def _facts(setup: TableSetup, role: Role) -> tuple[int, int, bool, bool, bool, bool, int]:
    code = applied_function(setup, role)
    whole, required = not setup.format.updated_only, (1 << len(set(required_bits(setup.table).values()))) - 1
    if setup.function is None or code is FunctionCode.NONE:
        return 0, 0, False, False, False, whole, required
    spec = setup.function.spec
    secondary = spec.uses_role and role is Role.SECONDARY
    return int(code), setup.function.gci_bits, spec.refreshes, secondary, reflects(setup, role), whole, required


def masks_of(sites: Sequence[Site]) -> EventMasks:
    """Return which columns the events carry that each site's applier logs."""
    return event_masks([(site.role, site.setups) for site in sites])


def transactional_tables(sites: Sequence[Site]) -> Bool:
    """Return whether a row conflict puts its transaction in conflict. Shape (clusters, tables)."""
    return np.array(
        [[setup.function is not None and setup.function.spec.transactional for setup in site.setups] for site in sites],
        np.bool_,
    )
