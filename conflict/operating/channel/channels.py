"""
Where a channel goes on that is to read from another SQL node of its source cluster.

The manual takes two statements for that: the highest epoch of the source in `mysql.ndb_apply_status` of the replica,
and the place after that epoch in `mysql.ndb_binlog_index` of the other SQL node. Here the logs tell both.

Computes docs/channel.md. Source: MySQL manual, "Implementing Failover with NDB Cluster Replication".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration, Links
from conflict.errors import ConfigurationError
from conflict.history.ingestion.epoch_table import EpochTable, scan_epoch_table
from conflict.history.scheduling.servers import clusters_of_servers
from conflict.history.scheduling.summaries import Summary
from conflict.operating.channel.missing import missing_of
from ndb_formats.findings import LogRemark

_MICROSECONDS = 1_000_000


@attrs.frozen
class GoingOn:
    """
    Where one channel goes on.

    Attributes:
        replica: The cluster whose applier the channel feeds; empty if its logs are not given.
        after_epoch: The last epoch of the source that it applied; None if nothing tells.
        through: The SQL node from whose log that epoch came; None if that is not known.
        file: The file of the other SQL node in which it goes on; None if `after_epoch` is.
        position: The position in it.
        begins: File and position where `after_epoch` itself begins in that log; None if it is not in it.
        following: How many epochs that log holds after it.
        ignored: Server ids of the replica cluster, which its SQL nodes leave out where there are several.
        remarks: What may be missing, or is not known.
    """

    replica: str
    after_epoch: int | None
    through: int | None
    file: str | None
    position: int | None
    begins: tuple[str, int] | None
    following: int
    ignored: tuple[int, ...]
    remarks: tuple[LogRemark, ...]

    @property
    def statement(self) -> str | None:
        """The statement for the SQL node of the replica that takes the channel; None if the place is not known."""
        if self.file is None:
            return None
        name = self.file.replace("'", "''")
        ignored = ", ".join(map(str, self.ignored))
        more = f", IGNORE_SERVER_IDS = ({ignored})" if len(self.ignored) > 1 else ""
        return f"CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE = '{name}', SOURCE_LOG_POS = {self.position}{more};"

    def document(self) -> dict[str, Any]:
        """Return the same as a document."""
        begins = None if self.begins is None else {"file": self.begins[0], "position": self.begins[1]}
        return {
            **{name: getattr(self, name) for name in ("replica", "after_epoch", "through", "file", "position")},
            "begins": begins,
            "following_epochs": self.following,
            "statement": self.statement,
            "remarks": [attrs.asdict(each) for each in self.remarks],
        }


@attrs.frozen(eq=False)
class MovedChannels:
    """
    The channels of a source cluster, as they go on from one of its SQL nodes.

    Attributes:
        server: The SQL node.
        source: Its cluster.
        table: The epochs of its log.
        channels: Where each goes on.
    """

    server: int
    source: str
    table: EpochTable
    channels: tuple[GoingOn, ...]

    @property
    def remarks(self) -> tuple[LogRemark, ...]:
        """What may be missing, or is not known, of any of them; each once."""
        return tuple(dict.fromkeys(remark for each in self.channels for remark in each.remarks))

    def document(self) -> dict[str, Any]:
        """Return the same as a document, without the table."""
        log = self.table.log
        return {
            "server": self.server,
            "source": self.source,
            "files": [str(file) for file in log.files],
            "epochs": len(log),
            "first_epoch": int(log.number[0]) if len(log) else None,
            "last_epoch": int(log.number[-1]) if len(log) else None,
            "channels": [each.document() for each in self.channels],
        }


def channels_to(configuration: Configuration, server: int, after_epoch: int | None = None) -> MovedChannels:
    """
    Return where the channels of a cluster go on that are to read from one of its SQL nodes.

    Args:
        configuration: The clusters and their logs.
        server: Server id of the SQL node.
        after_epoch: The last epoch that was applied, as `mysql.ndb_apply_status` of the replica has it; None to take
            what its log shows.

    Raises:
        ConfigurationError: There is no log of that SQL node, or it holds no epoch.
    """
    source = _cluster_of(configuration.clusters, server)
    tables = {each.server_id: scan_epoch_table(each.server_id, each.files) for each in source.servers if each.files}
    table = tables.pop(server)
    if not len(table.log):
        message = f"the log of server {server} holds no epoch, so nothing tells where a channel goes on; give all of it"
        raise ConfigurationError(message)
    links = configuration.links
    replicas = links.replicas(source.name) if len(configuration.clusters) > 1 else ()
    if after_epoch is not None:
        found = [(replica.name, replica.server_ids, _Last(after_epoch)) for replica in replicas]
        lasts = found or [("", frozenset[int](), _Last(after_epoch))]
    else:
        lasts = list(_last_applied(configuration, source, replicas, [table, *tables.values()]))
    sisters = [each.log for each in tables.values()]
    channels = [
        _going_on(table, name, sorted(ids), last, missing_of(table.log, sisters, last.epoch))
        for name, ids, last in lasts
    ]
    return MovedChannels(server, source.name, table, tuple(channels))


@attrs.frozen
class _Last:
    """
    The last epoch that a channel applied.

    Attributes:
        epoch: The epoch; None if nothing tells.
        through: The SQL node from whose log it came; None if that is not known.
        whole: Whether the log that tells could be read to its end.
    """

    epoch: int | None
    through: int | None = None
    whole: bool = True


def _cluster_of(clusters: Sequence[ClusterConfiguration], server: int) -> ClusterConfiguration:
    """
    Return the cluster of an SQL node that has a log.

    Raises:
        ConfigurationError: It has none.
    """
    for cluster in clusters:
        if any(each.server_id == server and each.files for each in cluster.servers):
            return cluster
    ids = {each.name: [str(one.server_id) for one in each.servers if one.files] for each in clusters}
    given = "; ".join(f"{name}: {', '.join(own)}" for name, own in ids.items() if own)
    message = f"there is no log of server {server} among these ({given}); give its binlogs, and --to one of the servers"
    raise ConfigurationError(message)


def _going_on(
    table: EpochTable, replica: str, ids: Sequence[int], last: _Last, missing: Iterator[LogRemark]
) -> GoingOn:
    """Return where a channel goes on in a log after the last epoch that it applied."""
    if last.epoch is None:
        said = (
            f"the log of {replica} names no epoch of this cluster, so it does not tell which one was applied last; ask "
            "mysql.ndb_apply_status there, and give it with --after-epoch"
        )
        return GoingOn(replica, None, None, None, None, None, 0, tuple(ids), (LogRemark(said, lost=True),))
    remarks = list(missing)
    if not last.whole:
        said = f"the log of {replica} cannot be read to its end, and may show later epochs there: these come again"
        remarks.append(LogRemark(said))
    place = table.log.count_up_to(last.epoch)
    held = place > 0 and int(table.log.number[place - 1]) == last.epoch
    file, position = table.stop(place - 1) if place else table.start(0)
    begins = table.start(place - 1) if held else None
    following = len(table.log) - place
    return GoingOn(replica, last.epoch, last.through, file, position, begins, following, tuple(ids), tuple(remarks))


def _last_applied(
    configuration: Configuration,
    source: ClusterConfiguration,
    replicas: Sequence[ClusterConfiguration],
    of_source: Sequence[EpochTable],
) -> Iterator[tuple[str, frozenset[int], _Last]]:
    """
    Yield each replica with the ids of its SQL nodes and the last epoch of the source that its logs show.

    As in `mysql.ndb_apply_status`: the last one that came through each SQL node, and of these the highest.
    """
    links = configuration.links
    tables = {
        each.name: [scan_epoch_table(server.server_id, server.files) for server in each.servers if server.files]
        for each in replicas
    }
    logged = {name: _within(configuration, name, _united(each)) for name, each in tables.items()}
    known = _known_servers(links, {**logged, source.name: _united(of_source)})
    ids = {server for server, cluster in known.items() if cluster == source.name}
    for replica in replicas:
        rows = [item for own in logged[replica.name] for item in own.applied if item.server_id in ids]
        by_server = {item.server_id: item.epoch for item in rows}
        whole = any(each.log.whole for each in tables[replica.name])
        last = _Last(max(by_server.values()), rows[-1].server_id, whole) if rows else _Last(None)
        mine = frozenset(server for server, cluster in known.items() if cluster == replica.name)
        yield replica.name, mine, last


def _known_servers(links: Links, logged: Mapping[str, Sequence[Summary]]) -> dict[int, str]:
    """Return the cluster of each server id; clusters whose logs were not read have no part in it."""
    return clusters_of_servers(Links(tuple(each for each in links.clusters if each.name in logged)), logged)


def _united(tables: Sequence[EpochTable]) -> list[Summary]:
    """Return the epochs of the logs of a cluster, each once, in order."""
    found = {each.number: each for table in reversed(tables) for each in table.summaries()}
    return [found[number] for number in sorted(found)]


def _within(configuration: Configuration, name: str, own: Sequence[Summary]) -> list[Summary]:
    """Return the epochs up to the end of the part of the logs that a run reads."""
    span = configuration.span
    last, stop = span.last.get(name), span.stop_time
    return [
        each
        for each in own
        if (last is None or each.number <= last)
        and (stop is None or each.committed is None or each.committed < stop * _MICROSECONDS)
    ]
