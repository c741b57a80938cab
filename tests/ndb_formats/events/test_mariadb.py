"""Row events of MariaDB 10.11, with full metadata, plain and compressed (`log_bin_compress`)."""

import zlib

import pytest

from ndb_formats.binlog_reader import read_events
from ndb_formats.columnar.value_texts import value_text
from ndb_formats.constants import EventType
from ndb_formats.errors import CorruptError, TruncatedError, UnsupportedError
from ndb_formats.row_reader import LoggedRow, read_rows
from ndb_formats.types.mariadb_compression import uncompressed
from tests.ndb_formats.recordings import ALL_RECORDINGS

# CREATE TABLE ty (id INT AUTO_INCREMENT PRIMARY KEY, a TINYINT, b SMALLINT UNSIGNED, ... z UUID, ip INET6, pt POINT)
FILE = ALL_RECORDINGS / "binlogs" / "mariadb_10_11.000001"
# What the INSERT statement of the recording says.
INSERTED = {
    "id": "1",
    "a": "-5",
    "b": "65535",
    "c": "-8388608",
    "d": "4294967295",
    "e": "18446744073709551615",
    "f": "1.5",
    "g": "-2.25",
    "h": "-12345.67891",
    "i": str(0b1010101010101),
    "j": "1999",
    "k": "2024-02-29",
    "l": "-12:34:56.789",
    "m": "2024-01-02 03:04:05.678901",
    "n": "2024-01-02 03:04:05.67",
    "o": "größe",
    "p": "p" * 280,
    "q": "0x6162000000",
    "r": "0x0078",
    "s": "y",
    "t": "a,c",
    "u": "tt",
    "v": "text",
    "w": "0x" + "77" * 300,
    "x": "lt",
    "y": '{"a": 1}',
    "z": "0x123E4567E89B12D3A456426655440000",
    "ip": "0x00000000000000000000000000000001",
}


def _texts(row: LoggedRow) -> dict[str, str | None]:
    assert row.after is not None
    return {name: value_text(value) for name, value in row.after.by_name().items()}


def test_every_type_is_read():
    """Names, signs, character sets and members of ENUM and SET come from the metadata of the event."""
    texts = _texts(next(read_rows(FILE)))
    texts.pop("pt")
    assert texts == INSERTED


def test_compressed_events_hold_the_rows_that_the_statements_made():
    """INSERT of 3 and 4, UPDATE of 3, DELETE of 4, then an UPDATE under binlog_row_image=MINIMAL."""
    kinds = {event.type: event.position for event in reversed(list(read_events(FILE)))}
    first = kinds[EventType.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1]
    rows = [row for row in read_rows(FILE) if row.position >= first]
    names = [(row.operation.name, row.before and row.before.by_name()["id"]) for row in rows]
    assert names == [
        ("WRITE_ROW", None),
        ("WRITE_ROW", None),
        ("UPDATE_ROW", 3),
        ("DELETE_ROW", 4),
        ("UPDATE_ROW", 1),
    ]
    assert [_texts(row)["p"] for row in rows[:2]] == ["z" * 250, "y" * 290]
    assert _texts(rows[2])["v"] == "q" * 500
    assert _texts(rows[4]) == {"a": "1"}


def test_a_compressed_part():
    """A byte that says how long the size is, the size big-endian, a zlib stream."""
    assert uncompressed(bytes.fromhex("82 0108") + zlib.compress(b"a" * 264)) == b"a" * 264


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ("", TruncatedError, "needs 1 bytes"),
        ("01 08", CorruptError, "does not start a compressed part"),
        ("91 08", UnsupportedError, "algorithm 1"),
        ("81 08 ffff", CorruptError, "cannot be decompressed"),
        ("84 ffffffff 00", UnsupportedError, "more than 256 MiB; set NDB_CONFLICT_UNPACKED_MIB"),
    ],
)
def test_bad_compressed_parts(data: str, error: type[Exception], message: str):
    """Anything else is an error in words."""
    with pytest.raises(error, match=message):
        uncompressed(bytes.fromhex(data))
