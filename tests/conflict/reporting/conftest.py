"""A result of each kind, small, made by the commands."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO

MODEL = """
seconds = 2
function = "NDB$EPOCH()"
recordcount = 50
[workload]
transactions_per_second = 200
[clusters.A.link]
latency_ms = 50
[clusters.B]
"""


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a result of each kind by the name of the command that made it."""
    folder = tmp_path_factory.mktemp("results")
    found = {name: folder / name for name in ("resolve", "repair", "compare", "sweep")}
    found |= {name: folder / f"{name}.json" for name in ("simulate", "sizes", "diverge")}
    (folder / "model.toml").write_text(MODEL)
    grid = 'model = "model.toml"\nseeds = 2\n[grid]\nfunction = ["NDB$EPOCH()", "NDB$MAX(x)"]\nlatency_ms = [0, 400]\n'
    (folder / "sweep.toml").write_text(grid)
    found["diverge"].write_text(json.dumps({"searches": [SEARCH]}))
    functions = "NDB$EPOCH(),NDB$MAX(x),OVERWRITE"
    for arguments in (
        ("resolve", DEMO / "run.toml", "--engine", "reference", "--out", found["resolve"]),
        ("repair", found["resolve"], "--rule", "*=A", "--reapply", "--out", found["repair"]),
        ("compare", DEMO / "run.toml", "--functions", functions, "--out", found["compare"]),
        ("simulate", folder / "model.toml", "--seeds", 2, "--json", found["simulate"]),
        ("sizes", DEMO / "A.binlog.000001", "--schema", DEMO / "schema.sql", "--json", found["sizes"]),
        ("sweep", folder / "sweep.toml", "--out", found["sweep"], "--workers", 1),
    ):
        code, output = invoke(*arguments)
        assert code == 0, output
    return found


SEARCH: dict[str, Any] = {
    "goal": "difference",
    "function": "NDB$EPOCH()",
    "binlog_type": 7,
    "bounds": {"transactions": 2, "rows": 1, "epochs": None},
    "found": True,
    "complete": False,
    "states": 17,
    "depth": 5,
    "seconds": 0.1,
    "steps": 1,
    "timeline": [
        {"step": 0, "cluster": None, "text": "row 1 is there"},
        {"step": 1, "cluster": "A", "text": "deletes row 1"},
    ],
    "ending": {"A": "no rows", "B": "row 1"},
}
