"""What real servers said when their tables were created: every function, refusal and exceptions table."""

import json
from pathlib import Path
from typing import Any

import pytest

from conflict.conformance.case import ConflictCase
from conflict.conformance.judge import find_cases
from conflict.conformance.setup_words import setup_differences
from conflict.rules.replication_table import AmbiguousMatch, ReplicationRow, best_match
from conflict.rules.table_setup import set_up
from ndb_formats.rules.update_format import server_options
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Schema

# One case a line: its definitions and rows, and what both servers said at set-up, word for word.
RECORDED = (Path(__file__).parents[1] / "recordings" / "setups.jsonl").read_text("utf-8")
CASES = {case["case"]: case for case in map(json.loads, RECORDED.splitlines())}


def schema_of(case: dict[str, Any]) -> Schema:
    """Return the tables of a case."""
    return Schema(tuple(parse_create_table(sql, database=case["database"]) for sql in case["definitions"]))


def rows_of(case: dict[str, Any]) -> list[ReplicationRow]:
    """Return its rows of mysql.ndb_replication."""
    return [ReplicationRow(**row) for row in case["ndb_replication"]]


@pytest.mark.parametrize("name", CASES)
def test_what_the_servers_said(name: str) -> None:
    """Both error logs, and the warnings of CREATE TABLE with their cut messages."""
    case = CASES[name]
    for side, want in case["sides"].items():
        setups = set_up(schema_of(case), rows_of(case), want["server_id"], server_options(want["options"]))
        assert list(setup_differences(side, want, setups)) == []


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("replication_table/")])
def test_which_row_an_exceptions_table_matches(name: str) -> None:
    """A server says of an exceptions table which function it does not use: that of the row that matches best."""
    case = CASES[name]
    for want in case["sides"].values():
        said = {line.split("Replica: ")[1] for line in want["error_log"] if "is exceptions table" in line}
        expected = set()
        for table in schema_of(case).tables:
            row = best_match(rows_of(case), table.database, table.name, want["server_id"])
            assert not isinstance(row, AmbiguousMatch) or not table.name.endswith("$EX")
            if table.name.endswith("$EX") and isinstance(row, ReplicationRow) and row.conflict_fn is not None:
                function = row.conflict_fn.split("(")[0]
                expected.add(f"Table {table.full_name} is exceptions table: not using conflict function {function}")
        assert said == expected


def test_every_kind_is_here() -> None:
    """All spellings and matches, and the exceptions tables of both kinds of function."""
    kinds = [name.split("/")[0] for name in CASES]
    assert kinds.count("parse") == 18
    assert kinds.count("replication_table") == 10
    assert sum("/ex_" in name for name in CASES) == 20


SHARED = Path(__file__).parents[2].parent / "shared" / "conformance"


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="the whole corpus does not lie beside the project")
def test_the_whole_corpus() -> None:
    """Every table of every case."""
    for found in [each for part in ("conflict", "live") for each in find_cases(SHARED / part)]:
        case = ConflictCase.load(found.path)
        for side, setups in case.configuration().setups().items():
            assert list(setup_differences(side, case.expected[side], setups)) == [], found.case
