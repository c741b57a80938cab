"""
A decided bucket: what the kernels computed of it.
"""

from __future__ import annotations

from functools import cached_property

from conflict.columnar.bucket import Bucket
from conflict.columnar.cluster_setup import ClusterSetup, masks_of
from conflict.columnar.kernels.arrays import Bool, Conflicts, EpochApplies
from conflict.columnar.kernels.fold import Folded
from conflict.columnar.kernels.provenance import FinalRows, trace_images

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
    ) -> None:
        self.bucket, self.clusters, self.applies = bucket, clusters, applies
        self.conflicts, self.folded, self.watched = conflicts, folded, watched

    @cached_property
    def final(self) -> FinalRows:
        """The image that each column of each row and of each logged event comes from, traced on first use."""
        bucket = self.bucket
        keys = (bucket.slots, bucket.key_table)
        return trace_images(
            self.applies, bucket.rows, bucket.column_sets, keys, masks_of(self.clusters), self.folded, self.watched
        )
