"""Gtid events: fields, round trips, and lengths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.errors import FormatError, UnsupportedError
from ndb_formats.events.gtid_event import (
    GtidEvent,
    GtidInterval,
    decode_gtid,
    decode_previous_gtids,
    decode_tagged_length,
    encode_gtid,
    encode_previous_gtids,
    encode_tagged_length,
)

# Captured from MySQL 9.7.4: the second anonymous transaction of a file.
ANONYMOUS = bytes.fromhex(
    "00 00000000000000000000000000000000 0000000000000000 02 0100000000000000 0200000000000000"
    "2095a931b76006 fc4602 50620100"
)
# Captured from MySQL 9.7.4: GTIDs with the tag `mytag`, of transactions of 222, 4281 and 282 bytes.
_SOURCE = "02 f8 71 02 f8 c9 03 99 03 d1 03 22 c5 03 a9 02 a5 03 04 f1 03 00 00 00 02"
TAGGED = [
    bytes.fromhex(f"02 76 00 00 {flags} {_SOURCE} {rest} 12 83 12 0b")
    for flags, rest in (
        ("02", "04 04 06 0a 6d 79 74 61 67 08 04 0a 08 0c 7f 35 70 f1 87 ea 60 06 10 79 03"),
        ("00", "04 08 06 0a 6d 79 74 61 67 08 08 0a 0c 0c 7f f0 98 f1 87 ea 60 06 10 e5 42"),
        ("00", "04 0c 06 0a 6d 79 74 61 67 08 08 0a 10 0c 7f e4 c6 f1 87 ea 60 06 10 69 04"),
    )
]


def test_a_captured_event():
    """Its fields."""
    event = decode_gtid(ANONYMOUS)
    assert (event.last_committed, event.sequence_number, event.length, event.server_version) == (1, 2, 582, 90704)
    assert encode_gtid(event) == ANONYMOUS


times = st.none() | st.integers(0, 2**55 - 1)
versions = st.integers(0, 2**31 - 1)


@given(
    st.binary(min_size=16, max_size=16),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**55 - 1),
    times,
    st.integers(0, 2**40),
    versions,
    st.none() | versions,
)
def test_every_event_comes_back(
    source: bytes, number: int, committed: int, first: int | None, length: int, version: int, origin: int | None
):
    """With and without the fields of the server where the transaction was first made."""
    event = GtidEvent(source, number, 1, 2, committed, first, length, version, origin)
    assert decode_gtid(encode_gtid(event)) == event


@pytest.mark.parametrize("size", [25, 42])
def test_events_of_older_servers_end_earlier(size: int):
    """After the number, or after the sequence number."""
    assert encode_gtid(decode_gtid(ANONYMOUS[:size])) == ANONYMOUS[:size]
    assert decode_gtid(ANONYMOUS[:size]).length is None


@pytest.mark.parametrize("body", [ANONYMOUS, *TAGGED])
def test_cut_bodies_are_no_surprise(body: bytes):
    """Every shorter body is decoded, or an error of the project."""
    decode = decode_gtid if body is ANONYMOUS else decode_tagged_length
    for size in range(len(body)):
        try:
            decode(body[:size])
        except FormatError:
            continue


def test_previous_gtids():
    """By source, each with its intervals."""
    intervals = (GtidInterval(b"a" * 16, 1, 5), GtidInterval(b"a" * 16, 7, 8), GtidInterval(b"b" * 16, 1, 2))
    assert decode_previous_gtids(encode_previous_gtids(intervals)) == intervals
    assert encode_previous_gtids(()) == bytes(8)


@pytest.mark.parametrize(("body", "length"), list(zip(TAGGED, (222, 4281, 282), strict=True)))
def test_the_length_in_a_tagged_event(body: bytes, length: int):
    """It is read, and written in the same way."""
    assert decode_tagged_length(body) == length
    assert encode_tagged_length(body, length) == body


@given(st.sampled_from(TAGGED), st.integers(0, 2**64 - 1))
def test_another_length_in_a_tagged_event(body: bytes, length: int):
    """Also one of more bytes; the size of the body follows, and all else stays."""
    other = encode_tagged_length(body, length)
    assert decode_tagged_length(other) == length
    assert encode_tagged_length(other, decode_tagged_length(body)) == body


def test_a_tagged_event_of_another_version():
    """It is refused."""
    with pytest.raises(UnsupportedError, match="version 2"):
        decode_tagged_length(b"\x04" + TAGGED[0][1:])
