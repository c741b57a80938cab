"""
The rows of a decided bucket as they stood: before an epoch apply, or the last time before that.

A row stands where nothing of it is on its way: whatever was made before had been received before, and no later epoch
was judged, or can have been, as the row was before one of these changes. So the part of the bucket that comes before is
decided by itself, and the rows at its end are those that are wanted. That does not change what is decided of the rest:
the kernels judge each key alone, and which transactions are in conflict is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.columnar.image_values import ImageReader, ImageValues
from conflict.engine.columnar.setups import rules_of
from conflict.engine.columnar.standing_rows import WRITER, StandingRows
from conflict.engine.columnar.writing.winners import last_written
from conflict.engine.kernels.arrays import Bool, BucketRows, EpochApplies, Int64, RowMoments
from conflict.engine.kernels.fold import fold
from conflict.engine.kernels.provenance import ABSENT_IMAGE
from conflict.engine.kernels.records import packed_changes
from conflict.engine.kernels.settled import settle
from conflict.history.shown_effects import bitmap_of
from conflict.history.timeline import Position
from ndb_formats.columnar.kernel import each_read_only
from ndb_formats.events.row_image import RowLayout

_NEVER = np.iinfo(np.int64).max


def made_before(applies: EpochApplies, side: int, epoch: np.ndarray, group: np.ndarray) -> Int64:
    """
    Return before which epoch apply of a cluster own changes of it were made; the number of all applies after the last.

    Args:
        applies: All epoch applies in order.
        side: Number of the cluster.
        epoch: Own epoch of each change. uint64, shape (changes,).
        group: Its group. int32.
    """
    mine = np.flatnonzero(applies.applier == side)
    epochs = applies.epoch[mine]
    # An epoch apply with a trace is its group; one without follows its group.
    follows = applies.group[mine].astype(np.int64) + ~applies.traced[mine]
    begins = np.append(True, epochs[1:] != epochs[:-1])[: len(epochs)]
    distinct, number = epochs[begins], np.cumsum(begins) - 1
    at = np.searchsorted(distinct, epoch)
    there = np.zeros(len(at), np.bool_)
    there[at < len(distinct)] = distinct[at[at < len(distinct)]] == epoch[at < len(distinct)]
    places = (2 * number + 1) * _GROUPS + follows
    found = np.searchsorted(places, (2 * at + there) * _GROUPS + group, "right")
    return np.asarray(np.append(mine, len(applies))[found])


_GROUPS = 1 << 32  # more than an epoch has


@attrs.frozen
class Place:
    """
    The latest place at which rows are to stand.

    Attributes:
        before: Before the epoch apply of that number; the number of all for the end.
        begun: Per cluster, the own position after which its applier can have begun with an epoch that it applied later.
    """

    before: int
    begun: tuple[Position, Position]


def settled_at(result: FoldedBucket, latest: Place) -> tuple[Int64, tuple[Int64, Int64]]:
    """
    Return the last place at which each row was settled, and where own changes were made.

    Args:
        result: A decided bucket.
        latest: The latest place.

    Returns:
        The place of each row, shape (keys,); and per cluster that of each own change, shape (changes,).
    """
    applies, decisions, logged = result.applies, result.folded.decisions, result.folded.logged
    parts, own = list[tuple[np.ndarray, Int64, Int64]](), list[Int64]()
    for side, rows in enumerate(result.bucket.rows):
        received = np.full(len(rows), _NEVER)
        mine = np.flatnonzero((decisions.source >= 0) & (applies.applier[decisions.apply] == 1 - side))[::-1]
        received[decisions.source[mine]] = decisions.apply[mine]  # the first one of a change stays
        following = made_before(applies, side, rows.epoch, rows.group)
        made = np.minimum(following, received)
        # What was made before a change that was received had been made by then, too, though nobody received it.
        order = np.lexsort((np.arange(len(rows)), rows.group, rows.epoch))
        made[order] = np.minimum.accumulate(made[order][::-1])[::-1]
        dropped = _dropped(result, 1 - side)[result.bucket.key_table[rows.key]]
        ends = np.where(dropped, made, received)
        # An epoch applied later may have been judged before the change: open until its own applier's next commit.
        is_open = (following >= latest.before) & _after(rows, latest.begun[side])
        parts.append((rows.key, made, np.where(is_open, np.maximum(ends, following), ends)))
        own.append(made)
    parts += _judged_before(result, own)
    received = np.full(len(logged), _NEVER)
    mine = np.flatnonzero(decisions.source < 0)[::-1]
    received[-1 - decisions.source[mine]] = decisions.apply[mine]
    for side in (0, 1):
        sent = np.flatnonzero(logged.cluster == side)
        dropped = _dropped(result, 1 - side)[result.bucket.key_table[logged.key[sent]]]
        made = logged.apply[sent].astype(np.int64)
        parts.append((logged.key[sent], made, np.where(dropped, made, received[sent])))
    key, made, received = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(-made, kind="stable")
    at = np.full(len(result.bucket.key_table), latest.before, np.int64)
    settle(*each_read_only(key[order].astype(np.int32), made[order], received[order]), at)
    return at, (own[0], own[1])


def _judged_before(result: FoldedBucket, made: Sequence[Int64]) -> list[tuple[np.ndarray, Int64, Int64]]:
    """
    Return own changes before which epochs were judged: the row, where each was made, and the epoch apply.

    `made`: per cluster, where its own changes were made. Shape (changes,).
    """
    found, moments = [], result.applies.moments.of_bucket(result.bucket.number)
    for side, rows in enumerate(result.bucket.rows):
        mine = moments.chosen(result.applies.applier[moments.apply] == side)
        for apply, key, epoch, group in zip(mine.apply, mine.key, mine.epoch, mine.group, strict=True):
            later = (rows.key == key) & _after(rows, (int(epoch), int(group))) & (made[side] <= apply)
            found.append((rows.key[later], made[side][later], np.full(int(later.sum()), apply, np.int64)))
    return found


def _after(rows: BucketRows, position: Position) -> Bool:
    """Return which own changes come after an own position. Shape (changes,)."""
    epoch, group = np.uint64(position[0]), position[1]
    return np.asarray((rows.epoch > epoch) | ((rows.epoch == epoch) & (rows.group > group)))


def _dropped(result: FoldedBucket, applier: int) -> Bool:
    """Return the tables whose changes an applier drops. Shape (tables,)."""
    cluster = result.clusters[applier]
    return np.array([cluster.drops(table) for table in range(len(cluster.setups))], np.bool_)


@attrs.frozen(eq=False)
class Stood:
    """
    Rows as they stood, and what came after.

    Attributes:
        rows: The rows.
        following: Per cluster, the first own epoch of a change, or an epoch apply, that came after; None for none.
        moments: When later epochs were judged, up to the latest place.
    """

    rows: StandingRows
    following: tuple[int | None, int | None]
    moments: RowMoments


def stood_before(result: FoldedBucket, latest: Place) -> Stood:
    """
    Return the rows of a decided bucket as they stood at a place, or earlier.

    Args:
        result: The bucket, with its images.
        latest: The place.

    Raises:
        FormatError: A value cannot be read.
    """
    at, made = settled_at(result, latest)
    bucket, standing = result.bucket, result.bucket.standing or StandingRows.none(result.bucket.key_table)
    kept = [place < at[rows.key] for place, rows in zip(made, bucket.rows, strict=True)]
    changes = tuple(each.of(chosen) for each, chosen in zip(bucket.changes, kept, strict=True))
    images = None if bucket.images is None else attrs.evolve(bucket.images, changes=changes, columns={})
    part = attrs.evolve(bucket, changes=changes, images=images, kept=None)
    moments = result.applies.moments.of_bucket(bucket.number)
    had_come = moments.apply < at[moments.key]
    folded = fold(
        result.applies,
        packed_changes(part.rows),
        rules_of(result.clusters),
        result.conflicts,
        part.key_table,
        candidates=False,
        moments=moments.chosen(had_come),
        standing=standing.states,
    )
    ended = FoldedBucket(part, result.clusters, result.applies, result.conflicts, folded)
    epoch, group = standing.epoch.copy(), standing.group.copy()
    following = list[int | None]()
    for side, (rows, chosen) in enumerate(zip(bucket.rows, kept, strict=True)):
        own = np.flatnonzero(chosen)  # in order: the last one of a key stays
        epoch[rows.key[own], side], group[rows.key[own], side] = rows.epoch[own], rows.group[own]
        # Changes, and work of the applier, from the first place on at which a row stands.
        applied = np.flatnonzero(result.applies.applier == side)
        first = applied[np.searchsorted(applied, at.min(initial=latest.before)) :][:1]
        later = np.concatenate([rows.epoch[~chosen], result.applies.epoch[first]])
        following.append(int(later.min()) if len(later) else None)
    written = [last_written(ended, side) for side in range(len(result.clusters))]
    writer = {name: np.stack([each[name] for each in written], axis=1) for name in WRITER}
    image, found, carried, bitmaps = _images(ended)
    stood = StandingRows(folded.states, epoch, group, writer, image, found, carried, bitmaps)
    return Stood(stood, (following[0], following[1]), moments.chosen(~had_come & (moments.apply < latest.before)))


def _images(ended: FoldedBucket) -> tuple[Int64, pa.BinaryArray, np.ndarray, list[bytes]]:
    """Return `image`, `images`, `carried` and `bitmaps` of `StandingRows`."""
    bucket, final = ended.bucket, ended.final
    image = np.full(final.exists.shape[::-1], -1, np.int64)
    images, carried, bitmaps = list[pa.Array](), list[np.ndarray](), dict[bytes, int]()
    reader, count = ImageReader(bucket), 0
    for table, layout in enumerate(bucket.layouts):
        for columns, key, side, numbers in _alike(ended, table):
            assert layout is not None
            kept, which = _distinct(key, side, numbers)
            distinct = numbers[kept]
            image[key, side] = count + which
            for batch, values in reader.in_batches(table, len(distinct), distinct.__getitem__):
                images.append(_joined(values, layout, columns, distinct[batch]))
            carried.append(np.full(len(distinct), bitmaps.setdefault(bitmap_of(columns.tolist()), len(bitmaps))))
            count += len(distinct)
    nothing = pa.array([], pa.binary())
    sets = np.concatenate([np.zeros(0, np.int32), *carried]).astype(np.int32)
    return image, pa.concat_arrays([nothing, *images]), sets, list(bitmaps)


def _alike(ended: FoldedBucket, table: int) -> Iterator[tuple[Int64, Int64, Int64, Int64]]:
    """
    Yield the rows of a table that are there, those with the same columns together.

    Yields:
        The columns that the binlogs show; key and cluster of each row, shape (rows,); and the number of the image that
        each of its columns comes from, shape (rows, columns).
    """
    bucket, final = ended.bucket, ended.final
    width = len(bucket.numbers.tables[table].columns)
    side, key = np.nonzero(final.exists & (bucket.key_table == table))
    numbers = final.images[side[:, None], bucket.slots[key][:, None] + np.arange(width)]
    shown = numbers != ABSENT_IMAGE
    if (shown == shown[:1]).all():  # usual, and quicker to see than to find out
        patterns, which = shown[:1], np.zeros(len(shown), np.int64)
    else:
        patterns, which = np.unique(shown, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        mine, columns = np.flatnonzero(which.ravel() == number), np.flatnonzero(pattern)
        yield columns, key[mine], side[mine], numbers[mine][:, columns]


def _distinct(key: Int64, side: Int64, numbers: Int64) -> tuple[Bool, Int64]:
    """
    Return which rows need an image of their own, and the image of each: a row that is alike on both clusters has one.

    Args:
        key: The key of each row, in order for each cluster. Shape (rows,).
        side: Its cluster, in order.
        numbers: The images that its columns come from. Shape (rows, columns).
    """
    count = int(np.searchsorted(side, 1))
    kept, twin = np.ones(len(key), np.bool_), np.arange(len(key))
    at = np.searchsorted(key[:count], key[count:])
    there = np.flatnonzero(at < count)
    there = there[key[at[there]] == key[count + there]]
    there = there[(numbers[at[there]] == numbers[count + there]).all(axis=1)]
    kept[count + there], twin[count + there] = False, at[there]
    return kept, (np.cumsum(kept) - 1)[twin]


def _joined(values: ImageValues, layout: RowLayout, columns: Int64, numbers: Int64) -> pa.Array:
    """
    Return images of rows whose columns come from several images.

    Args:
        values: Those images.
        layout: That of the table.
        columns: The columns, in order.
        numbers: The image that each of them comes from. Shape (rows, columns).
    """
    parts, nulls = list[pa.Array](), np.zeros((len(numbers), -(-len(columns) // 8) * 8), np.bool_)
    for place, column in enumerate(columns.tolist()):
        found = values.payloads(column, numbers[:, place]).all_rows()
        nulls[:, place] = found.is_null().to_numpy(zero_copy_only=False)
        codec = layout.codecs[column]
        if codec.prefixed:
            parts.append(_prefixes(pc.fill_null(pc.binary_length(found), 0).to_numpy(), nulls[:, place], codec.width))
        parts.append(pc.fill_null(found, b""))
    bits = np.packbits(nulls, axis=1, bitorder="little")
    return pc.binary_join_element_wise(_fixed(bits), *parts, b"")


def _prefixes(lengths: np.ndarray, nulls: Bool, width: int) -> pa.Array:
    """Return the length of each value in so many bytes; nothing for NULL."""
    prefixes = _fixed(lengths.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :width])
    return pc.if_else(pa.array(nulls), pa.scalar(b"", pa.binary()), prefixes)


def _fixed(data: np.ndarray) -> pa.Array:
    """Return rows of bytes, shape (rows, bytes), as binary values."""
    rows, width = data.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * width
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.BinaryArray.from_buffers(pa.binary(), rows, buffers)
