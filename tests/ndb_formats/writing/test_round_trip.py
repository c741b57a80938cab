"""Round trip: decoding a file and encoding its events again gives the same bytes."""

import contextlib
from pathlib import Path

import pytest

from ndb_formats.binlog_reader import read_events, unpacked
from ndb_formats.constants import EventType
from ndb_formats.errors import FormatError
from ndb_formats.writing.round_trip import EventEncoder, encode_file
from tests.ndb_formats.recordings import ALL_RECORDINGS, BINLOGS, CORPUS, name_of


@pytest.mark.parametrize("path", BINLOGS, ids=name_of)
def test_bundled_files_come_back_byte_for_byte(path: Path):
    """Headers, checksums, table maps, row images, queries and payloads are encoded from their values."""
    assert path.read_bytes() == b"".join(encode_file(read_events(path)))


def test_every_kind_of_file_is_bundled():
    """Files with and without checksums, of 5.1, 5.6 and 9.x, compressed, with partial JSON and vectors are here."""
    kinds = {event.type for path in BINLOGS for event in read_events(path)}
    assert {
        EventType.TRANSACTION_PAYLOAD_EVENT,
        EventType.PARTIAL_UPDATE_ROWS_EVENT,
        EventType.WRITE_ROWS_EVENT_V1,
        EventType.WRITE_ROWS_EVENT,
    } <= kinds


def test_events_inside_a_compressed_transaction():
    """They stand at the position of the payload, in order, a table map before its rows."""
    path = ALL_RECORDINGS / "binlogs" / "compressed.000001"
    payload = next(event for event in read_events(path) if event.type is EventType.TRANSACTION_PAYLOAD_EVENT)
    inside = list(unpacked(payload))
    assert {payload.position} == {event.position for event in inside}
    assert [event.type for event in inside[:2]] == [EventType.QUERY_EVENT, EventType.TABLE_MAP_EVENT]
    assert EventType.WRITE_ROWS_EVENT in {event.type for event in inside}


@pytest.mark.slow
@pytest.mark.corpus(".")
def test_every_file_of_the_corpus():
    """Every readable file of the corpus comes back byte for byte; broken ones up to their fault."""
    events = 0
    for path in CORPUS:
        data, encoder = path.read_bytes(), EventEncoder()
        with contextlib.suppress(FormatError):
            for event in read_events(path):
                assert data[event.position : event.end] == encoder.encode(event)
                events += 1
    assert events > len(CORPUS)
