"""
The fold: decides every operation of a bucket in one pass over the epoch applies.

For each epoch apply, in order:

1. Make the own changes of the applier's cluster that come before it.
2. Decide the operations of the foreign epoch in the order of its binlog: the source's own changes, and what its applier
   logged.
3. Log the rows that the applier reflects, then the rows that it refreshes.

An epoch with transactions in conflict is decided twice, as the server does it: pass TRACK rejects no transaction and is
undone, pass APPLY rejects those in conflict. These are an input; `conflict.engine.columnar` finds them. Computes
docs/functions.md, "Functions that judge transactions".
"""

from __future__ import annotations

import attrs
import numpy as np

from conflict.engine.kernels.apply_order import LAST_EPOCH, PAST_ALL_GROUPS, queue_up, start_arrivals
from conflict.engine.kernels.arrays import (
    NO,
    YES,
    ZERO,
    Bool,
    Conflicts,
    Decisions,
    EpochApplies,
    Int16,
    Int32,
    Int64,
    Logged,
    RowMoments,
)
from conflict.engine.kernels.first_events import FirstEvents
from conflict.engine.kernels.open_decisions import outcome_bit, try_earlier_states
from conflict.engine.kernels.passes import (
    FULL,
    Groups,
    catch_up,
    decide_pass,
    keep_early,
    mark_rows,
    restore,
)
from conflict.engine.kernels.records import Changes, PassDecisions, Records, Rules, Work, packed_schedule
from conflict.engine.kernels.rules import needs_refresh
from conflict.rules.decision import Verdict
from ndb_formats.columnar.kernel import inlined, kernel, read_only
from ndb_formats.events.rows_event import Operation

WRITE, UPDATE, DELETE = (int(operation) for operation in Operation)
APPLIED, REJECTED = int(Verdict.APPLIED), int(Verdict.REJECTED)
NO_DECISIONS = FULL, 0, 0


@attrs.frozen
class Folded:
    """
    A decided bucket.

    Attributes:
        decisions: The final decision on each operation.
        tracked: The decision of pass TRACK on each operation of an epoch with transactions in conflict, without the
            values that it compared.
        candidates: What pass TRACK may have decided, one bit per outcome (see `outcome_bit`); several where the
            applier's own cluster changed the row meanwhile. Complete for transactions in conflict alone, and if `fold`
            was to find them. Shape (tracked,).
        logged: The rows that appliers refreshed or reflected.
        own_end: Own changes of the applier's cluster below this number come before each epoch apply; 0 for one that
            applies nothing in this bucket. Shape (applies,), int32.
        unexplained: Number of own changes of each row that found no row (see `ClusterResult`). Shape (clusters, keys).
        exists: Whether each row exists at the end. Shape (clusters, keys).
        states: The rows at the end. `ROW_STATE`, shape (keys, clusters).
    """

    decisions: Decisions
    tracked: Decisions
    candidates: Int64
    logged: Logged
    own_end: Int32
    unexplained: Int32
    exists: Bool
    states: Records

    def tracking_conflicts_alone(self, conflicts: Conflicts) -> Folded:
        """Leave out pass TRACK of epochs without transactions in conflict: it was not rolled back."""
        kept = np.isin(self.tracked.apply, conflicts.applies)
        if kept.all():
            return self
        return attrs.evolve(self, tracked=self.tracked.chosen(kept), candidates=self.candidates[kept])

    def without_rows(self, left_out: Bool) -> Folded:
        """Leave out all about some rows. Shape of `left_out` (keys,)."""
        kept, kept_entries = ~left_out[self.decisions.key], ~left_out[self.logged.key]
        found = self.of_decisions(kept, kept_entries, ~left_out[self.tracked.key])
        return attrs.evolve(
            found,
            unexplained=np.where(left_out, 0, self.unexplained).astype(np.int32),
            exists=self.exists & ~left_out,
        )

    def of_decisions(self, kept: Bool, kept_entries: Bool, tracked: Bool) -> Folded:
        """
        Return some decisions, with what they refer to.

        Args:
            kept: The decisions; of one on an operation that an applier logged, the entry is kept. Shape (operations,).
            kept_entries: Log entries; of each, the decision that caused it is kept. Shape (entries,).
            tracked: Decisions of pass TRACK. Shape (tracked,).
        """
        decision_numbers, entry_numbers = np.cumsum(kept) - 1, np.cumsum(kept_entries) - 1
        decisions = self.decisions.chosen(kept)
        source, columns = decisions.source, attrs.asdict(self.logged, recurse=False)
        from_log = -1 - np.where(source < 0, entry_numbers[-1 - np.minimum(source, -1)] if len(entry_numbers) else 0, 0)
        logged = Logged(**{name: column[kept_entries] for name, column in columns.items()})
        return attrs.evolve(
            self,
            decisions=attrs.evolve(decisions, source=np.where(source < 0, from_log, source).astype(np.int32)),
            tracked=self.tracked.chosen(tracked),
            candidates=self.candidates[tracked],
            logged=attrs.evolve(logged, decision=decision_numbers[logged.decision]),
        )

    def applied_alone(self) -> Folded:
        """
        Leave out what was not applied, and the log entries that nobody applied: no final row comes from these.

        `Logged.decision` is -1 then.
        """
        if len(self.logged) == 0:
            return self
        decisions = self.decisions.chosen(self.decisions.verdict == APPLIED)
        entries = -1 - decisions.source
        kept = np.zeros(len(self.logged), np.bool_)
        kept[entries[entries >= 0]] = True
        numbers = (np.cumsum(kept) - 1).astype(np.int32)
        source = np.where(entries >= 0, -1 - numbers[np.maximum(entries, 0)], decisions.source)
        columns = attrs.asdict(self.logged, recurse=False)
        logged = Logged(**{name: column[kept] for name, column in columns.items()})
        nothing = np.full(len(logged), -1, np.int64)
        return attrs.evolve(
            self,
            decisions=attrs.evolve(decisions, source=source.astype(np.int32)),
            logged=attrs.evolve(logged, decision=nothing),
        )


def fold(
    applies: EpochApplies,
    changes: Changes,
    rules: Rules,
    conflicts: Conflicts,
    key_table: Int16,
    *,
    candidates: bool,
    moments: RowMoments,
    older: FirstEvents | None = None,
    standing: Records | None = None,
) -> Folded:
    """
    Decide every operation of a bucket.

    Args:
        applies: All epoch applies, of every bucket alike.
        changes: The own changes of both clusters, packed.
        rules: What each applier does with each table.
        conflicts: Transactions in conflict, per epoch apply.
        key_table: Table number of each key in the bucket. Shape (keys,).
        candidates: Find what else pass TRACK may have decided.
        moments: Rows of the bucket that were judged some time before the commit.
        older: What is known of the rows before the log starts; None if there were none.
        standing: The rows before their first change; None if there were none, or `older` tells. `ROW_STATE`, shape
            (keys, clusters).
    """
    schedule = packed_schedule(applies)
    given = Conflicts(read_only(conflicts.offsets), np.require(conflicts.groups, requirements=["C", "W"]))
    keeping = candidates and len(conflicts.groups) > 0
    # Few rows are refreshed, usually; all may be reflected.
    capacity = len(changes.rows) * (9 if rules.tables["reflects"].any() else 5) // 4 + 1024
    while True:
        own_at = None if older is None else older.own_at
        work = Work.of(key_table, changes, applies, moments, capacity, keeping=keeping, not_known_before=own_at)
        if older is not None:
            work.state.rows[:] = older.states
        elif standing is not None:
            work.state.rows[:] = standing
        passes = PassDecisions.of(capacity, keeping=keeping)
        own_end = np.zeros(len(applies), np.int32)
        start_arrivals(schedule, changes, work)
        made, seen, sent = _fold(schedule, changes, rules, given, work, passes, own_end, keeping)
        if made != FULL:
            break
        capacity *= 2  # two primaries can refresh each other's refreshes without end
    return Folded(
        passes.final.first(made),
        passes.tracked.first(seen),
        passes.candidates[:seen],
        Logged(*(np.ascontiguousarray(work.log.entries[field.name][:sent]) for field in attrs.fields(Logged))),
        own_end,
        work.state.unexplained,
        np.ascontiguousarray(work.state.rows["exists"].T),
        work.state.rows,
    )


@kernel
def _fold(schedule, changes, rules, conflicts, work, passes, own_end, keeping):
    """
    Decide all epoch applies; return the number of decisions, those of pass TRACK and log entries, or `NO_DECISIONS`.

    Args:
        schedule: `Schedule`.
        changes: `Changes`.
        rules: `Rules`.
        conflicts: `Conflicts`.
        work: `Work`; filled in.
        passes: `PassDecisions`; filled in.
        own_end: See `Folded`; filled in.
        keeping: Find what else pass TRACK may have decided.
    """
    made, seen, sent = ZERO, ZERO, ZERO
    decisions, tracked = passes.final, passes.tracked
    nothing = Groups(conflicts.groups, ZERO, ZERO)
    for number in range(len(schedule.applies)):
        if work.arrivals.places[number] == 0:
            continue
        apply = schedule.applies[number]
        here = apply["applier"]
        rejected = Groups(conflicts.groups, conflicts.offsets[number], conflicts.offsets[number + 1])
        in_conflict = rejected.start < rejected.stop
        # An epoch apply with a trace is its group; one without follows its group.
        epoch, follows = apply["epoch"], np.int64(apply["group"]) + (not apply["traced"])

        # 1. Pass TRACK on the rows of transactions in conflict, undone. On other rows it decides like pass APPLY.
        tracks = in_conflict and mark_rows(number, schedule, changes, rejected, work)
        tries = keeping and tracks
        started, tracked_start = made, seen
        keep_early(here, epoch, follows, changes, rules, work, tries)
        catch_up(here, epoch, follows, changes, rules, work, tries)
        own_end[number] = work.state.done[here] - changes.begin[here]
        if tracks:
            seen, saved, _ = decide_pass(number, schedule, changes, rules, nothing, work, tracked, seen, YES)
            if seen < 0:
                return NO_DECISIONS
            restore(here, saved, work)
            for place in range(tracked_start, seen):
                if work.marks[tracked.key[place]]:
                    passes.candidates[place] = outcome_bit(tracked.verdict[place], tracked.cause[place])
        if tries:
            try_earlier_states(number, schedule, changes, rules, work, passes, tracked_start, seen)

        # 2. The pass that is committed.
        made, _, answers = decide_pass(number, schedule, changes, rules, rejected, work, decisions, made, NO)
        if made < 0:
            return NO_DECISIONS
        if in_conflict:
            seen = _complete_track(passes, started, made, work.marks, tracked_start)
            if seen < 0:
                return NO_DECISIONS

        # 3. What the other applier receives.
        if answers:
            entries = sent
            sent = log_rows(number, schedule, rules, work, decisions, (started, made), sent)
            if sent < 0:
                return NO_DECISIONS
            queue_up(number, schedule, entries, sent, work)
    for side in range(2):
        catch_up(side, LAST_EPOCH, PAST_ALL_GROUPS, changes, rules, work, False)
    return made, seen, sent


@kernel
def _complete_track(passes, started, made, marks, start):
    """
    Copy the final decisions on rows that are not marked to those of pass TRACK, and clear the marks.

    Args:
        passes: `PassDecisions`.
        started: The first final decision on the epoch apply.
        made: One past the last.
        marks: `Work.marks`.
        start: First decision of pass TRACK on the epoch apply.

    Returns:
        One past the last decision of pass TRACK, or `FULL`.
    """
    decisions, tracked = passes.final, passes.tracked
    if start + made - started > len(tracked.apply):
        return FULL
    for place in range(started, made):
        target = start + place - started
        if not marks[decisions.key[place]]:
            tracked.apply[target], tracked.source[target] = decisions.apply[place], decisions.source[place]
            tracked.key[target], tracked.group[target] = decisions.key[place], decisions.group[place]
            tracked.operation[target], tracked.kind[target] = decisions.operation[place], decisions.kind[place]
            tracked.verdict[target], tracked.cause[target] = decisions.verdict[place], decisions.cause[place]
            tracked.existed[target] = decisions.existed[place]
            passes.candidates[target] = outcome_bit(decisions.verdict[place], decisions.cause[place])
    for place in range(started, made):
        marks[decisions.key[place]] = False
    return start + made - started


@kernel
def log_rows(number, schedule, rules, work, decisions, places, sent):
    """
    Log what the other applier receives of an epoch apply: one entry per row, reflected rows first.

    Args:
        number: Of the epoch apply.
        schedule: `Schedule`.
        rules: `Rules`.
        work: `Work`; its log and state move on.
        decisions: The final decisions.
        places: The first one of the epoch apply, and one past the last.
        sent: Number of entries so far.

    Returns:
        The number of entries, or `FULL`.
    """
    apply, pending = schedule.applies[number], work.pending
    here = apply["applier"]
    refreshes = 0
    for refreshing in (True, False):  # a refresh of a row wins over its reflected changes
        for place in range(places[0], places[1]):
            if decisions.verdict[place] != (REJECTED if refreshing else APPLIED):
                continue
            key = decisions.key[place]
            mine, note = work.state.rows[key, here], work.state.notes[key, here]
            rule = rules.tables[apply["acting"], mine["table"]]
            if refreshing:
                logs = needs_refresh(rule["refreshes"], decisions.operation[place], decisions.cause[place])
            else:
                logs = rule["reflects"]
            if not logs or note["logged"] == number:
                continue
            note["logged"] = number
            existed, stays = decisions.existed[place], mine["exists"]
            if refreshing:
                pending[refreshes] = place
                refreshes += 1
            elif existed or stays:
                if sent >= len(work.log.entries):
                    return FULL
                operation = (UPDATE if existed else WRITE) if stays else DELETE
                in_part = operation == UPDATE and not rule["whole_rows"]
                put_entry(work.log.entries[sent], key, mine, operation, note["given"] if in_part else stays)
                put_origin(work.log.entries[sent], here, number, place)
                sent += 1
    for which in range(refreshes):
        if sent >= len(work.log.entries):
            return FULL
        place = pending[which]
        mine = work.state.rows[decisions.key[place], here]
        operation = WRITE if mine["exists"] else DELETE
        put_entry(work.log.entries[sent], decisions.key[place], mine, operation, mine["exists"])
        put_origin(work.log.entries[sent], here, number, place)
        work.log.entries[sent]["refresh"] = True
        sent += 1
        if mine["exists"]:
            mine["local"], mine["epoch"] = True, apply["epoch"]
    return sent


@inlined
def put_entry(entry, key, mine, operation, given):
    """Fill in what a log entry says of a row: its present state, and whether it gives the resolve column."""
    entry["key"], entry["operation"], entry["value"] = key, operation, mine["value"]
    entry["refresh"], entry["given"] = False, given


@inlined
def put_origin(entry, here, number, decision):
    """Fill in the applier, epoch apply and decision that a log entry comes from."""
    entry["cluster"], entry["apply"], entry["decision"] = here, number, decision
