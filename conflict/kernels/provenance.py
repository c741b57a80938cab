"""
Which image each column of each final row comes from.

The same walk as `fold`, with the decisions known. A row is kept as one image number per column, so
that no value is touched before the end: a write sets the numbers of the columns it carries, a refresh copies
the numbers of the whole row to the other cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numba import njit

from conflict.decision import Verdict
from conflict.kernels.arrays import BucketRows, Decisions, Int32, Int64, Refreshes, TakeArrays, read_only
from conflict.kernels.fold import Bounds, bounds_of
from ndb_formats.events.rows_event import Operation
from ndb_formats.extra_row_info import ConflictFlag

__all__ = ["ABSENT_IMAGE", "ColumnSets", "FinalRows", "ImageArrays", "trace_images"]

ABSENT_IMAGE = -1
DELETE = int(Operation.DELETE_ROW)
READ = int(ConflictFlag.READ)
APPLIED = int(Verdict.APPLIED)


@attrs.frozen
class ColumnSets:
    """
    The different sets of columns that images carry, in one array.

    Attributes:
        offsets: Set n is ``columns[offsets[n]:offsets[n + 1]]``. Shape (sets + 1,).
        columns: Column positions.
    """

    offsets: Int64
    columns: Int32


@attrs.frozen
class ImageArrays:
    """
    Per row of a `BucketRows`, which columns its images carry. Shape (rows,).

    Attributes:
        before: Number of the before image's column set; -1 for no image.
        after: Number of the after image's column set; -1 for no image.
    """

    before: Int32
    after: Int32


@attrs.frozen
class FinalRows:
    """
    What the rows of a bucket are made of.

    An image is numbered ``2 * row`` (before) or ``2 * row + 1`` (after), the second cluster's rows
    counted after the first one's.

    Attributes:
        exists: Whether the row is there at the end. Shape (clusters, keys).
        images: Image of each column at the end. Shape (clusters, slots).
        refreshed: Image of each column when a refresh was made. Shape (refreshes, widest table).
    """

    exists: np.ndarray
    images: np.ndarray
    refreshed: np.ndarray


def trace_images(
    takes: TakeArrays,
    rows: Sequence[BucketRows],
    images: Sequence[ImageArrays],
    sets: ColumnSets,
    slots: Int64,
    decisions: Decisions,
    refreshes: Refreshes,
) -> FinalRows:
    """
    Return where every column of every final row comes from.

    Args:
        takes: As given to `fold`.
        rows: As given to `fold`.
        images: Column sets of the rows' images.
        sets: The column sets.
        slots: First slot of each key, one slot per column of its table, and their total. Shape (keys + 1,).
        decisions: What `fold` returned.
        refreshes: What `fold` returned.
    """
    bounds: Bounds = bounds_of(takes, rows)
    widest = int(np.diff(slots).max(initial=0))
    exists, final, refreshed = _trace(
        read_only(takes.applier),
        read_only(bounds.local_end),
        tuple(read_only(side.key) for side in rows),
        tuple(read_only(side.operation) for side in rows),
        tuple(read_only(side.flags) for side in rows),
        tuple(read_only(side.before) for side in images),
        tuple(read_only(side.after) for side in images),
        tuple(read_only(array) for array in (sets.offsets, sets.columns, slots)),
        tuple(read_only(array) for array in (decisions.take, decisions.source, decisions.verdict)),
        tuple(read_only(array) for array in (refreshes.cluster, refreshes.key, refreshes.take, refreshes.exists)),
        widest,
    )
    return FinalRows(exists, final, refreshed)


@njit(cache=True)
def _put(final, side, slot, offsets, columns, chosen, image):
    if chosen < 0:
        return
    for place in range(offsets[chosen], offsets[chosen + 1]):
        final[side, slot + columns[place]] = image


@njit(cache=True)
def _local(side, start, stop, base, key_of, operation_of, flags_of, before_set, after_set, layout, exists, final):
    """Do what a cluster did itself, rows `start` to `stop`."""
    offsets, columns, slots = layout
    for row in range(start, stop):
        if flags_of[side][row] & READ:
            continue
        key = key_of[side][row]
        if operation_of[side][row] == DELETE:
            exists[side, key] = False
            continue
        image = 2 * (base[side] + row)
        if not exists[side, key]:
            final[side, slots[key] : slots[key + 1]] = ABSENT_IMAGE
            exists[side, key] = True
            _put(final, side, slots[key], offsets, columns, before_set[side][row], image)
        _put(final, side, slots[key], offsets, columns, after_set[side][row], image + 1)


@njit(cache=True)
def _trace(applier_of, local_end, key_of, operation_of, flags_of, before_set, after_set, layout, decided, sent, widest):
    offsets, columns, slots = layout
    d_take, d_source, d_verdict = decided
    r_cluster, r_key, r_take, r_exists = sent
    keys = len(slots) - 1
    exists = np.zeros((2, keys), np.bool_)
    final = np.full((2, slots[keys]), ABSENT_IMAGE, np.int64)
    refreshed = np.full((len(r_key), widest), ABSENT_IMAGE, np.int64)
    base = (0, len(key_of[0]))
    done = np.zeros(2, np.int64)
    decision, refresh = 0, 0
    for take in range(len(applier_of)):
        here = applier_of[take]
        there = 1 - here
        _local(
            here, done[here], local_end[take], base, key_of, operation_of, flags_of,
            before_set, after_set, layout, exists, final,
        )  # fmt: skip
        done[here] = max(done[here], local_end[take])
        while decision < len(d_take) and d_take[decision] == take:
            source = d_source[decision]
            applied = d_verdict[decision] == APPLIED
            decision += 1
            if not applied:
                continue
            if source < 0:
                made = -1 - source
                key = r_key[made]
                if not exists[here, key]:
                    final[here, slots[key] : slots[key + 1]] = ABSENT_IMAGE
                exists[here, key] = r_exists[made]
                for column in range(slots[key + 1] - slots[key]):
                    if refreshed[made, column] != ABSENT_IMAGE:
                        final[here, slots[key] + column] = refreshed[made, column]
                continue
            key = key_of[there][source]
            if flags_of[there][source] & READ:
                continue
            if operation_of[there][source] == DELETE:
                exists[here, key] = False
                continue
            if not exists[here, key]:
                final[here, slots[key] : slots[key + 1]] = ABSENT_IMAGE
                exists[here, key] = True
            image = 2 * (base[there] + source) + 1
            _put(final, here, slots[key], offsets, columns, after_set[there][source], image)
        while refresh < len(r_key) and r_take[refresh] == take:
            key = r_key[refresh]
            if r_exists[refresh]:
                for column in range(slots[key + 1] - slots[key]):
                    refreshed[refresh, column] = final[r_cluster[refresh], slots[key] + column]
            refresh += 1
    for side in range(2):
        _local(
            side, done[side], len(key_of[side]), base, key_of, operation_of, flags_of,
            before_set, after_set, layout, exists, final,
        )  # fmt: skip
    return exists, final, refreshed
