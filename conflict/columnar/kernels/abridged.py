"""
The decisions on a bucket, abridged: those that deviate from the rule, and all of them again from these.

The rule is that a change is applied as it stands, to a row that is there unless it is written. Nearly all are. So
rounds keep what deviates, put what the next round finds of some rows in place of it, and in the end all decisions
follow from it in one pass that looks at no state of any row.
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
    Int32,
    Kind,
    Logged,
    read_only,
)
from conflict.columnar.kernels.arrivals import queue_up, start_applies
from conflict.columnar.kernels.buffers import DecisionRoom
from conflict.columnar.kernels.fold import Folded, copy_decision, put_entry
from conflict.columnar.kernels.open_decisions import outcome_bit
from conflict.columnar.kernels.records import COMPARED, ENTRY, Records, walk_of
from conflict.rules.decision import Cause, Verdict
from ndb_formats.columnar.kernels.compiled import njit_uncounted
from ndb_formats.events.rows_event import Operation

__all__ = ["DEVIATION", "Abridged", "abridge", "expand"]

WRITE = int(Operation.WRITE_ROW)
APPLIED, NO_CAUSE, CHANGE = int(Verdict.APPLIED), int(Cause.NONE), int(Kind.CHANGE)

# A decision that deviates, or that made an applier send its row again (`logs`). `source` is a row of the source, or
# -1 - n for what the other applier logged of the same row in take n. What follows `tracked` is what pass TRACK decided,
# if it decided otherwise; what follows `logs`, the entry. `decision` is room for the number of the decision.
DEVIATION = np.dtype(
    [
        *[("key", "i4"), ("apply", "i4"), ("source", "i4"), ("kind", "i1"), ("verdict", "i1"), ("cause", "i1")],
        *[("existed", "?"), ("incoming", "u8"), ("stored", "u8")],
        *[("tracked", "?"), ("tracked_verdict", "i1"), ("tracked_cause", "i1"), ("tracked_existed", "?")],
        *[("logs", "?"), ("operation", "i1"), ("given", "?")],
        *[("candidates", "i8"), ("value", "u8"), ("lacks", "u8"), ("decision", "i8")],
    ],
    align=True,
)


@attrs.frozen(eq=False)
class Abridged:
    """
    The decisions on some rows of a bucket.

    Attributes:
        deviations: Those that deviate; those on one row in order. `DEVIATION`, shape (deviations,).
        exists: As in `Folded`. Shape (clusters, keys).
        unexplained: As in `Folded`. Shape (clusters, keys).
    """

    deviations: Records
    exists: Bool
    unexplained: Int32

    def renumber(self, keys: Int32, rows: tuple[Int32, Int32], applies: EpochApplies) -> None:
        """
        Give keys and rows the numbers that they have in the bucket.

        Args:
            keys: The number of each key in the bucket.
            rows: The number of each row in the bucket, per cluster.
            applies: All takes.
        """
        found = self.deviations
        found["key"] = keys[found["key"]]
        applier = applies.applier[found["apply"]]
        for side in (0, 1):
            mine = np.flatnonzero((applier == 1 - side) & (found["source"] >= 0))
            found["source"][mine] = rows[side][found["source"][mine]]


def abridge(folded: Folded) -> Abridged:
    """Return what deviates among decisions; what an applier reflects is not kept, so there must be nothing of that."""
    decisions, tracked, logged = folded.decisions, folded.tracked, folded.logged
    room = len(decisions) // 16 + 1024
    log = np.empty(len(logged), ENTRY)
    for name in ENTRY.names or ():
        log[name] = getattr(logged, name)
    while True:
        deviations = np.empty(room, DEVIATION)
        columns = (_columns(each) for each in (decisions, tracked))
        found = int(_abridge(*columns, decisions.compared, folded.candidates, log, deviations))
        if found <= room:
            return Abridged(deviations[:found], folded.exists, folded.unexplained)
        room = found


def _columns(decisions: object) -> DecisionRoom:
    return DecisionRoom(*(getattr(decisions, name) for name in DecisionRoom._fields))


@njit_uncounted()
def _abridge(decisions, tracked, compared, candidates, log, deviations):
    """Fill in the deviations as far as there is room; returns how many there are."""
    found, seen, sent = 0, 0, 0
    for place in range(len(decisions.apply)):
        verdict, cause, existed = decisions.verdict[place], decisions.cause[place], decisions.existed[place]
        source = decisions.source[place]
        logs = sent < len(log) and log[sent]["decision"] == place
        # Every operation of a take is tracked, or none is.
        was_tracked = seen < len(tracked.apply) and tracked.apply[seen] == decisions.apply[place]
        otherwise = was_tracked and (
            tracked.verdict[seen] != verdict
            or tracked.cause[seen] != cause
            or tracked.existed[seen] != existed
            or candidates[seen] != outcome_bit(verdict, cause)
        )
        usual = verdict == APPLIED and source >= 0 and existed == (decisions.operation[place] != WRITE)
        if (logs or otherwise or not usual) and found < len(deviations):
            new = deviations[found]
            new["key"], new["apply"] = decisions.key[place], decisions.apply[place]
            new["source"] = source if source >= 0 else -1 - log[-1 - source]["apply"]
            new["kind"], new["verdict"], new["cause"], new["existed"] = decisions.kind[place], verdict, cause, existed
            new["incoming"], new["stored"] = compared[place]["incoming"], compared[place]["stored"]
            new["tracked"] = otherwise
            if otherwise:
                new["tracked_verdict"], new["tracked_cause"] = tracked.verdict[seen], tracked.cause[seen]
                new["tracked_existed"], new["candidates"] = tracked.existed[seen], candidates[seen]
            new["logs"] = logs
            if logs:
                entry = log[sent]
                new["operation"], new["given"] = entry["operation"], entry["given"]
                new["value"], new["lacks"] = entry["value"], entry["lacks"]
        found += logs or otherwise or not usual
        seen += was_tracked
        sent += logs
    return found


def expand(abridged: Abridged, applies: EpochApplies, rows: Sequence[BucketRows], conflicts: Conflicts) -> Folded:
    """
    Return all decisions on a bucket.

    Args:
        abridged: Those that deviate.
        applies: All takes.
        rows: What each of the two clusters did itself.
        conflicts: The transactions in conflict, with which the decisions were made. Only in takes that hold some is
            anything said of pass TRACK, and of other transactions of these that it decided as was decided in the end.
    """
    walk, keys = walk_of(applies), abridged.exists.shape[1]
    deviations = abridged.deviations[np.argsort(abridged.deviations["key"], kind="stable")]
    following = np.full(keys, -1, np.int32)
    different = np.flatnonzero(np.diff(deviations["key"], prepend=-1))
    following[deviations["key"][different]] = different
    by_apply = np.argsort((deviations["apply"].astype(np.int64) << 32) + deviations["source"], kind="stable")
    active = np.zeros(len(applies), np.bool_)
    first_row, last_row, queue_start, queue_stop = (np.zeros(len(applies), np.int32) for _ in range(4))
    split, epochs = len(rows[0]), tuple(read_only(side.epoch) for side in rows)
    start_applies(active, first_row, last_row, walk.heard, walk.hearers, walk.split, epochs)
    applied, entries = last_row - first_row, int(deviations["logs"].sum())
    from_log = deviations["apply"][deviations["source"] < 0]
    count, several = int(applied.sum()) + len(from_log), np.diff(conflicts.offsets) > 0
    tracked_count = int(applied[several].sum()) + int(several[from_log].sum())
    decisions, tracked = DecisionRoom.of(count), DecisionRoom.of(tracked_count)
    compared, candidates = np.empty(count, COMPARED), np.empty(tracked_count, np.int64)
    log, queue = np.empty(entries, ENTRY), np.empty((2, entries), np.int64)
    _expand(
        *(walk.applies, walk.hearers, split, read_only(conflicts.offsets), deviations, following, by_apply),
        *(tuple(read_only(getattr(side, name)) for side in rows) for name in ("key", "group", "operation")),
        *(active, first_row, last_row, queue_start, queue_stop, decisions, compared, tracked, candidates, log, queue),
        *(np.zeros(2, np.int64), np.empty(len(deviations), np.int64)),
    )
    return Folded(
        Decisions(**decisions._asdict(), compared=compared),
        Decisions(**tracked._asdict(), compared=np.empty(tracked_count, COMPARED)),
        candidates,
        Logged(*(np.ascontiguousarray(log[field.name]) for field in attrs.fields(Logged))),
        abridged.unexplained,
        abridged.exists,
    )


@njit_uncounted(inline="always")
def _expand_rows(number, made, place, last, key_of, group_of, operation_of, decisions):
    """Write down that a take applied rows from `place` to `last` as they stand."""
    # Loops over few columns and without a sign are compiled to work on several rows at once.
    count, to, start = np.uint64(last - place), np.uint64(made), np.uint64(place)
    for each in range(count):
        decisions.apply[to + each], decisions.source[to + each] = number, start + each
    for each in range(count):
        decisions.key[to + each] = key_of[start + each]
    for each in range(count):
        decisions.group[to + each] = group_of[start + each]
    for each in range(count):
        decisions.operation[to + each] = operation_of[start + each]
        decisions.existed[to + each] = operation_of[start + each] != WRITE
    for each in range(count):
        decisions.kind[to + each], decisions.verdict[to + each], decisions.cause[to + each] = CHANGE, APPLIED, NO_CAUSE


@njit_uncounted(inline="always")
def _expand_both(
    number, applies, made, place, last, key_of, group_of, operation_of, log, mine, queued, queue_end, decisions
):  # fmt: skip
    """Do the same where the other applier logged something as well, which is numbered in `mine`."""
    for which in range(queued, queue_end):
        entry = log[mine[which]]
        group, stop = applies[entry["apply"]]["group"], place
        while stop < last and group_of[stop] <= group:
            stop += 1
        _expand_rows(number, made, place, stop, key_of, group_of, operation_of, decisions)
        made, place = made + stop - place, stop
        decisions.apply[made], decisions.source[made], decisions.key[made] = number, -1 - mine[which], entry["key"]
        decisions.group[made], decisions.operation[made] = group, entry["operation"]
        made += 1
    _expand_rows(number, made, place, last, key_of, group_of, operation_of, decisions)
    return made + last - place


@njit_uncounted(inline="always")
def _deviate(deviations, number, following, decisions, compared, at):
    """Write down a decision that deviates; the next one on that row follows."""
    deviation = deviations[number]
    decisions.kind[at], decisions.verdict[at] = deviation["kind"], deviation["verdict"]
    decisions.cause[at], decisions.existed[at] = deviation["cause"], deviation["existed"]
    both = compared[at]
    both["incoming"], both["stored"] = deviation["incoming"], deviation["stored"]
    deviation["decision"] = at
    more = number + 1 < len(deviations) and deviations[number + 1]["key"] == deviation["key"]
    following[deviation["key"]] = number + 1 if more else -1


@njit_uncounted(inline="always")
def _track(deviations, found, count, decisions, started, made, tracked, seen, candidates):
    """Write down what pass TRACK decided in a take."""
    start, to, shift = np.uint64(started), np.uint64(seen), seen - started
    for each in range(np.uint64(made - started)):
        copy_decision(tracked, to + each, decisions, start + each)
        candidates[to + each] = outcome_bit(decisions.verdict[start + each], decisions.cause[start + each])
    for which in range(count):
        deviation = deviations[found[which]]
        if deviation["tracked"]:
            at = deviation["decision"] + shift
            tracked.verdict[at], tracked.cause[at] = deviation["tracked_verdict"], deviation["tracked_cause"]
            tracked.existed[at], candidates[at] = deviation["tracked_existed"], deviation["candidates"]


@njit_uncounted()
def _expand(
    applies, hearers, split, offsets, deviations, following, by_apply, keys, groups, operations,
    active, first_row, last_row, queue_start, queue_stop, decisions, compared, tracked, candidates, log, queue,
    tail, found,
):  # fmt: skip
    """
    Write down all decisions, take by take, as `conflict.columnar.kernels.fold` does.

    Those deviations that belong to one row stand together, and `following` is the next one of each; `by_apply` is their
    order by take. `keys`, `groups` and `operations` are those of the rows of each cluster, `found` is room.
    """
    made, seen, sent, cursor = 0, 0, 0, 0
    for number in range(len(applies)):
        if not active[number]:
            continue
        apply, started, count = applies[number], made, 0
        there = 1 - apply["applier"]
        key_of, group_of, operation_of = keys[there], groups[there], operations[there]
        begin = split if there else 0
        place, last = first_row[number] - begin, last_row[number] - begin
        queued, queue_end = queue_start[number], queue_stop[number]
        if queued == queue_end:
            _expand_rows(number, made, place, last, key_of, group_of, operation_of, decisions)
            made += last - place
            while cursor < len(by_apply) and deviations[by_apply[cursor]]["apply"] == number:
                which = by_apply[cursor]
                at = started + deviations[which]["source"] - place
                _deviate(deviations, which, following, decisions, compared, at)
                found[count] = which
                count, cursor = count + 1, cursor + 1
        else:
            made = _expand_both(
                number, applies, made, place, last, key_of, group_of, operation_of,
                log, queue[there], queued, queue_end, decisions,
            )  # fmt: skip
            for at in range(started, made):
                which, source = following[decisions.key[at]], decisions.source[at]
                known_as = source if source >= 0 else -1 - log[-1 - source]["apply"]
                if which >= 0 and deviations[which]["apply"] == number and deviations[which]["source"] == known_as:
                    _deviate(deviations, which, following, decisions, compared, at)
                    found[count] = which
                    count, cursor = count + 1, cursor + 1
        if offsets[number] < offsets[number + 1]:
            _track(deviations, found, count, decisions, started, made, tracked, seen, candidates)
            seen += made - started
        entries = sent
        for which in range(count):
            deviation = deviations[found[which]]
            if deviation["logs"]:
                put_entry(
                    log, sent, apply["applier"], deviation["key"], number, deviation["operation"], True,
                    deviation["given"], deviation["value"], deviation["lacks"], deviation["decision"],
                )  # fmt: skip
                sent += 1
        queue_up(apply, hearers, queue, tail, entries, sent, queue_start, queue_stop, active)
