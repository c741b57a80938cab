"""
DECIMAL: nine digits in four bytes, big-endian, sign bit flipped.

Whole and fractional digits are grouped by nine from the point outwards; a shorter group takes as few bytes as its
digits need. Negative numbers have all bits inverted, so that values of one type compare like their bytes.

Source: MySQL `decimal.cc` (`decimal2bin`).
"""

from __future__ import annotations

from decimal import Context, Decimal, Inexact, InvalidOperation

from ndb_formats.errors import CorruptError

_DIGITS_PER_GROUP = 9
_BYTES_FOR_DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_MOST_DIGITS = 100  # more than any DECIMAL has
_EXACT = Context(prec=_MOST_DIGITS, traps=[Inexact, InvalidOperation])


def decimal_groups(precision: int, scale: int) -> tuple[list[int], list[int]]:
    """Return the digits in each group, before and after the point, in the order stored."""
    whole_full, whole_rest = divmod(precision - scale, _DIGITS_PER_GROUP)
    part_full, part_rest = divmod(scale, _DIGITS_PER_GROUP)
    whole = ([whole_rest] if whole_rest else []) + [_DIGITS_PER_GROUP] * whole_full
    part = [_DIGITS_PER_GROUP] * part_full + ([part_rest] if part_rest else [])
    return whole, part


def decimal_size(precision: int, scale: int) -> int:
    """Return the bytes of a DECIMAL(precision, scale)."""
    whole, part = decimal_groups(precision, scale)
    return sum(_BYTES_FOR_DIGITS[digits] for digits in whole + part)


def decode_decimal(data: bytes, precision: int, scale: int) -> Decimal:
    """
    Return the value with exactly `scale` digits after the point.

    Raises:
        CorruptError: A group holds more than its digits allow.
    """
    positive = bool(data[0] & 0x80)
    plain = bytes([data[0] ^ 0x80]) + data[1:]
    if not positive:
        plain = bytes(byte ^ 0xFF for byte in plain)
    digits, offset = "", 0
    whole, part = decimal_groups(precision, scale)
    for count in whole + part:
        size = _BYTES_FOR_DIGITS[count]
        group = int.from_bytes(plain[offset : offset + size], "big")
        if group >= 10**count:
            message = f"{group} in a group of {count} decimal digits"
            raise CorruptError(message)
        digits += f"{group:0{count}d}"
        offset += size
    sign = 0 if positive else 1
    return Decimal((sign, tuple(map(int, digits)) or (0,), -scale))


def encode_decimal(value: Decimal, precision: int, scale: int) -> bytes:
    """
    Return the bytes of `value`.

    Raises:
        ValueError: It does not fit DECIMAL(precision, scale) exactly.
    """
    sign, all_digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent < -scale:
        message = f"{value} has more than {scale} digits after the point"
        raise ValueError(message)
    digits = "".join(map(str, all_digits)) + "0" * (exponent + scale)
    digits = digits.lstrip("0").rjust(precision, "0")
    if len(digits) > precision:
        message = f"{value} does not fit DECIMAL({precision},{scale})"
        raise ValueError(message)
    whole, part = decimal_groups(precision, scale)
    plain, offset = b"", 0
    for count in whole + part:
        plain += int(digits[offset : offset + count]).to_bytes(_BYTES_FOR_DIGITS[count], "big")
        offset += count
    if sign:
        plain = bytes(byte ^ 0xFF for byte in plain)
    return bytes([plain[0] ^ 0x80]) + plain[1:]


def decimal_text(value: Decimal) -> str:
    """Return a value as the server shows it: all its digits, never with an exponent, which `str` has for small ones."""
    return f"{value:f}"


def decimal_as_shown(text: str, scale: int) -> str:
    """Return a number in any spelling as a column with `scale` digits shows it; other text as it is."""
    try:
        value = Decimal(text).quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    except ArithmeticError:
        return text  # it has more digits than the column, or is no number
    return decimal_text(value or abs(value))
