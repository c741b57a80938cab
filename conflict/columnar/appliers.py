"""
The two clusters as tasks need them: how each set up its tables, and what its applier makes of each.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from conflict.columnar.bucket import required_bits
from conflict.columnar.kernels.arrays import Bool, FunctionArrays
from conflict.columnar.kernels.event_masks import EventMasks, event_masks, reflects
from conflict.rules.functions import ConflictFunction, FunctionCode, Image
from conflict.rules.roles import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import Operation

__all__ = ["Site", "applied_function", "function_arrays", "masks_of", "transactional_tables", "user_functions"]


@attrs.frozen
class Site:
    """
    One cluster as a task needs it.

    Attributes:
        name: Its name.
        server_id: Its server id.
        setups: How it set up each table, in the order of the table numbers.
        role: What it is for the functions that have roles.
        skip_missing: Leave out operations that lack a value to compare, instead of stopping.
    """

    name: str
    server_id: int
    setups: tuple[TableSetup, ...]
    role: Role = Role.NONE
    skip_missing: bool = False


def applied_function(setup: TableSetup, role: Role) -> FunctionCode:
    """Return the function that an applier uses for a table, its role considered; without a role it stops anyway."""
    if setup.function is None or (setup.function.spec.uses_role and role is Role.PASS):
        return FunctionCode.NONE
    return setup.function.spec.code


def function_arrays(sites: Sequence[Site]) -> FunctionArrays:
    """Return which function each site applies to each table, as arrays."""
    rows = [[_facts(setup, site.role) for setup in site.setups] for site in sites]
    types = (np.int16, np.int8, np.bool_, np.bool_, np.bool_, np.bool_, np.uint64)
    columns: list[np.ndarray] = [
        np.array([[facts[place] for facts in row] for row in rows], kind) for place, kind in enumerate(types)
    ]
    for number, function in user_functions(sites).items():
        users = [[setup.function == function for setup in site.setups] for site in sites]
        columns[0][np.array(users, np.bool_) & (columns[0] != FunctionCode.NONE)] = number
    code, gci_bits, refreshes, secondary, sends_back, whole_rows, required = columns
    before, after = _left_out(sites)
    return FunctionArrays(
        code, gci_bits, refreshes, secondary, sends_back, whole_rows, required, needs_before=before, needs_after=after
    )


def user_functions(sites: Sequence[Site]) -> dict[int, ConflictFunction]:
    """Return the functions of users' own by their number in the kernels, the same wherever it is asked."""
    found: list[ConflictFunction] = []
    for site in sites:
        for setup in site.setups:
            function = setup.function
            if function is not None and function.spec.code is FunctionCode.USER and function not in found:
                found.append(function)
    return dict(enumerate(found, start=int(FunctionCode.USER)))


def _left_out(sites: Sequence[Site]) -> tuple[Bool, Bool]:
    """Return which images must carry the resolve column, or else the operation is left out, per operation."""
    shape = (len(sites), len(sites[0].setups), len(Operation) + 1)
    before, after = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    for number, site in enumerate(sites):
        for table, setup in enumerate(site.setups):
            if site.skip_missing and setup.function is not None:
                for operation, image in setup.function.spec.needs.items():
                    (before if image is Image.BEFORE else after)[number, table, operation] = True
    return before, after


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
