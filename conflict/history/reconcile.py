"""
What may be concluded where a binlog shows another effect of its applier's work than the engine derived.

Binlogs leave two things open. They do not say whether an applier applied the last epochs of the other cluster, if
those changed nothing. And they do not say when an applier judged an epoch that it went through more than once: local
transactions can commit between the pass that finds conflicts and the pass that commits. Where the order of the binlog
contradicts the effects in it, this module looks for a possible order that agrees with them. What it chose is reported
as an `Inference`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import attrs

from conflict.history.causal_order import interleave
from conflict.history.effects import Effect
from conflict.history.model import Cluster, EpochApply, History, Transaction

__all__ = ["MAX_CONTRADICTIONS", "Contradiction", "Explanation", "Inference", "contradictions", "infer"]

# (own epoch, group) -> row -> effect
Effects = Mapping[tuple[int, int], Mapping[tuple[str, bytes], Effect]]
# Each candidate is resolved once; an applier that was overtaken more often than this is not worth the time.
MAX_CANDIDATES = 8
# More contradictions than this do not come from an order; another function was in force.
MAX_CONTRADICTIONS = 200


@attrs.frozen(order=True)
class Contradiction:
    """
    A group of a binlog that shows other effects of its applier than were derived.

    Attributes:
        cluster: The cluster.
        epoch: Own epoch.
        group: Group in it.
        rows: How many rows differ.
        changed_at: Where the cluster itself changed one of those rows since the previous epoch apply, as
            (epoch, group), in order.
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


class Explanation(StrEnum):
    """Why a binlog and the derived effects differ."""

    NOT_APPLIED = "not applied"
    JUDGED_EARLIER = "judged earlier"


@attrs.frozen
class Inference:
    """
    The answer to a question that the binlogs leave open, which agrees with the effects that they show.

    Attributes:
        cluster: The cluster whose applier it is about.
        foreign_epoch: Epoch of the other cluster; the first one if there are several.
        explanation: The answer.
        candidates: From how many possible answers it was chosen.
        rows: How many rows contradicted the order of the binlog.
    """

    cluster: str
    foreign_epoch: int
    explanation: Explanation
    candidates: int
    rows: int


Find = Callable[[Sequence[Cluster]], list[Contradiction]]


def infer(clusters: Sequence[Cluster], find: Find) -> tuple[list[Cluster], list[Inference]]:
    """
    Look for an order of epoch applies that agrees with the effects in the binlogs.

    It stops at the first contradiction that no order explains. Such a contradiction means that other functions were in
    force when the binlogs were written, or that the binlogs are incomplete.

    Args:
        clusters: The clusters of a History; transactions may be left out.
        find: Resolves the History with these clusters and returns the contradictions, causes first.

    Returns:
        The clusters with the epoch applies that explain the binlogs, and the inferences that led to them.
    """
    current, inferences = list(clusters), list[Inference]()
    found = find(current)
    while 0 < len(found) <= MAX_CONTRADICTIONS:
        step = _not_applied(current, found, find) or _judged_earlier(current, found, find)
        if step is None:
            break
        current, found = step.clusters, step.remaining
        inferences.append(step.inference)
    return current, inferences


@attrs.frozen
class _Step:
    """An inference, the clusters that follow from it, and the contradictions that remain."""

    inference: Inference
    clusters: list[Cluster]
    remaining: list[Contradiction]


def _not_applied(clusters: Sequence[Cluster], found: Sequence[Contradiction], find: Find) -> _Step | None:
    """Drop untraced epoch applies at the end of a timeline: had they changed a row, the binlog would show them."""
    ends = {cluster.name: _untraced_end(cluster) for cluster in clusters}
    places = {(name, apply.epoch, apply.group) for name, applies in ends.items() for apply in applies}
    if not all(each.place in places for each in found):
        return None
    first = found[0]
    dropped = next(apply for apply in ends[first.cluster] if (apply.epoch, apply.group) == (first.epoch, first.group))
    kept = [_before(cluster, dropped) if cluster.name == first.cluster else cluster for cluster in clusters]
    inference = Inference(first.cluster, dropped.foreign_epoch, Explanation.NOT_APPLIED, 2, first.rows)
    return _Step(inference, kept, find(kept))


def _untraced_end(cluster: Cluster) -> list[EpochApply]:
    """Return the epoch applies after the last traced one."""
    applies = [item for item in cluster.timeline if isinstance(item, EpochApply)]
    last = max((place for place, apply in enumerate(applies) if apply.traced), default=-1)
    return applies[last + 1 :]


def _before(cluster: Cluster, dropped: EpochApply) -> Cluster:
    """Return the cluster without an epoch apply and all epoch applies after it."""
    place = cluster.timeline.index(dropped)
    kept = [item for item in cluster.timeline[place:] if not isinstance(item, EpochApply)]
    return attrs.evolve(cluster, timeline=(*cluster.timeline[:place], *kept))


def _judged_earlier(clusters: Sequence[Cluster], found: Sequence[Contradiction], find: Find) -> _Step | None:
    """Let the epoch be judged before one of the local changes of its rows; try the latest moment first."""
    first = found[0]
    candidates = first.changed_at[-MAX_CANDIDATES:]
    for epoch, group in reversed(candidates):
        changed, apply = _with_judged(clusters, first, (epoch, group - 1))
        if apply is None or apply.judged is not None:
            return None
        remaining = find(changed)
        if first.place not in {each.place for each in remaining}:
            # After all of these changes, which the binlog contradicts, is a candidate too.
            count = len(candidates) + 1
            inference = Inference(first.cluster, apply.foreign_epoch, Explanation.JUDGED_EARLIER, count, first.rows)
            return _Step(inference, changed, remaining)
    return None


def _with_judged(
    clusters: Sequence[Cluster], where: Contradiction, judged: tuple[int, int]
) -> tuple[list[Cluster], EpochApply | None]:
    """Return the clusters with the epoch apply of a group judged at another position, and the original apply."""
    original = None
    changed = []
    for cluster in clusters:
        timeline = list(cluster.timeline)
        for place, item in enumerate(timeline):
            if isinstance(item, EpochApply) and item.traced and where.place == (cluster.name, item.epoch, item.group):
                original, timeline[place] = item, attrs.evolve(item, judged=judged)
        changed.append(attrs.evolve(cluster, timeline=tuple(timeline)))
    return changed, original


def contradictions(
    clusters: Sequence[Cluster], derived: Mapping[str, Effects], recorded: Mapping[str, Effects]
) -> list[Contradiction]:
    """
    Return where binlogs show other effects than were derived, causes before their possible consequences.

    Args:
        clusters: The clusters, with their transactions.
        derived: Per cluster, the effects of its applier that an engine derived.
        recorded: Per cluster, the effects in its binlog.
    """
    found = [
        contradiction
        for cluster in clusters
        for contradiction in _compare(cluster, derived[cluster.name], recorded[cluster.name])
    ]
    order = {
        (cluster.name, item.epoch, item.group): place
        for place, (cluster, item) in enumerate(interleave(History(tuple(clusters), {})))
        if isinstance(item, EpochApply)
    }
    return sorted(found, key=lambda each: (order.get(each.place, len(order)), each))


def _compare(cluster: Cluster, derived: Effects, recorded: Effects) -> Iterator[Contradiction]:
    for epoch, group in sorted(derived.keys() | recorded.keys()):
        expected, shown = derived.get((epoch, group), {}), recorded.get((epoch, group), {})
        rows = {row for row in expected.keys() | shown.keys() if expected.get(row) != shown.get(row)}
        if rows:
            changed_at = tuple(_changes_since_last_apply(cluster, (epoch, group), rows))
            yield Contradiction(cluster.name, epoch, group, len(rows), changed_at)


def _changes_since_last_apply(
    cluster: Cluster, place: tuple[int, int], rows: Iterable[tuple[str, bytes]]
) -> list[tuple[int, int]]:
    """Return where the cluster itself changed one of `rows` between the epoch apply before `place` and `place`."""
    wanted, found = set(rows), list[tuple[int, int]]()
    for item in cluster.timeline:
        if (item.epoch, item.group) >= place:
            arrived = item.arrived if isinstance(item, EpochApply) else (0, -1)
            return [each for each in found if each > arrived]
        if isinstance(item, EpochApply):
            found.clear()
        elif isinstance(item, Transaction) and any((change.table, change.key) in wanted for change in item.changes):
            found.append((item.epoch, item.group))
    return []
