"""
Rounds of folding, until it is known which transactions are in conflict and where appliers stop.

One task per bucket and round; the driver keeps transactions in conflict alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

from conflict.history import Cluster
from conflict.kernels.arrays import Bool, Conflicts, TakeArrays
from conflict.plan import plan_takes, without_takes_after
from conflict.transactions import Findings, InConflict, close_over_dependencies, conflicts_of
from conflict.unusable import Unusable

__all__ = ["Settled", "settle"]

# Runs one round over all buckets; its number, the takes, the conflicts known, the takes whose dependencies are wanted.
Round = Callable[[int, TakeArrays, Conflicts, Bool], Sequence[Findings]]
# Returns, per cluster, the first operation that cannot be committed.
Check = Callable[[TakeArrays, Conflicts], Mapping[int, Unusable]]


@attrs.frozen
class Settled:
    """
    What the rounds come to.

    Attributes:
        takes: All takes that are made.
        conflicts: The transactions in conflict.
        unusable: Per site, the operation that stops its applier.
    """

    takes: TakeArrays
    conflicts: Conflicts
    unusable: Mapping[str, Unusable]


def settle(
    clusters: Sequence[Cluster], limits: Mapping[str, Unusable], run_round: Round, check: Check | None = None
) -> Settled:
    """
    Fold in rounds until nothing changes.

    Args:
        clusters: The two clusters, with their takes.
        limits: Per site, an operation that stops its applier unless an earlier one does.
        run_round: Folds all buckets once.
        check: Looks for stops that the commit of a take makes, once the conflicts are known; None if there can be none.
    """
    names = [cluster.name for cluster in clusters]
    # The take of a limit stays in until something of it, or of an earlier one, is found to be the stop.
    kept = {name: unusable.take + 1 for name, unusable in limits.items()}
    stops: dict[str, Unusable] = {}
    in_conflict: InConflict = frozenset()
    asked: frozenset[tuple[int, int]] = frozenset()
    number = 0
    while True:
        takes = plan_takes([without_takes_after(cluster, kept.get(cluster.name)) for cluster in clusters])
        settled = False
        while not settled:
            number += 1
            wanted = _marked(takes, asked)
            conflicts = conflicts_of(takes, in_conflict)
            findings = run_round(number, takes, conflicts, wanted)
            found = _close(takes, findings)
            needed = frozenset(_places(takes, {take for each in findings for take in each.conflicting[:, 0].tolist()}))
            settled = found == in_conflict and needed <= asked
            in_conflict, asked = found, asked | needed
        unusable = [item for each in findings for item in each.unusable.items()]
        if check is not None:
            unusable += [(names[side], each) for side, each in check(takes, conflicts).items()]
        earliest = _earliest(takes, names, unusable)
        if earliest is None:
            return Settled(takes, conflicts, stops)
        name, stop = earliest
        stops[name], kept[name] = stop, stop.take
        side = names.index(name)
        in_conflict = frozenset(each for each in in_conflict if each[0] != side or each[1] < stop.take)
        asked = frozenset(each for each in asked if each[0] != side or each[1] < stop.take)


def _places(takes: TakeArrays, numbers: set[int]) -> list[tuple[int, int]]:
    return [(int(takes.applier[take]), int(takes.number[take])) for take in numbers]


def _marked(takes: TakeArrays, asked: frozenset[tuple[int, int]]) -> Bool:
    places = zip(takes.applier.tolist(), takes.number.tolist(), strict=True)
    return np.array([place in asked for place in places], np.bool_)


def _close(takes: TakeArrays, findings: Sequence[Findings]) -> InConflict:
    conflicting = {(take, group) for each in findings for take, group in each.conflicting.tolist()}
    dependencies = {tuple(pair) for each in findings for pair in each.dependencies.tolist()}
    closed = close_over_dependencies(conflicting, dependencies)
    return frozenset((int(takes.applier[take]), int(takes.number[take]), group) for take, group in closed)


def _earliest(
    takes: TakeArrays, names: Sequence[str], found: Sequence[tuple[str, Unusable]]
) -> tuple[str, Unusable] | None:
    """Return the first stop in the order of all takes; nothing before it can change any more."""
    order = {
        (names[applier], number): take
        for take, (applier, number) in enumerate(zip(takes.applier.tolist(), takes.number.tolist(), strict=True))
    }
    return min(found, key=lambda item: (order[item[0], item[1].take], item[1]), default=None)
