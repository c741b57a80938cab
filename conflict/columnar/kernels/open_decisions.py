"""
What pass TRACK may have decided, where the applier's own cluster changed a row since the applier's last commit.

The pass can have run at any time between, and the binlog does not tell (see `conflict.reference.open_decisions`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conflict.columnar.kernels.passes import Groups, call_decide_pass, copy_version, restore
from conflict.rules.decision import Verdict

__all__ = ["outcome_bit", "try_earlier_states"]

REJECTED = int(Verdict.REJECTED)


@njit(cache=True, nogil=True)
def outcome_bit(verdict, cause):
    """Return the bit that stands for an outcome among candidates: its cause, if it is rejected, else its verdict."""
    return np.int64(1) << np.int64(cause if verdict == REJECTED else 8 + verdict)


@njit(cache=True, nogil=True)
def _choose(here, changes, work, first_open, start, stop):
    """List the marked rows of an apply that their own cluster changed from `first_open` on; return how many."""
    notes, done = work.state.notes, work.state.done[here]
    for number in range(first_open, done):
        note = notes[changes.rows[number]["key"], here]
        work.earlier[number]["previous"], note["last_own"] = note["last_own"], number
    chosen = 0
    for place in range(start, stop):
        key = work.tracked.key[place]
        note = notes[key, here]
        if work.marks[key] and note["last_own"] >= 0:
            work.moved[chosen]["key"], work.moved[chosen]["previous"] = key, note["last_own"]
            note["last_own"] = -1
            chosen += 1
    for number in range(first_open, done):
        notes[changes.rows[number]["key"], here]["last_own"] = -1
    return chosen


@njit(cache=True, nogil=True)
def _go_back(here, chosen, work):
    """Set each chosen row back by one of its own changes, and keep how it is; return how many rows moved."""
    count = 0
    for place in range(chosen):
        now = work.moved[place]
        mine = work.state.rows[now["key"], here]
        copy_version(now, mine)
        if now["previous"] >= 0:
            before = work.earlier[now["previous"]]
            copy_version(mine, before)
            now["previous"] = before["previous"]
            count += 1
    return count


@njit(cache=True, nogil=True)
def try_earlier_states(number, schedule, changes, rules, work, first_open, start, stop):
    """
    Fill in what may have been decided on the marked rows of an epoch apply, besides what was.

    What is decided on one row does not depend on others, so all rows go back one change at a time.

    Args:
        number: Of the epoch apply.
        schedule: `Schedule`.
        changes: `Changes`.
        rules: `Rules`.
        work: `Work`; its candidates are filled in.
        first_open: First own change of the applier's cluster that may have come after pass TRACK.
        start: First decision of pass TRACK on this apply, in `Work.tracked`.
        stop: One past the last.
    """
    apply = schedule.applies[number]
    here = apply["applier"]
    chosen = _choose(here, changes, work, first_open, start, stop)
    started, nothing = False, Groups(work.tracked.group, 0, 0)
    while chosen > 0:
        if started and _go_back(here, chosen, work) == 0:
            break
        if started or apply["judged"]:
            count, saved, _ = call_decide_pass(number, schedule, changes, rules, nothing, work, work.trial, 0, True)
            for place in range(count):
                if work.marks[work.trial.key[place]]:
                    bit = outcome_bit(work.trial.verdict[place], work.trial.cause[place])
                    work.candidates[start + place] |= bit
            restore(here, saved, work)
        if started:
            for place in range(chosen):
                copy_version(work.state.rows[work.moved[place]["key"], here], work.moved[place])
        started = True
