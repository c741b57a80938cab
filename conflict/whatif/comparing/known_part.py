"""
What of a bucket is known under a pair, where the logs start in the middle: decisions, changes and rows.

Computes docs/compare.md, "Logs that start in the middle". Rows from before the logs may have been anything under other
functions, so a change counts only if what became of it is the same whatever they were
(`conflict.engine.kernels.known_rows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import attrs
import numpy as np

from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.bucket_round import conflicting_transactions, with_own_causes
from conflict.engine.columnar.contested import compare_effects
from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.columnar.keys.foreign_keys import linked_keys
from conflict.engine.columnar.setups import ClusterSetup, rules_of
from conflict.engine.kernels.arrays import (
    Bool,
    Conflicts,
    Decisions,
    EpochApplies,
    Int8,
    Int32,
    Int64,
)
from conflict.engine.kernels.dependencies import dependent_groups
from conflict.engine.kernels.fold import Folded
from conflict.engine.kernels.known_row_records import Decided, Found, Unshown
from conflict.engine.kernels.known_rows import find_known
from conflict.engine.kernels.lost_changes import LostChanges, TimedDecisions, Written, lost_changes, whole_images
from conflict.engine.kernels.records import Changes, packed_schedule
from conflict.history.model import Start
from conflict.rules.decision import Verdict
from conflict.runs.rows.task_inputs import TaskInputs
from conflict.whatif.comparing.unsure_transactions import Unsure, UnsureFindings
from ndb_formats.columnar.kernel import each_read_only


@attrs.frozen(eq=False)
class DecidedBucket:
    """
    A bucket that was decided under a pair.

    Attributes:
        bucket: The bucket.
        clusters: Both clusters.
        applies: All epoch applies in order.
        conflicts: The transactions in conflict.
        changes: The own changes, packed.
        folded: The decisions.
        configured: Whether the functions are those that were in force.
    """

    bucket: Bucket
    clusters: tuple[ClusterSetup, ...]
    applies: EpochApplies
    conflicts: Conflicts
    changes: Changes
    folded: Folded
    configured: bool


@attrs.frozen(eq=False)
class KnownPart:
    """
    What is known of a decided bucket.

    Attributes:
        decisions: Decisions. Shape (operations,).
        own: Per cluster, its changes with a known fate. Shape (changes,).
        rows: Rows that are known at the end, on both clusters. Shape (keys,).
        lost: Per cluster, its changes that were lost, as far as it is known.
        rowless: Own changes that certainly found no row. Shape (clusters, keys).
        conflicts: The transactions in conflict that are certainly rejected.
    """

    decisions: Bool
    own: tuple[Bool, Bool]
    rows: Bool
    lost: list[LostChanges]
    rowless: Int32
    conflicts: Conflicts

    @property
    def counts(self) -> int:
        """How many changes of users could be compared."""
        return sum(int(np.count_nonzero(each)) for each in self.own)

    def within(self, own: Sequence[Bool], rows: Bool) -> Self:
        """Return what is known, of some changes of each cluster and some rows."""
        both = self.own[0] & own[0], self.own[1] & own[1]
        lost = [
            LostChanges(each.rejected & mine, each.overwritten & mine)
            for each, mine in zip(self.lost, both, strict=True)
        ]
        return attrs.evolve(self, own=both, rows=self.rows & rows, lost=lost)

    def part_of(self, result: FoldedBucket) -> tuple[FoldedBucket, Folded]:
        """
        Return the decisions that count, and those of epoch applies of whose row all decisions do.

        What an epoch apply logged of a row counts if all of its decisions on the row do.
        """
        folded, keys = result.folded, len(result.bucket.key_table)
        made, logged = folded.decisions, folded.logged
        kept = self.decisions.copy()
        for side, own in enumerate(self.own):
            mine = np.flatnonzero((made.source >= 0) & (result.applies.applier[made.apply] == 1 - side))
            kept[mine] &= own[made.source[mine]]
        row = made.apply.astype(np.int64) * keys + made.key
        sent = np.flatnonzero(made.source < 0)
        while True:
            whole = ~np.isin(row, row[~kept])
            left = sent[kept[sent] & ~whole[logged.decision[-1 - made.source[sent]]]]
            if not len(left):
                break
            kept[left] = False
        entries = np.asarray(whole[logged.decision])
        tracked = ~np.isin(folded.tracked.apply.astype(np.int64) * keys + folded.tracked.key, row[~kept])
        chosen = folded.of_decisions(kept, entries, tracked).tracking_conflicts_alone(self.conflicts)
        rows = folded.of_decisions(np.asarray(whole & kept), entries, tracked)
        return FoldedBucket(result.bucket, result.clusters, result.applies, self.conflicts, chosen), rows


def find_known_part(
    run: TaskInputs,
    made: DecidedBucket,
    written: tuple[Written, Written],
    unsure: Unsure,
) -> KnownPart:
    """
    Return what is known of a decided bucket.

    Args:
        run: The run; its part has where the logs start.
        made: The bucket, folded with rows that did not exist before the logs.
        written: What its changes do to their rows.
        unsure: What is not known under the pair of all buckets together.
    """
    found, opens = _found(run, made, unsure)
    own, lost = _own(made, found, written, opens)
    rows = np.asarray((found.there & found.whole).all(axis=1))
    part = KnownPart(found.decided, own, rows, lost, found.rowless, unsure.leave_out(made.conflicts))
    return part.within(own, rows)


def find_unsure(run: TaskInputs, made: DecidedBucket, unsure: Unsure) -> UnsureFindings:
    """Return what a decided bucket shows of transactions that may be rejected; arguments: `find_known_part`."""
    return _findings(made, _found(run, made, unsure)[0])


def _found(run: TaskInputs, made: DecidedBucket, unsure: Unsure) -> tuple[Found, Int64]:
    """Return what the kernel finds, and from which epoch apply of each cluster on something can be known."""
    starts = [run.part.starts[cluster.name] for cluster in made.clusters]
    unshown = _unshown(made, starts, unsure)
    schedule, decided = packed_schedule(made.applies), _decided(made.folded)
    found = Found.of(made.bucket.key_table, len(made.changes.rows), len(made.applies), decided)
    find_known(schedule, made.changes, rules_of(made.clusters), decided, unshown, found)
    return found, unshown.opens


def _unshown(made: DecidedBucket, starts: Sequence[Start], unsure: Unsure) -> Unshown:
    bucket, applies = made.bucket, made.applies
    judged, tables, rules = judging(made.clusters), bucket.numbers.tables, rules_of(made.clusters).tables
    rules = rules[:, : len(tables)]
    answers = rules["reflects"] | rules["refreshes"] | judged.any(axis=1, keepdims=True)
    moments = applies.moments.of_bucket(bucket.number)
    moments = moments.chosen(np.argsort(moments.apply, kind="stable"))
    whole = np.concatenate(whole_images(bucket.rows, bucket.column_sets, (bucket.key_table, tables)))
    return Unshown(
        *each_read_only(
            bucket.key_table,
            whole,
            linked_keys(tables).tables,
            judged,
            answers,
            _opens(applies, starts, np.asarray(answers.any(axis=1))),
            np.array([start.epoch for start in starts], np.uint64),
            np.array([start.returned for start in starts], np.uint64),
            unsure.conflicts.groups,
            unsure.conflicts.offsets,
            unsure.start,
            np.array([made.configured]),
            unsure.settled.of(bucket.number, row_codes(made)),
            unsure.settled.contradicted,
            np.searchsorted(moments.apply, np.arange(len(applies) + 1)).astype(np.int64),
            moments.key,
            moments.epoch,
            moments.group,
        )
    )


def judging(clusters: Sequence[ClusterSetup]) -> Bool:
    """Return where a change of a table can put its transaction in conflict. Shape (clusters, tables)."""
    roles = ((cluster.role, cluster.setups) for cluster in clusters)
    return np.array([[each.deployed(role).rejects_transactions for each in setups] for role, setups in roles], np.bool_)


def _opens(applies: EpochApplies, starts: Sequence[Start], answers: Bool) -> Int64:
    """
    Return, per cluster, the epoch apply before which something may have come that follows from no log.

    Those are epochs from before the other cluster's log, and what the other applier logged when it applied such an
    epoch: that comes with the epochs in which it did.
    """
    total = len(applies)
    older = applies.foreign_epoch < np.array([start.epoch for start in starts], np.uint64)[1 - applies.applier]
    opens = np.array([_first((applies.applier == side) & ~older, total) for side in (0, 1)], np.int64)
    moved = True
    while moved:
        before = opens.copy()
        for side in (0, 1):
            last = opens[1 - side]
            if answers[1 - side]:
                after = np.zeros(total, np.bool_) if last == total else applies.foreign_epoch > applies.epoch[last]
                opens[side] = max(opens[side], _first((applies.applier == side) & after, total))
        moved = bool((before != opens).any())
    return opens


def _first(chosen: Bool, otherwise: int) -> int:
    return int(chosen.argmax()) if chosen.any() else otherwise


def _decided(folded: Folded) -> Decided:
    made, logged = folded.decisions, folded.logged
    columns = (getattr(made, name) for name in Decided._fields[:8])
    entries = (logged.apply, logged.key, logged.operation, logged.refresh, logged.given)
    return Decided(*each_read_only(*columns, *entries))


def _own(
    made: DecidedBucket, found: Found, written: tuple[Written, Written], opens: Int64
) -> tuple[tuple[Bool, Bool], list[LostChanges]]:
    """Return, per cluster, the changes with a known fate, and which of these were lost."""
    bucket, folded, applies = made.bucket, made.folded, made.applies
    decisions = with_own_causes(folded, made.clusters, applies, bucket.key_table)
    keys = [rows.key for rows in bucket.rows]

    def lost(verdict: Verdict) -> list[LostChanges]:
        """Return what is lost if all changes whose decision is not known have a verdict."""
        verdicts = np.where(found.decided, decisions.verdict, np.int8(verdict)).astype(np.int8)
        timed = TimedDecisions(applies.applier, folded.own_end, attrs.evolve(decisions, verdict=verdicts))
        return lost_changes(timed, keys, written, len(bucket.key_table))

    least, most = lost(Verdict.IGNORED), lost(Verdict.APPLIED)
    known = []
    for side, rows in enumerate(bucket.rows):
        mine = (least[side].overwritten == most[side].overwritten) & (np.arange(len(rows)) >= found.own_open[side])
        opening = opens[1 - side]
        first = applies.foreign_epoch[opening] if opening < len(applies) else np.uint64(2**64 - 1)
        mine &= rows.epoch >= first
        delivered = (decisions.source >= 0) & (applies.applier[decisions.apply] == 1 - side)
        mine[decisions.source[delivered & ~found.decided]] = False
        known.append(mine)
    return (known[0], known[1]), least


def _findings(made: DecidedBucket, found: Found) -> UnsureFindings:
    decisions, applies, key_table = made.folded.decisions, made.applies, made.bucket.key_table
    places = applies.applier[decisions.apply], key_table[decisions.key]
    unknown = ~found.tracked & judging(made.clusters)[places]
    unsure = np.stack([decisions.apply[unknown], decisions.group[unknown]], axis=1).astype(np.int64)
    came = int(found.reached[-1])
    brought = np.stack([found.reached[:came], found.reached_group[:came]], axis=1).astype(np.int64)
    conflicting = conflicting_transactions(made.clusters, applies, made.conflicts, made.folded, key_table)
    rows = row_codes(made)
    known = ~np.isin(conflicting[:, 1].astype(np.int64) * len(key_table) + conflicting[:, 0], rows[~found.tracked])
    links = _dependencies(decisions, len(key_table))
    both = np.unique(np.concatenate([unsure, brought]), axis=0)
    settled = np.setdiff1d(rows[found.settled], rows[found.contested & ~found.settled])
    rejected, dependencies = conflicting[known, 1:].astype(np.int64), links[:, 1:].astype(np.int64)
    return UnsureFindings(both, rejected, dependencies, settled, _contradicted(made, found))


def _contradicted(made: DecidedBucket, found: Found) -> Bool:
    """Return the epoch applies where the logs contradict a known decision. Shape (applies,)."""
    applies, codes = made.applies, row_codes(made)
    contradicted = np.zeros(len(applies), np.bool_)
    if not made.configured:
        return contradicted
    numbers = {
        place: number
        for number, place in enumerate(
            zip(applies.applier.tolist(), applies.epoch.tolist(), applies.group.tolist(), strict=True)
        )
    }
    result = FoldedBucket(made.bucket, made.clusters, applies, made.conflicts, made.folded)
    rows = [
        (numbers[place], key)
        for side, differing in enumerate(compare_effects(result, with_applies=False).rows)
        for *own, key in zip(*(getattr(differing, name).tolist() for name in ("epoch", "group", "key")), strict=True)
        for place in [(side, *own)]
        if place in numbers
    ]
    apply, key = np.array(rows, np.int64).reshape(-1, 2).T
    code = apply * len(made.bucket.key_table) + key
    contradicted[apply[np.isin(code, codes) & ~np.isin(code, codes[~found.decided])]] = True
    return contradicted


def row_codes(made: DecidedBucket) -> Int64:
    """Return epoch apply and row of each decision as one number. Shape (operations,)."""
    decisions = made.folded.decisions
    return decisions.apply.astype(np.int64) * len(made.bucket.key_table) + decisions.key


def _dependencies(decisions: Decisions, keys: int) -> Int32:
    kinds: Int8 = decisions.kind
    return dependent_groups(decisions.apply, decisions.key, decisions.group, kinds, keys)
