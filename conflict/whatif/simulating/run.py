"""
One run of a simulation: the arrays that it needs, and the loop over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from conflict.engine.columnar.setups import ClusterSetup, rules_of
from conflict.engine.kernels.apply_order import Early
from conflict.engine.kernels.arrays import EPOCH_APPLY, Int8, Int16, Int64, RowMoments
from conflict.engine.kernels.records import (
    BOTH,
    CHANGE,
    EARLIER,
    ENTRY,
    ROW_STATE,
    ApplierLog,
    Arrivals,
    Changes,
    DecisionBuffers,
    Records,
    Schedule,
    State,
    Work,
)
from conflict.rules.table_setup import TableSetup
from conflict.whatif.simulating.configuration import (
    CLOCK_START,
    Model,
    ModelTable,
    Span,
    latency_of,
    loading_site,
    phase_of,
    source_of,
    upstream,
    workers_of,
)
from conflict.whatif.simulating.kernels.loop import End
from conflict.whatif.simulating.kernels.world import (
    EPOCH,
    NEVER,
    RUN,
    SETTINGS,
    SITE,
    TABLE,
    TAKEN,
    TOTALS,
    Intentions,
    Intervals,
    MoreOfChanges,
    MoreOfEntries,
    MoreOfRows,
    Stamp,
    Wish,
    World,
)
from conflict.whatif.simulating.rule_appliers import loop_of
from conflict.whatif.simulating.spreading import spread_of
from conflict.whatif.simulating.workload import Drawn, KeySpace, draw_wishes
from ndb_formats.columnar.kernel_mode import expect_work
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.update_format import ndb_columns

LOADED_PER_TRANSACTION = 1000
# Bytes of binlogs whose kernels are at work as long at a time: rows are loaded at once, transactions run in slices.
_WORK_OF_ROW, _WORK_OF_TRANSACTION = 128, 16
_LOADING_EPOCHS = 4  # until the rows that tables hold at first have come back from the other one of two clusters
SLICES = 50  # of a run, between which progress is reported, and after which a compiled kernel can take over


@attrs.frozen(eq=False)
class Simulated:
    """
    A simulation that ran.

    Attributes:
        model: What was simulated.
        seed: Its seed.
        start: When users began, in simulated time.
        loaded: How many changes of the cluster `loader` loaded the tables.
        loader: Its number.
        world: All that happened.
        key_offsets: First key of each table, and the number of all. Shape (tables + 1,).
    """

    model: Model
    seed: int
    start: int
    loaded: int
    loader: int
    world: World
    key_offsets: Int64

    @property
    def quiet(self) -> bool:
        """Whether all clusters had applied everything at the end."""
        sites, sources = self.world.site, self.world.settings["source"]
        applied = (sources < 0) | (sites["next_foreign"] == sites["logged"][sources])
        return not sites["content"].any() and bool(applied.all())

    def own_changes(self, side: int) -> Int64:
        """Return the changes that a cluster's users made, by number, without those that loaded the tables."""
        first = int(self.world.changes.begin[side]) + (self.loaded if side == self.loader else 0)
        stop = int(self.world.site[side]["stop"])
        return first + np.flatnonzero(self.world.changes.rows["relayed"][first:stop] == 0)

    def unsettled(self, side: int) -> int:
        """Return how many changes of a cluster's users had not been applied or rejected where they go, at the end."""
        return spread_of(self.world).unsettled(side, self.own_changes(side))


def simulate(
    model: Model,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
    wanted: Sequence[Drawn] | None = None,
) -> Simulated:
    """
    Run a simulation.

    Args:
        model: What to simulate.
        seed: Seed of the run; the same seed gives the same run.
        progress: Called with what is done and what there is to do; None for nobody.
        wanted: What the users of each cluster want; None for what their workloads draw.

    Raises:
        ConfigurationError: A server refuses a table.
    """
    start = _loading_epochs(model) * max(site.epoch for site in model.sites)
    drawn = _draw_all(model, seed, start) if wanted is None else wanted
    rows, transactions = sum(table.records for table in model.tables), sum(len(each.start) for each in drawn)
    expect_work(_WORK_OF_ROW * rows + _WORK_OF_TRANSACTION * transactions, of=simulate)  # one after the other
    scale = 1
    while True:
        world, offsets, loaded = _world(model, seed, start, drawn, scale)
        run = Simulated(model, seed, start, loaded, loading_site(model), world, offsets)
        loop = loop_of(model, world, offsets, start)
        end = _users_work(model, start, world, loop, progress)
        for until in model.ends():
            if end is not End.TIME:
                break
            # How long the epochs travel that there are until then; the first ones as long as before.
            run = attrs.evolve(run, world=world._replace(latency=latency_of(model, seed, start, until)))
            end = End(loop(start + until, run.world))
            if not any(run.unsettled(side) for side in range(len(model.sites))):
                break  # nothing more is lost; clusters that reflect to each other never rest
        if end is not End.FULL:
            return run
        scale *= 2


def _loading_epochs(model: Model) -> int:
    """Return how many epochs it takes to load: of more clusters, two to the next one, and the way round once."""
    return _LOADING_EPOCHS if model.is_pair else _LOADING_EPOCHS + 2 * len(model.sites)


def _users_work(
    model: Model,
    start: int,
    world: World,
    loop: Callable[[int, World], int],
    progress: Callable[[int, int], None] | None,
) -> End:
    """Load the tables without loss of time, then let users work."""
    settings, latency = world.settings.copy(), world.latency.copy()
    for name in ("per_epoch", "per_row", "bandwidth", "think"):
        world.settings[name] = 0
    world.settings["skew"] = CLOCK_START - 2 * start
    world.latency[:] = 0
    end = End(loop(start, world))
    world.settings[:], world.latency[:] = settings, latency
    world.totals[:] = 0
    for name in ("differed", "row_time", "stale"):
        world.run[0][name] = 0
    for part in range(1, SLICES + 1):
        if end is End.FULL:
            break
        end = End(loop(start + model.duration * part // SLICES, world))
        if progress:
            progress(part, SLICES)
    return end


def _world(model: Model, seed: int, start: int, drawn: Sequence[Drawn], scale: int) -> tuple[World, Int64, int]:
    """Return everything before it begins, the first key of each table, and how many rows are loaded."""
    clusters, count = model.clusters(), len(model.sites)
    spaces = [
        max([table.records, *(int(each.key[each.table == number].max(initial=-1)) + 1 for each in drawn)])
        for number, table in enumerate(model.tables)
    ]
    offsets = np.concatenate([[0], np.cumsum(spaces)]).astype(np.int64)
    loading = _loading_of(model.tables)
    loaded = len(loading.kind)
    wanted = [[attrs.evolve(each, start=each.start + start)] for each in drawn]
    wanted[loading_site(model)].insert(0, loading)
    intentions = _intentions(wanted, offsets)
    changes = _changes(model, [sum(int((each.kind != Wish.READ).sum()) for each in mine) for mine in wanted])
    key_table = np.repeat(np.arange(len(spaces), dtype=np.int16), spaces)
    columns = max(table.columns for table in model.tables)
    capacity = (len(changes.rows) * 5 // 4 + 1024) * scale
    # An epoch is logged for a change of a user or of the applier.
    epochs = min(3 * len(changes.rows) + 1024, int(model.epochs_in(model.duration + start)) + 1024) * scale
    longest = int(np.diff(intentions.begin).max()) + 1
    tables = np.array([[_table(*each) for each in zip(model.tables, one.setups, strict=True)] for one in clusters])
    world = World(
        settings=np.array([_settings(model, side, clusters[side], seed) for side in range(count)]),
        tables=tables.reshape(count, -1),
        intentions=intentions,
        latency=latency_of(model, seed, start, model.duration),
        outages=_intervals([site.link.outages for site in model.sites], start),
        stops=_intervals([site.applier.stops for site in model.sites], start),
        rules=rules_of(clusters),
        key_table=key_table,
        changes=changes,
        made=_made(len(changes.rows), columns),
        schedule=Schedule(np.zeros(count * epochs, EPOCH_APPLY), np.zeros(1, np.int32), 0),
        own_end=np.zeros(count * epochs, np.int32),
        work=_work(key_table, changes, count * epochs, capacity),
        entries=MoreOfEntries(np.zeros(capacity, np.uint64), np.zeros((capacity, columns), np.uint64)),
        decisions=DecisionBuffers.of(capacity),
        tracked=DecisionBuffers.of(capacity),
        conflicts=(np.zeros(count * epochs + 1, np.int64), np.zeros(capacity, np.int32)),
        pairs=np.zeros((capacity, 4), np.int32),
        rows=_rows(len(key_table), columns, model),
        epochs=np.zeros((count, epochs), EPOCH),
        learnt=np.zeros((count, epochs + 1, count), np.uint64),
        taken=np.zeros((count, epochs), TAKEN),
        queues=(np.zeros((count, 2, longest), np.int64), np.zeros((count, 2, longest), np.int64)),
        tries=np.zeros(len(intentions.start), np.int32),
        read=np.zeros(len(intentions.kind), np.int32),
        site=_sites(changes, intentions),
        totals=np.zeros(count, TOTALS),
        run=np.zeros(1, RUN),
        stale=np.zeros(capacity, np.int64),
    )
    return world, offsets, loaded


def _loading_of(tables: Sequence[ModelTable]) -> Drawn:
    """Return the transactions that insert the rows that tables hold at first, at time 0."""
    table = np.repeat(np.arange(len(tables)), [each.records for each in tables])
    key = np.concatenate([np.arange(each.records) for each in tables])
    count = -(-len(key) // LOADED_PER_TRANSACTION)
    sizes = np.full(count, LOADED_PER_TRANSACTION)
    if count:
        sizes[-1] = len(key) - LOADED_PER_TRANSACTION * (count - 1)
    kinds = np.full(len(key), int(Wish.INSERT), np.int8)
    return Drawn(np.zeros(count, np.int64), sizes, kinds, table, key, np.zeros(len(key), np.uint64))


def _intentions(wanted: Sequence[Sequence[Drawn]], offsets: Int64) -> Intentions:
    """Return what the users of each cluster want in the form that compiled code reads."""
    lists = [each for mine in wanted for each in mine]
    return Intentions(
        begin=_starts([sum(len(each.start) for each in mine) for mine in wanted]),
        start=np.concatenate([each.start for each in lists]),
        first=_starts(np.concatenate([each.sizes for each in lists])),
        kind=np.concatenate([each.kind for each in lists]).astype(np.int8),
        key=np.concatenate([offsets[each.table] + each.key for each in lists]).astype(np.int32),
        writes=np.concatenate([each.writes for each in lists]),
    )


def _starts(sizes: Sequence[int] | Int64) -> Int64:
    """Return where each of some parts begins, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _changes(model: Model, counts: Sequence[int]) -> Changes:
    """Return room for the own changes of each cluster, and for those of others that it relays: each once at most."""
    if not model.is_pair:
        counts = [
            count + sum(counts[other] for other in upstream(model, side) if other != side)
            for side, count in enumerate(counts)
        ]
    total = max(sum(counts), 1)
    return Changes(np.zeros(total, CHANGE), np.zeros(total, BOTH), 1, _starts(counts))


def _made(count: int, columns: int) -> MoreOfChanges:
    return MoreOfChanges(
        at=np.zeros(count, np.int64),
        transaction=np.zeros(count, np.int64),
        carried=np.zeros(count, np.uint64),
        written=np.zeros(count, np.uint64),
        columns=np.zeros((count, columns), np.uint64),
    )


def _rows(keys: int, columns: int, model: Model) -> MoreOfRows:
    clusters, relays = len(model.sites), not model.is_pair
    in_parallel = any(workers_of(model, side) > 1 for side in range(clusters))
    return MoreOfRows(
        columns=np.zeros((keys, clusters, columns), np.uint64),
        version=np.zeros((keys, clusters), np.int32),
        touched=np.zeros((keys, clusters), np.int64),
        passed=np.zeros(keys, np.int64),
        before=np.zeros(keys, np.bool_),
        carried=np.zeros(keys, np.uint64),
        sent=np.zeros(keys, np.int64),
        author=np.zeros(keys, np.int8),
        wrote=np.zeros(keys, np.uint64),
        value=np.zeros((keys if relays else 0, clusters), np.uint64),
        brought=np.zeros((keys if in_parallel else 0, clusters), np.int64),
        since=np.full(keys, -1, np.int64),
        last_apply=np.full(keys, -1, np.int32),
        last_group=np.zeros(keys, np.int32),
    )


def _work(key_table: Int16, changes: Changes, applies: int, capacity: int) -> Work:
    """Return the state of the columnar engine before anything happened."""
    clusters = len(changes.begin) - 1
    nobody: Int8 = np.zeros(applies, np.int8)
    return Work(
        state=State.of(key_table, changes.begin),
        arrivals=Arrivals.of(applies),
        log=ApplierLog(
            np.zeros(capacity, ENTRY), np.zeros((clusters, capacity), np.int64), np.zeros(clusters, np.int64)
        ),
        marks=np.zeros(len(key_table), np.bool_),
        pending=np.zeros(capacity, np.int64),
        saved=np.zeros(len(key_table), EARLIER),
        earlier=np.zeros(1, EARLIER),
        moved=np.zeros(1, EARLIER),
        early=Early.of(RowMoments.none(), nobody, np.zeros(0, ROW_STATE)),
        not_known_before=np.zeros((0, clusters), np.int32),
    )


def _sites(changes: Changes, intentions: Intentions) -> Records:
    sites = np.zeros(len(changes.begin) - 1, SITE)
    sites["first_change"] = sites["stop"] = changes.begin[:-1]
    sites["next_start"] = intentions.begin[:-1]
    sites["apply_at"], sites["last_apply"] = NEVER, -1
    return sites


def _settings(model: Model, side: int, cluster: ClusterSetup, seed: int) -> npt.NDArray[np.void]:
    """Return what does not change of a cluster."""
    site, source = model.sites[side], source_of(model, side)
    found, work = np.zeros((), SETTINGS), site.workload
    found["source"], found["relays"] = -1 if source is None else source, not model.is_pair
    found["phase"], found["first_checkpoint"] = phase_of(site, seed, side), 1000 * (side + 1)
    found["epoch"], found["checkpoint"], found["skew"] = site.epoch, site.checkpoint, CLOCK_START + site.skew
    found["bandwidth"] = site.link.bandwidth
    found["per_epoch"], found["per_row"] = site.applier.per_epoch, site.applier.per_row
    found["workers"] = workers_of(model, side)
    found["think"], found["retries"], found["retry_delay"] = work.think, work.retries, work.retry_delay
    found["optimistic"] = work.checks
    found["transactional"] = any(
        setup.function is not None and setup.function.spec.transactional for setup in cluster.setups
    )
    return found


def _draw_all(model: Model, seed: int, start: int) -> list[Drawn]:
    """Draw what the users of each cluster want; they begin at `start`."""
    records, columns = ([getattr(table, name) for table in model.tables] for name in ("records", "columns"))
    space = KeySpace(records, columns, len(model.sites))
    opened = [(start - phase_of(site, seed, side)) % site.epoch for side, site in enumerate(model.sites)]
    return [
        draw_wishes(site.workload, space, model.duration, seed, side, opened[side])
        for side, site in enumerate(model.sites)
    ]


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


def _intervals(spans: Sequence[Sequence[Span]], start: int) -> Intervals:
    """Return the spans of each cluster in the form that compiled code reads."""
    both = np.array([span for each in spans for span in sorted(each)], np.int64).reshape(-1, 2) + start
    return Intervals(_starts([len(each) for each in spans]), both[:, 0].copy(), both[:, 1].copy())
