"""
Whether it matters when an applier judged a row: the decisions at every moment that its binlog allows.

A row that the applier did not change may have been judged as it stood before any of its own cluster's changes since the
applier's last commit. Computes docs/concepts.md, "What binlogs leave open"; `conflict.engine.inference.moments` does so
change by change, and lists the answers of the rows that are found here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from conflict.engine.kernels.apply_order import open_start, queue_up, start_arrivals
from conflict.engine.kernels.arrays import (
    NO,
    YES,
    ZERO,
    Bool,
    BucketRows,
    Conflicts,
    EpochApplies,
    Int16,
    Int64,
    RowMoments,
)
from conflict.engine.kernels.effects import effect_number
from conflict.engine.kernels.fold import log_rows
from conflict.engine.kernels.open_decisions import choose_rows, go_back
from conflict.engine.kernels.passes import FULL, Groups, catch_up, copy_version, decide_pass, restore
from conflict.engine.kernels.records import PassDecisions, Records, Rules, Work, packed_changes, packed_schedule
from conflict.engine.kernels.rules import needs_refresh
from conflict.rules.decision import Cause, Verdict
from ndb_formats.columnar.kernel import kernel, read_only

APPLIED, REJECTED = int(Verdict.APPLIED), int(Verdict.REJECTED)
TRANSACTION = int(Cause.TRANS_IN_CONFLICT)
NEVER = -1  # no effect at all
# What is known of a row during a pass: bits.
MET, THERE_BEFORE, WROTE, REFRESHES, WITH_TRANSACTION, DIFFERS = 1, 2, 4, 8, 16, 32


class JudgedRows(NamedTuple):
    """
    Rows with the epoch applies that judge them, in the order of these.

    Attributes:
        starts: Those of apply n are ``key[starts[n]:starts[n + 1]]``. int64, shape (applies + 1,).
        key: The rows. int64, shape (rows,).
    """

    starts: Int64
    key: Int64

    @classmethod
    def of(cls, apply: Int64, key: Int64, applies: int) -> Self:
        """Return rows, given with their epoch applies in order; `applies` is the number of all epoch applies."""
        return cls(*(read_only(each) for each in (np.searchsorted(apply, np.arange(applies + 1)), key)))


def moments_differ(
    applies: EpochApplies,
    rows: Sequence[BucketRows],
    rules: Rules,
    conflicts: Conflicts,
    key_table: Int16,
    judged: JudgedRows,
    standing: Records | None = None,
) -> Bool:
    """
    Return for which rows a moment has the effect of the commit, and other decisions. Shape (judged,).

    A state between two changes of one transaction counts as a moment, so that a row can be found too many.

    Args:
        applies: All epoch applies in order.
        rows: The own changes of both clusters.
        rules: What each applier does with each table.
        conflicts: Transactions in conflict, per epoch apply.
        key_table: Table number of each key. Shape (keys,).
        judged: The rows, of functions that judge row by row.
        standing: The rows before their first change; None if there were none. `ROW_STATE`, shape (keys, clusters).
    """
    schedule, changes = packed_schedule(applies), packed_changes(rows)
    given = Conflicts(read_only(conflicts.offsets), np.require(conflicts.groups, requirements=["C", "W"]))
    capacity = len(changes.rows) * (9 if rules.tables["reflects"].any() else 5) // 4 + 1024
    while True:
        work = Work.of(read_only(key_table), changes, applies, RowMoments.none(), capacity, keeping=True)
        passes = PassDecisions.of(capacity, keeping=True)
        if standing is not None:
            work.state.rows[:] = standing
        start_arrivals(schedule, changes, work)
        found, facts = np.zeros(len(judged.key), np.bool_), np.zeros(len(key_table), np.int8)
        if _try_all(schedule, changes, rules, given, work, passes, judged, facts, found) != FULL:
            return found
        capacity *= 2


@kernel
def _try_all(schedule, changes, rules, conflicts, work, passes, judged, facts, found):
    """
    Fold the rows, and try the moments of those that are judged; return 0, or `FULL`.

    Args:
        schedule: `Schedule`.
        changes: `Changes`.
        rules: `Rules`.
        conflicts: `Conflicts`.
        work: `Work`; filled in.
        passes: `PassDecisions`; overwritten by every epoch apply.
        judged: `JudgedRows`.
        facts: 0; work space. int8, shape (keys,).
        found: Set for rows on which a moment decides otherwise. bool, shape (rows,).
    """
    sent = ZERO
    for number in range(len(schedule.applies)):
        if work.arrivals.places[number] == 0:
            continue
        apply = schedule.applies[number]
        here = apply["applier"]
        rejected = Groups(conflicts.groups, conflicts.offsets[number], conflicts.offsets[number + 1])
        epoch, follows = apply["epoch"], np.int64(apply["group"]) + (not apply["traced"])
        catch_up(here, epoch, follows, changes, rules, work, True)
        if judged.starts[number] < judged.starts[number + 1]:
            _try_moments(number, schedule, changes, rules, rejected, work, passes, judged, facts, found)
        made, _, answers = decide_pass(number, schedule, changes, rules, rejected, work, passes.final, ZERO, NO)
        if made < 0:
            return FULL
        if answers:
            entries = sent
            sent = log_rows(number, schedule, rules, work, passes.final, (ZERO, made), sent)
            if sent < 0:
                return FULL
            queue_up(number, schedule, entries, sent, work)
    return 0


@kernel
def _try_moments(number, schedule, changes, rules, rejected, work, passes, judged, facts, found):
    """
    Try the moments of the rows that an epoch apply judges; arguments as for `_try_all`.

    The decisions on a row do not depend on other rows. So each trial undoes one own change of all rows at once.
    """
    here, acting = schedule.applies[number]["applier"], schedule.applies[number]["acting"]
    start, stop = judged.starts[number], judged.starts[number + 1]
    keys = judged.key[start:stop]
    final, trial = passes.final, passes.trial
    for key in keys:
        work.marks[key] = True
    count, saved, _ = decide_pass(number, schedule, changes, rules, rejected, work, final, ZERO, YES)
    if count < 0:
        return  # the pass that is committed fails, too
    note_facts((here, acting), rules, work, (final, final), (ZERO, count), facts)
    effects = np.empty(len(keys), np.int8)
    for place in range(len(keys)):
        effects[place] = NEVER if facts[keys[place]] & WITH_TRANSACTION else effect_of(here, keys[place], work, facts)
    restore(here, saved, work)
    chosen = choose_rows(here, changes, work, final.key[:count], open_start(number, schedule, changes))
    while chosen > 0 and go_back(here, chosen, work) > 0:
        for key in keys:
            facts[key] = 0
        count, saved, _ = decide_pass(number, schedule, changes, rules, rejected, work, trial, ZERO, YES)
        note_facts((here, acting), rules, work, (trial, final), (ZERO, count), facts)
        restore(here, saved, work)
        for place in range(chosen):
            copy_version(work.state.rows[work.moved[place]["key"], here], work.moved[place])
        for place in range(len(keys)):
            known = facts[keys[place]]
            # An operation that is applied locks the row: the change would have come after the epoch.
            if known & DIFFERS and not known & WROTE and effect_of(here, keys[place], work, facts) == effects[place]:
                found[start + place] = True
    for key in keys:
        work.marks[key], facts[key] = False, 0


@kernel
def note_facts(applier, rules, work, both, places, facts):
    """
    Note what a pass decided on the marked rows.

    Args:
        applier: Number of the applier's cluster, and its row of `Rules`.
        rules: `Rules`.
        work: `Work`, after the pass.
        both: The decisions of the pass, and those at the commit on the same operations.
        places: The first of these, and one past the last.
        facts: Bits are set. int8, shape (keys,).
    """
    here, acting = applier
    decisions, final = both
    for place in range(places[0], places[1]):
        key = decisions.key[place]
        if not work.marks[key]:
            continue
        verdict, cause = decisions.verdict[place], decisions.cause[place]
        if not facts[key] & MET and decisions.existed[place]:
            facts[key] |= THERE_BEFORE
        facts[key] |= MET
        if verdict == APPLIED:
            facts[key] |= WROTE
        elif verdict == REJECTED:
            refreshes = rules.tables[acting, work.state.rows[key, here]["table"]]["refreshes"]
            if needs_refresh(refreshes, decisions.operation[place], cause):
                facts[key] |= REFRESHES
            if cause == TRANSACTION:
                facts[key] |= WITH_TRANSACTION
        if verdict != final.verdict[place] or cause != final.cause[place]:
            facts[key] |= DIFFERS


@kernel
def effect_of(here, key, work, facts):
    """Return the effect of a pass on a row, which is as the pass leaves it."""
    known = facts[key]
    exists = work.state.rows[key, here]["exists"]
    return effect_number(known & REFRESHES != 0, known & WROTE != 0, known & THERE_BEFORE != 0, exists)
