"""GTID and commit time of every row: those that mysqlbinlog printed; `test_records` compares them with single rows."""

import re
from pathlib import Path

import pytest

from ndb_formats.binlog_reader import read_events
from ndb_formats.columnar.batches import read_batches
from ndb_formats.constants import EventType
from ndb_formats.events.gtid_event import gtid_and_time
from tests.ndb_formats.events.test_gtid_event import ANONYMOUS, TAGGED
from tests.ndb_formats.recordings import ALL_RECORDINGS

PRINTED = sorted(
    path
    for path in ALL_RECORDINGS.rglob("mysqlbinlog.txt")
    if b"immediate_commit_timestamp=" in path.read_bytes() and (path.parent / "binlog.000001").exists()
)
_TRANSACTION = re.compile(
    rb"immediate_commit_timestamp=(\d+)\t.*?SESSION.GTID_NEXT= '([^']*)'|^# at (\d+)$", re.DOTALL | re.MULTILINE
)
COMPRESSED = {"mysql_8_0_28_compressed"}  # the text has the positions of the events inside


def printed(text: bytes) -> dict[int, tuple[str | None, int]]:
    """Return the GTID and the microsecond of the transaction of the event at each position."""
    found, current = {}, (None, 0)
    for time, gtid, position in _TRANSACTION.findall(text):
        if position:
            found[int(position)] = current
        else:
            current = None if gtid == b"ANONYMOUS" else gtid.decode(), int(time)
    return found


def told(path: Path, start: int = 4) -> list[tuple[int, int, str | None, int | None]]:
    """Return the position, the row, the GTID and the microsecond of every row."""
    rows = []
    for batch in read_batches(path, start=start, columns=[], strict=False):
        places = (batch.records.column(name).to_pylist() for name in ("position", "row"))
        rows += zip(*places, batch.gtids.to_pylist(), batch.committed.cast("int64").to_pylist(), strict=True)
    return sorted(rows)


@pytest.mark.parametrize("text", PRINTED, ids=lambda path: path.parent.name)
def test_those_that_mysqlbinlog_printed(text: Path) -> None:
    """Of every row."""
    rows, expected = told(text.parent / "binlog.000001"), printed(text.read_bytes())
    assert rows
    if text.parent.name in COMPRESSED:
        assert {row[2:] for row in rows} <= set(expected.values())
    else:
        assert [row[2:] for row in rows] == [expected[row[0]] for row in rows]


@pytest.mark.parametrize("name", ["reports/xa.mysql.binlog", "binlogs/mariadb_10_11.000001", "binlogs/vector.000001"])
def test_a_part_that_begins_inside_a_transaction(name: str) -> None:
    """What begins the transaction is looked for before it."""
    path = ALL_RECORDINGS / name
    whole = told(path)
    assert all(row[2] for row in whole)
    begins = [event.position for event in read_events(path) if event.type is EventType.QUERY_EVENT]
    assert begins
    for start in begins:
        assert told(path, start) == [row for row in whole if row[0] >= start]


def test_single_events() -> None:
    """Captured ones, with and without a tag; one that ends too early tells nothing."""
    source = "7c9c7cf2-e6f4-11f1-aae9-02fc00000001"
    assert gtid_and_time(EventType.GTID_TAGGED_LOG_EVENT, 1, TAGGED[1]) == (f"{source}:mytag:2", 1795410279635184)
    time = int.from_bytes(ANONYMOUS[42:49], "little")
    assert gtid_and_time(EventType.ANONYMOUS_GTID_LOG_EVENT, 1, ANONYMOUS) == (None, time)
    nobody = "00000000-0000-0000-0000-000000000000:0"
    assert gtid_and_time(EventType.GTID_LOG_EVENT, 1, ANONYMOUS[:42]) == (nobody, None)
    for kind in (EventType.GTID_LOG_EVENT, EventType.GTID_TAGGED_LOG_EVENT, EventType.MARIADB_GTID_EVENT):
        assert gtid_and_time(kind, 1, b"\2\1") == (None, None)
    mariadb = (7).to_bytes(8, "little") + (3).to_bytes(4, "little") + b"\0"
    assert gtid_and_time(EventType.MARIADB_GTID_EVENT, 9, mariadb) == ("3-9-7", None)
