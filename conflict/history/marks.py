"""
How an applier marks the rows that it changes, and which role and function that shows.

The primary of NDB$EPOCH2 and NDB$EPOCH2_TRANS marks them as reflected; in a table without a primary key, inserts alone.
No other role or function does. Refreshes and reads show nothing here. Nor does it show anything that a row is not
marked which something else may have changed: a foreign key that acts, or a refresh that a secondary made for the
function of another table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import chain

import attrs

from conflict.history.role_changes import refreshes_in_any_role
from conflict.rules.foreign_keys import links_on
from conflict.rules.roles import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.extra_row_info import ConflictFlag

__all__ = ["FittingMarks", "Mark", "mark_of"]

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
        return cls(any(refreshes_in_any_role(chain.from_iterable(setups.values())) for setups in over_time))

    def marks(self, setups: Setups, table: str, role: Role) -> frozenset[Mark]:
        """Return the marks that a row may have that a cluster's applier changed, by its setups at that time."""
        setup = setups.get(table)
        if setup is None or setup.function is None or not setup.function.spec.uses_role or role is not Role.PRIMARY:
            return frozenset({Mark.NONE})
        keyless = not setup.table.primary_key
        acted_on = any(link.child == table and link.acts for link in links_on(setups))
        return frozenset(Mark) if keyless or acted_on or self.refreshed else frozenset({Mark.REFLECTED})
