"""What the mysql client 9.7 prints for SHOW CREATE TABLE of two tables, in each of its forms."""

from pathlib import Path

import pytest

from conflict.config.schema_file import as_statements, load_schema

PRINTED = sorted(Path(__file__).with_name("shown_definitions").glob("*.txt"))


@pytest.mark.parametrize("file", PRINTED, ids=lambda file: file.stem)
def test_every_form_gives_the_definitions(file: Path) -> None:
    """Comments hold a tab, a pipe, backslashes and the edge of a box; none of them ends a statement."""
    orders, items = load_schema(file).tables
    assert [(each.name, each.type, each.nullable) for each in orders.columns] == [
        ("id", "bigint", False),
        ("note", "varchar", True),
        ("version", "int", False),
        ("kind", "enum", True),
    ]
    assert (orders.full_name, orders.primary_key, orders.columns[3].members) == (".orders", ("id",), ("a", r"b\n"))
    assert (items.name, items.primary_key, items.columns[1].charset) == ("items", ("a", "b"), "latin1")


def test_plain_sql_stays_as_it_is() -> None:
    """Also where a definition holds tabs, and words that the client prints."""
    text = "USE shop;\nCREATE TABLE t (\n\tid INT PRIMARY KEY COMMENT 'Create Table: CREATE TABLE'\n);\n"
    assert as_statements(text) == text


def test_a_temporary_table_and_a_semicolon():
    """A person may have put a semicolon there."""
    text = "Create Table: CREATE TEMPORARY TABLE `t` (\n  `id` int\n);\n1 row in set (0.00 sec)\n"
    assert as_statements(text) == "CREATE TEMPORARY TABLE `t` (\n  `id` int\n);\n"
