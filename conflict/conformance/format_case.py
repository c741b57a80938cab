"""
Judges the reading of binlogs by recordings: mysqlbinlog's own text, and the tables afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conflict.conformance.expectation import plain_value, recorded_value
from conflict.conformance.logged_columns import column_differences
from ndb_formats.binlog_reader import read_events
from ndb_formats.binlog_writer import EventEncoder
from ndb_formats.errors import FormatError
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from ndb_formats.row_reader import LoggedRow, read_rows
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.default_values import default_value, zero_value
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import Column, Schema, Table
from ndb_formats.selection import Selection, select_events
from ndb_formats.text.event_lines import text_lines
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.json_diff import JsonChange, apply_diffs
from ndb_formats.types.values import Value

__all__ = ["binlog_differences", "format_differences"]

Row = dict[int, Value]
_METADATA_STARTS = (b"# Columns(", b"# Primary Key(", b"#         `")


def format_differences(folder: Path) -> Iterator[str]:
    """
    Yield every difference between a recorded format case and what is read of it.

    Compared are the ``###`` lines (and those on metadata, where recorded), the columns that its events carry, the rows
    of its tables afterwards, and the bytes of its events encoded again.
    """
    binlog = folder / "binlog.000001"
    recorded = (folder / "mysqlbinlog.txt").read_bytes()
    metadata = any(line.startswith(_METADATA_STARTS) for line in recorded.splitlines())
    yield from _text_differences(binlog, recorded, metadata=metadata)
    yield from _byte_differences(binlog)
    yield from column_differences(folder)
    schema = parse_schema((folder / "schema.sql").read_text("utf-8"))
    yield from _row_differences(binlog, schema, json.loads((folder / "rows.json").read_text("utf-8")))


def binlog_differences(folder: Path) -> Iterator[str]:
    """
    Yield every difference between mysqlbinlog's text of a file and ours.

    Where mysqlbinlog stopped with an error, ours may go on (it refuses version 1 row events, which can be read), or
    stop there too.
    """
    result = json.loads((folder / "result.json").read_text("utf-8"))
    recorded = (folder / "mysqlbinlog.txt").read_bytes()
    yield from _text_differences(folder / "binlog", recorded, metadata=False, stopped=bool(result["exit"]))
    yield from _byte_differences(folder / "binlog")


def _lines(data: list[bytes], *, metadata: bool) -> list[bytes]:
    starts = (b"###", *_METADATA_STARTS) if metadata else (b"###",)
    return [line for line in data if line.startswith(starts)]


def _text_differences(binlog: Path, recorded: bytes, *, metadata: bool, stopped: bool = False) -> Iterator[str]:
    found: list[bytes] = []
    fault = ""
    try:
        for line in text_lines(
            select_events([str(binlog)], Selection(), verify=False), verbose=2, table_metadata=metadata
        ):
            found.extend(line.split(b"\n"))
    except FormatError as error:
        fault = f" (reading ended: {error})"
    mine, theirs = _lines(found, metadata=metadata), _lines(recorded.split(b"\n"), metadata=metadata)
    for number, (ours, line) in enumerate(zip(mine, theirs, strict=False), start=1):
        if ours != line:
            yield f"line {number} of the text is {_show(ours)}, recorded is {_show(line)}"
            return
    if len(mine) < len(theirs) or (len(mine) > len(theirs) and not stopped):
        yield f"{len(mine)} lines of text, recorded are {len(theirs)}{fault}"


def _show(line: bytes) -> str:
    return repr(line[:200].decode("utf-8", "replace"))


def _byte_differences(binlog: Path) -> Iterator[str]:
    data, encoder = binlog.read_bytes(), EventEncoder()
    try:
        for event in read_events(binlog):
            if encoder.encode(event) != data[event.position : event.end]:
                yield f"position {event.position}: {event.header.type_name} encodes to other bytes"
                return
    except FormatError:
        return  # what the text says of a broken file is compared above


def _row_differences(binlog: Path, schema: Schema, recorded: dict[str, dict[str, list[Any]]]) -> Iterator[str]:
    tables: dict[str, list[Row]] = {}
    for change in read_rows(binlog, schema=schema):
        table = schema.find(change.database, change.table)
        if table is not None:
            _play(tables.setdefault(table.full_name, []), table, change)
    for name, rows in tables.items():
        table = next(each for each in schema.tables if each.full_name == name)
        want = recorded[table.name]
        kept = [place for place, column in enumerate(table.columns) if column.generated != "virtual"]
        mine = sorted(repr([plain_value(row[place]) for place in kept]) for row in rows)
        theirs = sorted(
            repr([recorded_value(row[place], want["types"][place]) for place in kept]) for row in want["rows"]
        )
        if mine != theirs:
            odd = next(iter(set(mine) ^ set(theirs)), "")
            yield f"table {name} ends with {len(mine)} rows, recorded are {len(theirs)}; for one, {odd[:300]}"


def _play(rows: list[Row], table: Table, change: LoggedRow) -> None:
    """Do one change: find its row by whatever the before image holds."""
    if change.operation is Operation.WRITE_ROW:
        assert change.after is not None
        new = change.after.values()
        # NDB logs updates as writes under some formats; another engine never writes an existing key.
        row = next((row for row in rows if _same_key(table, change.after, row)), None) if table.primary_key else None
        if row is None:
            rows.append({place: _initial(column) for place, column in enumerate(table.columns)} | new)
        else:
            row.update(new)
        return
    assert change.before is not None
    row = _find(rows, change.before.values())
    if row is None:
        return
    if change.after is None:
        rows.remove(row)
    else:
        row.update(_after(row, change.after))


def _same_key(table: Table, image: RowImage, row: Row) -> bool:
    """Whether a written image and a row have the same primary key, as the key's collations compare it."""
    columns = [table.columns[place] for place in table.key_ordinals]
    codecs = [image.layout.codecs[place] for place in table.key_ordinals]
    written = [image.payloads[image.present.index(place)] for place in table.key_ordinals]
    stored = [codec.encode(row[place]) for codec, place in zip(codecs, table.key_ordinals, strict=True)]
    return key_of(columns, written) == key_of(columns, stored)


def _find(rows: list[Row], wanted: Row) -> Row | None:
    return next((row for row in rows if all(row[place] == value for place, value in wanted.items())), None)


def _after(row: Row, image: RowImage) -> Row:
    """Return what an after image says of a row, JSON diffs applied to what the row holds."""
    values = image.values()
    for place in image.partial:
        document, change = row[place], values[place]
        if isinstance(change, JsonChange) and isinstance(document, JsonDocument):
            values[place] = apply_diffs(document, change.diffs)
    return values


def _initial(column: Column) -> Value:
    default = default_value(column)
    return zero_value(column) if default is None and not column.nullable else default
