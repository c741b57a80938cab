"""
How an applier marks the rows that it changes, which role that shows, and where roles change.

The primary of NDB$EPOCH2 and NDB$EPOCH2_TRANS marks rows as reflected; in a table without a primary key, inserts alone.
No other role or function does (`ndb_applier_conflict_role`). A primary also refreshes rows, and a secondary does so
only if another table has a function that rejects whole transactions without a role; refreshes tell nothing then. So
the binlog shows at each epoch apply that changed rows of a table with roles whether the cluster was the primary. Where
this changes, its role did, at some epoch of the other cluster from the last one of the old role to the first one of
the new role.

A row that is not marked shows nothing where something else may have changed it: a foreign key that acts, or a refresh
that a secondary made for the function of another table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import chain, islice, product

import attrs

from conflict.history.epochs import BinlogEpoch
from conflict.history.timeline import EpochApply
from conflict.rules.foreign_keys import links_on
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import ConflictFlag

# So many places of the changes of one cluster's role are tried.
MOST_PLACES = 4
_OF_A_PRIMARY = ConflictFlag.REFLECTED | ConflictFlag.REFRESH


@attrs.frozen
class RoleChange:
    """
    A change of the role of a cluster, whose applier is stopped then.

    Attributes:
        after_epoch: The last epoch of the other cluster that its applier applied before.
        role: Its role from then on.
    """

    after_epoch: int
    role: Role


@attrs.frozen
class ShownChange:
    """
    A change of a role that a binlog shows.

    Attributes:
        before: The last epoch of the other cluster that was surely applied in the old role.
        first: The first one that was surely applied in the new role.
        old: The old role.
        new: The new role.
    """

    before: int
    first: int
    old: Role
    new: Role


def shown_changes(
    epochs: Sequence[BinlogEpoch], role: Role, setups: Mapping[str, TableSetup], source_id: int
) -> list[ShownChange]:
    """
    Return the changes of the role of a cluster that its binlog shows.

    There is none if it contradicts its role at the start: then the role is another one than was declared.

    Args:
        epochs: Its own epochs.
        role: Its role at the start.
        setups: How its server set up each table.
        source_id: Server id of the other cluster.
    """
    found: list[ShownChange] = []
    last: int | None = None
    for epoch in epochs:
        for applied in epoch.applied:
            primary = _as_primary(epoch, applied.group, setups) if applied.server_id == source_id else None
            if primary is None:
                continue
            if primary != (role is Role.PRIMARY):
                if last is None or role in (Role.NONE, Role.PASS) or applied.epoch <= last:
                    return []
                new = Role.PRIMARY if primary else Role.SECONDARY
                found.append(ShownChange(last, applied.epoch, role, new))
                role = new
            last = applied.epoch
    return found


def _as_primary(epoch: BinlogEpoch, group: int, setups: Mapping[str, TableSetup]) -> bool | None:
    """Return whether an epoch was applied by a primary; None if it changed no row that tells it."""
    silent = ConflictFlag.READ | (ConflictFlag.REFRESH if _refreshes_in_any_role(setups.values()) else ConflictFlag(0))
    flags = [
        change.flags
        for place, change in epoch.consequences
        if place == group and _tells(setups.get(change.table)) and not change.flags & silent
    ]
    return any(each & _OF_A_PRIMARY for each in flags) if flags else None


def _refreshes_in_any_role(setups: Iterable[TableSetup]) -> bool:
    """Whether a cluster refreshes rows of whole transactions in any role."""
    specs = [setup.function.spec for setup in setups if setup.function is not None]
    return any(spec.transactional and not spec.uses_role for spec in specs)


def _tells(setup: TableSetup | None) -> bool:
    """Whether changes of a table show the role; in one without a primary key, the primary reflects inserts alone."""
    return (
        setup is not None
        and setup.function is not None
        and setup.function.spec.uses_role
        and bool(setup.table.primary_key)
    )


def with_roles(applies: Sequence[EpochApply], changes: Sequence[RoleChange]) -> list[EpochApply]:
    """Return epoch applies with the roles in which they were made; the applier was started again after each change."""
    found: list[EpochApply] = []
    for apply in applies:
        role = next((each.role for each in reversed(changes) if each.after_epoch < apply.foreign_epoch), None)
        changed = role is not None and (not found or found[-1].role is not role)
        found.append(attrs.evolve(apply, role=apply.role or role, restarted=apply.restarted or changed))
    return found


def possible_changes(shown: Sequence[ShownChange], source: Sequence[int]) -> list[tuple[RoleChange, ...]]:
    """
    Return where the changes of a role can have been: after each epoch from the last of the old role on.

    Args:
        shown: What the binlog shows of them, in order.
        source: The epochs of the other cluster, in order.
    """
    ways = []
    for each in shown:
        between = [number for number in source if each.before < number < each.first]
        ways.append([RoleChange(number, each.new) for number in (each.before, *between)])
    return list(islice(product(*ways), MOST_PLACES))


Setups = Mapping[str, TableSetup]


class Mark(StrEnum):
    """Whether a row is marked as reflected; in words that follow what was done with it."""

    REFLECTED = "as reflected"
    NONE = "not as reflected"


def mark_of(flags: ConflictFlag) -> Mark | None:
    """Return the mark of a row that an applier changed; None if it shows nothing."""
    if flags & (ConflictFlag.REFRESH | ConflictFlag.READ):
        return None
    return Mark.REFLECTED if flags & ConflictFlag.REFLECTED else Mark.NONE


@attrs.frozen
class FittingMarks:
    """
    Which marks a role and a function allow.

    Attributes:
        refreshed: Whether a cluster may refresh rows in any role.
    """

    refreshed: bool

    @classmethod
    def of(cls, over_time: Iterable[Mapping[str, Iterable[TableSetup]]]) -> FittingMarks:
        """Return the rules of a run, by all setups that each cluster had."""
        return cls(any(_refreshes_in_any_role(chain.from_iterable(setups.values())) for setups in over_time))

    def marks(self, setups: Setups, table: str, role: Role) -> frozenset[Mark]:
        """Return the marks that a row may have that a cluster's applier changed, by its setups at that time."""
        setup = setups.get(table)
        if setup is None or not setup.deployed(role).marks_reflected:
            return frozenset({Mark.NONE})
        keyless = not setup.table.primary_key
        acted_on = any(link.child == table and link.acts for link in links_on(setups))
        return frozenset(Mark) if keyless or acted_on or self.refreshed else frozenset({Mark.REFLECTED})
