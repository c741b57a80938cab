"""
Which batches of a History one ingest merges, so that a History that grows every night stays one of few files.

A batch is merged with what is added after it as soon as that is more than half as large. So each batch is at least
twice as large as the next one: there are as many as the number of changes has binary digits, at most. A row that is
merged is then in a batch at least half as large again as the one before, so it is merged about as often.
"""

from __future__ import annotations

from conflict.history.grid.epoch_files import read_epoch_sizes
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest

__all__ = ["batches_to_merge"]

_RATIO = 2


def batches_to_merge(history: Folder, held: Manifest, added: int) -> tuple[int, ...]:
    """
    Return which batches are merged with the one that an ingest adds: the last ones, in order, or none.

    Args:
        history: Folder of the History.
        held: What it holds.
        added: Row changes in the new batch, of both clusters.
    """
    size, first = max(added, 1), len(held.batches)
    while first:
        batch = held.batches[first - 1]
        before = sum(int(read_epoch_sizes(history, name, [batch]).changes.sum()) for name in held.clusters)
        if before >= _RATIO * size:
            break
        size, first = size + before, first - 1
    return held.batches[first:]
