"""
What each SQL node's applier counted: the counters belong to the node, and begin again where its server is restarted.

Computes docs/result.md, "Counters by SQL node".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from conflict.history.restarts import Restart, Stretch
from conflict.history.run import Run

Counters = Mapping[str, int]
_EMPTY: Counters = {}


@attrs.frozen
class ServerCounters:
    """
    What the applier of one SQL node counted.

    Attributes:
        cluster: Its cluster.
        server: Its server id.
        counters: All that it counted.
        restart: Its last restart in the log; None if there was none.
        since: What it counted since then.
        at_least: The same without epochs that may have been applied before or after it.
        at_most: The same with all of them.
    """

    cluster: str
    server: int
    counters: Counters
    restart: Restart | None = None
    since: Counters = attrs.field(factory=dict)
    at_least: Counters = attrs.field(factory=dict)
    at_most: Counters = attrs.field(factory=dict)

    @property
    def at_end(self) -> Counters:
        """What the server shows where its log ends."""
        return self.counters if self.restart is None else self.since

    def to_json(self) -> dict[str, Any]:
        """Return the same as a document, with the counters that are not 0 in all."""
        names = [name for name, value in self.counters.items() if value]
        whole = {"server": self.server, "counters": {name: self.counters[name] for name in names}}
        if self.restart is None:
            return {**whole, "restart": None, "since_restart": None, "since_restart_ranges": None}
        least, most = ({name: each.get(name, 0) for name in names} for each in (self.at_least, self.at_most))
        place = {name: getattr(self.restart, name) for name in ("file", "position", "epoch")}
        return {
            **whole,
            "restart": place,
            "since_restart": {name: self.since.get(name, 0) for name in names},
            "since_restart_ranges": {name: [least[name], most[name]] for name in names if least[name] < most[name]},
        }


def server_counters(run: Run, stretches: Mapping[str, Mapping[Stretch, Counters]]) -> list[ServerCounters]:
    """
    Return what each SQL node counted that applied anything.

    Args:
        run: The run.
        stretches: Per cluster, counters by stretch.
    """
    found = list[ServerCounters]()
    for name, own in stretches.items():
        restarts = {each.server_id: each for each in run.restarts_within(name)}  # the last of each
        for server in sorted({server for server, _, _ in own}):
            mine = {(since, is_open): each for (number, since, is_open), each in own.items() if number == server}
            whole = ServerCounters(name, server, _sum(mine.values()))
            restart = restarts.get(server)
            if restart is None:
                found.append(whole)
                continue
            sure = mine.get((True, False), _EMPTY)
            opened = [mine.get((since, True), _EMPTY) for since in (False, True)]
            since = _sum([sure, opened[1]])
            found.append(
                attrs.evolve(whole, restart=restart, since=since, at_least=sure, at_most=_sum([sure, *opened]))
            )
    return found


def _sum(parts: Iterable[Counters]) -> dict[str, int]:
    total = Counter[str]()
    for each in parts:
        total.update(each)
    return dict(total)
