"""
The epoch applies that decide on those that are looked at: few of many, so that few become objects.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from conflict.engine.inference.background import Recorded
from conflict.engine.inference.placement import LinkFacts
from conflict.engine.kernels.arrays import Int64, UInt64
from conflict.history.model import Link
from conflict.history.scheduling.schedule_columns import ScheduleColumns, among, known_before
from conflict.history.timeline import EpochApply, Transaction
from conflict.runs.rows.row_spans import with_those_before

Schedule = Mapping[str, ScheduleColumns]


@attrs.frozen
class DecidingApplies:
    """
    Some epoch applies of a pair of clusters.

    Attributes:
        applies: Per applier, the epoch applies, in order.
        facts: Per link, what all epoch applies tell.
    """

    applies: dict[str, tuple[EpochApply, ...]]
    facts: dict[Link, LinkFacts]

    @classmethod
    def of(cls, schedule: Schedule, numbers: Mapping[str, Int64], returned: Mapping[str, int]) -> DecidingApplies:
        """
        Return epoch applies by number.

        Args:
            schedule: Per applier, all epoch applies.
            numbers: Per applier, the numbers of some, in order.
            returned: Per cluster, the own epoch that had come back before its first epoch apply, where there is one.
        """
        facts = {}
        for name, own in schedule.items():
            known, chosen = known_before(own, schedule[own.source], returned.get(name, 0)), numbers[name]
            facts[name, own.source] = LinkFacts(known[chosen].tolist(), chosen.tolist(), len(own))
        return cls({name: own.applies(numbers[name]) for name, own in schedule.items()}, facts)


def deciding_numbers(
    schedule: Schedule,
    looked_at: Mapping[str, Int64],
    transactions: Mapping[str, list[Transaction]],
    recorded: Recorded,
) -> dict[str, Int64]:
    """
    Return, per applier, the numbers of the epoch applies that decide on those that are looked at, in order.

    An epoch apply that touches no row that was read changes nothing. It counts only as a neighbour, or as news.

    Args:
        schedule: Per applier, all epoch applies.
        looked_at: Per applier, the numbers of those that are looked at.
        transactions: Per cluster, its own changes of the rows.
        recorded: Per cluster, the effects on the rows that its binlog shows; all that its applier can have sent on.
    """
    found = {}
    for name, own in schedule.items():
        source = own.source
        sent = {item.epoch for item in transactions[source]} | {epoch for epoch, _ in recorded[source]}
        touching = np.flatnonzero(among(own["foreign_epoch"], np.array(sorted(sent), np.uint64)))
        asked = schedule[source]["foreign_epoch"][looked_at[source]]
        parts = with_those_before(looked_at[name]), _around(own, looked_at[name]), touching, _news(own, asked)
        found[name] = np.unique(np.concatenate(parts))
    return found


def _around(own: ScheduleColumns, numbers: Int64) -> Int64:
    """Return the nearest epoch applies that have a place, before and after some, and the first and last of a period."""
    placed, traced = _placed(own), np.flatnonzero(own["traced"])
    at = np.searchsorted(placed, numbers)
    near = placed[np.concatenate([at[at > 0] - 1, at[at < len(placed)]])]
    other = np.diff(own["period"][traced]) != 0
    ends = traced[np.append(True, other)[: len(traced)] | np.append(other, True)[: len(traced)]]
    return np.concatenate([near, ends])


def _news(own: ScheduleColumns, epochs: UInt64) -> Int64:
    """Return the epoch applies that bring the newest foreign epoch up to the end of each of some own epochs."""
    placed = _placed(own)
    last = np.searchsorted(own["epoch"][placed], epochs, "right") - 1
    newest = np.maximum.accumulate(own["foreign_epoch"][placed])
    return placed[np.searchsorted(newest, newest[last[last >= 0]])]


def _placed(own: ScheduleColumns) -> Int64:
    """Return the numbers of the epoch applies whose place is given, in order."""
    given = np.ones(len(own), np.bool_)
    given[own.windowed] = False
    return np.flatnonzero(given)
