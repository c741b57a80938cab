"""
What servers show of conflicts beside what a result derived: all counters, and the rows that differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from conflict.operating.observing.counters import CounterPair, compared_counters
from conflict.operating.observing.exceptions_rows import RowDifference, compared_rows
from conflict.operating.observing.observed import Observed
from conflict.results.doubts import not_what_happened
from conflict.results.result import Result


@attrs.frozen
class Compared:
    """
    What servers show beside what a result derived.

    Attributes:
        counters: Each counter that is given, of every SQL node.
        rows: By cluster and exceptions table, how many rows the servers have, and the result.
        differences: The rows that differ.
        notes: What may explain what nothing else does.
    """

    counters: tuple[CounterPair, ...]
    rows: Mapping[tuple[str, str], tuple[int, int]]
    differences: tuple[RowDifference, ...]
    notes: tuple[str, ...] = ()

    @property
    def unexplained(self) -> int:
        """How many differences nothing explains."""
        return sum(each.is_unexplained for each in self.counters) + sum(not each.why for each in self.differences)

    def document(self) -> dict[str, Any]:
        """Return the same as a document."""
        return {
            "unexplained": self.unexplained,
            "counters": [attrs.asdict(each) for each in self.counters],
            "exceptions": [
                {"cluster": cluster, "table": table, "observed": observed, "derived": derived}
                for (cluster, table), (observed, derived) in self.rows.items()
            ],
            "rows": [attrs.asdict(each) for each in self.differences],
            "notes": list(self.notes),
        }


def compare_observed(result: Result, observed: Sequence[Observed]) -> Compared:
    """
    Return what servers show beside what a result derived.

    Raises:
        ConfigurationError: A column of the primary key of an exceptions table is missing.
    """
    counters = [pair for each in observed if each.counters is not None for pair in compared_counters(result, each)]
    seen = dict[tuple[str, str], dict[tuple[object, ...], Mapping[str, object]]]()
    for each in observed:
        for table, own in each.exceptions.items():  # all SQL nodes of a cluster have the same rows
            seen.setdefault((each.cluster, table), {}).update({tuple(row.values()): row for row in own})
    rows, differences = dict[tuple[str, str], tuple[int, int]](), list[RowDifference]()
    for (cluster, table), own_rows in seen.items():
        derived, found = compared_rows(result, cluster, table, [*own_rows.values()])
        rows[cluster, table] = len(own_rows), derived
        differences += found
    compared = Compared(tuple(counters), rows, tuple(differences))
    return attrs.evolve(compared, notes=tuple(_notes(result, compared)))


def _notes(result: Result, found: Compared) -> Iterator[str]:
    """Yield what may explain differences that nothing explains."""
    if not found.unexplained:
        return
    if not_what_happened(result.run):
        yield "The binlogs contradict the result, so what it derives is not what happened."
    pairs = [each for each in found.counters if each.is_unexplained]
    if pairs and all(each.observed > each.derived for each in pairs):
        yield (
            "Counters of the servers are higher: a server counts from its start on, maybe before the logs begin, and "
            "goes on after they end; and an applier that is set back counts again, which a log need not show."
        )
    if any(each.renumbered and not each.why for each in found.differences):
        yield "An applier that repeats an epoch, as after waiting for a lock, uses up numbers, which no binlog shows."
    if pairs and all(each.observed < each.derived for each in pairs):
        yield "Counters of the servers are lower: a server that was restarted counts anew."
