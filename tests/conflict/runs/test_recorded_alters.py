"""
ALTER TABLE between changes, as two clusters of MySQL NDB Cluster 9.7.2 carried it out.

`expected.json` has what both servers held at the end.
"""

import io
import json
import shutil
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import conflict
from conflict.errors import ConfigurationError
from conflict.results.result import Result
from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from ndb_formats.events.header import decode_format_description
from ndb_formats.events.query_event import decode_query
from ndb_formats.writing.event_stream import EventStream
from tests.corpora import RECORDINGS
from tests.ndb_formats.building import query_body

ALTERS = sorted(path.parent for path in RECORDINGS.glob("alters/*/expected.json"))
VIRTUAL = {"virtual-column-null": "g"}  # columns that NDB does not store
UNKNOWN = {"final-rows-added-columns": {2}}  # rows with values of expressions


def resolved(case: Path, engine: str, out: Path) -> Result:
    """Return the result of a recording."""
    return conflict.resolve(str(case / "run.toml"), engine=engine, out=str(out))


def known_rows(case: Path, cluster: str) -> Counter[tuple[str, ...]]:
    """Return the rows that a server held, but those of which not all can be known."""
    held = json.loads((case / "expected.json").read_text("utf-8"))["clusters"][cluster]["rows"]["items"]
    return Counter(
        tuple(f"{name}={value}" for name, value in row.items() if name != VIRTUAL.get(case.name))
        for row in held
        if row["id"] not in UNKNOWN.get(case.name, ())
    )


def rows_of(result: Result, cluster: str) -> Counter[tuple[str, ...]]:
    """Return the final rows of a cluster."""
    found = result.rows(cluster, "shop.items").to_pylist()
    return Counter(tuple(f"{name}={value}" for name, value in row.items()) for row in found)


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("case", ALTERS, ids=[case.name for case in ALTERS])
def test_final_rows_are_those_of_the_servers(case: Path, engine: str, tmp_path: Path):
    """Or they are not among the known ones; the binlogs contradict nothing."""
    result = resolved(case, engine, tmp_path / "out")
    for cluster in ("A", "B"):
        assert rows_of(result, cluster) == known_rows(case, cluster), cluster
        unknown = result.run["not_known"].get(cluster, {}).get("shop.items", {})
        assert unknown.get("rows_in_part", 0) == len(UNKNOWN.get(case.name, ()))
    assert not any(result.run["contradictions"].values())
    assert result.run["stops"] == {}


def test_rows_that_are_not_known_have_not_converged(tmp_path: Path):
    """Nobody can tell: neither yes nor no."""
    case = RECORDINGS / "alters" / "final-rows-added-columns"
    result: Any = resolved(case, "local", tmp_path / "out")
    assert result.run["converged"] is None


def test_bits_of_an_exceptions_table(tmp_path: Path):
    """The server wrote others than the row had; a note says which columns they are in."""
    case = RECORDINGS / "alters" / "bit-in-exceptions-table"
    result = resolved(case, "local", tmp_path / "out")
    (row,) = result.exceptions("shop.items", "A").to_pylist()
    assert (row["e$OLD"], row["e$NEW"]) == (1, 5)
    setup = result.run["configuration"]["functions"]["A"]["shop.items"]
    assert setup["bits_in_exceptions"] == ["e$OLD", "e$NEW"]


def with_statements(folder: Path, statements: Sequence[str], *, strict: bool) -> Path:
    """Write a recording that ends after statements on `items` in place of its own; return its run file."""
    case = RECORDINGS / "alters" / ("final-rows-type-change" if strict else "final-rows-not-null")
    for name in ("schema.sql", "rows.sql", "run.toml"):
        shutil.copy(case / name, folder)
    for name in ("A.binlog.000001", "B.binlog.000001"):
        out = io.BytesIO()
        stream = EventStream(out)
        for event in read_events(case / name):
            if event.type is EventType.FORMAT_DESCRIPTION_EVENT:
                stream.start(event.header, decode_format_description(event.body))
                continue
            query = decode_query(event.body) if event.type is EventType.QUERY_EVENT else None
            if query is None or not query.statement.startswith("ALTER"):
                stream.put(event.header, event.body)
                continue
            for text in statements:
                body = query_body(b"shop", f"ALTER TABLE items {text}".encode(), query.status)
                stream.put(event.header, body)
            break
        (folder / name).write_bytes(out.getvalue())
    return folder / "run.toml"


# Rows (1, 1, 1.25, 'a', 1) and (2, 1, 1.25, 'b', NULL) of items (id, x, d DECIMAL(9,2), s, v INT), and what statements
# leave of each: its last columns; None where the row is not known.
AFTER: dict[str, tuple[bool, list[str], list[dict[str, Any] | None]]] = {
    "to and fro": (False, ["MODIFY x TINYINT UNSIGNED NOT NULL", "MODIFY x INT NOT NULL"], [{"x": 1}, {"x": 1}]),
    "cut, then wider": (False, ["MODIFY d DECIMAL(9,1)", "MODIFY d DECIMAL(12,4)"], [{"d": Decimal("1.3000")}] * 2),
    "to an integer and back": (True, ["MODIFY d INT", "MODIFY d DECIMAL(9,2)"], [{"d": Decimal("1.00")}] * 2),
    "to a text": (True, ["MODIFY d VARCHAR(20)"], [{"d": "1.25"}] * 2),
    "under another name": (True, ["CHANGE d e DOUBLE"], [{"e": 1.25}] * 2),
    "dropped and added": (True, ["DROP d", "ADD d DECIMAL(9,2)"], [{"d": None}] * 2),
    "dropped and added at once": (True, ["DROP d, ADD d DECIMAL(9,2) DEFAULT 7"], [{"d": Decimal("7.00")}] * 2),
    "one name for another column": (True, ["DROP v, RENAME COLUMN x TO v"], [{"v": 1}, {"v": 1}]),
    "a default that changes": (True, ["ADD n INT DEFAULT 5", "ALTER n SET DEFAULT 7"], [{"n": 5}] * 2),
    "an added column converted": (True, ["ADD n INT DEFAULT 5", "MODIFY n DECIMAL(5,1) DEFAULT 8"],
                                  [{"n": Decimal("5.0")}] * 2),
    "an added NULL that may not be": (False, ["ADD n INT", "MODIFY n INT NOT NULL DEFAULT 3"], [{"n": 0}] * 2),
    "a first member": (True, ["ADD e ENUM('p','q') NOT NULL"], [{"e": "p"}] * 2),
    "other members": (True, ["ADD e ENUM('p','q') DEFAULT 'q'", "MODIFY e ENUM('q','p')"], [{"e": "q"}] * 2),
    "another character set": (True, ["MODIFY s VARCHAR(10) CHARACTER SET latin1"], [{"s": "a"}, {"s": "b"}]),
    "all text converted": (True, ["CONVERT TO CHARACTER SET latin1"], [{"s": "a"}, {"s": "b"}]),
    "NULL that may not be": (False, ["MODIFY v INT NOT NULL"], [{"v": 1}, {"v": 0}]),
    "NULL that strict mode refuses": (True, ["MODIFY v BIGINT UNSIGNED NOT NULL"], [{"v": 1}, None]),
    "an expression": (True, ["ADD n INT DEFAULT (5 + 1)"], [None, None]),
    "an expression, then a constant": (True, ["ADD n INT DEFAULT (5 + 1)", "ALTER n SET DEFAULT 7"], [None, None]),
    "a time": (True, ["ADD t TIMESTAMP DEFAULT CURRENT_TIMESTAMP"], [None, None]),
    "a stored column": (True, ["ADD g INT AS (x + 1) STORED"], [None, None]),
    "a virtual column": (True, ["ADD g INT AS (x + 1) VIRTUAL"], [{"v": 1}, {"v": None}]),
    "a column of the key": (True, ["MODIFY id BIGINT"], [{"id": 1}, {"id": 2}]),
    "an unknown one converted": (True, ["ADD n INT DEFAULT (5 + 1)", "MODIFY n DECIMAL(5,1)"], [None, None]),
    "what a stored column depends on": (True, ["ADD g INT AS (d + 1) STORED", "MODIFY d DECIMAL(9,1)"], [None] * 2),
    "blanks": (True, ["MODIFY s VARCHAR(3)", "MODIFY s CHAR(5)"], [{"s": "a"}, {"s": "b"}]),
    "an unknown one dropped": (True, ["ADD n INT DEFAULT (5 + 1)", "DROP n"], [{"v": 1}, {"v": None}]),
}  # fmt: skip


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("what", AFTER)
def test_values_that_statements_give(what: str, engine: str, tmp_path: Path):
    """Worked by hand: each statement after the other, on both clusters."""
    strict, statements, wanted = AFTER[what]
    run = with_statements(tmp_path, statements, strict=strict)
    result = conflict.resolve(str(run), engine=engine, out=str(tmp_path / "out"))
    for cluster in ("A", "B"):
        rows = sorted(result.rows(cluster, "shop.items").to_pylist(), key=lambda row: row["id"])
        known = [row for row in wanted if row is not None]
        assert [{name: row[name] for name in one} for row, one in zip(rows, known, strict=True)] == known
        unknown = result.run["not_known"].get(cluster, {}).get("shop.items", {})
        assert unknown.get("rows_in_part", 0) == wanted.count(None)
    assert result.run["converged"] is (None if None in wanted else True)


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_rows_that_are_known_in_part(engine: str, tmp_path: Path):
    """They have their known values, and the names of the columns that are not known: no NULL, and not absent."""
    statements = ["ADD n INT DEFAULT (5 + 1)", "ADD m INT, ADD g INT AS (x + 1) STORED"]
    run = with_statements(tmp_path, statements, strict=True)
    result = conflict.resolve(str(run), engine=engine, out=str(tmp_path / "out"))
    for cluster in ("A", "B"):
        assert result.rows(cluster, "shop.items").num_rows == 0
        rows = sorted(result.rows_in_part(cluster, "shop.items").to_pylist(), key=lambda row: row["id"])
        first = {"id": 1, "x": 1, "d": Decimal("1.25"), "s": "a", "v": 1, "n": None, "m": None, "g": None}
        assert rows[0] == {**first, "NDB$not_known": ["n", "g"]}
        assert rows[1] == {**first, "id": 2, "s": "b", "v": None, "NDB$not_known": ["n", "g"]}


def test_no_row_is_known_in_part(tmp_path: Path):
    """Then there are none, with the columns that they would have."""
    result = resolved(RECORDINGS / "alters" / "final-rows-type-change", "local", tmp_path / "out")
    found = result.rows_in_part("A", "shop.items")
    assert (found.num_rows, found.column_names[-1]) == (0, "NDB$not_known")


def test_virtual_columns_are_in_no_result(tmp_path: Path):
    """Neither in rows nor in the columns that a table without rows would have."""
    case = RECORDINGS / "alters" / "virtual-column-null"
    result = resolved(case, "local", tmp_path / "out")
    assert result.rows("A", "shop.items").column_names == ["id", "x", "s"]
    assert result.rows_in_part("A", "shop.items").column_names == ["id", "x", "s", "NDB$not_known"]


def test_converted_values_do_not_keep_a_run_from_being_compared():
    """No function compares such a column; where one could, the run is refused with the reason."""
    case = RECORDINGS / "alters" / "final-rows-type-change"
    assert conflict.compare(str(case / "run.toml")).to_arrow().num_rows > 0


def test_a_converted_column_that_can_be_compared(tmp_path: Path):
    """A DECIMAL becomes an INT UNSIGNED, which functions compare: the kernels do not have the values."""
    run = with_statements(tmp_path, ["MODIFY d INT UNSIGNED"], strict=True)
    with pytest.raises(ConfigurationError, match="converts the values of a column"):
        conflict.compare(str(run))
