"""
What pass TRACK may have decided, where the applier's own cluster changed a row since the applier's last commit.

The pass can have run at any time between, and the binlog does not tell (see `conflict.reference.open_decisions`).
"""

from __future__ import annotations

import numpy as np

from conflict.columnar.kernels.passes import call_decide_pass, copy_version, is_marked, restore
from conflict.rules.decision import Verdict
from ndb_formats.columnar.kernels.compiled import njit_uncounted

__all__ = ["outcome_bit", "try_others"]

REJECTED = int(Verdict.REJECTED)


@njit_uncounted()
def outcome_bit(verdict, cause):
    """Return the bit that stands for an outcome among candidates: its cause, if it is rejected, else its verdict."""
    return np.int64(1) << np.int64(cause if verdict == REJECTED else 8 + verdict)


@njit_uncounted()
def _choose(here, notes, rows, earlier, first_open, done, marks, tracked, start, stop, moved):
    """List the marked rows of a take that their own cluster changed from `first_open` to `done`; returns how many."""
    for number in range(first_open, done):
        note = notes[rows[number]["key"], here]
        earlier[number]["previous"], note["last_own"] = note["last_own"], number
    chosen = 0
    for place in range(start, stop):
        key = tracked.key[place]
        if not is_marked(marks, key):
            continue
        note = notes[key, here]
        if note["last_own"] >= 0:
            moved[chosen]["key"], moved[chosen]["previous"] = key, note["last_own"]
            note["last_own"] = -1
            chosen += 1
    for number in range(first_open, done):
        notes[rows[number]["key"], here]["last_own"] = -1
    return chosen


@njit_uncounted()
def _go_back(state, side, earlier, chosen, moved):
    """Set each chosen row back by one of its own changes, and keep how it is; returns how many rows moved."""
    count = 0
    for place in range(chosen):
        now = moved[place]
        mine = state[now["key"], side]
        copy_version(now, mine)
        if now["previous"] >= 0:
            before = earlier[now["previous"]]
            copy_version(mine, before)
            now["previous"] = before["previous"]
            count += 1
    return count


@njit_uncounted()
def try_others(
    number, applies, state, notes, rows, images, first_open, done, first, last, there_start, rules,
    log, queue, queued, queue_end, groups, marks,
    tracked, start, stop, candidates, trial, unused, saved, earlier, moved,
):  # fmt: skip
    """
    Fill in what may have been decided on the marked rows of a take, besides what was.

    What is decided on one row does not depend on others, so all rows go back one change at a time.
    `first_open` is the first own row that may have come after it, and `done` the first that did not come before;
    `tracked`, from `start` to `stop`, is what pass TRACK decided; `earlier` is how each own row was before its change
    (see `catch_up`); `trial`, `unused`, `saved` and `moved` are room; all else is as given to `decide_pass`.
    """
    here = applies[number]["applier"]
    chosen = _choose(here, notes, rows, earlier, first_open, done, marks, tracked, start, stop, moved)
    started = False
    while chosen > 0:
        if started and _go_back(state, here, earlier, chosen, moved) == 0:
            break
        if started or applies[number]["judged"]:
            count, kept, _ = call_decide_pass(
                number, applies, state, notes, rows, images, first, last, there_start, rules,
                log, queue, queued, queue_end, groups, 0, 0, trial, unused, 0, True, marks, saved,
            )  # fmt: skip
            for place in range(count):
                if is_marked(marks, trial.key[place]):
                    candidates[start + place] |= outcome_bit(trial.verdict[place], trial.cause[place])
            restore(saved, state, notes, here, kept)
        if started:
            for place in range(chosen):
                copy_version(state[moved[place]["key"], here], moved[place])
        started = True
