"""
Lines put together from pieces: one value of each row at a time, with the same text before and after it in every row.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import inlined, interpreted_by, kernel
from ndb_formats.columnar.kernels.words import copy_eight

__all__ = ["add_sizes", "put_pieces"]


def _add_sizes(lines, offsets, missing, around, instead, sizes):
    found = around + np.diff(offsets.astype(np.int64))
    np.add.at(sizes, lines, np.where(missing, instead, found) if len(missing) else found)


@interpreted_by(_add_sizes)
@kernel
def add_sizes(lines, offsets, missing, around, instead, sizes):
    """
    Add the bytes of a piece of each line.

    Args:
        lines: The line of each value. Shape (values,), int64.
        offsets: Offsets of the values. Shape (values + 1,), int32.
        missing: Whether each value is missing; empty if none is. bool.
        around: Bytes before and after a value.
        instead: Bytes in place of a missing value.
        sizes: Added to. Shape (lines,), int64.
    """
    for number in range(len(lines)):
        if len(missing) and missing[number]:
            sizes[lines[number]] += instead
        else:
            sizes[lines[number]] += around + np.int64(offsets[number + 1]) - np.int64(offsets[number])


@inlined
def _copy(data, start, end, out, to):
    # Nothing after the end may be overwritten: the next line may be there already.
    while start + 8 <= end:
        copy_eight(data, start, out, to)
        start += 8
        to += 8
    while start < end:
        out[np.uint64(to)] = data[np.uint64(start)]
        start += 1
        to += 1
    return to


def _put_pieces(values, before, after, instead, targets, out):
    lines, offsets, data, missing = values
    head, tail, absent, text = before.tobytes(), after.tobytes(), instead.tobytes(), data.tobytes()
    places, ends, target = offsets.tolist(), targets.tolist(), memoryview(out)
    gone = missing.tolist() if len(missing) else [False] * len(lines)
    for number, line in enumerate(lines.tolist()):
        piece = absent if gone[number] else head + text[places[number] : places[number + 1]] + tail
        to = ends[line]
        ends[line] = to + len(piece)
        target[to : to + len(piece)] = piece
    targets[:] = ends


@interpreted_by(_put_pieces)
@kernel
def put_pieces(values, before, after, instead, targets, out):
    """
    Write a piece of each line.

    Args:
        values: The line of each, offsets, bytes (uint8), and whether each is missing; as for `add_sizes`.
        before: Bytes before a value. uint8.
        after: Bytes after it. uint8.
        instead: Bytes in place of a missing value, before and after included. uint8.
        targets: Where each line goes on in `out`; moved on. Shape (lines,), int64.
        out: Filled in. uint8.
    """
    lines, offsets, data, missing = values
    for number in range(len(lines)):
        line = lines[number]
        to = targets[line]
        if len(missing) and missing[number]:
            to = _copy(instead, 0, len(instead), out, to)
        else:
            to = _copy(before, 0, len(before), out, to)
            to = _copy(data, np.int64(offsets[number]), np.int64(offsets[number + 1]), out, to)
            to = _copy(after, 0, len(after), out, to)
        targets[line] = to
