"""
What is simulated: the clusters, their tables and users, and the links between them.

All times are in microseconds, from the moment on at which users begin; rows that tables hold at first are loaded
before.

Which cluster of a simulation replicates from which, and how long epochs travel.

Of more than two clusters, each has one source at most: the schedule of a run file can be given for these alone
(docs/run-file.md, "More than two clusters").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

import attrs
import numpy as np

from conflict.config.cluster_tables import check_clusters
from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.engine.columnar.setups import ClusterSetup
from conflict.engine.kernels.arrays import Int64
from conflict.errors import ConfigurationError
from conflict.history.reading.network import refuse_network
from conflict.history.run import Run
from conflict.rules.functions import FUNCTIONS, FunctionSpec
from conflict.rules.replication_table import ReplicationRow, Role
from conflict.rules.table_setup import TableSetup, set_up
from conflict.whatif.simulating.kernels.world import FOREVER, Stamp
from conflict.whatif.simulating.toml_entries import LONGEST
from conflict.whatif.simulating.workload import Purpose, Workload, stream
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema


def refuse_unconnected(model: Model) -> None:
    """
    Make sure that a simulation can be run between its clusters.

    Raises:
        ConfigurationError: Names, server ids or sources do not fit together; a function works between two clusters
            alone; or there are clusters that no cluster could load.
    """
    run = Run(model.configuration())
    check_clusters(run.clusters)
    if model.is_pair:
        return
    if len(model.sites) == 2:
        message = "two clusters of a simulation replicate to each other; leave out replicates_from"
        raise ConfigurationError(message)
    for site in model.sites:
        if len(site.replicates_from or ()) > 1:
            message = (
                f"cluster {site.name} replicates from {', '.join(site.replicates_from or ())}; in a simulation of more "
                "than two clusters each replicates from one other, as in a ring or a chain"
            )
            raise ConfigurationError(message)
    if model.own_rules:
        message = (
            f"{model.own_rules[0].name} is no row of cells, and such a rule is simulated between two clusters; leave "
            "out replicates_from"
        )
        raise ConfigurationError(message)
    refuse_network(run)
    loading_site(model)


def source_of(model: Model, side: int) -> int | None:
    """Return the number of the cluster that one replicates from; None if it has none."""
    names = [site.name for site in model.sites]
    given = model.sites[side].replicates_from
    if given is None:
        return 1 - side
    return names.index(given[0]) if given else None


def loading_site(model: Model) -> int:
    """
    Return the number of the first cluster whose changes reach all others, which loads the tables.

    Raises:
        ConfigurationError: There is none.
    """
    sides = range(len(model.sites))
    reached = [[other for other in sides if other == side or side in upstream(model, other)] for side in sides]
    best = max(sides, key=lambda side: len(reached[side]))
    if len(reached[best]) < len(sides):
        away = next(site.name for side, site in enumerate(model.sites) if side not in reached[best])
        message = (
            f"no cluster reaches all others: {model.sites[best].name} does not reach {away}; let replicates_from make "
            "a ring, or a chain"
        )
        raise ConfigurationError(message)
    return best


def upstream(model: Model, side: int) -> list[int]:
    """Return the numbers of the clusters whose changes reach one, the nearest first; in a ring, its own last."""
    found = list[int]()
    source = source_of(model, side)
    while source is not None and source not in found:
        found.append(source)
        source = source_of(model, source)
    return found


def followers_of(model: Model, side: int) -> list[int]:
    """Return the numbers of the clusters that replicate from one."""
    return [other for other in range(len(model.sites)) if source_of(model, other) == side]


def workers_of(model: Model, side: int) -> int:
    """Return how many workers of a cluster's applier can work side by side: one, if each epoch waits for the last."""
    source = source_of(model, side)
    in_parallel = source is not None and model.sites[source].logs_dependencies
    return model.sites[side].applier.workers if in_parallel else 1


def phase_of(site: Site, seed: int, side: int) -> int:
    """Return when the first epoch of a cluster begins: at a random time, before everything else."""
    return -int(stream(seed, side, Purpose.PHASE).random() * site.epoch)


def latency_of(model: Model, seed: int, start: int, until: int) -> Int64:
    """Return how long each epoch of each cluster would travel, of those that end by a time. Shape (clusters, ticks)."""
    ticks = (start + until) // min(site.epoch for site in model.sites) + 3
    return np.array([_latencies(site, ticks, seed, side, start) for side, site in enumerate(model.sites)])


def _latencies(site: Site, ticks: int, seed: int, side: int, start: int) -> Int64:
    """Return how long each epoch of a cluster would travel. Shape (ticks,)."""
    latency: Latency = site.link.latency
    chance = stream(seed, side, Purpose.LATENCY)
    if latency.kind == "normal":
        drawn = chance.normal(latency.middle, latency.spread, ticks)
    elif latency.kind == "lognormal":
        drawn = latency.middle * np.exp(latency.spread * chance.standard_normal(ticks))
    elif latency.kind == "trace":
        moments, each = np.array(latency.trace).T
        closed = phase_of(site, seed, side) + np.arange(1, ticks + 1) * site.epoch - start
        drawn = each[np.maximum(np.searchsorted(moments, closed, "right") - 1, 0)]
    else:
        drawn = np.full(ticks, latency.middle)
    return np.rint(drawn).clip(0, LONGEST).astype(np.int64)


DATABASE = "model"
CLOCK_START = 10**15  # of the clocks that columns take their values from
MOST_COLUMNS = 62
MOST_EPOCHS = 50_000_000  # of all clusters in a run
DRAIN = 60_000_000  # for how long a run goes on at first, after the last moment that its model names
Span = tuple[int, int]  # from, to before; to `FOREVER` if it has no end


@attrs.frozen
class ModelTable:
    """
    A table. Its columns are the key ``k``, data columns ``c1``, ``c2``, ... and, if it has a stamp, ``x``.

    Attributes:
        name: Its name.
        records: Rows that it holds at first, on all clusters.
        columns: Number of data columns.
        functions: By cluster, the text of its conflict function; clusters without one are left out.
        binlog_type: How it is logged.
        stamp: What a change sets the resolve column ``x`` to.
        row_bytes: Bytes that a change takes in the binlog, for the bandwidth of links.
    """

    name: str
    records: int
    columns: int = 4
    functions: Mapping[str, str] = attrs.field(factory=dict)
    binlog_type: int = 7
    stamp: Stamp = Stamp.NONE
    row_bytes: int = 80

    @property
    def data_columns(self) -> frozenset[int]:
        """Ordinals of its columns but the key."""
        return frozenset(range(1, self.columns + 1 + (self.stamp is not Stamp.NONE)))

    @property
    def definition(self) -> str:
        """Its CREATE TABLE statement."""
        columns = [f"c{number + 1} BIGINT UNSIGNED" for number in range(self.columns)]
        columns += ["x BIGINT UNSIGNED NOT NULL"] if self.stamp is not Stamp.NONE else []
        return f"CREATE TABLE `{self.name}` (k INT UNSIGNED NOT NULL PRIMARY KEY, {', '.join(columns)}) ENGINE=NDB;"


@attrs.frozen
class Latency:
    """
    How long an epoch travels, besides its transmission.

    Attributes:
        kind: ``constant``, ``normal``, ``lognormal`` or ``trace``.
        middle: The constant, the mean, or the median. Microseconds.
        spread: Standard deviation: in microseconds (normal), or of the logarithm (lognormal).
        trace: Moments and the latency from each on, both in microseconds; the first also holds before it.
    """

    kind: str = "constant"
    middle: float = 0
    spread: float = 0
    trace: tuple[tuple[int, int], ...] = ()


@attrs.frozen
class Link:
    """
    The link from a cluster to those that replicate from it.

    Attributes:
        latency: How long an epoch travels.
        bandwidth: Bytes per second; 0 is unlimited.
        outages: When it is down. Epochs wait until it is up again.
    """

    latency: Latency = Latency()
    bandwidth: int = 0
    outages: tuple[Span, ...] = ()


@attrs.frozen
class ApplierSettings:
    """
    The applier of a cluster.

    Attributes:
        per_epoch: Time that it takes for an epoch.
        per_row: Time that it takes for each row operation besides.
        stops: When it is stopped.
        workers: ``replica_parallel_workers``.
    """

    per_epoch: int = 0
    per_row: int = 0
    stops: tuple[Span, ...] = ()
    workers: int = 1


@attrs.frozen
class Site:
    """
    One cluster.

    Attributes:
        name: Its name.
        server_id: Its server id.
        workload: What its users do.
        role: Its role, for the functions that have roles.
        link: The link from it to the other cluster.
        applier: Its applier.
        epoch: ``TimeBetweenEpochs``.
        checkpoint: ``TimeBetweenGlobalCheckpoints``.
        skew: How far its clock is ahead.
        replicates_from: The clusters whose epochs its applier applies; None for the other one of two.
        logs_dependencies: ``ndb_log_transaction_dependency``: epochs without a row in common can be applied in
            parallel.
    """

    name: str
    server_id: int
    workload: Workload
    role: Role = Role.NONE
    link: Link = Link()
    applier: ApplierSettings = ApplierSettings()
    epoch: int = 100_000
    checkpoint: int = 2_000_000
    skew: int = 0
    replicates_from: tuple[str, ...] | None = None
    logs_dependencies: bool = False


@attrs.frozen
class Model:
    """
    A simulation before it runs.

    Attributes:
        sites: The clusters: two that replicate to each other, or more with one source each at most.
        tables: Their tables.
        duration: How long users work.
        drain: How long the clusters may go on afterwards; None for as long as it takes until all is applied.
        seed: Of the first run.
        functions: The known conflict functions, rows of cells of the model's own among them.
    """

    sites: tuple[Site, ...]
    tables: tuple[ModelTable, ...]
    duration: int
    drain: int | None = None
    seed: int = 1
    functions: tuple[FunctionSpec, ...] = FUNCTIONS

    @property
    def schema(self) -> Schema:
        """The definitions of the tables."""
        return _schema_of(tuple(table.definition for table in self.tables))

    @property
    def is_pair(self) -> bool:
        """Whether it has two clusters that replicate to each other."""
        return all(site.replicates_from is None for site in self.sites)

    @property
    def replication_rows(self) -> tuple[ReplicationRow, ...]:
        """The rows of ``mysql.ndb_replication``, table by table."""
        return tuple(
            ReplicationRow(DATABASE, table.name, site.server_id, table.binlog_type, table.functions.get(site.name))
            for table in self.tables
            for site in self.sites
        )

    @cached_property
    def own_rules(self) -> tuple[FunctionSpec, ...]:
        """The functions of its tables that are rules in Python or programs; no kernel decides by them."""
        setups = (setup for each in self.setups.values() for setup in each.values())
        specs = {setup.function.spec.name: setup.function.spec for setup in setups if setup.function is not None}
        return tuple(spec for spec in specs.values() if spec.own is not None)

    @property
    def endless(self) -> tuple[str, ...]:
        """What does not end: links that stay down, and appliers that stay stopped."""
        links = [f"the link from {site.name} stays down" for site in self.sites if _is_endless(site.link.outages)]
        return (
            *links,
            *(f"the applier of {site.name} stays stopped" for site in self.sites if _is_endless(site.applier.stops)),
        )

    def ends(self) -> Iterator[int]:
        """
        Yield until when a run goes on: if `drain` does not say it, ever later, for as long as changes are not settled.

        The first time is after every outage and stop that has an end.
        """
        if self.drain is not None:
            yield self.duration + self.drain
            return
        spans = [span for site in self.sites for span in (*site.link.outages, *site.applier.stops)]
        moments = [moment for site in self.sites for moment, _ in site.link.latency.trace]
        last = max([self.duration, *moments, *(stop for _, stop in spans if stop < FOREVER)])
        most, after = int(MOST_EPOCHS / self.epochs_in(1)), DRAIN
        yield last + after
        while last + 2 * after < most:
            after *= 2
            yield last + after

    def epochs_in(self, duration: int) -> float:
        """Return how many epochs all clusters have in a time."""
        return sum(duration / site.epoch for site in self.sites)

    def configuration(self) -> Configuration:
        """Return the run that it is, without binlogs."""
        clusters = tuple(
            ClusterConfiguration(
                site.name, (LoggingServer(site.server_id),), site.role, replicates_from=site.replicates_from
            )
            for site in self.sites
        )
        return Configuration(clusters, self.schema, self.replication_rows, self.functions)

    @cached_property
    def setups(self) -> Mapping[str, Mapping[str, TableSetup]]:
        """
        How each server sets up each table.

        Raises:
            ConfigurationError: A server refuses a table.
        """
        schema, found = self.schema, dict[str, dict[str, TableSetup]]()
        for site in self.sites:
            found[site.name] = set_up(schema, self.replication_rows, site.server_id, functions=self.functions)
            for name, setup in found[site.name].items():
                if setup.refusal is not None:
                    message = f"cluster {site.name} refuses table {name}: {setup.refusal.message}"
                    raise ConfigurationError(message)
        self._refuse_compared_reflections(found)
        for site in self.sites:
            functions = [setup.function for setup in found[site.name].values()]
            if site.role is Role.NONE and any(each is not None and each.spec.uses_role for each in functions):
                message = f"cluster {site.name} has the role NONE, and a table has a function with roles; set its role"
                raise ConfigurationError(message)
        return found

    def _refuse_compared_reflections(self, setups: Mapping[str, Mapping[str, TableSetup]]) -> None:
        """Refuse a table whose changes one cluster reflects and the other compares by their values."""
        for name in next(iter(setups.values())):
            specs = [setup.function.spec for each in setups.values() if (setup := each[name]).function is not None]
            if any(spec.uses_role for spec in specs) and any(spec.needs for spec in specs):
                message = (
                    f"table {name}: a function with roles on one cluster and one by column on the other is not built"
                )
                raise ConfigurationError(message)

    def clusters(self) -> list[ClusterSetup]:
        """Return the clusters in the form that rules are made of."""
        setups = self.setups
        return [
            ClusterSetup(site.name, site.server_id, tuple(setups[site.name].values()), site.role) for site in self.sites
        ]


@lru_cache(maxsize=16)  # every point and seed of a sweep asks for it, several times
def _schema_of(definitions: tuple[str, ...]) -> Schema:
    return parse_schema("\n".join(definitions), database=DATABASE)


def _is_endless(spans: Sequence[Span]) -> bool:
    return any(stop >= FOREVER for _, stop in spans)
