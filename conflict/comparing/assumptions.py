"""
What a comparison takes for granted, and which of its figures that can change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conflict.results.run_document import ResolvedRun
from conflict.rules.counters import COUNTED_AGAIN, DELETE_DELETE, TRANSACTION_ROW_CONFLICTS
from conflict.rules.functions import FUNCTIONS
from conflict.shown_text import counted

__all__ = ["assumptions", "open_figures"]

Ranges = Mapping[str, tuple[int, int]]
# Counters that do not say how many operations are rejected: functions that judge transactions also reject operations
# that were in no conflict themselves, and count those elsewhere (docs/functions.md, "Counters").
_NO_REJECTIONS = {
    *(spec.counter for spec in FUNCTIONS if spec.transactional),
    *(TRANSACTION_ROW_CONFLICTS, DELETE_DELETE, *COUNTED_AGAIN),
}


def assumptions(resolved: ResolvedRun) -> Iterator[str]:
    """Yield what was assumed of the run as it is configured: places of epochs, and decisions that are open."""
    for name, epochs in resolved.assumed.items():
        if epochs:
            yield (
                f"{counted(epochs, 'epoch')} left no trace in the binlog of {name}; the first possible place is taken, "
                "which can count under functions that apply their changes."
            )
    summary = resolved.summary
    for name, decisions in summary.undecided.items():
        if decisions:
            ranges = {} if summary.contradicted else summary.counter_ranges.get(name, {})
            found = open_figures(summary.counters.get(name, {}), ranges)
            yield f"The binlogs leave open how {name} judged {counted(decisions, 'operation')}{found}."


def open_figures(counters: Mapping[str, int], ranges: Ranges) -> str:
    """
    Return which figures of the configured functions depend on open decisions, after “judged 41 operations”.

    Args:
        counters: The counters of an applier as they were counted.
        ranges: Least and greatest value of each counter that depends on open decisions.
    """
    if not ranges:
        return "; its figures under the configured functions are those of one of the possible answers"
    texts = [f"{name} ({least:,} to {most:,})" for name, (least, most) in ranges.items()]
    if ranges.keys() <= _NO_REJECTIONS:
        these = "this counter" if len(texts) == 1 else "these counters"
        return (
            f". Conflicts, lost updates and rows are the same either way; {these} of the configured functions can "
            f"differ: {', '.join(texts)}"
        )
    rejecting = {name: each for name, each in ranges.items() if name not in _NO_REJECTIONS}
    fewer = sum(counters.get(name, 0) - least for name, (least, _) in rejecting.items())
    more = sum(most - counters.get(name, 0) for name, (_, most) in rejecting.items())
    change = " or ".join([*([f"{fewer:,} fewer"] if fewer else []), *([f"{more:,} more"] if more else [])])
    return (
        f": under the configured functions conflicts, and lost updates with them, can be up to {change}; "
        f"counters: {', '.join(texts)}"
    )
