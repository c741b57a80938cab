"""Event headers and the Format_description event."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.errors import CorruptError, FormatError, TruncatedError, UnsupportedError
from ndb_formats.events.header import EventHeader, decode_format_description, decode_header
from tests.ndb_formats.building import description_body

CHECKSUM = b"\x01\x02\x03\x04"


def test_header_vector():
    """Timestamp, type, server id, size, next position and flags, little-endian."""
    header = decode_header(bytes.fromhex("00f15365 1e 02000000 41000000 9c040000 0100"))
    assert header == EventHeader(1_700_000_000, 30, 2, 65, 1180, 1)
    assert header.type_name == "WRITE_ROWS_EVENT"


def test_bytes_after_the_header_do_not_matter():
    """Only the first 19 bytes are the header."""
    data = bytes(range(19))
    assert decode_header(data + b"more") == decode_header(data)


@pytest.mark.parametrize(
    ("version", "algorithm", "size"),
    [
        (b"9.7.4-cluster", 1, 4),
        (b"9.7.4-cluster", 0, 0),
        (b"8.0.11", 1, 4),
        (b"5.6.1", 1, 4),
        (b"10.11.2-MariaDB", 1, 4),
    ],
)
def test_description_says_whether_events_have_checksums(version: bytes, algorithm: int, size: int):
    """Version, algorithm and the events' fixed sizes are read."""
    description = decode_format_description(description_body(version, algorithm) + CHECKSUM)
    assert description.server_version == version.decode()
    assert (description.checksum, description.checksum_size) == (algorithm, size)
    assert description.post_header_sizes == bytes([56, 13, 0, 8, 0, 0, 0])


@pytest.mark.parametrize("version", [b"5.5.62-log", b"5.6.0-m4", b"5.1", b"5"])
def test_before_5_6_1_there_are_no_checksums(version: bytes):
    """An older server's description has no algorithm at its end."""
    description = decode_format_description(description_body(version, 1))
    assert (description.checksum, description.checksum_size) == (0, 0)
    assert description.post_header_sizes == bytes([56, 13, 0, 8, 0, 0, 0, 1])


@pytest.mark.parametrize("version", [1, 3, 5])
def test_another_binlog_version_is_refused(version: int):
    """Only binlog version 4 can be read."""
    with pytest.raises(UnsupportedError, match=f"binlog version {version}; only version 4"):
        decode_format_description(description_body(binlog_version=version) + CHECKSUM)


def test_another_checksum_algorithm_is_refused():
    """An algorithm of a later version is named."""
    with pytest.raises(UnsupportedError, match="checksum algorithm 2 "):
        decode_format_description(description_body(algorithm=2) + CHECKSUM)


def test_another_header_size_is_corrupt():
    """Version 4 has headers of 19 bytes."""
    body = bytearray(description_body() + CHECKSUM)
    body[56] = 20
    with pytest.raises(CorruptError, match="event headers of 20 bytes"):
        decode_format_description(bytes(body))


def test_a_description_without_an_algorithm_is_corrupt():
    """A description that ends after the header size has no algorithm."""
    with pytest.raises(CorruptError, match="ends before its checksum algorithm"):
        decode_format_description(description_body()[:57])


def test_prefixes_of_a_description_are_our_errors():
    """A description cut in its first 57 bytes is a truncation, cut before its algorithm corrupt."""
    body = description_body(version=b"9.7.4") + CHECKSUM
    for length in range(57):
        with pytest.raises(TruncatedError):
            decode_format_description(body[:length])
    for length in range(57, 62):
        with pytest.raises(CorruptError):
            decode_format_description(body[:length])


@given(st.binary(max_size=80))
def test_any_bytes_are_a_description_or_our_error(data: bytes):
    """No other exception leaves, whatever the bytes."""
    try:
        description = decode_format_description(b"\x04\0" + data)
    except FormatError:
        return
    assert description.checksum in (0, 1)


def test_an_event_type_that_is_not_known_is_named_by_its_number():
    """Later versions have more types."""
    assert EventHeader(0, 199, 1, 19, 0, 0).type_name == "event type 199"
