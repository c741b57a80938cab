"""
Floating point numbers as the shortest text that gives the same number, as Python shows them: ``0.1``, ``1e+16``.

The digits are found as in R. Giulietti, "The Schubfach way to render doubles" (2022): the number and the middles to its
neighbours are multiplied with a power of ten, of which 126 bits suffice, so that the shortest decimal number between
the middles can be read off.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import inlined, interpreted_by, kernel, part, wrapping_product
from ndb_formats.columnar.kernels.entries import POWERS, put_number
from ndb_formats.columnar.kernels.words import put_digits

MAX_DOUBLE = 24  # bytes of the longest text
_ALL_BITS = (1 << 64) - 1
FRACTION_BITS, LEAST_EXPONENT, SPECIAL = 52, -1074, 0x7FF
LEAST_PLACE, MOST_PLACE = -324, 292  # of the last digit, as a power of ten
MINUS, PLUS, POINT, ZERO, EXPONENT = (ord(each) for each in "-+.0e")
NAN, INFINITY = np.frombuffer(b"nan", np.uint8), np.frombuffer(b"inf", np.uint8)
LOW_HALF, LOW_63, TEN = np.uint64((1 << 32) - 1), np.uint64((1 << 63) - 1), np.uint64(10)
ONE, TWO, THIRTY_TWO, SIXTY_THREE = np.uint64(1), np.uint64(2), np.uint64(32), np.uint64(63)
HIDDEN_BIT, FRACTION = np.uint64(1 << FRACTION_BITS), np.uint64((1 << FRACTION_BITS) - 1)


def _binary_exponent(power: int) -> int:
    """Return the largest exponent whose power of two is not more than a power of ten."""
    return power * 913_124_641_741 >> 38


def _factor(place: int) -> tuple[int, int]:
    """Return the upper and lower 63 bits of a factor: the power of ten that takes that place to the last one."""
    shift = _binary_exponent(-place) - 125
    above, below = 10 ** max(-place, 0) << max(-shift, 0), 10 ** max(place, 0) << max(shift, 0)
    factor: int = above // below + 1
    return divmod(factor, 1 << 63)


FACTORS = np.array([_factor(place) for place in range(LEAST_PLACE, MOST_PLACE + 1)], np.uint64)


def _high_product(first, second):
    return np.uint64(int(first) * int(second) >> 64)


@interpreted_by(_high_product)
@inlined
def high_product(first, second):
    """Return the highest 64 bits of the product of two unsigned numbers of 64 bits."""
    first_low, first_high, second_low, second_high = (
        first & LOW_HALF,
        first >> THIRTY_TWO,
        second & LOW_HALF,
        second >> THIRTY_TWO,
    )
    across = first_low * second_high
    middle = first_high * second_low + (first_low * second_low >> THIRTY_TWO) + (across & LOW_HALF)
    return first_high * second_high + (middle >> THIRTY_TWO) + (across >> THIRTY_TWO)


@part
def _scaled(high, low, number):
    """Return a number times a factor, without its last 127 bits; the last bit left says whether these were not 0."""
    rest = (wrapping_product(high, number) >> ONE) + high_product(low, number)
    whole = high_product(high, number) + (rest >> SIXTY_THREE)
    return whole | ((rest & LOW_63) + LOW_63 >> SIXTY_THREE)


@part
def _shortest(fraction, exponent):
    """Return the shortest number between the middles to both neighbours, and the place of its last digit."""
    odd, four = fraction & ONE, fraction << TWO
    if fraction != HIDDEN_BIT or exponent == LEAST_EXPONENT:
        below, place = four - TWO, exponent * 661_971_961_083 >> 41
    else:  # the lower neighbour is nearer
        below, place = four - ONE, (exponent * 661_971_961_083 - 274_743_187_321) >> 41
    shift = np.uint64(exponent + (-place * 913_124_641_741 >> 38) + 2)
    high, low = FACTORS[place - LEAST_PLACE, 0], FACTORS[place - LEAST_PLACE, 1]
    number = _scaled(high, low, four << shift)
    least = _scaled(high, low, below << shift) + odd
    most = _scaled(high, low, four + TWO << shift) - odd
    down = number >> TWO
    shorter = down // TEN * TEN
    if down >= TEN:
        fits, fits_above = least <= shorter << TWO, shorter + TEN << TWO <= most
        if fits != fits_above:
            return shorter if fits else shorter + TEN, place
    fits, fits_above = least <= down << TWO, down + ONE << TWO <= most
    if fits != fits_above:
        return down if fits else down + ONE, place
    middle = down + down + ONE << ONE
    nearer = number < middle or (number == middle and down & ONE == np.uint64(0))
    return down if nearer else down + ONE, place


@part
def digits_of(bits):
    """Return the digits of a finite number without zeros at their end, and the place of the last one."""
    biased, fraction = np.int64(bits >> np.uint64(FRACTION_BITS)) & SPECIAL, bits & FRACTION
    if biased:
        fraction |= HIDDEN_BIT
    elif fraction == np.uint64(0):
        return fraction, np.int64(0)
    exponent = LEAST_EXPONENT + (biased - 1 if biased else 0)
    number, place = fraction, np.int64(0)
    shift = np.uint64(-exponent) if -FRACTION_BITS <= exponent <= 0 else np.uint64(0)
    if -FRACTION_BITS <= exponent <= 0 and fraction >> shift << shift == fraction:
        number = fraction >> shift
    else:
        number, place = _shortest(fraction, exponent)
    tenth = number // TEN
    while tenth * TEN == number:
        number, place = tenth, place + 1
        tenth = number // TEN
    return number, place


@part
def put_double(out, to, bits):
    """Write a finite number of eight bytes, given its bits; return where it ends."""
    if bits >> SIXTY_THREE:
        out[to] = MINUS
        to += 1
    number, place = digits_of(bits & LOW_63)
    power = place + count_digits(number) - 1
    if -4 <= power < 16:
        return put_plain(out, to, number, place)
    return _put_with_exponent(out, to, number, power)


@part
def count_digits(number):
    """Return how many digits a number has, of at most 17."""
    count = 1
    while count < 17 and number >= POWERS[count]:
        count += 1
    return count


@part
def put_plain(out, to, number, place):
    """Write a number whose last digit has a place, with a digit after the point at least; return where it ends."""
    if place < -18:
        out[to], out[to + 1] = ZERO, POINT
        for at in range(to + 1 - place, to + 1, -1):
            out[at] = ZERO + number % TEN
            number //= TEN
        return to + 2 - place
    if place < 0:
        return put_number(out, to, number, -place)
    to = put_digits(out, to, number)
    for _ in range(place):
        out[to] = ZERO
        to += 1
    out[to], out[to + 1] = POINT, ZERO
    return to + 2


@part
def put_scientific(out, to, number):
    """Write a number with a point after its first digit, if it has more; return where it ends."""
    end = put_digits(out, to + 1, number)
    out[to] = out[to + 1]
    out[to + 1] = POINT
    return end if end > to + 2 else to + 1


@part
def _put_with_exponent(out, to, number, power):
    """Write a number, the point after its first digit, and the power of ten; return where it ends."""
    to = put_scientific(out, to, number)
    out[to], out[to + 1] = EXPONENT, MINUS if power < 0 else PLUS
    if abs(power) < 10:
        out[to + 2] = ZERO
        to += 1
    return put_digits(out, to + 2, np.uint64(abs(power)))


@kernel
def doubles_text(numbers, missing, offsets, out):
    """
    Write floating point numbers.

    Args:
        numbers: Their bits. Shape (rows,), uint64.
        missing: Whether each is NULL; empty if none is. bool.
        offsets: Filled in. Shape (rows + 1,), int32.
        out: Filled in; `MAX_DOUBLE` bytes for each, and eight more. uint8.
    """
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(numbers)):
        if not (len(missing) and missing[row]):
            to = put_any_double(out, to, numbers[row])
        offsets[row + 1] = to


@part
def put_any_double(out, to, bits):
    """Write a number of eight bytes, infinity or NaN, given its bits; return where it ends."""
    if not is_special(bits):
        return put_double(out, to, bits)
    infinite = bits & FRACTION == np.uint64(0)
    if infinite and bits >> SIXTY_THREE:
        out[to] = MINUS
        to += 1
    for place in range(3):
        out[to + place] = INFINITY[place] if infinite else NAN[place]
    return to + 3


@inlined
def is_special(bits):
    """Whether the bits are those of infinity or NaN."""
    return np.int64(bits >> np.uint64(FRACTION_BITS)) & SPECIAL == SPECIAL
