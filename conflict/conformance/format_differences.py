"""
How binlogs as read here differ from recordings: from mysqlbinlog's text, the final tables, the bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conflict.conformance.column_differences import column_differences
from conflict.conformance.recorded_values import plain_value, recorded_value
from conflict.conformance.row_replay import Row, apply_change
from ndb_formats.binlog_reader import read_events
from ndb_formats.columnar.selected_changes import ChangeReading
from ndb_formats.columnar_text.log_text import TextOptions, log_text
from ndb_formats.errors import FormatError
from ndb_formats.row_reader import read_rows
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import Selection
from ndb_formats.writing.round_trip import EventEncoder

__all__ = ["binlog_differences", "format_differences"]

_METADATA_STARTS = (b"# Columns(", b"# Primary Key(", b"#         `")


def format_differences(folder: Path) -> Iterator[str]:
    """
    Yield every difference between a recording of logged statements and what is read from its binlog.

    Compared are the ``###`` lines (and those on metadata, where recorded), the columns in its events, the final rows
    of its tables, and the bytes of its events encoded again.
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

    Where mysqlbinlog stopped with an error, ours may go on: mysqlbinlog refuses version 1 row events, which can be
    read.
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
        options = TextOptions(verbose=2, table_metadata=metadata)
        for part in log_text([str(binlog)], Selection(), ChangeReading(Schema()), options):
            found.extend(part.split(b"\n"))
    except FormatError as error:
        fault = f" (reading ended: {error})"
    mine, theirs = _lines(found, metadata=metadata), _lines(recorded.split(b"\n"), metadata=metadata)
    for number, (ours, line) in enumerate(zip(mine, theirs, strict=False), start=1):
        if ours != line:
            yield f"line {number} of the text is {_show(ours)}, recorded: {_show(line)}"
            return
    if len(mine) < len(theirs) or (len(mine) > len(theirs) and not stopped):
        yield f"{len(mine)} lines of text, recorded: {len(theirs)}{fault}"


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
        return  # the text of a broken file is compared above


def _row_differences(binlog: Path, schema: Schema, recorded: dict[str, dict[str, list[Any]]]) -> Iterator[str]:
    tables: dict[str, list[Row]] = {}
    for change in read_rows(binlog, schema=schema):
        table = schema.find(change.database, change.table)
        if table is not None:
            apply_change(tables.setdefault(table.full_name, []), table, change)
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
            yield f"table {name} ends with {len(mine)} rows, recorded: {len(theirs)}; for example, {odd[:300]}"
