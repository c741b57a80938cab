"""
What pass TRACK may have decided on a row that the applier's own cluster changed since the applier's last commit.

The pass ran at some time between the two, which no binlog shows (see `conflict.engine.inference.replay`).
Computes docs/result.md, "Open decisions".
"""

from __future__ import annotations

from conflict.engine.kernels.apply_order import arrival_of, open_start
from conflict.engine.kernels.arrays import YES, ZERO
from conflict.engine.kernels.passes import LAST_OPERATION, Groups, copy_version, decide_pass, restore
from conflict.rules.decision import outcome_bit as bit_of_outcome
from ndb_formats.columnar.kernel import inlined, kernel

NO_CHANGE = -1
outcome_bit = inlined(bit_of_outcome)


@kernel
def choose_rows(here, changes, work, keys, first_open):
    """
    List the marked rows that their own cluster changed from `first_open` on in `Work.moved`; return how many.

    `keys` are the rows that the pass decided on.
    `Work.earlier` links the own changes of each row, the last one first.
    """
    notes, done = work.state.notes, work.state.done[here]
    for number in range(first_open, done):
        if changes.rows[number]["operation"] > LAST_OPERATION:
            continue  # a statement waits for the applier, as the applier waits for it
        note = notes[changes.rows[number]["key"], here]
        work.earlier[number]["previous"], note["last_own"] = note["last_own"], number
    chosen = 0
    for key in keys:
        note = notes[key, here]
        if work.marks[key] and note["last_own"] >= 0:
            work.moved[chosen]["key"], work.moved[chosen]["previous"] = key, note["last_own"]
            note["last_own"] = NO_CHANGE
            chosen += 1
    for number in range(first_open, done):
        notes[changes.rows[number]["key"], here]["last_own"] = NO_CHANGE
    return chosen


@kernel
def go_back(here, chosen, work):
    """Undo one own change of each chosen row, and keep the row as it was; return how many rows changed."""
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


@kernel
def try_earlier_states(number, schedule, changes, rules, work, passes, start, stop):
    """
    Add the outcomes that pass TRACK may have decided on the marked rows of an epoch apply.

    The decisions on a row do not depend on other rows. So each trial undoes one own change of all rows at once.

    Args:
        number: Of the epoch apply.
        schedule: `Schedule`.
        changes: `Changes`.
        rules: `Rules`.
        work: `Work`.
        passes: `PassDecisions`; adds to its candidates.
        start: First decision of pass TRACK on this epoch apply.
        stop: One past the last.
    """
    apply = schedule.applies[number]
    here, arrival = apply["applier"], arrival_of(number, work)
    first_open = open_start(number, schedule, changes)
    chosen = choose_rows(here, changes, work, passes.tracked.key[start:stop], first_open)
    started, nothing, trial = False, Groups(passes.tracked.group, ZERO, ZERO), passes.trial
    while chosen > 0:
        if started and go_back(here, chosen, work) == 0:
            break
        if started or arrival["early_start"] < arrival["early_stop"]:
            work.early.ignored[0] = True
            count, saved, _ = decide_pass(number, schedule, changes, rules, nothing, work, trial, ZERO, YES)
            for place in range(count):
                if work.marks[trial.key[place]]:
                    passes.candidates[start + place] |= outcome_bit(trial.verdict[place], trial.cause[place])
            restore(here, saved, work)
            work.early.ignored[0] = False
        if started:
            for place in range(chosen):
                copy_version(work.state.rows[work.moved[place]["key"], here], work.moved[place])
        started = True
