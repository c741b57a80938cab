"""
Which image each column of each final row comes from.

The same walk as `fold`, with the decisions known. A row is kept as one image number per column, so
that no value is touched before the end: a write sets the numbers of the columns it carries, a refresh copies
the numbers of the whole row to the other cluster, a reflected change those of the columns that its event carries.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numba import njit

from conflict.decision import Verdict
from conflict.kernels.arrays import Bool, BucketRows, Decisions, Int8, Int32, Int64, Logged, TakeArrays, read_only
from conflict.kernels.bounds import Bounds, bounds_of
from conflict.kernels.event_masks import EventMasks, marked_columns
from ndb_formats.events.rows_event import Operation

__all__ = ["ABSENT_IMAGE", "ColumnSets", "FinalRows", "ImageArrays", "WatchedRows", "trace_images"]

ABSENT_IMAGE = -1
WRITE, UPDATE, DELETE = (int(operation) for operation in Operation)
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
class WatchedRows:
    """
    Every state of the rows of some tables: after each own change, and after each take that changed them.

    Shape (states,).

    Attributes:
        cluster: Number of the cluster.
        key: The row.
        row: Own change after which it is; -1 after a take.
        decision: One decision of the take that changed the row; -1 after an own change.
        exists: Whether the row is there.
        images: Image of each column. Shape (states, widest table).
    """

    cluster: Int8
    key: Int32
    row: Int64
    decision: Int64
    exists: Bool
    images: Int64

    def __len__(self) -> int:
        return len(self.cluster)


@attrs.frozen
class FinalRows:
    """
    What the rows of a bucket are made of.

    An image is numbered ``2 * row`` (before) or ``2 * row + 1`` (after), the second cluster's rows
    counted after the first one's.

    Attributes:
        exists: Whether the row is there at the end. Shape (clusters, keys).
        images: Image of each column at the end. Shape (clusters, slots).
        logged_before: Image of each column in the before image of what an applier logged; not filled in for
            refreshes, which carry the key alone. Shape (entries, widest table).
        logged_after: Image of each column in its after image. Shape (entries, widest table).
        watched: Every state of the rows of watched tables.
    """

    exists: Bool
    images: Int64
    logged_before: Int64
    logged_after: Int64
    watched: WatchedRows


def trace_images(
    takes: TakeArrays,
    rows: Sequence[BucketRows],
    images: Sequence[ImageArrays],
    sets: ColumnSets,
    slots: Int64,
    masks: EventMasks,
    decisions: Decisions,
    logged: Logged,
    watched: Bool | None = None,
) -> FinalRows:
    """
    Return where every column of every final row comes from.

    Args:
        takes: As given to `fold`.
        rows: As given to `fold`.
        images: Column sets of the rows' images.
        sets: The column sets.
        slots: First slot of each key, one slot per column of its table, and their total. Shape (keys + 1,).
        masks: Which columns a reflected event carries.
        decisions: What `fold` returned.
        logged: What `fold` returned.
        watched: Tables of whose rows every state is wanted; None for none. Shape (tables,).
    """
    bounds: Bounds = bounds_of(takes, rows)
    keys = len(slots) - 1
    table = np.zeros(keys, np.int16)
    for side in rows:
        table[side.key] = side.table
    watching = np.zeros(keys, np.bool_) if watched is None else watched[table]
    room = (sum(int(watching[side.key].sum()) for side in rows) + len(decisions)) if watching.any() else 0
    exists, final, before, after, states, count = _trace(
        read_only(takes.applier),
        read_only(bounds.local_end),
        tuple(read_only(side.key) for side in rows),
        tuple(read_only(side.operation) for side in rows),
        tuple(read_only(side.before) for side in images),
        tuple(read_only(side.after) for side in images),
        tuple(read_only(array) for array in (sets.offsets, sets.columns, slots, table)),
        tuple(read_only(getattr(masks, field.name)) for field in attrs.fields(EventMasks)),
        tuple(read_only(array) for array in (decisions.take, decisions.source, decisions.verdict)),
        tuple(read_only(array) for array in (logged.key, logged.take, logged.operation, logged.refresh)),
        int(np.diff(slots).max(initial=0)),
        read_only(watching),
        room,
    )
    return FinalRows(exists, final, before, after, WatchedRows(*(array[:count] for array in states)))


@njit(cache=True)
def _put(final, side, slot, offsets, columns, chosen, image):
    if chosen < 0:
        return
    for place in range(offsets[chosen], offsets[chosen + 1]):
        final[side, slot + columns[place]] = image


@njit(cache=True)
def _write(side, key, operation, image, before_set, after_set, layout, exists, final):
    """Do one operation to a row; `image` is the number of its before image."""
    offsets, columns, slots, _ = layout
    if operation == DELETE:
        exists[side, key] = False
        return
    if not exists[side, key]:
        final[side, slots[key] : slots[key + 1]] = ABSENT_IMAGE
        exists[side, key] = True
        _put(final, side, slots[key], offsets, columns, before_set, image)
    _put(final, side, slots[key], offsets, columns, after_set, image + 1)


@njit(cache=True)
def _local(
    side, start, stop, base, key_of, operation_of, before_set, after_set, layout, exists, final, watching, states, count
):
    """Do what a cluster did itself, rows `start` to `stop`; returns how many states are kept."""
    for row in range(start, stop):
        _write(
            side, key_of[side][row], operation_of[side][row], 2 * (base[side] + row),
            before_set[side][row], after_set[side][row], layout, exists, final,
        )  # fmt: skip
        if watching[key_of[side][row]]:
            count = _keep_state(states, count, side, key_of[side][row], row, -1, layout, exists, final)
    return count


@njit(cache=True)
def _keep_state(states, count, side, key, row, decision, layout, exists, final):
    s_cluster, s_key, s_row, s_decision, s_exists, s_images = states
    slots = layout[2]
    s_cluster[count], s_key[count], s_row[count], s_decision[count] = side, key, row, decision
    s_exists[count] = exists[side, key]
    s_images[count, : slots[key + 1] - slots[key]] = final[side, slots[key] : slots[key + 1]]
    return count + 1


@njit(cache=True)
def _touch(touched, side, key, take, layout, final):
    """Keep a row as it was before the take, once."""
    stamps, old, _ = touched
    slots = layout[2]
    if stamps[key] != take:
        stamps[key] = take
        old[slots[key] : slots[key + 1]] = final[side, slots[key] : slots[key + 1]]


@njit(cache=True)
def _carry(side, key, entry, operation, layout, masks, touched, take, final, before, after):
    """Fill in the images of a reflected event, as the table's format logs it."""
    slots, table_of = layout[2], layout[3]
    _, write_after, delete_before, base_before, all_before, base_after, all_after, _, _, _ = masks
    _, old, written = touched
    table, slot = table_of[key], slots[key]
    width = slots[key + 1] - slot
    if operation == UPDATE:
        marked = marked_columns(masks, table, written[slot : slot + width] == take)
    for column in range(width):
        in_before, in_after = False, False
        if operation == WRITE:
            in_after = write_after[side, table, column]
        elif operation == DELETE:
            in_before = delete_before[side, table, column]
        else:
            in_before = base_before[side, table, column] or (marked[column] and all_before[side, table, column])
            in_after = base_after[side, table, column] or (marked[column] and all_after[side, table, column])
        if in_before:
            before[entry, column] = old[slot + column]
        if in_after:
            after[entry, column] = final[side, slot + column]


@njit(cache=True)
def _trace(
    applier_of, local_end, key_of, operation_of, before_set, after_set, layout, masks, decided, entries, widest,
    watching, room,
):  # fmt: skip
    offsets, columns, slots, table_of = layout
    reflects = masks[0]
    d_take, d_source, d_verdict = decided
    l_key, l_take, l_operation, l_refresh = entries
    keys = len(slots) - 1
    exists = np.zeros((2, keys), np.bool_)
    final = np.full((2, slots[keys]), ABSENT_IMAGE, np.int64)
    before = np.full((len(l_key), widest), ABSENT_IMAGE, np.int64)
    after = np.full((len(l_key), widest), ABSENT_IMAGE, np.int64)
    # Per key the take that touched it last; per column what it held before, and the take that wrote it last.
    touched = (
        np.full(keys, -1, np.int64),
        np.full(slots[keys], ABSENT_IMAGE, np.int64),
        np.full(slots[keys], -1, np.int64),
    )
    written = touched[2]
    base = (0, len(key_of[0]))
    done = np.zeros(2, np.int64)
    states = (
        np.empty(room, np.int8),
        np.empty(room, np.int32),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.bool_),
        np.full((room, widest if room else 0), ABSENT_IMAGE, np.int64),
    )
    decision, entry, count = 0, 0, 0
    for take in range(len(applier_of)):
        here = applier_of[take]
        there = 1 - here
        count = _local(
            here, done[here], local_end[take], base, key_of, operation_of,
            before_set, after_set, layout, exists, final, watching, states, count,
        )  # fmt: skip
        done[here] = max(done[here], local_end[take])
        started = decision
        while decision < len(d_take) and d_take[decision] == take:
            source = d_source[decision]
            applied = d_verdict[decision] == APPLIED
            decision += 1
            if not applied:
                continue
            key = key_of[there][source] if source >= 0 else l_key[-1 - source]
            reflecting = reflects[here, table_of[key]]
            if reflecting:
                _touch(touched, here, key, take, layout, final)
            if source < 0:
                made = -1 - source
                if not exists[here, key]:
                    final[here, slots[key] : slots[key + 1]] = ABSENT_IMAGE
                exists[here, key] = l_operation[made] != DELETE
                for column in range(slots[key + 1] - slots[key]):
                    if after[made, column] != ABSENT_IMAGE:
                        final[here, slots[key] + column] = after[made, column]
                        if reflecting:
                            written[slots[key] + column] = take
                continue
            _write(
                here, key, operation_of[there][source], 2 * (base[there] + source),
                before_set[there][source], after_set[there][source], layout, exists, final,
            )  # fmt: skip
            chosen = after_set[there][source]
            if reflecting and chosen >= 0:
                for place in range(offsets[chosen], offsets[chosen + 1]):
                    written[slots[key] + columns[place]] = take
        if room:
            for changed in range(started, decision):
                source = d_source[changed]
                key = key_of[there][source] if source >= 0 else l_key[-1 - source]
                if d_verdict[changed] == APPLIED and watching[key]:
                    count = _keep_state(states, count, here, key, -1, changed, layout, exists, final)
        while entry < len(l_key) and l_take[entry] == take:
            key = l_key[entry]
            if not l_refresh[entry]:
                _carry(here, key, entry, l_operation[entry], layout, masks, touched, take, final, before, after)
            elif l_operation[entry] != DELETE:
                for column in range(slots[key + 1] - slots[key]):
                    after[entry, column] = final[here, slots[key] + column]
            entry += 1
    for side in range(2):
        count = _local(
            side, done[side], len(key_of[side]), base, key_of, operation_of,
            before_set, after_set, layout, exists, final, watching, states, count,
        )  # fmt: skip
    return exists, final, before, after, states, count
