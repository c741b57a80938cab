"""
ALTER TABLE between changes, as two clusters of MySQL NDB Cluster 9.7.2 carried it out.

`expected.json` has what both servers held at the end.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import conflict
from conflict.result import Result
from tests.corpora import RECORDINGS

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
