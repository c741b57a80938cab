"""
Status counters that servers show beside those that a result derived, and what explains a difference.

Counters are those of an SQL node. Where several of a cluster applied and it is not said which one is shown, it is taken
to be the one that agrees best.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from conflict.operating.observing.observed import Observed
from conflict.results.result import Result
from conflict.rules.counters import COUNTERS


@attrs.frozen
class CounterPair:
    """
    A counter on one SQL node.

    Attributes:
        cluster: The cluster.
        server: Server id of the SQL node; None if the cluster has one alone.
        counter: The name.
        observed: What the server shows.
        derived: What the result has.
        why: What explains a difference; empty if nothing does, or if there is none.
    """

    cluster: str
    server: int | None
    counter: str
    observed: int
    derived: int
    why: str = ""

    @property
    def differs(self) -> bool:
        """Whether the two differ."""
        return self.observed != self.derived

    @property
    def is_unexplained(self) -> bool:
        """Whether they differ, and nothing explains it."""
        return self.differs and not self.why


@attrs.frozen
class _Node:
    """What one SQL node counted until its log ends; `ranges`: what epochs leave open that met its restart."""

    server: int | None
    counters: Mapping[str, int]
    ranges: Mapping[str, Sequence[int]] = attrs.field(factory=dict)


def compared_counters(result: Result, observed: Observed) -> list[CounterPair]:
    """Return each conflict counter that an SQL node shows."""
    nodes = _nodes(result, observed.cluster)
    if observed.server is not None:
        idle = _Node(observed.server, {})  # one that applied nothing
        named = [each for each in nodes if each.server == observed.server]
        nodes = named or ([*nodes, idle] if nodes[0].server is None else [idle])
    compared = [[*_pairs(result, observed, node)] for node in nodes]
    return min(compared, key=lambda pairs: sum(each.is_unexplained for each in pairs))


def why_more(result: Result, cluster: str) -> str:
    """Return why a server can have met more than a result did: its time is longer than that of the logs; or nothing."""
    run = result.run
    if run["starts_in_the_middle"]:
        return "the logs start in the middle: the server met more before"
    if run["epochs_left_out"].get(cluster) or run["binlog_errors"]:
        return "the logs end too early: the result leaves epochs out"
    if any(each["applier"] == cluster for each in run["changes_under_way"]):
        return "the logs end before the applier had applied all that they hold"
    return ""


def _nodes(result: Result, cluster: str) -> list[_Node]:
    """Return the SQL nodes of a cluster that applied, if several did or one was restarted; else the cluster."""
    return [
        _Node(each["server"], each["counters"])
        if each["restart"] is None
        else _Node(each["server"], each["since_restart"], each["since_restart_ranges"])
        for each in result.run["server_counters"].get(cluster, ())
    ] or [_Node(None, result.counters[cluster])]


def _pairs(result: Result, observed: Observed, node: _Node) -> Iterator[CounterPair]:
    given = observed.counters or {}
    for name in (each for each in COUNTERS if each in given):
        pair = CounterPair(observed.cluster, node.server, name, given[name], node.counters.get(name, 0))
        yield attrs.evolve(pair, why=_why(result, node, pair)) if pair.differs else pair


def _why(result: Result, node: _Node, pair: CounterPair) -> str:
    """Return what explains that a counter is another one; nothing if nothing does."""
    whole = result.counters[pair.cluster].get(pair.counter, 0)
    ranges = (result.run["counter_ranges"] or {}).get(pair.cluster, {})
    least, most = ranges.get(pair.counter, (whole, whole))
    first, last = node.ranges.get(pair.counter, (pair.derived, pair.derived))
    if first <= pair.observed <= last:
        return f"{first:,} to {last:,}: epochs were applied before or after the restart of the server"
    first, last = first - max(0, whole - least), last + max(0, most - whole)
    if first <= pair.observed <= last:
        return f"{max(0, first):,} to {last:,}: the binlogs leave decisions open"
    return why_more(result, pair.cluster) if pair.observed > pair.derived else ""
