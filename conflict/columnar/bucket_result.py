"""
A decided bucket: what the kernels computed of it.
"""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from conflict.columnar.bucket import Bucket
from conflict.columnar.cluster_setup import ClusterSetup, held_columns, masks_of
from conflict.columnar.kernels.arrays import Bool, Conflicts, EpochApplies, Int64
from conflict.columnar.kernels.fold import Folded
from conflict.columnar.kernels.provenance import trace_images
from conflict.columnar.kernels.provenance_records import FinalRows
from conflict.columnar.older_states import OlderRows

__all__ = ["BucketResult"]


class BucketResult:
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
    ) -> None:
        self.bucket, self.clusters, self.applies = bucket, clusters, applies
        self.conflicts, self.folded, self.watched, self.older = conflicts, folded, watched, older

    @cached_property
    def final(self) -> FinalRows:
        """The image that each column of each row and of each logged event comes from, traced on first use."""
        bucket = self.bucket
        keys = (bucket.slots, bucket.key_table)
        older = None if self.older is None else self.older.were_there
        masks, logged = masks_of(self.clusters), self.folded.logged
        widest = max((len(table.columns) for table in bucket.numbers.tables), default=0)
        held = held_columns(self.clusters, self.applies, logged, bucket.key_table[logged.key], widest)
        final = trace_images(
            self.applies, bucket.rows, bucket.column_sets, keys, masks, self.folded, held, self.watched, older
        )
        if self.older is None:
            return final
        return attrs.evolve(final, exists=final.exists & ~self.older.left_open)

    @cached_property
    def columns_not_known(self) -> Int64:
        """How many stored columns of each final row nothing told of. Shape (clusters, keys)."""
        keys = len(self.bucket.key_table)
        if self.older is None or not keys:
            return np.zeros((2, keys), np.int64)
        stored = [[column.generated != "virtual" for column in table.columns] for table in self.bucket.numbers.tables]
        # A column of a table, by slot.
        starts = np.cumsum([0, *map(len, stored)])[self.bucket.key_table]
        places = np.arange(self.bucket.slots[-1]) - np.repeat(self.bucket.slots[:-1], np.diff(self.bucket.slots))
        counted = np.concatenate(stored)[np.repeat(starts, np.diff(self.bucket.slots)) + places]
        unknown = np.add.reduceat((self.final.unknown & counted).astype(np.int64), self.bucket.slots[:-1], axis=1)
        return np.where(self.final.exists, unknown, 0)

    @property
    def may_be_missing(self) -> Bool:
        """Which rows are not there for all that is known, but may be. Shape (clusters, keys)."""
        if self.older is None:
            return np.zeros(self.folded.exists.shape, np.bool_)
        return self.older.never_met & ~self.folded.exists
