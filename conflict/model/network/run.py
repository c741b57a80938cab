"""
One run of a simulation of more than two clusters.

Of events at one time, the end of an epoch comes first, then appliers, then users, and earlier clusters before later
ones, as in `conflict.model.kernels.loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np

from conflict.history.model import Cluster
from conflict.model.configuration import Applier as ApplierModel
from conflict.model.configuration import Link, Model, Site
from conflict.model.connections import loading_site, source_of
from conflict.model.kernels.loop import outside
from conflict.model.kernels.world import FOREVER, NEVER
from conflict.model.network.appliers import apply_epoch, operations
from conflict.model.network.differences import Differences
from conflict.model.network.station import Epoch, Keys, Station, Totals
from conflict.model.network.users import serve_user
from conflict.model.run import (
    CLOCK_START,
    LOADING_EPOCHS,
    SLICES,
    draw_all,
    intentions_of,
    intervals_of,
    joined,
    latencies,
    loading_of,
    settings_of,
)
from conflict.model.table_layouts import layouts_of
from conflict.model.workload import Drawn, KeySpace
from conflict.reference.applier import Applier
from conflict.reference.cluster import ReplayedCluster

__all__ = ["Network", "simulate_network"]


@attrs.frozen(eq=False)
class Network:
    """
    A simulation of more than two clusters that ran.

    Attributes:
        model: What was simulated.
        seed: Its seed.
        start: When users began, in simulated time.
        now: When it ended.
        stations: The clusters.
        differences: The rows that differ between them.
    """

    model: Model
    seed: int
    start: int
    now: int
    stations: tuple[Station, ...]
    differences: Differences

    @property
    def quiet(self) -> bool:
        """Whether all clusters had applied everything at the end."""
        return not any(_has_content(each) or _pending(each) for each in self.stations)

    def unsettled(self, station: Station) -> int:
        """Return how many changes of a cluster's users had not been applied or rejected where they go, at the end."""
        others = {each.side for each in self.stations} - {station.side}
        waiting = [epoch for each in self.stations for epoch in _pending(each)]
        waiting += [each.open for each in self.stations if _has_content(each)]
        found: set[int] = set()
        while waiting:
            epoch = waiting.pop()
            if id(epoch) not in found:
                found.add(id(epoch))
                waiting += epoch.carries
        mine = station.made[station.loaded :]
        return sum(id(each.epoch) in found and not others <= each.epoch.came.keys() for each in mine)


def simulate_network(
    model: Model,
    seed: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
    wanted: Sequence[Drawn] | None = None,
) -> Network:
    """
    Run a simulation.

    Args:
        model: What to simulate.
        seed: Seed of the run; the same seed gives the same run.
        progress: Called with what is done and what there is to do.
        wanted: What the users of each cluster want; None for what their workloads draw.

    Raises:
        ConfigurationError: A server refuses a table.
    """
    # An epoch takes two of the longest to the next cluster while tables are loaded, and comes round once.
    start = (LOADING_EPOCHS + 2 * len(model.sites)) * max(site.epoch for site in model.sites)
    loop = _Loop.of(model, seed, start, _drawn(model, seed, start) if wanted is None else wanted)
    loop.run_until(start)
    loop.begin(seed, start)
    run, quiet = Network(model, seed, start, start, loop.stations, loop.differences), False
    for part in range(1, SLICES + 1):
        now = start + model.duration * part // SLICES
        quiet = loop.run_until(now)
        progress(part, SLICES)
    for until in model.ends():
        if quiet:
            break
        now = start + until
        loop.travel(seed, start, now)
        quiet = loop.run_until(now)
        if not any(map(run.unsettled, loop.stations)):
            break  # nothing more is lost
    return attrs.evolve(run, now=loop.last if quiet else now)


def _drawn(model: Model, seed: int, start: int) -> list[Drawn]:
    """Return what the users of each cluster want."""
    records, columns = ([getattr(table, name) for table in model.tables] for name in ("records", "columns"))
    return draw_all(model, KeySpace(records, columns, len(model.sites)), seed, start)


@attrs.define(eq=False)
class _Loop:
    """
    The events in simulated time.

    Attributes:
        model: What is simulated.
        keys: The rows.
        stations: The clusters.
        differences: The rows that differ.
        last: When the last event was.
    """

    model: Model
    keys: Keys
    stations: tuple[Station, ...]
    differences: Differences
    last: int = 0

    @classmethod
    def of(cls, model: Model, seed: int, start: int, drawn: Sequence[Drawn]) -> _Loop:
        """Return everything before tables are loaded, which takes no time but that of epochs."""
        spaces = [
            max([table.records, *(int(each.key[each.table == number].max(initial=-1)) + 1 for each in drawn)])
            for number, table in enumerate(model.tables)
        ]
        offsets = np.concatenate([[0], np.cumsum(spaces)]).astype(np.int64)
        intentions = [intentions_of(each, offsets, start) for each in drawn]
        loading = loading_site(model)
        intentions[loading] = joined(intentions_of(loading_of(model.tables), offsets, 0), intentions[loading])
        clusters, setups = model.clusters(), model.setups()
        layouts = layouts_of(setups[model.sites[0].name].values())
        outages = intervals_of([site.link.outages for site in model.sites], start)
        stops = intervals_of([site.applier.stops for site in model.sites], start)
        stations = []
        for side, site in enumerate(model.sites):
            replayed = ReplayedCluster(
                Cluster(site.name, site.server_id, (), site.role), setups[site.name], layouts, relays=True
            )
            settings = settings_of(site, clusters[side], seed, side)
            stations.append(
                Station(
                    side,
                    _at_once(site, start),
                    settings,
                    replayed,
                    Applier(replayed),
                    intentions[side],
                    outages[side],
                    stops[side],
                )
            )
        for side, station in enumerate(stations):
            source = source_of(model, side)
            station.source = None if source is None else stations[source]
        keys = Keys([setup.table for setup in setups[model.sites[0].name].values()], offsets.tolist())
        return cls(model, keys, tuple(stations), Differences([each.replayed.store for each in stations]))

    def begin(self, seed: int, start: int) -> None:
        """Let time count from now on: tables are loaded."""
        for station, site in zip(self.stations, self.model.sites, strict=True):
            station.site = attrs.evolve(site, skew=CLOCK_START + site.skew)
            station.loaded, station.decided = len(station.made), len(station.replayed.outcomes)
            station.totals = Totals()
        self.travel(seed, start, start + self.model.duration)
        self.differences.forget(start)

    def travel(self, seed: int, start: int, until: int) -> None:
        """Draw how long epochs travel that end by a time; those before it take as long as they did."""
        for station in self.stations:
            ticks = until // station.site.epoch + 3
            station.latency = latencies(station.site, ticks, seed, station.side, start).tolist()

    def run_until(self, until: int) -> bool:
        """Let everything happen up to a time; return whether nothing is left to happen."""
        while True:
            side, time, kind = min(
                ((each.side, each.closes, 0) for each in self.stations), key=lambda event: (event[1], event[0])
            )
            for kinds, times in enumerate(
                ([each.apply_at for each in self.stations], [each.serves for each in self.stations]), start=1
            ):
                first = min(times)
                if first < time:
                    side, time, kind = times.index(first), first, kinds
            if kind == 0 and self._is_quiet():
                return True
            if time >= until:
                return False
            self.last = time
            here = self.stations[side]
            if kind == 0:
                _close_epoch(here, time)
                for each in self.stations:
                    if each.source is here:
                        _plan_apply(each)
            elif kind == 1:
                apply_epoch(here, time, self.stations, self.model, self.differences)
                _plan_apply(here)
            else:
                serve_user(here, time, self.model, self.keys, self.differences)

    def _is_quiet(self) -> bool:
        """Whether users are done and all clusters have applied everything that does not wait for ever."""
        return all(
            not _has_content(each) and each.serves == NEVER and (not each.waits or each.apply_at >= FOREVER)
            for each in self.stations
        )


def _at_once(site: Site, start: int) -> Site:
    """Return a cluster for which nothing takes time but its epochs."""
    work = attrs.evolve(site.workload, think=0)
    skew = CLOCK_START - 2 * start
    return attrs.evolve(site, workload=work, link=Link(), applier=ApplierModel(), skew=skew)


def _pending(here: Station) -> list[Epoch]:
    """Return the epochs that are logged and that its applier has not applied."""
    return [] if here.source is None else here.source.epochs[here.next_foreign :]


def _has_content(here: Station) -> bool:
    """Whether its open epoch will be logged: whether it changed any row."""
    return any(group.changes for group in here.open.groups)


def _close_epoch(here: Station, now: int) -> None:
    """End the open epoch of a cluster: log and send it if it holds anything, and begin the next one."""
    if _has_content(here):
        epoch, link = here.open, here.site.link
        epoch.closed = now
        leaves = int(outside(max(now, here.sent_at), here.outages))
        here.sent_at = leaves + (epoch.bytes * 1_000_000 // link.bandwidth if link.bandwidth else 0)
        latency = here.latency[here.tick] if here.latency else 0
        here.arrived = max(here.arrived, int(outside(here.sent_at + latency, here.outages)))
        epoch.arrived = here.arrived
        here.epochs.append(epoch)
    else:
        _leave_untraced(here)
    here.tick += 1
    here.open, here.group = Epoch(here.number), 0


def _leave_untraced(here: Station) -> None:
    """An epoch in which only `ndb_apply_status` changed is not logged, so what was applied in it leaves no trace."""
    for place in range(len(here.applies) - 1, -1, -1):
        number, foreign, _ = here.applies[place]
        if number != here.open.number:
            return
        here.applies[place] = number, foreign, False


def _plan_apply(here: Station) -> None:
    """Work out when an applier commits its next epoch, if it has one."""
    if not here.waits or here.apply_at != NEVER:
        return
    assert here.source is not None
    epoch, applier = here.source.epochs[here.next_foreign], here.site.applier
    here.begun = int(outside(max(epoch.arrived, here.free_at), here.stops))
    here.apply_at = here.begun + applier.per_epoch + applier.per_row * operations(here, epoch)
