"""
One run of a simulation: the arrays that it needs, and the loop over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from conflict.columnar.cluster_setup import ClusterSetup, rules_of
from conflict.columnar.kernels.arrays import Int8, Int16, Int64, RowMoments
from conflict.columnar.kernels.early_rows import Early
from conflict.columnar.kernels.records import (
    ARRIVAL,
    BOTH,
    CHANGE,
    EARLIER,
    ENTRY,
    EPOCH_APPLY,
    ROW_STATE,
    Changes,
    DecisionBuffers,
    Log,
    Records,
    Schedule,
    State,
    Work,
)
from conflict.model.chance import Purpose, stream
from conflict.model.configuration import Latency, Model, ModelTable, Site, Span
from conflict.model.kernels.loop import End, run_until
from conflict.model.kernels.world import (
    EPOCH,
    NEVER,
    RUN,
    SETTINGS,
    SITE,
    TABLE,
    TOTALS,
    Entries,
    Intentions,
    Intervals,
    Made,
    Rows,
    Stamp,
    Wish,
    World,
)
from conflict.model.words import LONGEST
from conflict.model.workload import Drawn, KeySpace, draw
from conflict.rules.table_setup import TableSetup
from ndb_formats.columnar.kernel_mode import expect_work
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.update_format import ndb_columns

__all__ = [
    "CLOCK_START",
    "LOADING_EPOCHS",
    "SLICES",
    "Simulated",
    "draw_all",
    "intentions_of",
    "intervals_of",
    "joined",
    "latencies",
    "loading_of",
    "settings_of",
    "simulate",
]

LOADED_PER_TRANSACTION = 1000
_WORK_OF_TRANSACTION = 16  # bytes of binlogs that take as long to resolve as a transaction to simulate
LOADING_EPOCHS = 4  # until the rows that tables hold at first have come back
CLOCK_START = 10**15  # of the clocks that columns take their values from
SLICES = 50  # of a run, between which progress is reported


@attrs.frozen(eq=False)
class Simulated:
    """
    A simulation that ran.

    Attributes:
        model: What was simulated.
        seed: Its seed.
        start: When users began, in simulated time.
        loaded: How many own changes of the first cluster loaded the tables.
        world: All that happened.
        key_offsets: First key of each table, and the number of all. Shape (tables + 1,).
    """

    model: Model
    seed: int
    start: int
    loaded: int
    world: World
    key_offsets: Int64

    @property
    def quiet(self) -> bool:
        """Whether both clusters had applied everything at the end."""
        sites = self.world.site
        return not sites["content"].any() and bool((sites["next_foreign"] == sites["logged"][::-1]).all())

    def unsettled(self, side: int) -> int:
        """Return how many changes of a cluster's users the other one had not applied or rejected at the end."""
        site, mine = self.world.site[side], self.own_changes(side)
        done = int(self.world.site[1 - side]["next_foreign"])
        waiting = self.world.epochs[side, done] if done < site["logged"] else None
        first = int(site["first_change"] if waiting is None else waiting["first"])
        return int(mine.stop - max(first, mine.start))

    def own_changes(self, side: int) -> slice:
        """Return the changes that a cluster's users made, without those that loaded the tables."""
        first = self.world.changes.begin[side] + (self.loaded if side == 0 else 0)
        return slice(first, int(self.world.site[side]["stop"]))


def simulate(model: Model, seed: int, progress: Callable[[int, int], None] | None = None) -> Simulated:
    """
    Run a simulation.

    Args:
        model: What to simulate.
        seed: Seed of the run; the same seed gives the same run.
        progress: Called with what is done and what there is to do; None for a run that does not stop to tell.

    Raises:
        ConfigurationError: A server refuses a table.
    """
    start = LOADING_EPOCHS * max(site.epoch for site in model.sites)
    space = KeySpace([table.records for table in model.tables], [table.columns for table in model.tables])
    drawn = draw_all(model, space, seed, start)
    expect_work(_WORK_OF_TRANSACTION * sum(len(each.start) for each in drawn))
    scale = 1
    while True:
        world, offsets, loaded = _world(model, seed, start, drawn, scale)
        run = Simulated(model, seed, start, loaded, world, offsets)
        end = _users_work(model, start, world, progress)
        for until in model.ends():
            if end is not End.TIME:
                break
            # How long the epochs travel that there are until then; the first ones as long as before.
            run = attrs.evolve(run, world=world._replace(latency=_latency(model, seed, start, until)))
            end = End(run_until(start + until, run.world))
            if not any(run.unsettled(side) for side in range(2)):
                break  # nothing more is lost; clusters that reflect to each other never come to rest
        if end is not End.FULL:
            return run
        scale *= 2


def _users_work(model: Model, start: int, world: World, progress: Callable[[int, int], None] | None) -> End:
    """Load the tables without loss of time, then let users work."""
    settings, latency = world.settings.copy(), world.latency.copy()
    for name in ("per_epoch", "per_row", "bandwidth", "think"):
        world.settings[name] = 0
    world.settings["skew"] = CLOCK_START - 2 * start
    world.latency[:] = 0
    end = End(run_until(start, world))
    world.settings[:], world.latency[:] = settings, latency
    world.totals[:] = 0
    for name in ("differed", "row_time", "stale"):
        world.run[0][name] = 0
    slices = SLICES if progress else 1
    for part in range(1, slices + 1):
        if end is End.FULL:
            break
        end = End(run_until(start + model.duration * part // slices, world))
        if progress:
            progress(part, slices)
    return end


def _world(model: Model, seed: int, start: int, drawn: Sequence[Drawn], scale: int) -> tuple[World, Int64, int]:
    """Return everything before it begins, the first key of each table, and how many rows are loaded."""
    clusters = model.clusters()
    spaces = [
        max([table.records, *(int(each.key[each.table == number].max(initial=-1)) + 1 for each in drawn)])
        for number, table in enumerate(model.tables)
    ]
    offsets = np.concatenate([[0], np.cumsum(spaces)]).astype(np.int64)
    loading = loading_of(model.tables)
    loaded = len(loading.kind)
    intentions = [intentions_of(each, offsets, start) for each in drawn]
    intentions[0] = joined(intentions_of(loading, offsets, 0), intentions[0])
    changes = _changes([int((each.kind != Wish.READ).sum()) for each in intentions])
    key_table = np.repeat(np.arange(len(spaces), dtype=np.int16), spaces)
    columns = max(table.columns for table in model.tables)
    capacity = (len(changes.rows) * 5 // 4 + 1024) * scale
    # An epoch is logged for a change of a user or of the applier.
    epochs = min(3 * len(changes.rows) + 1024, int(model.epochs_in(model.duration + start)) + 1024) * scale
    longest = max(len(each.start) for each in intentions) + 1
    tables = np.array([[_table(*each) for each in zip(model.tables, one.setups, strict=True)] for one in clusters])
    world = World(
        settings=np.array([settings_of(site, clusters[side], seed, side) for side, site in enumerate(model.sites)]),
        tables=tables.reshape(2, -1),
        intentions=(intentions[0], intentions[1]),
        latency=_latency(model, seed, start, model.duration),
        outages=_both(intervals_of([site.link.outages for site in model.sites], start)),
        stops=_both(intervals_of([site.applier.stops for site in model.sites], start)),
        rules=rules_of(clusters),
        key_table=key_table,
        changes=changes,
        made=_made(len(changes.rows), columns),
        schedule=Schedule(np.zeros(2 * epochs, EPOCH_APPLY), np.zeros(1, np.int32), np.zeros(1, np.uint64), 0),
        work=_work(key_table, changes, 2 * epochs, capacity),
        entries=Entries(np.zeros(capacity, np.uint64), np.zeros((capacity, columns), np.uint64)),
        decisions=DecisionBuffers.of(capacity),
        tracked=DecisionBuffers.of(capacity),
        conflicts=(np.zeros(2 * epochs + 1, np.int64), np.zeros(capacity, np.int32)),
        pairs=np.zeros((capacity, 4), np.int32),
        rows=_rows(len(key_table), columns),
        epochs=np.zeros((2, epochs), EPOCH),
        queues=(np.zeros((2, 2, longest), np.int64), np.zeros((2, 2, longest), np.int64)),
        tries=np.zeros((2, longest), np.int32),
        read=np.zeros((2, max(len(each.kind) for each in intentions)), np.int32),
        site=_sites(changes),
        totals=np.zeros(2, TOTALS),
        run=np.zeros(1, RUN),
        stale=np.zeros(capacity, np.int64),
    )
    return world, offsets, loaded


def loading_of(tables: Sequence[ModelTable]) -> Drawn:
    """Return the transactions that insert the rows that tables hold at first, at time 0."""
    table = np.repeat(np.arange(len(tables)), [each.records for each in tables])
    key = np.concatenate([np.arange(each.records) for each in tables])
    count = -(-len(key) // LOADED_PER_TRANSACTION)
    sizes = np.full(count, LOADED_PER_TRANSACTION)
    if count:
        sizes[-1] = len(key) - LOADED_PER_TRANSACTION * (count - 1)
    kinds = np.full(len(key), int(Wish.INSERT), np.int8)
    return Drawn(np.zeros(count, np.int64), sizes, kinds, table, key, np.zeros(len(key), np.uint64))


def intentions_of(drawn: Drawn, offsets: Int64, start: int) -> Intentions:
    """Return what users want in the form that compiled code reads, from the moment on at which they begin."""
    first = np.concatenate([[0], np.cumsum(drawn.sizes)]).astype(np.int64)
    key = (offsets[drawn.table] + drawn.key).astype(np.int32)
    return Intentions(drawn.start + start, first, drawn.kind.astype(np.int8), key, drawn.writes)


def joined(first: Intentions, second: Intentions) -> Intentions:
    """Return one list of transactions after another."""
    return Intentions(
        np.concatenate([first.start, second.start]),
        np.concatenate([first.first, first.first[-1] + second.first[1:]]),
        np.concatenate([first.kind, second.kind]),
        np.concatenate([first.key, second.key]),
        np.concatenate([first.writes, second.writes]),
    )


def _changes(counts: Sequence[int]) -> Changes:
    """Return room for the own changes of both clusters."""
    total = max(sum(counts), 1)
    rows, values = np.zeros(total, CHANGE), np.zeros(total, BOTH)
    return Changes(rows, values, 1, (0, counts[0]), (counts[0], sum(counts)))


def _made(count: int, columns: int) -> Made:
    return Made(
        at=np.zeros(count, np.int64),
        transaction=np.zeros(count, np.int64),
        carried=np.zeros(count, np.uint64),
        written=np.zeros(count, np.uint64),
        columns=np.zeros((count, columns), np.uint64),
    )


def _rows(keys: int, columns: int) -> Rows:
    return Rows(
        columns=np.zeros((keys, 2, columns), np.uint64),
        version=np.zeros((keys, 2), np.int32),
        touched=np.zeros((keys, 2), np.int64),
        passed=np.zeros(keys, np.int64),
        before=np.zeros(keys, np.bool_),
        carried=np.zeros(keys, np.uint64),
        since=np.full(keys, -1, np.int64),
        last_apply=np.full(keys, -1, np.int32),
        last_group=np.zeros(keys, np.int32),
    )


def _work(key_table: Int16, changes: Changes, applies: int, capacity: int) -> Work:
    """Return the state of the columnar engine before anything happened."""
    arrivals = np.zeros(applies, ARRIVAL)
    nobody: Int8 = np.zeros(applies, np.int8)
    return Work(
        state=State.of(key_table, changes.begin),
        arrivals=arrivals,
        log=Log(np.zeros(capacity, ENTRY), np.zeros((2, capacity), np.int64), np.zeros(2, np.int64)),
        marks=np.zeros(len(key_table), np.bool_),
        pending=np.zeros(capacity, np.int64),
        saved=np.zeros(len(key_table), EARLIER),
        earlier=np.zeros(1, EARLIER),
        moved=np.zeros(1, EARLIER),
        early=Early.of(RowMoments.none(), nobody, arrivals, np.zeros(0, ROW_STATE)),
        not_known_before=np.zeros((0, 2), np.int32),
    )


def _sites(changes: Changes) -> Records:
    sites = np.zeros(2, SITE)
    sites["first_change"] = sites["stop"] = changes.begin
    sites["apply_at"], sites["last_apply"] = NEVER, -1
    return sites


def settings_of(site: Site, cluster: ClusterSetup, seed: int, side: int) -> npt.NDArray[np.void]:
    """Return what does not change of a cluster."""
    found, work = np.zeros((), SETTINGS), site.workload
    found["phase"], found["first_checkpoint"] = _phase(site, seed, side), 1000 * (side + 1)
    found["epoch"], found["checkpoint"], found["skew"] = site.epoch, site.checkpoint, CLOCK_START + site.skew
    found["bandwidth"] = site.link.bandwidth
    found["per_epoch"], found["per_row"] = site.applier.per_epoch, site.applier.per_row
    found["think"], found["retries"], found["retry_delay"] = work.think, work.retries, work.retry_delay
    found["optimistic"] = work.checks
    found["transactional"] = any(
        setup.function is not None and setup.function.spec.transactional for setup in cluster.setups
    )
    return found


def draw_all(model: Model, space: KeySpace, seed: int, start: int) -> list[Drawn]:
    """Draw what the users of each cluster want; they begin at `start`."""
    opened = [(start - _phase(site, seed, side)) % site.epoch for side, site in enumerate(model.sites)]
    return [
        draw(site.workload, space, model.duration, seed, side, opened[side]) for side, site in enumerate(model.sites)
    ]


def _phase(site: Site, seed: int, side: int) -> int:
    """Return when the first epoch of a cluster begins: at a random time, before everything else."""
    return -int(stream(seed, side, Purpose.PHASE).random() * site.epoch)


def _table(table: ModelTable, setup: TableSetup) -> npt.NDArray[np.void]:
    """Return what a cluster logs of a table."""
    found = np.zeros((), TABLE)
    found["columns"], found["stamp"], found["row_bytes"] = table.columns, int(table.stamp), table.row_bytes
    if setup.function is not None:
        found["transactional"] = setup.function.spec.transactional
        found["delete_delete"] = setup.function.spec.delete_delete_conflicts
    found["writes"], found["whole"] = setup.format.as_write, not setup.format.updated_only
    if table.stamp is Stamp.NONE:
        return found
    resolve = setup.table.ordinal("x")
    for name, written in (("written", {1, resolve}), ("other", {1})):
        event = ndb_columns(setup.format, setup.table, Operation.UPDATE_ROW, written)
        assert event is not None
        found[f"before_{name}"] = resolve in (event.before or ())
        found[f"after_{name}"] = resolve in (event.after or ())
    deleted = ndb_columns(setup.format, setup.table, Operation.DELETE_ROW)
    assert deleted is not None
    found["delete_before"] = resolve in (deleted.before or ())
    return found


def _latency(model: Model, seed: int, start: int, until: int) -> Int64:
    """Return how long each epoch of each cluster would travel, of those that end by a time. Shape (clusters, ticks)."""
    ticks = (start + until) // min(site.epoch for site in model.sites) + 3
    return np.array([latencies(site, ticks, seed, side, start) for side, site in enumerate(model.sites)])


def latencies(site: Site, ticks: int, seed: int, side: int, start: int) -> Int64:
    """Return how long each epoch of a cluster would travel. Shape (ticks,)."""
    latency: Latency = site.link.latency
    chance = stream(seed, side, Purpose.LATENCY)
    if latency.kind == "normal":
        drawn = chance.normal(latency.middle, latency.spread, ticks)
    elif latency.kind == "lognormal":
        drawn = latency.middle * np.exp(latency.spread * chance.standard_normal(ticks))
    elif latency.kind == "trace":
        moments, each = np.array(latency.trace).T
        closed = _phase(site, seed, side) + np.arange(1, ticks + 1) * site.epoch - start
        drawn = each[np.maximum(np.searchsorted(moments, closed, "right") - 1, 0)]
    else:
        drawn = np.full(ticks, latency.middle)
    return np.rint(drawn).clip(0, LONGEST).astype(np.int64)


def intervals_of(spans: Sequence[Sequence[Span]], start: int) -> list[Intervals]:
    """Return spans of each cluster as starts and ends, in order."""
    arrays = [np.array(sorted(each), np.int64).reshape(-1, 2) + start for each in spans]
    return [(each[:, 0].copy(), each[:, 1].copy()) for each in arrays]


def _both(intervals: Sequence[Intervals]) -> tuple[Intervals, Intervals]:
    first, second = intervals
    return first, second
