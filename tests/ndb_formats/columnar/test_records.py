"""Records column by column: those of the scalar reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ndb_formats.columnar.batches import read_batches
from ndb_formats.columnar.records import RECORDS, record_batches, records_of
from ndb_formats.errors import FormatError
from ndb_formats.row_reader import read_rows
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema
from tests.corpora import DEMO
from tests.ndb_formats.recordings import BINLOGS, name_of


def scalar(path: Path, schema: Schema) -> list[dict[str, Any]]:
    """Return the records of the scalar reader, up to what cannot be read."""
    rows = []
    try:
        for row in read_rows(path, schema=schema):
            rows.append(row)  # noqa: PERF402 - what came before an error stays
    except FormatError:
        pass
    return in_order([record for batch in record_batches(rows) for record in batch.to_pylist()])


def in_order(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records in an order that does not depend on batches; packed events share a position."""
    return sorted(records, key=lambda record: (record["position"], record["row"], str(record)))


def in_columns(path: Path, schema: Schema) -> list[dict[str, Any]]:
    """Return the records of batches, up to what cannot be read."""
    records: list[dict[str, Any]] = []
    try:
        for batch in read_batches(path, schema=schema):
            found = records_of([batch], str(path))
            found.validate(full=True)
            assert found.schema == RECORDS
            records += found.to_pylist()
    except FormatError:
        pass
    return in_order(records)


@pytest.mark.parametrize("path", BINLOGS, ids=name_of)
def test_recordings(path: Path) -> None:
    """Every bundled file: all types, absent columns, NULLs, diffs and flags."""
    assert in_columns(path, Schema()) == scalar(path, Schema())


def test_with_definitions() -> None:
    """Names, signs, character sets and members come from definitions."""
    schema = parse_schema((DEMO / "schema.sql").read_text(), database="cft")
    path = DEMO / "A.binlog.000001"
    records = in_columns(path, schema)
    assert records == scalar(path, schema)
    assert any(dict(record["after"] or ()).get("k") == "1" for record in records)
