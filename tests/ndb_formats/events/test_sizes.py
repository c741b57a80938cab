"""Sizes of images and events: as many bytes as the encoders write."""

import attrs
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.constants import EventType
from ndb_formats.cursor import packed
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import Operation, RowsEvent, encode_rows, encode_rows_event
from ndb_formats.events.sizes import packed_size, rows_head_size, table_map_size
from ndb_formats.events.table_map import TableMap, encode_table_map
from tests.strategies import TYPED_VALUES, TypedValue

ROWS_EVENTS = {
    EventType.WRITE_ROWS_EVENT_V1: Operation.WRITE_ROW,
    EventType.UPDATE_ROWS_EVENT_V1: Operation.UPDATE_ROW,
    EventType.DELETE_ROWS_EVENT_V1: Operation.DELETE_ROW,
    EventType.WRITE_ROWS_EVENT: Operation.WRITE_ROW,
    EventType.UPDATE_ROWS_EVENT: Operation.UPDATE_ROW,
    EventType.DELETE_ROWS_EVENT: Operation.DELETE_ROW,
}
COLUMNS = st.lists(TYPED_VALUES, min_size=1, max_size=12)


def layout_of_values(columns: list[TypedValue]) -> RowLayout:
    """Return the layout of rows with these columns."""
    names = tuple(f"c{place}" for place in range(len(columns)))
    return RowLayout("d.t", names, tuple(each.wire for each in columns), tuple(each.codec for each in columns))


@st.composite
def images(draw: st.DrawFn, columns: list[TypedValue], layout: RowLayout) -> RowImage:
    """Return an image with any of the columns, some of them NULL."""
    places = tuple(sorted(draw(st.sets(st.sampled_from(range(len(columns)))))))
    payloads = tuple(
        None if draw(st.booleans()) else columns[place].codec.encode(columns[place].value) for place in places
    )
    return RowImage(layout, places, payloads)


@given(columns=COLUMNS, data=st.data(), kind=st.sampled_from(sorted(ROWS_EVENTS)), extra=st.sampled_from([0, 13]))
def test_a_rows_event(columns: list[TypedValue], data: st.DataObject, kind: EventType, extra: int) -> None:
    """Of any type, with any images: what is not images, table id, flags and extra row info is count and bitmaps."""
    layout, operation = layout_of_values(columns), ROWS_EVENTS[kind]
    before = None if operation is Operation.WRITE_ROW else data.draw(images(columns, layout))
    after = None if operation is Operation.DELETE_ROW else data.draw(images(columns, layout))
    rows = [(before, after)] * data.draw(st.integers(1, 3))
    event = RowsEvent(
        table_id=1,
        operation=operation,
        extra=None,
        column_count=len(columns),
        before=None if before is None else before.present,
        after=None if after is None else after.present,
        body=b"",
        type=kind,
        extra_bytes=bytes(extra),
    )
    event = attrs.evolve(event, body=encode_rows(event, rows))
    rest = 6 + 2 + (2 + extra if kind >= EventType.WRITE_ROWS_EVENT else 0) + len(event.body)
    bitmaps = 2 if operation is Operation.UPDATE_ROW else 1
    assert rows_head_size(len(columns), bitmaps) == len(encode_rows_event(event)) - rest


@given(columns=COLUMNS, metadata=st.binary(max_size=40), name=st.text(max_size=20))
def test_a_table_map(columns: list[TypedValue], metadata: bytes, name: str) -> None:
    """Of any table."""
    name = name.encode("utf-8", "ignore").decode()
    types = tuple(each.wire for each in columns)
    table_map = TableMap(1, "d", name, types, (True,) * len(types), metadata=metadata)
    assert table_map_size(table_map) == 19 + len(encode_table_map(table_map)) + 4


@given(st.integers(0, 2**64 - 1) | st.sampled_from([250, 251, 65535, 65536, 2**24 - 1, 2**24]))
def test_a_length_encoded_integer(number: int) -> None:
    """Of any size."""
    assert packed_size(number) == len(packed(number))
