"""
How far the decisions that the binlogs leave open can move the counters. Computes docs/result.md, "Open decisions".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from conflict.results.model import Undecided
from conflict.rules.counters import DELETE_DELETE, TRANSACTION_ROW_CONFLICTS
from conflict.rules.decision import Cause, Decision, Verdict
from conflict.rules.functions import FunctionSpec
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import Operation

__all__ = ["counter_ranges", "counts_differ", "decision_of", "decision_text", "moved_counters"]


def decision_text(decision: Decision) -> str:
    """Return the name of a decision in results: its cause if it has one, else its verdict."""
    return decision.cause.name if decision.cause else decision.verdict.name


def decision_of(text: str) -> Decision:
    """Return the decision of a name in results; the inverse of `decision_text`."""
    if text in Cause.__members__:
        return Decision(Verdict.REJECTED, Cause[text])
    return Decision(Verdict[text])


def moved_counters(spec: FunctionSpec, operation: Operation, decision: Decision | None) -> Counter[str]:
    """Return the counters that a decision on a row moves, and by how much; None moves none."""
    moved: Counter[str] = Counter()
    if decision is None or decision.verdict is not Verdict.REJECTED:
        return moved
    moved[spec.counter] = 1
    delete_delete = operation is Operation.DELETE_ROW and decision.cause is Cause.ROW_DOES_NOT_EXIST
    if spec.transactional and (not delete_delete or spec.delete_delete_conflicts):
        moved[TRANSACTION_ROW_CONFLICTS] = 1
    if spec.refreshes and delete_delete:
        moved[DELETE_DELETE] = 1
    return moved


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
