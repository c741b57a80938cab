"""
What the binlogs show of an applier's work, against what was found; and what may be concluded from a difference.

Two things no binlog tells. Whether an applier took the last epochs of the other cluster, if they left no trace. And
when it judged an epoch that it went over more than once: local transactions can come between the pass that finds
conflicts and the one that commits. Where the order of the binlog contradicts what the binlog shows, an
order that explains it is chosen among those that may have been, and that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import attrs

from conflict.history.causal_order import interleave
from conflict.history.effects import Effect
from conflict.history.model import Cluster, EpochApply, History, Transaction

__all__ = ["MAX_CONTRADICTIONS", "Contradiction", "Reading", "Settled", "contradictions", "settle"]

# (own epoch, group) -> row -> effect
Effects = Mapping[tuple[int, int], Mapping[tuple[str, bytes], Effect]]
# Each is one more run; an applier that was overtaken more often than this is not worth them.
MAX_CANDIDATES = 8
# So many differences do not come from an order; another function was in force.
MAX_CONTRADICTIONS = 200


@attrs.frozen(order=True)
class Contradiction:
    """
    A place in a cluster's binlog that shows something else of its applier than was found.

    Attributes:
        cluster: The cluster.
        epoch: Own epoch.
        group: Group in it.
        rows: How many rows differ.
        changed_at: Where the cluster itself changed one of those rows since the take before, as (epoch, group).
    """

    cluster: str
    epoch: int
    group: int
    rows: int
    changed_at: tuple[tuple[int, int], ...] = ()

    @property
    def place(self) -> tuple[str, int, int]:
        """Cluster, epoch and group."""
        return self.cluster, self.epoch, self.group


class Reading(StrEnum):
    """What was concluded."""

    NOT_APPLIED = "not taken"
    JUDGED_EARLIER = "judged earlier"


@attrs.frozen
class Settled:
    """
    A question that the binlogs leave open, and the answer that agrees with what they show.

    Attributes:
        cluster: Whose applier it is about.
        foreign_epoch: Epoch of the other cluster; the first one, if there are several.
        reading: The answer.
        candidates: How many answers there were to choose from.
        rows: On how many rows they differ.
    """

    cluster: str
    foreign_epoch: int
    reading: Reading
    candidates: int
    rows: int


Find = Callable[[Sequence[Cluster]], list[Contradiction]]


def settle(clusters: Sequence[Cluster], find: Find) -> tuple[list[Cluster], list[Settled]]:
    """
    Look for an order of takes that agrees with what the binlogs show.

    Nothing is chosen once a difference is left that no order explains: then other functions were in force
    when the binlogs were written, or they are not complete.

    Args:
        clusters: The clusters of a History; transactions may be left out.
        find: Resolves with these clusters and returns where the binlogs show something else, causes first.

    Returns:
        The clusters with their takes as they were, and what was chosen.
    """
    current, settled = list(clusters), list[Settled]()
    found = find(current)
    while 0 < len(found) <= MAX_CONTRADICTIONS:
        step = _not_applied(current, found, find) or _judged_earlier(current, found, find)
        if step is None:
            break
        current, found = step.clusters, step.found
        settled.append(step.answer)
    return current, settled


@attrs.frozen
class _Step:
    """An answer, the clusters that it makes, and what still differs with them."""

    answer: Settled
    clusters: list[Cluster]
    found: list[Contradiction]


def _not_applied(clusters: Sequence[Cluster], found: Sequence[Contradiction], find: Find) -> _Step | None:
    """An applier that took epochs at the end without a trace cannot have changed anything by it."""
    ends = {cluster.name: _without_trace(cluster) for cluster in clusters}
    places = {(name, apply.epoch, apply.group) for name, applies in ends.items() for apply in applies}
    if not all(each.place in places for each in found):
        return None
    first = found[0]
    dropped = next(apply for apply in ends[first.cluster] if (apply.epoch, apply.group) == (first.epoch, first.group))
    kept = [_up_to(cluster, dropped) if cluster.name == first.cluster else cluster for cluster in clusters]
    answer = Settled(first.cluster, dropped.foreign_epoch, Reading.NOT_APPLIED, 2, first.rows)
    return _Step(answer, kept, find(kept))


def _without_trace(cluster: Cluster) -> list[EpochApply]:
    """Return the takes after the last one that left a trace."""
    applies = [item for item in cluster.timeline if isinstance(item, EpochApply)]
    last = max((place for place, apply in enumerate(applies) if apply.traced), default=-1)
    return applies[last + 1 :]


def _up_to(cluster: Cluster, dropped: EpochApply) -> Cluster:
    """Return the cluster without a take and all takes after it."""
    place = cluster.timeline.index(dropped)
    kept = [item for item in cluster.timeline[place:] if isinstance(item, Transaction)]
    return attrs.evolve(cluster, timeline=(*cluster.timeline[:place], *kept))


def _judged_earlier(clusters: Sequence[Cluster], found: Sequence[Contradiction], find: Find) -> _Step | None:
    """Local changes may have come between the pass that found conflicts and the one that committed."""
    first = found[0]
    candidates = first.changed_at[-MAX_CANDIDATES:]
    for epoch, group in reversed(candidates):
        changed, apply = _with_judged(clusters, first, (epoch, group - 1))
        if apply is None or apply.judged is not None:
            return None
        left = find(changed)
        if first.place not in {each.place for each in left}:
            count = len(candidates) + 1
            answer = Settled(first.cluster, apply.foreign_epoch, Reading.JUDGED_EARLIER, count, first.rows)
            return _Step(answer, changed, left)
    return None


def _with_judged(
    clusters: Sequence[Cluster], where: Contradiction, judged: tuple[int, int]
) -> tuple[list[Cluster], EpochApply | None]:
    """Return the clusters with the take at a place judged earlier, and that take as it was."""
    found = None
    changed = []
    for cluster in clusters:
        timeline = list(cluster.timeline)
        for place, item in enumerate(timeline):
            here = (
                isinstance(item, EpochApply) and item.traced and (item.epoch, item.group) == (where.epoch, where.group)
            )
            if cluster.name == where.cluster and here:
                assert isinstance(item, EpochApply)
                found, timeline[place] = item, attrs.evolve(item, judged=judged)
        changed.append(attrs.evolve(cluster, timeline=tuple(timeline)))
    return changed, found


def contradictions(
    clusters: Sequence[Cluster], effects: Mapping[str, Effects], shown: Mapping[str, Effects]
) -> list[Contradiction]:
    """
    Return where binlogs show something else than was found, causes before what may follow from them.

    Args:
        clusters: The clusters, with their transactions.
        effects: Per cluster, what its applier was found to do.
        shown: Per cluster, what its binlog shows.
    """
    found = [
        contradiction
        for cluster in clusters
        for contradiction in _compare(cluster, effects[cluster.name], shown[cluster.name])
    ]
    order = {
        (cluster.name, item.epoch, item.group): place
        for place, (cluster, item) in enumerate(interleave(History(tuple(clusters), {})))
        if isinstance(item, EpochApply)
    }
    return sorted(found, key=lambda each: (order.get(each.place, len(order)), each))


def _compare(cluster: Cluster, effects: Effects, shown: Effects) -> Iterator[Contradiction]:
    for epoch, group in sorted(effects.keys() | shown.keys()):
        mine, theirs = effects.get((epoch, group), {}), shown.get((epoch, group), {})
        rows = {row for row in mine.keys() | theirs.keys() if mine.get(row) != theirs.get(row)}
        if rows:
            changed_at = tuple(_changes_since_last_apply(cluster, (epoch, group), rows))
            yield Contradiction(cluster.name, epoch, group, len(rows), changed_at)


def _changes_since_last_apply(
    cluster: Cluster, place: tuple[int, int], rows: Iterable[tuple[str, bytes]]
) -> list[tuple[int, int]]:
    """Return where the cluster itself changed one of some rows between the take before a place and that place."""
    wanted, found = set(rows), list[tuple[int, int]]()
    for item in cluster.timeline:
        if (item.epoch, item.group) >= place:
            arrived = item.arrived if isinstance(item, EpochApply) else (0, -1)
            return [each for each in found if each > arrived]
        if isinstance(item, EpochApply):
            found.clear()
        elif any((change.table, change.key) in wanted for change in item.changes):
            found.append((item.epoch, item.group))
    return []
