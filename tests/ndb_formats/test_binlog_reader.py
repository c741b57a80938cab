"""Binlog files: ranges, damage, cuts."""

from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from ndb_formats.binlog_reader import FIRST_POSITION, Event, locate, read_events, read_headers
from ndb_formats.constants import EventType
from ndb_formats.errors import ChecksumError, CorruptError, FormatError, TruncatedError, UnsupportedError
from tests.ndb_formats.building import (
    FORMAT_DESCRIPTION,
    HEADER_SIZE,
    MAGIC,
    QUERY,
    description_body,
    description_event,
    event_bytes,
    query_body,
)
from tests.ndb_formats.recordings import EPOCH

BEGIN = query_body(b"", b"BEGIN")
COMMIT = query_body(b"", b"COMMIT")
RECORDED = EPOCH / "A.binlog.000001"
EVENTS_OF_SMALL = 10  # one transaction, and the start of the next


@pytest.fixture
def binlog(tmp_path: Path) -> Path:
    """Return where the binlog of a test goes."""
    return tmp_path / "binlog.000007"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return a recorded binlog of few events."""
    path = tmp_path / "small.000001"
    end = list(read_events(RECORDED))[EVENTS_OF_SMALL - 1].end
    path.write_bytes(RECORDED.read_bytes()[:end])
    return path


def boundaries(*events: bytes) -> list[int]:
    """Return where each event starts, and where the last one ends."""
    return list(accumulate(map(len, events), initial=len(MAGIC)))


class TestEvents:
    """What is yielded."""

    def test_events_in_order(self, binlog: Path):
        """Every event comes with its file, position, header and body."""
        events = [description_event(), event_bytes(QUERY, BEGIN), event_bytes(199, b"later")]
        binlog.write_bytes(MAGIC + b"".join(events))
        read = list(read_events(binlog))
        starts = boundaries(*events)
        assert [(event.position, event.end) for event in read] == list(pairwise(starts))
        assert [event.type for event in read] == [EventType.FORMAT_DESCRIPTION_EVENT, EventType.QUERY_EVENT, None]
        assert [event.body for event in read[1:]] == [BEGIN, b"later"]
        assert {event.file for event in read} == {str(binlog)}
        assert (read[1].header.server_id, read[1].header.timestamp) == (3, 1_700_000_000)

    def test_without_checksums_the_body_ends_the_event(self, binlog: Path):
        """A description that says so means events without CRC32."""
        binlog.write_bytes(MAGIC + description_event(algorithm=0) + event_bytes(QUERY, BEGIN, checksum=False))
        assert [event.body for event in read_events(binlog)][1:] == [BEGIN]

    def test_a_server_before_5_6_has_no_checksums(self, binlog: Path):
        """The description itself has none either."""
        description = event_bytes(FORMAT_DESCRIPTION, description_body(b"5.5.62-log", 2), checksum=False)
        binlog.write_bytes(MAGIC + description + event_bytes(QUERY, BEGIN, checksum=False))
        assert [event.body for event in read_events(binlog)][1:] == [BEGIN]

    @pytest.mark.parametrize(("first", "second"), [(1, 0), (0, 1), (1, 1), (0, 0)])
    def test_a_second_description_counts_from_there(self, binlog: Path, first: int, second: int):
        """A relay log holds its own description and then its source's."""
        events = [
            description_event(algorithm=first),
            event_bytes(QUERY, BEGIN, checksum=bool(first)),
            description_event(b"8.4.0", second),
            event_bytes(QUERY, COMMIT, checksum=bool(second)),
        ]
        binlog.write_bytes(MAGIC + b"".join(events))
        bodies = [event.body for event in read_events(binlog) if event.type is EventType.QUERY_EVENT]
        assert bodies == [BEGIN, COMMIT]

    def test_a_file_still_being_written(self, binlog: Path):
        """The in-use flag, set after the checksum was made, is not damage."""
        description = bytearray(description_event())
        description[17] |= 1
        binlog.write_bytes(MAGIC + bytes(description))
        assert len(list(read_events(binlog))) == 1

    def test_a_file_of_nothing_but_the_magic_has_no_events(self, binlog: Path):
        """A server that just made a file has written four bytes."""
        binlog.write_bytes(MAGIC)
        assert list(read_events(binlog)) == []


class TestRange:
    """`start` and `stop`."""

    EVENTS = (description_event(), *(event_bytes(QUERY, query_body(b"", b"S%d" % number)) for number in range(4)))

    @pytest.fixture
    def starts(self, binlog: Path) -> list[int]:
        """Write the events and return where they start and end."""
        binlog.write_bytes(MAGIC + b"".join(self.EVENTS))
        return boundaries(*self.EVENTS)

    @pytest.mark.parametrize(
        ("first", "last", "expected"),
        [
            (0, None, [0, 1, 2, 3, 4]),
            (1, None, [1, 2, 3, 4]),
            (3, None, [3, 4]),
            (0, 1, [0]),
            (2, 4, [2, 3]),
            (2, 2, []),
            (5, None, []),
        ],
    )
    def test_range(self, binlog: Path, starts: list[int], first: int, last: int | None, expected: list[int]):
        """Events are yielded whose first byte is at or after start and before stop."""
        stop = None if last is None else starts[last]
        positions = [event.position for event in read_events(binlog, start=starts[first], stop=stop)]
        assert positions == [starts[number] for number in expected]

    def test_stop_inside_an_event_yields_it_whole(self, binlog: Path, starts: list[int]):
        """What counts is where an event starts."""
        positions = [event.position for event in read_events(binlog, stop=starts[2] + 1)]
        assert positions == starts[:3]

    def test_start_beyond_the_end_yields_nothing(self, binlog: Path, starts: list[int]):
        """A position that the file does not have yet has no events."""
        assert list(read_events(binlog, start=starts[-1] + 100)) == []

    def test_damage_before_start_is_ignored(self, binlog: Path, starts: list[int]):
        """Only the description and the range are read."""
        data = bytearray(binlog.read_bytes())
        data[starts[1] + HEADER_SIZE] ^= 0xFF
        binlog.write_bytes(data)
        assert len(list(read_events(binlog, start=starts[2]))) == 3


class TestNotABinlog:
    """Files that are something else."""

    @pytest.mark.parametrize(
        ("data", "error", "message"),
        [
            (b"\xfdbin" + bytes(600), UnsupportedError, "the file is encrypted"),
            (b"PK\x03\x04", CorruptError, "not a binlog but a zip archive; unpack it first: it starts with 0x504b0304"),
            (b"BZh91AY", CorruptError, "not a binlog but a bzip2 file; unpack it first: it starts with 0x425a6839"),
            (b"abcd", CorruptError, "not a binlog: it starts with 0x61626364"),
            (b"", TruncatedError, "ends inside the four magic bytes"),
            (b"\xfebi", TruncatedError, "ends inside the four magic bytes"),
            (b"PK", CorruptError, "not a binlog"),
        ],
    )
    def test_first_bytes(self, binlog: Path, data: bytes, error: type[FormatError], message: str):
        """The error says what the file is, and names it."""
        binlog.write_bytes(data)
        with pytest.raises(error, match=message) as caught:
            list(read_events(binlog))
        assert (caught.value.file, caught.value.position) == (str(binlog), 0)

    @pytest.mark.parametrize("checksum", [True, False])
    def test_events_that_are_encrypted(self, binlog: Path, checksum: bool):
        """MariaDB says so in an event; what follows is refused for what it is, and not for its checksum."""
        description = event_bytes(FORMAT_DESCRIPTION, description_body(), checksum=True)
        encrypted = event_bytes(164, bytes([1]) + bytes(16), checksum=checksum)
        binlog.write_bytes(MAGIC + description + encrypted + bytes(range(1, 201)))
        events = read_events(binlog, verify=checksum)
        assert next(events).header.type_code == FORMAT_DESCRIPTION
        with pytest.raises(UnsupportedError, match="MARIADB_START_ENCRYPTION_EVENT: the events after it are encrypted"):
            next(events)

    def test_a_first_event_that_is_no_description(self, binlog: Path):
        """A file of MySQL before 5.0 starts otherwise."""
        binlog.write_bytes(MAGIC + event_bytes(1, bytes(56), checksum=False))
        with pytest.raises(UnsupportedError, match=r"position 4, START_EVENT_V3: the first event is no"):
            list(read_events(binlog))

    def test_a_description_of_another_version_is_located(self, binlog: Path):
        """The error of the description names file, position and event."""
        binlog.write_bytes(MAGIC + event_bytes(FORMAT_DESCRIPTION, description_body(binlog_version=3)))
        with pytest.raises(UnsupportedError, match="binlog version 3") as caught:
            list(read_events(binlog))
        error = caught.value
        assert (error.file, error.position, error.event) == (str(binlog), 4, "FORMAT_DESCRIPTION_EVENT")

    @pytest.mark.parametrize("size", [0, 18, 22])
    def test_a_size_below_the_header_is_corrupt(self, binlog: Path, size: int):
        """An event cannot be smaller than its header and checksum."""
        event = bytearray(event_bytes(QUERY, BEGIN))
        event[9:13] = size.to_bytes(4, "little")
        binlog.write_bytes(MAGIC + description_event() + event)
        with pytest.raises(
            CorruptError, match=f"its header gives its size as {size} bytes, which is less than the header itself"
        ):
            list(read_events(binlog))

    def test_a_missing_file_is_an_os_error(self, binlog: Path):
        """No file is no format."""
        with pytest.raises(FileNotFoundError):
            list(read_events(binlog))


def test_damage_in_any_byte_is_found(binlog: Path, small: Path):
    """Whatever byte of a recorded file is inverted, an error of ours names file and position."""
    data = bytearray(small.read_bytes())
    starts = {event.position for event in read_events(small)} | {0}
    for place in range(len(data)):
        data[place] ^= 0xFF
        binlog.write_bytes(data)
        data[place] ^= 0xFF
        with pytest.raises(FormatError) as caught:
            list(read_events(binlog))
        assert caught.value.file == str(binlog)
        assert caught.value.position == max(start for start in starts if start <= place)


def test_a_damaged_body_is_a_checksum_error(binlog: Path):
    """A flipped bit in a body: file, position and event are named, and all events before it are yielded."""
    target = [event for event in read_events(RECORDED) if event.type is EventType.WRITE_ROWS_EVENT][-1]
    data = bytearray(RECORDED.read_bytes())
    data[target.position + HEADER_SIZE + 10] ^= 0x04
    binlog.write_bytes(data)
    read: list[Event] = []
    with pytest.raises(ChecksumError, match="the file was damaged") as caught:
        read.extend(read_events(binlog))  # keeps what comes before the error
    assert str(caught.value).startswith(f"{binlog}, position {target.position}, WRITE_ROWS_EVENT: its CRC32 is 0x")
    assert [event.position for event in read] == [
        event.position for event in read_events(RECORDED) if event.position < target.position
    ]


def test_a_file_cut_at_any_byte_yields_what_came_before(binlog: Path, small: Path):
    """Cut at every byte: the events before the cut come out, then a truncation names file and position."""
    data = small.read_bytes()
    whole = [(event.position, event.end) for event in read_events(small)]
    assert len(whole) == EVENTS_OF_SMALL
    complete = {4, *(end for _, end in whole)}
    for length in range(len(data)):
        binlog.write_bytes(data[:length])
        positions: list[int] = []
        error = None
        try:
            positions.extend(event.position for event in read_events(binlog))
        except TruncatedError as caught:
            error = caught
        assert positions == [start for start, end in whole if end <= length]
        if length in complete:
            assert error is None
        else:
            cut = max((start for start, _ in whole if start <= length), default=0)
            assert (error.file, error.position) == (str(binlog), cut)


def test_headers_are_those_of_the_events():
    """Reading headers alone gives the same positions and headers."""
    assert list(read_headers(RECORDED)) == [(event.position, event.header) for event in read_events(RECORDED)]


def test_a_damaged_version_does_not_turn_checksums_off(binlog: Path, small: Path):
    """A description whose version text is damaged is damaged, and not one of a server without checksums."""
    data = bytearray(small.read_bytes())
    data[4 + HEADER_SIZE + 2] = ord("x")
    binlog.write_bytes(data)
    with pytest.raises(ChecksumError, match="position 4, FORMAT_DESCRIPTION_EVENT"):
        list(read_events(binlog))


def test_headers_of_a_cut_file(binlog: Path):
    """Headers before the cut come out, then a truncation."""
    data = RECORDED.read_bytes()
    binlog.write_bytes(data[:-1])
    last = [event.position for event in read_events(RECORDED)][-1]
    headers = read_headers(binlog)
    positions: list[int] = []
    with pytest.raises(TruncatedError) as caught:
        positions.extend(position for position, _ in headers)  # keeps what comes before the error
    assert (caught.value.file, caught.value.position) == (str(binlog), last)
    assert positions[-1] < last


def test_locate_adds_the_missing_parts_of_the_location():
    """An error raised while an event is decoded gets its file, position and type."""
    event = next(iter(read_events(RECORDED)))
    message = "bad"
    with pytest.raises(CorruptError) as caught, locate(event):
        raise CorruptError(message, table="d.t")
    assert str(caught.value) == f"{RECORDED}, position 4, FORMAT_DESCRIPTION_EVENT, table d.t: bad"
    assert FIRST_POSITION == 4
