"""Rows of a table as Arrow."""

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from conflict.engine.ledger.arrow_rows import row_schema, rows_to_arrow
from conflict.history.grid.folder import Folder
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Table
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.values import Geometry, Value, Vector


def table(columns: str) -> Table:
    """Return a table with these columns."""
    return parse_create_table(f"CREATE TABLE t ({columns})", database="d", charset="utf8mb4")


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("TINYINT", pa.int8()),
        ("TINYINT UNSIGNED", pa.uint8()),
        ("SMALLINT", pa.int16()),
        ("SMALLINT UNSIGNED", pa.uint16()),
        ("MEDIUMINT", pa.int32()),
        ("MEDIUMINT UNSIGNED", pa.uint32()),
        ("INT", pa.int32()),
        ("INT UNSIGNED", pa.uint32()),
        ("BIGINT", pa.int64()),
        ("BIGINT UNSIGNED", pa.uint64()),
        ("BIT(64)", pa.uint64()),
        ("YEAR", pa.int16()),
        ("FLOAT", pa.float32()),
        ("DOUBLE", pa.float64()),
        ("DECIMAL", pa.decimal128(10, 0)),
        ("DECIMAL(38,10)", pa.decimal128(38, 10)),
        ("DECIMAL(39,10)", pa.decimal256(39, 10)),
        ("DECIMAL(65,30)", pa.decimal256(65, 30)),
        ("DATE", pa.string()),
        ("TIME(6)", pa.string()),
        ("DATETIME", pa.string()),
        ("TIMESTAMP(3)", pa.string()),
        ("CHAR(5)", pa.string()),
        ("VARCHAR(5)", pa.string()),
        ("TEXT", pa.string()),
        ("ENUM('a','b')", pa.string()),
        ("SET('a','b')", pa.string()),
        ("BINARY(5)", pa.binary()),
        ("VARBINARY(5)", pa.binary()),
        ("BLOB", pa.binary()),
        ("JSON", pa.string()),
        ("GEOMETRY", pa.binary()),
        ("VECTOR(3)", pa.binary()),
    ],
)
def test_types(column: str, kind: pa.DataType):
    """Each type has an Arrow type that loses nothing."""
    assert row_schema(table(f"c {column}")) == pa.schema([("c", kind)])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("BIGINT UNSIGNED", 2**64 - 1),
        ("BIGINT UNSIGNED", 2**63),
        ("BIGINT", -(2**63)),
        ("INT UNSIGNED", 2**32 - 1),
        ("TINYINT UNSIGNED", 255),
        ("BIT(64)", 2**64 - 1),
        ("YEAR", 0),
        ("YEAR", 2155),
        ("DECIMAL(65,30)", Decimal("-" + "9" * 35 + "." + "9" * 30)),
        ("DECIMAL(65,30)", Decimal("0." + "0" * 29 + "1")),
        ("DECIMAL(38,38)", Decimal("0." + "9" * 38)),
        ("DATE", "0000-00-00"),
        ("DATETIME(6)", "0000-00-00 00:00:00.000000"),
        ("DATE", "2024-02-00"),
        ("TIME", "-838:59:59"),
        ("TIMESTAMP", "2038-01-19 03:14:08"),
        ("VARCHAR(9)", ""),
        ("VARCHAR(9)", "a\0é\U0001f600"),
        ("SET('a','b')", "a,b"),
        ("VARBINARY(9)", b""),
        ("VARBINARY(9)", b"\x00\xff\x80"),
        ("DOUBLE", 1e-320),
        ("FLOAT", -0.5),
    ],
)
def test_round_trip(tmp_path: Path, column: str, value: Value):
    """A value comes back from Parquet as it was, and NULL as NULL."""
    definition = table(f"c {column}")
    rows = rows_to_arrow(definition, [(value,), (None,)])
    assert rows.column("c").to_pylist() == [value, None]
    folder = Folder(str(tmp_path))
    folder.write_table("rows.parquet", rows)
    assert folder.read_table("rows.parquet", row_schema(definition)).column("c").to_pylist() == [value, None]


def test_order_of_columns():
    """Columns have the order of the table, values that of the rows."""
    rows = rows_to_arrow(table("b INT, a VARCHAR(3)"), [(1, "x"), (2, None)])
    assert rows.to_pydict() == {"b": [1, 2], "a": ["x", None]}


def test_no_rows():
    """An empty table has its columns all the same."""
    definition = table("b INT, a BIGINT UNSIGNED")
    assert rows_to_arrow(definition, []).schema == row_schema(definition)


@pytest.mark.parametrize(
    ("column", "value", "written"),
    [
        ("JSON", JsonDocument(b"\x04\x01"), "true"),  # a literal, and which one
        ("JSON", JsonDocument(b"\x04\x00"), "null"),
        ("GEOMETRY", Geometry(b"\0\0\0\0\x01"), b"\0\0\0\0\x01"),
        ("VECTOR(1)", Vector(b"\x01\0\xc0\x7f"), b"\x01\0\xc0\x7f"),  # a NaN of its own
    ],
)
def test_documents_shapes_and_vectors(column: str, value: Value, written: object):
    """JSON is its text, in which the document null is not NULL; shapes and vectors are their bytes."""
    assert rows_to_arrow(table(f"c {column}"), [(value,), (None,)]).column("c").to_pylist() == [written, None]
