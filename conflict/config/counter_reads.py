"""
Counters of conflicts of a running server, read twice: whether it finds conflicts now.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from conflict.rules.counters import counts_conflicts


@attrs.frozen
class CounterReads:
    """
    The counters of conflicts of a server, at two moments.

    Attributes:
        first: By name, what it had counted since its start.
        second: The same, read again later.
        seconds: How much later.
    """

    first: Mapping[str, int]
    second: Mapping[str, int]
    seconds: float

    @classmethod
    def of(cls, first: Mapping[str, str], second: Mapping[str, str], seconds: float) -> CounterReads:
        """Return those of status variables that count conflicts."""
        return cls(conflict_counters(first), conflict_counters(second), seconds)

    @property
    def risen(self) -> dict[str, int]:
        """By name, how much the counters that rose did so."""
        rises = {name: value - self.first.get(name, 0) for name, value in self.second.items()}
        return {name: rise for name, rise in rises.items() if rise > 0}


def conflict_counters(status: Mapping[str, str]) -> dict[str, int]:
    """Return the status variables that count conflicts, and are not 0."""
    return {name: int(value) for name, value in status.items() if counts_conflicts(name) and int(value)}
