"""
Several readings of binlogs that do not say which epochs an applier took. Computes docs/result.md, "Readings".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from conflict.results.model import Outcome, Resolution
from conflict.results.summary import RunSummary

__all__ = ["is_same_result", "reading_path", "with_readings"]


def reading_path(number: int) -> str:
    """Return the folder of a further reading below the result; the first is the result itself."""
    return f"readings/{number}"


def is_same_result(first: Resolution, second: Resolution) -> bool:
    """Whether two results have the same rows, exceptions rows, counters and stops."""
    return all(
        (mine.rows, mine.exceptions, mine.counters, mine.stop)
        == (theirs.rows, theirs.exceptions, theirs.counters, theirs.stop)
        for mine, theirs in ((first.clusters[name], second.clusters[name]) for name in first.clusters)
    )


def with_readings(summary: RunSummary, first: Resolution, others: Sequence[Resolution]) -> RunSummary:
    """Return the figures of a reading with what other ones leave open: more open decisions, wider ranges."""
    ranges = {name: dict(each) for name, each in summary.counter_ranges.items()}
    undecided = dict(summary.undecided)
    for name, result in first.clusters.items():
        for counter, value in result.counters.items():
            values = [each.clusters[name].counters[counter] for each in others]
            least, most = ranges.get(name, {}).get(counter, (value, value))
            if min(values, default=value) < least or max(values, default=value) > most:
                ranges.setdefault(name, {})[counter] = (min(least, *values), max(most, *values))
        mine = dict(_decisions(first, name))
        theirs = [dict(_decisions(each, name)) for each in others]
        open_here = sum(any(each.get(place) != decision for each in theirs) for place, decision in mine.items())
        if open_here:
            undecided[name] = undecided.get(name, 0) + open_here
    return attrs.evolve(summary, counter_ranges=ranges, undecided=undecided)


def _decisions(resolution: Resolution, applier: str) -> Iterator[tuple[object, object]]:
    """Yield the place of each operation that a source itself made, and its decision."""
    outcomes: Sequence[Outcome] = resolution.outcomes
    for each in outcomes:
        if each.applier == applier and each.ordinal >= 0:
            yield (each.source, each.source_epoch, each.ordinal), (each.verdict, each.cause)
