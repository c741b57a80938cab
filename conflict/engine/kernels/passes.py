"""
One pass of an applier over a foreign epoch, and the own changes of a cluster, over the states of rows.

Computes docs/functions.md, "One pass over an epoch". The functions are inlined into the loops that use them: they
run once per row or epoch apply, and a call would cost more than their work. `fetch_soon` tells the processor which row
is needed soon: more than half of a fold's time would be waiting for rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from conflict.engine.kernels.apply_order import arrival_of, first_at_least, reaches
from conflict.engine.kernels.arrays import Int32, OperationKind
from conflict.engine.kernels.rules import decide_operation
from conflict.history.grid.schemas import RowStep
from conflict.rules.decision import Cause, Verdict
from ndb_formats.columnar.kernel import Kernel, Use, inlined, kernel
from ndb_formats.columnar.kernel_mode import Mode
from ndb_formats.events.rows_event import Operation


def _fetch_soon(records: Any, row: Any, column: Any) -> None:
    """Fetch the record ``records[row, column]`` into the processor's cache without waiting for it."""


class _Fetching(Kernel):
    """Compiled, it is one instruction; interpreted, there is nothing to do."""

    @property
    def made_of(self) -> Any:
        """The function that makes the instruction."""
        return _instruction

    def form(self, mode: Mode) -> Callable[..., Any]:
        return _instruction() if mode is Mode.COMPILED else _fetch_soon


def _instruction() -> Any:
    """Return what numba compiles to the instruction."""
    from llvmlite import ir  # noqa: PLC0415  # interpreted kernels do without numba
    from numba import types  # noqa: PLC0415  # as above
    from numba.core import cgutils  # noqa: PLC0415  # as above
    from numba.extending import intrinsic  # noqa: PLC0415  # as above
    from numba.np.arrayobj import make_array  # noqa: PLC0415  # as above

    def fetch_soon(_: Any, records: Any, row: Any, column: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = signature.args[0]
            array = make_array(kind)(context, builder, arguments[0])
            place = [context.cast(builder, arguments[each], signature.args[each], types.intp) for each in (1, 2)]
            record = cgutils.get_item_pointer(context, builder, kind, array, place, wraparound=False)
            byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            shape = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            options = [ir.Constant(number, each) for each in (1, 3, 1)]  # to write, keep in all caches, data
            prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], shape)
            builder.call(prefetch, [builder.bitcast(record, byte), *options])
            return context.get_dummy_value()

        return types.void(records, row, column), generate

    return intrinsic(fetch_soon)


fetch_soon: Any = _Fetching(_fetch_soon, Use.PART)


UPDATE, DELETE, WRITE = int(Operation.UPDATE_ROW), int(Operation.DELETE_ROW), int(Operation.WRITE_ROW)
LAST_OPERATION, EMPTIED = max(int(operation) for operation in Operation), int(RowStep.EMPTIED)
APPLIED, REJECTED, IGNORED = int(Verdict.APPLIED), int(Verdict.REJECTED), int(Verdict.IGNORED)
NO_CAUSE, TRANSACTION = int(Cause.NONE), int(Cause.TRANS_IN_CONFLICT)
IN_CONFLICT = int(Cause.ROW_IN_CONFLICT)
CHANGE, REFRESH, REFLECTED, EMPTY = (int(kind) for kind in OperationKind)
NOTHING = np.uint64(0)
FULL = -1  # in place of a number of decisions or log entries that exceeds the capacity
_NOT_KEPT = -1
NOT_EARLY = -1
# How many changes before its turn a row is fetched: later ones arrive too late, earlier ones are displaced again.
AHEAD = 32


class Groups(NamedTuple):
    """Transactions to reject, of one epoch apply: ``groups[start:stop]``, sorted. int32."""

    groups: Int32
    start: int
    stop: int


@inlined
def contains(rejected, group):
    """Whether a transaction is among `Groups`."""
    if rejected.start == rejected.stop:
        return False
    place = first_at_least(rejected.groups, rejected.start, rejected.stop, group)
    return place < rejected.stop and rejected.groups[place] == group


@inlined
def copy_version(target, source):
    """Copy the state of a row to another record: existence, author, epoch, resolve column."""
    target["epoch"], target["value"] = source["epoch"], source["value"]
    target["exists"], target["local"] = source["exists"], source["local"]


@inlined
def catch_up(side, epoch, group, changes, rules, work, keeping):
    """
    Make the own changes of a cluster that come before a group of an epoch.

    Args:
        side: Number of the cluster.
        epoch: Epoch of the first change to leave.
        group: Group of that change.
        changes: `Changes`.
        rules: `Rules`.
        work: `Work`; its state moves on.
        keeping: Keep rows in `Work.earlier` as they were before each change.
    """
    make_changes(side, changes.begin[side + 1], epoch, group, changes, rules, work, keeping)


@inlined
def make_changes(side, end, epoch, group, changes, rules, work, keeping):
    """Make the own changes of a cluster below the number `end`; else as `catch_up`."""
    state = work.state
    number = state.done[side]
    while number < end and not reaches(changes.rows[number], epoch, group):
        row = changes.rows[number]
        fetch_soon(state.rows, changes.rows[min(number + AHEAD, end - 1)]["key"], side)
        values = changes.values[number * changes.value_step]
        mine = state.rows[row["key"], side]
        operation = row["operation"]
        if operation > LAST_OPERATION:
            mine["table"] = rules.tables[side, mine["table"]]["next"]
            mine["exists"] = mine["exists"] and operation != EMPTIED
            number += 1
            continue
        if not mine["exists"] and operation != WRITE:
            state.unexplained[side, row["key"]] += 1
        if keeping:
            copy_version(work.earlier[number], mine)
            if len(work.not_known_before) and work.not_known_before[row["key"], side] == number:
                work.earlier[number]["exists"] = False  # as the reference engine tries it
        number += 1
        if operation == DELETE:
            mine["exists"] = False
            continue
        if not mine["exists"]:
            mine["exists"], mine["value"] = True, rules.tables[side, mine["table"]]["unwritten"]
            if operation == UPDATE and row["before_given"]:
                mine["value"] = values["before"]
        if row["after_given"]:
            mine["value"] = values["after"]
        mine["local"], mine["epoch"] = True, row["epoch"]
    state.done[side] = number


@kernel
def keep_early(side, epoch, group, changes, rules, work, keeping):
    """
    Keep the rows of `Work.early` as they are at their moments before a group of an epoch.

    Makes the own changes up to there; arguments as for `catch_up`.
    """
    early = work.early
    while early.passed[side] < early.stop[side]:
        place = early.order[early.passed[side]]
        moment = early.moments[place]
        after = np.int64(moment["group"]) + 1
        if moment["epoch"] > epoch or (moment["epoch"] == epoch and after > group):
            break
        catch_up(side, moment["epoch"], after, changes, rules, work, keeping)
        copy_version(early.states[place], work.state.rows[moment["key"], side])
        early.passed[side] += 1


@kernel
def _early_row(arrival, key, pass_number, early):
    """Return which of `Early.states` an operation on a row is judged by; `NOT_EARLY` for the present row."""
    if early.ignored[0]:
        return NOT_EARLY
    for place in range(arrival["early_start"], arrival["early_stop"]):
        if early.moments[place]["key"] == key and early.moments[place]["locked"] != pass_number:
            return place
    return NOT_EARLY


@inlined
def restore(side, count, work):
    """Undo a pass that saved `count` rows."""
    for place in range(count):
        saved = work.saved[place]
        copy_version(work.state.rows[saved["key"], side], saved)
        work.state.notes[saved["key"], side]["kept"] = _NOT_KEPT


@kernel
def decide_pass(number, schedule, changes, rules, rejected, work, decisions, made, undoing):
    """
    Decide the operations of one foreign epoch in the order of its binlog, and apply them.

    Args:
        number: Of the epoch apply.
        schedule: `Schedule`.
        changes: `Changes`.
        rules: `Rules`.
        rejected: `Groups`: transactions in conflict.
        work: `Work`; its rows move on.
        decisions: `DecisionBuffers` to fill in.
        made: Number of decisions in them.
        undoing: Save rows, so that the pass can be undone. Then only marked rows are decided; decisions on other rows
            have key and source alone.

    Returns:
        The number of decisions, or `FULL`; the number of saved rows; and whether the applier may have to log something.
    """
    apply, state, log = schedule.applies[number], work.state, work.log
    here, there, acting = apply["applier"], apply["source"], apply["acting"]
    first, end = changes.begin[there], changes.begin[there + 1]
    pass_number = 2 * number + undoing
    arrival = arrival_of(number, work)
    place, last, queued, queue_end = arrival["first"], arrival["last"], arrival["queue_start"], arrival["queue_stop"]
    saved, answers = 0, False
    while made >= 0 and (place < last or queued < queue_end):
        if made >= len(decisions.apply):
            made = FULL
            break
        # 1. The next operation: an own change of the source, or what its applier logged.
        from_log, reflected, kind, before_given, complete = False, False, CHANGE, False, True
        if queued < queue_end:
            entry = log.entries[log.queue[there, queued]]
            from_log = place >= last or schedule.applies[entry["apply"]]["group"] < changes.rows[place]["group"]
        if from_log:
            key, operation, group = entry["key"], entry["operation"], schedule.applies[entry["apply"]]["group"]
            reflected = not entry["refresh"]
            kind = REFLECTED if reflected else REFRESH
            # Its before image is the key alone; an applier that needs a resolve column outside it stops.
            before = state.rows[key, here]["value"]
            given, after = entry["given"], entry["value"]
            decisions.source[made] = -1 - log.queue[there, queued]
            queued += 1
        else:
            fetch_soon(state.rows, changes.rows[min(place + AHEAD, end - 1)]["key"], here)
            row, values = changes.rows[place], changes.values[place * changes.value_step]
            place += 1
            if row["relayed"] == here + 1:
                continue  # it came back to where it was made
            key, operation, group = row["key"], row["operation"], row["group"]
            before_given, before = row["before_given"], values["before"]
            given, after = row["after_given"], values["after"]
            complete = not row["incomplete"]
            kind = EMPTY if row["empty"] else CHANGE
            decisions.source[made] = place - 1 - first
        mine = state.rows[key, here]
        rule = rules.tables[acting, mine["table"]]
        if rule["drops"]:
            continue
        decisions.key[made] = key
        if undoing and not work.marks[key]:
            made += 1
            continue
        # 2. The decision.
        if kind == EMPTY:
            verdict, cause, incoming, stored = IGNORED, NO_CAUSE, NOTHING, NOTHING
        elif contains(rejected, group):
            verdict, cause, incoming, stored = REJECTED, TRANSACTION, NOTHING, NOTHING
        else:
            cell, known = rules.cells[acting, mine["table"], operation], apply["max_replicated"]
            brought = (operation, reflected, before_given, before, given, after, complete)
            then = NOT_EARLY
            if arrival["early_start"] < arrival["early_stop"]:
                then = _early_row(arrival, key, pass_number, work.early)
            if then != NOT_EARLY:
                verdict, cause, incoming, stored = decide_operation(cell, rule, work.early.states[then], brought, known)
                if verdict == APPLIED:  # which locks the row: it is the present one that the operation changes
                    work.early.moments[then]["locked"], then = pass_number, NOT_EARLY
            if then == NOT_EARLY:
                verdict, cause, incoming, stored = decide_operation(cell, rule, mine, brought, known)
        decisions.apply[made], decisions.existed[made] = number, mine["exists"]
        decisions.group[made], decisions.operation[made], decisions.kind[made] = group, operation, kind
        decisions.verdict[made], decisions.cause[made] = verdict, cause
        if cause == IN_CONFLICT:
            both = decisions.compared[made]
            both["incoming"], both["stored"] = incoming, stored
        made += 1
        answers |= verdict == REJECTED or rule["reflects"]
        if verdict != APPLIED:
            continue
        # 3. Its effect on the row.
        if undoing and state.notes[key, here]["kept"] != number:
            state.notes[key, here]["kept"] = number
            work.saved[saved]["key"] = key
            copy_version(work.saved[saved], mine)
            saved += 1
        if rule["reflects"] and not rule["whole_rows"]:
            note = state.notes[key, here]
            note["given"] = given or (note["given"] and note["wrote"] == pass_number)
            note["wrote"] = pass_number
        if operation == DELETE:
            mine["exists"] = False
        else:
            if not mine["exists"]:
                mine["exists"], mine["value"] = True, rule["unwritten"]
            if given:
                mine["value"] = after
        mine["local"], mine["epoch"] = False, apply["epoch"]
    return made, saved, answers


@kernel
def are_rejected(apply, group, offsets, groups, found):
    """
    Mark the operations of transactions in conflict.

    Args:
        apply: Epoch apply of each operation. int32, shape (operations,).
        group: Transaction of each operation. int32, shape (operations,).
        offsets: See `conflict.engine.kernels.arrays.Conflicts`.
        groups: See there.
        found: Filled in. bool, shape (operations,).
    """
    for place in range(len(apply)):
        rejected = Groups(groups, offsets[apply[place]], offsets[apply[place] + 1])
        found[place] = contains(rejected, group[place])


@kernel
def mark_rows(number, schedule, changes, rejected, work):
    """
    Mark the rows of an epoch apply that transactions in conflict touch; return whether there are any.

    The decisions on a row do not depend on other rows. So pass TRACK and pass APPLY differ on marked rows alone.

    Args:
        number: Of the epoch apply.
        schedule: `Schedule`.
        changes: `Changes`.
        rejected: `Groups`: transactions in conflict.
        work: `Work`; its marks are set.
    """
    found = False
    arrival, there = arrival_of(number, work), schedule.applies[number]["source"]
    for place in range(arrival["first"], arrival["last"]):
        row = changes.rows[place]
        if contains(rejected, row["group"]):
            work.marks[row["key"]] = True
            found = True
    for place in range(arrival["queue_start"], arrival["queue_stop"]):
        entry = work.log.entries[work.log.queue[there, place]]
        if contains(rejected, schedule.applies[entry["apply"]]["group"]):
            work.marks[entry["key"]] = True
            found = True
    return found
