"""Row changes as the scalar reader gives them and as the columnar one does, in one form that compares."""

from __future__ import annotations

import struct
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa

from ndb_formats.columnar.batches import read_batches
from ndb_formats.columnar.block_reader import METADATA
from ndb_formats.columnar.column_arrays import arrow_value
from ndb_formats.columnar.tables import reader_of
from ndb_formats.errors import CorruptError, FormatError, UnsupportedError
from ndb_formats.events.row_image import RowImage
from ndb_formats.row_reader import LoggedRow, read_rows

# Rows by table, operation, columns of both images and diffs; each row as its own facts and its two images.
Image = tuple[tuple[str, Any], ...]
Groups = dict[tuple[Any, ...], list[tuple[Any, ...]]]


@attrs.frozen
class Answer:
    """What a reader gives: rows, and class, message and place of the error that ended it."""

    groups: Groups
    error: tuple[Any, ...] | None


def _told(error: FormatError) -> tuple[Any, ...]:
    return type(error), error.message, error.position, error.table, error.column


def plain(value: Any) -> Any:
    """Return a value so that equal ones compare equal: floats by their bits, and one decimal zero."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, Decimal):
        return (abs(value) if value == 0 else value).as_tuple()
    return value


def _value(image: RowImage, place: int) -> Any:
    """Return a value, or raise the error for one that Arrow cannot hold."""
    layout = image.layout
    reader_of(layout, place, text=True, diff=place in image.partial)
    try:
        value = arrow_value(image.value(place))
    except FormatError as error:  # a document is read when its text is asked for, and does not know its place then
        raise error.located(table=layout.table, column=layout.names[place]) from None
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        message = "bytes that are not valid in its character set, which Arrow cannot hold; read it with text=False"
        raise CorruptError(message, table=layout.table, column=layout.names[place])
    if isinstance(value, int) and value >= 1 << 64:
        message = f"holds {value}, which does not fit 64 bits"
        raise UnsupportedError(message, table=layout.table, column=layout.names[place])
    return plain(value)


def _image(image: RowImage | None, columns: set[str] | None) -> Image | None:
    if image is None:
        return None
    names = image.layout.names
    wanted = [place for place in image.present if columns is None or names[place] in columns]
    return tuple((names[place], _value(image, place)) for place in wanted)


def _names(image: RowImage | None) -> tuple[str, ...] | None:
    return None if image is None else tuple(image.layout.names[place] for place in image.present)


def _facts(row: LoggedRow) -> tuple[Any, ...]:
    flags = None if row.extra is None or row.extra.flags is None else int(row.extra.flags)
    number = None if row.extra is None else row.extra.transaction_id
    facts = row.server_id, row.timestamp, row.epoch, number, flags, row.operation.name
    return row.position, row.payload_position, row.row, *facts


def scalar_answer(path: Path, columns: set[str] | None = None, **options: Any) -> Answer:
    """Return what `read_rows` gives."""
    groups: Groups = defaultdict(list)
    try:
        for row in read_rows(path, **options):
            try:
                images = _image(row.before, columns), _image(row.after, columns)
            except FormatError as error:
                raise error.located(position=row.position) from None
            diffs = () if row.after is None else tuple(row.after.layout.names[place] for place in row.after.partial)
            key = (row.database, row.table, row.operation.name, _names(row.before), _names(row.after), diffs)
            groups[key].append((*_facts(row), *images))
    except FormatError as error:
        return Answer(dict(groups), _told(error))
    return Answer(dict(groups), None)


def _images(column: pa.Array) -> list[Image]:
    """Return the images of a struct; pairs, since a damaged event can name two columns alike."""
    names = [field.name for field in column.type]
    values = [list(map(plain, array.to_pylist())) for array in column.flatten()]
    return [tuple(zip(names, row, strict=True)) for row in zip(*values, strict=True)] if values else [()] * len(column)


def columnar_answer(path: Path, columns: set[str] | None = None, **options: Any) -> Answer:
    """Return what `read_batches` gives; rows of several batches are in the order of the file, as in each of them."""
    groups: Groups = defaultdict(list)
    error = None
    try:
        for batch in read_batches(path, columns=columns, **options):
            batch.records.validate(full=True)
            key = (batch.database, batch.table, batch.operation.name, batch.before, batch.after, batch.diffs)
            names = batch.records.schema.names
            assert (("before" in names), ("after" in names)) == (batch.before is not None, batch.after is not None)
            facts = list(zip(*(column.to_pylist() for column in batch.records.columns[: len(METADATA)]), strict=True))
            assert facts == sorted(facts, key=_place)
            images = {name: _images(batch.records.column(name)) for name in names[len(METADATA) :]}
            for number, row in enumerate(facts):
                both = (images[name][number] if name in images else None for name in ("before", "after"))
                groups[key].append((*row, *both))
    except FormatError as raised:
        error = _told(raised)
    # Two definitions of a table can have the same names; each has batches of its own.
    return Answer({key: sorted(rows, key=_place) for key, rows in groups.items()}, error)


def _place(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return where a row stands: position, place inside a compressed transaction, number in its event."""
    return row[:3]
