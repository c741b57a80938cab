"""
A bucket with all that the kernels found out about it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from conflict.bucket import Bucket
from conflict.kernels.arrays import Bool, Conflicts, TakeArrays
from conflict.kernels.bounds import Bounds, bounds_of
from conflict.kernels.fold import Folded
from conflict.kernels.operations import operations_of
from conflict.kernels.provenance import ABSENT_IMAGE, FinalRows, trace_images
from conflict.sites import Site, masks_of
from ndb_formats.events.rows_event import Operation
from ndb_formats.row_image import RowImage

__all__ = ["BucketResult"]

WRITE, DELETE = int(Operation.WRITE_ROW), int(Operation.DELETE_ROW)


class BucketResult:
    """
    A bucket, decided.

    Attributes:
        bucket: The bucket.
        sites: Both sites, in the order of the clusters.
        takes: All takes in order.
        conflicts: The transactions in conflict.
        folded: What was decided.
        operations: What each of its decisions was about.
        tracked: What each decision of pass TRACK was about.
        watched: Tables of whose rows every state is wanted; None for none. Shape (tables,).
    """

    def __init__(
        self,
        bucket: Bucket,
        sites: tuple[Site, ...],
        takes: TakeArrays,
        conflicts: Conflicts,
        folded: Folded,
        *,
        watched: Bool | None = None,
    ) -> None:
        self.bucket, self.sites, self.takes = bucket, sites, takes
        self.conflicts, self.folded, self.watched = conflicts, folded, watched
        self.operations, self.tracked = (
            operations_of(decisions, folded.logged, takes, bucket.rows, bucket.key_table)
            for decisions in (folded.decisions, folded.tracked)
        )

    @cached_property
    def final(self) -> FinalRows:
        """Where the columns of rows and of logged events come from."""
        bucket, folded = self.bucket, self.folded
        sets, images = bucket.column_sets
        return trace_images(
            self.takes,
            bucket.rows,
            images,
            sets,
            bucket.slots,
            masks_of(self.sites),
            folded.decisions,
            folded.logged,
            self.watched,
        )

    @cached_property
    def bounds(self) -> Bounds:
        """Which rows belong to which take."""
        return bounds_of(self.takes, self.bucket.rows)

    def images_of(self, decision: int) -> tuple[RowImage | None, RowImage | None]:
        """Return the before and after image of an operation."""
        source = int(self.folded.decisions.source[decision])
        if source >= 0:
            side = 1 - int(self.operations.applier[decision])
            return self.bucket.row_image(side, source, "before"), self.bucket.row_image(side, source, "after")
        entry = -1 - source
        logged, key = self.folded.logged, int(self.operations.key[decision])
        operation = int(logged.operation[entry])
        before, after = None, None
        if operation != WRITE:
            before = (
                self._key_image(key) if logged.refresh[entry] else self._image(key, self.final.logged_before[entry])
            )
        if operation != DELETE:
            after = self._image(key, self.final.logged_after[entry])
        return before, after

    def _image(self, key: int, images: np.ndarray) -> RowImage:
        """Return the image whose columns come from those images."""
        payloads = self.payloads(key, images)
        layout = self.bucket.layouts[int(self.bucket.key_table[key])]
        assert layout is not None
        return RowImage(layout, tuple(sorted(payloads)), tuple(payloads[place] for place in sorted(payloads)))

    def _key_image(self, key: int) -> RowImage:
        """Return an image of the key columns alone, out of any change of that key."""
        ordinals = tuple(sorted(self.bucket.numbers.tables[int(self.bucket.key_table[key])].key_ordinals))
        for side in (0, 1):
            rows = np.flatnonzero(self.bucket.rows[side].key == key)
            for which in ("before", "after"):
                image = self.bucket.row_image(side, int(rows[0]), which) if len(rows) else None
                if image is not None:
                    payloads = tuple(image.payloads[image.present.index(place)] for place in ordinals)
                    return RowImage(image.layout, ordinals, payloads)
        message = f"key {key} of bucket {self.bucket.number} has no change"
        raise AssertionError(message)

    def payloads(self, key: int, images: np.ndarray) -> dict[int, bytes | None]:
        """Return the column bytes that image numbers stand for."""
        width = int(self.bucket.slots[key + 1] - self.bucket.slots[key])
        found: dict[int, bytes | None] = {}
        cache: dict[int, RowImage] = {}
        for place in range(width):
            number = int(images[place])
            if number == ABSENT_IMAGE:
                continue
            image = cache.get(number) or cache.setdefault(number, self.bucket.image(number))
            found[place] = image.payloads[image.present.index(place)]
        return found
