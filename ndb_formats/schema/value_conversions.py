"""
How the server converts a value to another column type, as it does when ALTER TABLE copies rows.

A value is given only where it is surely the server's; else it is `NOT_KNOWN`, which is neither NULL nor absent.

Source: what a MySQL 9.7 server did with every pair of types (`tests/recordings/definitions/altered_values.json.xz`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import date as date_of
from datetime import timedelta
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from enum import Enum
from typing import Final, TypeAlias

import attrs

from ndb_formats.errors import FormatError
from ndb_formats.schema.session import SqlMode
from ndb_formats.schema.tables import Column
from ndb_formats.types.charsets import decode_text, encode_text
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.values import Value


class NotKnown(Enum):
    """The type of `NOT_KNOWN`; an enum, so that it survives pickling with its identity."""

    NOT_KNOWN = "not known"

    def __repr__(self) -> str:
        return "NOT_KNOWN"

    def __str__(self) -> str:
        return self.value


NOT_KNOWN: Final = NotKnown.NOT_KNOWN
KnownValue: TypeAlias = Value | NotKnown

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_FLOATS = frozenset({"float", "double"})
_MOMENTS = frozenset({"date", "time", "datetime", "timestamp"})
_EXACT = Context(prec=100)
# Most bytes of the types that declare no length.
_MOST = {
    **dict.fromkeys(("tinytext", "tinyblob"), (1 << 8) - 1),
    **dict.fromkeys(("text", "blob"), (1 << 16) - 1),
    **dict.fromkeys(("mediumtext", "mediumblob"), (1 << 24) - 1),
    **dict.fromkeys(("longtext", "longblob"), (1 << 32) - 1),
}


@attrs.frozen
class Fitted:
    """A value in its new type, and whether strict mode refuses it because it did not fit."""

    value: Value
    refused: bool = False


def type_of(column: Column) -> tuple[object, ...]:
    """Return what makes the type of a column's values, with lengths that are not declared, without display widths."""
    length, scale = column.length, column.scale
    if column.type in INTEGER_BITS or column.type == "year" or (column.type in ("float", "double") and scale is None):
        length = None
    elif column.type == "decimal":
        length, scale = length or 10, scale or 0
    elif column.type in ("char", "binary", "bit"):
        length = length or 1
    elif column.type in _MOMENTS:
        length = length or 0
    return column.type, length, scale, column.unsigned, column.charset, column.members, column.geometry


def room(column: Column) -> int:
    """Return how many characters or bytes fit into a column; of a text without a length, how many for certain."""
    return _MOST.get(column.type, column.length or (1 if column.type == "char" else 0))


def converted(value: Value, before: Column, after: Column, mode: SqlMode) -> Fitted | NotKnown:
    """Return a value that is not NULL in another type."""
    for kinds, convert in _TARGETS:
        if after.type in kinds:
            return convert(value, before, after, mode)
    return NOT_KNOWN


def _number(value: Value, before: Column) -> tuple[Decimal, bool] | NotKnown:
    """Return the number that a value is, and whether it is one as a whole; a float is its shortest decimal text."""
    if before.type in INTEGER_BITS or before.type in ("bit", "year"):
        assert isinstance(value, int)
        return Decimal(value), True
    if isinstance(value, Decimal):
        return value, True
    if isinstance(value, float):
        return (Decimal(repr(value)), True) if abs(value) < 1 << 63 else NOT_KNOWN
    if not isinstance(value, str):
        return NOT_KNOWN
    if before.members:
        return Decimal(_member_number(value, before)), True
    if before.type in TEXTS:
        return _number_at_start(value)
    if before.type in ("date", "time", "datetime"):
        sign = -1 if value.startswith("-") else 1
        return sign * Decimal("".join(letter for letter in value if letter.isdecimal() or letter == ".")), True
    return NOT_KNOWN


def _number_at_start(text: str) -> tuple[Decimal, bool] | NotKnown:
    """Return the number at the start of a text, 0 without one, and whether it is all of the text."""
    found = _NUMBER.match(text)
    rest = text if found is None else text[found.end() :]
    if (found is not None and rest and not rest.strip(" ")) or (found is None and text[:1] in _SIGNS):
        return NOT_KNOWN
    return Decimal(0 if found is None else found[0].strip(" ")), not rest and found is not None


# An exponent that no type reaches is left alone.
_NUMBER = re.compile(r" *[+-]?(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)(?:[eE][+-]?[0-9]{1,2}(?![0-9]))?")
_SIGNS = ("+", "-", ".", "\t", "\n")


def _member_number(value: str, column: Column) -> int:
    """Return the number of a member of an ENUM, or the bits of a SET."""
    if column.type == "enum":
        return column.members.index(value) + 1 if value in column.members else 0
    return sum(1 << column.members.index(each) for each in value.split(",") if each)


def _to_integer(value: Value, before: Column, after: Column, mode: SqlMode) -> Fitted | NotKnown:
    if before.type in ("time", "datetime") and before.length:
        second = attrs.evolve(before, length=0)
        moment = _to_moment(value, before, second, mode)
        return moment if isinstance(moment, NotKnown) else _to_integer(moment.value, second, after, mode)
    found = _number(value, before)
    if isinstance(found, NotKnown):
        return found
    number, whole = found
    rounded, bits = _whole(number, before), INTEGER_BITS[after.type]
    least, most = (0, (1 << bits) - 1) if after.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    if before.type in _FLOATS:
        most = min(most, (1 << 63) - 1)  # through a signed number
    fitted = min(max(rounded, least), most)
    return Fitted(fitted, not whole or fitted != rounded)


def _whole(number: Decimal, before: Column) -> int:
    """Return a number as a whole one: a half of a float goes to the even one, any other away from zero."""
    rounding = ROUND_HALF_EVEN if before.type in _FLOATS else ROUND_HALF_UP
    return int(number.to_integral_value(rounding, _EXACT))


def _to_year(value: Value, before: Column, after: Column, mode: SqlMode) -> Fitted | NotKnown:
    del after, mode
    if before.type not in INTEGER_BITS:
        return NOT_KNOWN
    assert isinstance(value, int)
    if 0 < value < _CENTURY:
        return Fitted(value + (2000 if value < _FIRST_OF_1900 else 1900))
    fits = value == 0 or value in _YEARS
    return Fitted(value if fits else 0, not fits)


_CENTURY, _FIRST_OF_1900, _YEARS = 100, 70, range(1901, 2156)


def _to_decimal(value: Value, before: Column, after: Column, mode: SqlMode) -> Fitted | NotKnown:
    del mode
    found = _number(value, before)
    if isinstance(found, NotKnown):
        return found
    number, whole = found
    unit = Decimal(1).scaleb(-(after.scale or 0))
    rounded = number.quantize(unit, ROUND_HALF_UP, _EXACT)
    most = Decimal(10 ** (after.length or 10) - 1).scaleb(-(after.scale or 0), _EXACT)
    fitted = min(max(rounded, Decimal(0) * unit if after.unsigned else -most), most)
    return Fitted(fitted or abs(fitted), not whole or fitted != rounded)


def _to_float(value: Value, before: Column, after: Column, mode: SqlMode) -> Fitted | NotKnown:
    del mode
    if after.scale is not None:
        return NOT_KNOWN
    if before.type in _FLOATS:
        assert isinstance(value, float)
        number = value
        whole = True
    else:
        found = _number(value, before)
        if isinstance(found, NotKnown):
            return found
        number, whole = float(found[0]), found[1]
    if after.unsigned and number < 0:
        return Fitted(0.0, refused=True)
    if after.type == "double":
        return Fitted(number, not whole)
    if abs(number) > _MOST_FLOAT:
        return NOT_KNOWN
    return Fitted(struct.unpack("<f", struct.pack("<f", number))[0], not whole)


_MOST_FLOAT = 3.4028234663852886e38


def _to_text(value: Value, before: Column, after: Column, mode: SqlMode) -> Fitted | NotKnown:
    assert after.charset is not None
    text = _read_as(value, after.charset) if isinstance(value, bytes) else _text(value, before, mode)
    if isinstance(text, NotKnown):
        return text
    room = after.length if after.type in ("char", "varchar") else None
    lost = False
    shown = ""
    for letter in text:
        try:
            encode_text(letter, after.charset)
            shown += letter
        except (FormatError, UnicodeError):
            shown, lost = shown + "?", True
    fitted = shown
    if room is not None:
        fitted = shown[:room]
    elif len(encode_text(shown, after.charset)) > _MOST[after.type]:
        return NOT_KNOWN
    cut = shown[len(fitted) :].strip(" ") != "" if after.type in ("char", "varchar") else False
    if after.type == "char":
        fitted = fitted.rstrip(" ")
    return Fitted(fitted, lost or cut)


def _text(value: Value, before: Column, mode: SqlMode) -> str | NotKnown:
    """Return a value as the server prints it."""
    if before.type in INTEGER_BITS:
        return str(value)
    if before.type == "year" and isinstance(value, int):
        return f"{value:04d}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if before.type in _FLOATS and before.scale is None and isinstance(value, float):
        return _float_text(value, before)
    if before.type == "char" and mode & SqlMode.PAD_CHAR_TO_FULL_LENGTH:
        return NOT_KNOWN
    if isinstance(value, JsonDocument):
        return value.text
    if isinstance(value, str) and (
        before.type in TEXTS or before.members or before.type in ("date", "time", "datetime")
    ):
        return value
    return NOT_KNOWN


def _read_as(data: bytes, charset: str) -> str | NotKnown:
    """Return bytes as text of a character set; not known where they are none."""
    text = decode_text(data, charset)
    return text if _BYTE.search(text) is None else NOT_KNOWN


_BYTE = re.compile("[\udc80-\udcff]")  # what bytes are that are no character


def _float_text(value: float, before: Column) -> str | NotKnown:
    """Return a float as the server prints it: of FLOAT six digits; very large and small ones are not known here."""
    number = Decimal(repr(value))
    if before.type == "float" and number:
        unit = Decimal(1).scaleb(number.adjusted() - 5)
        number = number.quantize(unit, ROUND_HALF_EVEN, _EXACT)
    if not number:
        return "0" if struct.pack("<d", value) == bytes(8) else NOT_KNOWN
    if not _SHORTEST <= abs(number) < _LONGEST:
        return NOT_KNOWN
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


_SHORTEST, _LONGEST = Decimal("1e-5"), Decimal("1e15")


def _to_bytes(value: Value, before: Column, after: Column, mode: SqlMode) -> Fitted | NotKnown:
    if before.type in BYTES:
        assert isinstance(value, bytes)
        data = value
    else:
        text = _text(value, before, mode)
        if isinstance(text, NotKnown):
            return text
        data = encode_text(text, before.charset or "latin1")
    fitted = data[: room(after)]
    refused = len(fitted) < len(data)
    return Fitted(fitted.ljust(after.length or 0, b"\0") if after.type == "binary" else fitted, refused)


def _to_member(value: Value, before: Column, after: Column, mode: SqlMode) -> Fitted | NotKnown:
    """Convert by the text of members; equality under a collation is not judged here."""
    del mode
    if before.type in INTEGER_BITS and after.type == "enum" and isinstance(value, int):
        fits = 0 <= value <= len(after.members)
        return Fitted(("", *after.members)[value] if fits else "", not fits)
    if not isinstance(value, str) or not (before.members or before.type in TEXTS):
        return NOT_KNOWN
    if after.type == "enum":
        kept_error = before.type == "enum" and value == ""
        return Fitted(value) if value in after.members or kept_error else NOT_KNOWN
    wanted = [each for each in value.split(",") if each]
    if not set(wanted) <= set(after.members):
        return NOT_KNOWN
    return Fitted(",".join(each for each in after.members if each in wanted))


def _to_bit(value: Value, before: Column, after: Column, mode: SqlMode) -> Fitted | NotKnown:
    del mode
    found = _number(value, before)
    if isinstance(found, NotKnown) or before.members:
        return NOT_KNOWN
    number, most = _whole(found[0], before), (1 << (after.length or 1)) - 1
    fits = 0 <= number <= most
    return Fitted(number if fits else most, not fits)


def _to_moment(value: Value, before: Column, after: Column, mode: SqlMode) -> Fitted | NotKnown:
    """Convert a date, a time or both; what depends on the time zone or on the day of the statement is not known."""
    zoned = "timestamp" in (before.type, after.type) and before.type != after.type
    if not isinstance(value, str) or zoned or (before.type == "time" and after.type != "time"):
        return NOT_KNOWN
    if before.type in TEXTS:
        return _of_date_text(value, after)
    if before.type not in _MOMENTS:
        return NOT_KNOWN
    date, _, clock = value.rpartition(" ") if before.type != "date" else (value, "", "00:00:00")
    if mode & SqlMode.TIME_TRUNCATE_FRACTIONAL and before.length:
        return NOT_KNOWN
    if after.type == "time":
        return Fitted(_clock_text(_microseconds(clock), after.length or 0))
    digits = 0 if after.type == "date" else after.length or 0
    rounded = _rounded(_microseconds(clock), digits)
    if rounded >= _DAY:
        date, rounded = (date_of.fromisoformat(date) + timedelta(days=1)).isoformat(), rounded - _DAY
    return Fitted(date if after.type == "date" else f"{date} {_clock_text(rounded, digits)}")


def _of_date_text(value: str, after: Column) -> Fitted | NotKnown:
    """Return a text in the one form of a date that is surely taken, as a moment."""
    if after.type not in ("date", "datetime") or not _DATE.fullmatch(value):
        return NOT_KNOWN
    date = date_of.fromisoformat(value).isoformat()
    return Fitted(date if after.type == "date" else f"{date} {_clock_text(0, after.length or 0)}")


_DATE = re.compile("[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}")
_DAY = 24 * 3600 * 1_000_000
_LONGEST_TIME = (838 * 3600 + 59 * 60 + 59) * 1_000_000


def _microseconds(clock: str) -> int:
    """Return a time of day, or a TIME, as a number of microseconds."""
    whole, _, fraction = clock.lstrip("-").partition(".")
    hours, minutes, seconds = map(int, whole.split(":"))
    found = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int(fraction.ljust(6, "0"))
    return -found if clock.startswith("-") else found


def _rounded(microseconds: int, digits: int) -> int:
    """Return a time with so many digits of a fraction; halves go away from zero."""
    unit = 10 ** (6 - digits)
    found = (abs(microseconds) + unit // 2) // unit * unit if unit > 1 else abs(microseconds)
    return -found if microseconds < 0 else found


def _clock_text(microseconds: int, digits: int) -> str:
    """Return a time as text, with so many digits of a fraction."""
    found = min(abs(_rounded(microseconds, digits)), _LONGEST_TIME)
    seconds, fraction = divmod(found, 1_000_000)
    sign = "-" if microseconds < 0 and found else ""
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}"[: len(text) + 1 + digits] if digits else text


_Convert = Callable[[Value, Column, Column, SqlMode], "Fitted | NotKnown"]
_TARGETS: tuple[tuple[frozenset[str], _Convert], ...] = (
    (frozenset(INTEGER_BITS), _to_integer),
    (frozenset({"year"}), _to_year),
    (frozenset({"decimal"}), _to_decimal),
    (frozenset({"float", "double"}), _to_float),
    (TEXTS, _to_text),
    (BYTES, _to_bytes),
    (frozenset({"enum", "set"}), _to_member),
    (frozenset({"bit"}), _to_bit),
    (_MOMENTS, _to_moment),
)
