"""
A log in stretches in which definitions stay: from one statement that changes them to the next.

The schema says how tables stand at the start of a log. Each server whose files are read has a log of its own. What a
log itself says of a table is in its Table_map events (`table_layouts`, `table_columns`, `table_names`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa

from ndb_formats.binlog_reader import FIRST_POSITION, server_of
from ndb_formats.columnar.event_chunks import EventChunk, plain_chunk, read_chunks
from ndb_formats.columnar.log_scan import LogItem, ScannedStatement, scan_log
from ndb_formats.constants import EventType
from ndb_formats.errors import FormatError
from ndb_formats.events.agreed_definition import agreed_layout
from ndb_formats.events.logged_statement import definitions_following, definitions_without_faults
from ndb_formats.events.row_image import RowLayout
from ndb_formats.events.table_map import TableMap, decode_table_map
from ndb_formats.schema.create_table import definitions_before
from ndb_formats.schema.definitions import Definitions
from ndb_formats.schema.tables import Schema
from ndb_formats.types.column_types import Meaning


@attrs.frozen(eq=False)
class Stretch:
    """
    A part of a file in which definitions stay.

    Attributes:
        file: Path of the file.
        start: Position of its first event.
        stop: Position after its last event; None for the end of the file.
        schema: The definitions that are in force.
    """

    file: str
    start: int
    stop: int | None
    schema: Schema

    def within(self, start: int, stop: int | None) -> tuple[int, int | None] | None:
        """Return the part of it between two positions, the second exclusive; None if there is none."""
        first = max(self.start, start)
        last = min((each for each in (self.stop, stop) if each is not None), default=None)
        return None if last is not None and last <= first else (first, last)


class Stretches:
    """
    Divides files into stretches, in the order in which they were written.

    A statement that cannot be followed makes its table one that is not known from there on; the others stay.

    Attributes:
        notes: What is to be said of statements that cannot be followed, with their places.
    """

    def __init__(self, schema: Schema, *, follows: bool = True) -> None:
        """
        Start before the first file.

        Args:
            schema: Definitions at the start of each log.
            follows: Whether statements in the log change them.
        """
        self.notes: list[str] = []
        self._schema = schema
        self._follows = follows
        self._known: dict[int | None, Definitions] = {}

    def copy(self) -> Stretches:
        """Return another one that goes on from here."""
        other = Stretches(self._schema, follows=self._follows)
        other.notes, other._known = [*self.notes], {**self._known}
        return other

    def of(
        self, file: str, *, start: int = FIRST_POSITION, stop: int | None = None, items: Iterable[LogItem] | None = None
    ) -> Iterator[Stretch]:
        """
        Yield the stretches of the next file.

        Args:
            file: Path of the file. An error in it is left to whoever reads the stretches.
            start: Position from which statements are followed.
            stop: Position to stop before; None for the end of the file.
            items: What `scan_log` finds in the file, if that is known.
        """
        server = server_of(file)
        current = self._known.get(server) or self._start(server)
        found = _statements(scan_log([file], verify=False) if items is None else items)
        for item in found if self._follows else ():
            if item.position < start or (stop is not None and item.position >= stop):
                continue
            try:
                after = definitions_following(current, item.statement)
            except FormatError as error:
                self.notes.append(_unfollowed(item, error))
                after = definitions_without_faults(current, item.statement)
            if (after.tables, after.gone) != (current.tables, current.gone):
                yield Stretch(file, start, item.position, current.schema)
                start = item.position
            self._known[server] = current = after
        yield Stretch(file, start, stop, current.schema)

    def _start(self, server: int | None) -> Definitions:
        schema = self._schema.of_server(server)
        return attrs.evolve(Definitions.of(schema.tables, inexact_keys=schema.inexact_keys), any_case=True)


def _unfollowed(item: ScannedStatement, error: FormatError) -> str:
    table = "" if error.table is None else f"table {error.table}: "
    return (
        f"{item.file}, position {item.position}: {table}{error.message}. From here on its definition is not known, and "
        "its columns are those that the binlog tells"
    )


def schema_at_start(files: Sequence[str], schema: Schema) -> Schema:
    """
    Return the definitions at the start of logs from those at their end.

    Args:
        files: In the order in which they were written.
        schema: Definitions at the end.

    Raises:
        SchemaError: A statement cannot be taken back.
    """
    servers = {server for server, _ in schema.of_servers}
    logs: dict[int | None, list[str]] = {}
    for file in files:
        server = server_of(file)
        logs.setdefault(server if server in servers else None, []).append(file)
    own = tuple((server, _before(logs.get(server, ()), each)) for server, each in schema.of_servers)
    return attrs.evolve(_before(logs.get(None, ()), schema), of_servers=own)


def _before(files: Sequence[str], schema: Schema) -> Schema:
    end = Definitions.of(schema.tables, inexact_keys=schema.inexact_keys)
    return definitions_before(end, [item.statement for item in _statements(scan_log(files, verify=False))]).schema


def _statements(items: Iterable[LogItem]) -> Iterator[ScannedStatement]:
    return (item for item in items if isinstance(item, ScannedStatement))


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
    """Yield one Table_map event per table id and size in each chunk of a stretch; it represents one table."""
    plain = plain_chunk(part.file, part.start, part.stop, telling=True)
    if plain is not None:
        yield from _maps_of_chunk(plain)
        return
    for chunk in read_chunks(
        part.file, start=part.start, stop=part.stop, verify=False, events=_CHUNK_EVENTS, span=_CHUNK_BYTES
    ):
        yield from _maps_of_chunk(chunk)


def _maps_of_chunk(chunk: EventChunk) -> Iterator[TableMap]:
    events = np.flatnonzero(chunk.types == EventType.TABLE_MAP_EVENT)
    events = events[chunk.ends[events] - chunk.starts[events] >= _TABLE_ID]
    kinds = np.empty((len(events), _TABLE_ID + 8), np.uint8)
    kinds[:, :_TABLE_ID] = chunk.data[chunk.starts[events][:, None] + np.arange(_TABLE_ID)]
    kinds[:, _TABLE_ID:] = (chunk.ends[events] - chunk.starts[events]).view(np.uint8).reshape(-1, 8)
    buffers = [None, pa.py_buffer(kinds)]
    numbers = pa.FixedSizeBinaryArray.from_buffers(pa.binary(kinds.shape[1]), len(events), buffers).dictionary_encode()
    # Kinds are numbered in the order in which they come.
    is_new = np.diff(np.maximum.accumulate(numbers.indices.to_numpy()), prepend=-1) > 0
    for event in events[is_new].tolist():
        yield decode_table_map(chunk.body(event), chunk.server)
