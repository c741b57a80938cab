"""CREATE TABLE statements that are written again."""

import json
from pathlib import Path

import pytest

from ndb_formats.errors import SchemaError
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.sql_of_tables import sql_of_tables

RECORDINGS = Path(__file__).parents[2] / "recordings" / "conflict"


def test_recorded_tables_are_themselves_again() -> None:
    """Read again, the statements define the tables of every recording."""
    texts = set[str]()
    for path in sorted(RECORDINGS.rglob("scenario.json")):
        for table in json.loads(path.read_text("utf-8"))["tables"]:
            texts.update(text for text in (table["create"], table["ex"]) if text)
    for text in sorted(texts):
        schema = parse_schema(text, database="cft")
        assert parse_schema(sql_of_tables(schema)).tables == schema.tables


def test_what_a_column_has_besides_its_type() -> None:
    """Defaults, members, keys over prefixes and names that need quotes."""
    schema = parse_schema(
        "CREATE TABLE `my.db`.`a``b` (k VARCHAR(20) NOT NULL, e ENUM('x','y''z') NOT NULL DEFAULT 'x', "
        "n INT DEFAULT -5, b VARBINARY(4) DEFAULT x'00ff', t TEXT, u INT UNSIGNED AUTO_INCREMENT, "
        "d DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3), "
        "PRIMARY KEY (k(5)), UNIQUE KEY named (u, n)) ENGINE=NDB"
    )
    again = parse_schema(sql_of_tables(schema))
    assert again.tables == schema.tables
    assert again.tables[0].unique_names == ("named",)


def test_a_generated_column_is_refused() -> None:
    """Its expression is not kept as it was written."""
    with pytest.raises(SchemaError, match="it is generated"):
        sql_of_tables(parse_schema("CREATE TABLE t (id INT PRIMARY KEY, v INT AS (id + 1))"))
