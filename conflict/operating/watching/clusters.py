"""
The clusters of growing logs as the decided part left them, which go on with each further part.

They are the clusters and appliers of the reference engine, and beside them the rows as the binlogs show them, from
which places and moments are found (`conflict.engine.inference.background`). What is not decided yet is tried on those,
and taken back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import attrs

from conflict.engine.inference.background import Background, backgrounds_at_start
from conflict.engine.inference.moments import Moments, find_moments
from conflict.engine.inference.observed import ObservedCluster
from conflict.engine.inference.placement import LinkFacts, place_untraced, restricted, touched_rows
from conflict.engine.inference.replay import ObservedApplier, observed_appliers
from conflict.engine.ledger.contradictions import contradicted_rows
from conflict.engine.ledger.open_places import OpenEpoch, OpenPlace
from conflict.engine.ledger.resolution import ClusterResult, Outcome, Undecided
from conflict.engine.reference.cluster import LoggedChange
from conflict.engine.reference.overwritten import OverwriteSearch
from conflict.engine.reference.replay import play
from conflict.engine.reference.row_store import RowKey, touched_keys
from conflict.errors import HistoryError
from conflict.history.model import History, Link
from conflict.history.shown_effects import recorded_images
from conflict.history.timeline import OVERLAPPING, EpochApply, RowChange, Transaction, timeline_of
from conflict.operating.watching.packed_rows import PackedRows
from conflict.operating.watching.window import LogWindow, decidable
from ndb_formats.events.rows_event import ConflictFlag


@attrs.frozen
class DecidedPart:
    """
    What was decided of a part of the logs.

    Attributes:
        history: The part, its epochs at their places, rows judged when they were.
        outcomes: What became of the operations that appliers received.
        undecided: By applier, the decisions that the binlogs leave open.
        open_epochs: Epoch applies with rows whose moment is open.
        open_places: Epochs whose place is open.
        contradicted: How many rows the binlogs show otherwise.
        end: Why nothing more can be decided; None if it can.
    """

    history: History
    outcomes: Sequence[Outcome]
    undecided: Mapping[str, Sequence[Undecided]]
    open_epochs: Sequence[OpenEpoch]
    open_places: Sequence[OpenPlace]
    contradicted: int
    end: HistoryError | None = None


@attrs.define
class WatchedCluster(ObservedCluster):
    """
    One cluster, which notes where its log shows another row than the logs have made.

    Attributes:
        otherwise: Its own changes whose before image is another row.
    """

    otherwise: list[RowChange] = attrs.field(factory=list)

    def make(self, change: RowChange, transaction: Transaction) -> None:
        """Make a change of an own transaction."""
        if change.before is not None and not change.keyless and not change.flags & ConflictFlag.READ:
            row = self.store.get((change.table, change.key))
            known = {} if row is None else row.payloads
            found = zip(change.before.present, change.before.payloads, strict=True)
            if any(known.get(place, payload) != payload for place, payload in found):
                self._note_otherwise(change, transaction.epoch)
        super().make(change, transaction)

    def _note_otherwise(self, change: RowChange, epoch: int) -> None:
        """Note a change, unless the applier changed its row in the same epoch: those two have no order."""
        own = (effects for (number, _), effects in self.shown.items() if number == epoch)
        if not any((change.table, change.key) in effects for effects in own):
            self.otherwise.append(change)


@attrs.define
class WatchedClusters:
    """
    The clusters.

    Attributes:
        window: What is not decided yet.
        search: Which changes were overwritten.
        appliers: By cluster, its applier, which has the cluster; none before anything was decided.
        backgrounds: By cluster, its rows as the binlogs show them.
    """

    window: LogWindow
    search: OverwriteSearch
    appliers: dict[str, ObservedApplier] = attrs.field(factory=dict)
    backgrounds: dict[str, Background] = attrs.field(factory=dict)

    def decide(self, *, ended: bool) -> DecidedPart:
        """
        Decide what can be decided.

        Args:
            ended: Whether nothing comes any more, so that all can.

        Raises:
            HistoryError: The logs show what only `resolve` follows, or contradict the run file.
        """
        window = self.window
        history, known = window.history(ended=ended)
        self._begin(history)
        history, places = self._placed(history, known)
        waiting = [] if ended else [each for own in history.applies.values() for each in own if window.waits(each)]
        part = decidable(history, waiting, window.held)
        moments = self._moments(part)
        part = attrs.evolve(part, clusters=moments.clusters(part.clusters))
        found = self._play(part, moments, places)
        window.decide(part)
        self._forget()
        return found

    def _begin(self, history: History) -> None:
        """Make the clusters, or show them the next part of their logs."""
        setups, recorded = self.window.run.setups.at_start, self.window.recorded
        if not self.appliers:
            skip = self.window.run.configuration.skip_missing
            self.appliers = observed_appliers(
                history, setups, skip_missing=skip, shown=recorded, made_of=WatchedCluster
            )
            self.backgrounds = backgrounds_at_start(history, setups, recorded)
            for cluster in self._clusters():
                rows, cluster.store.rows = cluster.store.rows, PackedRows()
                cluster.store.rows.update(rows)
        for each in history.clusters:
            for here in (self.appliers[each.name].here, self.backgrounds[each.name].cluster):
                here.cluster, here.shown = each, recorded[each.name]

    def _placed(self, history: History, known: Mapping[Link, list[int]]) -> tuple[History, tuple[OpenPlace, ...]]:
        """
        Return a History with all epoch applies in their timelines, and those whose place is open.

        Raises:
            HistoryError: An epoch was never applied.
        """
        window, setups = self.window, self.window.run.setups.at_start
        if all(each.window is None for own in history.applies.values() for each in own):
            return _with_applies(history, history.applies, window.applied), ()
        traced = _with_applies(history, history.applies, window.applied)
        untraced = [each for own in history.applies.values() for each in own if each.window is not None]
        rows = touched_rows(traced, setups, window.recorded).union(*map(self._logged_rows, untraced))
        traced = restricted(traced, rows)
        facts = {link: LinkFacts(own, range(len(own)), len(own)) for link, own in known.items()}
        self._note(traced)
        with ExitStack() as trials:
            for each in self.backgrounds.values():
                trials.enter_context(each.trial())
            placed = place_untraced(
                traced,
                setups,
                window.recorded,
                skip_missing=window.run.configuration.skip_missing,
                facts=facts,
                start=self.backgrounds,
            )
        for skipped in placed.schedule.skipped:
            message = (
                f"cluster {skipped.applier} never applied epoch {skipped.foreign_epoch} of {skipped.source}, and "
                "applied later ones: it was skipped, or another function was in force. Only resolve tells what that "
                "changed; resolve these logs"
            )
            raise HistoryError(message)
        return _with_applies(history, placed.applies, window.applied), placed.schedule.places

    def _moments(self, part: History) -> Moments:
        """Find when rows of a part were judged; the rows as the binlogs show them go on to its end."""
        applies = {
            cluster.name: (
                *self._recent(cluster.name),
                *(item for item in cluster.timeline if isinstance(item, EpochApply)),
            )
            for cluster in part.clusters
        }
        part = attrs.evolve(part, applies=applies)
        known = {link: self.window.known_before(link, own) for link, own in part.links.items()}
        self._note(part)
        return find_moments(
            part,
            self.window.run.setups.at_start,
            self.window.recorded,
            skip_missing=self.window.run.configuration.skip_missing,
            known=known,
            start=self.backgrounds,
        )

    def _note(self, part: History) -> None:
        """Note how the rows stand that a part can change."""
        rows = set[RowKey]()
        for cluster in part.clusters:
            for item in cluster.timeline:
                if isinstance(item, Transaction):
                    rows.update(row for change in item.changes for row in touched_keys(change))
                elif isinstance(item, EpochApply):
                    rows.update(self._logged_rows(item))
                    rows.update(self.window.recorded[cluster.name].get((item.epoch, item.group), ()))
        for each in self.backgrounds.values():
            each.note(rows)

    def _logged_rows(self, apply: EpochApply) -> Iterator[RowKey]:
        """Yield the rows that an epoch touches, as far as its cluster was decided."""
        for entry in self.backgrounds[apply.source].cluster.log.get(apply.foreign_epoch, ()):
            if isinstance(entry, LoggedChange):
                yield from touched_keys(entry.change)

    def _play(self, part: History, moments: Moments, places: Sequence[OpenPlace]) -> DecidedPart:
        """Let the appliers do what a part says."""
        play(part, self.appliers)
        outcomes = [each for applier in self.appliers.values() for each in applier.here.outcomes]
        self.search.take(part, outcomes)
        decided = {
            (cluster.name, item.source, item.foreign_epoch)
            for cluster in part.clusters
            for item in cluster.timeline
            if isinstance(item, EpochApply)
        }
        found = DecidedPart(
            part,
            outcomes,
            {name: applier.here.result.undecided for name, applier in self.appliers.items()},
            moments.open_epochs,
            [each for each in places if (each.applier, each.source, each.foreign_epoch) in decided],
            sum(self._contradicted(part, name) for name in self.appliers),
            next(filter(None, map(self._end, self.appliers)), None),
        )
        for applier in self.appliers.values():
            applier.here.result, applier.here.outcomes = ClusterResult(), []
        return found

    def _contradicted(self, part: History, name: str) -> int:
        """Return how many rows the binlog of a cluster shows otherwise than its applier left them."""
        result = self.appliers[name].here.result
        places = {
            (item.epoch, item.group)
            for item in part.cluster(name).timeline
            if isinstance(item, EpochApply) and item.traced
        }
        epochs = {epoch for epoch, _ in places}
        images = recorded_images([each for each in self.window.epochs[name] if each.number in epochs])
        recorded = self.window.recorded[name]
        effects = {place: recorded[place] for place in places & recorded.keys()}
        written = {place: images[place] for place in places & images.keys()}
        return len(contradicted_rows((result.effects, result.images), (effects, written))[1])

    def _end(self, name: str) -> HistoryError | None:
        """Return why a cluster cannot go on: its applier stopped, or rows were there before the logs."""
        here = self.appliers[name].here
        if here.result.stop is not None:
            stop = here.result.stop
            return HistoryError(
                f"the applier of {name} stops at epoch {stop.foreign_epoch}: {stop.message}. Once it is started again, "
                "watch the files from there with another --out"
            )
        if isinstance(here, WatchedCluster) and here.otherwise:
            change = here.otherwise[0]
            place = "" if change.origin is None else f"{change.origin.file}, position {change.origin.position}: "
            return HistoryError(
                f"{place}a row of {change.table} is another one than the logs of both clusters have made: it was "
                f"changed on {name} without a log, or another conflict function was in force. Only resolve tells what "
                "that changed; resolve these logs"
            )
        if here.result.unexplained and here.cluster.start is None and self.window.run.start_is_open:
            return HistoryError(
                f"cluster {name} changes rows that no log has made: tables were not empty before the logs. Write "
                'start = "middle" into the run file, and watch with another --out'
            )
        return None

    def _forget(self) -> None:
        """Forget what nothing needs any more."""
        for applier, source in self.window.links:
            done = self.window.applied.get((applier, source), -1)
            for cluster in (self.appliers[source].here, self.backgrounds[source].cluster):
                cluster.forget_epochs(done)
        for name, background in self.backgrounds.items():
            background.cluster.result, background.cluster.outcomes = ClusterResult(), []
            places = [(each.epoch, each.group) for each in self._recent(name)[-OVERLAPPING:]]
            if len(places) == OVERLAPPING:
                background.forget(min(places))
        for cluster in self._clusters():
            assert isinstance(cluster.store.rows, PackedRows)
            cluster.store.rows.pack()

    def _clusters(self) -> Iterator[ObservedCluster]:
        for name, applier in self.appliers.items():
            yield applier.here
            yield self.backgrounds[name].cluster

    def _recent(self, name: str) -> list[EpochApply]:
        return [each for (applier, _), own in self.window.recent.items() if applier == name for each in own]


def _with_applies(history: History, applies: Mapping[str, Sequence[EpochApply]], done: Mapping[Link, int]) -> History:
    """Return a History with epoch applies, those that were not decided in its timelines."""
    clusters = []
    for each in history.clusters:
        own = [item for item in each.timeline if isinstance(item, Transaction)]
        new = [item for item in applies[each.name] if item.foreign_epoch > done.get((each.name, item.source), -1)]
        clusters.append(attrs.evolve(each, timeline=timeline_of(own, new)))
    return attrs.evolve(history, clusters=tuple(clusters), applies={name: tuple(own) for name, own in applies.items()})
