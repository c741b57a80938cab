"""A log in stretches in which definitions stay."""

from pathlib import Path

import pytest

from ndb_formats.columnar.stretches import Stretch, Stretches, schema_at_start
from ndb_formats.schema.create_table import parse_schema
from tests.ndb_formats.building import FORMAT_DESCRIPTION, MAGIC, QUERY, description_body, event_bytes, query_body

SCHEMA = parse_schema("CREATE TABLE t (a INT PRIMARY KEY)", database="d")


def write(path: Path, *statements: str, server_id: int = 3, version: str = "9.7.4-cluster") -> list[int]:
    """Write a binlog of statements; return the position of each, and that of the end."""
    data = MAGIC + event_bytes(FORMAT_DESCRIPTION, description_body(version.encode()), server_id=server_id)
    positions = []
    for statement in statements:
        positions.append(len(data))
        data += event_bytes(QUERY, query_body(b"d", statement.encode()), server_id=server_id)
    path.write_bytes(data)
    return [*positions, len(data)]


def columns(stretches: Stretches, path: Path) -> list[list[str]]:
    """Return the columns of table t in each stretch of the next file."""
    tables = [each.schema.find("d", "t") for each in stretches.of(str(path))]
    return [[] if table is None else [column.name for column in table.columns] for table in tables]


def test_statements_divide_a_file(tmp_path: Path) -> None:
    """Only those that change a table; the next file of the server goes on, and another server starts anew."""
    first, second, other = (tmp_path / name for name in ("1", "2", "3"))
    places = write(first, "ALTER TABLE t ADD b INT", "CREATE DATABASE e", "DROP TABLE IF EXISTS nowhere")
    stretches = Stretches(SCHEMA)
    assert [(each.start, each.stop) for each in stretches.of(str(first))] == [(4, places[0]), (places[0], None)]
    write(second, "ALTER TABLE t ADD c INT")
    assert columns(stretches, second) == [["a", "b"], ["a", "b", "c"]]
    write(other, "ALTER TABLE t ADD b INT", server_id=4)
    assert columns(stretches, other) == [["a"], ["a", "b"]]


def test_what_cannot_be_followed(tmp_path: Path) -> None:
    """Its table is not known any more; a note says why, and where."""
    file = tmp_path / "1"
    place = write(file, "ALTER TABLE t DROP COLUMN z", "ALTER TABLE t ADD b INT")[0]
    stretches = Stretches(SCHEMA)
    assert columns(stretches, file) == [["a"], []]
    (note,) = stretches.notes
    assert note.startswith(f"{file}, position {place}: table d.t: the statement names column z, but the table has a")


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["ALTER TABLE t DROP COLUMN z"], [["a"], []]),
        (["DROP TABLE t", "CREATE TABLE t (x INT, y INT)"], [["a"], [], ["x", "y"]]),
        (["RENAME TABLE t TO u", "CREATE TABLE t (x INT)"], [["a"], [], ["x"]]),
        (["DROP DATABASE d", "CREATE TABLE d.t (x INT)"], [["a"], [], ["x"]]),
        (["DROP TABLE e.t", "ALTER TABLE t ADD b INT"], [["a"], ["a"], ["a", "b"]]),
    ],
)
def test_a_definition_without_a_database(statements: list[str], expected: list[list[str]], tmp_path: Path) -> None:
    """Stands for a table of every database until a statement drops, renames or changes that one."""
    file = tmp_path / "1"
    write(file, *statements)
    found = columns(Stretches(parse_schema("CREATE TABLE t (a INT PRIMARY KEY)")), file)
    assert found[: len(expected)] == expected


MARIADB = "10.11.19-MariaDB-log"


@pytest.mark.parametrize(
    ("version", "statements", "expected"),
    [
        # As MariaDB logs what is done to temporary tables in a log of rows: nothing but their new names.
        (MARIADB, ["RENAME TABLE t TO s"], ["a"]),
        ("9.7.4", ["RENAME TABLE t TO s"], []),
        (MARIADB, ["RENAME TABLE t TO s", "ALTER TABLE t ADD b INT"], ["a", "b"]),
        (MARIADB, ["RENAME TABLE t TO s", "CREATE TABLE t (x INT)"], ["x"]),
        (MARIADB, ["RENAME TABLE t TO s", "CREATE TABLE IF NOT EXISTS t (x INT)"], ["x"]),
        (MARIADB, ["RENAME TABLE t TO s", "ALTER TABLE s ADD b INT", "RENAME TABLE s TO t"], ["a", "b"]),
        (MARIADB, ["CREATE TABLE s (x INT)", "RENAME TABLE s TO t"], ["a"]),
        # In a log of statements all of it.
        (MARIADB, ["CREATE TEMPORARY TABLE t (x INT)", "RENAME TABLE t TO s", "ALTER TABLE t ADD b INT"], ["a", "b"]),
        (MARIADB, ["CREATE TEMPORARY TABLE s (x INT)", "RENAME TABLE s TO t", "ALTER TABLE t ADD b INT"], ["a"]),
        ("9.7.4", ["CREATE TEMPORARY TABLE s (x INT)", "ALTER TABLE s RENAME TO t", "DROP TABLE t"], ["a"]),
        ("9.7.4", ["CREATE TEMPORARY TABLE t (x INT)", "ALTER TABLE t RENAME s", "DROP TABLE t"], []),
    ],
)
def test_temporary_tables(version: str, statements: list[str], expected: list[str], tmp_path: Path) -> None:
    """Have names of their own; one that got the name of a table, or gave it up, leaves the table as it is."""
    file = tmp_path / "1"
    write(file, *statements, version=version)
    assert columns(Stretches(SCHEMA), file)[-1] == expected


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [((4, None), (20, 90)), ((50, 60), (50, 60)), ((90, None), None), ((4, 20), None), ((30, 200), (30, 90))],
)
def test_a_part_of_a_stretch(bounds: tuple[int, int | None], expected: tuple[int, int | None] | None) -> None:
    """Between two positions, the second exclusive."""
    assert expected == Stretch("file", 20, 90, SCHEMA).within(*bounds)


def test_definitions_of_the_end(tmp_path: Path) -> None:
    """What statements added is taken back."""
    file = tmp_path / "1"
    write(file, "ALTER TABLE t ADD b INT", "RENAME TABLE t TO u")
    end = parse_schema("CREATE TABLE u (a INT PRIMARY KEY, b INT)", database="d")
    start = schema_at_start([str(file)], end)
    assert [(table.name, [column.name for column in table.columns]) for table in start.tables] == [("t", ["a"])]
