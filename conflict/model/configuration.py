"""
What is simulated: the clusters, their tables and users, and the links between them.

All times are in microseconds, from the moment on at which users begin; rows that tables hold at first are loaded
before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.engine.columnar.setups import ClusterSetup
from conflict.errors import ConfigurationError
from conflict.model.kernels.world import FOREVER, Stamp
from conflict.model.workload import Workload
from conflict.rules.replication_table import ReplicationRow
from conflict.rules.roles import Role
from conflict.rules.table_setup import TableSetup, set_up
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema

__all__ = ["DATABASE", "FOREVER", "MOST_EPOCHS", "Applier", "Latency", "Link", "Model", "ModelTable", "Site", "Span"]

DATABASE = "model"
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
class Applier:
    """
    The applier of a cluster.

    Attributes:
        per_epoch: Time that it takes for an epoch.
        per_row: Time that it takes for each row operation besides.
        stops: When it is stopped.
    """

    per_epoch: int = 0
    per_row: int = 0
    stops: tuple[Span, ...] = ()


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
    """

    name: str
    server_id: int
    workload: Workload
    role: Role = Role.NONE
    link: Link = Link()
    applier: Applier = Applier()
    epoch: int = 100_000
    checkpoint: int = 2_000_000
    skew: int = 0
    replicates_from: tuple[str, ...] | None = None


@attrs.frozen
class Model:
    """
    A simulation before it runs.

    Attributes:
        sites: The clusters: two that replicate to each other, or more of which each has one source at most.
        tables: Their tables.
        duration: How long users work.
        drain: How long the clusters may go on afterwards; None for as long as it takes until all is applied.
        seed: Of the first run.
    """

    sites: tuple[Site, ...]
    tables: tuple[ModelTable, ...]
    duration: int
    drain: int | None = None
    seed: int = 1

    @property
    def schema(self) -> Schema:
        """The definitions of the tables."""
        return parse_schema("\n".join(table.definition for table in self.tables), database=DATABASE)

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
        return Configuration(clusters, self.schema, self.replication_rows)

    def setups(self) -> dict[str, dict[str, TableSetup]]:
        """
        Return how each server sets up each table.

        Raises:
            ConfigurationError: A server refuses a table.
        """
        schema, found = self.schema, {}
        for site in self.sites:
            found[site.name] = set_up(schema, self.replication_rows, site.server_id)
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
        """Refuse a table of which one cluster reflects changes and the other compares values of them."""
        for name in next(iter(setups.values())):
            specs = [setup.function.spec for each in setups.values() if (setup := each[name]).function is not None]
            if any(spec.uses_role for spec in specs) and any(spec.needs for spec in specs):
                message = (
                    f"table {name}: a function with roles on one cluster and one by column on the other is not built"
                )
                raise ConfigurationError(message)

    def clusters(self) -> list[ClusterSetup]:
        """Return the clusters in the form that rules are made of."""
        setups = self.setups()
        return [
            ClusterSetup(site.name, site.server_id, tuple(setups[site.name].values()), site.role) for site in self.sites
        ]


def _is_endless(spans: Sequence[Span]) -> bool:
    return any(stop >= FOREVER for _, stop in spans)
