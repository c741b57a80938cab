"""
How the columns in the row events of a recording differ from those that the rules of its formats give.

`statements.json` names, for each statement or transaction, the part of the binlog that it made. The columns that a
statement writes are read from its text.
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

from conflict.rules.replication_table import ReplicationRow, best_match
from ndb_formats.errors import SchemaError
from ndb_formats.events.rows_event import Operation
from ndb_formats.row_reader import LoggedRow, read_rows
from ndb_formats.rules.event_columns import EventColumns
from ndb_formats.rules.row_image_rules import image_columns, parse_row_image
from ndb_formats.rules.update_format import effective_format, is_ndb, key_change, ndb_columns, server_options
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema, Table

__all__ = ["Statement", "column_differences", "statement_of"]

INSERT, UPDATE, DELETE, UPSERT = "insert", "update", "delete", "upsert"


@attrs.frozen
class Statement:
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


def column_differences(folder: Path) -> Iterator[str]:
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


def statement_of(sql: str, schema: Schema) -> Statement | None:
    """Return what a statement writes; None if it changes no row of a table, or its text does not show its columns."""
    try:
        tree = sqlglot.parse_one(re.sub("^REPLACE", "INSERT", sql), read="mysql")
        name = tree.find(exp.Table)
        table = next((table for table in schema.tables if name is not None and table.name == name.name), None)
        return None if table is None else _statement_of(tree, table, replaces=sql.startswith("REPLACE"))
    except (SqlglotError, SchemaError):
        return None


def _statement_of(tree: exp.Expr, table: Table, *, replaces: bool) -> Statement | None:
    every = frozenset(range(len(table.columns)))
    if isinstance(tree, exp.Update):
        return Statement(UPDATE, table, frozenset(table.ordinal(item.this.name) for item in tree.expressions))
    if isinstance(tree, exp.Delete):
        return Statement(DELETE, table, frozenset())
    if not isinstance(tree, exp.Insert):
        return None
    if replaces or tree.args.get("conflict"):
        return Statement(UPSERT, table, every)
    named = isinstance(tree.this, exp.Schema)
    given = frozenset(table.ordinal(column.name) for column in tree.this.expressions) if named else every
    is_empty = "() VALUES ()" in tree.sql(dialect="mysql")
    return Statement(INSERT, table, frozenset() if is_empty else given)


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


def _expected(statements: Sequence[Statement], settings: Mapping[str, Any]) -> list[EventColumns]:
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


def _of_statement(statement: Statement, settings: Mapping[str, Any]) -> list[EventColumns]:
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
