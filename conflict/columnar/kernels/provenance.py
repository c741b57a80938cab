"""
Which image each column of each final row comes from.

The same walk as `fold`, with the decisions known. A row is kept as one image number per column, or one for all of
them, so that no value is touched before the end: a write sets the numbers of the columns it carries, a refresh
copies the numbers of the whole row to the other cluster, a reflected change those of the columns that its event
carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numba import njit

from conflict.columnar.kernels.arrays import (
    Bool,
    BucketRows,
    EpochApplies,
    Int8,
    Int16,
    Int32,
    Int64,
    each_read_only,
    read_only,
)
from conflict.columnar.kernels.event_masks import EventMasks, mark_columns
from conflict.columnar.kernels.fold import Folded
from conflict.columnar.kernels.last_images import last_images
from conflict.columnar.kernels.records import Records
from conflict.rules.decision import Verdict
from ndb_formats.columnar.kernels.compiled import njit_uncounted
from ndb_formats.events.rows_event import Operation

__all__ = ["ABSENT_IMAGE", "ColumnSets", "FinalRows", "ImageArrays", "WatchedRows", "trace_images"]

ABSENT_IMAGE = -1
WRITE, UPDATE, DELETE = (int(operation) for operation in Operation)
APPLIED = int(Verdict.APPLIED)
# An own change of a cluster, the second cluster's after the first one's: its row, and the column sets of its images.
_ROW = np.dtype([("key", "i4"), ("before", "i4"), ("after", "i4"), ("operation", "i1")], align=True)
# A row of a cluster: whether it is there, and the one image that all its columns come from, unless they were spread.
_HELD = np.dtype([("whole", "i8"), ("exists", "?"), ("spread", "?")], align=True)


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
    applies: EpochApplies,
    rows: Sequence[BucketRows],
    images: Sequence[ImageArrays],
    sets: ColumnSets,
    slots: Int64,
    key_table: Int16,
    masks: EventMasks,
    folded: Folded,
    watched: Bool | None = None,
) -> FinalRows:
    """
    Return where every column of every final row comes from.

    Args:
        applies: As given to `fold`.
        rows: As given to `fold`.
        images: Column sets of the rows' images.
        sets: The column sets.
        slots: First slot of each key, one slot per column of its table, and their total. Shape (keys + 1,).
        key_table: Table number of each key. Shape (keys,).
        masks: Which columns a reflected event carries.
        folded: What `fold` returned.
        watched: Tables of whose rows every state is wanted; None for none. Shape (tables,).
    """
    decisions, logged = folded.decisions, folded.logged
    watching = np.zeros(len(key_table), np.bool_) if watched is None else watched[key_table]
    room = (sum(int(watching[side.key].sum()) for side in rows) + len(decisions)) if watching.any() else 0
    traced, logging = _traced_rows(rows, images), watching.copy()
    logging[logged.key] = True
    exists, final = last_images(
        *(*each_read_only(applies.applier, folded.own_end), traced, len(rows[0])),
        *each_read_only(sets.offsets, sets.columns, slots),
        *each_read_only(decisions.apply, decisions.source, decisions.verdict, logging),
    )
    widest, entries = int(np.diff(slots).max(initial=0)), len(logged.key)
    before, after = (np.full((entries, widest), ABSENT_IMAGE, np.int64) for _ in range(2))
    kinds = (np.int8, np.int32, np.int64, np.int64, np.bool_)
    states: tuple[Any, ...] = *(np.empty(room, kind) for kind in kinds), np.full((room, widest), ABSENT_IMAGE, np.int64)
    keys, followed = (len(key_table), slots[-1]) if masks.reflects.any() else (0, 0)
    first, total = len(rows[0]), len(traced)
    count = _trace(
        *(*each_read_only(applies.applier, folded.own_end), traced, (0, first), (first, total), np.array([0, first])),
        *(read_only(logging), exists, final, *each_read_only(sets.offsets, sets.columns, slots, key_table)),
        tuple(each_read_only(*(getattr(masks, field.name) for field in attrs.fields(EventMasks)))),
        *each_read_only(decisions.apply, decisions.source, decisions.verdict),
        *each_read_only(logged.key, logged.apply, logged.operation, logged.refresh),
        *(read_only(watching), room, _nothing_held(len(key_table)), np.full(keys, -1, np.int64)),
        *(np.full(followed, ABSENT_IMAGE, np.int64), np.full(followed, -1, np.int64), np.empty(widest, np.bool_)),
        *(before, after, states),
    )
    return FinalRows(exists, final, before, after, WatchedRows(*(array[:count] for array in states)))


def _nothing_held(keys: int) -> Records:
    """Return what is known of rows at the start. Shape (clusters, keys)."""
    held = np.zeros((2, keys), _HELD)
    held["whole"] = ABSENT_IMAGE
    return held


def _traced_rows(rows: Sequence[BucketRows], images: Sequence[ImageArrays]) -> Records:
    """Return the rows of both clusters, with the column sets of their images."""
    records = np.empty(sum(len(side) for side in rows), _ROW)
    start = 0
    for side, sets in zip(rows, images, strict=True):
        part = records[start : start + len(side)]
        _pack(part, *each_read_only(side.key, side.operation, sets.before, sets.after))
        start += len(side)
    return records


@njit(cache=True)
def _pack(records, key, operation, before, after):
    for place in range(len(key)):
        row = records[place]
        row["key"], row["operation"], row["before"], row["after"] = (
            key[place],
            operation[place],
            before[place],
            after[place],
        )


@njit_uncounted(inline="always")
def _spread(mine, final, side, start, stop):
    """Give a row one image number per column, if it has one for all of them."""
    if not mine["spread"]:
        for slot in range(start, stop):
            final[side, slot] = mine["whole"]
        mine["spread"] = True


@njit_uncounted(inline="always")
def _put(mine, final, side, start, stop, offsets, columns, chosen, image):
    """Set the columns that an image carries."""
    if chosen >= 0:
        first, last = offsets[chosen], offsets[chosen + 1]
        if last - first == stop - start:
            mine["whole"], mine["spread"] = image, False
        else:
            _spread(mine, final, side, start, stop)
            for place in range(first, last):
                final[side, start + columns[place]] = image


@njit_uncounted(inline="always")
def _write(row, mine, side, image, offsets, columns, start, stop, final):
    """Do one operation to a row; `image` is the number of its before image."""
    if row["operation"] == DELETE:
        mine["exists"] = False
    else:
        if not mine["exists"]:
            mine["exists"], mine["whole"], mine["spread"] = True, ABSENT_IMAGE, False
            _put(mine, final, side, start, stop, offsets, columns, row["before"], image)
        _put(mine, final, side, start, stop, offsets, columns, row["after"], image + 1)


@njit_uncounted()
def _keep_state(states, count, side, key, row, decision, slots, held, final):
    s_cluster, s_key, s_row, s_decision, s_exists, s_images = states
    mine, start, stop = held[side, key], slots[key], slots[key + 1]
    _spread(mine, final, side, start, stop)
    s_cluster[count], s_key[count], s_row[count], s_decision[count] = side, key, row, decision
    s_exists[count] = mine["exists"]
    for slot in range(start, stop):
        s_images[count, slot - start] = final[side, slot]
    return count + 1


@njit_uncounted()
def _carry(side, key, entry, operation, slots, table_of, masks, old, written, apply, marked, final, before, after):
    """Fill in the images of a reflected event, as the table's format logs it."""
    _, write_after, delete_before, base_before, all_before, base_after, all_after, _, _, _ = masks
    table, slot = table_of[key], slots[key]
    width = slots[key + 1] - slot
    if operation == UPDATE:
        mark_columns(masks, table, written, slot, width, apply, marked)
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


@njit_uncounted()
def _trace(
    applier_of, local_end, rows, begin, end, done, chosen_keys, exists, final, offsets, columns, slots, table_of, masks,
    d_apply, d_source, d_verdict, l_key, l_apply, l_operation, l_refresh, watching, room, held, stamps, old, written,
    marked, before, after, states,
):  # fmt: skip
    """
    Follow the rows of some keys through all takes, and fill in whether they are there and their images.

    Per cluster, `begin` and `end` are those of its rows, and `done` is the first that is left. Of each key `held` is
    what is known of it on each cluster and, where rows are reflected, `stamps` the take that touched it last; of each
    column `old` is what it held before that, and `written` the take that wrote it last. `marked` is room. Returns how
    many states there are.
    """
    keys = len(slots) - 1
    tracing = len(stamps) > 0
    reflects = masks[0]
    decision, entry, count = 0, 0, 0
    for apply in range(len(applier_of) + 2):
        # After the last take, what each cluster still does itself.
        last = apply >= len(applier_of)
        here = apply - len(applier_of) if last else np.int64(applier_of[apply])
        there = 1 - here
        stop_row = end[here] if last else begin[here] + local_end[apply]
        for number in range(done[here], stop_row):
            row = rows[number]
            key = row["key"]
            if not chosen_keys[key]:
                continue
            mine = held[here, key]
            _write(row, mine, here, 2 * number, offsets, columns, slots[key], slots[key + 1], final)
            if room and watching[key]:
                count = _keep_state(states, count, here, key, number - begin[here], -1, slots, held, final)
        done[here] = max(done[here], stop_row)
        started = decision
        while decision < len(d_apply) and d_apply[decision] == apply:
            source = d_source[decision]
            applied = d_verdict[decision] == APPLIED
            decision += 1
            if not applied:
                continue
            key = rows[begin[there] + source]["key"] if source >= 0 else l_key[-1 - source]
            if not chosen_keys[key]:
                continue
            mine, start, stop = held[here, key], slots[key], slots[key + 1]
            reflecting = tracing and reflects[here, table_of[key]]
            if reflecting and stamps[key] != apply:
                _spread(mine, final, here, start, stop)
                stamps[key] = apply
                for slot in range(start, stop):
                    old[slot] = final[here, slot]
            if source < 0:
                made = -1 - source
                if not mine["exists"]:
                    mine["whole"], mine["spread"] = ABSENT_IMAGE, False
                _spread(mine, final, here, start, stop)
                mine["exists"] = l_operation[made] != DELETE
                for column in range(stop - start):
                    if after[made, column] != ABSENT_IMAGE:
                        final[here, start + column] = after[made, column]
                        if reflecting:
                            written[start + column] = apply
                continue
            number = begin[there] + source
            row = rows[number]
            _write(row, mine, here, 2 * number, offsets, columns, start, stop, final)
            chosen = row["after"]
            if reflecting and chosen >= 0:
                for place in range(offsets[chosen], offsets[chosen + 1]):
                    written[start + columns[place]] = apply
        if room:
            for changed in range(started, decision):
                source = d_source[changed]
                key = rows[begin[there] + source]["key"] if source >= 0 else l_key[-1 - source]
                if d_verdict[changed] == APPLIED and watching[key]:
                    count = _keep_state(states, count, here, key, -1, changed, slots, held, final)
        while entry < len(l_key) and l_apply[entry] == apply:
            key = l_key[entry]
            start, stop = slots[key], slots[key + 1]
            _spread(held[here, key], final, here, start, stop)
            if not l_refresh[entry]:
                _carry(
                    here, key, entry, l_operation[entry], slots, table_of, masks, old, written, apply, marked,
                    final, before, after,
                )  # fmt: skip
            elif l_operation[entry] != DELETE:
                for slot in range(start, stop):
                    after[entry, slot - start] = final[here, slot]
            entry += 1
    for side in range(2):
        for key in range(keys):
            if not chosen_keys[key]:
                continue
            exists[side, key] = held[side, key]["exists"]
            _spread(held[side, key], final, side, slots[key], slots[key + 1])
    return count
