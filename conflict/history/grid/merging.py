"""
Batches that an ingest merges with its own, so that a History that grows consists of few files, and none too large.

A batch is merged with what is added after it as soon as that is more than half as large. So each batch is at least
twice as large as the next one: there are as many as the number of changes has binary digits, at most. A row is written
again only when its batch becomes at least half as large again.

When a log has grown so that buckets are too large, an ingest merges all batches and divides each bucket in two: that
of a key is a digest modulo their number, so the rows of bucket 1 of 4 go to the buckets 1 and 5 of 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.history.grid.epoch_files import read_epoch_sizes
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest
from conflict.history.grid.schemas import CHANGES, KEYS, keys_part, part
from ndb_formats.columnar.kernels.keys import buckets_of

_RATIO = 2
_NUMBER = CHANGES.field("key")


def batches_to_merge(history: Folder, held: Manifest, added: int, buckets: int) -> tuple[int, ...]:
    """
    Return which batches are merged with the one that an ingest adds: the last ones, in order, or none.

    Args:
        history: Folder of the History.
        held: What it holds.
        added: Row changes in the new batch, of both clusters.
        buckets: Into how many buckets keys are divided from now on.
    """
    if buckets != held.buckets:
        return held.batches
    size, first = max(added, 1), len(held.batches)
    while first:
        batch = held.batches[first - 1]
        before = sum(int(read_epoch_sizes(history, name, [batch]).changes.sum()) for name in held.clusters)
        if before >= _RATIO * size:
            break
        size, first = size + before, first - 1
    return held.batches[first:]


@attrs.frozen(slots=False)
class MergedRows:
    """
    What the new batch takes over in one bucket.

    Attributes:
        history: Folder of the History.
        batches: Numbers of the merged batches, in order; all of them if buckets are divided.
        bucket: The bucket.
        buckets: Into how many buckets keys are divided from now on.
        divided: Into how many they were until now.
    """

    history: Folder
    batches: Sequence[int] = ()
    bucket: int = 0
    buckets: int = 1
    divided: int = 1

    @cached_property
    def keys(self) -> pa.Table:
        """The keys, as `KEYS`."""
        keys = self._keys
        if self.buckets == self.divided:
            return keys
        kept = keys.filter(pa.array(self._numbers >= 0))
        return kept.set_column(0, KEYS.field("key"), pa.array(np.arange(len(kept), dtype=np.int32)))

    def rows(self, kind: str, cluster: str, schema: pa.Schema) -> pa.Table:
        """Return the rows of a cluster of a kind, in order; a kind is as for `conflict.history.grid.schemas.part`."""
        table = self._read(kind, cluster, schema)
        if self.buckets == self.divided:
            return table
        keys = self._read("changes" if kind == "images" else kind, cluster, pa.schema([_NUMBER])).column("key")
        numbers = self._numbers[keys.to_numpy()]
        kept = table.filter(pa.array(numbers >= 0))
        if kind == "images":
            return kept
        return kept.set_column(0, schema.field("key"), pa.array(numbers[numbers >= 0]))

    def _read(self, kind: str, cluster: str, schema: pa.Schema) -> pa.Table:
        paths = (part(kind, cluster, self.bucket % self.divided, batch) for batch in self.batches)
        return self.history.read_tables(paths, schema)

    @cached_property
    def _keys(self) -> pa.Table:
        """The keys of the bucket that is divided."""
        return self.history.read_tables((keys_part(self.bucket % self.divided, each) for each in self.batches), KEYS)

    @cached_property
    def _numbers(self) -> npt.NDArray[np.int32]:
        """The new number of each of these keys; -1 for those that go to another bucket. Shape (keys,)."""
        identities = self._keys.column("identity").combine_chunks().cast(pa.large_binary())
        _, offsets, data = identities.buffers()
        bounds = np.frombuffer(offsets, np.int64)[: len(identities) + 1].copy()
        buckets = np.empty(len(identities), np.int32)
        buckets_of(np.frombuffer(data or b"", np.uint8).copy(), bounds, self.buckets, buckets)
        here = buckets == self.bucket
        return np.where(here, np.cumsum(here) - 1, -1).astype(np.int32)
