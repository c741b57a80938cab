"""
How rows stood over time, where each change tells it alone: rows of tables whose functions compare no column.

A function by epoch asks whether a row exists, who changed it last, and when. An own change tells that, and so does an
effect of the applier that the binlog shows. So such rows are not replayed: the History holds only the operations that
arrive in the epochs that are looked at, and those that an applier answered in these (see
`conflict.runs.rows.states_over_time`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import attrs

from conflict.engine.inference.background import (
    Recorded,
    Setups,
    Visit,
    apply_shown,
    backgrounds_at_start,
    in_order,
)
from conflict.engine.inference.rows import EXISTS, OlderRow
from conflict.engine.reference.row_store import Row, RowKey
from conflict.history.model import History, Link
from conflict.history.timeline import EpochApply, Position, Transaction


@attrs.frozen
class RowStates:
    """
    The states of one row on its cluster.

    Attributes:
        moments: The own positions that gave it its states, in order.
        states: Its states, without values; None where it does not exist.
    """

    moments: list[Position]
    states: list[Row | None]


# Per cluster, rows that are known in this way. A row was not there before its first state.
StatesOfRows = Mapping[str, Mapping[RowKey, RowStates]]


def row_changed(epoch: int, *, local: bool) -> OlderRow:
    """Return a row that its own cluster, or its applier, changed in an own epoch. Its values are not known."""
    return attrs.evolve(EXISTS, local=local, epoch=epoch, dated=True)


def visit_applies(
    history: History,
    setups: Setups,
    recorded: Recorded,
    known: Mapping[Link, Sequence[int]],
    visit: Visit,
    *,
    states: StatesOfRows,
    looked_at: Mapping[str, AbstractSet[int]],
) -> None:
    """
    Visit the traced epoch applies, with the rows that the operations in the History touch as they then were.

    No log starts in the middle, no definition changes, and one cluster at most sends back what it applied or refreshed.

    Args:
        history: What happened: all epoch applies, and of the changes those that are needed.
        setups: Per cluster, how its server set up each table.
        recorded: Per cluster, the effects of its applier that its binlog shows: those of the epoch applies that are
            looked at, and those that it sent back in the epochs that are looked at.
        known: Per link, the max replicated epoch before each epoch apply.
        visit: Called before each epoch apply.
        states: The states of the rows.
        looked_at: Per cluster, its own epochs that are looked at: only in these is it wanted what it sent back.

    Raises:
        HistoryError: The traces have no order of causes.
    """
    found = backgrounds_at_start(history, setups, recorded)
    for name, own in states.items():
        found[name].moments = {key: row.moments for key, row in own.items()}
        found[name].states = {key: row.states for key, row in own.items()}
    for here, item in in_order(history, found, known):
        if isinstance(item, Transaction):
            here.cluster.log_changes(item)
            continue
        assert isinstance(item, EpochApply)
        source, place = found[item.source], (item.epoch, item.group)
        entries = here.cluster.arriving(source.cluster, item.foreign_epoch)
        if not entries:
            continue
        for key in dict.fromkeys(entry.row for entry in entries):
            here.cluster.store.put(key, here.row_at(key, (item.epoch, item.group - 1)))
        here.cluster.store.commit()
        visit(here, item, source)
        if item.epoch not in looked_at[here.cluster.name]:
            continue
        shown = recorded[here.cluster.name].get(place, {})
        answered = [entry for entry in entries if entry.row in shown]
        if answered:
            apply_shown(here, item, source.cluster, answered, shown)
