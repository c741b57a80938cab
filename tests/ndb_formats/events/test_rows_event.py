"""Rows events: versions, bitmaps, extra row info, images."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.constants import ColumnCode, EventType
from ndb_formats.errors import CorruptError, FormatError, TruncatedError
from ndb_formats.events.row_image import layout_of_types
from ndb_formats.events.rows_event import (
    ROWS_EVENTS,
    ConflictFlag,
    ExtraRowInfo,
    Operation,
    RowsEvent,
    decode_rows_event,
)
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.types.column_types import WireType
from tests.ndb_formats.building import rows_body

LAYOUT = layout_of_types(
    parse_create_table("CREATE TABLE d.t (id INT, s VARCHAR(20) CHARACTER SET latin1, i TINYINT)"),
    (WireType(ColumnCode.LONG), WireType(ColumnCode.VARCHAR, 20), WireType(ColumnCode.TINY)),
)
NDB_BLOCK = bytes.fromhex("00 0c 00 0100 00319000f2150000")  # type, length, format, has a transaction id, the id
WRITE, UPDATE, DELETE = EventType.WRITE_ROWS_EVENT, EventType.UPDATE_ROWS_EVENT, EventType.DELETE_ROWS_EVENT


def changes(event: RowsEvent) -> list[tuple[dict[int, object] | None, dict[int, object] | None]]:
    """Return the values of each row's images."""
    return [
        (None if before is None else before.values(), None if after is None else after.values())
        for before, after in event.rows(LAYOUT)
    ]


class TestDecode:
    """The parts before the images."""

    def test_write(self):
        """A write has after images only."""
        images = bytes.fromhex("00 01000000 0161 05  06 02000000")
        event = decode_rows_event(WRITE, rows_body(images, 3, [[0, 1, 2]]))
        assert (event.table_id, event.operation, event.statement_end, event.column_count) == (7, 1, True, 3)
        assert (event.before, event.after, event.extra) == (None, (0, 1, 2), None)
        assert changes(event) == [(None, {0: 1, 1: "a", 2: 5}), (None, {0: 2, 1: None, 2: None})]

    def test_delete(self):
        """A delete has before images only."""
        event = decode_rows_event(DELETE, rows_body(bytes.fromhex("00 01000000 00 02000000"), 3, [[0]]))
        assert (event.before, event.after) == ((0,), None)
        assert changes(event) == [({0: 1}, None), ({0: 2}, None)]

    def test_update(self):
        """An update has both, each with columns of its own."""
        images = bytes.fromhex("00 01000000 02 00  00 02000000 00 0178 ff")
        event = decode_rows_event(UPDATE, rows_body(images, 3, [[0], [1, 2]]))
        assert (event.before, event.after) == ((0,), (1, 2))
        assert changes(event) == [({0: 1}, {1: "", 2: None}), ({0: 2}, {1: "x", 2: -1})]

    @pytest.mark.parametrize("kind", [WRITE, EventType.WRITE_ROWS_EVENT_V1])
    def test_a_write_without_columns_is_one_row(self, kind: EventType):
        """Its image has no bytes, not even NULL bits."""
        event = decode_rows_event(kind, rows_body(b"", 3, [[]], extra=b"" if kind is WRITE else None))
        assert (event.before, event.after, event.body) == (None, (), b"")
        assert changes(event) == [(None, {})]
        assert changes(decode_rows_event(WRITE, rows_body(b"", 3, [[0]]))) == []
        assert changes(decode_rows_event(DELETE, rows_body(b"", 3, [[]]))) == []
        assert changes(decode_rows_event(UPDATE, rows_body(b"", 3, [[], []]))) == []

    @pytest.mark.parametrize(
        ("kind", "operation"),
        [
            (EventType.WRITE_ROWS_EVENT_V1, Operation.WRITE_ROW),
            (EventType.DELETE_ROWS_EVENT_V1, Operation.DELETE_ROW),
        ],
    )
    def test_version_1_has_no_extra_row_info(self, kind: EventType, operation: Operation):
        """The bitmap follows the flags at once."""
        event = decode_rows_event(kind, rows_body(bytes.fromhex("00 01000000"), 3, [[0]], extra=None, flags=0))
        assert (event.operation, event.statement_end, event.extra) == (operation, False, None)
        assert len(changes(event)) == 1

    def test_version_1_of_an_update(self):
        """An update of version 1 has two bitmaps too."""
        event = decode_rows_event(
            EventType.UPDATE_ROWS_EVENT_V1, rows_body(bytes.fromhex("00 01000000 00 05"), 3, [[0], [2]], extra=None)
        )
        assert changes(event) == [({0: 1}, {2: 5})]

    def test_unused_bits_of_a_bitmap_are_ignored(self):
        """A server sets the bits after the last column; they are not columns."""
        body = bytearray(rows_body(bytes.fromhex("00 01000000"), 3, [[0]]))
        body[11] |= 0xF8
        assert decode_rows_event(WRITE, bytes(body)).after == (0,)


class TestExtraRowInfo:
    """Blocks between the flags and the column count."""

    @pytest.mark.parametrize(
        ("block", "info"),
        [
            (NDB_BLOCK, ExtraRowInfo(0x000015F200903100)),
            (bytes.fromhex("00 06 00 0200 0300"), ExtraRowInfo(None, ConflictFlag.REFLECTED | ConflictFlag.REFRESH)),
            (bytes.fromhex("00 04 07 abcd"), None),  # another format
            (bytes.fromhex("00 04 07 abcd") + NDB_BLOCK, ExtraRowInfo(0x000015F200903100)),
            (NDB_BLOCK + bytes.fromhex("01 0300"), ExtraRowInfo(0x000015F200903100)),  # partition 3
            (bytes.fromhex("01 0300 0400"), None),  # an update's two partitions
        ],
    )
    def test_blocks(self, block: bytes, info: ExtraRowInfo | None):
        """NDB's block is read, others are stepped over, and the images still follow."""
        event = decode_rows_event(WRITE, rows_body(bytes.fromhex("00 01000000"), 3, [[0]], extra=block))
        assert event.extra == info
        assert changes(event) == [(None, {0: 1})]

    def test_an_unknown_block_is_corrupt(self):
        """A block of unknown type has an unknown length too."""
        with pytest.raises(CorruptError, match="extra row info of unknown type 9"):
            decode_rows_event(WRITE, rows_body(b"", 3, [[0]], extra=b"\x09\x02"))

    @pytest.mark.parametrize("block", ["00", "0000", "000000", "000100", "000c000100", "01", "0105"])
    def test_a_cut_block_is_truncated(self, block: str):
        """A block that ends inside itself is a truncation, also if its length is less than its own head."""
        with pytest.raises(TruncatedError):
            decode_rows_event(WRITE, rows_body(b"", 3, [[0]], extra=bytes.fromhex(block)))

    @pytest.mark.parametrize("length", [0, 1])
    def test_a_length_below_its_own_size_is_truncated(self, length: int):
        """The length counts its own two bytes."""
        body = bytearray(rows_body(b"", 3, [[0]]))
        body[8] = length
        with pytest.raises(TruncatedError):
            decode_rows_event(WRITE, bytes(body))


class TestRows:
    """The images."""

    def test_no_rows(self):
        """An event without images has no rows."""
        assert changes(decode_rows_event(WRITE, rows_body(b"", 3, [[0]]))) == []

    def test_images_of_no_columns_end(self):
        """Images that take no bytes do not loop forever."""
        event = decode_rows_event(WRITE, rows_body(b"\0", 3, [[]]))
        assert changes(event) == [(None, {})]

    def test_another_number_of_columns_than_the_table_is_corrupt(self):
        """A rows event must fit its Table_map event."""
        event = decode_rows_event(WRITE, rows_body(b"", 4, [[0]]))
        with pytest.raises(CorruptError, match=r"table d\.t: has 4 columns, but its Table_map event has 3"):
            changes(event)

    def test_rows_before_a_cut_are_still_yielded(self):
        """The first row comes out before the second one's truncation."""
        event = decode_rows_event(WRITE, rows_body(bytes.fromhex("00 01000000 00 0200"), 3, [[0]]))
        rows = event.rows(LAYOUT)
        assert next(rows)[1].values() == {0: 1}
        with pytest.raises(TruncatedError, match=r"table d\.t, column id"):
            next(rows)


def test_only_whole_rows_decode():
    """Cut anywhere, an event is an error of ours, except after a row."""
    rows = [bytes.fromhex("00 01000000 0161 05"), bytes.fromhex("02 02000000 06"), bytes.fromhex("07")]
    ends = [len(rows_body(b"".join(rows[:count]), 3, [[0, 1, 2]], extra=NDB_BLOCK)) for count in range(4)]
    body = rows_body(b"".join(rows), 3, [[0, 1, 2]], extra=NDB_BLOCK)
    decoded = {}
    for length in range(len(body) + 1):
        try:
            decoded[length] = len(changes(decode_rows_event(WRITE, body[:length])))
        except FormatError:
            continue
    assert decoded == dict(zip(ends, range(4), strict=True))


def test_only_whole_updates_decode():
    """An update that ends after its before image is cut."""
    row = bytes.fromhex("00 01000000 00 05")
    ends = [len(rows_body(row * count, 3, [[0], [2]])) for count in range(3)]
    body = rows_body(row * 2, 3, [[0], [2]])
    decoded = []
    for length in range(len(body) + 1):
        try:
            changes(decode_rows_event(UPDATE, body[:length]))
        except FormatError:
            continue
        decoded.append(length)
    assert decoded == ends


@given(st.sampled_from(sorted(ROWS_EVENTS)), st.binary(max_size=60))
def test_any_bytes_are_rows_or_our_error(kind: EventType, data: bytes):
    """No other exception leaves, whatever the bytes."""
    try:
        rows = changes(decode_rows_event(kind, data))
    except FormatError:
        return
    assert all((before is None) + (after is None) == (kind not in (24, 31)) for before, after in rows)


@given(st.data())
def test_a_changed_byte_gives_rows_or_our_error(data: st.DataObject):
    """Damage that a checksum did not find is an error of ours or other rows."""
    images = bytes.fromhex("00 01000000 0161 05 02 02000000 06")
    body = bytearray(rows_body(images, 3, [[0, 1, 2]], extra=NDB_BLOCK))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        rows = changes(decode_rows_event(WRITE, bytes(body)))
    except FormatError:
        return
    assert all(before is None for before, _ in rows)
