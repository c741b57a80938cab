"""Row changes of a file: who made them, in which epoch, and what cannot be read."""

from pathlib import Path

import pytest

from ndb_formats.errors import CorruptError, TruncatedError, UnsupportedError
from ndb_formats.events.rows_event import ExtraRowInfo, Operation
from ndb_formats.row_reader import LoggedRow, read_rows
from ndb_formats.schema.create_table import parse_schema
from tests.ndb_formats.building import (
    MAGIC,
    QUERY,
    description_event,
    event_bytes,
    query_body,
    rows_body,
    table_map_body,
)
from tests.ndb_formats.recordings import COMPOSITE

SCHEMA = parse_schema("CREATE TABLE db.t (id INT UNSIGNED)")
TABLE_MAP, WRITE, DELETE, XID = 19, 30, 32, 16
STATUS_ID = 9
INT_TABLE = event_bytes(TABLE_MAP, table_map_body(b"\x03"))
# server id, epoch, log name, start and end position
STATUS_TABLE = event_bytes(
    TABLE_MAP,
    table_map_body(
        bytes([3, 8, 15, 8, 8]), bytes.fromhex("ff00"), table_id=STATUS_ID, database=b"mysql", table=b"ndb_apply_status"
    ),
)
BEGIN = event_bytes(QUERY, query_body(b"", b"BEGIN"))
COMMIT = event_bytes(QUERY, query_body(b"", b"COMMIT"))


def status_row(epoch: int, log_name: bytes = b"") -> bytes:
    """Return the event that tells an epoch; with a log name, that of another cluster's epoch applied here."""
    image = b"\0" + bytes(4) + epoch.to_bytes(8, "little") + bytes([len(log_name)]) + log_name + bytes(16)
    return event_bytes(WRITE, rows_body(image, 5, [range(5)], table_id=STATUS_ID, flags=0))


def write(*ids: int, code: int = WRITE) -> bytes:
    """Return an event with one row for each id."""
    return event_bytes(code, rows_body(b"".join(b"\0" + number.to_bytes(4, "little") for number in ids), 1, [[0]]))


def rows_of(path: Path, *events: bytes, **options: object) -> list[LoggedRow]:
    """Write the events and read the rows."""
    path.write_bytes(MAGIC + description_event() + b"".join(events))
    return list(read_rows(path, schema=SCHEMA, **options))


@pytest.fixture
def binlog(tmp_path: Path) -> Path:
    """Return where the binlog of a test goes."""
    return tmp_path / "binlog.000001"


def epoch(number: int, *events: bytes) -> list[bytes]:
    """Return the events of one epoch."""
    return [BEGIN, INT_TABLE, STATUS_TABLE, status_row(number), *events, COMMIT]


def test_rows_know_their_epoch(binlog: Path):
    """The row of ndb_apply_status that opens an NDB transaction gives its epoch."""
    rows = rows_of(binlog, *epoch(2**40 + 1, write(1, 2)), *epoch(2**40 + 2, write(3), write(1, code=DELETE)))
    assert [(row.epoch - 2**40, row.row, row.operation) for row in rows] == [
        (1, 0, Operation.WRITE_ROW),
        (1, 1, Operation.WRITE_ROW),
        (2, 0, Operation.WRITE_ROW),
        (2, 0, Operation.DELETE_ROW),
    ]
    assert [(row.after or row.before).value(0) for row in rows] == [1, 2, 3, 1]
    assert {(row.database, row.table, row.server_id, row.file) for row in rows} == {("db", "t", 3, str(binlog))}


def test_the_epoch_of_an_applied_change_is_not_that_of_its_transaction(binlog: Path):
    """A row of ndb_apply_status with a log name tells of another cluster's epoch."""
    rows = rows_of(binlog, *epoch(5, status_row(77, b"binlog.000003"), write(1)))
    assert [row.epoch for row in rows] == [5]


def test_another_engine_has_no_epoch(binlog: Path):
    """Rows of a transaction without ndb_apply_status have none, also after one that had."""
    rows = rows_of(binlog, *epoch(5, write(1)), BEGIN, INT_TABLE, write(2), event_bytes(XID, bytes(8)))
    assert [row.epoch for row in rows] == [5, None]


def test_reading_stops_after_the_last_epoch(binlog: Path):
    """The epoch asked for is read whole, the next one not at all."""
    events = [*epoch(5, write(1)), *epoch(6, write(2), write(3)), *epoch(8, write(4))]
    assert [row.after.value(0) for row in rows_of(binlog, *events, last_epoch=6)] == [1, 2, 3]


def test_only_wanted_tables_are_read(binlog: Path):
    """Tables that nobody wants are stepped over, even if they cannot be read; ndb_apply_status can be wanted too."""
    unreadable = event_bytes(TABLE_MAP, table_map_body(b"\0", table_id=4, table=b"old"))
    foreign = event_bytes(WRITE, rows_body(b"\0\0", 1, [[0]], table_id=4, flags=0))
    events = epoch(5, unreadable, foreign, write(1))
    assert [row.table for row in rows_of(binlog, *events, wanted=lambda table: table == "db.t")] == ["t"]
    status = rows_of(binlog, *events, wanted=lambda table: table == "mysql.ndb_apply_status")
    assert [(row.table, row.after.value(1)) for row in status] == [("ndb_apply_status", 5)]


@pytest.mark.parametrize(
    ("code", "message"),
    [(20, "row events of MySQL before 5.1.16"), (22, "row events of MySQL before 5.1.16")],
)
def test_row_changes_that_cannot_be_read_are_refused(binlog: Path, code: int, message: str):
    """Events that would lose changes if passed over are errors with file and position."""
    with pytest.raises(UnsupportedError, match=message) as caught:
        rows_of(binlog, event_bytes(code, bytes(20)))
    assert caught.value.file == str(binlog)
    assert caught.value.position == 4 + len(description_event())


def test_rows_without_a_table_map_are_corrupt(binlog: Path):
    """A rows event refers to a Table_map event that came before it."""
    with pytest.raises(CorruptError, match="WRITE_ROWS_EVENT: no TABLE_MAP_EVENT for table id 7 comes before it"):
        rows_of(binlog, BEGIN, write(1))


def test_a_cut_image_names_everything(binlog: Path):
    """An error in a row names file, position, event, table and column."""
    cut = event_bytes(WRITE, rows_body(b"\0\x01\0", 1, [[0]]))
    with pytest.raises(TruncatedError) as caught:
        rows_of(binlog, BEGIN, INT_TABLE, cut)
    place = 4 + len(description_event() + BEGIN + INT_TABLE)
    expected = f"{binlog}, position {place}, WRITE_ROWS_EVENT, table db.t, column id: needs 4 bytes, has 2"
    assert str(caught.value) == expected


def test_recorded_rows():
    """The first epoch of a recording: number, transaction id and rows as the server's tool prints them."""
    rows = list(read_rows(COMPOSITE / "binlog.000001", stop=684))
    assert {row.epoch for row in rows} == {_printed_epoch()}
    assert {row.extra for row in rows} == {ExtraRowInfo(0x0000_1567_0090_3100)}
    assert [row.after.value(4) for row in rows] == ["2020-01-01", "2020-01-02", "2020-01-03"]


def _printed_epoch() -> int:
    text = (COMPOSITE / "mysqlbinlog.txt").read_bytes()
    return int(text.split(b"###   @2=")[1].split(b" ")[0])
