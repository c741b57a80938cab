"""
What appliers did to rows, take by take, and where that is not what a binlog shows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conflict.columnar.kernels.arrays import Bool, Int8, Int32, Int64, UInt64, each_read_only
from conflict.history.effects import Effect
from conflict.rules.decision import Verdict
from ndb_formats.columnar.kernels.compiled import njit_uncounted
from ndb_formats.events.rows_event import Operation

__all__ = ["compare", "in_order", "look_quickly", "touched_rows"]

APPLIED, DELETE = int(Verdict.APPLIED), int(Operation.DELETE_ROW)
GONE = -2
CHANGED, DELETED = int(Effect.CHANGED), int(Effect.DELETED)
REFRESHED, REFRESHED_ABSENT = int(Effect.REFRESHED), int(Effect.REFRESHED_ABSENT)


@njit_uncounted(inline="always")
def _pass_over(again, shown_rows, shown, stop, open_shown, unseen):
    """Leave rows that are sent again, where the binlog shows them next, for a second look."""
    while shown < stop and again[shown_rows[shown]]:
        open_shown[unseen] = shown
        unseen += 1
        shown += 1
    return shown, unseen


@njit_uncounted(inline="always")
def _all_shown(now, start, shown, count, verdict, existed, key, operation, shown_rows, shown_effects, touched_in):
    """Whether the binlog shows, one by one, what as many decisions of a take did, each to another row."""
    fine, first, other = True, np.uint64(start), np.uint64(shown)
    for each in range(np.uint64(count)):  # without a branch
        row, deletes = key[first + each], operation[first + each] == DELETE
        last = touched_in[row]
        fine &= (verdict[first + each] == APPLIED) & (existed[first + each] | (not deletes)) & (last != now)
        fine &= shown_rows[other + each] == row
        fine &= shown_effects[other + each] == (DELETED if deletes else CHANGED)
        touched_in[row] = now
    return fine


def look_quickly(
    applied: Int32, starts: Int32, verdict: Int8, existed: Bool, key: Int32, operation: Int8,
    log_apply: Int64, log_key: Int32, applier: Int8, epochs: UInt64, groups: Int32, alone: Bool, side: int,
    shown_epochs: UInt64, shown_groups: Int32, shown_rows: Int32, shown_effects: Int8, keys: int,
) -> tuple[int, Int32, Int32]:  # fmt: skip
    """
    Find the takes of one applier of which the binlog shows the same rows in the same order, those sent again apart.

    Nearly all are so, and need no second look but at those rows.

    Args:
        applied: The takes of the decisions, in order.
        starts: The first decision of each, and how many there are.
        verdict: Of each decision.
        existed: Whether its row was there before.
        key: Its row.
        operation: Its operation.
        log_apply: Take of each row that the applier sent again, after it had rejected an operation of that take on it.
        log_key: The row.
        applier: Of each take.
        epochs: Own epoch of each take.
        groups: Its group of that epoch.
        alone: Whether no other take stands there.
        side: The applier.
        shown_epochs: Own epoch of each row that the binlog shows, in the order of epoch and group.
        shown_groups: Its group.
        shown_rows: The row.
        shown_effects: What was done to it.
        keys: Number of rows.

    Returns:
        How many rows were found to be the same, the numbers of all other decisions of the applier, and of all other
        rows that the binlog shows.
    """
    decided = each_read_only(applied, starts, verdict, existed, key, operation, log_apply, log_key)
    applies = each_read_only(applier, epochs, groups, alone)
    shown = each_read_only(shown_epochs, shown_groups, shown_rows, shown_effects)
    touched_in, again = np.full(keys, -1, np.int32), np.zeros(keys, np.bool_)
    open_decisions, open_shown = np.empty(len(verdict), np.int32), np.empty(len(shown_rows), np.int32)
    compared, left, unseen = _look_quickly(
        *decided, *applies, side, *shown, touched_in, again, open_decisions, open_shown
    )
    return compared, open_decisions[:left], open_shown[:unseen]


@njit_uncounted()
def _look_quickly(
    applied, starts, verdict, existed, key, operation, log_apply, log_key, applier, epochs, groups, alone, side,
    shown_epochs, shown_groups, shown_rows, shown_effects, touched_in, again, open_decisions, open_shown,
):  # fmt: skip
    """
    Fill in the numbers of what is left; returns how many rows are the same, and both counts.

    `touched_in` is room for the last take that changed each row, GONE less that if it deleted it, `again` for whether a
    row is sent again in the take.
    """
    compared, left, unseen = 0, 0, 0
    entry, shown = 0, 0
    for which in range(len(applied)):
        now, start, decision = applied[which], starts[which], starts[which + 1]
        if applier[now] != side:
            continue
        epoch, group = epochs[now], groups[now]
        while shown < len(shown_rows) and (
            shown_epochs[shown] < epoch or (shown_epochs[shown] == epoch and shown_groups[shown] < group)
        ):
            open_shown[unseen] = shown
            unseen += 1
            shown += 1
        stop = min(shown + decision - start, len(shown_rows))  # what is in order and ends alike is alike
        if stop == shown or shown_epochs[stop - 1] != epoch or shown_groups[stop - 1] != group:
            stop = shown
        while stop < len(shown_rows) and shown_epochs[stop] == epoch and shown_groups[stop] == group:
            stop += 1
        while entry < len(log_apply) and log_apply[entry] < now:
            entry += 1
        first_entry = entry
        while entry < len(log_apply) and log_apply[entry] == now:
            again[log_key[entry]] = True
            entry += 1
        sends, same = entry > first_entry, alone[now]
        first, left_before, unseen_before = shown, left, unseen
        one_by_one = same and not sends and decision - start == stop - shown
        if one_by_one:
            same = _all_shown(
                now, start, shown, stop - shown, verdict, existed, key, operation, shown_rows, shown_effects, touched_in
            )  # fmt: skip
            shown = stop
        for place in range(start, start if one_by_one else decision):
            row, deletes = key[place], operation[place] == DELETE
            if sends and again[row]:
                open_decisions[left] = place
                left += 1
                continue
            if verdict[place] != APPLIED:
                continue
            last = touched_in[row]
            if last == now and same and not deletes:
                continue  # changed once more
            if sends:
                shown, unseen = _pass_over(again, shown_rows, shown, stop, open_shown, unseen)
            same = (
                same
                and shown < stop
                and shown_rows[shown] == row
                and shown_effects[shown] == (DELETED if deletes else CHANGED)
                and (existed[place] or not deletes)
                and last != now
                and last != GONE - now
            )
            if not same:
                break
            touched_in[row] = GONE - now if deletes else now
            shown += 1
        if sends:
            shown, unseen = _pass_over(again, shown_rows, shown, stop, open_shown, unseen)
            for place in range(first_entry, entry):
                again[log_key[place]] = False
        if same and shown == stop:
            compared += shown - first - (unseen - unseen_before)
            continue
        left, unseen = left_before, unseen_before
        shown = first  # the next take passes over these rows, unless it stands at the same place
        for place in range(start, decision):
            open_decisions[left] = place
            left += 1
    for place in range(shown, len(shown_rows)):
        open_shown[unseen] = place
        unseen += 1
    return compared, left, unseen


@njit(cache=True)
def touched_rows(apply, verdict, existed, key, operation, log_apply, log_key, log_operation, keys):
    """
    Return take, row and effect of all that one applier did, in the order of takes, a row once per take.

    Args:
        apply: Of each decision, all those of some takes.
        verdict: Of each decision.
        existed: Whether its row was there before.
        key: Its row.
        operation: Its operation.
        log_apply: Take of each row that it sent again.
        log_key: The row.
        log_operation: The operation that it logged.
        keys: Number of rows.
    """
    count = len(apply) + len(log_apply)
    applies, rows, effects = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int8)
    there, gone = np.empty(count, np.bool_), np.empty(count, np.bool_)
    last, slot = np.full(keys, -1, np.int64), np.zeros(keys, np.int64)
    found, entry, decision = 0, 0, 0
    while decision < len(apply):
        now, start = apply[decision], found
        while decision < len(apply) and apply[decision] == now:
            if verdict[decision] == APPLIED:
                row = key[decision]
                if last[row] != now:
                    last[row], slot[row] = now, found
                    applies[found], rows[found], effects[found], there[found] = now, row, 0, existed[decision]
                    found += 1
                gone[slot[row]] = operation[decision] == DELETE
            decision += 1
        while entry < len(log_apply) and log_apply[entry] <= now:
            row = log_key[entry]
            if last[row] != now:
                last[row], slot[row] = now, found
                applies[found], rows[found] = now, row
                found += 1
            effects[slot[row]] = REFRESHED_ABSENT if log_operation[entry] == DELETE else REFRESHED
            entry += 1
        kept = start
        for place in range(start, found):
            effect = effects[place]
            if effect == 0 and (there[place] or not gone[place]):
                effect = DELETED if gone[place] else CHANGED
            if effect != 0:  # else it was not there before, and is not there now
                applies[kept], rows[kept], effects[kept] = applies[place], rows[place], effect
                kept += 1
        found = kept
    return applies[:found], rows[:found], effects[:found]


@njit(cache=True)
def in_order(epochs, groups):
    """Whether rows are in the order of epoch and group."""
    fine = True
    for place in range(1, len(epochs)):  # without a branch
        before, after = epochs[place - 1], epochs[place]
        fine &= (before < after) | ((before == after) & (groups[place - 1] <= groups[place]))
    return fine


@njit(cache=True)
def compare(epochs, groups, rows, effects, shown_epochs, shown_groups, shown_rows, shown_effects, keys):
    """
    Compare what one applier did with what its binlog shows, both in the order of epoch and group.

    At one place the last thing done to a row counts; takes without a trace can stand at one place.

    Args:
        epochs: Own epoch of the take in which each row was touched.
        groups: Group of that epoch.
        rows: The row.
        effects: What was done to it.
        shown_epochs: The same four of what the binlog shows.
        shown_groups: See there.
        shown_rows: See there.
        shown_effects: See there.
        keys: Number of rows.

    Returns:
        How many rows, per place, either holds; and epoch, group and row where they are not the same.
    """
    count = len(rows) + len(shown_rows)
    at_epoch, at_group, at_row = np.empty(count, np.uint64), np.empty(count, np.int32), np.empty(count, np.int64)
    done, shown = np.zeros(keys, np.int8), np.zeros(keys, np.int8)  # bit n is effect n
    mine, theirs, compared, differing = 0, 0, 0, 0
    found, seen = len(rows), len(shown_rows)
    while mine < found or theirs < seen:
        first = theirs >= seen or (
            mine < found
            and (
                epochs[mine] < shown_epochs[theirs]
                or (epochs[mine] == shown_epochs[theirs] and groups[mine] <= shown_groups[theirs])
            )
        )
        epoch, group = (epochs[mine], groups[mine]) if first else (shown_epochs[theirs], shown_groups[theirs])
        start, shown_start = mine, theirs
        while mine < found and epochs[mine] == epoch and groups[mine] == group:
            mine += 1
        while theirs < seen and shown_epochs[theirs] == epoch and shown_groups[theirs] == group:
            theirs += 1
        for place in range(start, mine):
            done[rows[place]] = 1 << effects[place]
        for place in range(shown_start, theirs):
            shown[shown_rows[place]] |= 1 << shown_effects[place]
        for place in range(start, mine + theirs - shown_start):
            row = rows[place] if place < mine else np.int64(shown_rows[shown_start + place - mine])
            if done[row] == 0 and shown[row] == 0:
                continue  # a row that was met before
            compared += 1
            if done[row] != shown[row]:
                at_epoch[differing], at_group[differing], at_row[differing] = epoch, group, row
                differing += 1
            done[row], shown[row] = 0, 0
    return compared, at_epoch[:differing], at_group[:differing], at_row[:differing]
