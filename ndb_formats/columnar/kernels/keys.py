"""
Keys as bytes: made of their parts and split into them again.

A *slice* is the offset of some bytes and their number; a negative length is NULL.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import inlined, kernel
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.words import copy_eight, crc32, little_endian

LOWER = np.frombuffer(b"0123456789abcdef", np.uint8)  # hexadecimal digits
UPPER = np.frombuffer(b"0123456789ABCDEF", np.uint8)


@inlined
def _copy(data, start, length, out, to):
    """Copy a slice, and nothing beyond its end."""
    place = np.int64(0)
    while place + 8 <= length:
        copy_eight(data, start + place, out, to + place)
        place += 8
    while place < length:
        out[to + place] = data[start + place]
        place += 1


@kernel
def slices_of(data, base, cells, prefix, width, starts, lengths):
    """
    Find the slices of values.

    Args:
        data: The bytes of the chunk. Shape (bytes,), uint8.
        base: What cells count from.
        cells: See `rows`. Shape (rows,), uint32.
        prefix: Bytes of the length before each value; -1 for values of a fixed width.
        width: That width.
        starts: Filled in. Shape (rows,), int64.
        lengths: Filled in. Shape (rows,), int64.
    """
    for row in range(len(cells)):
        starts[row], lengths[row] = 0, -1
        if cells[row] != NULL_CELL:
            offset = base + np.int64(cells[row])
            if prefix < 0:
                starts[row], lengths[row] = offset, width
            else:
                length = (
                    np.int64(data[offset]) if prefix == 1 else np.int64(little_endian(data, offset, min(prefix, 5)))
                )
                starts[row], lengths[row] = offset + prefix, length


@kernel
def same_slices(data, starts, lengths, others, other_starts, other_lengths):
    """
    Return whether the slices of two arrays are the same, one by one.

    Args:
        data: An array of bytes. Shape (bytes,), uint8.
        starts: Of its slices. Shape (slices,), int64.
        lengths: Of its slices. Shape (slices,), int64.
        others: The other array. Shape (bytes,), uint8.
        other_starts: Of its slices. Shape (slices,), int64.
        other_lengths: Of its slices. Shape (slices,), int64.
    """
    for place in range(len(starts)):
        if lengths[place] != other_lengths[place]:
            return False
        for number in range(lengths[place]):
            if data[starts[place] + number] != others[other_starts[place] + number]:
                return False
    return True


@kernel
def weigh_ascii(data, starts, texts, pairs, trimmed, targets, out, lengths, done):
    """
    Compute the weights of ASCII texts, see `ndb_formats.types.collations.AsciiRules`.

    Args:
        data: The bytes of the texts. Shape (bytes,), uint8.
        starts: Offset of each text. Shape (texts,), int64.
        texts: What stands for each byte; 255 for other text than ASCII. Shape (256,), uint8.
        pairs: Whether a contraction starts with two bytes. Shape (128 * 128,) or (0,), uint8.
        trimmed: Whether trailing blanks are ignored.
        targets: Offset in `out` of each weight. Shape (texts,), int64.
        out: Filled in. Shape (bytes,), uint8.
        lengths: Of the texts, -1 for NULL; replaced by those of the weights. Shape (texts,), int64.
        done: Whether the weight was computed; filled in. Shape (texts,), bool.
    """
    for text in range(len(starts)):
        length = lengths[text]
        if trimmed:
            while length > 0 and data[starts[text] + length - 1] == 0x20:
                length -= 1
        start, to, plain = starts[text], targets[text], True
        for offset in range(length):
            weight = texts[data[start + offset]]
            if weight == 0xFF:
                plain = False
                break
            out[to + offset] = weight
        if plain and len(pairs):
            for offset in range(length - 1):
                if pairs[np.int64(data[start + offset]) * 128 + data[start + offset + 1]]:
                    plain = False
                    break
        done[text] = plain
        if plain:
            lengths[text] = length


@kernel
def add_parts(lengths, rows, sizes):
    """
    Add the sizes of parts to those of their keys: one byte for NULL, else five and the bytes of the part.

    Args:
        lengths: Of the parts. Shape (parts,), int64.
        rows: Number of the key that each part belongs to. Shape (parts,), int64.
        sizes: Of the keys; changed. Shape (keys,), int64.
    """
    for part in range(len(rows)):
        sizes[rows[part]] += 1 if lengths[part] < 0 else 5 + lengths[part]


@kernel
def put_parts(data, starts, lengths, rows, targets, out):
    """
    Append a part to each key: 0 for NULL, else 1, the length in four bytes, and the bytes.

    Args:
        data: The bytes of the parts. Shape (bytes,), uint8.
        starts: Of the parts. Shape (parts,), int64.
        lengths: Of the parts. Shape (parts,), int64.
        rows: Number of the key that each part belongs to. Shape (parts,), int64.
        targets: Offset in `out` at which each key continues; changed. Shape (keys,), int64.
        out: Filled in. Shape (bytes of all keys,), uint8.
    """
    for part in range(len(rows)):
        row, length = rows[part], lengths[part]
        to = targets[row]
        if length < 0:
            out[to] = 0
            targets[row] = to + 1
            continue
        out[to] = 1
        for byte in range(4):
            out[to + 1 + byte] = length >> (8 * byte) & 0xFF
        # The next key may be complete already, so nothing may be written beyond the end of the part.
        _copy(data, starts[part], length, out, to + 5)
        targets[row] = to + 5 + length


@kernel
def next_parts(data, offsets, ends, starts, lengths):
    """
    Read the next part of each key.

    Args:
        data: The keys. Shape (bytes,), uint8.
        offsets: Where each key continues; changed. Shape (keys,), int64.
        ends: Where each key ends. Shape (keys,), int64.
        starts: Of the parts; filled in. Shape (keys,), int64.
        lengths: Of the parts; filled in. Shape (keys,), int64.

    Returns:
        Whether every key has such a part and none of them is NULL.
    """
    for key in range(len(offsets)):
        offset = offsets[key]
        if offset + 5 > ends[key] or data[offset] == 0:
            return False
        starts[key], lengths[key] = offset + 5, np.int64(little_endian(data, offset + 1, 4))
        offsets[key] = starts[key] + lengths[key]
        if offsets[key] > ends[key]:
            return False
    return True


@kernel
def copy_slices(data, starts, lengths, targets, out):
    """
    Copy slices.

    Args:
        data: Their bytes. Shape (bytes,), uint8.
        starts: Shape (slices,), int64.
        lengths: Shape (slices,), int64.
        targets: Offset in `out` of each one. Shape (slices,), int64.
        out: Filled in. Shape (bytes,), uint8.
    """
    for number in range(len(starts)):
        _copy(data, starts[number], lengths[number], out, targets[number])


@kernel
def slice_offsets(lengths, rows, offsets, targets):
    """
    Find where slices are copied to, one after the other; a negative length takes no bytes.

    Args:
        lengths: Of the slices of all rows. Shape (all rows,), int64.
        rows: The rows whose slices are copied, in order. Shape (rows,), int64.
        offsets: Where each of them begins, and where the last one ends; filled in. Shape (rows + 1,), int64.
        targets: The same by row; filled in for `rows`. Shape (all rows,), int64.

    Returns:
        How many of them have a negative length.
    """
    to = negative = np.int64(0)
    for number in range(len(rows)):
        row = rows[number]
        offsets[number] = targets[row] = to
        to += max(lengths[row], 0)
        negative += lengths[row] < 0
    offsets[len(rows)] = to
    return negative


@kernel
def copy_rows(data, chosen, starts, lengths, targets, out):
    """
    Copy the slices of rows, in the order of the rows, so that every byte enters the cache once.

    Args:
        data: Their bytes. Shape (bytes,), uint8.
        chosen: Whether the slice of each row is in `data`. Shape (rows,), bool; or (0,) if all are.
        starts: Shape (rows,), int64.
        lengths: Negative for none. Shape (rows,), int64.
        targets: Offset in `out` of each one; -1 for one that is not copied. Shape (rows,), int64.
        out: Filled in. Shape (bytes,), uint8.
    """
    for row in range(len(starts)):
        if targets[row] >= 0 and (len(chosen) == 0 or chosen[row]):
            _copy(data, starts[row], lengths[row], out, targets[row])


@kernel
def hex_text(data, starts, lengths, digits, offsets, out):
    """
    Write slices as hexadecimal digits, padded with zeros to the length of their texts.

    Args:
        data: Their bytes. Shape (bytes,), uint8.
        starts: Shape (slices,), int64.
        lengths: Shape (slices,), int64.
        digits: `LOWER` or `UPPER`.
        offsets: Of the texts. Shape (slices + 1,), int32.
        out: Filled in. Shape (bytes,), uint8.
    """
    for number in range(len(starts)):
        to = np.int64(offsets[number])
        for byte in range(lengths[number]):
            value = data[starts[number] + byte]
            out[to], out[to + 1] = digits[value >> 4], digits[value & 15]
            to += 2
        while to < offsets[number + 1]:
            out[to] = digits[0]
            to += 1


@kernel
def buckets_of(data, offsets, buckets, out):
    """
    Compute the bucket of each identity: its CRC32 modulo the number of buckets.

    Args:
        data: The identities, concatenated. Shape (bytes,), uint8.
        offsets: Start of each, and end of the last one. Shape (rows + 1,), int64.
        buckets: Number of buckets.
        out: Filled in. Shape (rows,), int32.
    """
    for row in range(len(out)):
        out[row] = crc32(data, offsets[row], offsets[row + 1]) % np.uint64(buckets)
