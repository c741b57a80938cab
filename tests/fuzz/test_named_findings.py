"""Files that once ended in another way than with a result or one of the project's errors, made by hand."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from conflict.cli.common import load_definitions
from conflict.config.replication_rows import load_replication_rows
from conflict.config.text_file import read_text
from conflict.discovery.logs import find_logs
from conflict.errors import ConfigurationError
from conflict.rules.functions import parse_conflict_function
from ndb_formats.binlog_reader import read_events
from ndb_formats.columnar import event_index
from ndb_formats.columnar.batches import read_batches
from ndb_formats.columnar.event_index import index_parts, map_bytes
from ndb_formats.cursor import allow_unpacked
from ndb_formats.errors import CorruptError, CutFileError, FormatError, UnsupportedError
from ndb_formats.row_reader import read_rows
from ndb_formats.types.json_diff import JsonCell, path_legs
from tests.fuzz.raw_log import PAYLOAD, RawEvent, RawLog
from tests.ndb_formats.building import description_body, packed, rows_body, table_map_body
from tests.ndb_formats.columnar.answers import Answer, columnar_answer, scalar_answer

QUERY, TABLE_MAP, WRITE, UPDATE, PARTIAL = 2, 19, 30, 31, 39
LONG, LONGLONG, NULL, VARCHAR, BIT, JSON = (bytes([code]) for code in (3, 8, 6, 15, 16, 245))
T_MAP = RawEvent(TABLE_MAP, table_map_body(LONG, table_id=7))
T_ROW = RawEvent(WRITE, rows_body(b"\0" + struct.pack("<I", 5), 1, [[0]], table_id=7))
EPOCH = 77


def status_map(types: bytes = LONG + LONGLONG + VARCHAR, metadata: bytes = b"\xff\0") -> RawEvent:
    """Return the Table_map event of `ndb_apply_status`, with these columns."""
    body = table_map_body(types, metadata, table_id=1, database=b"mysql", table=b"ndb_apply_status")
    return RawEvent(TABLE_MAP, body)


def answer(folder: Path, events: list[RawEvent]) -> Answer:
    """Return what both decoders give of a file."""
    path = folder / "binlog.000001"
    path.write_bytes(RawLog([RawEvent(15, description_body()), *events], checksum=True, own_checksum=True).put())
    found = scalar_answer(path)
    assert columnar_answer(path) == found
    return found


def epochs(found: Answer) -> list[int | None]:
    """Return the epoch of each row."""
    assert found.error is None
    return [row[5] for rows in found.groups.values() for row in rows]


WHOLE = b"\0" + struct.pack("<IQ", 1, EPOCH)


@pytest.mark.parametrize(
    ("table", "rows", "epoch"),
    [
        pytest.param(status_map(), rows_body(WHOLE + b"\0", 3, [[0, 1, 2]], table_id=1), EPOCH, id="whole"),
        pytest.param(status_map(), rows_body(WHOLE + b"\1x", 3, [[0, 1, 2]], table_id=1), None, id="of a source"),
        pytest.param(status_map(), rows_body(WHOLE, 3, [[0, 1]], table_id=1), None, id="an image of two columns"),
        pytest.param(status_map(), rows_body(b"\0" + b"\1\0\0\0\0", 3, [[0, 2]], table_id=1), None, id="no epoch"),
        pytest.param(status_map(LONG, b""), rows_body(b"\0\1\0\0\0", 1, [[0]], table_id=1), None, id="a short table"),
        pytest.param(
            status_map(LONG + LONGLONG + NULL, b""), rows_body(WHOLE, 3, [[0, 1, 2]], table_id=1), None, id="type NULL"
        ),
    ],
)
def test_epochs_come_from_the_table_of_ndb(table: RawEvent, rows: bytes, epoch: int | None, tmp_path: Path) -> None:
    """A table of that name with other columns, or an image without them, names no epoch."""
    assert epochs(answer(tmp_path, [table, RawEvent(WRITE, rows), T_MAP, T_ROW])) == [epoch]


def test_a_partial_update_names_no_epoch(tmp_path: Path) -> None:
    """NDB writes none; the table has no JSON column."""
    images = WHOLE + b"\0" + b"\0" + WHOLE + b"\0"
    rows = rows_body(images, 3, [[0, 1, 2], [0, 1, 2]], table_id=1)
    assert epochs(answer(tmp_path, [status_map(), RawEvent(PARTIAL, rows), T_MAP, T_ROW])) == [None]


@pytest.mark.parametrize("names", [b"\1a\1b", b""])
def test_metadata_names_as_many_columns_as_there_are(names: bytes, tmp_path: Path) -> None:
    """More or fewer names are refused."""
    table = RawEvent(TABLE_MAP, table_map_body(LONG, table_id=7, optional=[(4, names)]))
    found = answer(tmp_path, [table, T_ROW])
    assert found.error is not None
    assert found.error[:2] == (CorruptError, f"has 1 columns, but its metadata names {len(names) // 2}")


def test_a_bit_column_of_255_bytes_and_255_bits(tmp_path: Path) -> None:
    """2,295 bits: a small value fits Arrow's 64, and of another both decoders say that it does not."""
    table = RawEvent(TABLE_MAP, table_map_body(BIT, b"\xff\xff", table_id=7))
    rows = [RawEvent(WRITE, rows_body(b"\0" + value, 1, [[0]], table_id=7)) for value in (bytes(287), b"\1" * 287)]
    found = answer(tmp_path, [table, *rows])
    assert [len(each) for each in found.groups.values()] == [1]
    assert found.error is not None
    assert found.error[0] is UnsupportedError
    assert "which does not fit 64 bits" in found.error[1]


def test_a_partial_column_that_is_not_in_the_image(tmp_path: Path) -> None:
    """The bit of a JSON column says nothing if the after image leaves it out."""
    table = RawEvent(TABLE_MAP, table_map_body(LONG + JSON, b"\4", table_id=7))
    images = b"\0\1\0\0\0" + b"\1\1" + b"\0\2\0\0\0"
    found = answer(tmp_path, [table, RawEvent(PARTIAL, rows_body(images, 2, [[0], [0]], table_id=7))])
    assert list(found.groups) == [("db", "t", "UPDATE_ROW", ("@1",), ("@1",), ())]


def test_a_path_of_400_001_digits() -> None:
    """A number of zeros is zero; one of nines is no cell, and the message stays short."""
    assert path_legs(f"$[{'0' * 400_000}1]") == (JsonCell(1),)
    with pytest.raises(CorruptError, match="is not a path to one value") as caught:
        path_legs(f"$[{'9' * 400_001}]")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_numbers_longer_than_python_reads(suffix: str, tmp_path: Path) -> None:
    """They are no numbers of a row."""
    path = tmp_path / f"rows{suffix}"
    cells = ["db", "table_name", "server_id", "binlog_type", "conflict_fn"], ["d", "t", "9" * 5000, "7", "NULL"]
    path.write_text("\n".join(("," if suffix == ".csv" else "\t").join(row) for row in cells))
    with pytest.raises(ConfigurationError, match="an integer is needed"):
        load_replication_rows(path)


def test_a_conflict_function_with_a_long_number() -> None:
    """The server reads the largest number that fits, of which it takes the low 32 bits."""
    with pytest.raises(ConfigurationError, match="Too many extra Gci bits"):
        parse_conflict_function(f"NDB$EPOCH({'9' * 5000})")


def test_definitions_that_are_not_text(tmp_path: Path) -> None:
    """The error names the file."""
    path = tmp_path / "schema.sql"
    path.write_bytes(b"CREATE TABLE t (a INT COMMENT '\xff')")
    with pytest.raises(ConfigurationError, match=r"schema\.sql: not UTF-8 text"):
        load_definitions(path, [], inexact_keys=False)


READERS: list[Callable[[Path], object]] = [
    lambda path: list(read_events(path)),
    lambda path: list(read_rows(path)),
    lambda path: list(read_batches(path)),
    lambda path: find_logs([path]),
    read_text,
]


@pytest.mark.parametrize("number", range(len(READERS)))
def test_pipes_and_devices_are_refused(number: int, tmp_path: Path) -> None:
    """Nothing waits for somebody to write, and nothing reads without end."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises((ConfigurationError, FormatError), match="no regular file"):
            READERS[number](path)


def whole_file() -> bytes:
    """Return a small file."""
    return RawLog([RawEvent(15, description_body()), T_MAP, T_ROW], checksum=True, own_checksum=True).put()


def test_a_file_that_grows_while_it_is_read(tmp_path: Path) -> None:
    """What was not there when reading began does not count."""
    path, data = tmp_path / "binlog.000001", whole_file()
    path.write_bytes(data[:-5])
    parts = index_parts(path)
    original = event_index.first_event

    def grown(*arguments: object, **options: object) -> object:
        path.write_bytes(data)
        return original(*arguments, **options)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_index, "first_event", grown)
        *_, part = parts
    assert isinstance(part.error, CutFileError)
    assert len(part) == 1


def test_a_file_that_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    """A sentence says so."""
    path, data = tmp_path / "binlog.000001", whole_file()
    damaged = bytearray(data)
    damaged[-6] ^= 1
    path.write_bytes(damaged)

    def replaced(given: Path) -> object:
        mapped = map_bytes(given)
        path.unlink()
        path.write_bytes(data)
        return mapped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_index, "map_bytes", replaced)
        *_, part = index_parts(path)
    assert "changed while it was read" in str(part.error)


def test_what_a_small_file_may_unpack_to(tmp_path: Path) -> None:
    """256 MiB, or what is allowed."""
    size = 257 << 20
    fields = b"".join(packed(kind) + packed(len(packed(value))) + packed(value) for kind, value in ((2, 0), (3, size)))
    payload = RawEvent(PAYLOAD, fields + packed(0) + b"\x28\xb5\x2f\xfd")
    error = answer(tmp_path, [payload]).error
    assert error is not None
    assert "more than 256 MiB; set NDB_CONFLICT_UNPACKED_MIB" in error[1]
    allow_unpacked("300")
    try:
        error = answer(tmp_path, [payload]).error
    finally:
        allow_unpacked(None)
    assert error is not None
    assert "cannot be decompressed" in error[1] or "does not have" in error[1]


def test_table_ids_that_collide(tmp_path: Path) -> None:
    """Ids that are equal in their low bits, and in their high ones, keep their tables apart."""
    ids = [number << 40 for number in range(1, 200)] + list(range(200))
    tables = [table_map_body(LONG, table_id=table_id, table=b"t%d" % table_id) for table_id in ids]
    rows = [rows_body(b"\0\1\0\0\0", 1, [[0]], table_id=table_id) for table_id in ids]
    events = [RawEvent(TABLE_MAP, body) for body in tables] + [RawEvent(WRITE, body) for body in rows]
    found = answer(tmp_path, events)
    assert {key[1] for key in found.groups} == {f"t{table_id}" for table_id in ids}
