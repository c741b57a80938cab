"""Rows of all tables with images as maps: the records of the scalar reader, and its errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.binlog_reader import FIRST_POSITION
from ndb_formats.columnar.batches import RowBatch, read_batches
from ndb_formats.columnar.block_reader import read_blocks
from ndb_formats.columnar.mixed_rows import MixedReader, MixedRows
from ndb_formats.columnar.records import RECORDS, mixed_records, record_batches, records_of
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.tables import TableRegister
from ndb_formats.constants import APPLY_STATUS, ColumnCode
from ndb_formats.errors import FormatError
from ndb_formats.events.rows_event import Operation
from ndb_formats.row_reader import LoggedRow, read_rows
from ndb_formats.schema.tables import Schema
from tests.examples import examples
from tests.ndb_formats.building import event_bytes, packed, rows_body, table_map_body
from tests.ndb_formats.columnar.test_batches import Change, column, file_of, files
from tests.ndb_formats.columnar.test_records import in_order
from tests.ndb_formats.recordings import BINLOGS, name_of
from tests.strategies import TypedValue

Answer = tuple[list[dict[str, Any]], tuple[type, str] | None]
SIGNEDNESS, CHARSET, NAMES = 1, 2, 4  # of optional metadata
UTF8MB4 = packed(255)
TABLE_MAP, WRITE_ROWS = 19, 30


def mixed(path: Path, rows: int = 1 << 15) -> Iterator[RowBatch | MixedRows]:
    """Yield what the reader makes of a file."""
    register = TableRegister(Schema(), APPLY_STATUS.__ne__, None, text=True, strict=True)
    reader = MixedReader(RowWalk(register, rows))
    yield from read_blocks(path, reader, start=FIRST_POSITION, stop=None, verify=True, rows=rows, span=1 << 26)


def answer(path: Path, found: Iterator[RowBatch | MixedRows]) -> Answer:
    """Return the records of a file, and why reading stopped."""
    records: list[dict[str, Any]] = []
    try:
        for rows in found:
            maps = mixed_records(rows, str(path)) if isinstance(rows, MixedRows) else records_of([rows], str(path))
            maps.validate(full=True)
            assert maps.schema == RECORDS
            records += maps.to_pylist()
    except FormatError as error:
        return in_order(records), (type(error), str(error))
    return in_order(records), None


def scalar(path: Path) -> list[dict[str, Any]]:
    """Return the records of the scalar reader, up to what cannot be read."""
    rows: list[LoggedRow] = []
    try:
        for row in read_rows(path):
            rows.append(row)  # noqa: PERF402 - what came before an error stays
    except FormatError:
        pass
    return in_order([record for batch in record_batches(rows) for record in batch.to_pylist()])


@pytest.mark.parametrize("path", BINLOGS, ids=name_of)
def test_recordings(path: Path) -> None:
    """Every bundled file: all types, absent columns, NULLs, diffs and flags."""
    assert answer(path, mixed(path))[0] == scalar(path)


class TestRandom:
    """Random tables and rows, whole and damaged."""

    @given(data=files(checksum=True), rows=st.integers(1, 5))
    @examples(37, long=3000)
    def test_random_tables(self, tmp_path_factory: pytest.TempPathFactory, data: bytes, rows: int) -> None:
        """Any types, NULLs, absent columns, several rows per event, bytes that no server writes."""
        path = tmp_path_factory.mktemp("random") / "binlog.000001"
        path.write_bytes(data)
        expected = answer(path, read_batches(path))
        assert answer(path, mixed(path)) == expected
        assert answer(path, mixed(path, rows)) == expected

    @given(data=st.data(), whole=files(checksum=False))
    @examples(37, long=3000)
    def test_damage(self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, whole: bytes) -> None:
        """Changed bytes that no checksum finds give the same other rows, or the same error after the same rows."""
        damaged = bytearray(whole)
        for _ in range(data.draw(st.integers(1, 3))):
            damaged[data.draw(st.integers(127, len(whole) - 1))] = data.draw(st.integers(0, 255))
        path = tmp_path_factory.mktemp("damaged") / "binlog.000001"
        path.write_bytes(damaged)
        assert answer(path, mixed(path)) == answer(path, read_batches(path))

    @given(numbers=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8))
    @examples(37, long=1000)
    def test_integers(self, tmp_path_factory: pytest.TempPathFactory, numbers: list[int]) -> None:
        """Numbers of all sizes, as MySQL's own text has them."""
        columns = [
            column(ColumnCode.LONGLONG, unsigned=True),
            column(ColumnCode.LONGLONG),
            column(ColumnCode.INT24),
        ]
        rows: list[tuple[list[bytes | None], list[bytes | None]]] = []
        for number in numbers:
            word = number.to_bytes(8, "little")
            rows.append(([], [word, word, word[:3]]))
        values = images_of(tmp_path_factory.mktemp("numbers"), columns, rows)
        for number, image in zip(numbers, values, strict=True):
            medium = number & 0xFFFFFF
            assert image == {
                "c0": str(number),
                "c1": str(number - (number >> 63 << 64)),
                "c2": str(medium - (medium >> 23 << 24)),
            }


def images_of(
    folder: Path, columns: Sequence[TypedValue], rows: list[tuple[list[bytes | None], list[bytes | None]]]
) -> list[dict[str, str | None]]:
    """Return the after images of inserted rows, which must not become batches."""
    path = folder / "binlog.000001"
    path.write_bytes(file_of(columns, [Change(Operation.WRITE_ROW, (), tuple(range(len(columns))), rows)]))
    (found,) = mixed(path)
    assert isinstance(found, MixedRows)
    return [dict(image) for image in found.records.column("after").to_pylist()]


@pytest.mark.parametrize("number", [0, 9, 10, 2**63 - 1, 2**63, 2**64 - 1])
def test_limits_of_integers(number: int, tmp_path: Path) -> None:
    """The largest and the smallest numbers."""
    columns = [column(ColumnCode.LONGLONG, unsigned=True), column(ColumnCode.LONGLONG)]
    (image,) = images_of(tmp_path, columns, [([], [number.to_bytes(8, "little")] * 2)])
    assert image == {"c0": str(number), "c1": str(number - 2**64 if number >= 2**63 else number)}


# DECIMAL(4,2) as MySQL's manual has it: two digits in one byte each; the highest bit is set, and a negative number has
# all bits inverted.
@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"\x80\x05", "0.05"),
        (b"\x7f\xfa", "-0.05"),
        (b"\x80\x00", "0.00"),
        (b"\x8c\x22", "12.34"),
        (b"\xe3\x63", "99.99"),
        (b"\x1c\x9c", "-99.99"),
        (b"\x7f\xff", "0.00"),
    ],
)
def test_decimals(payload: bytes, text: str, tmp_path: Path) -> None:
    """A digit before the point, and always so many after it."""
    columns = [column(ColumnCode.NEWDECIMAL, 4, 2)]
    assert images_of(tmp_path, columns, [([], [payload])]) == [{"c0": text}]


def test_null_and_absent(tmp_path: Path) -> None:
    """A column that is NULL has an entry; one that an image does not carry has none; a write has no before image."""
    columns = [column(ColumnCode.TINY), column(ColumnCode.TINY)]
    path = tmp_path / "binlog.000001"
    changes = [
        Change(Operation.UPDATE_ROW, (0,), (0, 1), [([b"\1"], [b"\2", None])]),
        Change(Operation.WRITE_ROW, (), (1,), [([], [b"\3"])]),
    ]
    path.write_bytes(file_of(columns, changes))
    (found,) = mixed(path)
    assert isinstance(found, MixedRows)
    assert found.records.column("before").to_pylist() == [[("c0", "1")], None]
    assert found.records.column("after").to_pylist() == [[("c0", "2"), ("c1", None)], [("c1", "3")]]


def test_several_tables(tmp_path: Path) -> None:
    """Rows of two tables take turns in a block, with columns of other names and a text that another column gives."""
    path = tmp_path / "binlog.000001"
    parts = [file_of([column(ColumnCode.TINY)], [])]
    for turn in range(3):
        number = table_map_body(
            bytes([1, 5]), b"\x08", table=b"n", table_id=8, optional=[(SIGNEDNESS, b"\0"), (NAMES, b"\2id\4rate")]
        )
        text = table_map_body(
            bytes([15]),
            b"\x14\0",
            table=b"w",
            table_id=9,
            optional=[(SIGNEDNESS, b""), (CHARSET, UTF8MB4), (NAMES, b"\4word")],
        )
        parts += [
            event_bytes(TABLE_MAP, number),
            event_bytes(WRITE_ROWS, rows_body(bytes([0, turn]) + HALF, 2, [(0, 1)], table_id=8)),
            event_bytes(TABLE_MAP, text),
            event_bytes(WRITE_ROWS, rows_body(b"\0\3a" + "é".encode(), 1, [(0,)], table_id=9)),
        ]
    path.write_bytes(b"".join(parts))
    (found,) = mixed(path)
    assert isinstance(found, MixedRows)
    records = mixed_records(found, str(path)).to_pylist()
    assert [(record["table"], record["after"]) for record in records] == [
        row for turn in range(3) for row in [("n", [("id", str(turn)), ("rate", "0.5")]), ("w", [("word", "aé")])]
    ]


HALF = bytes([0, 0, 0, 0, 0, 0, 0xE0, 0x3F])  # 0.5 as a double
