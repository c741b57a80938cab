"""
Temporal values as text, written into the data buffer of an Arrow array, and as numbers since 1970-01-01.

Arguments as in `values`. A function for text returns the number of bytes it wrote, or -1 if a value is one that no
server writes, such as a year of five digits or a fraction of too many; the scalar codec then decodes the column.
Numbers are days, or microseconds; their functions return whether all values are moments: a zero date, a day that its
month does not have, and a value that no server writes are not.
Layouts: `ndb_formats.types.temporal`.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import inlined, kernel, wrapping_difference
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.words import big_endian, copy_eight, little_endian

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
FIVE, SIX, EIGHT, NINE = np.uint64(5), np.uint64(6), np.uint64(8), np.uint64(9)
MONTHS = np.uint64(13)
MINUTE, HOUR, DAY = np.uint64(60), np.uint64(3600), np.uint64(86400)
# The days that 32 bits of seconds reach, as text of ten bytes each, one after the other. uint8. Made of digits: numpy's
# `datetime_as_string` takes as long as all the rest of the module, each time it is imported.
_CALENDAR = np.arange(2**32 // 86400 + 1).astype("M8[D]")
_MONTHS = _CALENDAR.astype("M8[M]")
_CENTURY, _YEAR = np.divmod(1970 + _MONTHS.astype(np.int64) // 12, 100)
_MONTH, _DAY = _MONTHS.astype(np.int64) % 12 + 1, (_CALENDAR - _MONTHS).astype(np.int64) + 1
_DASH = np.full((len(_CALENDAR), 1), MINUS, np.uint8)
_PARTS = [DIGITS[_CENTURY], DIGITS[_YEAR], _DASH, DIGITS[_MONTH], _DASH, DIGITS[_DAY]]
DAYS = np.concatenate(_PARTS, axis=1).ravel()


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


@inlined
def put_date(data, offset, out, to):
    """Write a DATE value; return where it ends, or -1, as `put_time`, `put_datetime` and `put_timestamp` do."""
    packed = little_endian(data, offset, 3)
    if packed >> NINE > MAX_YEAR:
        return np.int64(-1)
    return _date(out, to, packed >> NINE, packed >> FIVE & np.uint64(15), packed & FIVE_BITS)


@inlined
def put_time(data, offset, precision, out, to):
    """Write a TIME value."""
    size = (precision + 1) // 2
    bits = np.uint64(8 * size)
    zero = np.uint64(0x800000) << bits
    packed = big_endian(data, offset, 3 + size)
    if packed < zero:
        packed = zero - packed
        out[to] = MINUS
        to += 1
    else:
        packed -= zero
    whole = packed >> bits
    to = _hours(out, to, whole >> HOURS & TEN_BITS, whole >> SIX & SIX_BITS, whole & SIX_BITS)
    return _fraction(out, to, packed & ((ONE << bits) - ONE), precision)


@inlined
def put_datetime(data, offset, precision, out, to):
    """Write a DATETIME value."""
    packed = big_endian(data, offset, 5)
    # A negative number wraps around to a year far beyond the last.
    months = wrapping_difference(packed, np.uint64(0x8000000000)) >> np.uint64(22)
    year = months // MONTHS
    if year > MAX_YEAR:
        return np.int64(-1)
    to = _date(out, to, year, months - MONTHS * year, packed >> np.uint64(17) & FIVE_BITS)
    out[to] = BLANK
    to = _clock(out, to + 1, packed >> HOURS & FIVE_BITS, packed >> SIX & SIX_BITS, packed & SIX_BITS)
    return _fraction(out, to, big_endian(data, offset + 5, (precision + 1) // 2), precision)


@inlined
def put_timestamp(data, offset, precision, old, out, to):
    """Write a TIMESTAMP value in UTC; an `old` one is little-endian."""
    seconds = little_endian(data, offset, 4) if old else big_endian(data, offset, 4)
    if seconds == np.uint64(0):
        to = _date(out, to, seconds, seconds, seconds)
    else:
        day = TEN * (seconds // DAY)
        copy_eight(DAYS, day, out, to)
        out[to + 8], out[to + 9] = DAYS[day + EIGHT], DAYS[day + NINE]
        to += 10
    second = seconds % DAY
    out[to] = BLANK
    to = _clock(out, to + 1, second // HOUR, second // MINUTE % MINUTE, second % MINUTE)
    return _fraction(out, to, big_endian(data, offset + 4, (precision + 1) // 2), precision)


@kernel
def date_text(data, base, cells, offsets, out):
    """Write DATE values."""
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            to = put_date(data, base + np.int64(cells[row]), out, to)
            if to < 0:
                return to
        offsets[row + 1] = to
    return to


@kernel
def time_text(data, base, cells, precision, offsets, out):
    """Write TIME values."""
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            to = put_time(data, base + np.int64(cells[row]), precision, out, to)
            if to < 0:
                return to
        offsets[row + 1] = to
    return to


@kernel
def datetime_text(data, base, cells, precision, offsets, out):
    """Write DATETIME values."""
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            to = put_datetime(data, base + np.int64(cells[row]), precision, out, to)
            if to < 0:
                return to
        offsets[row + 1] = to
    return to


@kernel
def timestamp_text(data, base, cells, precision, old, offsets, out):
    """Write TIMESTAMP values in UTC; `old` ones are little-endian."""
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            to = put_timestamp(data, base + np.int64(cells[row]), precision, old, out, to)
            if to < 0:
                return to
        offsets[row + 1] = to
    return to


# The place of each month in a year that starts in March, so that a leap day is its last.
MONTHS_FROM_MARCH = np.array([0, 10, 11, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0], np.int64)
LAST_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0, 0, 0], np.int64)
DAYS_OF_400_YEARS, DAYS_BEFORE_1970 = 146_097, 719_468
FRACTION_UNITS = np.array([1_000_000, 10_000, 10_000, 100, 100, 1, 1], np.int64)
LIMITS = np.array([1, 100, 100, 10_000, 10_000, 1_000_000, 1_000_000], np.int64)
NO_DAY = np.int64(1) << 40
MICROS = 1_000_000


@inlined
def _day(year, month, day):
    """Return the days since 1970, or `NO_DAY`."""
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if year < 1 or year > 9999 or day < 1 or day > LAST_DAYS[month] + leap:
        return NO_DAY
    year -= month <= 2
    of_era = year % 400
    of_year = (153 * MONTHS_FROM_MARCH[month] + 2) // 5 + day - 1
    days = 365 * of_era + of_era // 4 - of_era // 100 + of_year
    return year // 400 * DAYS_OF_400_YEARS + days - DAYS_BEFORE_1970


@inlined
def _micros(data, offset, precision):
    """Return the fraction of a second in microseconds; at an odd precision it is stored with one digit more."""
    stored = np.int64(big_endian(data, offset, (precision + 1) // 2))
    return stored * FRACTION_UNITS[precision] if stored < LIMITS[precision] else np.int64(-1)


@kernel
def date_days(data, base, cells, out):
    """Write DATE values as days. `out`: shape (rows,), int32."""
    for row in range(len(cells)):
        if cells[row] == NULL_CELL:
            out[row] = 0
            continue
        packed = np.int64(little_endian(data, base + np.int64(cells[row]), 3))
        days = _day(packed >> 9, packed >> 5 & 15, packed & 31)
        if days == NO_DAY:
            return False
        out[row] = days
    return True


@kernel
def datetime_micros(data, base, cells, precision, out):
    """Write DATETIME values as microseconds. `out`: shape (rows,), int64."""
    for row in range(len(cells)):
        if cells[row] == NULL_CELL:
            out[row] = 0
            continue
        offset = base + np.int64(cells[row])
        packed = np.int64(big_endian(data, offset, 5)) - 0x8000000000
        months, hour, minute, second = packed >> 22, packed >> 12 & 31, packed >> 6 & 63, packed & 63
        days = _day(months // 13, months % 13, packed >> 17 & 31) if packed >= 0 else NO_DAY
        micros = _micros(data, offset + 5, precision)
        if days == NO_DAY or hour > 23 or minute > 59 or second > 59 or micros < 0:
            return False
        out[row] = (days * 86_400 + hour * 3600 + minute * 60 + second) * MICROS + micros
    return True


@kernel
def timestamp_micros(data, base, cells, precision, old, out):
    """Write TIMESTAMP values as microseconds; `old` ones are little-endian. `out`: shape (rows,), int64."""
    for row in range(len(cells)):
        if cells[row] == NULL_CELL:
            out[row] = 0
            continue
        offset = base + np.int64(cells[row])
        seconds = np.int64(little_endian(data, offset, 4) if old else big_endian(data, offset, 4))
        micros = _micros(data, offset + 4, precision)
        if seconds == 0 or micros < 0:
            return False
        out[row] = seconds * MICROS + micros
    return True
