"""
Which cluster a server id in binlogs belongs to, where several SQL nodes of one cluster log or apply.

An epoch belongs to its cluster, whichever SQL node logs it. A row of ``mysql.ndb_apply_status`` has the id of the SQL
node from whose binlog the epoch was applied, so after a channel moved to other SQL nodes the same cluster's epochs go
on under another id, and a cluster's own epochs come back under the id of its other SQL node. Ids that the run does not
name are found from the epochs that stand beside them: they are epochs of one cluster.

Source: MySQL manual, "NDB Cluster Replication: Implementing Failover with NDB Cluster Replication".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import attrs
import numpy as np

from conflict.config.configuration import ClusterConfiguration, Links
from conflict.history.epochs import AppliedEpoch, BinlogEpoch
from conflict.history.restarts import Restarts
from conflict.history.scheduling.schedule_columns import ScheduleColumns, chosen_by
from conflict.history.scheduling.summaries import Summary, SummaryColumns, distinct
from conflict.history.timeline import DefinitionChange

Epochs = TypeVar("Epochs", Summary, BinlogEpoch)
Logged = Mapping[str, Sequence[Summary]]


def columns_of_clusters(links: Links, epochs: Mapping[str, SummaryColumns]) -> dict[str, SummaryColumns]:
    """Return the same as `of_clusters`, in columns."""
    if not any(_others(links, name, own) for name, own in epochs.items()):
        return dict(epochs)
    known = clusters_of_servers(links, epochs)
    return {
        name: own.with_ids(
            {each: None if cluster == name else links.server_ids[cluster] for each, cluster in known.items()}
        )
        for name, own in epochs.items()
    }


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
    applies: ScheduleColumns, applier: ClusterConfiguration, source: ClusterConfiguration, logged: Logged
) -> ScheduleColumns:
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
    columns = {name: SummaryColumns.of(own) for name, own in logged.items()}
    ends = [_servers(each, columns) for each in (applier, source)]
    if all(len(each) == 1 for each in ends):
        return applies
    own, traced = columns[applier.name], np.flatnonzero(applies["traced"])
    through = own.through[chosen_by(own.of_server(source.server_id))]
    named = through[:1] if len(through) else np.array([source.server_id])
    # Those without a trace go with those before.
    known = np.concatenate([named, through]).astype(np.uint32)
    current = known[np.searchsorted(traced, np.arange(len(applies)), "right")]
    moved = current != np.concatenate([known[:1], current[:-1]])[: len(current)]
    server = np.full(len(applies), ends[0][0], np.uint32)
    for place, each in enumerate(ends[1]):
        server[current == each] = ends[0][min(place, len(ends[0]) - 1)]
    return applies.with_columns(server=server, source_server=current, restarted=applies["restarted"] | moved)


def with_restarts(applies: ScheduleColumns, server_id: int, restarts: Restarts) -> ScheduleColumns:
    """
    Return the epoch applies of a channel; the first one after each restart of its SQL node begins anew.

    Args:
        applies: The epoch applies, in order.
        server_id: The SQL node that applied those which name none.
        restarts: By SQL node.
    """
    if not any(restarts.values()):
        return applies
    restarted, server = applies["restarted"].copy(), applies["server"]
    for each, first in restarts.items():
        mine = np.flatnonzero(applies["applied"] & ((server == each) | ((server == 0) & (each == server_id))))
        times = np.searchsorted(np.array(sorted(first), np.uint64), applies["epoch"][mine], "right")
        before = np.concatenate([[0], np.maximum.accumulate(times)])[: len(mine)]
        restarted[mine[times > before]] = True
    return applies.with_columns(restarted=restarted)


def with_statements(applies: ScheduleColumns, changes: Iterable[DefinitionChange]) -> ScheduleColumns:
    """
    Return the epoch applies of a channel; the first one after a statement that the applier committed begins anew.

    The commit has no conflict, so that the applier looks for transactions in conflict no more.

    Args:
        applies: The epoch applies, in order.
        changes: The cluster's changes of definitions.
    """
    places = [
        place
        for each in changes
        if each.follows >= 0 and each.step.commits
        for place in np.flatnonzero(applies["applied"] & (applies["foreign_epoch"] > np.uint64(each.follows)))[:1]
    ]
    if not places:
        return applies
    restarted = applies["restarted"].copy()
    restarted[places] = True
    return applies.with_columns(restarted=restarted)


def _servers(cluster: ClusterConfiguration, logged: Mapping[str, SummaryColumns]) -> list[int]:
    """Return the SQL nodes of a cluster: those that the run names, and those that others' logs name, in order."""
    named = (
        each for own in logged.values() for each in distinct(own.through[chosen_by(own.of_server(cluster.server_id))])
    )
    return list(dict.fromkeys([*(server.server_id for server in cluster.servers), *named]))


def clusters_of_servers(links: Links, epochs: Mapping[str, Sequence[Epochs]]) -> dict[int, str]:
    """Return the cluster of each server id: as the run says, or else as the epochs beside it show."""
    known = {server.server_id: cluster.name for cluster in links.clusters for server in cluster.servers}
    named = (each for own in epochs.values() for each in _ids(own))
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
    return set(_ids(own)) - others


def _ids(own: Sequence[Epochs]) -> list[int]:
    """Return the server ids of foreign epochs, in order of appearance."""
    if isinstance(own, SummaryColumns):
        return distinct(own.server_id)
    return list(dict.fromkeys(each.server_id for epoch in own for each in epoch.applied))


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
