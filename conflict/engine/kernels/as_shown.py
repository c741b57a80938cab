"""
What epoch applies do to rows that are as the binlogs show them, whatever was derived of earlier epoch applies.

A fold goes on with what it decides. Where that is not what happened, later epoch applies meet other rows than they did,
and differ from their binlogs, too. Here rows go on with the effects in the binlogs. So an epoch apply differs only if
its rows were not judged as they were at its commit. `conflict.engine.inference.moments` finds the same, operation by
operation.

Functions that compare a column need the values of rows, which effects do not tell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conflict.engine.kernels.apply_order import queue_up, start_arrivals
from conflict.engine.kernels.arrays import YES, ZERO, Bool, Conflicts, Decisions, EpochApplies, Int16, RowMoments
from conflict.engine.kernels.effects import ShownRows
from conflict.engine.kernels.fold import put_entry, put_origin
from conflict.engine.kernels.open_moments import MET, effect_of, note_facts
from conflict.engine.kernels.passes import FULL, Groups, catch_up, decide_pass, restore
from conflict.engine.kernels.records import Changes, PassDecisions, Rules, Work, packed_schedule
from conflict.history.shown_effects import NO_EFFECT, Effect
from ndb_formats.columnar.kernel import kernel, read_only
from ndb_formats.events.rows_event import Operation

WRITE, UPDATE, DELETE = (int(operation) for operation in Operation)
CHANGED, REFRESHED, REFRESHED_ABSENT = int(Effect.CHANGED), int(Effect.REFRESHED), int(Effect.REFRESHED_ABSENT)
NOTHING = NO_EFFECT
NO_DECISION = -1  # a log entry that the binlog shows comes from none


def judge_as_shown(
    applies: EpochApplies,
    changes: Changes,
    rules: Rules,
    conflicts: Conflicts,
    key_table: Int16,
    shown: Sequence[ShownRows],
    looked_at: Bool,
) -> tuple[Decisions, Bool] | None:
    """
    Judge the rows of some epoch applies as the binlogs show them at its commit.

    Args:
        applies: All epoch applies in order.
        changes: The own changes of both clusters, packed.
        rules: What each applier does with each table; no function compares a column.
        conflicts: Transactions in conflict, per epoch apply.
        key_table: Table number of each key in the bucket. Shape (keys,).
        shown: Per cluster, what its binlog shows.
        looked_at: Those that are judged; they have a trace. Shape (applies,).

    Returns:
        Their decisions, and which of them have another effect on a row than their binlog shows, shape (applies,); None
        if a binlog shows effects that are of none of the epoch applies.
    """
    schedule, keys = packed_schedule(applies), len(key_table)
    given = Conflicts(read_only(conflicts.offsets), np.require(conflicts.groups, requirements=["C", "W"]))
    effects = sum(len(each.key) for each in shown)
    capacity = len(changes.rows) + effects + 1024
    while True:
        work = Work.of(key_table, changes, applies, RowMoments.none(), capacity, keeping=False)
        work.marks[:] = True
        final = PassDecisions.of(capacity, keeping=False).final
        start_arrivals(schedule, changes, work)
        differing, due = np.zeros(len(applies), np.bool_), (np.zeros(keys, np.int8), np.zeros(keys, np.int8))
        made, taken = _judge(
            schedule, changes, rules, given, work, final, tuple(shown), read_only(looked_at), due, differing
        )
        if made != FULL:
            return None if taken < effects else (final.first(made), differing)
        capacity *= 2


@kernel
def _judge(schedule, changes, rules, conflicts, work, decisions, shown, looked_at, due, differing):
    """
    Let rows go on as the binlogs show them, and judge those of the epoch applies that are looked at.

    Args:
        schedule: `Schedule`.
        changes: `Changes`.
        rules: `Rules`.
        conflicts: `Conflicts`.
        work: `Work`, with all rows marked; filled in.
        decisions: `DecisionBuffers` to fill in.
        shown: Per cluster, `ShownRows`.
        looked_at: Those that are judged. bool, shape (applies,).
        due: Effects and facts of rows, 0; work space. int8, shape (keys,) each.
        differing: Set for those that have another effect than is shown. bool, shape (applies,).

    Returns:
        The number of decisions, or `FULL`; and of how many effects the epoch apply was found.
    """
    made, sent, taken = ZERO, ZERO, np.zeros(2, np.int64)
    for number in range(len(schedule.applies)):
        apply = schedule.applies[number]
        here = apply["applier"]
        mine, start = shown[here], taken[here]
        stop = start
        if apply["traced"]:
            while stop < len(mine.key) and mine.epoch[stop] == apply["epoch"] and mine.group[stop] == apply["group"]:
                stop += 1
        if work.arrivals.places[number] == 0 and start == stop:
            continue
        taken[here] = stop
        catch_up(here, apply["epoch"], np.int64(apply["group"]), changes, rules, work, False)
        if looked_at[number]:
            rejected, first = Groups(conflicts.groups, conflicts.offsets[number], conflicts.offsets[number + 1]), made
            made, saved, _ = decide_pass(number, schedule, changes, rules, rejected, work, decisions, made, YES)
            if made < 0:
                return FULL, ZERO
            note_facts((here, apply["acting"]), rules, work, (decisions, decisions), (first, made), due[1])
            differing[number] = _differs(here, work, decisions.key[first:made], mine, (start, stop), due)
            restore(here, saved, work)
        sent = _take_shown(number, schedule, rules, work, mine, (start, stop), sent)
        if sent < 0:
            return FULL, ZERO
    return made, taken[0] + taken[1]


@kernel
def _differs(here, work, keys, shown, places, due):
    """
    Whether a pass had another effect on a row than its binlog shows.

    Args:
        here: Number of the cluster.
        work: `Work`, after the pass.
        keys: The row of each of its decisions.
        shown: `ShownRows` of the cluster.
        places: The first of them that is of the epoch apply, and one past the last.
        due: See `_judge`; left as it was before the pass.
    """
    effects, facts = due
    found = False
    for place in range(places[0], places[1]):
        effects[shown.key[place]] = shown.effect[place]
    for key in keys:
        found |= effect_of(here, key, work, facts) != effects[key]
    for place in range(places[0], places[1]):
        found |= not facts[shown.key[place]] & MET
        effects[shown.key[place]] = NOTHING
    for key in keys:
        facts[key] = 0
    return found


@kernel
def _take_shown(number, schedule, rules, work, shown, places, sent):
    """
    Give rows the effects that a binlog shows, and the other applier what was sent back.

    Args:
        number: Of the epoch apply.
        schedule: `Schedule`.
        rules: `Rules`.
        work: `Work`; its rows and its log move on.
        shown: `ShownRows` of the cluster.
        places: The first of them that is of the epoch apply, and one past the last.
        sent: Number of log entries so far.

    Returns:
        The number of log entries, or `FULL`.
    """
    apply = schedule.applies[number]
    here, first = apply["applier"], sent
    for place in range(places[0], places[1]):
        key, effect = shown.key[place], shown.effect[place]
        mine = work.state.rows[key, here]
        refreshed, stays = effect >= REFRESHED, effect in (CHANGED, REFRESHED)
        existed, mine["exists"] = mine["exists"], stays
        if stays:
            mine["local"], mine["epoch"] = refreshed, apply["epoch"]
        if refreshed or rules.tables[apply["acting"], mine["table"]]["reflects"]:
            if sent >= len(work.log.entries):
                return FULL
            entry = work.log.entries[sent]
            operation = (UPDATE if existed and not refreshed else WRITE) if stays else DELETE
            put_entry(entry, key, mine, operation, stays)
            put_origin(entry, here, number, NO_DECISION)
            entry["refresh"] = refreshed
            sent += 1
    queue_up(number, schedule, first, sent, work)
    return sent
