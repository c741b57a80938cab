"""Column types: wire types from metadata, and one codec per type."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.constants import ColumnCode
from ndb_formats.cursor import Cursor
from ndb_formats.errors import CorruptError, FormatError, SchemaError, TruncatedError, UnsupportedError
from ndb_formats.types.column_types import Codec, WireType, charset_of, codec_of, read_wire_types
from tests.strategies import TYPED_VALUES, TypedValue


class TestWireTypes:
    """Type codes and metadata of a Table_map event."""

    @pytest.mark.parametrize(
        ("code", "metadata", "wire"),
        [
            (3, "", WireType(ColumnCode.LONG)),
            (4, "04", WireType(ColumnCode.FLOAT, 4)),
            (15, "c800", WireType(ColumnCode.VARCHAR, 200)),
            (15, "b004", WireType(ColumnCode.VARCHAR, 1200)),  # VARCHAR(300) of utf8mb4
            (246, "0a03", WireType(ColumnCode.NEWDECIMAL, 10, 3)),
            (16, "0501", WireType(ColumnCode.BIT, 13)),  # 5 bits and 1 byte
            (16, "0008", WireType(ColumnCode.BIT, 64)),
            (19, "06", WireType(ColumnCode.TIME2, 6)),
            (252, "02", WireType(ColumnCode.BLOB, 2)),
            (245, "04", WireType(ColumnCode.JSON, 4)),
            (254, "fe28", WireType(ColumnCode.STRING, 40)),  # CHAR(10) of utf8mb4
            (254, "feff", WireType(ColumnCode.STRING, 255)),
            (254, "ee00", WireType(ColumnCode.STRING, 256)),  # CHAR(64) of utf8mb4: bit 8 inverted in bit 4
            (254, "de00", WireType(ColumnCode.STRING, 512)),
            (254, "cefc", WireType(ColumnCode.STRING, 1020)),  # CHAR(255) of utf8mb4
            (254, "f701", WireType(ColumnCode.ENUM, 1)),
            (254, "f702", WireType(ColumnCode.ENUM, 2)),
            (254, "f808", WireType(ColumnCode.SET, 8)),
        ],
    )
    def test_wire_type(self, code: int, metadata: str, wire: WireType):
        """A type code and its metadata give the type, ENUM, SET and long CHAR out of STRING."""
        cursor = Cursor(bytes.fromhex(metadata))
        assert read_wire_types(bytes([code]), cursor) == (wire,)
        assert cursor.remaining == 0

    def test_columns_take_their_metadata_in_order(self):
        """Each column takes as many bytes of metadata as its type has."""
        types = read_wire_types(bytes([8, 246, 10, 18]), Cursor(bytes.fromhex("0502 03")))
        assert types == (
            WireType(ColumnCode.LONGLONG),
            WireType(ColumnCode.NEWDECIMAL, 5, 2),
            WireType(ColumnCode.DATE),
            WireType(ColumnCode.DATETIME2, 3),
        )

    def test_an_unknown_code_is_refused_with_its_column(self):
        """A type code of a later version is named, with the column's number."""
        with pytest.raises(UnsupportedError, match="column type code 99 ") as caught:
            read_wire_types(bytes([3, 99]), Cursor(b""))
        assert caught.value.column == "@2"

    @pytest.mark.parametrize("metadata", ["0105", "f000", "3010"])
    def test_an_unknown_type_hidden_in_a_string_is_refused(self, metadata: str):
        """The real type under STRING must be a type too."""
        with pytest.raises(UnsupportedError, match="column type code") as caught:
            read_wire_types(bytes([254]), Cursor(bytes.fromhex(metadata)))
        assert caught.value.column == "@1"

    def test_cut_metadata_is_truncated(self):
        """Metadata that ends before its column does is a truncation."""
        with pytest.raises(TruncatedError):
            read_wire_types(bytes([246]), Cursor(b"\x0a"))

    @given(st.binary(max_size=8), st.binary(max_size=24))
    def test_any_codes_and_metadata_give_types_or_our_error(self, codes: bytes, metadata: bytes):
        """No other exception leaves, whatever the bytes."""
        try:
            types = read_wire_types(codes, Cursor(metadata))
        except FormatError:
            return
        assert len(types) == len(codes)


INTEGERS = [
    (ColumnCode.TINY, False, "80", -128),
    (ColumnCode.TINY, False, "7f", 127),
    (ColumnCode.TINY, False, "ff", -1),
    (ColumnCode.TINY, True, "ff", 255),
    (ColumnCode.SHORT, False, "0080", -32768),
    (ColumnCode.SHORT, False, "ff7f", 32767),
    (ColumnCode.SHORT, True, "ffff", 65535),
    (ColumnCode.INT24, False, "000080", -8388608),
    (ColumnCode.INT24, False, "ffff7f", 8388607),
    (ColumnCode.INT24, True, "ffffff", 16777215),
    (ColumnCode.LONG, False, "00000080", -2147483648),
    (ColumnCode.LONG, False, "ffffff7f", 2147483647),
    (ColumnCode.LONG, True, "ffffffff", 4294967295),
    (ColumnCode.LONGLONG, False, "0000000000000080", -9223372036854775808),
    (ColumnCode.LONGLONG, False, "ffffffffffffff7f", 9223372036854775807),
    (ColumnCode.LONGLONG, False, "ffffffffffffffff", -1),
    (ColumnCode.LONGLONG, True, "0000000000000080", 9223372036854775808),
    (ColumnCode.LONGLONG, True, "ffffffffffffffff", 18446744073709551615),
    (ColumnCode.LONGLONG, True, "0000000000000000", 0),
]


@pytest.mark.parametrize(("code", "unsigned", "data", "value"), INTEGERS)
def test_integers_at_their_extremes(code: ColumnCode, unsigned: bool, data: str, value: int):
    """Integers of every width and sign are exact to the last unit."""
    _check(codec_of(WireType(code), unsigned=unsigned), data, value)


COLORS = ("red", "green", "blue")
LETTERS = ("a", "b", "c", "d")
SIXTY_FOUR = tuple(f"m{place}" for place in range(64))
WIDE_ENUM = tuple(f"m{place}" for place in range(1, 301))


@pytest.mark.parametrize(
    ("wire", "options", "data", "value"),
    [
        (WireType(ColumnCode.FLOAT, 4), {}, "0000c03f", 1.5),
        (WireType(ColumnCode.DOUBLE, 8), {}, "00000000000002c0", -2.25),
        (WireType(ColumnCode.NEWDECIMAL, 10, 3), {}, "8000000100fa", Decimal("1.250")),
        (WireType(ColumnCode.YEAR), {}, "00", 0),
        (WireType(ColumnCode.YEAR), {}, "01", 1901),
        (WireType(ColumnCode.YEAR), {}, "ff", 2155),
        (WireType(ColumnCode.DATE), {}, "5dd00f", "2024-02-29"),
        (WireType(ColumnCode.NEWDATE), {}, "000000", "0000-00-00"),
        (WireType(ColumnCode.TIME), {}, "590a80", "-838:59:59"),
        (WireType(ColumnCode.DATETIME), {}, "e5c3aa8b68120000", "2024-02-29 12:30:45"),
        (WireType(ColumnCode.TIMESTAMP), {}, "00ca9a3b", "2001-09-09 01:46:40"),  # little-endian
        (WireType(ColumnCode.TIMESTAMP), {}, "00000000", "0000-00-00 00:00:00"),
        (WireType(ColumnCode.TIMESTAMP2, 2), {}, "3b9aca000c", "2001-09-09 01:46:40.12"),
        (WireType(ColumnCode.DATETIME2, 6), {}, "99b2bac7ad01e240", "2024-02-29 12:30:45.123456"),
        (WireType(ColumnCode.TIME2, 6), {}, "7fffffffffff", "-00:00:00.000001"),
        (WireType(ColumnCode.BIT, 1), {}, "01", 1),
        (WireType(ColumnCode.BIT, 13), {}, "1555", 0b1010101010101),  # big-endian
        (WireType(ColumnCode.BIT, 64), {}, "8000000000000001", 2**63 + 1),
        (WireType(ColumnCode.ENUM, 1), {"members": COLORS}, "03", "blue"),
        (WireType(ColumnCode.ENUM, 1), {"members": COLORS}, "00", ""),  # the error value
        (WireType(ColumnCode.ENUM, 2), {"members": WIDE_ENUM}, "2c01", "m300"),
        (WireType(ColumnCode.ENUM, 1), {}, "03", 3),
        (WireType(ColumnCode.SET, 1), {"members": LETTERS}, "0d", "a,c,d"),
        (WireType(ColumnCode.SET, 1), {"members": LETTERS}, "00", ""),
        (WireType(ColumnCode.SET, 8), {"members": SIXTY_FOUR}, "0100000000000080", "m0,m63"),
        (WireType(ColumnCode.SET, 1), {}, "0d", 13),
        (WireType(ColumnCode.VARCHAR, 200), {"charset": "utf8mb4"}, "04f09f9880", "😀"),
        (WireType(ColumnCode.VARCHAR, 255), {"charset": "latin1"}, "0181", "\x81"),
        (WireType(ColumnCode.VARCHAR, 256), {"charset": "latin1"}, "0300e97a80", "éz€"),
        (WireType(ColumnCode.VARCHAR, 40), {}, "05deadbeef00", bytes.fromhex("deadbeef00")),  # VARBINARY
        (WireType(ColumnCode.STRING, 40), {"charset": "utf8mb4"}, "026162", "ab"),
        (WireType(ColumnCode.STRING, 1020), {"charset": "utf8mb4"}, "02006162", "ab"),
        (WireType(ColumnCode.STRING, 6), {}, "0300ff10", bytes.fromhex("00ff10000000")),  # BINARY(6)
        (WireType(ColumnCode.STRING, 6), {}, "00", bytes(6)),
        (WireType(ColumnCode.BLOB, 1), {}, "0200ff", b"\x00\xff"),
        (WireType(ColumnCode.BLOB, 2), {"charset": "utf8mb4"}, "0300e282ac", "€"),
        (WireType(ColumnCode.BLOB, 3), {}, "000000", b""),
        (WireType(ColumnCode.BLOB, 4), {"charset": "latin1"}, "01000000e9", "é"),
        (WireType(ColumnCode.NULL), {}, "", None),
    ],
)
def test_golden_vectors(wire: WireType, options: dict[str, Any], data: str, value: Any):
    """The bytes of a value in an image give the value, and the value gives the bytes."""
    _check(codec_of(wire, **options), data, value)


def _check(codec: Codec, data: str, value: Any) -> None:
    cursor = Cursor(bytes.fromhex(data))
    payload = codec.take(cursor)
    assert cursor.remaining == 0
    decoded = codec.decode(payload)
    assert (type(decoded), decoded) == (type(value), value)
    assert codec.put(codec.encode(value)).hex() == data


@given(TYPED_VALUES)
def test_every_value_comes_back(typed: TypedValue):
    """Encoding and decoding are inverse for every type."""
    decoded = typed.codec.decode(typed.codec.encode(typed.value))
    assert (type(decoded), decoded) == (type(typed.value), typed.value)


@given(TYPED_VALUES, st.binary(max_size=4))
def test_take_is_the_inverse_of_put(typed: TypedValue, after: bytes):
    """A value put into an image is taken out of it, and no byte of what follows."""
    payload = typed.codec.encode(typed.value)
    if typed.codec.prefixed:
        payload = payload[: 256**typed.codec.width - 1]
    cursor = Cursor(typed.codec.put(payload) + after)
    assert typed.codec.take(cursor) == payload
    assert cursor.rest() == after


@given(TYPED_VALUES)
def test_every_proper_prefix_of_a_value_is_truncated(typed: TypedValue):
    """A value that is cut anywhere is a truncation."""
    data = typed.codec.put(typed.codec.encode(typed.value))
    for length in range(len(data)):
        with pytest.raises(TruncatedError):
            typed.codec.take(Cursor(data[:length]))


@pytest.mark.parametrize("code", [ColumnCode.JSON, ColumnCode.GEOMETRY, ColumnCode.VECTOR])
def test_bytes_that_are_no_value_can_be_skipped(code: ColumnCode):
    """JSON, GEOMETRY and VECTOR have a length; what stands behind it matters only to who asks."""
    codec = codec_of(WireType(code, 4))
    assert codec.take(Cursor(bytes.fromhex("02000000abcd"))) == b"\xab\xcd"


def test_a_type_without_a_known_layout_is_refused():
    """DECIMAL of before MySQL 5.0 cannot even be stepped over."""
    with pytest.raises(UnsupportedError, match="layout of type DECIMAL"):
        codec_of(WireType(ColumnCode.DECIMAL))


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (5, 6)])
def test_an_impossible_decimal_is_corrupt(precision: int, scale: int):
    """Metadata that no DECIMAL has is corrupt."""
    with pytest.raises(CorruptError, match=rf"DECIMAL\({precision},{scale}\)"):
        codec_of(WireType(ColumnCode.NEWDECIMAL, precision, scale))


def test_an_enum_number_beyond_its_members_needs_another_definition():
    """A fourth member of an ENUM defined with three is an error, not another value."""
    with pytest.raises(SchemaError, match="member 4 of an ENUM that is defined with 3"):
        codec_of(WireType(ColumnCode.ENUM, 1), members=COLORS).decode(b"\x04")


def test_a_set_bit_beyond_its_members_needs_another_definition():
    """A fifth member of a SET defined with four is an error and not dropped."""
    with pytest.raises(SchemaError, match="member 5 of a SET that is defined with 4"):
        codec_of(WireType(ColumnCode.SET, 1), members=LETTERS).decode(b"\x11")


def test_an_empty_enum_member_is_not_the_error_value():
    """ENUM('', 'a') stores '' as member 1."""
    codec = codec_of(WireType(ColumnCode.ENUM, 1), members=("", "a"))
    assert codec.encode("") == b"\x01"
    assert codec.decode(b"\x01") == ""


@pytest.mark.parametrize("value", [256, -1])
def test_an_integer_that_does_not_fit_is_refused(value: int):
    """Encoding never wraps around."""
    with pytest.raises(OverflowError):
        codec_of(WireType(ColumnCode.TINY), unsigned=True).encode(value)


def test_character_set_to_decode_with():
    """Collation `binary` means bytes."""
    assert (charset_of(63), charset_of(8)) == (None, "latin1")
