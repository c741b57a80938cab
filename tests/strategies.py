"""
Hypothesis strategies that several tests share, by what they make.

A strategy makes values or bytes without the code under test, except that a codec's WireType names a type.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import attrs
from hypothesis import strategies as st

from ndb_formats.constants import ColumnCode
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Table
from ndb_formats.types.charsets import PYTHON_CODEC
from ndb_formats.types.column_types import Codec, WireType, codec_of
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.json_diff import DiffOperation, JsonDiff
from ndb_formats.types.json_values import JsonOpaque, JsonUint, JsonValue
from ndb_formats.types.values import Geometry, Vector

# ---------------------------------------------------------------------------------------------------------
# Temporal text
# ---------------------------------------------------------------------------------------------------------

DATES = st.builds("{:04d}-{:02d}-{:02d}".format, st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31))
CLOCKS = st.builds("{:02d}:{:02d}:{:02d}".format, st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
PRECISIONS = st.integers(0, 6)


def fractions(precision: int) -> st.SearchStrategy[str]:
    """Return fractions of so many digits, with the point; nothing for none."""
    if precision == 0:
        return st.just("")
    return st.integers(0, 10**precision - 1).map(lambda number: f".{number:0{precision}d}")


def times(precision: int) -> st.SearchStrategy[str]:
    """Return TIME values from -838:59:59.9 to 838:59:59.9; there is no -00:00:00."""
    clock = st.builds("{:02d}:{:02d}:{:02d}".format, st.integers(0, 838), st.integers(0, 59), st.integers(0, 59))
    positive = st.builds("{}{}".format, clock, fractions(precision))
    negative = positive.filter(lambda text: any(digit in "123456789" for digit in text)).map(lambda text: "-" + text)
    return positive | negative


def datetimes(precision: int) -> st.SearchStrategy[str]:
    """Return DATETIME values, zero and half-zero dates among them."""
    return st.builds("{} {}{}".format, DATES, CLOCKS, fractions(precision))


def timestamps(precision: int) -> st.SearchStrategy[str]:
    """Return TIMESTAMP values in UTC within the range of 32 unsigned bits."""
    # Days up to 28 exist in every month.
    date = st.builds("{:04d}-{:02d}-{:02d}".format, st.integers(1971, 2105), st.integers(1, 12), st.integers(1, 28))
    return st.builds("{} {}{}".format, date, CLOCKS, fractions(precision))


# ---------------------------------------------------------------------------------------------------------
# Numbers
# ---------------------------------------------------------------------------------------------------------


@st.composite
def decimal_types(draw: st.DrawFn) -> tuple[int, int]:
    """Return (precision, scale) as MySQL allows them."""
    precision = draw(st.integers(1, 65))
    return precision, draw(st.integers(0, min(30, precision)))


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    """Return every value of DECIMAL(precision, scale), with exactly `scale` digits after the point."""
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(
        lambda number: Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))
    )


# ---------------------------------------------------------------------------------------------------------
# Text
# ---------------------------------------------------------------------------------------------------------

CHARSETS = tuple(sorted(name for name, codec in PYTHON_CODEC.items() if codec is not None))
MEMBERS = st.lists(st.text("abcdefgh ", min_size=1, max_size=4), min_size=1, max_size=64, unique=True).map(tuple)

# ---------------------------------------------------------------------------------------------------------
# Columns: a codec and a value of it
# ---------------------------------------------------------------------------------------------------------


@attrs.frozen
class TypedValue:
    """A column's type, how it is read, and one value of it."""

    wire: WireType
    codec: Codec = attrs.field(repr=False, eq=False)
    value: Any


_INTEGER_BITS = {
    ColumnCode.TINY: 8,
    ColumnCode.SHORT: 16,
    ColumnCode.INT24: 24,
    ColumnCode.LONG: 32,
    ColumnCode.LONGLONG: 64,
}


@st.composite
def integer_values(draw: st.DrawFn) -> TypedValue:
    """Return an integer column of any width and sign."""
    code, unsigned = draw(st.sampled_from(sorted(_INTEGER_BITS))), draw(st.booleans())
    bits = _INTEGER_BITS[code]
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    wire = WireType(code)
    return TypedValue(wire, codec_of(wire, unsigned=unsigned), draw(st.integers(low, high)))


@st.composite
def decimal_values(draw: st.DrawFn) -> TypedValue:
    """Return a DECIMAL column of any precision and scale."""
    precision, scale = draw(decimal_types())
    wire = WireType(ColumnCode.NEWDECIMAL, precision, scale)
    return TypedValue(wire, codec_of(wire), draw(decimals(precision, scale)))


@st.composite
def temporal_values(draw: st.DrawFn) -> TypedValue:
    """Return a column of any temporal type and precision."""
    precision = draw(PRECISIONS)
    code, values = draw(
        st.sampled_from(
            [
                (ColumnCode.DATE, DATES),
                (ColumnCode.NEWDATE, DATES),
                (ColumnCode.TIME, times(0)),
                (ColumnCode.DATETIME, datetimes(0)),
                (ColumnCode.TIMESTAMP, timestamps(0)),
                (ColumnCode.TIME2, times(precision)),
                (ColumnCode.DATETIME2, datetimes(precision)),
                (ColumnCode.TIMESTAMP2, timestamps(precision)),
                (ColumnCode.YEAR, st.just(0) | st.integers(1901, 2155)),
            ]
        )
    )
    fractional = code in (ColumnCode.TIME2, ColumnCode.DATETIME2, ColumnCode.TIMESTAMP2)
    wire = WireType(code, precision if fractional else 0)
    return TypedValue(wire, codec_of(wire), draw(values))


@st.composite
def text_values(draw: st.DrawFn) -> TypedValue:
    """Return a CHAR, VARCHAR or TEXT column in a Unicode character set or latin1."""
    code = draw(st.sampled_from([ColumnCode.STRING, ColumnCode.VARCHAR, ColumnCode.VAR_STRING, ColumnCode.BLOB]))
    length = draw(st.integers(1, 4) if code is ColumnCode.BLOB else st.integers(1, 1023))
    charset = draw(st.sampled_from(["utf8mb4", "utf8mb3", "utf16", "utf16le", "utf32", "latin1"]))
    alphabet = st.characters(max_codepoint=0x7F) if charset == "latin1" else st.characters(exclude_categories=["Cs"])
    wire = WireType(code, length)
    return TypedValue(wire, codec_of(wire, charset=charset), draw(st.text(alphabet, max_size=20)))


@st.composite
def bytes_values(draw: st.DrawFn) -> TypedValue:
    """Return a BINARY, VARBINARY or BLOB column."""
    code = draw(st.sampled_from([ColumnCode.STRING, ColumnCode.VARCHAR, ColumnCode.BLOB, ColumnCode.LONG_BLOB]))
    length = draw(st.integers(1, 4) if code in (ColumnCode.BLOB, ColumnCode.LONG_BLOB) else st.integers(1, 1023))
    wire = WireType(code, length)
    value = draw(st.binary(max_size=20))
    if code is ColumnCode.STRING:
        value = value[:length].ljust(length, b"\0")
    return TypedValue(wire, codec_of(wire), value)


@st.composite
def float_values(draw: st.DrawFn) -> TypedValue:
    """Return a FLOAT or DOUBLE column."""
    code, width = draw(st.sampled_from([(ColumnCode.FLOAT, 32), (ColumnCode.DOUBLE, 64)]))
    wire = WireType(code)
    return TypedValue(wire, codec_of(wire), draw(st.floats(allow_nan=False, allow_infinity=False, width=width)))


@st.composite
def member_values(draw: st.DrawFn) -> TypedValue:
    """Return a BIT, ENUM or SET column, ENUM and SET with and without their members."""
    kind = draw(st.sampled_from(["bit", "enum", "set"]))
    if kind == "bit":
        bits = draw(st.integers(1, 64))
        wire = WireType(ColumnCode.BIT, bits)
        return TypedValue(wire, codec_of(wire), draw(st.integers(0, 2**bits - 1)))
    members = draw(MEMBERS)
    if kind == "enum":
        wire = WireType(ColumnCode.ENUM, draw(st.integers(1, 2)))
        if draw(st.booleans()):
            return TypedValue(wire, codec_of(wire), draw(st.integers(0, len(members))))
        return TypedValue(wire, codec_of(wire, members=members), draw(st.sampled_from(("", *members))))
    wire = WireType(ColumnCode.SET, (len(members) + 7) // 8)
    if draw(st.booleans()):
        return TypedValue(wire, codec_of(wire), draw(st.integers(0, 2 ** len(members) - 1)))
    chosen = draw(st.lists(st.sampled_from(range(len(members))), unique=True).map(sorted))
    return TypedValue(wire, codec_of(wire, members=members), ",".join(members[place] for place in chosen))


# ---------------------------------------------------------------------------------------------------------
# JSON
# ---------------------------------------------------------------------------------------------------------

_JSON_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
# Bytes of a DECIMAL(n, 0) for n from 1 to 9.
_DECIMAL_BYTES = (1, 1, 2, 2, 3, 3, 4, 4, 4)


@st.composite
def json_opaques(draw: st.DrawFn) -> JsonOpaque:
    """Return a DECIMAL, a temporal value or the bytes of any other type, as a document holds it."""
    kind = draw(st.sampled_from(["decimal", "datetime", "time", "other"]))
    if kind == "decimal":
        precision = draw(st.integers(1, 9))
        size = _DECIMAL_BYTES[precision - 1]
        number = draw(st.integers(0, 10**precision - 1)) ^ 1 << 8 * size - 1
        flip = draw(st.sampled_from([0, (1 << 8 * size) - 1]))
        return JsonOpaque(ColumnCode.NEWDECIMAL, bytes([precision, 0]) + (number ^ flip).to_bytes(size, "big"))
    clock = draw(st.integers(0, 23)) << 12 | draw(st.integers(0, 59)) << 6 | draw(st.integers(0, 59))
    micro = draw(st.integers(0, 999999))
    if kind == "time":
        packed = (clock << 24 | micro) * draw(st.sampled_from([1, -1]))
        return JsonOpaque(ColumnCode.TIME, packed.to_bytes(8, "little", signed=True))
    if kind == "datetime":
        day = (draw(st.integers(0, 9999)) * 13 + draw(st.integers(0, 12))) << 5 | draw(st.integers(0, 31))
        code = draw(st.sampled_from([ColumnCode.DATE, ColumnCode.DATETIME, ColumnCode.TIMESTAMP]))
        return JsonOpaque(code, (day << 41 | clock << 24 | micro).to_bytes(8, "little"))
    code = draw(st.sampled_from([ColumnCode.BIT, ColumnCode.VARCHAR, ColumnCode.BLOB, ColumnCode.VAR_STRING, 100]))
    return JsonOpaque(code, draw(st.binary(max_size=80)))


_JSON_SCALARS: st.SearchStrategy[JsonValue] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-40000, 40000),
    st.integers(0, 2**64 - 1).map(JsonUint),
    st.floats(allow_nan=False, allow_infinity=False),
    _JSON_TEXT,
    json_opaques(),
)
JSON_VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    _JSON_SCALARS,
    lambda children: st.lists(children, max_size=5) | st.dictionaries(_JSON_TEXT, children, max_size=5),
    max_leaves=12,
)


@st.composite
def _json_diffs(draw: st.DrawFn) -> JsonDiff:
    legs = draw(
        st.lists(
            st.integers(0, 3).map("[{}]".format) | st.sampled_from([".a", '."b c"', "[last]", "[last-1]"]),
            min_size=1,
            max_size=3,
        )
    )
    operation = draw(st.sampled_from(DiffOperation))
    value = None if operation is DiffOperation.REMOVE else JsonDocument.of(draw(JSON_VALUES))
    return JsonDiff(operation, "$" + "".join(legs), value)


JSON_DIFFS = _json_diffs()


@st.composite
def kept_values(draw: st.DrawFn) -> TypedValue:
    """Return a JSON, GEOMETRY or VECTOR column, whose values keep their bytes."""
    kind = draw(st.sampled_from([ColumnCode.JSON, ColumnCode.GEOMETRY, ColumnCode.VECTOR]))
    wire = WireType(kind, 4)
    if kind is ColumnCode.JSON:
        return TypedValue(wire, codec_of(wire), JsonDocument.of(draw(JSON_VALUES)))
    if kind is ColumnCode.GEOMETRY:
        return TypedValue(wire, codec_of(wire), Geometry(draw(st.binary(min_size=4, max_size=30))))
    return TypedValue(wire, codec_of(wire), Vector(b"".join(draw(st.lists(st.binary(min_size=4, max_size=4))))))


TYPED_VALUES = st.one_of(
    integer_values(),
    decimal_values(),
    temporal_values(),
    text_values(),
    bytes_values(),
    float_values(),
    member_values(),
    kept_values(),
)


# ---------------------------------------------------------------------------------------------------------
# Tables of NDB
# ---------------------------------------------------------------------------------------------------------

_COLUMN_TYPES = ("INT UNSIGNED", "INT UNSIGNED NOT NULL", "BIGINT UNSIGNED", "INT", "VARCHAR(9)", "TIMESTAMP", "TEXT")


@st.composite
def ndb_tables(draw: st.DrawFn) -> Table:
    """
    Return tables that a function can compare column ``x`` of, if it is one that is stored.

    ``x`` can be plain, a part of the key, or generated; other columns are plain, blobs, generated from each other,
    or set by every update. There may be no primary key, and further unique keys.
    """
    plain = [f"c{number}" for number in range(draw(st.integers(0, 4)))]
    columns = [f"{name} {draw(st.sampled_from(_COLUMN_TYPES))}" for name in plain]
    columns = [text.replace("TIMESTAMP", "TIMESTAMP ON UPDATE CURRENT_TIMESTAMP") for text in columns]
    base = [text.split()[0] for text in columns if "INT" in text]
    generated = draw(st.sampled_from(["", "", "", "STORED", "VIRTUAL"])) if base else ""
    made = f" GENERATED ALWAYS AS ({draw(st.sampled_from(base))} + 1) {generated}" if generated else ""
    columns.append(f"x {draw(st.sampled_from(['INT', 'BIGINT']))} UNSIGNED{made}")
    if base and draw(st.booleans()):
        kind = draw(st.sampled_from(["STORED", "VIRTUAL"]))
        columns.append(f"g INT GENERATED ALWAYS AS ({draw(st.sampled_from(base))} + 2) {kind}")
    columns = draw(st.permutations(columns))
    key = draw(st.sampled_from(["k INT", "k VARCHAR(5) CHARACTER SET latin1"]))
    names = draw(st.sampled_from(["k", "k", "k, x", "x", ""] if not generated else ["k", ""]))
    keys = [f"PRIMARY KEY ({names})"] if names else []
    if base and draw(st.booleans()) and draw(st.booleans()):
        keys.append(f"UNIQUE ({base[0]})")
    place = draw(st.integers(0, len(columns)))
    columns.insert(place, key)
    return parse_create_table(f"CREATE TABLE t ({', '.join([*columns, *keys])}) ENGINE=NDB", database="d")
