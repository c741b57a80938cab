"""
Values as text, written into the data buffer of an Arrow array, and lines put together from such pieces.

The first functions take cells as in `values`, the next ones text that is there already. A line has one value of each
row at a time, with the same text before and after it in every row.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import inlined, interpreted_by, kernel, wrapping_difference
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.words import big_endian, copy_eight, little_endian, load64, put_digits

MAX_INTEGER_TEXT = 44  # a signed number of 20 characters, and an unsigned one in brackets after a blank
ZERO, MINUS, POINT, BLANK, OPEN, CLOSE, BACKSLASH = (ord(each) for each in "0-. ()\\")
TEN = np.uint64(10)
POWERS = np.array([10**digits for digits in range(10)], np.uint64)
BYTES_FOR_DIGITS = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.int64)
LOWER = np.frombuffer(b"0123456789abcdef", np.uint8)
HIGH_BITS, ONES, LOW_LIMIT = np.uint64(0x8080808080808080), np.uint64(0x0101010101010101), np.uint64(0x2020202020202020)
BACKSLASHES = np.uint64(BACKSLASH) * ONES


@inlined
def _padded(out, to, number, size):
    for offset in range(to + size - 1, to - 1, -1):
        out[np.uint64(offset)] = ZERO + number % TEN
        number //= TEN
    return to + size


def _integer_text(data, base, cells, width, signed, offsets, out):
    size, texts = int(width), []
    for cell in cells.tolist():
        text = ""
        if cell != NULL_CELL:
            number = int.from_bytes(data[base + cell : base + cell + size].tobytes(), "little")
            negative = signed and number >> 8 * size - 1
            text = f"{number - (1 << 8 * size)} ({number})" if negative else str(number)
        texts.append(text)
    joined = "".join(texts).encode()
    np.cumsum([0, *map(len, texts)], out=offsets)
    out[: len(joined)] = np.frombuffer(joined, np.uint8)
    return len(joined)


@interpreted_by(_integer_text)
@kernel
def integer_text(data, base, cells, width, signed, offsets, out):
    """
    Write integers; a negative one is followed by what it is without a sign, as `mysqlbinlog` prints it.

    `out` has `MAX_INTEGER_TEXT` bytes for each.
    """
    to = np.int64(0)
    offsets[0] = 0
    shift = np.uint64(64 - 8 * width)
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            word = np.uint64(little_endian(data, base + np.int64(cells[row]), width))
            number = np.int64(word << shift) >> np.int64(shift)
            if signed and number < 0:
                out[to] = MINUS
                to = put_digits(out, to + 1, wrapping_difference(np.uint64(0), np.uint64(number)))
                out[to], out[to + 1] = BLANK, OPEN
                to = put_digits(out, to + 2, word)
                out[to] = CLOSE
                to += 1
            else:
                to = put_digits(out, to, word)
        offsets[row + 1] = to
    return to


@kernel
def decimal_text(data, base, cells, whole, part, offsets, out):
    """
    Write DECIMAL values.

    Args:
        data: See `values`.
        base: See `values`.
        cells: See `values`.
        whole: Digits of each group before the point. int64.
        part: Digits of each group after it. int64.
        offsets: Filled in. Shape (rows + 1,), int32.
        out: Filled in; 3 bytes for each value and 9 for each group of it. uint8.

    Returns:
        Bytes written; -1 if a group holds more than its digits allow.
    """
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            offset = base + np.int64(cells[row])
            negative = data[offset] < 0x80
            flip = np.uint64(0xFFFFFFFF if negative else 0)
            first = whole[0] if len(whole) else part[0]
            sign = np.uint64(0x80) << np.uint64(8 * (BYTES_FOR_DIGITS[first] - 1))
            if negative:
                out[to] = MINUS
                to += 1
            leading = True
            for place in range(len(whole) + len(part)):
                digits = whole[place] if place < len(whole) else part[place - len(whole)]
                size = BYTES_FOR_DIGITS[digits]
                group = np.uint64(big_endian(data, offset, size)) ^ flip >> np.uint64(32 - 8 * size) ^ sign
                sign = np.uint64(0)
                offset += size
                if group >= POWERS[digits]:
                    return np.int64(-1)
                if place == len(whole):
                    if leading:
                        out[to] = ZERO
                        to += 1
                    out[to] = POINT
                    to += 1
                    leading = False
                if not leading:
                    to = _padded(out, to, group, digits)
                elif group:
                    to = put_digits(out, to, group)
                    leading = False
            if leading:
                out[to] = ZERO
                to += 1
        offsets[row + 1] = to
    return to


@kernel
def seconds_text(data, base, cells, precision, offsets, out):
    """Write TIMESTAMP values as seconds since 1970; `out` has 20 bytes for each. Returns as `decimal_text`."""
    to = np.int64(0)
    offsets[0] = 0
    size = (precision + 1) // 2
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            offset = base + np.int64(cells[row])
            to = put_digits(out, to, np.uint64(big_endian(data, offset, 4)))
            if size:
                stored = np.uint64(big_endian(data, offset + 4, size))
                if stored >= POWERS[2 * size]:
                    return np.int64(-1)
                out[to] = POINT
                _padded(out, to + 1, stored, 2 * size)
                to += 1 + precision
        offsets[row + 1] = to
    return to


@inlined
def _special(word, quotes):
    """Return whether one of eight bytes is a control character, a backslash or the quote."""
    quote, slash = word ^ quotes, word ^ BACKSLASHES
    found = (
        wrapping_difference(word, LOW_LIMIT)
        | wrapping_difference(quote, ONES) & ~quote
        | wrapping_difference(slash, ONES) & ~slash
    )
    return found & ~word & HIGH_BITS


@kernel
def needs_escape(text, size, quote, escapes):
    """Return whether any byte of text has an escape; see `escape`."""
    quotes = np.uint64(quote) * ONES
    at = np.int64(0)
    while at + 8 <= size:
        if _special(load64(text, at), quotes):
            return True
        at += 8
    while at < size:
        if escapes[text[at]]:
            return True
        at += 1
    return False


@kernel
def escape(text, offsets, quote, escapes, prefix, new_offsets, out):
    """
    Write text with escapes.

    Args:
        text: The text, and at least 8 bytes more. uint8.
        offsets: Its offsets. Shape (rows + 1,), int32.
        quote: The quote, which is escaped.
        escapes: The letter after a backslash for each byte: 0 for none, 1 for `prefix` and two digits. Shape (256,).
        prefix: What comes after the backslash of a byte without a letter. uint8.
        new_offsets: Filled in. Shape (rows + 1,), int32.
        out: Filled in; for each byte as many as the longest escape has, and 8. uint8.

    Returns:
        Bytes written; -1 if they are more than the offsets can hold.
    """
    quotes = np.uint64(quote) * ONES
    to = np.int64(0)
    new_offsets[0] = 0
    for row in range(len(offsets) - 1):
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        while at < end:
            if not _special(load64(text, at), quotes):
                copy_eight(text, at, out, to)
                step = min(8, int(end - at))
                at += step
                to += step
                continue
            for _ in range(min(8, int(end - at))):
                byte = text[at]
                at += 1
                letter = escapes[byte]
                if letter == 0:
                    out[to] = byte
                    to += 1
                    continue
                out[to] = BACKSLASH
                to += 1
                if letter != 1:
                    out[to] = letter
                    to += 1
                    continue
                for digit in prefix:
                    out[to] = digit
                    to += 1
                out[to], out[to + 1] = LOWER[byte >> 4], LOWER[byte & 15]
                to += 2
        if to > 0x7FFFFFFF:
            return np.int64(-1)
        new_offsets[row + 1] = to
    return to


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
def copy_text(data, start, end, out, to):
    """Copy bytes; return where they end. Nothing after them is overwritten: the next line may be there already."""
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
            to = copy_text(instead, 0, len(instead), out, to)
        else:
            to = copy_text(before, 0, len(before), out, to)
            to = copy_text(data, np.int64(offsets[number]), np.int64(offsets[number + 1]), out, to)
            to = copy_text(after, 0, len(after), out, to)
        targets[line] = to
