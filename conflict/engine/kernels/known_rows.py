"""
Which decisions of a fold are the same whatever the rows were before the logs start.

A log that starts in the middle is folded with rows that do not exist yet. What was there under other functions is in no
log, so a row of a cluster is not known at first, and what follows from it is not known either. It is known from the
next change of its own cluster on, which the log shows and which leaves nothing of what was before; until a decision
that is not known touches it again.

Where a decision is not known, what the applier logs of it is not known, and reaches the other cluster with the epoch.
A transaction may be rejected if a decision on one of its rows is not known; which ones these are is an input, as the
transactions in conflict are. Computes docs/compare.md, "Logs that start in the middle".
"""

from __future__ import annotations

import numpy as np

from conflict.engine.kernels.apply_order import LAST_EPOCH, PAST_ALL_GROUPS, reaches, seek
from conflict.engine.kernels.arrays import OperationKind
from conflict.engine.kernels.passes import Groups, contains
from conflict.engine.kernels.rules import is_comparing
from conflict.history.timeline import OVERLAPPING
from conflict.rules.decision import Cause, Verdict
from conflict.rules.functions import Cell
from ndb_formats.columnar.kernel import inlined, kernel
from ndb_formats.events.rows_event import Operation

WRITE, DELETE = int(Operation.WRITE_ROW), int(Operation.DELETE_ROW)
LAST_OPERATION = max(map(int, Operation))
APPLIED, SKIPPED = int(Verdict.APPLIED), int(Verdict.SKIPPED)
TRANSACTION, EMPTY = int(Cause.TRANS_IN_CONFLICT), int(OperationKind.EMPTY)
REFLECTED = int(OperationKind.REFLECTED)
APPLY, BY_EPOCH, LESS_IF_UNSEEN = int(Cell.APPLY), int(Cell.BY_EPOCH), int(Cell.LESS_IF_UNSEEN)
NO_EPOCH, ANY_ROW = np.uint64(0), -1


@inlined
def _forget(key, side, found):
    """Note that a row of a cluster is not known."""
    found.there[key, side] = found.value[key, side] = found.whole[key, side] = False


@inlined
def _learn(key, side, value, whole, epoch, group, found):
    """Note that a row of a cluster is known, after a group of an own epoch; whether its value is, and all columns."""
    if not (found.there[key, side] and found.value[key, side]):
        found.since_epoch[key, side], found.since_group[key, side] = epoch, group
    found.there[key, side], found.value[key, side], found.whole[key, side] = True, value, whole


@kernel
def _make_changes(side, epoch, group, done, opened, changes, unshown, found):
    """
    Note what the own changes of a cluster tell that come before a group of an epoch; return how many are done.

    Before it is `opened`, they tell nothing: an epoch that is in no log can have come after them.
    """
    end = changes.begin[side + 1]
    while done < end and not reaches(changes.rows[done], epoch, group):
        row = changes.rows[done]
        key, operation = row["key"], row["operation"]
        done += 1
        if operation > LAST_OPERATION:
            continue
        known, existed = found.there[key, side], found.exists[key, side]
        found.before[done - 1], found.last_own[key, side] = found.last_own[key, side], done - 1
        found.known_before[done - 1] = known and (found.value[key, side] or not existed)
        absent = known and not existed
        if absent and operation != WRITE:
            found.rowless[side, key] += 1
        found.exists[key, side], found.author[key, side] = operation != DELETE, row["epoch"]
        if not opened or unshown.never[unshown.key_table[key]]:
            continue
        gone = absent or operation == DELETE
        value = gone or row["after_given"] or (known and found.value[key, side])
        whole = gone or unshown.whole[done - 1] or (known and found.whole[key, side])
        _learn(key, side, value, whole, row["epoch"], np.int64(row["group"]), found)
    return done


@kernel
def _begun(number, schedule, changes, found):
    """Return the first own change that may have come after the applier began with an epoch; by parallel workers."""
    apply = schedule.applies[number]
    here = np.int64(apply["applier"])
    low, high = changes.begin[here], changes.begin[here + 1]
    start = seek(changes.rows, low, high, apply["arrived_epoch"], np.int64(apply["arrived_group"]) + 1)
    before, steps = np.int64(number), 0
    while before >= 0 and steps < OVERLAPPING:
        before = np.int64(schedule.applies[before]["previous"])
        steps += 1
    return start if before < 0 else max(start, found.own_end[before])


@kernel
def _is_settled(place, number, here, begun, unsure, decided, unshown, found):
    """
    Whether it is known how a row stood when the applier judged it.

    If the row's own cluster changed it after the applier can have begun with the epoch, it can have been judged before
    that. The commit is taken unless the logs contradict it (`conflict.engine.inference.moments`). Logs from the start
    can contradict it where these cannot: where a state of the row since then is not known, under the functions that
    were in force.

    Args:
        place: Number of the decision.
        number: Of the epoch apply.
        here: The applier's cluster.
        begun: The first own change that may have come after the applier began with it.
        unsure: Whether its transaction may be rejected: for a row of it that is not known, or for how this one stood.
        decided: `Decided`.
        unshown: `Unshown`.
        found: `Found`.
    """
    key = decided.key[place]
    own, known = found.last_own[key, here], True
    if own < begun:
        return True
    while own >= begun:
        known = known and found.known_before[own]
        own = found.before[own]
    found.contested[place] = True
    found.settled[place] = known and found.begun[key, 1] and not unsure and not unshown.contradicted[number]
    if not (found.settled[place] if unshown.configured[0] else unshown.settled[place]):
        return False
    for moment in range(unshown.moment_starts[number], unshown.moment_starts[number + 1]):
        if unshown.moment_key[moment] == key:
            epoch, group = unshown.moment_epoch[moment], np.int64(unshown.moment_group[moment])
            since = found.since_epoch[key, here]
            return not (since > epoch or (since == epoch and found.since_group[key, here] > group))
    return True


@kernel
def _receive(number, here, foreign, found):
    """
    Note that what the other applier may have logged up to an epoch comes to an epoch apply.

    Returns:
        The first of these, one past the last, and whether it can be any row.
    """
    there = 1 - here
    first, any_row = found.flags[there, 1], False
    place = first
    while place < found.flags[there, 0] and found.flag_epoch[there, place] <= foreign:
        key = found.flag_key[there, place]
        if key == ANY_ROW:
            any_row = True
        else:
            _forget(key, here, found)
            found.blocked[key] = number
        if found.flag_epoch[there, place] == foreign:
            filled = found.reached[len(found.reached) - 1]
            found.reached[filled], found.reached_group[filled] = number, found.flag_group[there, place]
            found.reached[len(found.reached) - 1] += 1
        place += 1
    found.flags[there, 1] = place
    return first, place, any_row


@inlined
def _forget_all(side, found):
    """Note that no row of a cluster is known."""
    found.there[:, side] = found.value[:, side] = found.whole[:, side] = False


@inlined
def _flag(number, key, side, apply, found):
    """Note that it is not known what an applier logged of a row."""
    if key == ANY_ROW or found.flagged[key] != number:
        if key != ANY_ROW:
            found.flagged[key] = number
        place = found.flags[side, 0]
        found.flag_key[side, place], found.flag_epoch[side, place] = key, apply["epoch"]
        found.flag_group[side, place] = apply["group"]
        found.flags[side, 0] += 1


@kernel
def _judge(place, number, begun, opened, unsure, schedule, changes, rules, decided, unshown, found):
    """
    Note whether a decision is known, and what it leaves known of its row.

    Args:
        place: Number of the decision.
        number: Of the epoch apply.
        begun: The first own change that may have come after the applier began with it.
        opened: Whether no epoch can have come any more that is in no log.
        unsure: `Groups`: transactions that may be rejected.
        schedule: `Schedule`.
        changes: `Changes`.
        rules: `Rules`.
        decided: `Decided`.
        unshown: `Unshown`.
        found: `Found`; moves on.
    """
    apply = schedule.applies[number]
    here = apply["applier"]
    key, operation, source = decided.key[place], decided.operation[place], decided.source[place]
    table, kind, verdict = unshown.key_table[key], decided.kind[place], decided.verdict[place]
    rule, cell, existed = rules.tables[here, table], rules.cells[here, table, operation], found.exists[key, here]
    if found.seen[key] != number:
        found.seen[key] = number
        known = found.there[key, here]
        found.begun[key, 0] = known
        found.begun[key, 1] = known and (found.value[key, here] or not existed)
    doubtful = number >= unshown.unsure_from[here] or contains(unsure, decided.group[place])
    if kind == EMPTY or (verdict == SKIPPED and not doubtful):
        found.decided[place] = found.tracked[place] = opened
        return
    reflected = rule["secondary"] and kind == REFLECTED
    compares = not reflected and is_comparing(cell)
    hidden = not opened or found.blocked[key] == number
    hidden = not _is_settled(place, number, here, begun, doubtful, decided, unshown, found) or hidden
    if not reflected and cell in (BY_EPOCH, LESS_IF_UNSEEN) and apply["max_replicated"] <= unshown.returned[here]:
        hidden = hidden or NO_EPOCH < found.author[key, here] <= unshown.returned[here]
    found.tracked[place] = not hidden and found.begun[key, 1 if compares else 0]
    if verdict == APPLIED:
        found.exists[key, here], found.author[key, here] = operation != DELETE, NO_EPOCH
    if doubtful:
        _forget(key, here, found)
        return
    if decided.cause[place] == TRANSACTION:
        found.decided[place] = opened
        return
    known = found.there[key, here] and not hidden
    known = known and (not compares or found.value[key, here] or not existed)
    complete = source < 0 or not changes.rows[changes.begin[1 - here] + source]["incomplete"]
    overwrites = cell == APPLY and not reflected and operation == WRITE and complete
    removes = cell == APPLY and not reflected and operation == DELETE
    never = not opened or unshown.never[table]
    found.decided[place] = (known or overwrites) and not never
    if never or found.blocked[key] == number or not (known or overwrites or removes):
        _forget(key, here, found)
        return
    if verdict != APPLIED and not removes:
        return
    absent = found.there[key, here] and not existed
    whole, value = found.whole[key, here] or absent, found.value[key, here] or absent
    if source < 0:
        given, whole = (
            decided.entry_given[-1 - source],
            found.entry_whole[-1 - source] and (operation == WRITE or whole),
        )
    else:
        change = changes.begin[1 - here] + source
        given, whole = changes.rows[change]["after_given"], unshown.whole[change] or (known and whole)
    gone, value = operation == DELETE, given or (known and value)
    _learn(key, here, gone or value, gone or whole, apply["epoch"], np.int64(apply["group"]), found)


@kernel
def find_known(schedule, changes, rules, decided, unshown, found):
    """
    Find which decisions are the same whatever the rows were before the logs start.

    Args:
        schedule: `Schedule`.
        changes: `Changes`, as the fold got them.
        rules: `Rules`, likewise.
        decided: `Decided`: what it decided, with rows that did not exist before.
        unshown: `Unshown`.
        found: `Found`; filled in.
    """
    place, entry = 0, 0
    done = changes.begin[:2].copy()
    for number in range(len(schedule.applies)):
        apply = schedule.applies[number]
        here, foreign = apply["applier"], apply["foreign_epoch"]
        follows = np.int64(apply["group"]) + (not apply["traced"])
        begun = number > unshown.opens[here]
        done[here] = _make_changes(here, apply["epoch"], follows, done[here], begun, changes, unshown, found)
        found.own_end[number] = done[here]
        # An epoch that comes again brings what was logged in it again.
        again = foreign <= found.highest[here]
        found.highest[here] = max(foreign, found.highest[here])
        opened = number >= unshown.opens[here] and not again
        arrived, arrived_end, any_row = _receive(number, here, foreign, found)
        again = again or any_row
        opened = opened and not any_row
        if number == unshown.opens[here] or again:
            _forget_all(here, found)
        if number == unshown.opens[here] or foreign < unshown.starts[1 - here]:
            found.own_open[here] = done[here] - changes.begin[here]
        unsure = Groups(unshown.unsure, unshown.offsets[number], unshown.offsets[number + 1])
        first, begun = place, _begun(number, schedule, changes, found)
        while place < len(decided.apply) and decided.apply[place] == number:
            _judge(place, number, begun, opened, unsure, schedule, changes, rules, decided, unshown, found)
            place += 1
        for which in range(arrived, arrived_end):
            if found.flag_key[1 - here, which] != ANY_ROW:
                _forget(found.flag_key[1 - here, which], here, found)
        if again:
            _forget_all(here, found)
        # What it logged.
        if again and unshown.answers[here].any():
            _flag(number, ANY_ROW, here, apply, found)
        for which in range(first, place):
            key = decided.key[which]
            sure = found.decided[which] and found.begun[key, 0]
            if not sure and unshown.answers[here, unshown.key_table[key]]:
                _flag(number, key, here, apply, found)
        while entry < len(decided.entry_apply) and decided.entry_apply[entry] == number:
            key = decided.entry_key[entry]
            if decided.entry_refresh[entry] and found.exists[key, here]:
                found.author[key, here] = apply["epoch"]
            found.entry_whole[entry] = found.whole[key, here]
            if not (found.there[key, here] and found.value[key, here]):
                _flag(number, key, here, apply, found)
            entry += 1
    for side in range(2):
        opened = unshown.opens[side] < len(schedule.applies)
        done[side] = _make_changes(side, LAST_EPOCH, PAST_ALL_GROUPS, done[side], opened, changes, unshown, found)
        if not opened:
            found.own_open[side] = done[side] - changes.begin[side]
