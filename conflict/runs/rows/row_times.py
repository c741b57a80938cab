"""
When rows changed: finds, among rows of a bucket in the order of time, those of a key before or after an epoch.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from conflict.engine.kernels.arrays import Int32, Int64, UInt64

FIRST, LAST = np.uint64(0), np.uint64(2**64 - 1)


class RowTimes:
    """Finds places among rows that are sorted by key and epoch."""

    def __init__(self, key: Int32 | Int64, epoch: UInt64) -> None:
        self._epochs = np.unique(epoch)
        # Key and epoch in one number.
        self._width = len(self._epochs) + 1
        self.sorted = key.astype(np.int64) * self._width + np.searchsorted(self._epochs, epoch)

    def of(self, key: Int32 | Int64, epoch: UInt64, side: Literal["left", "right"]) -> Int64:
        """Return how many rows come before an epoch of a key, for ``right`` those of the epoch among them."""
        ranks = np.searchsorted(self._epochs, epoch, side)
        return np.asarray(np.searchsorted(self.sorted, key.astype(np.int64) * self._width + ranks))


def next_epoch(epoch: UInt64) -> UInt64:
    """Return the epochs up to which the given ones are; the greatest epoch is that of no change."""
    return np.minimum(epoch, LAST - 1) + 1


def epochs_before(keys: Int32, epochs: UInt64, key: Int64, before: UInt64) -> UInt64:
    """Return, per key, the last epoch among its own before a given one; 0 if there is none."""
    last = last_before(keys, epochs, key, before)
    return np.where(last >= 0, epochs[last], FIRST) if len(epochs) else np.zeros(len(key), np.uint64)


def last_before(keys: Int32 | Int64, epochs: UInt64, key: Int32 | Int64, before: UInt64) -> Int64:
    """Return, per key, the last of its rows before a given epoch; -1 if there is none. `epochs` is in order."""
    if not len(keys):
        return np.full(len(key), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    last = RowTimes(ordered, epochs[order]).of(key, before, "left") - 1
    return np.where((last >= 0) & (ordered[last] == key), order[last], -1)
