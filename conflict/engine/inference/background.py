"""
How rows stood at every moment, as far as the binlogs show it.

An epoch apply without a trace changed no row and sent nothing back. So own transactions and traced epoch applies alone
make the rows, wherever the untraced ones were. What a traced one did to a row is what its binlog shows: the rules only
give the values.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter

import attrs
import numpy as np

from conflict.engine.inference.observed import ObservedCluster, ObservedPass
from conflict.engine.inference.replay import ObservedApplier
from conflict.engine.inference.rows import rows_at_start
from conflict.engine.inference.taken_effects import take_shown
from conflict.engine.reference.applier import commit_rows, effects_of
from conflict.engine.reference.cluster import LoggedChange
from conflict.engine.reference.epoch_pass import ChangedRow, EpochPass
from conflict.engine.reference.row_store import Row, RowKey, RowStore, touched_keys
from conflict.history.model import Cluster, History, Link
from conflict.history.scheduling.placing import interleave
from conflict.history.scheduling.schedule_columns import ScheduleColumns, known_before
from conflict.history.shown_effects import Effect
from conflict.history.timeline import START, DefinitionChange, EpochApply, Position, Transaction
from conflict.rules.table_setup import TableSetup

# Per cluster, by own epoch and group: the effects on rows that its binlog shows.
Recorded = Mapping[str, Mapping[Position, Mapping[RowKey, Effect]]]
Setups = Mapping[str, dict[str, TableSetup]]


@attrs.define
class Background:
    """
    The rows of one cluster over time.

    Attributes:
        cluster: The cluster as the replay left it; its log is what the other applier receives.
        at_start: Its rows at the start of its log.
        moments: Per row, the own positions that gave it its states, in order.
        states: Per row, these states.
        setups: How the server set up each table, each time with the own position from which on.
    """

    cluster: ObservedCluster
    at_start: RowStore = attrs.field(factory=RowStore)
    moments: dict[RowKey, list[Position]] = attrs.field(factory=dict)
    states: dict[RowKey, list[Row | None]] = attrs.field(factory=dict)
    setups: list[tuple[Position, dict[str, TableSetup]]] = attrs.field(factory=list)
    _tried: list[RowKey] | None = None  # the rows that got a state in a trial

    def setups_at(self, position: Position) -> dict[str, TableSetup]:
        """Return how the server set up each table after the group at a position."""
        place = bisect.bisect_right(self.setups, position, key=itemgetter(0))
        return self.setups[max(place - 1, 0)][1]

    def row_at(self, key: RowKey, position: Position) -> Row | None:
        """Return a row after the group at a position."""
        place = self.version_at(key, position)
        return self.states[key][place - 1] if place else self.at_start.get(key)

    def version_at(self, key: RowKey, position: Position) -> int:
        """Return how many states a row had been given after the group at a position."""
        return bisect.bisect_right(self.moments.get(key, ()), position)

    def changes_between(self, keys: Iterable[RowKey], after: Position, before: Position) -> list[Position]:
        """Return where one of several rows changed between two positions, in order."""
        return sorted({at for key in keys for at in self.changes(key, after, before)})

    def defined_between(self, after: Position, before: Position) -> list[Position]:
        """Return where statements changed definitions between two positions, in order."""
        return [at for at, _ in self.setups[1:] if after < at < before]

    def changes(self, key: RowKey, after: Position, before: Position) -> list[Position]:
        """Return where a row changed between two positions, in order."""
        moments = self.moments.get(key, [])
        return moments[bisect.bisect_right(moments, after) : bisect.bisect_left(moments, before)]

    def note(self, keys: Iterable[RowKey]) -> None:
        """Note how rows stand that are going to change; those that are not noted stand as they do now."""
        self.at_start = self.cluster.store
        for key in keys:
            if key not in self.moments:
                self.moments[key], self.states[key] = [START], [self.cluster.store.get(key)]

    def forget(self, until: Position) -> None:
        """Forget how rows stood before an own position."""
        for key, moments in [*self.moments.items()]:
            first = self.version_at(key, until)
            if first == len(moments):
                del self.moments[key], self.states[key]
            elif first > 1:
                self.moments[key] = [START, *moments[first:]]
                self.states[key] = self.states[key][first - 1 :]

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Let the cluster go on, and take all of that back in the end."""
        self._tried, setups = [], [*self.setups]
        try:
            with self.cluster.trial():
                yield
        finally:
            for key in self._tried:
                self.moments[key].pop()
                self.states[key].pop()
            self._tried, self.setups = None, setups

    def keep(self, keys: Iterable[RowKey], position: Position) -> None:
        """Note how rows stand after a group."""
        for key in keys:
            self.moments.setdefault(key, []).append(position)
            self.states.setdefault(key, []).append(self.cluster.store.get(key))
            if self._tried is not None:
                self._tried.append(key)


# The applying cluster, the epoch apply, the other cluster.
Visit = Callable[[Background, EpochApply, Background], None]


def background_of(
    history: History,
    setups: Setups,
    recorded: Recorded,
    known: Mapping[Link, Sequence[int]],
    visit: Visit = lambda here, apply, source: None,
    *,
    start: Mapping[str, Background] | None = None,
) -> Mapping[str, Background]:
    """
    Replay the own transactions and the traced epoch applies of all clusters.

    Args:
        history: What happened; it may be restricted to some rows.
        setups: Per cluster, how its server set up each table.
        recorded: Per cluster, the effects of its applier that its binlog shows.
        known: Per link, the max replicated epoch before each epoch apply (see `epochs_known`).
        visit: Called before each epoch apply, with the rows of both clusters as they then are.
        start: The clusters as an earlier part of the History left them, which go on; None before anything happened.

    Raises:
        HistoryError: The traces have no order of causes.
    """
    found = backgrounds_at_start(history, setups, recorded) if start is None else start
    for here, item in in_order(history, found, known):
        if isinstance(item, Transaction):
            here.cluster.commit(item)
            keys = dict.fromkeys(key for change in item.changes for key in touched_keys(change))
            here.keep(keys, (item.epoch, item.group))
        elif isinstance(item, DefinitionChange):
            changed = {*item.step.emptied, *item.step.altered}
            rows = [key for key in here.cluster.store.rows if key[0] in changed]
            here.cluster.define(item)
            here.setups.append(((item.epoch, item.group), here.cluster.setups))
            here.keep(rows, (item.epoch, item.group))
        else:
            assert isinstance(item, EpochApply)
            source, shown = found[item.source], recorded[here.cluster.name]
            visit(here, item, source)
            if here.cluster.cluster.start is not None:
                _apply_in_the_middle(here, item, source.cluster)
            else:
                _apply(here, item, source.cluster, shown.get((item.epoch, item.group), {}) if shown else None)
    return found


def backgrounds_at_start(history: History, setups: Setups, recorded: Recorded) -> dict[str, Background]:
    """Return the clusters before anything happened."""
    return {
        cluster.name: Background(
            ObservedCluster(
                cluster, setups[cluster.name], history.layouts, history.relays, shown=recorded[cluster.name]
            ),
            rows_at_start(cluster),
            setups=[(START, setups[cluster.name])],
        )
        for cluster in history.clusters
    }


def in_order(
    history: History, backgrounds: Mapping[str, Background], known: Mapping[Link, Sequence[int]]
) -> Iterator[tuple[Background, Transaction | EpochApply | DefinitionChange]]:
    """
    Yield what changed rows, in an order of causes, each with its cluster; this knows what had come back before.

    Raises:
        HistoryError: The traces have no order of causes.
    """
    before = {
        link: {
            (item.epoch, item.group, item.foreign_epoch): number for item, number in zip(own, known[link], strict=True)
        }
        for link, own in history.links.items()
    }
    traced = attrs.evolve(history, clusters=tuple(_traced_only(cluster) for cluster in history.clusters))
    for cluster, item in interleave(traced):
        here = backgrounds[cluster.name]
        if isinstance(item, EpochApply):
            place = item.epoch, item.group, item.foreign_epoch
            here.cluster.max_replicated_epoch = before[cluster.name, item.source][place]
        yield here, item


def _traced_only(cluster: Cluster) -> Cluster:
    kept = tuple(item for item in cluster.timeline if not isinstance(item, EpochApply) or item.traced)
    return attrs.evolve(cluster, timeline=kept)


def _apply(here: Background, apply: EpochApply, source: ObservedCluster, shown: Mapping[RowKey, Effect] | None) -> None:
    """Apply a traced epoch with the effects that the binlog shows; None if it shows no effects at all."""
    entries = here.cluster.arriving(source, apply.foreign_epoch)
    if entries:
        apply_shown(here, apply, source, entries, shown)
        keys = dict.fromkeys(key for entry in entries for key in touched_keys(entry.change))
        here.keep(keys, (apply.epoch, apply.group))


def apply_shown(
    here: Background,
    apply: EpochApply,
    source: ObservedCluster,
    entries: Sequence[LoggedChange],
    shown: Mapping[RowKey, Effect] | None,
) -> None:
    """Apply operations of a traced epoch with the effects that the binlog shows; None if it shows no effects at all."""
    current = ObservedPass(here.cluster, source.cluster, apply)
    current.handle_all(entries, went_on=True)  # the effects decide
    if shown is not None:
        derived, by_row = effects_of(current), dict[RowKey, list[LoggedChange]]()
        for entry in entries:
            by_row.setdefault(entry.row, []).append(entry)
        for key, operations in by_row.items():
            if derived.get(key) is not shown.get(key) and not operations[0].change.keyless:
                _force(current, operations, shown.get(key))
    commit_rows(current, source)


def _apply_in_the_middle(here: Background, apply: EpochApply, source: ObservedCluster) -> None:
    """Apply a traced epoch to rows that may not be known; what the binlog shows of them counts."""
    cluster, place = here.cluster, (apply.epoch, apply.group)
    arriving = [entry.row for entry in cluster.arriving(source, apply.foreign_epoch)]
    ObservedApplier(cluster).apply_epoch(apply, source)
    if cluster.result.stop is not None:
        cluster.result.stop = None  # the binlog shows that it did not stop
        take_shown(cluster, apply)
    here.keep(dict.fromkeys([*arriving, *cluster.shown_by(apply)]), place)


def _force(current: EpochPass, entries: Sequence[LoggedChange], effect: Effect | None) -> None:
    """Give a row the effect that the binlog shows instead of the derived one."""
    store, first = current.cluster.store, entries[0]
    changed = current.changed.pop(first.row, None)
    current.refreshes.pop(first.row, None)
    before = changed.before if changed is not None else store.get(first.row)
    store.put(first.row, before)
    if effect in (Effect.REFRESHED, Effect.REFRESHED_ABSENT):
        # What was refreshed was there, also if the changes that made it are not.
        kept = before or Row({}, local=True, epoch=current.apply.epoch)
        store.put(first.row, kept if effect is Effect.REFRESHED else None)
        current.refreshes[first.row] = first.change
    elif effect is not None:
        row = current.changed[first.row] = changed or ChangedRow(before, first.change, first.server_id)
        for entry in entries:
            if entry.change.after is not None:
                row.change = entry.change
                row.written.update(entry.change.after.present)
                store.write(entry.change, local=False, epoch=current.apply.epoch)
        if effect is Effect.DELETED:
            store.put(first.row, None)


def epochs_known(links: Mapping[Link, Sequence[EpochApply]], clusters: Sequence[Cluster] = ()) -> dict[Link, list[int]]:
    """
    Return, per link and epoch apply, the max replicated epoch before it; the place of an apply does not change it.

    That is so for two clusters, which are all that functions by epoch work with.

    Args:
        links: Per link, its epoch applies in order.
        clusters: The clusters, with what had come back before logs that start in the middle.
    """
    returned = {each.name: each.start.returned for each in clusters if each.start is not None}
    columns = {link: ScheduleColumns.of_applies(link[1], own) for link, own in links.items()}
    reported = {
        link: columns[link].chosen(np.array([each.reported for each in own], np.bool_)) for link, own in links.items()
    }
    return {
        (applier, source): known_before(own, reported.get((source, applier)), returned.get(applier, 0)).tolist()
        for (applier, source), own in columns.items()
    }
