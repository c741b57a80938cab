"""
Temporal values as text, written into the data buffer of an Arrow array.

Arguments as in `values`. Every function returns the number of bytes it wrote, or -1 if a value is one that no server
writes, such as a year of five digits or a fraction of too many; the scalar codec then decodes the column.
Layouts: `ndb_formats.types.temporal`.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import inlined, kernel, wrapping_difference
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.words import big_endian, little_endian

__all__ = [
    "MAX_PRECISION",
    "MAX_TEXT",
    "date_text",
    "datetime_text",
    "time_text",
    "timestamp_text",
]

MAX_PRECISION = 6
# The longest text: date, blank, time, point and fraction.
MAX_TEXT = 19 + 1 + MAX_PRECISION
MAX_YEAR = np.uint64(9999)
POWERS = np.array([10**digits for digits in range(10)], np.uint64)
ZERO = np.uint64(ord("0"))
MINUS, COLON, POINT, BLANK = (ord(character) for character in "-:. ")
# Numbers of two digits as text. Shape (100, 2), uint8.
DIGITS = np.array([list(b"%02d" % number) for number in range(100)], np.uint8)
# All arithmetic is unsigned: signed division rounds down in Python, which costs.
ONE, TEN, HUNDRED, THOUSAND = (np.uint64(number) for number in (1, 10, 100, 1000))
FIVE_BITS, SIX_BITS, TEN_BITS, HOURS = np.uint64(31), np.uint64(63), np.uint64(0x3FF), np.uint64(12)
FIVE, SIX, NINE = np.uint64(5), np.uint64(6), np.uint64(9)
MONTHS = np.uint64(13)
MINUTE, HOUR, DAY = np.uint64(60), np.uint64(3600), np.uint64(86400)
# The days that 32 bits of seconds reach, as text. Shape (days, 10), uint8.
_CALENDAR = np.arange(np.datetime64(0, "s"), np.datetime64(2**32, "s"), np.timedelta64(1, "D"))
DAYS = np.datetime_as_string(_CALENDAR, unit="D").astype("S10").view(np.uint8).reshape(-1, 10)


@inlined
def _two_digits(out, to, number):
    start = np.uint64(to)
    out[start], out[start + ONE] = DIGITS[number, 0], DIGITS[number, 1]


@inlined
def _date(out, to, year, month, day):
    _two_digits(out, to, year // HUNDRED)
    _two_digits(out, to + 2, year % HUNDRED)
    out[to + 4] = MINUS
    _two_digits(out, to + 5, month)
    out[to + 7] = MINUS
    _two_digits(out, to + 8, day)
    return to + 10


@inlined
def _clock(out, to, hour, minute, second):
    _two_digits(out, to, hour)
    out[to + 2] = COLON
    _two_digits(out, to + 3, minute)
    out[to + 5] = COLON
    _two_digits(out, to + 6, second)
    return to + 8


@inlined
def _hours(out, to, hour, minute, second):
    """Write a time with two to four digits of hours."""
    if hour >= THOUSAND:
        out[to] = ZERO + hour // THOUSAND
        to += 1
    if hour >= HUNDRED:
        out[to] = ZERO + hour // HUNDRED % TEN
        to += 1
    return _clock(out, to, hour % HUNDRED, minute, second)


@inlined
def _fraction(out, to, stored, precision):
    if precision == 0:
        return to
    digits = (precision + 1) // 2 * 2
    if stored >= POWERS[digits]:
        return np.int64(-1)
    out[to] = POINT
    # Pairs of digits from the last to the first; at an odd precision the last digit lies beyond the end.
    for offset in range(digits - 2, -1, -2):
        _two_digits(out, to + 1 + offset, stored % HUNDRED)
        stored //= HUNDRED
    return to + 1 + precision


@kernel
def date_text(data, base, cells, offsets, out):
    """Write DATE values."""
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            packed = little_endian(data, base + np.int64(cells[row]), 3)
            if packed >> NINE > MAX_YEAR:
                return np.int64(-1)
            to = _date(out, to, packed >> NINE, packed >> FIVE & np.uint64(15), packed & FIVE_BITS)
        offsets[row + 1] = to
    return to


@kernel
def time_text(data, base, cells, precision, offsets, out):
    """Write TIME values."""
    size = (precision + 1) // 2
    bits = np.uint64(8 * size)
    zero = np.uint64(0x800000) << bits
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            packed = big_endian(data, base + np.int64(cells[row]), 3 + size)
            if packed < zero:
                packed = zero - packed
                out[to] = MINUS
                to += 1
            else:
                packed -= zero
            whole = packed >> bits
            to = _hours(out, to, whole >> HOURS & TEN_BITS, whole >> SIX & SIX_BITS, whole & SIX_BITS)
            to = _fraction(out, to, packed & ((ONE << bits) - ONE), precision)
            if to < 0:
                return to
        offsets[row + 1] = to
    return to


@kernel
def datetime_text(data, base, cells, precision, offsets, out):
    """Write DATETIME values."""
    size = (precision + 1) // 2
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            offset = base + np.int64(cells[row])
            packed = big_endian(data, offset, 5)
            # A negative number wraps around to a year far beyond the last.
            months = wrapping_difference(packed, np.uint64(0x8000000000)) >> np.uint64(22)
            year = months // MONTHS
            if year > MAX_YEAR:
                return np.int64(-1)
            to = _date(out, to, year, months - MONTHS * year, packed >> np.uint64(17) & FIVE_BITS)
            out[to] = BLANK
            to = _clock(out, to + 1, packed >> HOURS & FIVE_BITS, packed >> SIX & SIX_BITS, packed & SIX_BITS)
            to = _fraction(out, to, big_endian(data, offset + 5, size), precision)
            if to < 0:
                return to
        offsets[row + 1] = to
    return to


@kernel
def timestamp_text(data, base, cells, precision, old, offsets, out):
    """Write TIMESTAMP values in UTC; `old` ones are little-endian."""
    size = (precision + 1) // 2
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            offset = base + np.int64(cells[row])
            seconds = little_endian(data, offset, 4) if old else big_endian(data, offset, 4)
            if seconds == np.uint64(0):
                to = _date(out, to, seconds, seconds, seconds)
            else:
                for character in range(10):
                    out[to + character] = DAYS[seconds // DAY, character]
                to += 10
            second = seconds % DAY
            out[to] = BLANK
            to = _clock(out, to + 1, second // HOUR, second // MINUTE % MINUTE, second % MINUTE)
            to = _fraction(out, to, big_endian(data, offset + 4, size), precision)
            if to < 0:
                return to
        offsets[row + 1] = to
    return to
