"""
Temporal values to text, digit by digit into the data buffer of an Arrow array.

Arguments as in `values`. Every function returns how many bytes it wrote, or -1 if a value is out of the ordinary: a
year of five digits, a fraction of more digits than it has room for. Servers write none of these; the scalar codecs
say what they are. Layouts: `ndb_formats.temporal`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ndb_formats.kernels.rows import NULL_CELL
from ndb_formats.kernels.words import big_endian, load32, load64

__all__ = [
    "MAX_PRECISION",
    "MAX_TEXT",
    "date_text",
    "datetime_text",
    "old_datetime_text",
    "old_time_text",
    "time_text",
    "timestamp_text",
]

MAX_PRECISION = 6
# The longest text: a date, a blank, a clock, a point and a fraction.
MAX_TEXT = 19 + 1 + MAX_PRECISION
MAX_YEAR = 9999
POWERS = np.array([10**digits for digits in range(10)], np.int64)
ZERO, MINUS, COLON, POINT, BLANK = (ord(character) for character in "0-:. ")
TENS = np.array([ZERO + number // 10 for number in range(100)], np.uint8)
ONES = np.array([ZERO + number % 10 for number in range(100)], np.uint8)
SECONDS_PER_DAY, DAYS_PER_ERA = 86400, 146097
OLD_DATETIME_LIMIT = 10**14


@njit(cache=True, inline="always")
def _two(out, to, number):
    out[to] = TENS[number]
    out[to + 1] = ONES[number]


@njit(cache=True, inline="always")
def _date(out, to, year, month, day):
    _two(out, to, year // 100)
    _two(out, to + 2, year % 100)
    out[to + 4] = MINUS
    _two(out, to + 5, month)
    out[to + 7] = MINUS
    _two(out, to + 8, day)
    return to + 10


@njit(cache=True, inline="always")
def _clock(out, to, hour, minute, second):
    _two(out, to, hour)
    out[to + 2] = COLON
    _two(out, to + 3, minute)
    out[to + 5] = COLON
    _two(out, to + 6, second)
    return to + 8


@njit(cache=True, inline="always")
def _hours(out, to, hour, minute, second):
    """Write a clock of two to four digits of hours."""
    if hour >= 1000:
        out[to] = ZERO + hour // 1000
        to += 1
    if hour >= 100:
        out[to] = ZERO + hour // 100 % 10
        to += 1
    return _clock(out, to, hour % 100, minute, second)


@njit(cache=True, inline="always")
def _fraction(out, to, stored, precision):
    if precision == 0:
        return to
    digits = (precision + 1) // 2 * 2
    if stored >= POWERS[digits]:
        return np.int64(-1)
    stored //= POWERS[digits - precision]
    out[to] = POINT
    for place in range(precision, 0, -1):
        out[to + place] = ZERO + stored % 10
        stored //= 10
    return to + 1 + precision


@njit(cache=True)
def date_text(data, base, cells, offsets, out):
    """Write DATE values."""
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            place = base + np.int64(cells[row])
            packed = np.int64(data[place]) | np.int64(data[place + 1]) << 8 | np.int64(data[place + 2]) << 16
            if packed >> 9 > MAX_YEAR:
                return np.int64(-1)
            to = _date(out, to, packed >> 9, packed >> 5 & 15, packed & 31)
        offsets[row + 1] = to
    return to


@njit(cache=True)
def time_text(data, base, cells, precision, offsets, out):
    """Write TIME values."""
    size = (precision + 1) // 2
    bits = 8 * size
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            packed = np.int64(big_endian(data, base + np.int64(cells[row]), 3 + size)) - (np.int64(0x800000) << bits)
            if packed < 0:
                packed = -packed
                out[to] = MINUS
                to += 1
            whole = packed >> bits
            to = _hours(out, to, whole >> 12 & 0x3FF, whole >> 6 & 63, whole & 63)
            to = _fraction(out, to, packed & ((np.int64(1) << bits) - 1), precision)
            if to < 0:
                return to
        offsets[row + 1] = to
    return to


@njit(cache=True)
def datetime_text(data, base, cells, precision, offsets, out):
    """Write DATETIME values."""
    size = (precision + 1) // 2
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            place = base + np.int64(cells[row])
            packed = np.int64(big_endian(data, place, 5)) - np.int64(0x8000000000)
            months, rest = packed >> 22, packed & 0x3FFFFF
            if months < 0 or months // 13 > MAX_YEAR:
                return np.int64(-1)
            to = _date(out, to, months // 13, months % 13, rest >> 17)
            out[to] = BLANK
            to = _clock(out, to + 1, rest >> 12 & 31, rest >> 6 & 63, rest & 63)
            to = _fraction(out, to, np.int64(big_endian(data, place + 5, size)), precision)
            if to < 0:
                return to
        offsets[row + 1] = to
    return to


@njit(cache=True)
def timestamp_text(data, base, cells, precision, old, offsets, out):
    """Write TIMESTAMP values in UTC; `old` ones have their bytes the other way round."""
    size = (precision + 1) // 2
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            place = base + np.int64(cells[row])
            seconds = np.int64(load32(data, place)) if old else np.int64(big_endian(data, place, 4))
            if seconds == 0:
                to = _date(out, to, 0, 0, 0)
            else:
                # Years start in March here, so that the leap day is the last of its year; eras have 400 of them.
                day = seconds // SECONDS_PER_DAY + 719468
                era = day // DAYS_PER_ERA
                day %= DAYS_PER_ERA
                year = (day - day // 1460 + day // 36524 - day // 146096) // 365
                day -= 365 * year + year // 4 - year // 100
                month = (5 * day + 2) // 153
                day -= (153 * month + 2) // 5
                month = month + 3 if month < 10 else month - 9
                to = _date(out, to, year + 400 * era + (1 if month <= 2 else 0), month, day + 1)
            second = seconds % SECONDS_PER_DAY
            out[to] = BLANK
            to = _clock(out, to + 1, second // 3600, second // 60 % 60, second % 60)
            to = _fraction(out, to, np.int64(big_endian(data, place + 4, size)), precision)
            if to < 0:
                return to
        offsets[row + 1] = to
    return to


@njit(cache=True)
def old_time_text(data, base, cells, offsets, out):
    """Write TIME values of before MySQL 5.6."""
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            place = base + np.int64(cells[row])
            packed = np.int64(data[place]) | np.int64(data[place + 1]) << 8 | np.int64(np.int8(data[place + 2])) << 16
            if packed < 0:
                packed = -packed
                out[to] = MINUS
                to += 1
            to = _hours(out, to, packed // 10000, packed // 100 % 100, packed % 100)
        offsets[row + 1] = to
    return to


@njit(cache=True)
def old_datetime_text(data, base, cells, offsets, out):
    """Write DATETIME values of before MySQL 5.6."""
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            packed = load64(data, base + np.int64(cells[row]))
            if packed >= np.uint64(OLD_DATETIME_LIMIT):
                return np.int64(-1)
            date, clock = np.int64(packed) // 1000000, np.int64(packed) % 1000000
            to = _date(out, to, date // 10000, date // 100 % 100, date % 100)
            out[to] = BLANK
            to = _clock(out, to + 1, clock // 10000, clock // 100 % 100, clock % 100)
        offsets[row + 1] = to
    return to
