"""`ndb-conflict ingest`, on the bundled demo and its beginnings."""

import json
import shutil
from pathlib import Path

import pytest

from conflict.cli.refusals import ExitCode
from tests.conflict.cli.commands import invoke
from tests.conflict.growing import commits
from tests.corpora import DEMO


def grown(folder: Path, size: int | None) -> Path:
    """Return a run of the demo whose binlog of B has so many bytes."""
    shutil.copytree(DEMO, folder, dirs_exist_ok=True)
    file = folder / "B.binlog.000001"
    file.write_bytes(file.read_bytes()[:size])
    return folder / "run.toml"


@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_ingest_continues_and_resolve_uses_what_was_ingested(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The command says what it read; the History is resolved without the binlogs, with the same result."""
    if engine == "spark":
        assert request.getfixturevalue("spark").version
    history, demo = tmp_path / "history", tmp_path / "demo"
    first = commits(DEMO / "B.binlog.000001")[5]
    code, output = invoke("ingest", grown(demo, first), "--out", history, "--engine", engine)
    assert (code, "Read 2 segments; 0 were in the History already." in output) == (0, True), output
    assert ("The local engine read this: it takes about" in output) == (engine == "auto")
    code, output = invoke("ingest", grown(demo, None), "--out", history, "--engine", engine)
    assert (code, "Read 1 segment; 2 were in the History already." in output) == (0, True), output
    assert "B: 46 row changes of its own" in output
    code, output = invoke("ingest", demo / "run.toml", "--out", history, "--engine", "local")
    assert (code, "Nothing new; 3 segments were in the History already." in output) == (0, True), output
    for name in "AB":
        (demo / f"{name}.binlog.000001").write_bytes(b"")
    out = tmp_path / "out"
    code, output = invoke("resolve", demo / "run.toml", "--out", out, "--history", history)
    assert code == 0, output
    assert not (out / "history").exists()
    counters = json.loads((out / "counters.json").read_text())
    # Recorded by the real clusters (hot_3021_type9).
    assert (counters["A"]["Ndb_conflict_fn_epoch"], counters["B"]["Ndb_conflict_refresh_op_count"]) == (25, 18)
    run = json.loads((out / "run.json").read_text())
    assert (run["changes"], run["compared_with_binlogs"], run["contradicted_by_binlogs"]) == (90, 81, 0)


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    """And its files stay."""
    (tmp_path / "kept").write_text("mine")
    code, output = invoke("ingest", DEMO / "run.toml", "--out", tmp_path)
    assert code == ExitCode.REFUSED
    assert "is no History" in output
    assert (tmp_path / "kept").read_text() == "mine"
