"""
Rows that a binlog marks otherwise than the role and function of its cluster do.

Computes docs/result.md, "Contradictions".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from conflict.history.epochs import BinlogEpoch
from conflict.history.model import Cluster, DefinitionChange, EpochApply, RowChange
from conflict.history.roles import FittingMarks, Mark, mark_of
from conflict.history.shown_effects import effect_of
from conflict.results.contradictions import ContradictedRow
from conflict.rules.roles import Role
from conflict.rules.table_setup import TableSetup

__all__ = ["contradicted_marks"]


def contradicted_marks(
    cluster: Cluster, setups: Mapping[str, TableSetup], epochs: Sequence[BinlogEpoch], fitting: FittingMarks
) -> Iterator[ContradictedRow]:
    """
    Yield the rows whose mark is not one of the role and the function that their applier had.

    Args:
        cluster: The cluster.
        setups: How its server set up each table at the start.
        epochs: What its binlog shows.
        fitting: Which marks roles and functions allow.
    """
    changes: dict[tuple[int, int], list[RowChange]] = {}
    for epoch in epochs:
        for group, change in epoch.consequences:
            changes.setdefault((epoch.number, group), []).append(change)
    role, allowed = cluster.role, dict[tuple[str, Role], frozenset[Mark]]()
    for item in cluster.timeline:
        if isinstance(item, DefinitionChange):
            setups = item.step.after.setups
            allowed.clear()
        if not isinstance(item, EpochApply):
            continue
        role = item.role or role
        for change in changes.pop((item.epoch, item.group), ()) if item.traced else ():
            mark, place = mark_of(change.flags), (change.table, role)
            if place not in allowed:
                allowed[place] = fitting.marks(setups, *place)
            if mark is not None and mark not in allowed[place]:
                effect = effect_of(change)
                yield ContradictedRow(item.epoch, item.group, change.table, change.key, effect, effect, mark)
