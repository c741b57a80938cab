"""
Keys as bytes: parts put one behind the other and taken apart again, and slices of bytes gathered.

A *slice* is where some bytes start and how many they are; a negative length is NULL.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ndb_formats.columnar.kernels.checksums import crc32
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.words import copy_eight, little_endian

__all__ = ["add_parts", "buckets_of", "copy_slices", "hex_text", "next_parts", "put_parts", "slices_of", "weigh_ascii"]

HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


@njit(cache=True, nogil=True)
def slices_of(data, base, cells, prefix, width, starts, lengths):
    """
    Find the bytes of values.

    Args:
        data: What they stand in. Shape (bytes,), uint8.
        base: What cells count from.
        cells: Where each value starts, at its length if it has one. Shape (rows,), uint32.
        prefix: Bytes of the length before each value; -1 for values of a fixed width.
        width: That width.
        starts: Filled in. Shape (rows,), int64.
        lengths: Filled in. Shape (rows,), int64.
    """
    for row in range(len(cells)):
        starts[row], lengths[row] = 0, -1
        if cells[row] != NULL_CELL:
            place = base + np.int64(cells[row])
            if prefix < 0:
                starts[row], lengths[row] = place, width
            else:
                length = np.int64(data[place]) if prefix == 1 else np.int64(little_endian(data, place, min(prefix, 5)))
                starts[row], lengths[row] = place + prefix, length


@njit(cache=True, nogil=True)
def weigh_ascii(data, starts, lowered, trimmed, special, places, out, lengths, done):
    """
    Find what ASCII text compares as, see `ndb_formats.schema.row_keys`.

    Args:
        data: What the texts stand in. Shape (bytes,), uint8.
        starts: Where each one starts. Shape (texts,), int64.
        lowered: Whether capitals compare as small letters.
        trimmed: Whether blanks at the end do not count.
        special: Whether brackets and the backslash compare as letters that are not ASCII.
        places: Where the weight of each goes. Shape (texts,), int64.
        out: Filled in. Shape (bytes,), uint8.
        lengths: Of the texts, -1 for NULL; of the weights where there are some. Shape (texts,), int64.
        done: Whether the weight was found; filled in. Shape (texts,), bool.
    """
    for text in range(len(starts)):
        length = lengths[text]
        if trimmed:
            while length > 0 and data[starts[text] + length - 1] == 0x20:
                length -= 1
        plain = True
        for place in range(length):
            byte = data[starts[text] + place]
            if byte >= 0x80 or (special and 0x5B <= byte <= 0x5D):
                plain = False
                break
            out[places[text] + place] = byte + 32 if lowered and 0x41 <= byte <= 0x5A else byte
        done[text] = plain
        if plain:
            lengths[text] = length


@njit(cache=True, nogil=True)
def add_parts(lengths, rows, sizes):
    """
    Add what the parts of keys take: a byte for NULL; a byte, four of length and the bytes of anything else.

    Args:
        lengths: Of the parts. Shape (parts,), int64.
        rows: To which key each part belongs. Shape (parts,), int64.
        sizes: Of the keys; changed. Shape (keys,), int64.
    """
    for part in range(len(rows)):
        sizes[rows[part]] += 1 if lengths[part] < 0 else 5 + lengths[part]


@njit(cache=True, nogil=True)
def put_parts(data, starts, lengths, rows, places, out):
    """
    Put one part of each key behind the parts before it.

    Args:
        data: What the parts stand in. Shape (bytes,), uint8.
        starts: Of the parts. Shape (parts,), int64.
        lengths: Of the parts. Shape (parts,), int64.
        rows: To which key each part belongs. Shape (parts,), int64.
        places: Where each key goes on; changed. Shape (keys,), int64.
        out: Filled in. Shape (bytes of all keys,), uint8.
    """
    for part in range(len(rows)):
        row, length = rows[part], lengths[part]
        to = places[row]
        if length < 0:
            out[to] = 0
            places[row] = to + 1
            continue
        out[to] = 1
        for byte in range(4):
            out[to + 1 + byte] = length >> (8 * byte) & 0xFF
        # Keys lie side by side in no certain order here, so nothing behind a part may be touched.
        for byte in range(length):
            out[to + 5 + byte] = data[starts[part] + byte]
        places[row] = to + 5 + length


@njit(cache=True, nogil=True)
def next_parts(data, places, ends, starts, lengths):
    """
    Take the next part of each key.

    Args:
        data: What the keys stand in. Shape (bytes,), uint8.
        places: Where each key goes on; changed. Shape (keys,), int64.
        ends: Where each key ends. Shape (keys,), int64.
        starts: Of the parts; filled in. Shape (keys,), int64.
        lengths: Of the parts; filled in. Shape (keys,), int64.

    Returns:
        Whether every key has such a part, and it is not NULL.
    """
    for key in range(len(places)):
        place = places[key]
        if place + 5 > ends[key] or data[place] == 0:
            return False
        starts[key], lengths[key] = place + 5, np.int64(little_endian(data, place + 1, 4))
        places[key] = starts[key] + lengths[key]
        if places[key] > ends[key]:
            return False
    return True


@njit(cache=True, nogil=True)
def copy_slices(data, starts, lengths, places, out):
    """
    Copy slices, each to its place.

    Args:
        data: What they stand in. Shape (bytes,), uint8.
        starts: Shape (slices,), int64.
        lengths: Shape (slices,), int64.
        places: Where each one goes. Shape (slices,), int64.
        out: Filled in. Shape (bytes,), uint8.
    """
    for number in range(len(starts)):
        place, to = starts[number], places[number]
        end = place + lengths[number]
        while place + 8 <= end:
            copy_eight(data, place, out, to)
            place += 8
            to += 8
        while place < end:
            out[to] = data[place]
            place += 1
            to += 1


@njit(cache=True, nogil=True)
def hex_text(data, starts, lengths, offsets, out):
    """
    Write slices as hexadecimal digits; where a slice is shorter than its text, zeros follow.

    Args:
        data: What they stand in. Shape (bytes,), uint8.
        starts: Shape (slices,), int64.
        lengths: Shape (slices,), int64.
        offsets: Of the texts. Shape (slices + 1,), int32.
        out: Filled in. Shape (bytes,), uint8.
    """
    for number in range(len(starts)):
        to = np.int64(offsets[number])
        for byte in range(lengths[number]):
            value = data[starts[number] + byte]
            out[to], out[to + 1] = HEX[value >> 4], HEX[value & 15]
            to += 2
        while to < offsets[number + 1]:
            out[to] = HEX[0]
            to += 1


@njit(cache=True, nogil=True)
def buckets_of(data, offsets, buckets, out):
    """
    Find the bucket of each identity.

    Args:
        data: Identities, one after the other. Shape (bytes,), uint8.
        offsets: Where each starts and the last one ends. Shape (rows + 1,), int64.
        buckets: How many there are.
        out: Filled in. Shape (rows,), int32.
    """
    for row in range(len(out)):
        out[row] = crc32(data, offsets[row], offsets[row + 1]) % np.uint64(buckets)
