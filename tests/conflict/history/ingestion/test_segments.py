"""Binlog files to segments."""

from pathlib import Path

import pytest

from conflict.history.ingestion.plan import default_segment_bytes
from conflict.history.ingestion.segments import Segment, plan_segments
from ndb_formats.errors import CorruptError, TruncatedError
from tests.ndb_formats.building import MAGIC, QUERY, description_event, event_bytes

GTID, ANONYMOUS_GTID, TAGGED_GTID = 33, 34, 42
# Headers are 19 bytes and checksums 4: a transaction is 40 + 60 bytes. Bodies are not read.
START, REST = bytes(17), bytes(37)


def transaction(kind: int = ANONYMOUS_GTID) -> bytes:
    """Return a transaction of 100 bytes in two events."""
    return event_bytes(kind, START) + event_bytes(QUERY, REST)


# The magic takes 4 bytes and the description 88, so that three transactions start at 92, 192 and 292.
THREE = MAGIC + description_event() + transaction() * 3


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a binlog of three transactions."""
    path = tmp_path / "binlog.000001"
    path.write_bytes(THREE)
    return path


def places(segments: tuple[Segment, ...]) -> list[tuple[int, int]]:
    """Return the bounds of segments."""
    return [(segment.start, segment.stop) for segment in segments]


@pytest.mark.parametrize(
    ("gibibytes", "mebibytes"), [(0, 32), (256, 32), (1 << 10, 128), (8 << 10, 1 << 10), (100 << 10, 1 << 10)]
)
def test_large_logs_have_large_segments(gibibytes: int, mebibytes: int):
    """So that up to 8 TiB there are no more than 8,192 of them."""
    assert default_segment_bytes(gibibytes << 30) == mebibytes << 20


@pytest.mark.parametrize(
    ("segment_bytes", "expected"),
    [
        (1, [(92, 192), (192, 292), (292, 392)]),
        (100, [(92, 192), (192, 292), (292, 392)]),
        (101, [(92, 292), (292, 392)]),
        (200, [(92, 292), (292, 392)]),
        (201, [(92, 392)]),
        (10**9, [(92, 392)]),
    ],
)
def test_segments_start_at_transactions(file: Path, segment_bytes: int, expected: list[tuple[int, int]]):
    """A segment ends where the first transaction after that many bytes starts."""
    plan = plan_segments([file], segment_bytes)
    assert (places(plan.segments), plan.error) == (expected, None)


@pytest.mark.parametrize("kind", [GTID, ANONYMOUS_GTID, TAGGED_GTID])
def test_every_kind_of_gtid_starts_a_transaction(file: Path, kind: int):
    """With and without GTIDs, tagged or not."""
    file.write_bytes(MAGIC + description_event() + transaction(kind) * 2)
    assert places(plan_segments([file], 1).segments) == [(92, 192), (192, 292)]


def test_without_gtid_events_a_file_is_one_segment(file: Path):
    """There is no safe place to divide it."""
    file.write_bytes(MAGIC + description_event() + event_bytes(QUERY, REST) * 3)
    assert places(plan_segments([file], 1).segments) == [(0, 272)]


def test_several_files(file: Path, tmp_path: Path):
    """Segments are numbered through, and none crosses a file."""
    other = tmp_path / "binlog.000002"
    other.write_bytes(MAGIC + description_event() + transaction())
    plan = plan_segments([file, other], 200)
    assert plan.segments == (Segment(0, file, 92, 292), Segment(1, file, 292, 392), Segment(2, other, 92, 192))


def test_a_file_without_events(file: Path):
    """A server that was stopped at once leaves only the magic: one empty segment."""
    file.write_bytes(MAGIC)
    plan = plan_segments([file])
    assert (places(plan.segments), plan.error) == ([(0, 0)], None)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (391, [(92, 192), (192, 292), (292, 391)]),  # inside the last event
        (340, [(92, 192), (192, 292), (292, 340)]),  # inside its header
        (293, [(92, 192), (192, 293)]),  # one byte into a transaction
        (91, [(0, 91)]),  # inside the description
    ],
)
def test_a_cut_file(file: Path, tmp_path: Path, size: int, expected: list[tuple[int, int]]):
    """The last segment reaches to the file's end, so that its reader meets the error; no later file is read."""
    later = tmp_path / "binlog.000002"
    later.write_bytes(THREE)
    file.write_bytes(THREE[:size])
    plan = plan_segments([file, later], 1)
    assert places(plan.segments) == expected
    assert {segment.file for segment in plan.segments} == {file}
    assert isinstance(plan.error, TruncatedError)
    assert plan.error.file == str(file)


def test_a_cut_between_events_is_no_fault_of_headers(file: Path):
    """A file that ends after a whole event can be followed to its end."""
    file.write_bytes(THREE[:332])
    plan = plan_segments([file], 1)
    assert (places(plan.segments), plan.error) == ([(92, 192), (192, 292), (292, 332)], None)


def test_a_damaged_header(file: Path):
    """Nothing is divided after a size that makes no sense."""
    damaged = bytearray(THREE)
    damaged[192 + 9 : 192 + 13] = bytes(4)  # the size of the second transaction's first event
    file.write_bytes(damaged)
    plan = plan_segments([file], 1)
    assert places(plan.segments) == [(92, 392)]
    assert isinstance(plan.error, CorruptError)
    assert plan.error.position == 192


def test_no_binlog(file: Path):
    """A file of another kind is refused at its start."""
    file.write_bytes(b"PAR1")
    plan = plan_segments([file])
    assert isinstance(plan.error, CorruptError)
    assert plan.error.position == 0
