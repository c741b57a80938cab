"""Row changes as tables with the columns of the table."""

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from conflict.judge.result_differences import plain_value, recorded_value
from ndb_formats.binlog_reader import FIRST_POSITION
from ndb_formats.columnar.batches import read_batches
from ndb_formats.columnar.table_changes import CHANGE_FACTS, change_schema, joined_names, table_changes
from ndb_formats.columnar.table_rows import read_table_rows
from ndb_formats.errors import UnsupportedError
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema
from tests.corpora import DEMO
from tests.ndb_formats.recordings import COMPOSITE, TYPES


def changes(path: Path, schema: Schema, *, moments: bool = True) -> dict[str, pa.Table]:
    """Return the changes of every table."""
    found: dict[str, list[pa.RecordBatch]] = {}
    names = [table.full_name for table in schema.tables]
    for rows in read_table_rows(path, FIRST_POSITION, None, schema=schema, tables=names, moments=moments):
        kind = change_schema(rows.layout, moments=moments)
        found.setdefault(rows.full_name, []).append(table_changes(rows, str(path), kind))
    return {name: pa.Table.from_batches(batches) for name, batches in found.items()}


def definitions(folder: Path) -> Schema:
    return parse_schema((folder / "schema.sql").read_text("utf-8"))


def test_the_rows_of_a_recording_follow_from_its_changes() -> None:
    """What the server's tables held at the end is what the changes leave, each column with its recorded value."""
    schema, recorded = definitions(COMPOSITE), json.loads((COMPOSITE / "rows.json").read_text("utf-8"))
    seen = 0
    for name, table in changes(COMPOSITE / "binlog.000001", schema, moments=False).items():
        definition = next(each for each in schema.tables if each.full_name == name)
        key = [definition.columns[ordinal].name for ordinal in definition.key_ordinals]
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        for change in sorted(table.to_pylist(), key=lambda each: (each["position"], each["row"])):
            before, after = (
                {column: change[image][column] for column in (change[f"{image}_columns"] or "").split(",") if column}
                for image in ("before", "after")
            )
            image = {**before, **after}
            old = rows.pop(tuple((before or image)[column] for column in key), {})
            if change["operation"] != "DELETE_ROW":
                new = {**old, **image}
                rows[tuple(new[column] for column in key)] = new
                seen += 1
        want = recorded[definition.name]
        expected = sorted(
            repr([recorded_value(value, kind) for value, kind in zip(row, want["types"], strict=True)])
            for row in want["rows"]
        )
        names = [column.name for column in definition.columns]
        assert sorted(repr([plain_value(row[column]) for column in names]) for row in rows.values()) == expected
    assert seen > 0


def test_absent_and_null_are_told_apart() -> None:
    """An update of type 9 has its key alone before, and all else after; the presence columns name them."""
    table = changes(DEMO / "A.binlog.000001", definitions(DEMO))["cft.t1"]
    assert table.schema.names[: len(CHANGE_FACTS)] == CHANGE_FACTS.names
    rows = table.to_pylist()
    updates = [row for row in rows if row["operation"] == "UPDATE_ROW"]
    assert {(row["before_columns"], row["after_columns"]) for row in updates} == {("k", "x,v,s")}
    # The first row of the recording: INSERT INTO t1 (k,x,v,s) VALUES (1,101,-480,NULL)
    assert (rows[0]["before"], rows[0]["before_columns"]) == (None, None)
    assert rows[0]["after"] == {"k": 1, "x": 101, "v": -480, "s": None}
    assert rows[0]["after_columns"] == "k,x,v,s"
    assert {row["flags"] for row in rows} == {"", "REFRESH"}


def test_dates_and_timestamps_are_those_of_the_text() -> None:
    """Typed values are the same moments as the texts; a zero date is an error that names its place."""
    schema, path = definitions(TYPES), TYPES / "binlog.000001"
    columns = _moment_columns(schema)
    assert len(columns) > 3
    for name, kind in columns.items():
        texts = [value for batch in read_batches(path, schema=schema, columns=[name]) for value in _values(batch, name)]
        days = [text for text in texts if text is not None and "-00" not in text and not text.startswith("0000")]
        if len(days) < len([text for text in texts if text is not None]):
            with pytest.raises(UnsupportedError, match=f"position .* column {name}: holds 0000-00-00"):
                list(read_batches(path, schema=schema, columns=[name], moments=True))
            continue
        typed = [
            value
            for batch in read_batches(path, schema=schema, columns=[name], moments=True)
            for value in _values(batch, name)
        ]
        parse = date.fromisoformat if kind == "date" else datetime.fromisoformat
        expected = [None if text is None else parse(text) for text in texts]
        assert [value.replace(tzinfo=None) if isinstance(value, datetime) else value for value in typed] == expected


def _moment_columns(schema: Schema) -> dict[str, str]:
    (table,) = (table for table in schema.tables if table.name == "types")
    return {column.name: column.type for column in table.columns if column.type in ("date", "datetime", "timestamp")}


def _values(batch: Any, name: str) -> list[Any]:
    images = [image for image in ("before", "after") if image in batch.records.schema.names]
    kinds = {image: batch.records.schema.field(image).type for image in images}
    return [
        row[name]
        for image in images
        if kinds[image].get_field_index(name) >= 0
        for row in batch.records.column(image).to_pylist()
    ]


def test_names_with_commas_stand_in_backticks() -> None:
    """So a text of names has one meaning."""
    assert joined_names(["a", "b,c", "d`e", ""]) == "a,`b,c`,`d``e`,"
