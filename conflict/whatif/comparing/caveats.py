"""
What speaks against a pair, what a comparison takes for granted, and which of its figures that can change.

A pair is advised against if no NDB server has its policy, or the manual says so in its format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from conflict.checking.deployment import Deployment, TableLogging
from conflict.checking.findings import Code
from conflict.checking.reasons import reasons_of
from conflict.config.arguments import DeploymentPolicy
from conflict.results.run_document import RunDocument
from conflict.rules.counters import COUNTED_AGAIN, DELETE_DELETE, TRANSACTION_ROW_CONFLICTS
from conflict.rules.functions import FUNCTIONS
from conflict.rules.table_setup import TableSetup
from conflict.telling.shown_text import counted
from conflict.whatif.comparing.figures import NOT_OFFERED
from conflict.whatif.comparing.pairs import Pair, function_on
from ndb_formats.rules.update_format import BINLOG_TYPES, effective_format


def caveat_of(pair: Pair, by_cluster: Mapping[str, Mapping[str, TableSetup]]) -> str | None:
    """Return what speaks against a pair; None if nothing does."""
    policy = pair.policy
    specs = policy.specs
    if not policy.configured and (not specs or not specs <= set(FUNCTIONS)):
        return NOT_OFFERED
    return next(_advice(pair, by_cluster), None)


def _advice(pair: Pair, by_cluster: Mapping[str, Mapping[str, TableSetup]]) -> Iterator[str]:
    """Yield what the manual says against a function on a table in the format in which the table is logged."""
    for cluster, setups in by_cluster.items():
        for name, setup in setups.items():
            setup = _tried(pair, cluster, name, setup)  # noqa: PLW2901  # as it is under the pair
            number = next((row.number for row in reversed(BINLOG_TYPES) if row.format == setup.format), None)
            if setup.function is None or number is None:
                continue
            deployment = Deployment(setup.function, setup.table, TableLogging(number))
            for reason in reasons_of(deployment, DeploymentPolicy.MANUAL):
                if reason.kind is Code.POLICY:
                    yield f"advised against: {reason.sentence.removesuffix('.')}"


def _tried(pair: Pair, cluster: str, table: str, setup: TableSetup) -> TableSetup:
    """Return a table with the function and the format of a pair, if it has a function."""
    wanted = setup.format if pair.binlog_type is None else effective_format(pair.binlog_type)
    function = setup.function if pair.policy.configured else function_on(cluster, pair.policy, table)
    return attrs.evolve(setup, function=function, format=wanted)


Ranges = Mapping[str, tuple[int, int]]
# Counters that do not say how many operations are rejected: functions that judge transactions also reject operations
# that were in no conflict themselves, and count those elsewhere (docs/functions.md, "Counters").
_NO_REJECTIONS = {
    *(spec.counter for spec in FUNCTIONS if spec.transactional),
    *(TRANSACTION_ROW_CONFLICTS, DELETE_DELETE, *COUNTED_AGAIN),
}


def assumptions(resolved: RunDocument) -> Iterator[str]:
    """Yield what was assumed of the run as it is configured: places of epochs, and decisions that are open."""
    for name, epochs in resolved.assumed.items():
        if epochs:
            yield (
                f"{counted(epochs, 'epoch')} left no trace in the binlog of {name}; the first possible place is taken, "
                "which can count under functions that apply their changes."
            )
    summary = resolved.summary
    for name, decisions in summary.undecided.items():
        if decisions and resolved.starts:
            yield (
                f"The binlogs leave open how {name} judged {counted(decisions, 'operation')}, those on rows from "
                "before the logs among them; where it is open when a row was judged, it was at the commit."
            )
        elif decisions:
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
