"""Character sets: collation numbers, and text that survives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.errors import CorruptError, UnsupportedError
from ndb_formats.types.charsets import (
    charset_of_collation,
    charset_of_collation_id,
    decode_text,
    default_collation,
    encode_text,
)
from tests.strategies import CHARSETS

WIDE = ("ucs2", "utf16", "utf16le", "utf32")
# Two codes of one character: what was the second encodes to the first.
WITH_DUPLICATES = ("big5", "cp932", "eucjpms", "sjis", "ujis")


@pytest.mark.parametrize("number", [0, 17, 100, 125, 216, 254, 324, 2504])
def test_an_unknown_collation_number_is_refused_by_number(number: int):
    """A number that no server uses is an error that names it."""
    with pytest.raises(UnsupportedError, match=f"collation number {number} "):
        charset_of_collation_id(number)


@pytest.mark.parametrize(
    ("collation", "charset"),
    [("utf8mb4_0900_ai_ci", "utf8mb4"), ("LATIN1_BIN", "latin1"), ("utf8_bin", "utf8mb3"), ("binary", "binary")],
)
def test_character_set_of_a_collation_name(collation: str, charset: str):
    """The name before the first underscore is the character set; utf8 is the old name of utf8mb3."""
    assert charset_of_collation(collation) == charset


@pytest.mark.parametrize(
    ("charset", "collation"),
    [
        ("utf8mb4", "utf8mb4_0900_ai_ci"),
        ("utf8mb3", "utf8mb3_general_ci"),
        ("latin1", "latin1_swedish_ci"),
        ("latin2", "latin2_general_ci"),
        ("sjis", "sjis_japanese_ci"),
        ("ascii", "ascii_general_ci"),
    ],
)
def test_default_collation_of_a_character_set(charset: str, collation: str):
    """A character set alone implies the server's default collation."""
    assert default_collation(charset) == collation


@pytest.mark.parametrize(
    ("charset", "data", "text"),
    [
        ("utf8mb4", "f09f9880", "😀"),
        ("utf8mb3", "e282ac", "€"),
        ("latin1", "636166e9", "café"),
        ("latin1", "80", "€"),  # MySQL's latin1 is cp1252
        ("latin1", "818d8f909d", "\x81\x8d\x8f\x90\x9d"),  # the five bytes that cp1252 leaves out
        ("cp1251", "cff0e8e2e5f2", "Привет"),
        ("sjis", "93fa967b", "日本"),
        ("gbk", "c4e3", "你"),
        ("ucs2", "20ac", "€"),
        ("utf16", "d83dde00", "😀"),
        ("utf16le", "3dd800de", "😀"),
        ("utf32", "0001f600", "😀"),
        ("greek", "e2", "β"),
        ("greek", "a1a2", "\u02bd\u02bc"),
        ("cp866", "fcfd", "\u207f\u00b2"),
        ("koi8u", "95", "\u2022"),
        ("hebrew", "af", "\u203e"),
        ("big5", "f9d6f9da", "\u7881\u6052"),
        ("utf8mb4", "", ""),
    ],
)
def test_text_of_a_character_set(charset: str, data: str, text: str):
    """Bytes and text of a character set go both ways."""
    assert decode_text(bytes.fromhex(data), charset) == text
    assert encode_text(text, charset).hex() == data


@pytest.mark.parametrize("byte", range(256))
def test_every_latin1_byte_is_a_character_of_its_own(byte: int):
    """All 256 bytes of latin1 decode to one character and back."""
    text = decode_text(bytes([byte]), "latin1")
    assert len(text) == 1
    assert encode_text(text, "latin1") == bytes([byte])


def test_bytes_that_are_no_utf8_survive():
    """Invalid bytes become lone surrogates and encode back."""
    assert decode_text(b"a\xff\xc3", "utf8mb4") == "a\udcff\udcc3"
    assert encode_text("a\udcff\udcc3", "utf8mb4") == b"a\xff\xc3"


@pytest.mark.parametrize("charset", [name for name in CHARSETS if name not in (*WIDE, *WITH_DUPLICATES)])
@given(data=st.binary(max_size=12))
def test_any_bytes_survive_in_a_character_set_of_bytes(charset: str, data: bytes):
    """Decoding never fails and never loses a byte."""
    assert encode_text(decode_text(data, charset), charset) == data


@pytest.mark.parametrize("charset", WITH_DUPLICATES)
@given(data=st.binary(max_size=12))
def test_the_text_of_any_bytes_survives_where_a_character_has_two_codes(charset: str, data: bytes):
    """The code may be the other one."""
    text = decode_text(data, charset)
    assert decode_text(encode_text(text, charset), charset) == text


@pytest.mark.parametrize(
    ("charset", "data", "text"),
    [
        ("cp932", "82fa40", "\udc82\u2170"),  # eeef is the same character, but 82ee would be another one
        ("sjis", "98815f", "\udc98\\"),  # the server has two codes of a backslash
        ("eucjpms", "f4adf0", "\udcf4\u2252"),
    ],
)
def test_an_invalid_byte_before_a_character_with_two_codes(charset: str, data: str, text: str):
    """The character takes the code that does not make another one of the byte before it."""
    assert decode_text(bytes.fromhex(data), charset) == text
    assert encode_text(text, charset).hex() == data
    assert decode_text(encode_text(f"a{text}{text}", charset), charset) == f"a{text}{text}"


@pytest.mark.parametrize("charset", WIDE)
@given(data=st.binary(max_size=12))
def test_bytes_of_a_wide_character_set_survive_or_are_corrupt(charset: str, data: bytes):
    """Half a character is an error of ours; everything else survives, lone surrogates too."""
    try:
        text = decode_text(data, charset)
    except CorruptError:
        assert charset == "utf32" or len(data) % 2 == 1
    else:
        assert encode_text(text, charset) == data


def test_half_a_wide_character_is_corrupt():
    """One byte of ucs2 is no text, and the error says where."""
    with pytest.raises(CorruptError, match="ucs2: truncated data at byte 2"):
        decode_text(b"\0a\0", "ucs2")


@pytest.mark.parametrize("charset", ["klingon"])
def test_a_character_set_without_a_codec_is_refused_by_name(charset: str):
    """Text that Python cannot decode is an error that names the character set."""
    with pytest.raises(UnsupportedError, match=charset):
        decode_text(b"a", charset)
    with pytest.raises(UnsupportedError, match=charset):
        encode_text("a", charset)


def test_text_that_a_character_set_lacks_does_not_encode():
    """A character outside latin1 is a ValueError, not another character."""
    with pytest.raises(ValueError, match="charmap"):
        encode_text("ā", "latin1")


@pytest.mark.parametrize(("data", "text"), [("a8bc", "\u1e3f"), ("8135f437", "\ue7c7")])
def test_gb18030_is_the_standard_of_2005(data: str, text: str):
    """As the server converts them; Python's codec has them the other way round."""
    assert decode_text(bytes.fromhex(data), "gb18030") == text
    assert encode_text(text, "gb18030").hex() == data
