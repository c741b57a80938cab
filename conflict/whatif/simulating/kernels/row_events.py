"""
Rows of a simulation to the bytes of row events, packed into events as a server packs them.

A row goes into the event before it if that has the same columns, author and transaction, and does not become too long
(see `ndb_formats.writing.event_stream`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from conflict.engine.kernels.arrays import Int32, Int64, UInt64
from ndb_formats.columnar.kernel import inlined, interpreted_by, kernel
from ndb_formats.columnar.kernels.words import crc32

Bytes = npt.NDArray[np.uint8]
HEADER, CHECKSUM = 19, 4
TYPE_AT, SERVER_AT, SIZE_AT, POSITION_AT = 4, 5, 9, 13
FLAGS_AT = 6  # of the body of a rows event
TRANSACTION_AT = 15  # of the body: after table id, flags, length of the extra row info, and what precedes the id in it
STATEMENT_END = 1


class Templates(NamedTuple):
    """
    The forms of row events, each with all but its rows and its transaction id. Shape (templates,) unless said.

    Attributes:
        heads: Bodies up to the first row, one after the other. Shape (bytes,).
        starts: Where each begins; one more at the end.
        types: Type codes.
        before: Columns of the before image, as a set of bits by ordinal.
        after: The same of the after image.
        nullable: Columns in which 0 is NULL, as a set of bits.
        widths: Bytes of each column. Shape (templates, ordinals).
    """

    heads: Bytes
    starts: Int64
    types: Bytes
    before: UInt64
    after: UInt64
    nullable: UInt64
    widths: Int32


class RowsToPack(NamedTuple):
    """
    Rows with their forms. Shape (rows,) unless said.

    Attributes:
        form: Number of the template; -1 for a row that is not logged.
        server_id: Server id of the author.
        transaction: Transaction id.
        before: Rows before the change, by ordinal. Shape (rows, ordinals).
        after: Rows after it.
        templates: The forms.
    """

    form: Int32
    server_id: Int64
    transaction: UInt64
    before: UInt64
    after: UInt64
    templates: Templates


def _put_number(data, place, value, width):
    start, size = int(place), int(width)
    data[start : start + size] = np.frombuffer(int(value).to_bytes(max(size, 8), "little"), np.uint8, size)


@interpreted_by(_put_number)
@inlined
def _put(data, place, value, width):
    """Write a number, little-endian."""
    for byte in range(width):
        data[place + byte] = np.uint8(value >> np.uint64(8 * byte) & np.uint64(0xFF))


@kernel
def _put_image(data, place, values, columns, nullable, widths):
    """Write an image: a bit per column for NULL, then the values; return the place after it."""
    count = 0
    for ordinal in range(len(widths)):
        count += columns >> np.uint64(ordinal) & np.uint64(1) != 0
    nulls, place = place, place + (count + 7) // 8
    for byte in range(nulls, place):
        data[byte] = 0
    number = 0
    for ordinal in range(len(widths)):
        bit = np.uint64(1) << np.uint64(ordinal)
        if not columns & bit:
            continue
        if nullable & bit and not values[ordinal]:
            data[nulls + number // 8] |= np.uint8(1 << number % 8)
        else:
            _put(data, place, values[ordinal], widths[ordinal])
            place += widths[ordinal]
        number += 1
    return place


@kernel
def pack_rows(start, stop, rows, limit, timestamp, data):
    """
    Write the row events of an epoch, with room for positions and checksums.

    Args:
        start: Its first row.
        stop: One past its last one.
        rows: `RowsToPack`.
        limit: Bytes of a body that gets no further row.
        timestamp: Seconds since 1970, of the headers.
        data: Filled in; it has room for every row in an event of its own.

    Returns:
        The number of bytes.
    """
    templates, form = rows.templates, rows.form
    place, begun, previous = 0, -1, 0
    for row in range(start, stop):
        shape = form[row]
        if shape < 0:
            continue
        joins = begun >= 0 and form[previous] == shape and rows.server_id[previous] == rows.server_id[row]
        joins = joins and rows.transaction[previous] == rows.transaction[row]
        # An event that is not joined moves its row behind a head.
        head, first = templates.starts[shape], place
        place = _put_images(data, place, rows.before[row], rows.after[row], shape, templates)
        if not joins or place - begun - HEADER > limit:
            size = place - first
            at = first + CHECKSUM if begun >= 0 else first
            body = at + HEADER
            images = body + templates.starts[shape + 1] - head
            for byte in range(size - 1, -1, -1):
                data[images + byte] = data[first + byte]
            if begun >= 0:
                _put(data, begun + SIZE_AT, np.uint64(at - begun), 4)
            begun = at
            _put(data, at, np.uint64(timestamp), 4)
            data[at + TYPE_AT] = templates.types[shape]
            _put(data, at + SERVER_AT, np.uint64(rows.server_id[row]), 4)
            _put(data, at + SIZE_AT, np.uint64(0), HEADER - SIZE_AT)
            data[body:images] = templates.heads[head : templates.starts[shape + 1]]
            _put(data, body + TRANSACTION_AT, rows.transaction[row], 8)
            place = images + size
        previous = row
    if begun < 0:
        return 0
    data[begun + HEADER + FLAGS_AT] |= STATEMENT_END
    _put(data, begun + SIZE_AT, np.uint64(place + CHECKSUM - begun), 4)
    return place + CHECKSUM


@kernel
def packed_bytes(starts, rows, limit, data):
    """Return the bytes of the row events of epochs; `starts` has the first row of each, and one more at the end."""
    total = 0
    for number in range(len(starts) - 1):
        total += pack_rows(starts[number], starts[number + 1], rows, limit, 0, data)
    return total


@inlined
def _put_images(data, place, before, after, shape, templates):
    nullable, widths = templates.nullable[shape], templates.widths[shape]
    place = _put_image(data, place, before, templates.before[shape], nullable, widths)
    return _put_image(data, place, after, templates.after[shape], nullable, widths)


@kernel
def seal_events(data, position):
    """
    Give events their positions and checksums.

    Args:
        data: Events, each with room for a checksum.
        position: Position of the first one in its file.
    """
    start = np.int64(0)
    while start < len(data):
        size = np.int64(0)
        for byte in range(4):
            size |= np.int64(data[start + SIZE_AT + byte]) << 8 * byte
        end = start + size
        _put(data, start + POSITION_AT, np.uint64(position + end) & np.uint64(0xFFFFFFFF), 4)
        _put(data, end - CHECKSUM, np.uint64(crc32(data, start, end - CHECKSUM)), CHECKSUM)
        start = end
