"""
What goals need to know of the past of a state, besides what the clusters hold, as numbers that names do not change.

Whether rows differ or an applier stops follows from the clusters. That a change is lost follows from who wrote what
after having seen what; that a row returns, from who deleted it after having seen which inserts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from conflict.rules.lost_updates import GONE, THERE
from conflict.whatif.diverging.scope import Goal, Scope
from conflict.whatif.diverging.state import BothStates, ClusterState, CommittedEntry, LoggedEpoch

# Of a row: whether it is there and that it is gone, its resolve column, and its data columns, which can be renamed.
Parts = tuple[int, ...]
NOTHING: Parts = ()


@attrs.frozen
class Past:
    """
    The past of one cluster as far as some goals need it.

    Attributes:
        rows: Of each row, what the goals need but parts of it.
        parts: Of each row, in which pending epoch its cluster wrote each part; 0 if it did not, or all have seen it.
        log: Of each pending epoch, whether the other cluster took it before; of each of its operations, its row, and
            which parts of it there it had not seen.
    """

    rows: Sequence[tuple[int, ...]]
    parts: Sequence[Parts]
    log: Sequence[tuple[bool, Sequence[tuple[int, Parts]]]]


def flags(state: BothStates, goals: Collection[Goal]) -> tuple[bool, ...]:
    """Return what happened so far that decides about a goal."""
    if Goal.COUNTERS not in goals or (state.lost and state.counted):
        return (Goal.COUNTERS in goals,)
    return state.lost, state.counted


def needs_authors(state: BothStates, goals: Collection[Goal]) -> bool:
    """Whether it matters who wrote what: not once something was lost."""
    return not state.lost and (Goal.LOST in goals or Goal.COUNTERS in goals)


def past_of(
    state: BothStates, number: int, pending: Sequence[LoggedEpoch], goals: Collection[Goal], scope: Scope
) -> Past:
    """
    Return the past of a cluster.

    Args:
        state: Both clusters.
        number: The cluster.
        pending: Its epochs that the other cluster can still take, the open one last.
        goals: What is looked for.
        scope: The scope.
    """
    side, other = state.sides[number], state.sides[1 - number]
    rows = [
        (key in state.gone, _pending(side.inserted.get(key, 0), pending, other)) if Goal.RETURNS in goals else ()
        for key in scope.keys
    ]
    if not needs_authors(state, goals):
        return Past(rows, [NOTHING] * len(rows), [])
    parts = [
        tuple(_pending(epoch, pending, other) for epoch in _epochs(state, number, key, scope)) for key in scope.keys
    ]
    log = [
        (
            scope.outages > 0 and epoch.number <= other.reached,
            [(entry.change[1], _unseen(state, number, entry, scope)) for entry in epoch.entries],
        )
        for epoch in pending
    ]
    return Past(rows, parts, log)


def _pending(epoch: int, pending: Sequence[LoggedEpoch], other: ClusterState) -> int:
    """Return which of the pending epochs one is, from 1; 0 if the other cluster has it."""
    return 0 if epoch <= other.reached else 1 + sum(each.number < epoch for each in pending)


def _epochs(state: BothStates, number: int, key: bytes, scope: Scope) -> list[int]:
    """Return in which epoch users of a cluster wrote each part of a row last; 0 if others did."""
    authors = state.sides[number].authors.get(key, {})
    made = [state.made[authors[part]] if part in authors else None for part in _parts(scope)]
    return [each.epoch if each is not None and each.side == number else 0 for each in made]


def _unseen(state: BothStates, number: int, entry: CommittedEntry, scope: Scope) -> Parts:
    """Return which parts of its row on the other cluster an operation had not seen when it was committed."""
    by = entry.logged.change.transaction_id
    if entry.logged.ordinal < 0 or by is None:
        return NOTHING
    seen = state.made[by].seen
    return tuple(int(epoch > seen) for epoch in _epochs(state, 1 - number, entry.logged.change.key, scope))


def _parts(scope: Scope) -> tuple[int, ...]:
    return (THERE, GONE, *range(1, scope.first_data_column + scope.columns))
