"""
Dates and times as numbers: days, or microseconds, since 1970-01-01.

Arguments as in `values`. Every function returns whether all values are moments: a zero date, a day that its month does
not have, and a value that no server writes are not. Layouts: `ndb_formats.types.temporal`.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import inlined, kernel
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.words import big_endian, little_endian

__all__ = ["date_days", "datetime_micros", "timestamp_micros"]

# The place of each month in a year that starts in March, so that a leap day is its last.
MONTHS_FROM_MARCH = np.array([0, 10, 11, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0], np.int64)
LAST_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0, 0, 0], np.int64)
DAYS_OF_400_YEARS, DAYS_BEFORE_1970 = 146_097, 719_468
POWERS = np.array([1_000_000, 10_000, 10_000, 100, 100, 1, 1], np.int64)
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
    return stored * POWERS[precision] if stored < LIMITS[precision] else np.int64(-1)


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
