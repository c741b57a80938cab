"""Definitions of tables."""

import pytest

from ndb_formats.errors import SchemaError
from ndb_formats.schema.tables import Column, Schema, Table

TABLE = Table(
    "db",
    "t",
    (Column("a", "int"), Column("B", "varchar", 5, charset="latin1", collation="latin1_bin"), Column("c", "date")),
    primary_key=("c", "a"),
)


def test_key_ordinals_are_in_key_order():
    """PRIMARY KEY (c, a) gives positions 2, 0."""
    assert TABLE.key_ordinals == (2, 0)


def test_a_table_without_a_key_has_no_key_ordinals():
    """No primary key is an empty key."""
    assert Table("db", "t", TABLE.columns).key_ordinals == ()


def test_columns_are_found_by_their_declared_name_and_no_other():
    """Letter case matters."""
    assert TABLE.find("B") == TABLE.columns[1]
    assert TABLE.find("b") is None
    assert [TABLE.ordinal(name) for name in ("a", "B", "c")] == [0, 1, 2]


def test_a_missing_column_is_an_error_that_lists_the_columns():
    """The error of an unknown column names table, column and all columns."""
    with pytest.raises(SchemaError) as caught:
        TABLE.ordinal("b")
    assert str(caught.value) == "table db.t, column b: no such column; the table has a, B, c"


def test_schema_finds_by_database_and_name():
    """The same table name in two databases is two tables."""
    other = Table("other", "t", ())
    schema = Schema((TABLE,)) + Schema((other,))
    assert schema.find("db", "t") is TABLE
    assert schema.find("other", "t") is other
    assert schema.find("db", "T") is None


@pytest.mark.parametrize(
    ("column", "sql"),
    [
        (Column("a", "int", unsigned=True), "int unsigned"),
        (Column("a", "decimal", 10, 3), "decimal(10,3)"),
        (Column("a", "varchar", 20, charset="latin1"), "varchar(20)"),
        (Column("a", "datetime", 6), "datetime(6)"),
        (Column("a", "enum", members=("x", "y'z"), charset="latin1"), "enum('x','y''z')"),
        (Column("a", "text", charset="latin1"), "text"),
    ],
)
def test_sql_type_is_that_of_information_schema(column: Column, sql: str):
    """The type is spelled as information_schema spells it."""
    assert column.sql_type == sql


def test_a_table_without_a_database_is_found_in_every_database() -> None:
    """But the table of the database itself comes first, wherever it stands."""
    anywhere = Table("", "orders", (Column("id", "int"),))
    here = Table("shop", "orders", (Column("id", "bigint"),))
    schema = Schema((anywhere, here))
    assert schema.find("shop", "orders") == here
    found = schema.find("other", "orders")
    assert found is not None
    assert (found.full_name, found.columns) == ("other.orders", anywhere.columns)
    assert schema.find("shop", "stock") is None
