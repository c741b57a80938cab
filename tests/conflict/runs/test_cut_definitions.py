"""Binlogs that end before a statement that changes definitions, on one cluster or in the middle of damage."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import conflict
from ndb_formats.binlog_reader import Event, read_events
from ndb_formats.constants import EventType
from ndb_formats.events.header import decode_format_description
from ndb_formats.events.query_event import decode_query
from ndb_formats.writing.event_stream import EventStream
from tests.corpora import RECORDINGS, schema_file
from tests.ndb_formats.building import query_body

EVERYDAY = RECORDINGS / "everyday"
ENGINES = ("local", "reference")
FIGURES = (
    *("stops", "compared_with_binlogs", "contradicted_by_binlogs", "differing_rows", "tables", "rows", "undecided"),
)


def run_of(case: Path, folder: Path, edit: Callable[[Path], None], side: str) -> Path:
    """Write a run file for a copy of a recording in which one side's binlog was edited."""
    scenario = json.loads((case / "scenario.json").read_text("utf-8"))
    schema_file(case, folder)
    lines = ['schema = "schema.sql"']
    for number, name in enumerate("AB", start=1):
        shutil.copy(case / f"{name}.binlog.000001", folder)
        lines += [f"[clusters.{name}]", f"server_id = {number}", f'binlogs = ["{name}.binlog.000001"]']
    for row in scenario["ndb_replication"]:
        lines += ["[[ndb_replication]]", *(f"{name} = {json.dumps(value)}" for name, value in row.items() if value)]
    edit(folder / f"{side}.binlog.000001")
    (folder / "run.toml").write_text("\n".join(lines))
    return folder / "run.toml"


def statement(file: Path, words: str) -> Event:
    """Return the event of the first statement with these words."""
    queries = (event for event in read_events(file) if event.type is EventType.QUERY_EVENT)
    return next(event for event in queries if words in decode_query(event.body).statement)


def damage_before(words: str) -> Callable[[Path], None]:
    """Change a byte of the last row change before a statement."""

    def edit(file: Path) -> None:
        end = statement(file, words).position
        rows = [event for event in read_events(file, stop=end) if "ROWS" in event.type.name]
        damage(file, rows[-1].position + 30)

    return edit


def damage_statement(words: str) -> Callable[[Path], None]:
    """Change the last byte of these words in a statement to one that is not UTF-8."""

    def edit(file: Path) -> None:
        event = statement(file, words)
        damage(file, file.read_bytes().index(words.encode(), event.position) + len(words) - 1)

    return edit


def end_before(words: str) -> Callable[[Path], None]:
    """End a binlog before a statement."""

    def edit(file: Path) -> None:
        end_at(file, max(position for position in starts(file) if position < statement(file, words).position))

    return edit


def starts(file: Path) -> list[int]:
    """Return where transactions and statements start."""
    return [event.position for event in read_events(file) if "GTID" in event.type.name]


def end_at(file: Path, position: int) -> None:
    """Keep the bytes before a position."""
    file.write_bytes(file.read_bytes()[:position])


def create_after(transactions: int, create: str) -> Callable[[Path], None]:
    """Log a statement after so many transactions."""

    def edit(file: Path) -> None:
        out, commits = io.BytesIO(), 0
        stream = EventStream(out)
        for event in list(read_events(file)):
            if event.type is EventType.FORMAT_DESCRIPTION_EVENT:
                stream.start(event.header, decode_format_description(event.body))
                continue
            stream.put(event.header, event.body)
            if event.type is EventType.QUERY_EVENT and decode_query(event.body).statement == "COMMIT":
                commits += 1
                if commits == transactions:
                    stream.put(event.header, query_body(b"day", create.encode()))
        file.write_bytes(out.getvalue())

    return edit


def damage(file: Path, position: int) -> None:
    """Change one byte."""
    data = bytearray(file.read_bytes())
    data[position] ^= 0xFF
    file.write_bytes(data)


def resolved(run: Path) -> dict[str, Any]:
    """Resolve with both engines, make sure that they agree, and return the document of the result."""
    documents, rows = [], []
    for engine in ENGINES:
        result = conflict.resolve(run, engine=engine, policy="needs", out=run.parent / engine)
        documents.append({name: result.run[name] for name in FIGURES})
        rows.append({(side, table): rows_of(result, side, table) for side in "AB" for table in ("day.t1", "day.t2")})
    assert documents[0] == documents[1]
    assert rows[0] == rows[1]
    return result.run


def rows_of(result: conflict.Result, side: str, table: str) -> list[str]:
    """Return the final rows of a table, in order."""
    return sorted(map(repr, result.rows(side, table).to_pylist()))


@pytest.mark.parametrize("side", ["A", "B"])
@pytest.mark.parametrize(
    "case", ["epoch/ddl_add_column_copy_type8", "epoch2/ddl_drop_column_type8", "max/ddl_drop_column_type7"]
)
def test_a_statement_after_damage_does_not_count(case: str, side: str, tmp_path: Path) -> None:
    """Both engines give the rows with the columns that they had where the binlog can no longer be read."""
    run = run_of(EVERYDAY / case, tmp_path, damage_before("ALTER TABLE"), side)
    assert side in resolved(run)["binlog_errors"]
    columns = conflict.read_result(tmp_path / "local").rows(side, "day.t1").column_names
    assert columns == ["k", "x", "v", "s"]


@pytest.mark.parametrize("side", ["A", "B"])
def test_a_damaged_statement_does_not_count(side: str, tmp_path: Path) -> None:
    """What it says now is not followed; the error names the wrong checksum."""
    run = run_of(EVERYDAY / "max/ddl_drop_and_create_type7", tmp_path, damage_statement("CREATE TABLE t1"), side)
    assert "CRC32" in resolved(run)["binlog_errors"][side]


@pytest.mark.parametrize("side", ["A", "B"])
@pytest.mark.parametrize("case", ["max_ins/ddl_widen_column_type7", "epoch/ddl_create_another_type8"])
def test_a_log_that_ends_before_a_statement_stops_no_applier(case: str, side: str, tmp_path: Path) -> None:
    """An applier takes no change of after a statement before the statement itself."""
    words = "ALTER TABLE" if "widen" in case else "CREATE TABLE"
    document = resolved(run_of(EVERYDAY / case, tmp_path, end_before(words), side))
    assert document["stops"] == {}
    assert document["contradicted_by_binlogs"] == 0


@pytest.mark.parametrize(("side", "other"), ["AB", "BA"])
def test_a_table_that_is_created_after_the_end_is_not_there(side: str, other: str, tmp_path: Path) -> None:
    """The epochs after two of the other cluster's are left out, and the statement comes after them."""
    case = EVERYDAY / "epoch/ddl_add_column_copy_type8"
    run = run_of(case, tmp_path, create_after(5, "CREATE TABLE t9 (k INT NOT NULL PRIMARY KEY)"), side)
    cut = tmp_path / f"{other}.binlog.000001"
    end_at(cut, starts(cut)[2])
    document = resolved(run)
    assert document["epochs_left_out"][side] == 4
    assert sorted(document["rows"][side]) == sorted(document["tables"][side]) == ["day.t1", "day.t2"]
