"""Recordings of two clusters of MySQL NDB Cluster 9.7.2 with a run file: what the servers held and counted."""

import json
from pathlib import Path
from typing import Any

import pytest

import conflict
from conflict.explaining.events import EventKind
from tests.corpora import RECORDINGS

CASES = sorted(path.parent for path in (RECORDINGS / "run_files").rglob("run.toml"))


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in an order that does not depend on the server."""
    return sorted(rows, key=str)


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_rows_exceptions_and_counters_are_those_of_the_servers(case: Path, engine: str, tmp_path: Path) -> None:
    """Nothing contradicts the binlogs, and no applier stops."""
    result = conflict.resolve(str(case / "run.toml"), engine=engine, out=str(tmp_path / "out"))
    expected = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    assert not result.run["contradictions"]
    assert not result.run["stops"]
    for cluster, told in expected["clusters"].items():
        assert told["applier"] == "running"
        for table, rows in told["rows"].items():
            assert in_order(result.rows(cluster, table).to_pylist()) == in_order(rows)
        for table, rows in told["exceptions"].items():
            found = result.exceptions(table.removesuffix("$EX"), cluster).to_pylist()
            of_server = [{name: row[name] for name in row if name != "NDB$outcome"} for row in found]
            assert in_order(of_server) == in_order(rows)
        moved = {name: number for name, number in result.counters[cluster].items() if number}
        assert moved == told["counters"]


def test_there_are_recordings() -> None:
    """Of each kind."""
    assert {path.parent.name for path in CASES} == {"keys", "values"}


KEYS = [path for path in CASES if path.parent.name == "keys"]


@pytest.mark.parametrize("case", KEYS, ids=lambda path: path.name)
def test_the_story_of_a_row_with_a_key_in_several_spellings(case: Path, tmp_path: Path) -> None:
    """An update that spells the key anew is told as a delete and a write, and the row is as the servers held it."""
    result = conflict.resolve(str(case / "run.toml"), engine="local", out=str(tmp_path / "out"))
    expected = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    story = conflict.explain(result, table="items", key="abc")
    judged = [each for each in story.events if each.kind is EventKind.JUDGED and each.cluster == "A"]
    assert [each.operation for each in judged] == ["DELETE_ROW", "WRITE_ROW"]
    (committed,) = [each for each in story.events if each.number == judged[0].cause_number]
    assert (committed.kind, committed.operation) == (EventKind.COMMITTED, "UPDATE_ROW")
    assert judged[1].cause_number == committed.number
    for cluster in result.clusters:
        last = [each for each in story.events if each.cluster == cluster][-1]
        assert [last.row] == expected["clusters"][cluster]["rows"]["items"]


def test_such_an_update_is_one_lost_change(tmp_path: Path) -> None:
    """Both of its operations were rejected, and each has its exceptions row, which `explain` finds."""
    case = RECORDINGS / "run_files" / "keys" / "key_spelling_max"
    result = conflict.resolve(str(case / "run.toml"), engine="local", out=str(tmp_path / "out"))
    lost = conflict.lost(result).changes.to_pylist()
    assert [(each["cluster"], each["operation"], each["position"]) for each in lost] == [
        ("A", "UPDATE_ROW", 981),
        ("B", "UPDATE_ROW", 1072),
    ]
    for number, operation in ((1, "DELETE_ROW"), (2, "WRITE_ROW")):
        story = conflict.explain(result, exception=number)
        (asked,) = [each for each in story.events if each.number == story.marked]
        assert (asked.cluster, asked.operation) == ("A", operation)
