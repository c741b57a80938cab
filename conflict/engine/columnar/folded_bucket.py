"""
A decided bucket: what the kernels computed of it, its status counters, and the figures of each table.

Computes docs/functions.md, "Counters".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.older_rows import OlderRows
from conflict.engine.columnar.setups import ClusterSetup, held_columns, masks_of
from conflict.engine.kernels.arrays import (
    Bool,
    Conflicts,
    Decisions,
    EpochApplies,
    Int8,
    Int64,
    OperationKind,
)
from conflict.engine.kernels.column_scans import CountedDecisions, count_outcomes
from conflict.engine.kernels.fold import Folded
from conflict.engine.kernels.provenance import ABSENT_IMAGE, UNKNOWN_IMAGE, trace_images
from conflict.engine.kernels.provenance_records import EarlierRows, FinalRows
from conflict.history.restarts import Stretch, stretches_of
from conflict.rules.counters import (
    REFLECTED_DISCARDED,
    REFLECTED_RECEIVED,
    REFRESH_RECEIVED,
    TRANSACTION_ROW_CONFLICTS,
    TRANSACTION_ROW_REJECTS,
    moved_counters,
)
from conflict.rules.decision import Cause, Decision, Verdict
from ndb_formats.columnar.kernel import each_read_only
from ndb_formats.events.rows_event import Operation


class FoldedBucket:
    """
    A decided bucket.

    Attributes:
        bucket: The bucket.
        clusters: Both clusters.
        applies: All epoch applies in order.
        conflicts: The transactions in conflict.
        folded: The decisions.
        watched: Tables of whose rows every state is traced; None for none. Shape (tables,).
        older: The rows before the log starts; None if there were none.
        known: Rows that count at the end; None for all. Shape (keys,).
        told: Epoch applies that the result tells of; None for all. Shape (applies,).
    """

    def __init__(
        self,
        bucket: Bucket,
        clusters: tuple[ClusterSetup, ...],
        applies: EpochApplies,
        conflicts: Conflicts,
        folded: Folded,
        *,
        watched: Bool | None = None,
        older: OlderRows | None = None,
        known: Bool | None = None,
        told: Bool | None = None,
    ) -> None:
        self.bucket, self.clusters, self.applies = bucket, clusters, applies
        self.conflicts, self.folded, self.watched, self.older = conflicts, folded, watched, older
        self.known, self.told = known, told

    def told_of(self, numbers: Int64, apply: npt.NDArray[np.integer[Any]]) -> Int64:
        """Return those of some numbers whose epoch applies the result tells of; `apply` of each. Shape (numbers,)."""
        return numbers if self.told is None else numbers[self.told[apply]]

    @cached_property
    def final(self) -> FinalRows:
        """The image that each column of each row and of each logged event comes from, traced on first use."""
        bucket = self.bucket
        keys = (bucket.slots, bucket.key_table)
        masks, logged = masks_of(self.clusters), self.folded.logged
        widest = max((len(table.columns) for table in bucket.numbers.tables), default=0)
        held = held_columns(self.clusters, self.applies, logged, bucket.key_table[logged.key], widest)
        final = trace_images(
            self.applies, bucket.rows, bucket.column_sets, keys, masks, self.folded, held, self.watched, self._earlier
        )
        if self.known is not None:
            return attrs.evolve(final, exists=final.exists & self.known)
        if self.older is None:
            return final
        return attrs.evolve(final, exists=final.exists & ~self.older.left_open)

    @property
    def _earlier(self) -> EarlierRows | None:
        """The rows before their first change; None if there were none."""
        bucket = self.bucket
        of_slot = np.repeat(np.arange(len(bucket.key_table)), np.diff(bucket.slots))
        if self.older is not None:
            exists = self.older.were_there.T
            return EarlierRows(exists, np.where(exists[:, of_slot], UNKNOWN_IMAGE, ABSENT_IMAGE))
        if bucket.standing is None:
            return None
        numbers, (sets, _) = bucket.standing_images.T[:, of_slot], bucket.logged_sets
        # Columns of images of other tables may be more.
        widest = max(int(np.diff(bucket.slots).max(initial=0)), int(sets.columns.max(initial=-1)) + 1)
        carries = np.zeros((len(sets.offsets), widest), np.bool_)
        carries[np.repeat(np.arange(len(sets.offsets) - 1), np.diff(sets.offsets)), sets.columns] = True
        chosen = np.append(bucket.standing_sets, len(sets.offsets) - 1)[bucket.standing.image.T][:, of_slot]
        places = np.arange(bucket.slots[-1]) - np.repeat(bucket.slots[:-1], np.diff(bucket.slots))
        return EarlierRows(bucket.standing.exists.T, np.where(carries[chosen, places], numbers, ABSENT_IMAGE))

    @cached_property
    def columns_not_known(self) -> Int64:
        """How many stored columns of each final row nothing showed. Shape (clusters, keys)."""
        keys = len(self.bucket.key_table)
        if not self.lacks_values or not keys:
            return np.zeros((2, keys), np.int64)
        return self._counted(self.unseen | self.computed)

    @cached_property
    def columns_not_seen(self) -> Int64:
        """The same without those that the server computed. Shape (clusters, keys)."""
        keys = len(self.bucket.key_table)
        return np.zeros((2, keys), np.int64) if self.older is None or not keys else self._counted(self.unseen)

    def _counted(self, unknown: Bool) -> Int64:
        found = np.add.reduceat(unknown.astype(np.int64), self.bucket.slots[:-1], axis=1)
        return np.where(self.final.exists, found, 0)

    @property
    def unseen(self) -> Bool:
        """Which stored columns of rows that are older than the log nothing showed. Shape (clusters, slots)."""
        if self.older is None:
            return np.zeros(self.final.images.shape, np.bool_)
        tables = self.bucket.numbers.tables
        stored = [[column.generated != "virtual" for column in table.columns] for table in tables]
        return np.asarray(self.final.unknown & self._by_slot(stored))

    @property
    def computed(self) -> Bool:
        """Which columns the server computed, as in a new one, since no image has them. Shape (clusters, slots)."""
        computed = np.stack([self._by_slot(each) for each in self._computed])
        return np.asarray((self.final.images == ABSENT_IMAGE) & computed)

    @cached_property
    def lacks_values(self) -> bool:
        """Whether rows can have columns that nothing shows: rows that are older than the log, or computed columns."""
        return self.older is not None or any(any(each) for own in self._computed for each in own)

    @cached_property
    def _computed(self) -> list[list[list[bool]]]:
        """Per cluster and table, which columns the server computes where nothing writes them, as in a new one."""
        found = []
        for cluster in self.clusters:
            own = [[False] * len(table.columns) for table in self.bucket.numbers.tables]
            for setup, columns in zip(cluster.setups, own, strict=True):
                if setup.declared is not None:
                    for place, column in zip(setup.places, setup.declared.columns, strict=True):
                        columns[place] = setup.is_open(column)
            found.append(own)
        return found

    def _by_slot(self, columns: Sequence[Sequence[bool]]) -> Bool:
        """Return what is given per table and column, by slot."""
        starts = np.cumsum([0, *map(len, columns)])[self.bucket.key_table]
        places = np.arange(self.bucket.slots[-1]) - np.repeat(self.bucket.slots[:-1], np.diff(self.bucket.slots))
        return np.asarray(np.concatenate(columns)[np.repeat(starts, np.diff(self.bucket.slots)) + places])

    @property
    def may_be_missing(self) -> Bool:
        """Which rows are not there for all that is known, but may be. Shape (clusters, keys)."""
        if self.older is None:
            return np.zeros(self.folded.exists.shape, np.bool_)
        return self.older.never_met & ~self.folded.exists


@attrs.frozen(eq=False)
class CountedCluster:
    """
    What the applier of one cluster did in a bucket.

    Attributes:
        operations: Number of operations by table, verdict and cause. Shape (tables, verdicts, causes).
        refreshes: Number of refreshed rows by table. Shape (tables,).
        counters: What the bucket adds to its status counters.
        stretches: The same by the counters of an SQL node to which they belong.
    """

    operations: Int64
    refreshes: Int64
    counters: dict[str, int]
    stretches: dict[Stretch, dict[str, int]]


def count_bucket(result: FoldedBucket) -> list[CountedCluster]:
    """Count what each cluster's applier did."""
    of, stretches = numbered_stretches(result.clusters, result.applies)
    made = [result.folded.decisions, result.folded.tracked]
    if result.told is not None:
        made = [each.chosen(result.told[each.apply]) for each in made]
    counted = _count(result, made[0], of, len(stretches))
    # Both passes over an epoch count, TRACK and APPLY.
    passes = (counted, _count(result, made[1], of, len(stretches)))
    found = []
    for number, cluster in enumerate(result.clusters):
        total, by_stretch = Counter[str](), dict[Stretch, dict[str, int]]()
        operations = np.zeros(counted.shape[1:], np.int64)
        for place, (side, stretch) in enumerate(stretches):
            if side == number:
                operations += counted[place]
                mine = sum((status_counters(cluster, each[place]) for each in passes), Counter[str]())
                total.update(mine)
                by_stretch[stretch] = dict(mine)
        found.append(CountedCluster(operations.sum(axis=(1, 2)), _refreshes(result, number), dict(total), by_stretch))
    return found


def numbered_stretches(
    clusters: Sequence[ClusterSetup], applies: EpochApplies
) -> tuple[Int8, list[tuple[int, Stretch]]]:
    """
    Return to which counters each epoch apply belongs.

    Returns:
        The number of its stretch, shape (applies,), and the stretches, each with the number of its cluster.
    """
    one = applies.server[:1] if (applies.server == applies.server[:1]).all() else np.zeros(0, np.uint32)
    if 0 < applies.second < len(applies) and len(one) and not any(each.restarts for each in clusters):  # mostly
        named = (int(one[0]) or each.server_id for each in clusters)
        return applies.applier, [(side, (server, False, False)) for side, server in enumerate(named)]
    numbers, stretches = np.zeros(len(applies), np.int8), list[tuple[int, Stretch]]()
    for number, cluster in enumerate(clusters):
        mine = np.flatnonzero(applies.applier == number)
        servers = applies.server[mine]
        servers[servers == 0] = cluster.server_id
        of, found = stretches_of(servers, applies.epoch[mine], applies.traced[mine], cluster.restarts)
        numbers[mine] = of + len(stretches)
        stretches += [(number, each) for each in found]
    return numbers, stretches


def _count(result: FoldedBucket, decisions: Decisions, of: Int8, count: int) -> Int64:
    """Count decisions by `of`, a small number of each epoch apply; see `count_outcomes` for the rest of the shape."""
    tables = len(result.bucket.numbers.tables)
    shape = (count, tables, len(Operation) + 1, len(OperationKind), len(Verdict), len(Cause))
    counts = np.zeros(shape, np.int64)
    columns = (getattr(decisions, name) for name in CountedDecisions._fields[2:])
    given = CountedDecisions(*each_read_only(of, result.bucket.key_table, *columns))
    count_outcomes(given, counts)
    return counts


def _refreshes(result: FoldedBucket, number: int) -> Int64:
    """Return how many rows the applier of a cluster refreshed. Shape (tables,)."""
    logged = result.folded.logged
    refreshes = np.flatnonzero(logged.refresh & (logged.cluster == number))
    refreshed = logged.key[result.told_of(refreshes, logged.apply[refreshes])]
    return np.bincount(result.bucket.key_table[refreshed], minlength=len(result.bucket.numbers.tables))


def status_counters(cluster: ClusterSetup, counts: Int64) -> Counter[str]:
    """Return the status counters. Shape of `counts` (tables, operations, kinds, verdicts, causes)."""
    rejected = counts[:, :, :, Verdict.REJECTED]
    with_transaction = int(rejected[..., Cause.TRANS_IN_CONFLICT].sum())
    own = rejected.sum(axis=2)[..., : Cause.TRANS_IN_CONFLICT]  # by table, operation and cause
    counters: Counter[str] = Counter(
        {
            REFRESH_RECEIVED: int(counts[:, :, OperationKind.REFRESH].sum()),
            REFLECTED_RECEIVED: int(counts[:, :, OperationKind.REFLECTED].sum()),
            REFLECTED_DISCARDED: int(counts[:, :, :, Verdict.DISCARDED].sum()),
            TRANSACTION_ROW_REJECTS: with_transaction,
            TRANSACTION_ROW_CONFLICTS: 0,
        }
    )
    for table, setup in enumerate(cluster.setups):
        if setup.function is None:
            continue
        for operation, cause in np.argwhere(own[table]).tolist():
            decision = Decision(Verdict.REJECTED, Cause(cause))
            for name, by in moved_counters(setup.function.spec, Operation(operation), decision).items():
                counters[name] += by * int(own[table, operation, cause])
    return counters
