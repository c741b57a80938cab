"""
Clocks of clusters that differ, as what they log of each other's epochs shows.

An epoch that was applied before it was made, by the times of two logs, was so by their clocks alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.checking.findings import Code, Finding, Fix, TablePlace
from conflict.checking.subject import Subject

__all__ = ["clocks_differ"]

_SECOND = 1_000_000
_LEAST = _SECOND  # what matters to nobody is not found
_PAGE = "mysql-cluster-replication-conflict-resolution"


def clocks_differ(subject: Subject) -> Iterator[Finding]:
    """Yield clusters one of which applied an epoch before the other one had made it, by their clocks."""
    for each in subject.travels:
        behind = -int(each.took.min())
        if behind < _LEAST:
            continue
        source, applier = each.source, each.applier
        sentence = (
            f"By the times of the binlogs, {applier.cluster} applied an epoch {behind / _SECOND:,.1f} seconds before "
            f"{source.cluster} had made it: the clock of server {applier.server_id} is at least so far behind that of "
            f"server {source.server_id}. Where changes take the value of a resolve column from clocks, those of "
            f"{source.cluster} win over later ones, and times in results are not in the order of what happened."
        )
        places = tuple(TablePlace(name) for name in (source.cluster, applier.cluster))
        fix = Fix("set the clocks of the hosts by one source of time, such as NTP.")
        yield Finding(Code.CLOCKS, sentence, places, fix, page=_PAGE)
