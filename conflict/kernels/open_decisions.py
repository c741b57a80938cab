"""
What pass TRACK may have decided, where the applier's own cluster changed a row since the applier's last commit.

The pass can have run at any time between, and the binlog does not tell (see `conflict.engine.open_decisions`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conflict.decision import Verdict
from conflict.kernels.passes import decide_pass, restore

__all__ = ["outcome_bit", "try_others"]

REJECTED = int(Verdict.REJECTED)


@njit(cache=True)
def outcome_bit(verdict, cause):
    """Return the bit that stands for an outcome among candidates: its cause, if it is rejected, else its verdict."""
    return np.int64(1) << np.int64(cause if verdict == REJECTED else 8 + verdict)


@njit(cache=True)
def _note(candidates, start, decisions, first, count):
    """Add what a pass decided to what may have been decided."""
    for place in range(count):
        candidates[start + place] |= outcome_bit(decisions[2][first + place], decisions[3][first + place])


@njit(cache=True)
def _go_back(state, side, before, open_start, chosen, work):
    """Set each chosen row back by one of its own changes, and keep how it is; returns how many rows moved."""
    exists, local, epoch, value, given, lacks = state
    _, _, before_row, b_exists, b_local, b_epoch, b_value, b_given, b_lacks = before
    keys, cursor, _, a_exists, a_local, a_epoch, a_value, a_given, a_lacks = work
    moved = 0
    for place in range(chosen):
        row, key = cursor[place], keys[place]
        a_exists[place], a_local[place], a_epoch[place] = exists[side, key], local[side, key], epoch[side, key]
        a_value[place], a_given[place], a_lacks[place] = value[side, key], given[side, key], lacks[side, key]
        if row < open_start:
            continue
        exists[side, key], local[side, key], epoch[side, key] = (
            b_exists[side, row],
            b_local[side, row],
            b_epoch[side, row],
        )
        value[side, key], given[side, key], lacks[side, key] = (
            b_value[side, row],
            b_given[side, row],
            b_lacks[side, row],
        )
        cursor[place] = before_row[side, row]
        moved += 1
    return moved


@njit(cache=True)
def _come_back(state, side, chosen, work):
    """Undo `_go_back`, but for where it stands."""
    exists, local, epoch, value, given, lacks = state
    keys, _, _, a_exists, a_local, a_epoch, a_value, a_given, a_lacks = work
    for place in range(chosen):
        key = keys[place]
        exists[side, key], local[side, key], epoch[side, key] = a_exists[place], a_local[place], a_epoch[place]
        value[side, key], given[side, key], lacks[side, key] = a_value[place], a_given[place], a_lacks[place]


@njit(cache=True)
def try_others(
    take, where, takes, state, rows, functions, table_of_key, log, queue, groups, decided, written, saved, work, before
):
    """
    Fill in what may have been decided on the operations of a take.

    What is decided on one row does not depend on others, so all rows go back one change at a time.

    All up to `queue` is as given to `decide_pass`, and so are `written` and `saved`. `decided` is what pass TRACK
    decided, the stretch of the take in it, the candidates, the first own row that may have come after it, whether it
    was judged before it commits, and room for another pass; `work` is room for keys and their state, and per
    key the take that chose it last; `before` is how each own row was before its change (see `catch_up`).
    """
    tracked, start, stop, candidates, open_start, judged, trial = decided
    keys, cursor, stamp = work[0], work[1], work[2]
    last_row = before[1]
    here = takes[0][take]
    there = 1 - here
    for place in range(start, stop):
        candidates[place] = 0
    _note(candidates, start, tracked, start, stop - start)
    chosen = 0
    for place in range(start, stop):
        source = tracked[1][place]
        key = rows[0][there][source] if source >= 0 else log[1][-1 - source]
        if stamp[key] != take and last_row[here, key] >= open_start:
            stamp[key], keys[chosen], cursor[chosen] = take, key, last_row[here, key]
            chosen += 1
    first = True
    while chosen > 0:
        moved = 0 if first else _go_back(state, here, before, open_start, chosen, work)
        if moved == 0 and not first:
            break
        if not first or judged:
            count, kept = decide_pass(
                take, where, takes, state, rows, functions, table_of_key, log, queue,
                (groups, 0, 0), (trial, 0), written, (True, saved),
            )  # fmt: skip
            _note(candidates, start, trial, 0, count)
            restore(saved, state, here, kept)
        if not first:
            _come_back(state, here, chosen, work)
        first = False
