"""
Clocks of clusters that differ, as what they log of each other's epochs shows, or as running servers say.

An epoch that was applied before it was made, by the times of two logs, was so by their clocks alone. Servers are asked
for their times one after the other, so each is ahead of this machine's clock by something between two bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from conflict.checking.findings import Code, Finding, Fix, TablePlace
from conflict.checking.subject import Subject

_SECOND = 1_000_000
_LEAST = _SECOND  # what matters to nobody is not found
_PAGE = "mysql-cluster-replication-conflict-resolution"


def clocks_differ(subject: Subject) -> Iterator[Finding]:
    """Yield clusters whose clocks differ by a second or more."""
    for each in subject.travels:
        late, right, behind = each.applier, each.source, -int(each.took.min())
        how = (
            f"By the times of the binlogs, {late.cluster} applied an epoch {behind / _SECOND:,.1f} seconds before "
            f"{right.cluster} had made it: the clock of server {late.server_id} is at least so far behind that of "
            f"server {right.server_id}."
        )
        yield from _finding(late.cluster, right.cluster, behind, how)
    for one, other in permutations(subject.clusters, 2):
        if one.clock is not None and other.clock is not None:
            behind = other.clock[0] - one.clock[1]
            how = (
                f"The clock of server {one.server_id} is at least {behind / _SECOND:,.1f} seconds behind that of "
                f"server {other.server_id} (UTC_TIMESTAMP)."
            )
            yield from _finding(one.name, other.name, behind, how)


def _finding(late: str, right: str, behind: int, how: str) -> Iterator[Finding]:
    if behind >= _LEAST:
        sentence = (
            f"{how} Where changes take the value of a resolve column from clocks, those of {right} win over later "
            "ones, and times in results are not in the order of what happened."
        )
        places = tuple(TablePlace(name) for name in (right, late))
        fix = Fix("set the clocks of the hosts by one source of time, such as NTP.")
        yield Finding(Code.CLOCKS, sentence, places, fix, page=_PAGE)
