"""
Which cluster a server id in binlogs belongs to, where several SQL nodes of one cluster log or apply.

An epoch belongs to its cluster, whichever SQL node logs it. A row of ``mysql.ndb_apply_status`` has the id of the SQL
node from whose binlog the epoch was applied, so after a channel moved to other SQL nodes the same cluster's epochs go
on under another id, and a cluster's own epochs come back under the id of its other SQL node. Ids that the run does not
name are found from the epochs that stand beside them: they are epochs of one cluster.

Source: MySQL manual, "NDB Cluster Replication: Implementing Failover with NDB Cluster Replication".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import attrs

from conflict.config.configuration import ClusterConfiguration, Links
from conflict.history.epochs import AppliedEpoch, BinlogEpoch
from conflict.history.model import EpochApply
from conflict.history.restarts import Restarts
from conflict.history.scheduling.schedule import Summary

__all__ = ["clusters_of_servers", "of_clusters", "with_restarts", "with_servers"]

Epochs = TypeVar("Epochs", Summary, BinlogEpoch)
Logged = Mapping[str, Sequence[Summary]]


def of_clusters(links: Links, epochs: Mapping[str, Sequence[Epochs]]) -> dict[str, list[Epochs]]:
    """
    Return epochs whose foreign epochs have the server id of their cluster, whichever SQL node they came through.

    Rows that name the cluster's own epochs, under the id of another SQL node of its, are left out.

    Args:
        links: The clusters.
        epochs: Per cluster, its own epochs as they are logged.
    """
    if not any(_others(links, name, own) for name, own in epochs.items()):
        return {name: list(own) for name, own in epochs.items()}
    known, ids = clusters_of_servers(links, epochs), links.server_ids

    def foreign(name: str, each: AppliedEpoch) -> AppliedEpoch | None:
        cluster = known.get(each.server_id)
        if cluster is None:
            return each
        return None if cluster == name else attrs.evolve(each, server_id=ids[cluster], through=each.server_id)

    def of_cluster(name: str, epoch: Epochs) -> Epochs:
        found = (foreign(name, each) for each in epoch.applied)
        return attrs.evolve(epoch, applied=tuple(each for each in found if each is not None))

    return {name: [of_cluster(name, each) for each in own] for name, own in epochs.items()}


def with_servers(
    applies: Sequence[EpochApply], applier: ClusterConfiguration, source: ClusterConfiguration, logged: Logged
) -> list[EpochApply]:
    """
    Return the epoch applies of a channel with the SQL nodes at both ends, where a cluster has several.

    A binlog names the SQL node from whose binlog an epoch was applied. It does not name the one that applied it: the
    channel is taken to lead from the source's first SQL node to the applier's first one, from the second to the second.
    An applier that a channel moved to begins anew, as after a restart.

    Args:
        applies: The epoch applies, in order.
        applier: The applying cluster.
        source: The other one.
        logged: Per cluster, its own epochs.
    """
    ends = [_servers(each, logged) for each in (applier, source)]
    if all(len(each) == 1 for each in ends):
        return list(applies)
    through = {
        (epoch.number, each.group, each.epoch): each.through
        for epoch in logged[applier.name]
        for each in epoch.applied
        if each.server_id == source.server_id
    }
    last = current = next(iter(through.values()), source.server_id)
    found = list[EpochApply]()
    for apply in applies:
        current = through.get((apply.epoch, apply.group, apply.foreign_epoch), current)
        place = min(ends[1].index(current), len(ends[0]) - 1) if current in ends[1] else 0
        began = apply.restarted or current != last
        found.append(attrs.evolve(apply, server=ends[0][place], source_server=current, restarted=began))
        last = current
    return found


def with_restarts(applies: Sequence[EpochApply], server_id: int, restarts: Restarts) -> list[EpochApply]:
    """
    Return the epoch applies of a channel; the first one after each restart of its SQL node begins anew.

    Args:
        applies: The epoch applies, in order.
        server_id: The SQL node that applied those which name none.
        restarts: By SQL node.
    """
    found, begun = list(applies), dict[int, int]()
    for place, apply in enumerate(applies):
        server = apply.server or server_id
        times = sum(apply.epoch >= first for first in restarts.get(server, ()))
        if apply.applied and times > begun.get(server, 0):
            begun[server] = times
            found[place] = attrs.evolve(apply, restarted=True)
    return found


def _servers(cluster: ClusterConfiguration, logged: Logged) -> list[int]:
    """Return the SQL nodes of a cluster: those that the run names, and those that others' logs name, in order."""
    named = (
        each.through
        for epochs in logged.values()
        for epoch in epochs
        for each in epoch.applied
        if each.server_id == cluster.server_id
    )
    return list(dict.fromkeys([*(server.server_id for server in cluster.servers), *named]))


def clusters_of_servers(links: Links, epochs: Mapping[str, Sequence[Epochs]]) -> dict[int, str]:
    """Return the cluster of each server id: as the run says, or else as the epochs beside it show."""
    known = {server.server_id: cluster.name for cluster in links.clusters for server in cluster.servers}
    named = (each.server_id for own in epochs.values() for epoch in own for each in epoch.applied)
    unknown = [each for each in dict.fromkeys(named) if each not in known]
    if not unknown:
        return known
    numbers = {name: {each.number for each in own} for name, own in epochs.items()}
    found = dict(known)
    for server in unknown:
        cluster = _cluster_of(server, epochs, numbers, known)
        if cluster is not None:
            found[server] = cluster
    return found


def _others(links: Links, name: str, own: Sequence[Epochs]) -> set[int]:
    """Return the server ids in the log of a cluster that are not those by which other clusters are known."""
    others = {server_id for cluster, server_id in links.server_ids.items() if cluster != name}
    return {each.server_id for epoch in own for each in epoch.applied} - others


def _cluster_of(
    server: int,
    epochs: Mapping[str, Sequence[Epochs]],
    numbers: Mapping[str, set[int]],
    known: Mapping[int, str],
) -> str | None:
    """
    Return the cluster whose epochs stand beside a server id; None if they are those of none.

    Clusters that were started together can have the same epochs. Then the groups decide: what an applier logs for
    an epoch names the epoch's source, so an id that stands there alone, or beside own ids alone, is of a source. And a
    channel comes through one SQL node at a time: an id that stands in turns with one of a cluster is of another one.
    """
    named = list(_named(server, epochs))
    held = {cluster: _share([each.epoch for _, each, _ in named], own) for cluster, own in numbers.items()}
    most = max(held.values())
    alone = {
        name
        for name, each, others in named
        if all(known.get(other.server_id) == name for other in others if other.group == each.group)
    }
    fitting = (
        cluster
        for cluster, share in held.items()
        if most >= _LEAST and share >= _ALIKE * most and not _in_turns(server, cluster, epochs, known)
    )
    return next((cluster for cluster in fitting if cluster not in alone), None)


def _in_turns(server: int, cluster: str, epochs: Mapping[str, Sequence[Epochs]], known: Mapping[int, str]) -> bool:
    """Whether the epochs of a server id come in turns with those of a cluster, in the log of another one."""
    for name, own in epochs.items():
        if name == cluster:
            continue
        of_server = [
            each.server_id == server
            for epoch in own
            for each in epoch.applied
            if each.server_id == server or known.get(each.server_id) == cluster
        ]
        fewer = min(sum(of_server), len(of_server) - sum(of_server))
        if sum(one != other for one, other in pairwise(of_server)) > _MOVES + fewer * _MOVING:
            return True
    return False


# A channel moves now and then: so often in any log, and for so many of the epochs at most.
_MOVES, _MOVING = 2, 0.1
# A log can lack epochs, so not all need be there; by chance, some are.
_LEAST, _ALIKE = 0.5, 0.9


def _share(epochs: Sequence[int], own: set[int]) -> float:
    """Return which share of epochs a cluster has, of those that its log can have."""
    within = [each for each in epochs if own and min(own) <= each <= max(own)]
    return sum(each in own for each in within) / len(within) if within else 0.0


def _named(
    server: int, epochs: Mapping[str, Sequence[Epochs]]
) -> Iterator[tuple[str, AppliedEpoch, list[AppliedEpoch]]]:
    """Yield where a server id stands: the cluster in whose log, the row, and the other rows of that epoch."""
    for name, own in epochs.items():
        for epoch in own:
            for each in epoch.applied:
                if each.server_id == server:
                    yield name, each, [other for other in epoch.applied if other is not each]
