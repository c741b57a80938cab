"""
The part of growing logs that is not decided yet, as a History.

An epoch apply with a trace has its place. One without is placed before the trace that follows it, so it waits for that:
nothing of its cluster is decided that may come after it. An epoch that brings nothing waits for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

import attrs

from conflict.errors import HistoryError
from conflict.history.epochs import BinlogEpoch
from conflict.history.model import Cluster, History, Link, Start
from conflict.history.reading.epochs_by_content import hides_epochs
from conflict.history.reading.given_rows import load_given_rows
from conflict.history.roles import shown_changes
from conflict.history.run import Run
from conflict.history.scheduling.cluster_schedule import schedule_of
from conflict.history.scheduling.placing import Item, interleave
from conflict.history.scheduling.start import (
    certain_applies,
    consistent_cut,
    returned_before,
    starts_in_the_middle,
)
from conflict.history.scheduling.summaries import SummaryColumns, epoch_ends, summarize
from conflict.history.shown_effects import Effect, recorded_effects
from conflict.history.timeline import END, OVERLAPPING, START, EpochApply, Position, Transaction, timeline_of
from ndb_formats.events.row_image import RowLayout
from ndb_formats.events.rows_event import ConflictFlag

_MIDDLE = 'start = "middle"'
_SENT = ConflictFlag.REFLECTED | ConflictFlag.REFRESH


@attrs.define
class LogWindow:
    """
    The epochs of each cluster from the last decided ones on, and how far each cluster was decided.

    Attributes:
        run: The run.
        epochs: Per cluster, its epochs.
        layouts: Layout of each table met.
        recorded: Per cluster, the effects of its applier that these show.
        starts: Per cluster, where its log starts in the middle; None as long as that is not known.
        decided: Per cluster, the position of its last transaction that was decided.
        applied: Per link, the last foreign epoch that was decided.
        recent: Per link, the last epoch applies that were decided.
        known: Per link, the max replicated epoch after these.
        held: By cluster, the position from which on an epoch can have been applied whose trace may still come.
    """

    run: Run
    epochs: dict[str, list[BinlogEpoch]]
    layouts: dict[str, RowLayout] = attrs.field(factory=dict)
    recorded: dict[str, dict[Position, dict[tuple[str, bytes], Effect]]] = attrs.field(factory=dict)
    starts: dict[str, Start | None] | None = None
    decided: dict[str, Position] = attrs.field(factory=dict)
    applied: dict[Link, int] = attrs.field(factory=dict)
    recent: dict[Link, list[EpochApply]] = attrs.field(factory=dict)
    known: dict[Link, int] = attrs.field(factory=dict)
    held: dict[str, Position] = attrs.field(factory=dict)
    _waiting: dict[Link, int] = attrs.field(factory=dict)  # per link, the epoch that waited for a trace last time
    _first: dict[str, int] = attrs.field(factory=dict)

    @property
    def links(self) -> list[Link]:
        """The links of the two clusters: applier and source."""
        return [(applier.name, source.name) for applier, source in self.run.links.channels()]

    def add(self, name: str, epochs: Sequence[BinlogEpoch]) -> None:
        """
        Add the next epochs of a cluster.

        Raises:
            HistoryError: They show something that only `resolve` follows.
        """
        if not epochs:
            return
        self._first.setdefault(name, epochs[0].number)
        self.epochs[name] += epochs
        self.recorded.setdefault(name, {}).update(recorded_effects(epochs))
        peer = self.run.links.peer(name)
        place = f"cluster {name}, epochs {epochs[0].number} to {epochs[-1].number}"
        if hides_epochs(epochs) and not any(each.applied for each in self.epochs[name]):
            raise _refused(place, "it shows changes of its applier and not the epochs that they came with")
        if any(each.compressed for each in epochs):
            raise _refused(place, "its transactions are compressed")
        ids = {each.server_id for epoch in epochs for each in epoch.applied} - {peer.server_id}
        if ids:
            raise _refused(place, f"epochs were applied from server {min(ids)}, which the run file does not name")
        setups = self.run.setups.at_start[name]
        role = next(each.role for each in self.run.clusters if each.name == name)
        if shown_changes(self.epochs[name], role, setups, peer.server_id):
            raise _refused(place, "its role changed")

    def last_time(self, name: str) -> int:
        """Return when the last epoch of a cluster committed that was read, in microseconds since 1970; 0 for none."""
        return self.epochs[name][-1].committed if self.epochs[name] else 0

    @property
    def has_begun(self) -> bool:
        """Whether all logs have an epoch, so that they show where they start."""
        return len(self._first) == len(self.epochs)

    def usable(self) -> dict[str, SummaryColumns]:
        """Return the epochs that do not depend on ones that are not there yet."""
        summaries = {name: [summarize(epoch) for epoch in own] for name, own in self.epochs.items()}
        return consistent_cut(summaries, self.run.links.server_ids)

    def history(self, *, ended: bool) -> tuple[History, dict[Link, list[int]]]:
        """
        Return what is not decided yet, with every epoch apply that there may have been in its `applies`.

        Those begin with the last ones that were decided, which the timelines do not have.

        Args:
            ended: Whether nothing comes any more.

        Returns:
            The History, and per link the max replicated epoch before each epoch apply.
        """
        summaries = self.usable()
        self.held = {}
        starts = self._starts(summaries)
        applies = {link: self._applies(link, summaries, starts, ended=ended) for link in self.links}
        clusters = []
        for each in self.run.clusters:
            after = self.decided.get(each.name, START)
            own = [
                transaction
                for epoch in self.epochs[each.name][: len(summaries[each.name])]
                for transaction in epoch.transactions
                if (transaction.epoch, transaction.group) > after
            ]
            clusters.append(
                Cluster(
                    each.name,
                    each.server_id,
                    timeline_of(own, []),
                    each.role,
                    starts[each.name],
                    each.ignored,
                    self.run.filtered(each),
                    applies_singly=each.applies_singly,
                )
            )
        ends = {name: epoch_ends(own) for name, own in summaries.items()}
        by_cluster = {applier: tuple(found) for (applier, _), found in applies.items()}
        history = History(tuple(clusters), self.layouts, applies=by_cluster, ends=ends, databases=self.run.databases)
        return history, {link: self.known_before(link, found) for link, found in applies.items()}

    def _starts(self, summaries: Mapping[str, SummaryColumns]) -> dict[str, Start | None]:
        """
        Return where the logs start in the middle, which the first epochs decide.

        Raises:
            HistoryError: Later ones show it.
        """
        if self.starts is None:
            middle = starts_in_the_middle(self.run.span, self.run.links, summaries)
            self.starts = {name: self._start(name, summaries) if middle else None for name in summaries}
        ids = self.run.links.server_ids
        for applier, source in self.links:
            shown = summaries[applier].epoch[summaries[applier].of_server(ids[source])]
            newer = shown > max(self.applied.get((applier, source), 0), 0)
            older = newer & (shown < self._first.get(source, 0))
            if older.any() and not any(self.starts.values()) and self.run.span.empty is None:
                message = (
                    f"the logs start in the middle: that of {applier} shows epoch {int(shown[older][0])} of {source}, "
                    f"whose log starts at epoch {self._first[source]}. Write {_MIDDLE} into the run file, and watch "
                    "with another --out"
                )
                raise HistoryError(message)
        return self.starts

    def _start(self, name: str, summaries: Mapping[str, SummaryColumns]) -> Start:
        cluster = next(each for each in self.run.clusters if each.name == name)
        owner = cluster if cluster.rows or cluster.rows_of is None else self.run.links.peer(name)
        own_name = partial(self.run.databases.own_name, owner.name)
        given = load_given_rows(owner.rows, self.run.data_schema, self.layouts, own_name)
        first = summaries[name][0].number if len(summaries[name]) else 0
        return Start(first, given.rows, given.tables, returned_before(self.run.links, summaries, name))

    def _applies(
        self,
        link: Link,
        summaries: Mapping[str, SummaryColumns],
        starts: Mapping[str, Start | None],
        *,
        ended: bool,
    ) -> list[EpochApply]:
        """Return the epoch applies of a link that can be placed, after the last ones that were decided."""
        applier, source = link
        cluster = next(each for each in self.run.clusters if each.name == applier)
        (columns,), _ = schedule_of(self.run.links, cluster, summaries, None, cut=not ended, restarts={})
        start = starts[applier]
        if start is not None and link not in self.applied:
            columns = certain_applies(columns, start.epoch)
        last = self.applied.get(link, -1)
        found = [each for each in columns.applies() if each.foreign_epoch > last]
        if any(each.period for each in columns.applies()):
            raise _refused(f"cluster {applier}", f"its applier was set back and applied epochs of {source} again")
        if not ended:
            found = list(self._placeable(link, found))
        return [*self.recent.get(link, ()), *found]

    def _placeable(self, link: Link, applies: Sequence[EpochApply]) -> Iterator[EpochApply]:
        """
        Yield the epoch applies up to the last trace, and those after it that bring nothing.

        The next one mostly leaves a trace soon, so it is only tried (`WatchedClusters`) if it waits for longer.
        """
        brought = {each.number for each in self.epochs[link[1]] if brings(each)}
        last = max((number for number, each in enumerate(applies) if each.traced), default=-1)
        for number, each in enumerate(applies):
            if number <= last:
                yield each
            elif each.foreign_epoch not in brought:
                yield attrs.evolve(each, applied=True)
            else:
                if self._waiting.get(link) == each.foreign_epoch:
                    yield attrs.evolve(each, applied=True)
                else:
                    self.held[link[0]] = each.epoch, each.group
                self._waiting[link] = each.foreign_epoch
                return

    def waits(self, apply: EpochApply) -> bool:
        """Whether the place of an epoch apply is not known yet."""
        if apply.window is None or apply.window.before != END:
            return False
        own = next((each for each in self.epochs[apply.source] if each.number == apply.foreign_epoch), None)
        return own is not None and brings(own)

    def known_before(self, link: Link, applies: Sequence[EpochApply]) -> list[int]:
        """Return the max replicated epoch before each epoch apply of a link."""
        here, (applier, source) = self.known.get(link, 0), link
        start = (self.starts or {}).get(applier)
        here = max(here, 0 if start is None else start.returned)
        news = self._news(applier, source)
        found = []
        for each in applies:
            found.append(here)
            if each.foreign_epoch > self.applied.get(link, -1):
                here = max(here, news.get(each.foreign_epoch, 0))
        return found

    def _news(self, applier: str, source: str) -> dict[int, int]:
        """Return, by epoch of a source, the newest epoch of the applier that comes back with it."""
        server_id = self.run.links.server_ids[applier]
        return {
            epoch.number: max(each.epoch for each in epoch.applied if each.server_id == server_id)
            for epoch in self.epochs[source]
            if any(each.server_id == server_id for each in epoch.applied)
        }

    def decide(self, part: History) -> None:
        """Note that a part was decided, and forget what nothing needs any more."""
        for cluster in part.clusters:
            for item in cluster.timeline:
                if isinstance(item, Transaction):
                    self.decided[cluster.name] = item.epoch, item.group
                elif isinstance(item, EpochApply):
                    link = cluster.name, item.source
                    news = self._news(*link)
                    self.applied[link] = item.foreign_epoch
                    self.known[link] = max(self.known.get(link, 0), news.get(item.foreign_epoch, 0))
                    # Its place is known now.
                    self.recent.setdefault(link, []).append(attrs.evolve(item, window=None, moments=()))
        for (applier, source), own in self.recent.items():
            # They bound the places of the epochs that the other cluster has not applied yet.
            done = sum(each.epoch <= self.applied.get((source, applier), -1) for each in own)
            del own[: max(min(done - 1, len(own) - OVERLAPPING), 0)]
        for name, epochs in self.epochs.items():
            done = self._done(name)
            for place in recorded_effects(epochs[:done]):
                del self.recorded[name][place]
            del epochs[:done]

    def _done(self, name: str) -> int:
        """Return how many of the first epochs of a cluster are needed no more: they were decided on both clusters."""
        peer = self.run.links.peer(name).name
        # The next epochs of the other cluster tell that it knew the last epoch that came back.
        least = min(
            self.applied.get((peer, name), -1), self.decided.get(name, START)[0], self.known.get((name, peer), 0)
        )
        done = [number for number, each in enumerate(self.epochs[name]) if each.number <= least]
        return next((number for number in reversed(done) if self.epochs[name][number].applied), len(done[1:]))


def brings(epoch: BinlogEpoch) -> bool:
    """Whether an epoch brings anything that the other cluster's applier takes."""
    return bool(epoch.transactions) or any(change.flags & _SENT for _, change in epoch.consequences)


def decidable(history: History, waiting: Collection[EpochApply], held: Mapping[str, Position]) -> History:
    """
    Return the part of a History before anything that is not decided yet, in the order of causes.

    Args:
        history: The History, with its epoch applies in the timelines.
        waiting: Those of them whose place is not known yet.
        held: By cluster, a position after which nothing is decided.
    """
    blocked = dict(held)
    for cluster in history.clusters:
        places = [(each.epoch, each.group) for each in cluster.timeline if each in waiting]
        if places:
            blocked[cluster.name] = min(places)
    ended = dict[str, int]()  # per cluster, the own epoch from which on nothing is decided
    kept: dict[str, list[Item]] = {cluster.name: [] for cluster in history.clusters}
    for cluster, item in interleave(history):
        name = cluster.name
        if name in ended:
            continue
        is_late = name in blocked and (item in waiting or (item.epoch, item.group) > blocked[name])
        is_caused = isinstance(item, EpochApply) and item.foreign_epoch >= ended.get(item.source, END[0])
        if is_late or is_caused:
            ended[name] = item.epoch
        else:
            kept[name].append(item)
    clusters = tuple(attrs.evolve(each, timeline=tuple(kept[each.name])) for each in history.clusters)
    return attrs.evolve(history, clusters=clusters)


def _refused(place: str, why: str) -> HistoryError:
    return HistoryError(f"{place}: {why}, which only resolve follows; resolve these logs")
