"""
Which foreign epochs an applier took, where its binlog does not say it (`ndb_log_apply_status=OFF`).

The applier's NDB transactions are in its binlog all the same, and it took the epochs in order. So each of its groups is
matched with an epoch of the other cluster that changes all of its rows, later groups with later epochs. A matching
costs more the more rows it leaves unexplained; the best ones are *readings*, and the engine tells which of them hold.

An epoch that was found so never comes back to the other cluster, whose max replicated epoch does not rise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import accumulate, product

import attrs

from conflict.history.epochs import AppliedEpoch, BinlogEpoch
from conflict.history.timeline import RowChange
from ndb_formats.events.rows_event import ConflictFlag

# So many matchings of each applier are tried, and so many of both together.
MOST_MATCHINGS, MOST_READINGS = 6, 12
_SENT_ON = ConflictFlag.REFLECTED | ConflictFlag.REFRESH
# What a row of a group costs that the epoch did not change, or changed to other values, and a row of an epoch of which
# the group shows nothing, as of one that was rejected.
_STRANGE, _OTHER_VALUE, _NOT_SHOWN = 1000, 10, 1

Row = tuple[str, bytes]
Group = tuple[int, int]  # own epoch, group


@attrs.frozen
class _Effects:
    """What one epoch, or one group of an applier, does to rows: the changes of each."""

    rows: Mapping[Row, tuple[RowChange, ...]]

    @classmethod
    def of(cls, changes: Sequence[RowChange]) -> _Effects:
        """Return the effects of changes in order."""
        found: dict[Row, list[RowChange]] = {}
        for change in changes:
            found.setdefault((change.table, change.key), []).append(change)
        return cls({row: tuple(each) for row, each in found.items()})


@attrs.frozen
class _Matching:
    """A matching of the groups up to one of them, and what it costs."""

    cost: int
    epoch: int
    before: _Matching | None = None

    def epochs(self) -> list[int]:
        """Return the number among the source's epochs of each group's epoch."""
        found, here = [], self
        while True:
            found.append(here.epoch)
            if here.before is None:
                return found[::-1]
            here = here.before


def hides_epochs(applier: Sequence[BinlogEpoch]) -> bool:
    """Whether a binlog shows changes of the other cluster, and nowhere the epochs that they came with."""
    return any(epoch.consequences for epoch in applier) and not any(epoch.applied for epoch in applier)


def readings_by_content(
    epochs: Mapping[str, Sequence[BinlogEpoch]], server_ids: Mapping[str, int]
) -> list[dict[str, list[BinlogEpoch]]]:
    """
    Return the epochs of both clusters with the foreign epochs that were found, in each of the ways that fit best.

    Args:
        epochs: Per cluster, its own epochs.
        server_ids: Per cluster, its server id.

    Returns:
        The readings, those that leave the least unexplained first; one, which is the epochs as they are, if no binlog
        hides anything.
    """
    ways = {}
    for name, own in epochs.items():
        (other,) = (each for each in epochs if each != name)
        found = epochs_found(own, epochs[other]) if hides_epochs(own) else []
        ways[name] = [_with_epochs(own, each, server_ids[other]) for each in found] or [list(own)]
    chosen = sorted(product(*(range(len(each)) for each in ways.values())), key=sum)[:MOST_READINGS]
    return [{name: ways[name][at] for name, at in zip(ways, each, strict=True)} for each in chosen]


def epochs_found(applier: Sequence[BinlogEpoch], source: Sequence[BinlogEpoch]) -> list[dict[Group, int]]:
    """
    Return the foreign epoch of each group of an applier, in each of the ways that fit best; empty if none fits.

    Args:
        applier: Own epochs of the applying cluster.
        source: Own epochs of the other one.
    """
    groups = _groups(applier)
    made = [_Effects.of(_sent(epoch)) for epoch in source]
    left_out = [0, *accumulate(_NOT_SHOWN * len(each.rows) for each in made)]
    where: dict[Row, list[int]] = {}
    for number, each in enumerate(made):
        for row in each.rows:
            where.setdefault(row, []).append(number)
    last: list[_Matching] = []
    for position, (_, effects) in enumerate(groups):
        likely = [number for number in _candidates(effects, where) if number >= position]
        last = list(_next(last, effects, made, likely, left_out, first=position == 0))
    best = nsmallest(MOST_MATCHINGS, last, key=lambda each: each.cost - left_out[each.epoch + 1])
    places = [place for place, _ in groups]
    return [
        {place: source[number].number for place, number in zip(places, each.epochs(), strict=True)} for each in best
    ]


def _groups(applier: Sequence[BinlogEpoch]) -> list[tuple[Group, _Effects]]:
    """Return the groups of an applier in order, each with its effects."""
    found: dict[Group, list[RowChange]] = {}
    for epoch in applier:
        for group, change in epoch.consequences:
            found.setdefault((epoch.number, group), []).append(change)
    return [(place, _Effects.of(changes)) for place, changes in sorted(found.items())]


def _sent(epoch: BinlogEpoch) -> list[RowChange]:
    """Return what an epoch sends to the other cluster: its own changes, and what its applier logs for it."""
    own = [change for transaction in epoch.transactions for change in transaction.changes]
    return [*own, *(change for _, change in epoch.consequences if change.flags & _SENT_ON)]


def _candidates(effects: _Effects, where: Mapping[Row, Sequence[int]]) -> list[int]:
    """Return the epochs that change the most rows of a group."""
    counts = Counter(number for row in effects.rows for number in where.get(row, ()))
    most = max(counts.values(), default=0)
    return sorted(number for number, count in counts.items() if count == most)


def _next(
    last: Sequence[_Matching],
    effects: _Effects,
    made: Sequence[_Effects],
    likely: Sequence[int],
    left_out: Sequence[int],
    *,
    first: bool,
) -> Iterator[_Matching]:
    """Yield the best matchings with one more group; costs are without the epochs left out before the first group."""
    waiting = sorted(last, key=lambda each: each.epoch)
    best: list[_Matching] = []
    for number in likely:
        while waiting and waiting[0].epoch < number:
            best.append(waiting.pop(0))
        best = nsmallest(MOST_MATCHINGS, best, key=lambda each: each.cost - left_out[each.epoch + 1])
        cost = _cost(effects, made[number])
        if first:
            yield _Matching(cost + left_out[number], number)
        for each in best:
            between = left_out[number] - left_out[each.epoch + 1]
            yield _Matching(each.cost + between + cost, number, each)


def _cost(group: _Effects, epoch: _Effects) -> int:
    """Return what a group leaves unexplained if it is an epoch."""
    strange = sum(row not in epoch.rows for row in group.rows)
    other = sum(
        not any(_agree(shown[-1], change) for change in epoch.rows[row])
        for row, shown in group.rows.items()
        if row in epoch.rows and not shown[-1].flags & ConflictFlag.REFRESH
    )
    return _STRANGE * strange + _OTHER_VALUE * other + _NOT_SHOWN * len(epoch.rows.keys() - group.rows.keys())


def _agree(shown: RowChange, made: RowChange) -> bool:
    """Whether what an applier logged of a row may come from a change of it: no column has another value."""
    if shown.after is None or made.after is None:
        return shown.after is made.after
    ours = dict(zip(shown.after.present, shown.after.payloads, strict=True))
    theirs = dict(zip(made.after.present, made.after.payloads, strict=True))
    return all(ours[place] == theirs[place] for place in ours.keys() & theirs.keys())


def _with_epochs(own: Sequence[BinlogEpoch], found: Mapping[Group, int], server_id: int) -> list[BinlogEpoch]:
    """Return epochs with the foreign epochs that were found in them."""
    by_epoch: dict[int, list[AppliedEpoch]] = {}
    for (number, group), foreign in sorted(found.items()):
        by_epoch.setdefault(number, []).append(AppliedEpoch(group, server_id, foreign))
    return [attrs.evolve(epoch, applied=tuple(by_epoch.get(epoch.number, ()))) for epoch in own]
