"""Rows of a block as the ``###`` lines of mysqlbinlog, built from columns: by shape, and by the values of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.columnar.fast_columns import Source
from ndb_formats.columnar.kernels.layout import by_kind, cells_of
from ndb_formats.columnar.lines import Piece, join_lines
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.tables import BatchShape, reader_of
from ndb_formats.columnar.value_texts import Texts, value_texts
from ndb_formats.errors import FormatError
from ndb_formats.events.agreed_definition import agreed_layout
from ndb_formats.events.row_image import RowLayout
from ndb_formats.events.table_map import TableMap
from ndb_formats.schema.tables import Schema
from ndb_formats.text.row_lines import COMMANDS, PrintedColumn, PrintedTable, printed_table
from ndb_formats.text.value_columns import ColumnText, column_text

Int64 = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class TextPart:
    """
    Rows of one shape.

    Attributes:
        number: Number of the shape in the register.
        shape: The shape.
        rows: Their numbers in the block. Shape (rows,), int64.
        events: The event of each. Shape (rows,), int64.
        cells: The cells of each column of both images. Shape (columns, rows), uint32.
    """

    number: int
    shape: BatchShape
    rows: Int64
    events: Int64
    cells: npt.NDArray[np.uint32]

    def where(self, kept: npt.NDArray[np.bool_]) -> TextPart:
        """Return the rows that are kept."""
        if kept.all():
            return self
        return TextPart(self.number, self.shape, self.rows[kept], self.events[kept], self.cells[:, kept])


def parts_of(walk: RowWalk, count: int) -> Iterator[TextPart]:
    """Yield the first rows of a block by shape."""
    shapes = walk.register.shapes
    order, bounds = by_kind(walk.rows.batches, count, len(shapes))
    for number in np.flatnonzero(np.diff(bounds)).tolist():
        rows = order[bounds[number] : bounds[number + 1]]
        cells = cells_of(walk.cells, walk.rows.first_cells, rows, shapes[number].width)
        yield TextPart(number, shapes[number], rows, walk.rows.events[rows], cells)


def has_key(
    part: TextPart, chunk: EventChunk, layout: RowLayout, key: Sequence[tuple[str, str]]
) -> npt.NDArray[np.bool_]:
    """
    Return which rows have an image that gives each of these columns its value. Shape (rows,).

    Args:
        part: The rows.
        chunk: Where they are.
        layout: How they are read, with the names of the columns.
        key: Names of columns and their values as text.
    """
    kept = np.ones(len(part.rows), np.bool_)
    columns = (*part.shape.before_columns, *part.shape.after_columns)
    for name, value in key:
        found = np.zeros(len(part.rows), np.bool_)
        for column, cells in zip(columns, part.cells, strict=True):
            if layout.names[column.ordinal] == name and not column.diff:
                array = reader_of(layout, column.ordinal, text=True).array(chunk.data, chunk.base, cells)
                texts = value_texts(array, layout.types[column.ordinal].code)
                found |= np.array(texts.to_numpy(zero_copy_only=False) == value, np.bool_)
        kept &= found
    return kept


@attrs.frozen
class TextOptions:
    """
    What is printed.

    Attributes:
        verbose: 0 for no rows, 1 for rows, 2 for rows with the types of columns.
        table_metadata: Whether to print columns and primary key of each table.
        names: Whether columns have their names, from the definitions or the binlog, not ``@1`` and so on.
    """

    verbose: int
    table_metadata: bool = False
    names: bool = False


class RowTextError(Exception):
    """
    Rows have a value that cannot be decoded.

    Attributes:
        events: The events of these rows.
    """

    def __init__(self, events: set[int]) -> None:
        super().__init__(events)
        self.events = events


@attrs.frozen(eq=False)
class _PrintedShape:
    """The text of a shape around its values: what comes before each column, the column, and its printer."""

    head: bytes
    columns: Sequence[tuple[bytes, PrintedColumn, ColumnText]]


@attrs.define(eq=False)
class RowPrinter:
    """
    Prints rows.

    Attributes:
        options: What is printed.
        schema: Definitions, for names.
    """

    options: TextOptions
    schema: Schema
    _shapes: dict[int, tuple[BatchShape, _PrintedShape | None]] = attrs.field(factory=dict)

    @property
    def verbose(self) -> int:
        """0 for no rows, 1 for rows, 2 for rows with the types of columns."""
        return self.options.verbose

    def named_layout(self, table_map: TableMap) -> RowLayout:
        """
        Return the layout of a table with the names and types of its definition.

        Raises:
            FormatError: The definition does not fit.
        """
        return agreed_layout(table_map, self.schema.find(table_map.database, table_map.table, any_case=True))[0]

    def names(self, table_map: TableMap) -> tuple[str, ...] | None:
        """Return the names of columns that are printed; None for ``@1`` and so on."""
        return self.named_layout(table_map).names if self.options.names else None

    def is_regular(self, shape: BatchShape) -> bool:
        """Return whether the rows of a shape can be printed column by column."""
        return self._printed(shape) is not None

    def joined(self, chunk: EventChunk, events: Int64, texts: Sequence[bytes], parts: Sequence[TextPart]) -> bytes:
        """
        Return the text of events and their rows, in order.

        Args:
            chunk: Where the rows are.
            events: Numbers of the events, ascending. Shape (events,).
            texts: The text of each.
            parts: Rows, by shape.

        Raises:
            RowTextError: A value cannot be decoded.
        """
        rows = np.sort(np.concatenate([part.rows for part in parts] or [np.zeros(0, np.int64)]))
        of_rows = np.empty(len(rows), np.int64)
        for part in parts:
            of_rows[np.searchsorted(rows, part.rows)] = part.events
        # Every event is one line, and stands before its rows.
        event_lines = np.arange(len(events)) + np.searchsorted(of_rows, events)
        row_lines = np.arange(len(rows)) + np.searchsorted(events, of_rows, side="right")
        pieces = [Piece(event_lines, Texts.of(texts))]
        for part in parts:
            try:
                pieces += self._pieces(part, row_lines[np.searchsorted(rows, part.rows)], chunk)
            except FormatError:
                raise RowTextError(set(part.events.tolist())) from None
        return join_lines(len(events) + len(rows), pieces)

    def _pieces(self, part: TextPart, lines: Int64, chunk: EventChunk) -> list[Piece]:
        printed = self._printed(part.shape)
        if printed is None or not len(lines):
            return []
        pieces = [Piece(lines, None, printed.head)]
        for (title, column, printer), cells in zip(printed.columns, part.cells, strict=True):
            texts, quote = printer.texts(Source(chunk.data, chunk.base, cells))
            start = title + column.start
            null = start + b"NULL" + column.null_comment + b"\n"
            pieces.append(Piece(lines, texts, start + quote, quote + column.comment + b"\n", null))
        return pieces

    def _printed(self, shape: BatchShape) -> _PrintedShape | None:
        if id(shape) not in self._shapes:
            table = printed_table(shape.table_map, self.options.verbose, self.names(shape.table_map))
            # The shape is kept so that its id stays its own.
            self._shapes[id(shape)] = shape, _printed_shape(shape, table)
        return self._shapes[id(shape)][1]


def _printed_shape(shape: BatchShape, table: PrintedTable) -> _PrintedShape | None:
    """Return the text around values; None if mysqlbinlog does not print all of them, or some are JSON diffs."""
    columns = []
    for title, image in ((b"### WHERE\n", shape.before_columns), (b"### SET\n", shape.after_columns)):
        for number, column in enumerate(image):
            printed = table.columns[column.ordinal]
            if printed.text is None:
                return None
            text = column_text(shape.layout.codecs[column.ordinal], printed.text, mariadb=shape.table_map.mariadb)
            columns.append((b"" if number else title, printed, text))
    if shape.diffs or () in (shape.before, shape.after):
        return None
    return _PrintedShape(b"### %s %s\n" % (COMMANDS[shape.operation], table.name), columns)
