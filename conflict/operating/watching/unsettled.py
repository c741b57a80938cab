"""
Conflicts and lost changes that can still get another record, until none can.

A change of a cluster that the other one has received, applied or rejected, is overwritten by changes that the other one
had made before alone. Once its own cluster has applied all of these, nothing of its record can change any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import attrs

from conflict.engine.ledger.open_places import OpenEpoch, OpenPlace
from conflict.engine.ledger.resolution import LastWrite, Outcome, OverwrittenChange, Undecided
from conflict.engine.reference.overwritten import OverwriteSearch
from conflict.engine.reference.row_store import RowKey
from conflict.history.timeline import EpochApply, Transaction
from conflict.operating.watching.clusters import DecidedPart
from conflict.rules.decision import Verdict

SourceEpoch = tuple[str, int]  # a cluster and an own epoch of it
# So many epochs are remembered in which a row was refreshed; operations that came later meet no older state of it.
_REFRESHES = 4


@attrs.define
class SettledEpoch:
    """
    An epoch whose records cannot change any more.

    Attributes:
        source: Its cluster.
        number: The epoch.
        rejected: Its operations that were rejected.
        earlier: What stands for the operations that were answered by the refreshes against which these lost.
        overwritten: Its changes that were overwritten.
        undecided: By applier, the decisions on its operations that the binlogs leave open.
        open_epochs: The same, because the moment of a row is open.
        open_places: The same, because its place is open.
    """

    source: str
    number: int
    rejected: list[Outcome] = attrs.field(factory=list)
    earlier: list[Outcome] = attrs.field(factory=list)
    overwritten: list[OverwrittenChange] = attrs.field(factory=list)
    undecided: list[Undecided] = attrs.field(factory=list)
    open_epochs: list[OpenEpoch] = attrs.field(factory=list)
    open_places: list[OpenPlace] = attrs.field(factory=list)

    @property
    def has_records(self) -> bool:
        """Whether there is a record of it."""
        return bool(self.rejected or self.overwritten)


@attrs.define
class Unsettled:
    """
    The epochs that are not settled.

    Attributes:
        search: Which changes were overwritten.
        peers: By cluster, the other one.
    """

    search: OverwriteSearch
    peers: Mapping[str, str]
    _epochs: dict[SourceEpoch, SettledEpoch] = attrs.field(factory=dict)
    _received: dict[str, deque[tuple[int, int]]] = attrs.field(factory=dict)  # own epoch, and where it was received
    _made: dict[str, deque[int]] = attrs.field(factory=dict)  # own epochs with changes that did not arrive yet
    _arrived: dict[str, int] = attrs.field(factory=dict)  # the last own epoch that did
    _done: dict[str, int] = attrs.field(factory=dict)
    _of_search: dict[str, deque[int]] = attrs.field(factory=dict)
    # By applier and row, per own epoch in which it refreshed the row, what had won against the operation.
    _refreshed: dict[tuple[str, RowKey], dict[int, LastWrite | None]] = attrs.field(factory=dict)

    def take(self, part: DecidedPart) -> None:
        """Take what was decided of the next part of the logs."""
        rejected = [each for each in part.outcomes if each.verdict is Verdict.REJECTED]
        for each in rejected:
            self._epoch(each.source, each.source_epoch).rejected.append(each)
            row = each.applier, (each.table, each.key)
            self._refreshed.setdefault(row, {}).setdefault(each.epoch, each.winner)
        for each in rejected:
            self._epoch(each.source, each.source_epoch).earlier += self._answered(each)
        for applier, undecided in part.undecided.items():
            for decision in undecided:
                self._epoch(self.peers[applier], decision.source_epoch).undecided.append(decision)
        for opened in part.open_epochs:
            self._epoch(self.peers[opened.applier], opened.foreign_epoch).open_epochs.append(opened)
        for place in part.open_places:
            self._epoch(place.source, place.foreign_epoch).open_places.append(place)
        for cluster in part.history.clusters:
            self._take_timeline(cluster.name, cluster.timeline)
        for each in rejected:
            self._forget_refreshes(each)

    def _take_timeline(self, name: str, timeline: Sequence[object]) -> None:
        made, kept = self._made.setdefault(name, deque()), self._of_search.setdefault(name, deque())
        for item in timeline:
            if isinstance(item, Transaction) and (not made or made[-1] < item.epoch):
                made.append(item.epoch)
                kept.append(item.epoch)
            elif isinstance(item, EpochApply):
                self._received.setdefault(item.source, deque()).append((item.foreign_epoch, item.epoch))
                self._arrived[item.source] = item.foreign_epoch

    def _epoch(self, source: str, number: int) -> SettledEpoch:
        return self._epochs.setdefault((source, number), SettledEpoch(source, number))

    def settled(self, *, ended: bool) -> Iterator[SettledEpoch]:
        """
        Yield the epochs that are settled now, and forget them.

        Args:
            ended: Whether nothing comes any more, so that all are.
        """
        for name, made in self._made.items():
            while made and made[0] <= self._arrived.get(name, -1):
                made.popleft()
        for name, peer in self.peers.items():
            yield from self._settled_of(name, peer, ended=ended)

    def is_settled(self, name: str, number: int) -> bool:
        """Whether an epoch of a cluster is settled."""
        return number <= self._done.get(name, -1)

    def _settled_of(self, name: str, peer: str, *, ended: bool) -> Iterator[SettledEpoch]:
        """Yield those of a cluster: received before any change of the other one that it has not applied yet."""
        received, under_way = self._received.setdefault(name, deque()), self._made.setdefault(peer, deque())
        last = -1
        while received and (ended or not under_way or under_way[0] > received[0][1]):
            last = received.popleft()[0]
        if ended:
            last = 2**64
        self._done[name] = max(last, self._done.get(name, -1))
        made = self._of_search.setdefault(name, deque())
        numbers = {number for source, number in self._epochs if source == name and number <= last}
        while made and made[0] <= last:
            numbers.add(made.popleft())
        for number in sorted(numbers):
            epoch = self._epochs.pop((name, number), None) or SettledEpoch(name, number)
            epoch.overwritten = self.search.overwritten(name, number)
            self.search.forget(name, number)
            if epoch.has_records:
                yield epoch

    def _answered(self, rejected: Outcome) -> Iterator[Outcome]:
        """
        Yield what stands for the operations that a refresh answered against which an operation lost.

        It has what won against the first of them; another refresh is followed back in turn.
        """
        winner = rejected.winner
        if winner is None or not winner.refresh:
            return
        row = rejected.table, rejected.key
        first = winner.cluster, winner.epoch
        while winner is not None and winner.refresh:
            known = self._refreshed.get((winner.cluster, row), {})
            if winner.epoch not in known:
                return
            winner = known[winner.epoch]
        self._refreshed[first[0], row][first[1]] = winner
        verdict, cause = Verdict.REJECTED, rejected.cause
        yield Outcome(
            first[0], self.peers[first[0]], 0, first[1], 0, -1, *row, rejected.operation, False, verdict, cause,
            winner=winner,
        )  # fmt: skip

    def _forget_refreshes(self, rejected: Outcome) -> None:
        """Forget in which epochs a row was refreshed before the last ones that the other cluster has applied."""
        known = self._refreshed[rejected.applier, (rejected.table, rejected.key)]
        epochs, arrived = sorted(known), self._arrived.get(rejected.applier, -1)
        for epoch, later in zip(epochs, epochs[_REFRESHES:], strict=False):
            if later <= arrived:
                del known[epoch]
