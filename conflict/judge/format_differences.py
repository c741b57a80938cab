"""
How row events as read here differ from recordings: from mysqlbinlog's text, the final tables, the bytes, the columns.

`statements.json` names, for each statement or transaction, the part of the binlog that it made. The columns that a
statement writes are read from its text, and the rules of its formats give those of its events. The final tables are
those to which the logged changes were applied, without any conflict function.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from conflict.judge.result_differences import plain_value, recorded_value
from conflict.rules.replication_table import ReplicationRow, best_match
from ndb_formats.binlog_reader import read_events
from ndb_formats.columnar.selected_changes import ChangeReading
from ndb_formats.errors import FormatError, SchemaError
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from ndb_formats.row_reader import LoggedRow, read_rows
from ndb_formats.rules.row_image_rules import EventColumns, image_columns, parse_row_image
from ndb_formats.rules.update_format import effective_format, is_ndb, key_change, ndb_columns, server_options
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.default_values import default_value, zero_value
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import Column, Schema, Table
from ndb_formats.selection import Selection
from ndb_formats.text.log_text import log_text
from ndb_formats.text.row_printer import TextOptions
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.json_diff import JsonChange, apply_diffs
from ndb_formats.types.values import Value
from ndb_formats.writing.round_trip import EventEncoder

Row = dict[int, Value]  # values by column position
_SHOWN = 8  # bytes that differ


def _apply_change(rows: list[Row], table: Table, change: LoggedRow) -> None:
    """Apply one row change to the rows of its table, in place; the before image finds the row."""
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
    codecs = [image.layout.codecs[place] for place in table.key_ordinals]
    written = [image.payloads[image.present.index(place)] for place in table.key_ordinals]
    stored = [codec.encode(row[place]) for codec, place in zip(codecs, table.key_ordinals, strict=True)]
    return key_of(table.key_columns, written) == key_of(table.key_columns, stored)


def _find(rows: list[Row], wanted: Row) -> Row | None:
    return next((row for row in rows if all(row[place] == value for place, value in wanted.items())), None)


def _after(row: Row, image: RowImage) -> Row:
    """Return the values of an after image, its JSON diffs applied to the documents of the row."""
    values = image.values()
    for place in image.partial:
        document, change = row[place], values[place]
        if isinstance(change, JsonChange) and isinstance(document, JsonDocument):
            values[place] = apply_diffs(document, change.diffs)
    return values


def _initial(column: Column) -> Value:
    default = default_value(column)
    return zero_value(column) if default is None and not column.nullable else default


INSERT, UPDATE, DELETE, UPSERT = "insert", "update", "delete", "upsert"


@attrs.frozen
class _Statement:
    """
    One statement of a recording.

    Attributes:
        kind: Insert, update or delete; upsert for REPLACE and INSERT ... ON DUPLICATE KEY UPDATE.
        table: Its table.
        written: Positions of the columns that it names or sets.
    """

    kind: str
    table: Table
    written: frozenset[int]


def _column_differences(folder: Path) -> Iterator[str]:
    """Yield every row event of a recording whose columns are not those that the rules give."""
    schema = parse_schema((folder / "schema.sql").read_text("utf-8"))
    settings = json.loads((folder / "settings.json").read_text("utf-8"))
    for group in json.loads((folder / "statements.json").read_text("utf-8")):
        texts = [statement["sql"] for statement in group["statements"]]
        statements = [statement_of(text, schema) for text in texts]
        if None in statements:
            continue  # a statement that changes no row, or whose text does not show its columns
        known = [statement for statement in statements if statement is not None]
        for row in read_rows(folder / "binlog.000001", start=group["start"], stop=group["end"]):
            expected = _expected([each for each in known if each.table.name == row.table], settings)
            found = _columns(row)
            if found not in expected:
                yield (
                    f"position {row.position}, table {row.table}: {_say(found)} is logged for "
                    f"{'; '.join(texts)[:200]}, the rules give {' or '.join(map(_say, expected)) or 'nothing'}"
                )


def statement_of(sql: str, schema: Schema) -> _Statement | None:
    """Return what a statement writes; None if it changes no row of a table, or its text does not show its columns."""
    try:
        tree = sqlglot.parse_one(re.sub("^REPLACE", "INSERT", sql), read="mysql")
        name = tree.find(exp.Table)
        table = next((table for table in schema.tables if name is not None and table.name == name.name), None)
        return None if table is None else _statement_of(tree, table, replaces=sql.startswith("REPLACE"))
    except (SqlglotError, SchemaError):
        return None


def _statement_of(tree: exp.Expr, table: Table, *, replaces: bool) -> _Statement | None:
    every = frozenset(range(len(table.columns)))
    if isinstance(tree, exp.Update):
        return _Statement(UPDATE, table, frozenset(table.ordinal(item.this.name) for item in tree.expressions))
    if isinstance(tree, exp.Delete):
        return _Statement(DELETE, table, frozenset())
    if not isinstance(tree, exp.Insert):
        return None
    if replaces or tree.args.get("conflict"):
        return _Statement(UPSERT, table, every)
    named = isinstance(tree.this, exp.Schema)
    given = frozenset(table.ordinal(column.name) for column in tree.this.expressions) if named else every
    is_empty = "() VALUES ()" in tree.sql(dialect="mysql")
    return _Statement(INSERT, table, frozenset() if is_empty else given)


def _columns(row: LoggedRow) -> EventColumns:
    before = None if row.before is None else row.before.present
    return EventColumns(row.operation, before, None if row.after is None else row.after.present)


def _say(columns: EventColumns) -> str:
    images = [
        f"{name} {','.join(f'@{place + 1}' for place in image) or 'nothing'}"
        for name, image in (("before", columns.before), ("after", columns.after))
        if image is not None
    ]
    return f"{columns.operation.name} ({'; '.join(images)})"


def _expected(statements: Sequence[_Statement], settings: Mapping[str, Any]) -> list[EventColumns]:
    """Return what may be logged for statements on one table; NDB logs one event per row of a transaction."""
    found = [each for statement in statements for each in _of_statement(statement, settings)]
    if len(statements) > 1 and is_ndb(statements[0].table):
        table = statements[0].table
        kinds = {statement.kind for statement in statements}
        written = frozenset[int]().union(*(each.written for each in statements if each.kind == UPDATE))
        found += _event(table, Operation.UPDATE_ROW, written, settings)
        if {INSERT, DELETE} <= kinds:
            found += _event(table, Operation.UPDATE_ROW, range(len(table.columns)), settings)
    return found


def _of_statement(statement: _Statement, settings: Mapping[str, Any]) -> list[EventColumns]:
    table, written, every = statement.table, statement.written, range(len(statement.table.columns))
    if statement.kind == INSERT:
        return _event(table, Operation.WRITE_ROW, written, settings)
    if statement.kind == DELETE:
        return _event(table, Operation.DELETE_ROW, (), settings)
    if statement.kind == UPSERT:
        return [
            *_event(table, Operation.WRITE_ROW, every, settings),
            *_event(table, Operation.UPDATE_ROW, every, settings),
            *_event(table, Operation.DELETE_ROW, (), settings),
        ]
    if is_ndb(table) and written & set(table.key_ordinals):
        # A change of the key is a delete and an insert; if the key stays equal, it is an update of all columns.
        changed = key_change(effective_format(_binlog_type(table, settings), server_options(settings)), table)
        return [*_event(table, Operation.UPDATE_ROW, every, settings), *changed]
    return _event(table, Operation.UPDATE_ROW, written, settings)


def _event(
    table: Table, operation: Operation, written: Collection[int], settings: Mapping[str, Any]
) -> list[EventColumns]:
    if is_ndb(table):
        update_format = effective_format(_binlog_type(table, settings), server_options(settings))
        columns = ndb_columns(update_format, table, operation, written)
    else:
        columns = image_columns(parse_row_image(settings["binlog_row_image"]), table, operation, written)
    return [] if columns is None else [columns]


def _binlog_type(table: Table, settings: Mapping[str, Any]) -> int | None:
    rows = [ReplicationRow(*row[:5]) for row in settings.get("ndb_replication") or ()]
    match = best_match(rows, table.database, table.name, int(settings.get("server_id", 1)))
    return match.binlog_type if isinstance(match, ReplicationRow) else None


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
    yield from _column_differences(folder)
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
            mine, theirs = encoder.encode(event), data[event.position : event.end]
            if mine != theirs:
                at = next(
                    (number for number, pair in enumerate(zip(mine, theirs, strict=False)) if len({*pair}) > 1), 0
                )
                yield (
                    f"position {event.position}: {event.header.type_name} encodes to {len(mine)} bytes, "
                    f"{mine[at : at + _SHOWN].hex()} from byte {at} on, recorded: {len(theirs)}, "
                    f"{theirs[at : at + _SHOWN].hex()}"
                )
                return
    except FormatError:
        return  # the text of a broken file is compared above


def _row_differences(binlog: Path, schema: Schema, recorded: dict[str, dict[str, list[Any]]]) -> Iterator[str]:
    tables: dict[str, list[Row]] = {}
    for change in read_rows(binlog, schema=schema):
        table = schema.find(change.database, change.table)
        if table is not None:
            _apply_change(tables.setdefault(table.full_name, []), table, change)
    for name, rows in tables.items():
        table = next(each for each in schema.tables if each.full_name == name)
        want = recorded[table.name]
        kept = [place for place, column in enumerate(table.columns) if column.generated != "virtual"]
        mine = sorted(repr([plain_value(row[place]) for place in kept]) for row in rows)
        theirs = sorted(
            repr([recorded_value(row[place], want["types"][place]) for place in kept]) for row in want["rows"]
        )
        if mine != theirs:
            extra, lacking = (min(set(one) - set(other), default="") for one, other in ((mine, theirs), (theirs, mine)))
            yield (
                f"table {name} ends with {len(mine)} rows, recorded: {len(theirs)}; for example "
                f"{extra[:300] or 'no row'}, recorded: {lacking[:300] or 'no row'}"
            )
