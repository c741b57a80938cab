"""
Dependencies between the transactions of one foreign epoch.

Source: MySQL manual, "NDB$EPOCH_TRANS": a transaction that touches a row which an earlier one touched depends on
that one, and is in conflict if that one is.
"""

from __future__ import annotations

from collections.abc import Hashable

import attrs

__all__ = ["DependencyTracker"]


@attrs.define
class DependencyTracker:
    """
    The transactions of one foreign epoch, identified by their groups.

    Attributes:
        conflicting: Transactions with an operation in conflict.
    """

    conflicting: set[int] = attrs.field(factory=set)
    _last: dict[Hashable, int] = attrs.field(factory=dict)
    _dependents: dict[int, set[int]] = attrs.field(factory=dict)

    def touch(self, row: Hashable, transaction: int) -> int | None:
        """
        Note that a transaction touches a row, whatever the decision is; call in the order of the log.

        Returns:
            The transaction on which it depends for that; None if it is the first one of the row, or was the last one.
        """
        previous = self._last.get(row, transaction)
        self._last[row] = transaction
        if previous == transaction:
            return None
        self._dependents.setdefault(previous, set()).add(transaction)
        return previous

    @property
    def pairs(self) -> frozenset[tuple[int, int]]:
        """The transactions of which one touched a row right after the other, the earlier one first."""
        return frozenset((before, after) for before, found in self._dependents.items() for after in found)

    def in_conflict(self) -> frozenset[int]:
        """Return the conflicting transactions, and all that depend on them, on those, and so on."""
        found: set[int] = set()
        waiting = list(self.conflicting)
        while waiting:
            transaction = waiting.pop()
            if transaction not in found:
                found.add(transaction)
                waiting += self._dependents.get(transaction, ())
        return frozenset(found)
