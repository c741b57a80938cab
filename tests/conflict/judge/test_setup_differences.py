"""Messages of real servers when their tables were created: on functions, refusals and exceptions tables."""

import json
from typing import Any

import pytest

from conflict.judge.case import ConflictCase, find_recordings
from conflict.judge.result_differences import setup_differences
from conflict.rules.replication_table import AmbiguousMatch, ReplicationRow, best_match
from conflict.rules.table_setup import set_up
from ndb_formats.rules.update_format import server_options
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Schema
from tests.corpora import RECORDINGS, SHARED

# One case a line: its definitions and rows, and the messages of both servers, word for word.
RECORDED = (RECORDINGS / "setups.jsonl").read_text("utf-8")
CASES = {case["case"]: case for case in map(json.loads, RECORDED.splitlines())}


def schema_of(case: dict[str, Any]) -> Schema:
    """Return the tables of a case."""
    return Schema(tuple(parse_create_table(sql, database=case["database"]) for sql in case["definitions"]))


def rows_of(case: dict[str, Any]) -> list[ReplicationRow]:
    """Return its rows of mysql.ndb_replication."""
    return [ReplicationRow(**row) for row in case["ndb_replication"]]


@pytest.mark.parametrize("name", CASES)
def test_the_rules_predict_every_message(name: str) -> None:
    """In both error logs, and in the warnings of CREATE TABLE, which are cut."""
    case = CASES[name]
    for side, want in case["sides"].items():
        setups = set_up(schema_of(case), rows_of(case), want["server_id"], server_options(want["options"]))
        assert list(setup_differences(side, want, setups.values())) == []


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("replication_table/")])
def test_an_exceptions_table_matches_the_best_row(name: str) -> None:
    """The server names the function of that row, which it does not use."""
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


def test_all_kinds_of_messages_are_bundled() -> None:
    """Of spellings, matches, and the exceptions tables of both kinds of function."""
    kinds = [name.split("/")[0] for name in CASES]
    assert kinds.count("parse") == 18
    assert kinds.count("replication_table") == 10
    assert sum("/ex_" in name for name in CASES) == 20


@pytest.mark.slow
@pytest.mark.corpus("conformance")
@pytest.mark.parametrize("part", ["conflict", "live"])
def test_the_rules_predict_every_message_of_the_corpus(part: str) -> None:
    """Every table of every case."""
    for found in find_recordings(SHARED / "conformance" / part):
        case = ConflictCase.load(found.path)
        for side, setups in case.configuration().setups().items():
            assert list(setup_differences(side, case.expected[side], setups.values())) == [], found.case
