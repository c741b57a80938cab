"""
One pass of an applier over a foreign epoch, and what a cluster did itself, over the states of rows.

The functions are compiled into the loops that use them: they run once per row or take, and a call costs more than
what they do.
"""

from __future__ import annotations

import numpy as np

from conflict.columnar.kernels.arrays import Kind
from conflict.columnar.kernels.prefetch import fetch_soon
from conflict.columnar.kernels.records import FETCHED_AHEAD
from conflict.columnar.kernels.rules import decide_operation
from conflict.columnar.kernels.search import first_at_least, reaches
from conflict.rules.decision import Cause, Verdict
from ndb_formats.columnar.kernels.compiled import njit_uncounted
from ndb_formats.events.rows_event import Operation

__all__ = [
    "are_rejected",
    "call_decide_pass",
    "catch_up",
    "copy_version",
    "decide_pass",
    "is_marked",
    "mark_rejected",
    "restore",
]

UPDATE, DELETE, WRITE = int(Operation.UPDATE_ROW), int(Operation.DELETE_ROW), int(Operation.WRITE_ROW)
APPLIED, REJECTED, IGNORED = int(Verdict.APPLIED), int(Verdict.REJECTED), int(Verdict.IGNORED)
NO_CAUSE, TRANSACTION = int(Cause.NONE), int(Cause.TRANS_IN_CONFLICT)
IN_CONFLICT = int(Cause.ROW_IN_CONFLICT)
CHANGE, REFRESH, REFLECTED, EMPTY = (int(kind) for kind in Kind)
NOTHING = np.uint64(0)
_SOON = 8  # rows


@njit_uncounted(inline="always")
def copy_version(target, source):
    """Make one record what another is: exists, author, epoch, resolve column, lacking columns."""
    target["epoch"], target["value"], target["lacks"] = source["epoch"], source["value"], source["lacks"]
    target["exists"], target["local"], target["given"] = source["exists"], source["local"], source["given"]


@njit_uncounted(inline="always")
def catch_up(state, rows, images, rules, side, start, end, epoch, group, unexplained, keeping, earlier):
    """
    Do what a cluster did itself before a group of an epoch: rows from `start` on, of those up to `end`.

    Returns the first row that is left. `images` is what images hold (see `row_records`),
    `earlier` how each row was before, if kept; `unexplained` counts changes of rows that should not be there.
    """
    number = start - 1
    value_step, lack_step = min(len(images.values) - 1, 1), min(len(images.lacks) - 1, 1)  # one can stand for all
    while number + 1 < end and not reaches(rows[number + 1], epoch, group):
        number += 1
        fetch_soon(state, rows[number + FETCHED_AHEAD]["key"], 0)
        row, values, lacks = rows[number], images.values[number * value_step], images.lacks[number * lack_step]
        mine = state[row["key"], side]
        operation = row["operation"]
        if not mine["exists"] and operation != WRITE:
            unexplained[side, row["key"]] += 1
        if keeping:
            copy_version(earlier[number], mine)
        if operation == DELETE:
            mine["exists"] = False
            continue
        if not mine["exists"]:
            mine["exists"], mine["given"], mine["value"] = True, False, NOTHING
            mine["lacks"] = rules[side, mine["table"]]["required"]
            if operation == UPDATE:
                mine["lacks"] = lacks["before"]
                if row["before_given"]:
                    mine["given"], mine["value"] = True, values["before"]
        mine["lacks"] &= lacks["after"]
        if row["after_given"]:
            mine["given"], mine["value"] = True, values["after"]
        mine["local"], mine["epoch"] = True, row["epoch"]
    return number + 1


@njit_uncounted(inline="always")
def restore(saved, state, notes, side, count):
    """Undo a pass."""
    for place in range(count):
        kept = saved[place]
        copy_version(state[kept["key"], side], kept)
        notes[kept["key"], side]["kept"] = -1


def _decide_pass(
    number, applies, state, notes, rows, images, first, last, there_start, rules, log, queue, queued, queue_end, groups,
    rejected_start, rejected_stop, decisions, compared, made, undoing, marks, saved,
):  # fmt: skip
    """
    Decide the operations of one take, and do those that are applied.

    Args:
        number: Of the take.
        applies: All takes.
        state: Rows of both clusters.
        notes: What is noted of them.
        rows: Own changes of both clusters.
        images: What their images hold; see `conflict.columnar.kernels.records.row_records`.
        first: The first of them that belongs to the foreign epoch.
        last: One past the last.
        there_start: Where those of the source begin.
        rules: What appliers do with tables.
        log: What appliers logged.
        queue: Per cluster, which entries of it, in order.
        queued: The first of them that belongs to the foreign epoch.
        queue_end: One past the last.
        groups: Groups in conflict, of all takes.
        rejected_start: Those of this take, in this pass.
        rejected_stop: One past the last.
        decisions: Where decisions go.
        compared: Where values that were compared go.
        made: How many there are.
        undoing: Whether rows are kept as they were, so that the pass can be undone; only those that are marked are
            decided then, and of the others only the key is written down.
        marks: Which are.
        saved: Where rows are kept.

    Returns:
        The number of decisions, or -1 if there is no room; how many rows were kept; whether the source may hear of it.
    """
    apply = applies[number]
    here = apply["applier"]
    there = 1 - here
    pass_number = 2 * number + undoing
    kept, place, answers = 0, first, False
    value_step, lack_step = min(len(images.values) - 1, 1), min(len(images.lacks) - 1, 1)
    while made >= 0 and (place < last or queued < queue_end):
        if made >= len(decisions.apply):
            made = -1
            break
        from_log, kind = False, CHANGE
        if queued < queue_end:
            entry = log[queue[there, queued]]
            from_log = place >= last or applies[entry["apply"]]["group"] < rows[place]["group"]
        reflected, before_given = False, False
        if from_log:
            key, operation, group = entry["key"], entry["operation"], applies[entry["apply"]]["group"]
            reflected = not entry["refresh"]
            kind = REFLECTED if reflected else REFRESH
            given, after, lacks = entry["given"], entry["value"], entry["lacks"]
            before = NOTHING
            decisions.source[made] = -1 - queue[there, queued]
            queued += 1
        else:
            row, values, lacking = rows[place], images.values[place * value_step], images.lacks[place * lack_step]
            fetch_soon(state, rows[place + _SOON]["key"], 0)
            key, operation, group = row["key"], row["operation"], row["group"]
            before_given, before = row["before_given"], values["before"]
            given, after, lacks = row["after_given"], values["after"], lacking["after"]
            kind = EMPTY if row["empty"] else CHANGE
            decisions.source[made] = place - there_start
            place += 1
        decisions.key[made] = key
        if undoing and not is_marked(marks, key):
            made += 1
            continue
        mine = state[key, here]
        rule = rules[here, mine["table"]]
        if from_log:
            # The key is all that is known of the row before; a resolve column outside it stops the applier.
            before = mine["value"]
        decisions.apply[made], decisions.existed[made] = number, mine["exists"]
        decisions.group[made], decisions.operation[made], decisions.kind[made] = group, operation, kind
        if kind == EMPTY:
            verdict, cause, incoming, stored = IGNORED, NO_CAUSE, NOTHING, NOTHING
        elif rejected_start < rejected_stop and _contains(groups, rejected_start, rejected_stop, group):
            verdict, cause, incoming, stored = REJECTED, TRANSACTION, NOTHING, NOTHING
        else:
            verdict, cause, incoming, stored = decide_operation(
                rule["code"], rule["gci_bits"], rule["secondary"], operation, reflected,
                mine["exists"], mine["local"], mine["epoch"], mine["value"],
                before_given, before, given, after, lacks == 0,
                rule["needs_before"] >> operation & 1 != 0, rule["needs_after"] >> operation & 1 != 0,
                apply["max_replicated"],
            )  # fmt: skip
        decisions.verdict[made], decisions.cause[made] = verdict, cause
        if cause == IN_CONFLICT:
            both = compared[made]
            both["incoming"], both["stored"] = incoming, stored
        made += 1
        answers |= verdict == REJECTED or rule["reflects"]
        if verdict != APPLIED:
            continue
        if undoing and notes[key, here]["kept"] != number:
            notes[key, here]["kept"] = number
            old = saved[kept]
            old["key"] = key
            copy_version(old, mine)
            kept += 1
        if rule["reflects"] and not rule["whole_rows"]:
            note = notes[key, here]
            if note["wrote"] != pass_number:
                note["wrote"], note["unwritten"] = pass_number, rule["required"]
            note["unwritten"] &= lacks
        if operation == DELETE:
            mine["exists"] = False
        else:
            if not mine["exists"]:
                mine["exists"], mine["given"], mine["value"], mine["lacks"] = True, False, NOTHING, rule["required"]
            mine["lacks"] &= lacks
            if given:
                mine["given"], mine["value"] = True, after
        mine["local"], mine["epoch"] = False, apply["epoch"]
    return made, kept, answers


@njit_uncounted(inline="always")
def _contains(groups, start, stop, group):
    """Whether a group is in a sorted stretch."""
    place = first_at_least(groups, start, stop, group)
    return place < stop and groups[place] == group


@njit_uncounted()
def are_rejected(apply, group, offsets, groups, found):
    """
    Mark operations of transactions in conflict.

    Args:
        apply: Of each operation.
        group: Of each operation.
        offsets: Of the takes; see `conflict.columnar.kernels.arrays.Conflicts`.
        groups: See there.
        found: What is marked. Shape (operations,).
    """
    for place in range(len(apply)):
        start, stop = offsets[apply[place]], offsets[apply[place] + 1]
        found[place] = _contains(groups, start, stop, group[place])


@njit_uncounted(inline="always")
def is_marked(marks, key):
    """Whether a row is marked, or shares its mark with one that is."""
    return marks[key & (len(marks) - 1)]


@njit_uncounted()
def mark_rejected(marks, applies, rows, first, last, log, queue, there, queued, queue_end, groups, start, stop):
    """
    Mark the rows of transactions in conflict of one take; returns whether there are any.

    What is decided on one row does not depend on others, so only on these pass TRACK decides otherwise than is decided
    in the end. Several rows share a mark: to decide one too many does no harm. `groups`, from `start` to `stop`, are
    those transactions; all else is as given to `decide_pass`.
    """
    found = False
    for place in range(first, last):
        row = rows[place]
        if _contains(groups, start, stop, row["group"]):
            marks[row["key"] & (len(marks) - 1)] = True
            found = True
    for place in range(queued, queue_end):
        entry = log[queue[there, place]]
        if _contains(groups, start, stop, applies[entry["apply"]]["group"]):
            marks[entry["key"] & (len(marks) - 1)] = True
            found = True
    return found


# The main loop has it compiled in; what is done now and then calls it.
decide_pass = njit_uncounted(inline="always")(_decide_pass)
call_decide_pass = njit_uncounted()(_decide_pass)
