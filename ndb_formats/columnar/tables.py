"""
The register of tables for the row walker: the kinds of rows events there are, and the widths of their columns.

It grows while a file is read: the walker stops at a Table_map event or a kind of rows event that is not registered,
and continues when it has been added here. The walker reads the register as arrays.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ndb_formats.columnar.column_arrays import ColumnFaultError, ColumnReader
from ndb_formats.columnar.kernels.layout import MODE_EPOCH, MODE_ROWS, EventKind, LayoutSlot, Spec
from ndb_formats.constants import APPLY_STATUS, ColumnCode, EventType
from ndb_formats.cursor import Cursor
from ndb_formats.errors import CorruptError, FormatError, UnsupportedError
from ndb_formats.events.agreed_definition import agreed_layout
from ndb_formats.events.row_image import DIFF_CODEC, RowLayout, layout_of
from ndb_formats.events.rows_event import Operation, RowsEvent, decode_rows_event
from ndb_formats.events.table_map import TableMap, decode_table_map
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import EPOCH, LOG_NAME, has_status_columns, is_status_image

Columns = Collection[str] | Mapping[str, Collection[str]] | None
_TABLE_ID = 6
_WORD, _WORD_MASK = 64, (1 << 64) - 1
_NONE = -1
_UPDATES = frozenset({EventType.UPDATE_ROWS_EVENT_V1, EventType.UPDATE_ROWS_EVENT, EventType.PARTIAL_UPDATE_ROWS_EVENT})
_FIRST_V2 = EventType.WRITE_ROWS_EVENT


def wanted_columns(columns: Columns, table: str) -> Callable[[str], bool]:
    """Return the test of whether a column of a table is to be decoded; see `read_batches`."""
    if isinstance(columns, Mapping):
        columns = columns.get(table)
    if columns is None:
        return lambda name: True
    return frozenset(columns).__contains__


@attrs.frozen(eq=False)
class ImageColumn:
    """
    One column of an image that is decoded.

    Attributes:
        layout: Its table.
        ordinal: Its position in the table.
        text: Whether text is decoded.
        diff: Whether its values are JSON diffs.
        moments: Whether dates and timestamps are no text.
    """

    layout: RowLayout
    ordinal: int
    text: bool
    diff: bool
    moments: bool
    _reader: list[ColumnReader] = attrs.field(factory=list)

    @property
    def name(self) -> str:
        """Its name."""
        return self.layout.names[self.ordinal]

    @property
    def reader(self) -> ColumnReader:
        """
        What reads it.

        Raises:
            ColumnFaultError: Arrow cannot hold the column's type or name.
        """
        if not self._reader:
            try:
                options = {"text": self.text, "diff": self.diff, "moments": self.moments}
                self._reader.append(reader_of(self.layout, self.ordinal, **options))
            except FormatError:
                raise ColumnFaultError(0) from None
        return self._reader[0]

    def array(self, data: npt.NDArray[np.uint8], base: int, cells: npt.NDArray[np.uint32]) -> pa.Array:
        """
        Return values of the column; see `ColumnReader.array`.

        Raises:
            ColumnFaultError: Arrow cannot hold a value, the first one if it cannot hold the column's type.
        """
        return self.reader.array(data, base, cells)


@attrs.frozen(eq=False)
class BatchShape:
    """
    What the rows of a batch have in common.

    Attributes:
        table_map: Their table.
        layout: How its rows are read.
        operation: What they do.
        before: Positions of the columns of the before image; None for a write.
        after: Positions of the columns of the after image; None for a delete.
        diffs: Positions of those columns of the after image that hold a JSON diff.
        before_columns: The wanted ones of the before image.
        after_columns: The wanted ones of the after image.
        signs_known: Whether something tells which integers are unsigned.
    """

    table_map: TableMap
    layout: RowLayout
    operation: Operation
    before: tuple[int, ...] | None
    after: tuple[int, ...] | None
    diffs: tuple[int, ...]
    before_columns: tuple[ImageColumn, ...]
    after_columns: tuple[ImageColumn, ...]
    signs_known: bool = True

    @property
    def width(self) -> int:
        """Cells of a row."""
        return len(self.before_columns) + len(self.after_columns)


class Growing:
    """An array that rows or numbers are appended to."""

    def __init__(self, width: int | None, kind: type) -> None:
        """Make an empty one, of rows of `width` numbers, or of numbers if that is None."""
        self._array = np.empty((16, *(() if width is None else (width,))), kind)
        self.count = 0

    def add(self, *rows: Sequence[int] | bytes | int) -> int:
        """Append rows, or numbers, and return the index of the first."""
        start = self.count
        for row in rows:
            new = np.frombuffer(row, np.uint8) if isinstance(row, bytes) else np.array([row], self._array.dtype)
            while self.count + len(new) > len(self._array):
                self._array = np.concatenate([self._array, np.empty_like(self._array)])
            self._array[self.count : self.count + len(new)] = new
            self.count += len(new)
        return start

    @property
    def array(self) -> npt.NDArray[Any]:
        """The array; only its first `count` entries are in use."""
        return self._array


class TableRegister:
    """
    The tables, kinds and columns met so far.

    A *slot* is a table as one Table_map event describes it. A *kind* is a slot with an event type and the column
    bitmaps of rows events. A *shape* is what makes rows one batch; kinds can share one.

    Attributes:
        schema: Definitions of tables.
        wanted: Whether the rows of a table are read, by ``database.table``.
        columns_wanted: The columns to decode, as for `read_batches`.
        text: Whether to decode text.
        moments: Whether dates and timestamps are no text.
        shapes: The shapes, by number.
        strict: Whether a definition that does not fit the log is an error, and not a note.
        notes: What is to be said of definitions that do not fit the log, by ``database.table``.
    """

    def __init__(
        self,
        schema: Schema,
        wanted: Callable[[str], bool],
        columns: Columns,
        *,
        text: bool,
        moments: bool = False,
        strict: bool = False,
    ) -> None:
        """
        Know no table yet.

        Args:
            schema: See above, as `wanted`, `text` and `moments`.
            wanted: See there.
            columns: The attribute `columns_wanted`.
            text: See there.
            moments: See there.
            strict: See there.
        """
        self.schema = schema
        self.wanted = wanted
        self.columns_wanted = columns
        self.text = text
        self.moments = moments
        self.shapes: list[BatchShape] = []
        self.notes: dict[str, str] = {}
        self.strict = strict
        self._batches: dict[tuple[object, ...], int] = {}
        self._maps: list[TableMap] = []
        self._layouts: dict[int, RowLayout] = {}
        self._slot_of_body: dict[bytes, int] = {}
        self._slot_of_id: dict[int, int] = {}
        self._hash_ids = np.zeros(16, np.uint64)
        self._hash_slots = np.full(16, _NONE, np.int64)
        # Nobody who writes a file can know which table ids collide.
        self._hashing = np.array([secrets.randbits(64) | 1, _WORD - 4], np.uint64)
        self._slots, self._kinds, self._columns = (
            Growing(len(parts), np.int64) for parts in (LayoutSlot, EventKind, Spec)
        )
        self._bodies, self._keys = Growing(None, np.uint8), Growing(None, np.uint8)
        self._last_kinds: dict[int, int] = {}
        self._image_columns: dict[tuple[int, int, bool], ImageColumn] = {}

    @property
    def tables(self) -> tuple[npt.NDArray[Any], ...]:
        """The argument `tables` of `walk_rows`."""
        return self._hash_ids, self._hash_slots, self._slots.array, self._bodies.array, self._hashing

    @property
    def kinds(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """The arguments `kinds`, `keys` and `columns` of `walk_rows`."""
        return self._kinds.array, self._keys.array, self._columns.array

    @property
    def maps(self) -> dict[int, TableMap]:
        """The last Table_map event of each table id."""
        return {number: attrs.evolve(self._maps[slot], table_id=number) for number, slot in self._slot_of_id.items()}

    def map_of(self, table_id: int) -> TableMap | None:
        """Return the last Table_map event of a table id; None if there was none."""
        slot = self._slot_of_id.get(table_id)
        return None if slot is None else attrs.evolve(self._maps[slot], table_id=table_id)

    @property
    def names(self) -> set[str]:
        """The ``database.table`` names of all Table_map events."""
        return {table_map.full_name for table_map in self._maps}

    def add_table(self, body: bytes, server: str = "") -> None:
        """
        Register a Table_map event; `server` is the version text of the server that wrote it.

        Raises:
            FormatError: It cannot be read.
        """
        table_map = self._decoded(body, server)
        slot = self._slot_of_body.get(body[_TABLE_ID:])
        if slot is None:
            mode = MODE_ROWS if self.wanted(table_map.full_name) else 0
            mode |= MODE_EPOCH if _tells_epochs(table_map) else 0
            slot = self._slots.add((self._bodies.add(body[_TABLE_ID:]), len(body) - _TABLE_ID, _NONE, mode))
            self._maps.append(table_map)
            self._slot_of_body[body[_TABLE_ID:]] = slot
        self._slot_of_id[table_map.table_id] = slot
        if 2 * len(self._slot_of_id) > len(self._hash_ids):
            self._hash_ids = np.zeros(4 * len(self._hash_ids), np.uint64)
            self._hash_slots = np.full(len(self._hash_ids), _NONE, np.int64)
            self._hashing[1] -= 2
            for number, known in self._slot_of_id.items():
                self._hash(number, known)
        self._hash(table_map.table_id, slot)

    def _decoded(self, body: bytes, server: str) -> TableMap:
        """Decode a Table_map event; of a table that is not read, its name is enough."""
        try:
            return decode_table_map(body, server)
        except UnsupportedError:
            cursor = Cursor(body)
            table_id = cursor.uint(_TABLE_ID)
            cursor.skip(2)
            database = cursor.text(cursor.uint(1))
            cursor.skip(1)
            unread = TableMap(table_id, database, cursor.text(cursor.uint(1)), (), ())
            if self.wanted(unread.full_name):
                raise
            return unread

    def _hash(self, number: int, slot: int) -> None:
        mask = len(self._hash_ids) - 1
        factor, shift = self._hashing.tolist()
        ordinal = (number * factor & _WORD_MASK) >> shift
        while self._hash_slots[ordinal] != _NONE and self._hash_ids[ordinal] != number:
            ordinal = ordinal + 1 & mask
        self._hash_ids[ordinal], self._hash_slots[ordinal] = number, slot

    def add_kind(self, code: int, body: bytes, diff_mask: int) -> None:
        """
        Register the kind of a rows event.

        Args:
            code: Its type.
            body: Its body.
            diff_mask: Which JSON columns of the table are diffs in it, the first at the lowest bit.

        Raises:
            FormatError: It cannot be read.
        """
        event = decode_rows_event(EventType(code), body)
        slot = self._slot_of_id[event.table_id]
        if slot not in self._layouts:
            table_map = self._maps[slot]
            self._layouts[slot] = self._layout(table_map)
        layout = self._layouts[slot]
        if event.column_count != len(layout.codecs):
            message = f"has {event.column_count} columns, but its Table_map event has {len(layout.codecs)}"
            raise CorruptError(message, table=layout.table)
        documents = [ordinal for ordinal, wire in enumerate(layout.types) if wire.code is ColumnCode.JSON]
        diffs = tuple(ordinal for number, ordinal in enumerate(documents) if diff_mask >> number & 1)
        key = _key_of(EventType(code), body)
        batch = self._batch(slot, layout, event, diffs)
        tells_epochs = _tells_epochs(self._maps[slot])
        row = {
            EventKind.NEXT: _NONE,
            EventKind.TYPE: code,
            EventKind.KEY_AT: self._keys.add(key),
            EventKind.KEY_SIZE: len(key),
            EventKind.DIFFS: diff_mask,
            EventKind.SPEC: self._add_columns(layout, event, diffs, self.shapes[batch]),
            EventKind.BEFORE: _NONE if event.before is None else len(event.before),
            EventKind.AFTER: _NONE if event.after is None else len(event.after),
            EventKind.WIDTH: self.shapes[batch].width,
            EventKind.DOCUMENTS: len(documents),
            EventKind.BATCH: batch,
            EventKind.EPOCH_SPEC: self._add_columns(layout, event, diffs, None) if tells_epochs else 0,
        }
        kind = self._kinds.add([row[part] for part in EventKind])
        if slot in self._last_kinds:
            self._kinds.array[self._last_kinds[slot], EventKind.NEXT] = kind
        else:
            self._slots.array[slot, LayoutSlot.KIND] = kind
        self._last_kinds[slot] = kind

    def _layout(self, table_map: TableMap) -> RowLayout:
        known = self.schema.find(table_map.database, table_map.table, any_case=not self.strict)
        if self.strict:
            return layout_of(table_map, known)
        layout, note = agreed_layout(table_map, known)
        if note:
            self.notes.setdefault(table_map.full_name, note)
        return layout

    def _knows_signs(self, table_map: TableMap) -> bool:
        known = self.schema.find(table_map.database, table_map.table, any_case=not self.strict)
        return table_map.unsigned is not None or known is not None

    def _batch(self, slot: int, layout: RowLayout, event: RowsEvent, diffs: tuple[int, ...]) -> int:
        diffs = tuple(ordinal for ordinal in diffs if ordinal in (event.after or ()))
        identity = (slot, event.operation, event.before, event.after, diffs)
        if identity not in self._batches:
            self._batches[identity] = len(self.shapes)
            shape = BatchShape(
                self._maps[slot],
                layout,
                event.operation,
                event.before,
                event.after,
                diffs,
                self._wanted_columns(slot, layout, event.before or (), ()),
                self._wanted_columns(slot, layout, event.after or (), diffs),
                self._knows_signs(self._maps[slot]),
            )
            self.shapes.append(shape)
        return self._batches[identity]

    def _wanted_columns(
        self, slot: int, layout: RowLayout, present: Iterable[int], diffs: tuple[int, ...]
    ) -> tuple[ImageColumn, ...]:
        """Return the columns to decode; shapes share them, since a file can have very many shapes."""
        wanted, known = wanted_columns(self.columns_wanted, layout.table), self._image_columns
        chosen = [(slot, ordinal, ordinal in diffs) for ordinal in present if wanted(layout.names[ordinal])]
        for place in chosen:
            if place not in known:
                known[place] = ImageColumn(layout, place[1], self.text, place[2], self.moments)
        return tuple(known[place] for place in chosen)

    def _add_columns(
        self, layout: RowLayout, event: RowsEvent, diffs: tuple[int, ...], shape: BatchShape | None
    ) -> int:
        """Add the columns of both images; without a shape, only the columns that name an epoch have cells."""
        first = self._columns.count
        cell = 0
        for image, present in enumerate((event.before, event.after)):
            chosen = set()
            if shape is not None:
                chosen = {column.ordinal for column in (shape.before_columns, shape.after_columns)[image]}
            elif image and is_status_image(present):
                chosen = {EPOCH, LOG_NAME}
            for ordinal in present or ():
                codec = DIFF_CODEC if image and ordinal in diffs else layout.codecs[ordinal]
                wanted = ordinal in chosen
                self._columns.add((codec.width if codec.prefixed else _NONE, codec.width, cell if wanted else _NONE))
                cell += wanted
        return first


def reader_of(
    layout: RowLayout, ordinal: int, *, text: bool, diff: bool = False, moments: bool = False
) -> ColumnReader:
    """
    Return the reader of a column of a table.

    Raises:
        FormatError: Arrow cannot hold its type; the error names table and column.
    """
    name = layout.names[ordinal]
    try:
        name.encode("utf-8")
        return ColumnReader.of(layout.codecs[ordinal], text=text, diff=diff, moments=moments)
    except UnicodeEncodeError:
        message = "the name of a column is not valid text"
        raise CorruptError(message, table=layout.table, column=f"@{ordinal + 1}") from None
    except FormatError as error:
        raise error.located(table=layout.table, column=name) from None


def _tells_epochs(table_map: TableMap) -> bool:
    return table_map.full_name == APPLY_STATUS and has_status_columns(table_map.types)


def table_id_of(body: bytes) -> int:
    """Return the table id that a Table_map or rows event starts with."""
    return Cursor(body).uint(_TABLE_ID)


def _key_of(kind: EventType, body: bytes) -> bytes:
    """Return the key of a rows event's kind: its column count and bitmaps."""
    cursor = Cursor(body)
    cursor.skip(8)
    if kind >= _FIRST_V2:
        cursor.skip(cursor.uint(2) - 2)
    start = cursor.offset
    count = cursor.packed()
    cursor.skip((2 if kind in _UPDATES else 1) * ((count + 7) // 8))
    return body[start : cursor.offset]
