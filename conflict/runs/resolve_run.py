"""
What all tasks of the resolve job have in common.
"""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from conflict.engine.columnar.applier_stops import can_log_stopping
from conflict.engine.columnar.bucket import Bucket, CarefulRows, load_bucket
from conflict.engine.columnar.bucket_view import BucketView
from conflict.engine.columnar.foreign_keys import LinkedKeys, linked_keys
from conflict.engine.columnar.setups import ClusterSetup, transactional_tables
from conflict.engine.columnar.unique_keys import has_unique_keys
from conflict.engine.kernels.arrays import Bool
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest
from conflict.history.tables import TableNumbers
from conflict.results.options import ResultOptions
from conflict.runs.log_part import WHOLE, LogPart

__all__ = ["ResolveRun"]


@attrs.frozen(slots=False)
class ResolveRun:
    """
    What all tasks of a run have in common.

    Attributes:
        history: Folder of the History.
        out: Folder of the result.
        manifest: What the History holds.
        numbers: The tables.
        clusters: Both clusters.
        options: What the result holds.
        part: The part of the logs that is read.
        view: What another policy or format makes of the logged changes; None for the changes as they are.
        careful: Rows of keyed tables that the reference engine resolves; None for none.
    """

    history: Folder
    out: Folder
    manifest: Manifest
    numbers: TableNumbers
    clusters: tuple[ClusterSetup, ...]
    options: ResultOptions
    part: LogPart = WHOLE
    view: BucketView | None = None
    careful: CarefulRows | None = None

    @property
    def shared(self) -> Folder:
        """Where the driver and the tasks leave what later tasks read; removed at the end."""
        return self.out.below("shared")

    @property
    def first_epochs(self) -> list[int]:
        """Per cluster, the first own epoch of its log, if the logs start in the middle."""
        return [self.part.starts[cluster.name].epoch for cluster in self.clusters]

    @cached_property
    def checks_unique_keys(self) -> bool:
        """Whether a table has unique keys besides the primary key."""
        return bool(has_unique_keys(self.clusters).any())

    @property
    def parts(self) -> int:
        """How many parts the rows have: the buckets, and one for rows that the reference engine resolves."""
        return self.manifest.buckets + (self.manifest.has_rows_without_key or self.careful is not None)

    def older_part(self, bucket: int) -> int:
        """Return the number of the part of the result that holds a bucket's rows which are older than the log."""
        return self.manifest.buckets + bucket

    @property
    def careful_part(self) -> int:
        """The number of the part of the result that holds what the reference engine resolved beside the buckets."""
        return 2 * self.manifest.buckets

    @cached_property
    def linked(self) -> LinkedKeys:
        """The ends of all foreign keys."""
        return linked_keys(self.numbers.tables)

    def load_bucket(self, number: int, *, images: bool = True) -> Bucket:
        """Read a bucket, with its images or without."""
        layouts = self.manifest.layouts(self.numbers)
        return load_bucket(
            self.history, number, self.manifest, self.numbers, layouts, images=images, bounds=self.part.bounds
        )

    def careful_keys(self, bucket: Bucket) -> Bool:
        """Return which rows of a bucket the reference engine resolves. Shape (keys,)."""
        if self.careful is None:
            return np.zeros(len(bucket.key_table), np.bool_)
        return self.careful.of(bucket.number, bucket.key_table)

    @cached_property
    def needs_rounds(self) -> bool:
        """Whether transactions can be in conflict, or what one applier logs can stop the other."""
        transactional = bool(transactional_tables(self.clusters).any())
        if self.part.starts_in_the_middle:
            return transactional  # a stop is left to the reference engine
        if self.careful is not None:
            return True  # a foreign key can stop an applier
        return self.checks_unique_keys or transactional or can_log_stopping(self.clusters)

    @cached_property
    def refreshes_tell(self) -> bool:
        """Whether a refresh of a row tells that its transaction was rejected: no function refreshes single rows."""
        for cluster, transactional in zip(self.clusters, transactional_tables(self.clusters), strict=True):
            functions = [setup.function for setup in cluster.setups if setup.function is not None]
            single = any(function.spec.refreshes and not function.spec.transactional for function in functions)
            if single and transactional.any():
                return False
        return True
