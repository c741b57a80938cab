"""
The definitions that a table has in binlog files, from their Table_map events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import attrs
import numpy as np

from ndb_formats.binlog_reader import FIRST_POSITION
from ndb_formats.columnar.event_chunks import EventChunk, read_chunks
from ndb_formats.columnar.stretches import Stretch, Stretches
from ndb_formats.constants import EventType
from ndb_formats.events.agreed_layout import agreed_layout
from ndb_formats.events.row_image import RowLayout
from ndb_formats.events.table_map import TableMap, decode_table_map
from ndb_formats.schema.tables import Schema
from ndb_formats.types.column_types import Meaning

__all__ = ["ColumnNames", "table_columns", "table_layouts", "table_names"]

_TABLE_ID = 6
_CHUNK_BYTES, _CHUNK_EVENTS = 1 << 26, 1 << 18


def table_layouts(files: Iterable[str], table: str, schema: Schema) -> list[RowLayout]:
    """
    Return the different layouts of the rows of a table, in the order in which the files have them.

    Args:
        files: Binlog files, in order. What comes after an event that cannot be read is not searched.
        table: ``database.table``.
        schema: Definitions at the start of the log, for names and types that are not in the binlog.

    Raises:
        FormatError: A file cannot be read at all, or the definition does not fit the log.
    """
    found: dict[tuple[RowLayout, tuple[Meaning | None, ...]], None] = {}
    stretches = Stretches(schema)
    for part in (part for file in files for part in stretches.of(file)):
        for table_map in _different_maps(part):
            if table_map.full_name == table:
                known = part.schema.find(table_map.database, table_map.table, any_case=True)
                layout = agreed_layout(table_map, known)[0]
                found[layout, tuple(codec.meaning for codec in layout.codecs)] = None
    return [layout for layout, _ in found]


@attrs.frozen
class ColumnNames:
    """
    The names of the columns of a table, of all its definitions.

    Attributes:
        all: Of all columns, in order; ``@1``, ``@2`` and so on where nothing gives their names.
        primary_key: Of the columns of the primary key; empty if no definition says which they are.
    """

    all: tuple[str, ...] = ()
    primary_key: tuple[str, ...] = ()


def table_columns(
    files: Iterable[str], wanted: Callable[[TableMap], bool], schema: Schema, *, follows: bool
) -> dict[str, ColumnNames]:
    """
    Return the names of the columns of tables, by ``database.table``.

    Args:
        files: Binlog files, in order. What comes after an event that cannot be read is not searched.
        wanted: Whether a table is.
        schema: Definitions at the start of the log, for names that are not in the binlog.
        follows: Whether statements in the log change definitions.

    Raises:
        FormatError: A file cannot be read at all.
    """
    found: dict[str, ColumnNames] = {}
    stretches = Stretches(schema, follows=follows)
    for part in (part for file in files for part in stretches.of(file)):
        for table_map in filter(wanted, _different_maps(part)):
            known = part.schema.find(table_map.database, table_map.table, any_case=True)
            names, before = agreed_layout(table_map, known)[0].names, found.get(table_map.full_name, ColumnNames())
            key = before.primary_key if known is None else known.primary_key
            found[table_map.full_name] = ColumnNames(tuple(dict.fromkeys((*before.all, *names))), key)
    return found


def table_names(files: Iterable[str]) -> set[str]:
    """
    Return the tables that binlog files have Table_map events of, as ``database.table``.

    Args:
        files: Binlog files. What comes after an event that cannot be read is not searched.

    Raises:
        FormatError: A file cannot be read at all.
    """
    wholes = (Stretch(file, FIRST_POSITION, None, Schema()) for file in files)
    return {table_map.full_name for part in wholes for table_map in _different_maps(part)}


def _different_maps(part: Stretch) -> Iterator[TableMap]:
    """Yield the Table_map events of a stretch, of each table id and size in a chunk one: it stands for one table."""
    for chunk in read_chunks(
        part.file, start=part.start, stop=part.stop, verify=False, events=_CHUNK_EVENTS, span=_CHUNK_BYTES
    ):
        yield from _maps_of_chunk(chunk)


def _maps_of_chunk(chunk: EventChunk) -> Iterator[TableMap]:
    events = np.flatnonzero(chunk.types == EventType.TABLE_MAP_EVENT)
    events = events[chunk.ends[events] - chunk.starts[events] >= _TABLE_ID]
    heads = chunk.data[chunk.starts[events][:, None] + np.arange(_TABLE_ID)].astype(np.int64)
    ids = (heads << 8 * np.arange(_TABLE_ID)).sum(axis=1)
    _, first = np.unique(np.stack([ids, chunk.ends[events] - chunk.starts[events]]), axis=1, return_index=True)
    for event in events[np.sort(first)].tolist():
        yield decode_table_map(chunk.body(event), chunk.server)
