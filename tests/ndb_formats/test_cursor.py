"""Cursor: every read is checked against the end of the block."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.cursor import Cursor
from ndb_formats.errors import CorruptError, TruncatedError
from tests.ndb_formats.building import packed


def test_integers_are_little_endian():
    """The lowest byte of an integer comes first."""
    cursor = Cursor(bytes.fromhex("0102030405060708ff"))
    assert (cursor.uint(1), cursor.uint(2), cursor.uint(3)) == (0x01, 0x0302, 0x060504)
    assert (cursor.uint(2), cursor.uint(1), cursor.remaining) == (0x0807, 255, 0)


def test_an_integer_of_no_bytes_is_zero():
    """Width 0 reads nothing."""
    cursor = Cursor(b"\x05")
    assert (cursor.uint(0), cursor.offset) == (0, 0)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("00", 0),
        ("fa", 250),
        ("fcfb00", 251),
        ("fcffff", 65535),
        ("fd000001", 65536),
        ("fdffffff", 16777215),
        ("fe0000000100000000", 16777216),
        ("feffffffffffffffff", 2**64 - 1),
    ],
)
def test_length_encoded_integers(data: str, value: int):
    """Lengths take 1, 3, 4 or 9 bytes."""
    cursor = Cursor(bytes.fromhex(data))
    assert (cursor.packed(), cursor.remaining) == (value, 0)


@pytest.mark.parametrize("first", [0xFB, 0xFF])
def test_a_length_cannot_start_with_null_or_error(first: int):
    """0xfb (NULL) and 0xff (error) do not start a length."""
    with pytest.raises(CorruptError, match=f"0x{first:02x}"):
        Cursor(bytes([first] * 9)).packed()


@pytest.mark.parametrize("data", ["", "fc", "fc01", "fd0101", "fe01010101010101"])
def test_a_cut_length_is_truncated(data: str):
    """A length that is cut short is a truncation."""
    with pytest.raises(TruncatedError):
        Cursor(bytes.fromhex(data)).packed()


@given(st.integers(0, 2**64 - 1))
def test_packed_reads_what_the_format_writes(number: int):
    """Every 64-bit length is read back."""
    assert Cursor(packed(number)).packed() == number


def test_take_says_what_it_needed_and_had():
    """A short read says how much is missing and does not move."""
    cursor = Cursor(b"abc", 1)
    with pytest.raises(TruncatedError, match="needs 3 bytes, has 2"):
        cursor.take(3)
    assert cursor.take(2) == b"bc"


def test_a_negative_count_is_refused():
    """A length that was computed below zero does not step back."""
    with pytest.raises(TruncatedError):
        Cursor(b"abc", 2).take(-1)


def test_reading_ends_at_the_end_of_the_block():
    """A block inside a larger buffer ends where it ends."""
    cursor = Cursor(b"abcdef", 1, 3)
    assert (cursor.remaining, cursor.rest(), cursor.remaining) == (2, b"bc", 0)
    with pytest.raises(TruncatedError):
        cursor.uint(1)


def test_skip_moves_the_cursor():
    """Skipping moves exactly so far, and not past the end."""
    cursor = Cursor(b"abcd")
    cursor.skip(3)
    assert cursor.rest() == b"d"
    with pytest.raises(TruncatedError):
        cursor.skip(1)


def test_text_keeps_bytes_that_are_not_utf8():
    """A name that is not UTF-8 survives as it is."""
    assert Cursor("é".encode() + b"\xff").text(3) == "é\udcff"


@given(st.binary(max_size=40), st.lists(st.integers(0, 12), max_size=10))
def test_reads_return_the_bytes_in_order_or_truncated(data: bytes, counts: list[int]):
    """Whatever is read is the bytes in order; more than there is is a truncation."""
    cursor, read = Cursor(data), b""
    for count in counts:
        if count > cursor.remaining:
            with pytest.raises(TruncatedError):
                cursor.take(count)
        else:
            read += cursor.take(count)
    assert read + cursor.rest() == data
