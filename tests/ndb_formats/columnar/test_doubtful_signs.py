"""Integers of a log that does not say which are unsigned, and that nothing defines."""

from pathlib import Path

import pytest

from ndb_formats.columnar.selected_changes import ChangeReading, selected_changes
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import Selection
from tests.ndb_formats.building import MAGIC, description_event, event_bytes, rows_body, table_map_body

COLUMNS = 12
LARGE = b"\xff"  # 255, or -1


def notes(folder: Path, *rows: tuple[int, ...], schema: Schema | None = None) -> list[str]:
    """Return what is said of rows of TINYINTs; each is an event, and names the columns with a large value."""
    data = MAGIC + description_event()
    bodies = [(19, table_map_body(b"\x01" * COLUMNS, b"", database=b"d"))]
    every = range(COLUMNS)
    for row in rows:
        image = bytes(2) + b"".join(LARGE if place in row else b"\1" for place in every)
        bodies.append((30, rows_body(image, COLUMNS, [every])))
    for code, body in bodies:
        data += event_bytes(code, body, position=len(data))
    path = folder / "binlog.000001"
    path.write_bytes(data)
    said: list[str] = []
    list(selected_changes([str(path)], Selection(), ChangeReading(schema or Schema(), rows=1, noted=said.append)))
    return said


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([(2,)], "column @3"),
        ([(2,), (), (0, 2), (11,)], "columns @3, @1, @12"),
        ([tuple(range(COLUMNS))], f"columns {', '.join(f'@{number}' for number in range(1, 11))} and 2 more"),
    ],
)
def test_one_note_names_all_columns(rows: list[tuple[int, ...]], columns: str, tmp_path: Path) -> None:
    """Of all events, in the order in which they were met; of many columns, the first ten and how many more."""
    (said,) = notes(tmp_path, *rows)
    assert said.startswith(f"table d.t: {columns}: the log does not say which integers are unsigned")


def test_nothing_is_said_without_doubt(tmp_path: Path) -> None:
    """No value is negative; or the table is defined."""
    assert notes(tmp_path, (), ()) == []
    names = ", ".join(f"c{number} TINYINT UNSIGNED NOT NULL" for number in range(COLUMNS))
    assert notes(tmp_path, (1, 2), schema=parse_schema(f"CREATE TABLE t ({names})", database="d")) == []
