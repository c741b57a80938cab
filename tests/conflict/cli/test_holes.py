"""Logs with a hole: epochs or a file that are in no log are a new start in the middle; never believed over."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conflict.cli.app import app
from conflict.cli.refusals import ExitCode
from conflict.history.ingestion.logged_epochs import scan_epochs
from tests.conflict.spliced_logs import part_of
from tests.corpora import DEMO

LOG = DEMO / "A.binlog.000001"
NUMBERS = scan_epochs(1, [LOG]).number.tolist()
BEFORE, HOLE, AFTER = range(5), range(5, 7), range(7, len(NUMBERS))


def demo(folder: Path, *, files: bool) -> Path:
    """Return a run file of the demo without some epochs of A: from one file, or with a file that is missing."""
    shutil.copytree(DEMO, folder)
    (folder / LOG.name).unlink()
    if files:
        part_of(LOG, BEFORE, 1, folder / "A.binlog.000001")
        part_of(LOG, AFTER, 1, folder / "A.binlog.000003")
    else:
        part_of(LOG, [*BEFORE, *AFTER], 1, folder / LOG.name)
    text = (folder / "run.toml").read_text("utf-8")
    (folder / "run.toml").write_text(text.replace("A.binlog.000001", "A.binlog.0*"))
    return folder / "run.toml"


def resolve(run: Path, out: Path, engine: str, *options: str) -> tuple[int, str]:
    """Return the exit code, and all that is printed, on one line."""
    found = CliRunner().invoke(app, ["resolve", str(run), "--out", str(out), "--engine", engine, *options])
    return found.exit_code, " ".join(found.output.split())


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("files", [False, True], ids=["epochs", "file"])
def test_a_hole_is_a_start_in_the_middle(engine: str, tmp_path: Path, *, files: bool) -> None:
    """What comes after it is resolved, and what is missing is said; tests/faults/test_planted.py has the decisions."""
    code, said = resolve(demo(tmp_path / "run", files=files), tmp_path / "out", engine)
    assert code == ExitCode.CUT_SHORT
    assert f"the logs are resolved from epoch {NUMBERS[AFTER[0]]} of A on" in said
    assert ("A.binlog.000002 is missing between them" in said) is files
    document = json.loads((tmp_path / "out" / "run.json").read_text("utf-8"))
    assert document["starts_in_the_middle"]["A"] == NUMBERS[AFTER[0]]
    assert (document["converged"], document["contradicted_by_binlogs"]) == (None, 0)


@pytest.mark.parametrize("files", [False, True], ids=["epochs", "file"])
def test_what_is_before_a_hole_is_resolved_with_a_stop(tmp_path: Path, *, files: bool) -> None:
    """The logs have no hole there."""
    run = demo(tmp_path / "run", files=files)
    code, said = resolve(run, tmp_path / "out", "local", "--stop-epoch", f"A={NUMBERS[BEFORE[-1]]}")
    assert code == ExitCode.DONE
    assert "missing" not in said


@pytest.mark.parametrize("files", [False, True], ids=["epochs", "file"])
def test_a_history_has_no_hole(tmp_path: Path, *, files: bool) -> None:
    """It holds whole logs, so a hole is refused."""
    run = demo(tmp_path / "run", files=files)
    code, said = resolve(run, tmp_path / "out", "local", "--keep-history", str(tmp_path / "history"))
    assert code == ExitCode.REFUSED
    assert "missing between them" in said or "give all binlog files between the first and the last" in said
