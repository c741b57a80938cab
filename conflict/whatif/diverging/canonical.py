"""
One key for all states that are the same but for names: of rows, of data columns, of values, of epochs, of clusters.

Two states with one key have the same future, up to these names. What no rule looks at any more is left out: in which
epoch a row was changed once that epoch came back, epochs that both clusters have done with, who changed a row if the
function compares values.

What a rule of one's own reads (`Scope.reads`) belongs to the state as it is: values, times, sites and epochs that it
reads have no other names.
"""

from __future__ import annotations

import marshal
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from hashlib import blake2b
from itertools import permutations
from operator import itemgetter
from typing import Any

import attrs

from conflict.rules.decision import stored_precision
from conflict.rules.own_rule import Read
from conflict.whatif.diverging.past import Parts, Past, flags, past_of
from conflict.whatif.diverging.scope import Goal, Scope, Values
from conflict.whatif.diverging.state import NAME, BothStates, Change, ClusterState, LoggedEpoch, cells, seen_of

_KEY_BYTES = 16

Cells = tuple[int, ...] | None


_OF_THE_PAST = frozenset({Goal.LOST, Goal.RETURNS, Goal.COUNTERS})


@attrs.frozen
class _Epoch:
    """An epoch of a log: its changes, with which own epochs it brings back, and which own epoch it is, as classes."""

    changes: Sequence[Change]
    relayed: int
    number: int


@attrs.frozen
class _Cluster:
    """A cluster before names are given: per row its author, the class of its epoch, its columns; and its past."""

    rows: Sequence[tuple[tuple[int, ...], Cells]]
    log: Sequence[_Epoch]
    rest: tuple[int, ...]
    past: Past | None = None


def needs_past(goals: Collection[Goal]) -> frozenset[Goal]:
    """Return those of some goals that need to know more than what the clusters hold."""
    return _OF_THE_PAST.intersection(goals)


def state_key(state: BothStates, scope: Scope, goals: Collection[Goal] = ()) -> bytes:
    """
    Return the key of a state, 16 bytes.

    Args:
        state: The state.
        scope: Its scope.
        goals: Tell states apart by all that these goals need to know of the past.
    """
    past = needs_past(goals)
    clusters = [_cluster(state, number, scope, past) for number in (0, 1)]
    budget = len(state.made), state.outages, *(flags(state, past) if past else ())
    sides = [(0, 1), (1, 0)] if scope.symmetric else [(0, 1)]
    named = _renamings(scope.rows, scope.columns)[: 1 if Read.VALUES in scope.reads else None]  # the first renames none
    return min(
        _digest((budget, _named([clusters[side] for side in order], *names, scope)))
        for order in sides
        for names in named
    )


def _digest(numbers: Any) -> bytes:
    return blake2b(marshal.dumps(numbers, 2), digest_size=_KEY_BYTES).digest()


@cache
def _renamings(rows: int, columns: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return every way to rename rows and data columns; the first one leaves them as they are."""
    return [(row, column) for row in permutations(range(rows)) for column in permutations(range(columns))]


def _cluster(state: BothStates, number: int, scope: Scope, goals: Collection[Goal]) -> _Cluster:
    side, other = state.sides[number], state.sides[1 - number]
    own, theirs = _lasting(state, number, scope), _lasting(state, 1 - number, scope)
    thresholds = _thresholds(side, own, [*theirs, other.now]) if scope.learns[number] else []
    others = _thresholds(other, theirs, [*own, side.now]) if scope.learns[1 - number] else []
    log = [
        _Epoch(
            [entry.change for entry in epoch.entries],
            _class(epoch.relayed, other.known, others, scope) if scope.learns[1 - number] else 0,
            _class(epoch.number, side.known, thresholds, scope) if scope.learns[number] else 0,
        )
        for epoch in (*own, side.now)
    ]
    rest = (
        sum(each in own for each in side.log[: side.taken]),
        bool(side.now.groups) if any(scope.learns) else bool(side.now.entries),
        side.now.content and scope.learns[1 - number],
        side.stopped,
        side.epochs if scope.epochs is not None else 0,
        side.now.own and scope.epochs is not None,
        side.known if Read.EPOCHS in scope.reads else 0,
    )
    past = past_of(state, number, [*own, side.now], goals, scope) if goals else None
    return _Cluster(list(_rows(side, number, scope, thresholds)), log, tuple(map(int, rest)), past)


def _lasting(state: BothStates, number: int, scope: Scope) -> list[LoggedEpoch]:
    """Return the closed epochs that the other cluster can still take, and that can make a difference to it."""
    side = state.sides[number]
    left = side.log if state.outages < scope.outages else side.log[side.taken :]
    return [epoch for epoch in left if epoch.entries or scope.learns[1 - number]]


def _rows(
    side: ClusterState, number: int, scope: Scope, thresholds: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], Cells]]:
    bits = 0 if scope.parsed is None else scope.parsed.gci_bits
    with_author = scope.learns[number] or (scope.setups[number][NAME].function is not None and scope.by_epoch)
    with_author = with_author or Read.SITES in scope.reads
    for key in scope.keys:
        row = side.rows.get((NAME, key))
        if row is None:
            yield (), None
            continue
        dated = (row.local or Read.EPOCHS in scope.reads) and scope.learns[number]
        epoch = _class(stored_precision(row.epoch, bits), side.known, thresholds, scope) if dated else 0
        seen = () if row.by is None else seen_of(scope, row.by.site, row.by.committed)
        yield (int(with_author and row.local), epoch, *seen), cells(row, scope)


def _thresholds(side: ClusterState, own: Sequence[LoggedEpoch], arriving: Sequence[LoggedEpoch]) -> list[int]:
    """Return the epochs that a cluster can still learn to have come back."""
    news = {side.now.number, *(each.number for each in own), *(each.relayed for each in arriving)}
    return sorted(each for each in news if each > side.known)


def _class(epoch: int, known: int, thresholds: Sequence[int], scope: Scope) -> int:
    """Return an epoch as far as it matters: 0 if it came back, else by how much must come back before."""
    if Read.EPOCHS in scope.reads:
        return epoch
    return 0 if epoch <= known else 1 + sum(each < epoch for each in thresholds)


def _named(clusters: Sequence[_Cluster], rows: Sequence[int], columns: Sequence[int], scope: Scope) -> Any:
    """Return the state with rows and columns renamed, and values by the order in which they come."""
    first = scope.first_data_column - 1
    tags: dict[int, int] = {}
    own = scope.parsed is not None and scope.parsed.spec.own is not None
    compared = first == 1 and scope.values is Values.CLOCK and not own
    ranks = {x: rank for rank, x in enumerate(sorted(_compared_values(clusters)))} if compared else None

    def named(each: Cells) -> Cells:
        if each is None or Read.VALUES in scope.reads:
            return each
        found = [ranks[x] for x in each[:first]] if ranks is not None else list(each[:first])
        for column in columns[: len(each) - first]:
            value = each[first + column]
            found.append(value if value < 0 else tags.setdefault(value, len(tags)))
        return tuple(found)

    def change(each: Change) -> tuple[object, ...]:
        group, row, operation, flags, before, after, seen = each
        return group, rows[row], operation, flags, named(before), named(after), seen

    def parts(each: Parts) -> Parts:
        there = each[: 2 + first]
        return (*there, *(each[len(there) + column] for column in columns[: len(each) - len(there)]))

    def past(each: Past, order: Sequence[int]) -> object:
        """Return a past with rows and columns renamed; operations of an epoch stand row by row, as in `_ranked`."""
        log = tuple(
            (again, tuple((rows[row], parts(found)) for row, found in sorted(unseen, key=lambda pair: rows[pair[0]])))
            for again, unseen in each.log
        )
        return tuple((each.rows[row], parts(each.parts[row])) for row in order), log

    order = _inverse(rows)
    return tuple(
        (
            tuple((cluster.rows[row][0], named(cluster.rows[row][1])) for row in order),
            tuple(
                (_ranked([change(each) for each in epoch.changes]), epoch.relayed, epoch.number)
                for epoch in cluster.log
            ),
            cluster.rest,
            None if cluster.past is None else past(cluster.past, order),
        )
        for cluster in clusters
    )


def _inverse(names: Sequence[int]) -> list[int]:
    """Return which row has each new name, in order of the names."""
    return sorted(range(len(names)), key=names.__getitem__)


def _ranked(changes: Sequence[Any]) -> tuple[tuple[object, ...], ...]:
    """
    Return the changes of an epoch row by row, with their groups numbered from 0.

    Only the order of the changes of one row matters, and which groups changed it one after the other.
    """
    groups: dict[object, int] = {}
    by_row = sorted(changes, key=itemgetter(1))
    return tuple((groups.setdefault(each[0], len(groups)), *each[1:]) for each in by_row)


def _compared_values(clusters: Sequence[_Cluster]) -> set[int]:
    """Return all values of the resolve column."""
    images = [image for cluster in clusters for _, image in cluster.rows]
    images += [image for cluster in clusters for epoch in cluster.log for each in epoch.changes for image in each[4:6]]
    return {image[0] for image in images if image}
