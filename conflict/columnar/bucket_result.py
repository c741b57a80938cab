"""
A bucket with all that the kernels found out about it.
"""

from __future__ import annotations

from functools import cached_property

from conflict.columnar.bucket import Bucket
from conflict.columnar.cluster_setup import ClusterSetup, masks_of
from conflict.columnar.kernels.arrays import Bool, Conflicts, EpochApplies
from conflict.columnar.kernels.fold import Folded
from conflict.columnar.kernels.provenance import FinalRows, trace_images
from ndb_formats.events.rows_event import Operation

__all__ = ["BucketResult"]

WRITE, DELETE = int(Operation.WRITE_ROW), int(Operation.DELETE_ROW)


class BucketResult:
    """
    A bucket, decided.

    Attributes:
        bucket: The bucket.
        clusters: Both sites, in the order of the clusters.
        applies: All takes in order.
        conflicts: The transactions in conflict.
        folded: What was decided.
        watched: Tables of whose rows every state is wanted; None for none. Shape (tables,).
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
        """Where the columns of rows and of logged events come from."""
        bucket = self.bucket
        keys = (bucket.slots, bucket.key_table)
        return trace_images(
            self.applies, bucket.rows, bucket.column_sets, keys, masks_of(self.clusters), self.folded, self.watched
        )
