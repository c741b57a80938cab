"""
The fold: decides every operation of a bucket in one pass.

Takes are walked in order. Before one, its applier catches up on what it did itself; then the operations of
the foreign epoch are decided, its own changes and what the other applier logged merged in the order of its log;
then those that a primary changed are reflected, and the rows in conflict refreshed. State is one entry per key
and cluster: exists, local, epoch, resolve column, whether the row has one, which required columns it lacks.

A take that holds transactions in conflict is decided twice, as the server does it: once as if there were none
(pass TRACK), which is undone, then with their operations rejected (pass APPLY). Which transactions those are
is an input; `conflict.columnar.rounds.transactions` finds them by folding until nothing changes.

The rules are those of `conflict.rules.functions`, which property tests hold this to.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from conflict.columnar.kernels.arrays import (
    Bool,
    BucketRows,
    Conflicts,
    Decisions,
    EpochApplies,
    FunctionArrays,
    Int16,
    Int32,
    Int64,
    Logged,
    read_only,
)
from conflict.columnar.kernels.arrivals import queue_up, start_applies
from conflict.columnar.kernels.buffers import DecisionRoom, Room
from conflict.columnar.kernels.open_decisions import outcome_bit, try_others
from conflict.columnar.kernels.passes import catch_up, decide_pass, is_marked, mark_rejected, restore
from conflict.columnar.kernels.records import Records, row_records, rule_records, state_records, walk_of
from conflict.columnar.kernels.rules import needs_refresh
from conflict.columnar.kernels.search import HIGHEST, LAST_EPOCH, open_start
from conflict.rules.decision import Verdict
from ndb_formats.columnar.kernels.compiled import njit_uncounted
from ndb_formats.events.rows_event import Operation

__all__ = ["Folded", "copy_decision", "fold", "put_entry"]

WRITE, UPDATE, DELETE = (int(operation) for operation in Operation)
APPLIED, REJECTED = int(Verdict.APPLIED), int(Verdict.REJECTED)


@attrs.frozen
class Folded:
    """
    What `fold` returns.

    Attributes:
        decisions: One per operation taken, as it was decided in the end.
        tracked: One per operation of a take that holds transactions in conflict, or was judged before it
            commits, as pass TRACK decided it. Which values it compared is not kept.
        candidates: What pass TRACK may have decided, one bit per outcome (see `outcome_bit`): more than was
            decided where the applier's own cluster changed the row meanwhile. Of transactions that are not in
            conflict, and where it was not wanted, it may be no more than was decided. Shape (tracked,).
        logged: One per row that an applier sent again or reflected.
        unexplained: Own changes of each row that do not fit it (see `ClusterResult`). Shape (clusters, keys).
        exists: Whether each row is there at the end. Shape (clusters, keys).
    """

    decisions: Decisions
    tracked: Decisions
    candidates: Int64
    logged: Logged
    unexplained: Int32
    exists: Bool

    def without_vain_passes(self, conflicts: Conflicts) -> Folded:
        """Leave out passes TRACK over takes that were judged before they commit and held nothing in conflict."""
        kept = np.isin(self.tracked.apply, conflicts.applies)
        if kept.all():
            return self
        columns = (getattr(self.tracked, field.name)[kept] for field in attrs.fields(Decisions))
        return attrs.evolve(self, tracked=Decisions(*columns), candidates=self.candidates[kept])


def fold(
    applies: EpochApplies,
    rows: Sequence[BucketRows],
    functions: FunctionArrays,
    conflicts: Conflicts,
    key_table: Int16,
    *,
    candidates: bool,
) -> Folded:
    """
    Decide every operation of a bucket.

    Args:
        applies: All takes, of every bucket alike.
        rows: What each of the two clusters did itself.
        functions: Which function each applier uses for each table.
        conflicts: Transactions in conflict, per take.
        key_table: Table number of each key in the bucket. Shape (keys,).
        candidates: Whether it is wanted what pass TRACK may have decided besides what it did.
    """
    walk, (packed, images) = walk_of(applies), row_records(rows)
    split, total = len(rows[0]), sum(len(side) for side in rows)
    keeping = candidates and len(conflicts.groups) > 0
    # Rows that are sent again are few, as a rule; those that are reflected may be all.
    capacity = total * (9 if functions.reflects.any() else 5) // 4 + 1024
    while True:
        state, notes = state_records(key_table)
        room = Room.of(capacity, len(key_table), total, len(applies), keeping=keeping)
        epochs = tuple(read_only(side.epoch) for side in rows)
        start_applies(room.active, room.first_row, room.last_row, walk.heard, walk.hearers, walk.split, epochs)
        done, tail = np.array([0, split]), np.zeros(2, np.int64)
        unexplained = np.zeros((2, len(key_table)), np.int32)
        made, seen, sent = _fold(
            *(walk.applies, walk.hearers, packed, images, (0, split), (split, total), done, tail, unexplained),
            *(rule_records(functions), state, notes),
            *(read_only(conflicts.offsets), read_only(conflicts.groups), keeping),
            *attrs.astuple(room, recurse=False),
        )
        if made >= 0:
            break
        capacity *= 2  # two primaries can refresh each other's refreshes any number of times
    return Folded(
        _decisions(room.decisions, room.compared, made),
        _decisions(room.tracked, room.unused, seen),
        room.candidates[:seen],
        Logged(*(np.ascontiguousarray(room.log[field.name][:sent]) for field in attrs.fields(Logged))),
        unexplained,
        np.ascontiguousarray(state["exists"].T),
    )


def _decisions(room: DecisionRoom, compared: Records, count: int) -> Decisions:
    columns = {name: column[:count] for name, column in room._asdict().items()}
    return Decisions(**columns, compared=compared[:count])


@njit_uncounted(inline="always")
def copy_decision(target, place, decisions, number):
    """Write a decision down at another place."""
    target.apply[place], target.source[place] = decisions.apply[number], decisions.source[number]
    target.key[place], target.group[place] = decisions.key[number], decisions.group[number]
    target.operation[place], target.kind[place] = decisions.operation[number], decisions.kind[number]
    target.verdict[place], target.cause[place] = decisions.verdict[number], decisions.cause[number]
    target.existed[place] = decisions.existed[number]


@njit_uncounted(inline="always")
def put_entry(log, sent, here, key, apply, operation, refresh, given, value, lacks, decision):
    """Log a row; see `conflict.columnar.kernels.arrays.Logged`."""
    entry = log[sent]
    entry["cluster"], entry["key"], entry["apply"], entry["operation"] = here, key, apply, operation
    entry["refresh"], entry["given"], entry["value"], entry["lacks"] = refresh, given, value, lacks
    entry["decision"] = decision


@njit_uncounted()
def _log_rows(number, applies, state, notes, rules, log, sent, pending, decisions, start, stop):
    """
    Log what the other side must hear of a take: one entry per row, reflected ones first.

    Returns the number of entries, or -1 if there is no room.
    """
    apply = applies[number]
    here = apply["applier"]
    refreshes = 0
    for refreshing in (True, False):  # a refresh of a row wins over its reflected changes
        for place in range(start, stop):
            if decisions.verdict[place] != (REJECTED if refreshing else APPLIED):
                continue
            key = decisions.key[place]
            mine = state[key, here]
            rule = rules[here, mine["table"]]
            if refreshing:
                wanted = needs_refresh(rule["refreshes"], decisions.operation[place], decisions.cause[place])
            else:
                wanted = rule["reflects"]
            note = notes[key, here]
            if not wanted or note["logged"] == number:
                continue
            note["logged"] = number
            existed, stays = decisions.existed[place], mine["exists"]
            if refreshing:
                pending[refreshes] = place
                refreshes += 1
            elif existed or stays:
                if sent >= len(log):
                    return -1
                kind = (UPDATE if existed else WRITE) if stays else DELETE
                part = kind == UPDATE and not rule["whole_rows"]
                lacks = note["unwritten"] if part else mine["lacks"]
                put_entry(
                    log, sent, here, key, number, kind, False, stays and mine["given"], mine["value"], lacks, place
                )
                sent += 1
    for which in range(refreshes):
        if sent >= len(log):
            return -1
        place = pending[which]
        key = decisions.key[place]
        mine = state[key, here]
        stays = mine["exists"]
        kind = WRITE if stays else DELETE
        put_entry(
            log, sent, here, key, number, kind, True, stays and mine["given"], mine["value"], mine["lacks"], place
        )
        sent += 1
        if stays:
            mine["local"], mine["epoch"] = True, apply["epoch"]
    return sent


@njit_uncounted()
def _fold(
    applies, hearers, rows, images, begin, end, done, tail, unexplained, rules, state, notes, offsets, groups, keeping,
    active, first_row, last_row, queue_start, queue_stop,
    decisions, compared, tracked, unused, trial, marks, candidates, log, queue, pending, saved, earlier, moved,
):  # fmt: skip
    """
    Walk the takes.

    Per cluster, `begin` and `end` are those of its rows, `done` is the first that is left, `tail` the length of its
    queue; `unexplained` is added up. Returns how many decisions, tracked decisions and entries there are, -1 if no room
    is left.
    """
    made, seen, sent = 0, 0, 0
    for number in range(len(applies)):
        if not active[number]:
            continue  # it applies nothing here
        apply = applies[number]
        here = apply["applier"]
        there = 1 - here
        there_start = begin[there]
        in_conflict = offsets[number] < offsets[number + 1]
        first, last = first_row[number], last_row[number]
        # Pass TRACK is gone over only where it decides otherwise.
        if apply["judged"]:
            twice = True
            marks[:] = True
        else:
            twice = in_conflict and mark_rejected(
                marks, applies, rows, first, last, log, queue, there, queue_start[number], queue_stop[number],
                groups, offsets[number], offsets[number + 1],
            )  # fmt: skip
        tries = keeping and twice and in_conflict
        # 1. The applier's own changes that come before: one without a trace follows its group.
        epoch, follows = apply["epoch"], np.int64(apply["group"]) + (not apply["traced"])
        if apply["judged"]:
            epoch, follows = apply["judged_epoch"], np.int64(apply["judged_group"]) + 1
        done[here] = catch_up(
            state, rows, images, rules, here, done[here], end[here], epoch, follows, unexplained, tries, earlier
        )

        # 2. The foreign epoch, in the order of its log.
        tracked_start = seen
        if twice:
            seen, kept, _ = decide_pass(
                number, applies, state, notes, rows, images, first, last, there_start, rules,
                log, queue, queue_start[number], queue_stop[number], groups, 0, 0, tracked, unused, seen, True, marks,
                saved,
            )  # fmt: skip
            if seen < 0:
                return -1, -1, -1
            restore(saved, state, notes, here, kept)
            epoch, follows = apply["epoch"], np.int64(apply["group"]) + (not apply["traced"])
            done[here] = catch_up(
                state, rows, images, rules, here, done[here], end[here], epoch, follows, unexplained, tries, earlier
            )
            for place in range(tracked_start, seen):
                if is_marked(marks, tracked.key[place]):
                    candidates[place] = outcome_bit(tracked.verdict[place], tracked.cause[place])
            if tries:
                first_open = open_start(applies, number, rows, begin[here], end[here], done[here])
                try_others(
                    number, applies, state, notes, rows, images, first_open, done[here], first, last, there_start,
                    rules, log, queue, queue_start[number], queue_stop[number], groups, marks,
                    tracked, tracked_start, seen, candidates, trial, unused, saved, earlier, moved,
                )  # fmt: skip
        started = made
        made, _, answers = decide_pass(
            number, applies, state, notes, rows, images, first, last, there_start, rules,
            log, queue, queue_start[number], queue_stop[number],
            groups, offsets[number], offsets[number + 1], decisions, compared, made, False, marks, saved,
        )  # fmt: skip
        if made < 0:
            return -1, -1, -1
        if in_conflict or twice:
            seen = tracked_start + made - started
            if seen > len(tracked.apply):
                return -1, -1, -1
            for place in range(started, made):
                if not is_marked(marks, decisions.key[place]):
                    target = tracked_start + place - started
                    copy_decision(tracked, target, decisions, place)
                    candidates[target] = outcome_bit(decisions.verdict[place], decisions.cause[place])
            marks[:] = False

        # 3. What the other side must hear of it.
        if answers:
            entries = sent
            sent = _log_rows(number, applies, state, notes, rules, log, sent, pending, decisions, started, made)
            if sent < 0:
                return -1, -1, -1
            queue_up(apply, hearers, queue, tail, entries, sent, queue_start, queue_stop, active)
    for side in range(2):
        catch_up(
            state, rows, images, rules, side, done[side], end[side], LAST_EPOCH, HIGHEST, unexplained, False, earlier
        )
    return made, seen, sent
