"""Recordings of two clusters of MySQL NDB Cluster 9.7.2 with a run file: what the servers held and counted."""

import json
from pathlib import Path
from typing import Any

import pytest

import conflict
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
