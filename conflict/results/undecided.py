"""
How far the decisions that the binlogs leave open can move the counters. Computes docs/result.md, "Open decisions".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from conflict.results.model import Undecided
from conflict.rules.counters import moved_counters
from conflict.rules.decision import Decision
from conflict.rules.functions import FunctionSpec
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import Operation

__all__ = ["counter_ranges", "counts_differ"]


def counts_differ(spec: FunctionSpec, operation: Operation, candidates: Iterable[Decision]) -> bool:
    """Whether several decisions move the counters differently."""
    return len({frozenset(moved_counters(spec, operation, candidate)) for candidate in candidates}) > 1


def counter_ranges(
    undecided: Iterable[Undecided], counters: Mapping[str, int], setups: Mapping[str, TableSetup]
) -> dict[str, tuple[int, int]]:
    """
    Return the lowest and highest value of every counter that depends on open decisions.

    Args:
        undecided: Open decisions of one applier.
        counters: Its counters with the decisions that were made.
        setups: Its setup of each table.
    """
    least: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for each in undecided:
        function = setups[each.table].function
        if function is None:
            continue
        now = moved_counters(function.spec, each.operation, each.decided)
        candidates = [moved_counters(function.spec, each.operation, candidate) for candidate in each.candidates]
        for counter in now.keys() | {name for candidate in candidates for name in candidate}:
            least[counter] += min(candidate[counter] for candidate in candidates) - now[counter]
            most[counter] += max(candidate[counter] for candidate in candidates) - now[counter]
    return {
        name: (counters[name] + least[name], counters[name] + most[name]) for name in sorted(least.keys() | most.keys())
    }
