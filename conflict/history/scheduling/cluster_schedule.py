"""
When a cluster applied the epochs of its sources, with what the changes of definitions in its log say of it.

A statement that an applier took from its source stands in both logs, so it bounds the places of the epochs around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from conflict.config.configuration import ClusterConfiguration, Links
from conflict.history.restarts import Restarts
from conflict.history.scheduling.schedule import Barrier, ClusterHints, place_applies, set_back
from conflict.history.scheduling.schedule_columns import ScheduleColumns
from conflict.history.scheduling.servers import with_restarts, with_servers, with_statements
from conflict.history.scheduling.summaries import Summary, SummaryColumns
from conflict.history.timeline import END, DefinitionChange, statement_positions


def kept_changes(changes: Sequence[DefinitionChange], last: int, *, cut: bool) -> list[DefinitionChange]:
    """Return the changes of definitions that count; of a cut log, those before the last epoch that is resolved."""
    return [each for each in changes if not cut or each.epoch < last]


def schedule_of(
    links: Links,
    cluster: ClusterConfiguration,
    summaries: Mapping[str, Sequence[Summary]],
    hints: ClusterHints | None,
    *,
    cut: bool,
    changes: Mapping[str, Sequence[DefinitionChange]] | None = None,
    restarts: Restarts,
) -> tuple[list[ScheduleColumns], int]:
    """Return when a cluster applied others' epochs, source by source, and how many of these places are assumed."""
    # Who set back one replica may have set back the others too.
    again = any(set_back(summaries[applier.name], source.server_id) for applier, source in links.channels())
    applies, assumed = list[ScheduleColumns](), 0
    mine = with_positions((changes or {}).get(cluster.name, ()), SummaryColumns.of(summaries[cluster.name]).number)
    changes = {**(changes or {}), cluster.name: mine}
    for source in links.sources(cluster.name):
        placed, open_places = place_applies(
            summaries[cluster.name],
            summaries[source.name],
            source_name=source.name,
            source_id=source.server_id,
            applier_id=cluster.server_id,
            hints=(hints or {}).get(cluster.name, ()),
            cut=cut,
            again=again,
            barriers=_barriers(cluster, source, summaries[cluster.name], changes),
            statements=[(each.epoch, each.group) for each in mine],
        )
        own = with_restarts(with_servers(placed, cluster, source, summaries), cluster.server_id, restarts)
        own = with_statements(own, mine)
        applies, assumed = [*applies, own], assumed + open_places
    return applies, assumed


def _barriers(
    cluster: ClusterConfiguration,
    source: ClusterConfiguration,
    applier: Sequence[Summary],
    changes: Mapping[str, Sequence[DefinitionChange]],
) -> list[Barrier]:
    """Return what statements say of when a cluster applied the epochs of a source, in order."""
    mine, theirs = changes.get(cluster.name, ()), changes.get(source.name, ())
    taken = [Barrier(each.follows, (each.epoch, each.group)) for each in mine if each.follows >= 0]
    own = SummaryColumns.of(applier)
    applied = own.epoch[own.of_server(source.server_id)]
    for server_id in (cluster.server_id, source.server_id):
        known = sum(each.step.server_id == server_id for each in mine)
        further = [each.epoch for each in theirs if each.step.server_id == server_id][known:]
        # A cluster's binlog that shows its applier's work and lacks a statement ends before it; or it was filtered.
        if further and len(applied) and int(applied.max()) <= further[0]:
            taken.append(Barrier(further[0], END))
    return sorted(taken, key=lambda each: each.foreign_epoch)


def with_positions(changes: Sequence[DefinitionChange], numbers: npt.NDArray[np.uint64]) -> list[DefinitionChange]:
    """Return changes of definitions with their own positions; `numbers`: the own epochs. Shape (epochs,)."""
    before = [each.epoch for each in changes]
    places = np.searchsorted(numbers, np.array(before, np.uint64), "right").tolist()
    following = [int(numbers[place]) if place < len(numbers) else None for place in places]
    return [
        attrs.evolve(each, epoch=epoch, group=group)
        for each, (epoch, group) in zip(changes, statement_positions(before, following), strict=True)
    ]


def placed_changes(
    links: Links, changes: Mapping[str, Sequence[DefinitionChange]]
) -> dict[str, list[DefinitionChange]]:
    """Return changes of definitions with what they follow: one that an applier took stands in both binlogs."""
    if not any(changes.values()):
        return {name: [] for name in changes}  # always so if the run has other than a pair of clusters
    found: dict[str, list[DefinitionChange]] = {}
    for name, own in changes.items():
        peer = links.peer(name)
        made = iter([each for each in changes[peer.name] if each.step.server_id == peer.server_id])
        found[name] = []
        for mine in own:
            if mine.step.server_id != peer.server_id:
                found[name].append(mine)
                continue
            theirs = next(made, None)
            if theirs is None:
                found[name].append(attrs.evolve(mine, follows=END[0]))  # the other one's binlog ends before it
            else:
                same = theirs.step.text == mine.step.text
                found[name].append(attrs.evolve(mine, follows=theirs.epoch) if same else mine)
    return found
