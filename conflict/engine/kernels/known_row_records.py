"""
What `find_known` takes and fills in: what a fold decided, what the logs do not show, what is known of each row.

Arrays go to the kernels as named tuples, because numba knows their fields.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from conflict.engine.kernels.arrays import Bool, Int8, Int16, Int32, Int64, UInt64

NO_APPLY, NO_CHANGE = -1, -1


class Decided(NamedTuple):
    """
    What the fold decided, and what appliers logged.

    Attributes:
        apply: See `Decisions`, as the next seven. Shape (operations,).
        source: See there.
        key: See there.
        group: See there.
        operation: See there.
        kind: See there.
        verdict: See there.
        cause: See there.
        entry_apply: See `Logged`, as the rest. Shape (entries,).
        entry_key: See there.
        entry_operation: See there.
        entry_refresh: See there.
        entry_given: See there.
    """

    apply: Int32
    source: Int32
    key: Int32
    group: Int32
    operation: Int8
    kind: Int8
    verdict: Int8
    cause: Int8
    entry_apply: Int64
    entry_key: Int32
    entry_operation: Int8
    entry_refresh: Bool
    entry_given: Bool


class Unshown(NamedTuple):
    """
    What is not shown, or cannot be.

    Attributes:
        key_table: Table number of each key. Shape (keys,).
        whole: Whether the after image of each change has all columns. Shape (changes,).
        never: Tables whose rows are never known. Shape (tables,).
        judged: Where a row conflict puts its transaction in conflict. Shape (clusters, tables).
        answers: Where an applier may log something for the other one. Shape (clusters, tables).
        opens: Per cluster, the epoch apply before which epochs may have come that are in no log. Shape (clusters,).
        starts: Per cluster, the first own epoch of its log. Shape (clusters,).
        returned: Per cluster, the highest own epoch of which it is not known whether it had come back. Shape
            (clusters,).
        unsure: Transactions that may be rejected, like `Conflicts.groups`.
        offsets: Those of each epoch apply, like `Conflicts.offsets`.
        unsure_from: Per cluster, the epoch apply from which on any transaction may be. Shape (clusters,).
        configured: Whether the functions are those with which the moments of judging were found. Shape (1,).
        settled: `Found.settled` of these functions otherwise. Shape (operations,).
        contradicted: Epoch applies where the logs contradict what is known under these. Shape (applies,).
        moment_starts: Those of epoch apply n are from ``moment_starts[n]`` to ``moment_starts[n + 1]``.
        moment_key: Rows that were judged some time before the commit (see `RowMoments`). Shape (moments,).
        moment_epoch: See there.
        moment_group: See there.
    """

    key_table: Int16
    whole: Bool
    never: Bool
    judged: Bool
    answers: Bool
    opens: Int64
    starts: UInt64
    returned: UInt64
    unsure: Int32
    offsets: Int64
    unsure_from: Int64
    configured: Bool
    settled: Bool
    contradicted: Bool
    moment_starts: Int64
    moment_key: Int32
    moment_epoch: UInt64
    moment_group: Int32


class Found(NamedTuple):
    """
    What is known; and of each row on each cluster, what is known now.

    Attributes:
        decided: Decisions that are known. Shape (operations,).
        tracked: Those that are in pass TRACK, which rejects no transaction. Shape (operations,).
        contested: Those on rows that can have been judged before a change of their own cluster. Shape (operations,).
        settled: Those of them whose time is known. Shape (operations,).
        rowless: Own changes that certainly found no row. Shape (clusters, keys), int32.
        own_open: Per cluster, how many own changes an epoch that is in no log may have overwritten. Shape (clusters,).
        there: Whether it is known if the row exists, who changed it last, and when. Shape (keys, clusters).
        value: Whether its resolve column is known, if it exists. Shape (keys, clusters).
        whole: Whether all its columns are known. Shape (keys, clusters).
        exists: Whether it exists, as the fold has it. Shape (keys, clusters).
        author: Own epoch in which its own cluster changed it last; 0 if its applier did. Shape (keys, clusters).
        last_own: The last change of its own cluster; -1 for none. Shape (keys, clusters).
        before: The own change of its row before each. Shape (changes,).
        known_before: Whether its row was known then. Shape (changes,).
        since_epoch: Own epoch since which it is known. Shape (keys, clusters).
        since_group: Group of that epoch. Shape (keys, clusters).
        entry_whole: Whether all columns of what was logged are known. Shape (entries,).
        begun: Whether each row was known when its last epoch apply began, with its value and without. Shape
            (keys, 2).
        seen: Last epoch apply that decided on each row. Shape (keys,).
        blocked: Last epoch apply to which something came that is not known. Shape (keys,).
        flagged: Last epoch apply whose logged rows are not known. Shape (keys,).
        flag_key: Per cluster, rows that it may have logged, -1 for any. Shape (clusters, capacity).
        flag_epoch: The own epochs.
        flag_group: Groups of these.
        flags: Per cluster, how many there are, and how many the other one received. Shape (clusters, 2).
        reached: Epoch applies that something came to, and how many of the array are filled. Shape (capacity + 1,).
        reached_group: The groups with which it came. Shape (capacity,).
        highest: Per cluster, the highest epoch that its applier applied. Shape (clusters,).
        own_end: Own changes of the applier's cluster below this number come before each epoch apply. Shape (applies,).
    """

    decided: Bool
    tracked: Bool
    contested: Bool
    settled: Bool
    rowless: Int32
    own_open: Int64
    there: Bool
    value: Bool
    whole: Bool
    exists: Bool
    author: UInt64
    last_own: Int64
    before: Int64
    known_before: Bool
    since_epoch: UInt64
    since_group: Int64
    entry_whole: Bool
    begun: Bool
    seen: Int32
    blocked: Int32
    flagged: Int32
    flag_key: Int32
    flag_epoch: UInt64
    flag_group: Int32
    flags: Int64
    reached: Int64
    reached_group: Int32
    highest: UInt64
    own_end: Int32

    @classmethod
    def of(cls, key_table: Int16, changes: int, applies: int, decided: Decided) -> Self:
        """Return that nothing is known yet; `changes` and `applies`: how many there are."""
        keys, decisions, entries = len(key_table), len(decided.apply), len(decided.entry_apply)
        flags, rows = decisions + entries + applies + 1, (keys, 2)
        there, value, whole, exists, begun = (np.zeros(rows, np.bool_) for _ in range(5))
        seen, blocked, flagged = (np.full(keys, NO_APPLY, np.int32) for _ in range(3))
        return cls(
            decided=np.zeros(decisions, np.bool_),
            tracked=np.zeros(decisions, np.bool_),
            settled=np.zeros(decisions, np.bool_),
            contested=np.zeros(decisions, np.bool_),
            rowless=np.zeros((2, keys), np.int32),
            own_open=np.zeros(2, np.int64),
            there=there,
            value=value,
            whole=whole,
            exists=exists,
            author=np.zeros(rows, np.uint64),
            last_own=np.full(rows, NO_CHANGE, np.int64),
            before=np.full(changes, NO_CHANGE, np.int64),
            known_before=np.zeros(changes, np.bool_),
            since_epoch=np.zeros(rows, np.uint64),
            since_group=np.zeros(rows, np.int64),
            entry_whole=np.zeros(entries, np.bool_),
            begun=begun,
            seen=seen,
            blocked=blocked,
            flagged=flagged,
            flag_key=np.zeros((2, flags), np.int32),
            flag_epoch=np.zeros((2, flags), np.uint64),
            flag_group=np.zeros((2, flags), np.int32),
            flags=np.zeros((2, 2), np.int64),
            reached=np.zeros(flags + 1, np.int64),
            reached_group=np.zeros(flags, np.int32),
            highest=np.zeros(2, np.uint64),
            own_end=np.zeros(applies, np.int32),
        )
