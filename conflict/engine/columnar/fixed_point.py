"""
Which transactions are in conflict, and where appliers stop: folds all buckets in rounds until nothing changes.

One round:

1. Fold: every bucket decides its rows, with the transactions that are known to be in conflict rejected. It reports
   which transactions have a conflict of their own, and which depend on which (see
   `conflict.engine.columnar.bucket_round`).
2. Close over dependencies: a transaction that depends on one in conflict is in conflict too. Only epoch applies with
   new findings are closed again.
3. Repeat, unless the transactions in conflict are the ones that the round folded with.

The decisions of an epoch apply depend on earlier epoch applies and on that epoch apply alone. So every round makes at
least one more epoch apply right, and the fixed point is the one answer that a sequential applier gives. Computes
docs/functions.md, "Functions that judge transactions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

from conflict.engine.columnar.applier_stops import StoppingOperation
from conflict.engine.columnar.boundary import Boundary
from conflict.engine.columnar.bucket_round import Changed, Findings, changed_transactions
from conflict.engine.columnar.order import ApplierEpochs, order_applies
from conflict.engine.kernels.arrays import Bool, Conflicts, EpochApplies, Int32, Int64
from conflict.engine.kernels.dependencies import reachable
from conflict.engine.ledger.summary import RoundFigures

# A group of an epoch takes the low half of a code; groups start at -1.
_GROUP_BITS, _LOWEST_GROUP = 32, -1


@attrs.frozen(eq=False)
class Round:
    """
    What a round folds.

    Attributes:
        number: Its number, from 1.
        applies: All epoch applies in order.
        conflicts: Transactions in conflict, as far as they are known.
        changed: Those that the round before added or removed; None to fold all rows of all buckets.
        whole: Per bucket, whether all its rows are folded.
    """

    number: int
    applies: EpochApplies
    conflicts: Conflicts
    changed: Changed | None
    whole: Sequence[bool]

    @property
    def name(self) -> str:
        """What a progress display calls it."""
        return f"round {self.number}" + ("" if self.changed is None else f" ({len(self.changed):,})")


# Folds all buckets once.
RunRound = Callable[[Round], Sequence[Findings]]
# Orders the epoch applies of both appliers, given with the names of the clusters; see `order_applies`.
Order = Callable[[Sequence[ApplierEpochs], Sequence[str]], EpochApplies]
# Returns, per cluster number, the first operation that cannot be committed.
Check = Callable[[EpochApplies, Conflicts], Mapping[int, StoppingOperation]]


@attrs.frozen
class FixedPoint:
    """
    The epoch applies of a run, and the transactions in conflict.

    Attributes:
        applies: All epoch applies up to the stops, in order.
        conflicts: The transactions in conflict.
        stopping: Per cluster, the operation that stops its applier.
        rounds: Figures of the rounds.
    """

    applies: EpochApplies
    conflicts: Conflicts
    stopping: Mapping[str, StoppingOperation]
    rounds: tuple[RoundFigures, ...] = ()


def find_fixed_point(
    applied: Sequence[ApplierEpochs],
    names: Sequence[str],
    buckets: int,
    run_round: RunRound,
    check: Check | None = None,
    decided: Boundary | None = None,
    order: Order = order_applies,
) -> FixedPoint:
    """
    Fold in rounds until nothing changes; where an applier stops, leave out the rest of its epochs and start again.

    Args:
        applied: Per cluster, the epochs that its applier applies.
        names: Names of the clusters.
        buckets: Number of buckets.
        run_round: Folds all buckets once.
        check: Looks for operations that stop an applier at its commit, once the conflicts are known; None if there can
            be none.
        decided: Up to where the transactions in conflict are known; None if none are.
        order: Orders the epoch applies.
    """
    stops: dict[str, StoppingOperation] = {}
    rounds: list[RoundFigures] = []
    while True:
        applies = _order_up_to(applied, names, stops, order)
        conflicts, stopping = _find_conflicts(applies, buckets, run_round, rounds, decided)
        if check is not None:
            stopping += [(names[side], each) for side, each in check(applies, conflicts).items()]
        if not stopping:
            return FixedPoint(applies, conflicts, stops, tuple(rounds))
        name, stop = _earliest(applies, names, stopping)
        stops[name] = stop


def without_rounds(
    applied: Sequence[ApplierEpochs],
    names: Sequence[str],
    stops: Mapping[str, StoppingOperation],
    order: Order = order_applies,
) -> FixedPoint:
    """Return the fixed point where no transaction can be in conflict; arguments as for `find_fixed_point`."""
    applies = _order_up_to(applied, names, stops, order)
    return FixedPoint(applies, conflicts_of(applies, np.zeros((0, 2), np.int64)), stops)


def _order_up_to(
    applied: Sequence[ApplierEpochs], names: Sequence[str], stops: Mapping[str, StoppingOperation], order: Order
) -> EpochApplies:
    """Order the epoch applies before the stops."""
    kept = [each.first(stops[name].apply if name in stops else None) for name, each in zip(names, applied, strict=True)]
    return order(kept, names)


def _find_conflicts(
    applies: EpochApplies,
    buckets: int,
    run_round: RunRound,
    rounds: list[RoundFigures],
    decided: Boundary | None,
) -> tuple[Conflicts, list[tuple[str, StoppingOperation]]]:
    """Return the transactions in conflict, and operations that stop appliers given these; append to `rounds`."""
    known = [_BucketFindings() for _ in range(buckets)]
    # As epoch apply and group.
    transactions = np.zeros((0, 2), np.int64) if decided is None else decided.conflicts_in(applies)
    open_ones = np.ones(len(applies), np.bool_) if decided is None else decided.later(applies)
    conflicts = conflicts_of(applies, transactions)
    changed = None
    while changed is None or len(changed):
        whole = [bool(bucket.stopping) for bucket in known]
        findings = run_round(Round(len(rounds) + 1, applies, conflicts, changed, whole))
        touched = np.zeros(len(applies), np.bool_)
        for bucket, new in zip(known, findings, strict=True):
            bucket.update(new, touched)
        before, transactions = transactions, _close_again(transactions, touched & open_ones, known)
        difference = np.setxor1d(_codes(transactions), _codes(before), assume_unique=True)
        counted = int(open_ones[transactions[:, 0]].sum())
        rounds.append(RoundFigures(sum(each.rows for each in findings), counted, len(difference)))
        conflicts, changed = conflicts_of(applies, transactions), changed_transactions(applies, _pairs(difference))
    return conflicts, [item for bucket in known for item in bucket.stopping.items()]


@attrs.define
class _BucketFindings:
    """The latest findings about every row of one bucket (see `Findings`)."""

    conflicting: Int32 = attrs.field(factory=lambda: np.zeros((0, 3), np.int32))
    dependencies: Int32 = attrs.field(factory=lambda: np.zeros((0, 4), np.int32))
    stopping: dict[str, StoppingOperation] = attrs.field(factory=dict)

    def update(self, new: Findings, touched: Bool) -> None:
        """Replace the findings about the rows that were folded; mark the epoch applies of old and new ones."""
        for name in ("conflicting", "dependencies"):
            before, after = getattr(self, name), getattr(new, name)
            stays = np.zeros(len(before), np.bool_)
            if new.keys is not None and len(before):
                folded = np.zeros(int(max(before[:, 0].max(), new.keys.max(initial=0))) + 1, np.bool_)
                folded[new.keys] = True
                stays = ~folded[before[:, 0]]
            touched[before[~stays, 1]] = True
            touched[after[:, 1]] = True
            setattr(self, name, np.concatenate([before[stays], after]))
        self.stopping = new.stopping


def _close_again(transactions: Int64, touched: Bool, known: Sequence[_BucketFindings]) -> Int64:
    """
    Return the transactions in conflict, closed again for some epoch applies.

    Args:
        transactions: Those of the round before, as epoch apply and group. Shape (transactions, 2).
        touched: Epoch applies with new findings. Shape (applies,).
        known: The findings of all buckets.
    """
    conflicting = np.concatenate([each.conflicting[touched[each.conflicting[:, 1]], 1:] for each in known])
    with_conflict = np.zeros(len(touched), np.bool_)
    with_conflict[conflicting[:, 0]] = True
    dependencies = np.concatenate([each.dependencies[with_conflict[each.dependencies[:, 1]], 1:] for each in known])
    both = np.concatenate([transactions[~touched[transactions[:, 0]]], in_conflict(conflicting, dependencies)])
    return both[np.argsort(_codes(both), kind="stable")]


def in_conflict(conflicting: Int32, dependencies: Int32) -> Int64:
    """
    Return the transactions in conflict: those with a conflict of their own, and all that depend on them.

    Args:
        conflicting: Epoch apply and group. Shape (transactions, 2).
        dependencies: Epoch apply, group, and a group that depends on it. Shape (pairs, 3).

    Returns:
        Epoch apply and group, sorted. Shape (transactions, 2).
    """
    own = np.unique(_codes(conflicting.astype(np.int64)))
    links = dependencies.astype(np.int64)
    before, after = _codes(links[:, [0, 1]]), _codes(links[:, [0, 2]])
    codes, numbers = np.unique(np.concatenate([own, before, after]), return_inverse=True)
    first, second = numbers[len(own) : len(own) + len(links)], numbers[len(own) + len(links) :]
    order = np.argsort(first, kind="stable")
    offsets = np.searchsorted(first[order], np.arange(len(codes) + 1))
    return _pairs(codes[reachable(numbers[: len(own)], offsets, second[order], len(codes))])


def _codes(pairs: Int64) -> Int64:
    """Return (epoch apply, group) as one number each, in the same order."""
    return np.asarray((pairs[:, 0] << _GROUP_BITS) + pairs[:, 1] - _LOWEST_GROUP)


def _pairs(codes: Int64) -> Int64:
    """Return the pairs of `_codes`. Shape (codes, 2)."""
    return np.stack([codes >> _GROUP_BITS, (codes & ((1 << _GROUP_BITS) - 1)) + _LOWEST_GROUP], axis=1)


def conflicts_of(applies: EpochApplies, transactions: Int64) -> Conflicts:
    """Return transactions in conflict, epoch apply and group, sorted, in the form that the kernels read."""
    if not len(transactions):
        return Conflicts(np.broadcast_to(np.int64(0), len(applies) + 1), np.zeros(0, np.int32))
    offsets = np.zeros(len(applies) + 1, np.int64)
    np.cumsum(np.bincount(transactions[:, 0], minlength=len(applies)), out=offsets[1:])
    return Conflicts(offsets, transactions[:, 1].astype(np.int32))


def _earliest(
    applies: EpochApplies, names: Sequence[str], stopping: Sequence[tuple[str, StoppingOperation]]
) -> tuple[str, StoppingOperation]:
    """Return the first stop in the order of all epoch applies: nothing before it can change any more."""

    def place(name: str, number: int) -> int:
        mine = (applies.applier == names.index(name)) & (applies.number == number)
        return int(np.flatnonzero(mine)[0])

    return min(stopping, key=lambda item: (place(item[0], item[1].apply), item[1]))
