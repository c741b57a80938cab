"""MySQL's binary JSON: bytes to value, to text, and back."""

import json
import struct
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.constants import ColumnCode
from ndb_formats.errors import CorruptError, FormatError, TruncatedError
from ndb_formats.types.column_types import WireType, codec_of
from ndb_formats.types.json_binary import MAX_DEPTH, JsonDocument, decode_json, encode_json
from ndb_formats.types.json_values import JsonOpaque, JsonUint, JsonValue, json_text
from tests.strategies import JSON_VALUES

# Recorded from MySQL 9.7.4: the document in the binlog, and what mysqlbinlog printed of it.
RECORDED = [
    ("0200000400", "[]"),
    (
        "0002002b0012000100130001000501000214006162030017000401000b0d000c150000000000000004400173",
        '{"a": 1, "b": [true, 2.5, "s"]}',
    ),
    (
        "0002002b0012000100130001000502000214006162030017000401000b0d000c150000000000000004400173",
        '{"a": 2, "b": [true, 2.5, "s"]}',
    ),
    (
        "0001002b000b000100020c006b05001f000501000c13000b17000400000401000374776f0000000000000c40",
        '{"k": [1, "two", 3.5, null, true]}',
    ),
    ("00010026000b000100020c006104001a000501000b10000400000c180000000000000004400178", '{"a": [1, 2.5, null, "x"]}'),
    ("000100c60b0b0001000c0c006bb817" + "76" * 3000, f'{{"k": "{"v" * 3000}"}}'),
]

# Worked by hand from the format.
SCALARS: list[tuple[str, JsonValue, str]] = [
    ("0400", None, "null"),
    ("0401", True, "true"),
    ("0402", False, "false"),
    ("050100", 1, "1"),
    ("05ffff", -1, "-1"),
    ("050080", -32768, "-32768"),
    ("06ffff", JsonUint(65535), "65535"),
    ("0700800000", 32768, "32768"),
    ("07ff7fffff", -32769, "-32769"),
    ("0700000080", -(2**31), "-2147483648"),
    ("0800000100", JsonUint(65536), "65536"),
    ("090000008000000000", 2**31, "2147483648"),
    ("090000000000000080", -(2**63), "-9223372036854775808"),
    ("0a0000000001000000", JsonUint(2**32), "4294967296"),
    ("0affffffffffffffff", JsonUint(2**64 - 1), "18446744073709551615"),
    ("0b0000000000000440", 2.5, "2.5"),
    ("0c00", "", '""'),
    ("0c03616263", "abc", '"abc"'),
    ("0c04f09f9880", "😀", '"😀"'),
]
# SELECT CAST(CAST(x AS JSON) AS CHAR) for a value of each SQL type.
OPAQUE: list[tuple[str, Decimal | str | bytes, str]] = [
    ("0ff6080a038000000100fa", Decimal("1.250"), "1.250"),
    ("0ff6080a037ffffffeff05", Decimal("-1.250"), "-1.250"),
    ("0f0a080000000000bab219", "2024-02-29", '"2024-02-29"'),
    ("0f0a080000000000000000", "0000-00-00", '"0000-00-00"'),
    ("0f0c0840e201adc7bab219", "2024-02-29 12:30:45.123456", '"2024-02-29 12:30:45.123456"'),
    ("0f070840e201adc7bab219", "2024-02-29 12:30:45.123456", '"2024-02-29 12:30:45.123456"'),
    ("0f0b08080a0cb8c8000000", "12:34:56.789000", '"12:34:56.789000"'),
    ("0f0b080000000591cbffff", "-838:59:59.000000", '"-838:59:59.000000"'),
    ("0ffc0300ff41", b"\x00\xff\x41", '"base64:type252:AP9B"'),
    ("0f10010a", b"\x0a", '"base64:type16:Cg=="'),
    ("0fff00", b"", '"base64:type255:"'),
    ("0ffd02c3a9", "é".encode(), '"é"'),  # VAR_STRING is printed as the text it is
]


def tagged(value: JsonValue) -> Any:
    """Return something that is equal for values that are the same in every respect but the order of keys."""
    if isinstance(value, dict):
        return {key: tagged(member) for key, member in value.items()}
    if isinstance(value, list):
        return [tagged(member) for member in value]
    return (type(value).__name__, struct.pack("<d", value) if isinstance(value, float) else value)


@pytest.mark.parametrize(("data", "text"), RECORDED)
def test_recorded_documents(data: str, text: str):
    """A document that a server wrote gives the text that its own tool printed, and its own bytes again."""
    document = JsonDocument(bytes.fromhex(data))
    assert document.text == text
    assert encode_json(document.value) == document.data


@pytest.mark.parametrize(("data", "value", "text"), SCALARS)
def test_scalars(data: str, value: JsonValue, text: str):
    """A document that is one number, string or literal, of every width and sign."""
    assert tagged(decode_json(bytes.fromhex(data))) == tagged(value)
    assert json_text(value) == text
    assert encode_json(value) == bytes.fromhex(data)


@pytest.mark.parametrize(("data", "value", "text"), OPAQUE)
def test_opaque_values(data: str, value: Decimal | str | bytes, text: str):
    """Values of SQL types keep type and bytes; numbers are printed bare, times quoted, the rest in base64."""
    raw = bytes.fromhex(data)
    opaque = decode_json(raw)
    assert opaque == JsonOpaque(raw[1], raw[3:])
    assert isinstance(opaque, JsonOpaque)
    assert (opaque.value, json_text(opaque)) == (value, text)
    assert encode_json(opaque) == raw


def test_no_bytes_are_null():
    """A NOT NULL column that was given NULL under IGNORE holds no bytes at all; they read as the JSON null."""
    assert (JsonDocument(b"").value, JsonDocument(b"").text) == (None, "null")
    assert encode_json(None) == b"\x04\x00"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (-2.25e100, "-2.25e100"),
        (1e14, "100000000000000.0"),
        (1e15, "1e15"),
        (1234567890123456.0, "1.234567890123456e15"),
        (1234567890123456.5, "1234567890123456.5"),
        (123456789012345.0, "123456789012345.0"),
        (1e-15, "0.000000000000001"),
        (1.5e-15, "0.0000000000000015"),
        (1e-16, "1e-16"),
        (0.30000000000000004, "0.30000000000000004"),
        (1.7976931348623157e308, "1.7976931348623157e308"),
        (5e-324, "5e-324"),
        (float("nan"), "0.0"),
        (float("-inf"), "0.0"),
    ],
)
def test_text_of_doubles(number: float, text: str):
    """A double has the fewest digits that give it back, no exponent for 15 digits, and never looks like an integer."""
    assert json_text(number) == text


def test_text_of_strings():
    """Quote, backslash and control characters are escaped, nothing else is."""
    assert json_text("\"\\/\b\t\n\f\r\x01\x1f\x7fé'😀") == '"\\"\\\\/\\b\\t\\n\\f\\r\\u0001\\u001f\x7fé\'😀"'
    assert json_text({'a"': [[], {}]}) == '{"a\\"": [[], {}]}'


def test_text_without_quotes():
    """A string alone can be had without quotes and escapes; one inside an array cannot."""
    assert json_text('a"b', quoted=False) == 'a"b'
    assert json_text(['a"b'], quoted=False) == '["a\\"b"]'
    assert json_text(JsonOpaque(ColumnCode.TIME, bytes(8)), quoted=False) == "00:00:00.000000"


def test_long_base64_has_lines():
    """Base64 has 76 characters a line; the line feed is escaped as in any string."""
    assert json_text(JsonOpaque(252, bytes(57))) == f'"base64:type252:{"A" * 76}"'
    assert json_text(JsonOpaque(252, bytes(58))) == f'"base64:type252:{"A" * 76}\\nAA=="'


class TestSmallAndLarge:
    """Which values are inlined, and when offsets take four bytes."""

    def test_keys_are_sorted_by_length_and_bytes(self):
        """The shorter key comes first, capitals before small letters."""
        data = encode_json({"bb": 1, "a": 2, "C": 3})
        assert data.hex() == "000300 1d00 19000100 1a000100 1b000200 050300 050200 050100 43 61 6262".replace(" ", "")
        assert list(decode_json(data)) == ["C", "a", "bb"]

    def test_32_bits_are_not_inlined_in_a_small_object(self):
        """A number of 32 bits stands behind the keys."""
        data = bytes.fromhex("000100 1000 0b000100 070c00 61 a0860100")
        assert decode_json(data) == {"a": 100000}
        assert encode_json({"a": 100000}) == data

    def test_32_bits_are_inlined_in_a_large_array(self):
        """In a large array they are inlined, and 16 bits keep their sign in the wider field."""
        value = [100000, -1, JsonUint(65535), True, "x" * 70000]
        head = "03 05000000 94110100 07a0860100 05ffffffff 06ffff0000 0401000000 0c21000000 f0a204"
        data = bytes.fromhex(head) + b"x" * 70000
        assert encode_json(value) == data
        assert tagged(decode_json(data)) == tagged(value)

    @pytest.mark.parametrize(("length", "kind"), [(65525, 2), (65526, 3)])
    def test_the_last_small_array(self, length: int, kind: int):
        """4 bytes of sizes, 3 of entry, 3 of length and 65525 of text are 65535; one more needs the large form."""
        data = encode_json(["x" * length])
        assert data[0] == kind
        assert decode_json(data) == ["x" * length]

    def test_a_container_of_a_large_one_is_large(self):
        """An object is large because the array in it is; the small array beside it stays small."""
        data = encode_json({"a": ["x" * 70000], "b": [1]})
        assert (data[0], data[1 + 8 + 12], data[1 + 8 + 12 + 5]) == (1, 3, 2)
        assert decode_json(data) == {"a": ["x" * 70000], "b": [1]}

    def test_many_elements_make_an_array_large(self):
        """More elements than 16 bits of size hold."""
        assert [encode_json([1] * count)[0] for count in (21843, 21844)] == [2, 3]
        assert decode_json(encode_json([1] * 70000)) == [1] * 70000


def test_an_updated_document_has_gaps():
    """A server that wrote "x" over "abc" in place leaves two bytes, which are no part of any value."""
    document = JsonDocument(bytes.fromhex("02 0100 0b00 0c0700 0178 6263"))
    assert document.value == ["x"]
    assert JsonDocument.of(document.value).data == bytes.fromhex("02 0100 0900 0c0700 0178")


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ("00", TruncatedError, "needs 4 bytes at 1"),
        ("02 0100 0900 0c0700 01", TruncatedError, "has 9 bytes, there are 8"),
        ("02 0100 0600 0c0700 0178", TruncatedError, "needs 3 bytes at 5"),
        ("02 0100 0900 0c0800 78", TruncatedError, "the value at 1 has 9"),
        ("02 0100 0900 0c0600 0178", CorruptError, "points to 7, among its entries"),
        ("02 0200 0c00 0c0a00 0c0a00 0178", CorruptError, "belong to two values"),
        ("00 0200 1400 12000100 13000100 050100 050100 6161", CorruptError, "the same key twice"),
        ("0403", CorruptError, "literal 0x03"),
        ("0d00", CorruptError, "type 0x0d"),
        ("02 0100 0700 100000", CorruptError, "among its entries"),
        ("02 0100 0900 100700 0000", CorruptError, "type 0x10"),
        ("0c8080808080", CorruptError, "does not end"),
        ("0c02c328", CorruptError, "not UTF-8"),
        ("00 0100 0c00 0b000100 050100 ff", CorruptError, "not UTF-8"),
        ("0ff6020a", TruncatedError, "needs 2 bytes"),
        ("0ff6020a03", CorruptError, "not a DECIMAL"),
        ("0ff603030580", CorruptError, "not a DECIMAL"),
        ("0ff60301008f", CorruptError, "in a group of 1 decimal digits"),
        ("0f0a0100", CorruptError, "not a packed temporal value"),
        ("0f0c08ffffffffffffffff", CorruptError, "not a packed temporal value"),
        ("0f0b08ffffffffffffff7f", CorruptError, "not a packed temporal value"),
    ],
)
def test_corrupt_documents(data: str, error: type[FormatError], words: str):
    """What contradicts the format is an error that says where."""
    with pytest.raises(error, match=words):
        decode_json(bytes.fromhex(data))


def test_documents_that_share_bytes_do_not_explode():
    """Arrays that all point to one other array twice would stand for 2 ** 50 values."""
    data = bytes.fromhex("02 0000 0400")[1:]
    for _ in range(50):
        data = struct.pack("<HHBHBH", 2, len(data) + 10, 2, 10, 2, 10) + data
    with pytest.raises(CorruptError, match="belong to two values"):
        decode_json(b"\x02" + data)


def test_depth():
    """A hundred levels are the most that a server takes."""
    value: JsonValue = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    data = encode_json(value)
    assert decode_json(data) == value
    deeper = struct.pack("<BHHBH", 2, 1, len(data) + 6, 2, 7) + data[1:]
    with pytest.raises(CorruptError, match="deeper than 100"):
        decode_json(deeper)
    with pytest.raises(ValueError, match="deeper than 100"):
        encode_json([value])


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (2**63, ValueError),
        (JsonUint(2**64), ValueError),
        ({"k" * 65536: 1}, ValueError),
        ("\ud800", ValueError),
        ([b"bytes"], TypeError),
        ([Decimal(1)], TypeError),
    ],
    ids=["int", "uint", "key", "surrogate", "bytes", "decimal"],
)
def test_values_that_cannot_be_written(value: Any, error: type[Exception]):
    """What MySQL has no form for is refused."""
    with pytest.raises(error):
        encode_json(value)


def test_a_column_gives_documents():
    """The codec of a JSON column gives a document with its bytes, and takes one, or a value."""
    codec = codec_of(WireType(ColumnCode.JSON, 4))
    data = bytes.fromhex(RECORDED[1][0])
    document = codec.decode(data)
    assert document == JsonDocument(data)
    assert codec.encode(document) == codec.encode({"b": [True, 2.5, "s"], "a": 1}) == data
    assert JsonDocument.of({"a": 1}) != document


@given(JSON_VALUES)
def test_a_value_comes_back(value: JsonValue):
    """Any value, written and read, is the same with its types, and is written the same again."""
    data = encode_json(value)
    found = decode_json(data)
    assert tagged(found) == tagged(value)
    assert encode_json(found) == data


def _without_opaque(value: JsonValue) -> Any:
    if isinstance(value, dict):
        return {key: _without_opaque(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_without_opaque(member) for member in value]
    return None if isinstance(value, JsonOpaque) else value


@given(JSON_VALUES)
def test_the_text_is_json(value: JsonValue):
    """Python's own JSON reader finds the value in the text, doubles to the last bit."""
    plain = _without_opaque(value)
    assert json.loads(json_text(plain)) == plain
    json.loads(json_text(value))


def _read(data: bytes) -> None:
    """Read a document; our own errors are fine, no others are."""
    with suppress(FormatError):
        json_text(decode_json(data))


@given(JSON_VALUES)
def test_every_prefix_is_handled(value: JsonValue):
    """A document that is cut anywhere gives our error, or what its bytes say."""
    data = encode_json(value)
    for length in range(1, len(data)):
        with pytest.raises(FormatError):
            decode_json(data[:length])


@given(JSON_VALUES, st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes_are_handled(value: JsonValue, changes: list[tuple[int, int]]):
    """A document with some bytes changed gives our error, or what its bytes say."""
    data = bytearray(encode_json(value))
    for place, byte in changes:
        data[place % len(data)] = byte
    _read(bytes(data))


@given(st.sampled_from(range(16)), st.binary(max_size=60))
def test_any_bytes_are_handled(kind: int, data: bytes):
    """Any bytes at all give our error, or a value."""
    _read(bytes([kind]) + data)
