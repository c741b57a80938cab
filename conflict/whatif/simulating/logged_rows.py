"""
What the clusters of a simulation log, a stretch of epochs at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from conflict.engine.kernels.arrays import Int64
from conflict.engine.kernels.records import DecisionBuffers, Records
from conflict.whatif.simulating.kernels.logged_rows import Held, RowOrigin, SimulatedRows, log_epochs
from conflict.whatif.simulating.kernels.users import epoch_number
from conflict.whatif.simulating.kernels.world import EPOCH
from conflict.whatif.simulating.run import Simulated

STATUS_COLUMNS = 5  # of `ndb_apply_status`
ROWS = 100_000  # of a stretch, about


@attrs.frozen(eq=False)
class EpochStretch:
    """
    Consecutive epochs of a cluster's log.

    Attributes:
        epochs: `EPOCH`.
        starts: First row event of each; one more at the end. Shape (epochs + 1,).
        rows: Their row events; valid until the next stretch.
    """

    epochs: Records
    starts: Int64
    rows: SimulatedRows


def logged_epochs(run: Simulated, side: int) -> Records:
    """
    Return the epochs in the log of a cluster. `EPOCH`.

    If the run ended before all was applied, the open epoch is the last one: its server stopped then.
    """
    site, world = run.world.site[side], run.world
    found = world.epochs[side, : int(site["logged"])]
    if not site["content"]:
        return found
    last = np.zeros(1, EPOCH)
    last["number"] = epoch_number(world.settings[side], int(site["tick"]))
    last["closed"] = world.run[0]["now"]
    last["first"], last["last"] = site["first_change"], site["stop"]
    last["queue_start"], last["queue_stop"] = site["queue_start"], world.work.log.tail[side]
    return np.concatenate([found, last])


def shown_applies(run: Simulated, side: int, epochs: Records) -> tuple[Int64, Int64]:
    """Return the numbers of a cluster's epoch applies that its log, of these epochs, shows; and of all others."""
    applies = run.world.schedule.applies[: int(run.world.run[0]["applies"])]
    mine = applies["applier"] == side
    shown = mine & applies["traced"] & np.isin(applies["epoch"], epochs["number"])
    return np.flatnonzero(shown), np.flatnonzero(mine & ~shown)


def stretches(run: Simulated, side: int, rows: int = ROWS) -> Iterator[EpochStretch]:
    """
    Yield what a cluster logged.

    Args:
        run: The simulation.
        side: Number of the cluster.
        rows: How many row events a stretch has, about; an epoch is never divided.
    """
    origin = _origin(run, side)
    keys, columns = len(origin.key_table), origin.made.columns.shape[1]
    held = Held(
        np.zeros(keys, np.bool_),
        np.zeros((keys, columns + 1), np.uint64),
        np.zeros(keys, np.int64),
        np.zeros(keys, int),
    )
    most = _most_rows(origin)
    ends = np.cumsum(most)
    first = 0
    while first < len(most):
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + rows, "right")), first + 1)
        out = _buffers(int(ends[last - 1]) - before, max(columns + 2, STATUS_COLUMNS))
        starts = np.zeros(last - first + 1, np.int64)
        log_epochs(first, last, origin, held, out, starts)
        count = int(starts[-1])
        yield EpochStretch(origin.epochs[first:last], starts, SimulatedRows._make(each[:count] for each in out))
        first = last


def _origin(run: Simulated, side: int) -> RowOrigin:
    """Return what a cluster did in the form that compiled code receives."""
    world, epochs = run.world, logged_epochs(run, side)
    state = world.run[0]
    applies, sent = world.schedule.applies[: int(state["applies"])], int(state["sent"])
    decisions = DecisionBuffers._make(each[: int(state["made"])] for each in world.decisions)
    mine, _ = shown_applies(run, side, epochs)
    sources = world.settings["source"].astype(np.int64)
    taken = np.cumsum(applies["applier"] == side) - 1
    numbers = np.arange(len(applies) + 1)
    first_apply = np.searchsorted(applies["epoch"][mine], epochs["number"])
    return RowOrigin(
        side=side,
        sources=sources,
        server_ids=np.array([site.server_id for site in run.model.sites]),
        relays=bool(world.settings["relays"][side]),
        epochs=epochs,
        changes=world.changes.rows,
        values=world.changes.values,
        made=world.made,
        begin=world.changes.begin,
        applies=applies,
        mine=mine,
        first_apply=np.append(first_apply, len(mine)),
        taken=taken[mine],
        learnt=world.learnt[sources[side]],
        decisions=decisions,
        first_decision=np.searchsorted(decisions.apply, numbers),
        log=world.work.log.entries[:sent],
        entries=world.entries,
        first_entry=np.searchsorted(world.work.log.entries["apply"][:sent], numbers),
        key_table=world.key_table,
        first_key=run.key_offsets,
        columns=world.tables[side]["columns"].astype(np.int64),
    )


def _most_rows(origin: RowOrigin) -> Int64:
    """Return how many row events each epoch has at most."""
    status = len(origin.sources) - 1
    each = status + np.diff(origin.first_decision) + np.diff(origin.first_entry)
    total = np.concatenate([[0], np.cumsum(each[origin.mine])])
    found: Int64 = origin.epochs["last"] - origin.epochs["first"] + np.diff(total[origin.first_apply])
    return found


def _buffers(rows: int, ordinals: int) -> SimulatedRows:
    return SimulatedRows(
        kind=np.zeros(rows, np.int8),
        table=np.zeros(rows, np.int16),
        server=np.zeros(rows, np.int8),
        flags=np.zeros(rows, np.int8),
        transaction=np.zeros(rows, np.uint64),
        written=np.zeros(rows, np.uint64),
        before=np.zeros((rows, ordinals), np.uint64),
        after=np.zeros((rows, ordinals), np.uint64),
    )
