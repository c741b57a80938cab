"""
What the statements of a recording write, read from their text, beside what the server logged of them.

`statements.json` of a recording gives each statement and its stretch of the binlog.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import attrs
import sqlglot
from sqlglot import exp

from ndb_formats.row_reader import LoggedRow, read_rows
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema, Table


@attrs.frozen
class Statement:
    """One INSERT, UPDATE or DELETE; `written` are the columns it names or sets. A REPLACE is an `upsert` of all."""

    kind: str
    table: Table
    written: frozenset[int]


def statement_of(sql: str, schema: Schema) -> Statement:
    """Read one statement of a recording."""
    replace = sql.startswith("REPLACE")
    tree = sqlglot.parse_one(re.sub("^REPLACE", "INSERT", sql), read="mysql")
    name = tree.find(exp.Table).name
    table = next(table for table in schema.tables if table.name == name)
    every = frozenset(range(len(table.columns)))
    if isinstance(tree, exp.Update):
        return Statement("update", table, frozenset(table.ordinal(item.this.name) for item in tree.expressions))
    if isinstance(tree, exp.Delete):
        return Statement("delete", table, frozenset())
    if replace or tree.args.get("conflict"):
        return Statement("upsert", table, every)
    named = isinstance(tree.this, exp.Schema)
    given = frozenset(table.ordinal(column.name) for column in tree.this.expressions) if named else every
    return Statement("insert", table, given)


def statements(case: Path) -> Iterator[tuple[list[Statement], list[LoggedRow]]]:
    """Yield the statements of each transaction of a recording, and the rows that were logged of them."""
    schema = parse_schema((case / "schema.sql").read_text(encoding="utf-8"))
    for group in json.loads((case / "statements.json").read_text(encoding="utf-8")):
        rows = list(read_rows(case / "binlog.000001", start=group["start"], stop=group["end"], schema=schema))
        yield [statement_of(statement["sql"], schema) for statement in group["statements"]], rows


def columns_of(row: LoggedRow) -> tuple[str, tuple[int, ...] | None, tuple[int, ...] | None]:
    """Return operation and columns of the images of a logged row."""
    return (
        row.operation.name,
        None if row.before is None else row.before.present,
        None if row.after is None else row.after.present,
    )
