"""
Dependencies between the transactions of one foreign epoch.

Source: MySQL manual, "NDB$EPOCH_TRANS": a transaction that touches a row which an earlier one touched depends on
that one, and is in conflict if that one is.
"""

from __future__ import annotations

import attrs

from conflict.reference.row_store import RowKey

__all__ = ["DependencyTracker"]


@attrs.define
class DependencyTracker:
    """
    The transactions of one foreign epoch, identified by their groups.

    Attributes:
        conflicting: Transactions with an operation in conflict.
    """

    conflicting: set[int] = attrs.field(factory=set)
    _last: dict[RowKey, int] = attrs.field(factory=dict)
    _dependents: dict[int, set[int]] = attrs.field(factory=dict)

    def touch(self, row: RowKey, transaction: int) -> None:
        """Note that a transaction touches a row, whatever the decision is; call in the order of the log."""
        previous = self._last.get(row, transaction)
        if previous != transaction:
            self._dependents.setdefault(previous, set()).add(transaction)
        self._last[row] = transaction

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
