"""Default values: what a column holds when nobody gave it a value."""

from decimal import Decimal
from typing import Any

import pytest

from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.default_values import default_value, zero_value
from ndb_formats.schema.tables import Column
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.values import Geometry, Vector


def column(definition: str) -> Column:
    """Return the column that a definition makes."""
    return parse_create_table(f"CREATE TABLE t (c {definition}) CHARSET=latin1").columns[0]


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("INT", None),
        ("INT DEFAULT NULL", None),
        ("INT DEFAULT '-5'", -5),
        ("BIGINT UNSIGNED DEFAULT 18446744073709551615", 18446744073709551615),
        ("BIT(3) DEFAULT b'101'", 5),
        ("BIT(9) DEFAULT 'a'", 97),
        ("YEAR DEFAULT 2155", 2155),
        ("TIME DEFAULT '2020-01-02 03:04:05'", "03:04:05"),
        ("TIME DEFAULT 20200102030405", "03:04:05"),
        ("TIME(6) DEFAULT '2020-01-02'", "00:20:20.000000"),
        ("TIME DEFAULT '-01:02:03'", "-01:02:03"),
        ("DECIMAL(5,2) DEFAULT 1.5", Decimal("1.50")),
        ("DOUBLE DEFAULT -1e3", -1000.0),
        ("VARCHAR(9) DEFAULT '5'", "5"),
        ("VARBINARY(9) DEFAULT 0x00ff", b"\x00\xff"),
        ("VARBINARY(9) DEFAULT 'a'", b"a"),
        ("BINARY(3) DEFAULT 'a'", b"a\x00\x00"),
        ("ENUM('a','b') DEFAULT 'b'", "b"),
        ("DATETIME(2) DEFAULT '2024-01-01 00:00:00.00'", "2024-01-01 00:00:00.00"),
        ("TIMESTAMP DEFAULT CURRENT_TIMESTAMP", None),
    ],
)
def test_default_value(definition: str, value: Any):
    """A constant default has the column's type; none, NULL and expressions are NULL."""
    made = default_value(column(definition))
    assert (type(made), str(made)) == (type(value), str(value))


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("INT", 0),
        ("BIT(3)", 0),
        ("DECIMAL(5,2)", Decimal("0.00")),
        ("DOUBLE", 0.0),
        ("VARCHAR(5)", ""),
        ("ENUM('a','b')", ""),
        ("VARBINARY(5)", b""),
        ("BINARY(3)", b"\x00\x00\x00"),
        ("JSON", JsonDocument(b"")),
        ("GEOMETRY", Geometry(b"")),
        ("VECTOR(3)", Vector(b"")),
        ("DATE", "0000-00-00"),
        ("TIME(3)", "00:00:00.000"),
        ("DATETIME", "0000-00-00 00:00:00"),
        ("TIMESTAMP(6)", "0000-00-00 00:00:00.000000"),
    ],
)
def test_zero_value(definition: str, value: Any):
    """The implicit zero of a type is spelled as the type's values are."""
    made = zero_value(column(definition))
    assert (type(made), str(made)) == (type(value), str(value))
