"""
What pass TRACK may have decided, where the applier's own cluster changed a row since the applier's last commit.

The pass can have run at any time between, and the binlog does not tell (see `conflict.engine.open_decisions`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conflict.decision import Verdict
from conflict.kernels.passes import call_decide_pass, copy_version, restore

__all__ = ["outcome_bit", "try_others"]

REJECTED = int(Verdict.REJECTED)


@njit(cache=True)
def outcome_bit(verdict, cause):
    """Return the bit that stands for an outcome among candidates: its cause, if it is rejected, else its verdict."""
    return np.int64(1) << np.int64(cause if verdict == REJECTED else 8 + verdict)


@njit(cache=True)
def _choose(here, notes, rows, first_open, there_start, log, tracked, start, stop, moved):
    """List the rows of a take that their own cluster changed from `first_open` on; returns how many there are."""
    chosen = 0
    for place in range(start, stop):
        source = tracked[place]["source"]
        key = rows[there_start + source]["key"] if source >= 0 else log[-1 - source]["key"]
        note = notes[key, here]
        if note["last_own"] >= first_open:
            moved[chosen]["key"], moved[chosen]["previous"] = key, note["last_own"]
            note["last_own"] = -2 - note["last_own"]  # is listed
            chosen += 1
    for place in range(chosen):
        note = notes[moved[place]["key"], here]
        note["last_own"] = -2 - note["last_own"]
    return chosen


@njit(cache=True)
def _go_back(state, side, earlier, first_open, chosen, moved):
    """Set each chosen row back by one of its own changes, and keep how it is; returns how many rows moved."""
    count = 0
    for place in range(chosen):
        now = moved[place]
        mine = state[now["key"], side]
        copy_version(now, mine)
        if now["previous"] >= first_open:
            before = earlier[now["previous"]]
            copy_version(mine, before)
            now["previous"] = before["previous"]
            count += 1
    return count


@njit(cache=True)
def try_others(
    number, takes, state, notes, rows, first_open, first, last, there_start, rules, log, queue, queued, queue_end,
    groups, tracked, start, stop, candidates, trial, unused, saved, earlier, moved,
):  # fmt: skip
    """
    Fill in what may have been decided on the operations of a take, besides what was.

    What is decided on one row does not depend on others, so all rows go back one change at a time.
    `first_open` is the first own row that may have come after it; `tracked`, from `start` to `stop`, is what pass
    TRACK decided; `earlier` is how each own row was before its change (see `catch_up`); `trial`, `unused`, `saved`
    and `moved` are room; all else is as given to `decide_pass`.
    """
    here = takes[number]["applier"]
    chosen = _choose(here, notes, rows, first_open, there_start, log, tracked, start, stop, moved)
    started = False
    while chosen > 0:
        if started and _go_back(state, here, earlier, first_open, chosen, moved) == 0:
            break
        if started or takes[number]["judged"]:
            count, kept, _ = call_decide_pass(
                number, takes, state, notes, rows, first, last, there_start, rules, log, queue, queued, queue_end,
                groups, 0, 0, trial, unused, 0, True, saved,
            )  # fmt: skip
            for place in range(count):
                candidates[start + place] |= outcome_bit(trial[place]["verdict"], trial[place]["cause"])
            restore(saved, state, notes, here, kept)
        if started:
            for place in range(chosen):
                copy_version(state[moved[place]["key"], here], moved[place])
        started = True
