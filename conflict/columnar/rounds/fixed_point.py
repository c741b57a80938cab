"""
Rounds of folding, until it is known which transactions are in conflict and where appliers stop.

One task per bucket and round; the driver keeps what the buckets found of each row, and which transactions are in
conflict. After the first round a bucket folds only the rows of transactions about which the round before changed its
mind, and the driver closes only the takes over dependencies of which something was found anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

from conflict.columnar.applier_stops import StoppingOperation
from conflict.columnar.apply_order import ApplierEpochs, order_applies
from conflict.columnar.kernels.arrays import Bool, Conflicts, EpochApplies, Int32, Int64
from conflict.columnar.kernels.links import reach
from conflict.columnar.rounds.bucket_round import Changed, Findings, changed_places
from conflict.results.summary import RoundFigures

__all__ = ["FixedPoint", "conflicts_of", "find_fixed_point", "in_conflict"]

# Runs one round over all buckets: its number and name, the takes, the conflicts known, what the last round changed
# (None for a first round), and whether all of a bucket must be folded again.
Round = Callable[[int, str, EpochApplies, Conflicts, Changed | None, Sequence[bool]], Sequence[Findings]]
# Returns, per cluster, the first operation that cannot be committed.
Check = Callable[[EpochApplies, Conflicts], Mapping[int, StoppingOperation]]


@attrs.frozen
class FixedPoint:
    """
    What the rounds come to.

    Attributes:
        applies: All takes that are made.
        conflicts: The transactions in conflict.
        stopping: Per site, the operation that stops its applier.
        rounds: The rounds.
    """

    applies: EpochApplies
    conflicts: Conflicts
    stopping: Mapping[str, StoppingOperation]
    rounds: tuple[RoundFigures, ...] = ()


def find_fixed_point(
    applied: Sequence[ApplierEpochs], names: Sequence[str], buckets: int, run_round: Round, check: Check | None = None
) -> FixedPoint:
    """
    Fold in rounds until nothing changes.

    Args:
        applied: Per cluster, its takes.
        names: Names of the clusters.
        buckets: How many buckets there are.
        run_round: Folds all buckets once.
        check: Looks for stops that the commit of a take makes, once the conflicts are known; None if there can be none.
    """
    kept: dict[str, int] = {}
    stops: dict[str, StoppingOperation] = {}
    rounds: list[RoundFigures] = []
    while True:
        applies = order_applies([each.first(kept.get(name)) for name, each in zip(names, applied, strict=True)], names)
        known, stopping = _find_conflicts(applies, buckets, run_round, rounds)
        conflicts = conflicts_of(applies, known)
        if check is not None:
            stopping += [(names[side], each) for side, each in check(applies, conflicts).items()]
        earliest = _earliest(applies, names, stopping)
        if earliest is None:
            return FixedPoint(applies, conflicts, stops, tuple(rounds))
        name, stop = earliest
        stops[name], kept[name] = stop, stop.apply


def _find_conflicts(
    applies: EpochApplies, buckets: int, run_round: Round, rounds: list[RoundFigures]
) -> tuple[Int64, list[tuple[str, StoppingOperation]]]:
    """Return the transactions in conflict, and operations that stop appliers if these are right."""
    found = [_Found() for _ in range(buckets)]
    known = np.zeros((0, 2), np.int64)
    changed = None
    while changed is None or len(changed):
        number = len(rounds) + 1
        name = f"round {number}" if changed is None else f"round {number} ({len(changed):,})"
        whole = [bool(each.stopping) for each in found]
        findings = run_round(number, name, applies, conflicts_of(applies, known), changed, whole)
        touched = np.zeros(len(applies), np.bool_)
        for each, new in zip(found, findings, strict=True):
            each.add(new, touched)
        now = _close_again(known, touched, found)
        codes, old = _codes(now), _codes(known)
        difference = np.setxor1d(codes, old, assume_unique=True)
        rounds.append(RoundFigures(sum(each.rows for each in findings), len(codes), len(difference)))
        changed = changed_places(applies, _pairs(difference))
        known = now
    return known, [item for each in found for item in each.stopping.items()]


@attrs.define
class _Found:
    """What is known of one bucket's rows (see `Findings`)."""

    conflicting: Int32 = attrs.field(factory=lambda: np.zeros((0, 3), np.int32))
    dependencies: Int32 = attrs.field(factory=lambda: np.zeros((0, 4), np.int32))
    stopping: dict[str, StoppingOperation] = attrs.field(factory=dict)

    def add(self, new: Findings, touched: Bool) -> None:
        """Put what was found in place of what was known of the same rows; mark the takes that either is about."""
        for name in ("conflicting", "dependencies"):
            before, after = getattr(self, name), getattr(new, name)
            stays = np.zeros(len(before), np.bool_)
            if new.keys is not None and len(before):
                again = np.zeros(int(max(before[:, 0].max(), new.keys.max(initial=0))) + 1, np.bool_)
                again[new.keys] = True
                stays = ~again[before[:, 0]]
            touched[before[~stays, 1]] = True
            touched[after[:, 1]] = True
            setattr(self, name, np.concatenate([before[stays], after]))
        self.stopping = new.stopping


def _close_again(known: Int64, touched: Bool, found: Sequence[_Found]) -> Int64:
    """Return the transactions in conflict, worked out anew for the takes that something new is known of."""
    conflicting = np.concatenate([each.conflicting[touched[each.conflicting[:, 1]], 1:] for each in found])
    troubled = np.zeros(len(touched), np.bool_)
    troubled[conflicting[:, 0]] = True
    dependencies = np.concatenate([each.dependencies[troubled[each.dependencies[:, 1]], 1:] for each in found])
    closed = in_conflict(conflicting, dependencies)
    both = np.concatenate([known[~touched[known[:, 0]]], closed])
    return both[np.argsort(_codes(both), kind="stable")]


def _codes(pairs: Int64) -> Int64:
    """Return (take, group) as one number each; groups start at -1."""
    return np.asarray((pairs[:, 0] << 32) + pairs[:, 1] + 1)


def _pairs(codes: Int64) -> Int64:
    """Return what `_codes` was given."""
    return np.stack([codes >> 32, (codes & 0xFFFFFFFF) - 1], axis=1)


def in_conflict(conflicting: Int32, dependencies: Int32) -> Int64:
    """
    Return the transactions in conflict: those with a conflict of their own, and all that depend on them.

    Args:
        conflicting: Take and group. Shape (transactions, 2).
        dependencies: Take, group, and a group that depends on it. Shape (pairs, 3).

    Returns:
        Take and group, in order. Shape (transactions, 2).
    """
    own = np.unique(_codes(conflicting.astype(np.int64)))
    links = dependencies.astype(np.int64)
    before, after = _codes(links[:, [0, 1]]), _codes(links[:, [0, 2]])
    codes, numbers = np.unique(np.concatenate([own, before, after]), return_inverse=True)
    first, second = numbers[len(own) : len(own) + len(links)], numbers[len(own) + len(links) :]
    order = np.argsort(first, kind="stable")
    offsets = np.searchsorted(first[order], np.arange(len(codes) + 1))
    return _pairs(codes[reach(numbers[: len(own)], offsets, second[order], len(codes))])


def conflicts_of(applies: EpochApplies, pairs: Int64) -> Conflicts:
    """Return transactions in conflict, take and group in order, as the kernels read them."""
    offsets = np.append(0, np.cumsum(np.bincount(pairs[:, 0], minlength=len(applies))))
    return Conflicts(offsets, pairs[:, 1].astype(np.int32))


def _earliest(
    applies: EpochApplies, names: Sequence[str], found: Sequence[tuple[str, StoppingOperation]]
) -> tuple[str, StoppingOperation] | None:
    """Return the first stop in the order of all takes; nothing before it can change any more."""
    if not found:
        return None
    order = {
        (names[applier], number): apply
        for apply, (applier, number) in enumerate(zip(applies.applier.tolist(), applies.number.tolist(), strict=True))
    }
    return min(found, key=lambda item: (order[item[0], item[1].apply], item[1]))
