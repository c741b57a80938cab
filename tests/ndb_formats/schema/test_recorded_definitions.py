"""
Statements as real servers logged them make the tables that information_schema of these servers had.

The recording is made by `tests.mysql_server.record_definitions`.
"""

import json
import lzma
from copy import deepcopy
from typing import Any

import pytest

from ndb_formats.events.logged_statement import statement_of
from ndb_formats.events.query_event import decode_query
from ndb_formats.schema.definitions import Definitions
from tests.corpora import RECORDINGS
from tests.mysql_server.catalog import Shape, disagreements

RECORDING = RECORDINGS / "definitions" / "definitions.jsonl.xz"
CASES = [json.loads(line) for line in lzma.decompress(RECORDING.read_bytes()).splitlines()]


def wrong_in(case: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return what differs after the steps of a case."""
    known, wrong = Definitions.of([]), list[tuple[str, ...]]()
    for bodies, shapes in case["steps"]:
        for body in bodies:
            statement = statement_of(decode_query(bytes.fromhex(body), case["server"]))
            known = known if statement is None else known.after(statement)[0]
        for name, facts in shapes.items():
            table = known.find(case["database"], name)
            wrong += [(name, *each) for each in disagreements(table, Shape.of_json(facts))]
        there = {name for database, name in known.tables if database == case["database"]}
        wrong += [(name, "is gone") for name in there - set(shapes)]
    return wrong


@pytest.mark.parametrize("server", sorted({case["server"] for case in CASES}))
def test_definitions_are_those_of_the_server(server: str):
    """Every recorded statement of a server makes the tables that the server had after it."""
    cases = [case for case in CASES if case["server"] == server]
    assert len(cases) > 20
    assert [found for case in cases if (found := wrong_in(case))] == []


def test_a_changed_answer_is_a_disagreement():
    """The comparison notices a column of another type, and one more column."""
    case = deepcopy(next(case for case in CASES if case["steps"][-1][1]))
    facts = next(iter(case["steps"][-1][1].values()))
    facts[0].append(["one_more", "int", "YES", None, None, None, "", ""])
    assert [found[1] for found in wrong_in(case)] == ["columns"]
