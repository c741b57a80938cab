"""Several processes at one folder, and processes that are stopped at any moment: a right result, or none."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import conflict
from conflict.grid.folder import Folder
from conflict.grid.manifest import read_manifest, refuse_damage
from tests.conflict.growing import rows_of
from tests.corpora import DEMO

PAIRS, STOPS = 20, 5
INTERRUPTED = 130
# Imports come first, so that all processes begin their work at the same time.
WAIT = """
import sys, time
from pathlib import Path
import conflict.pipeline, conflict.reference.replay, conflict.columnar.bucket
from conflict.cli import app
from conflict.jobs.runner import in_threads
conflict.pipeline.spark_workers = lambda *given: in_threads
import conflict.cli.ingest, conflict.cli.resolve
print("ready", flush=True)
while not Path(sys.argv[1]).exists():
    time.sleep(0.001)
sys.argv[1:] = sys.argv[2:]
app.main()
"""


def started(go: Path, *words: object) -> subprocess.Popen[str]:
    """Start a command that waits for a file."""
    arguments = [sys.executable, "-c", WAIT, str(go), *map(str, words)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def raced(folder: Path, *words: object) -> list[tuple[int, str]]:
    """Run a command twice at once; return exit codes and outputs."""
    go = folder / "go"
    go.unlink(missing_ok=True)
    processes = [started(go, *words) for _ in range(2)]
    go.touch()
    outputs = [" ".join("".join(process.communicate()).split()) for process in processes]
    return [(process.returncode, output) for process, output in zip(processes, outputs, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["reference", "local"])
def test_two_resolves_into_one_folder(engine: str, tmp_path: Path) -> None:
    """One writes the result; the other one is refused, and says why."""
    for number in range(PAIRS):
        out = tmp_path / f"out{number}"
        words = ("resolve", DEMO / "run.toml", "--engine", engine, "--out", out)
        (winner, _), (other, said) = sorted(raced(tmp_path, *words))
        assert (winner, other) == (0, 2)
        assert "is being written by process" in said or "exists already" in said
        result = conflict.read_result(str(out))
        assert result.counters["A"]["Ndb_conflict_fn_epoch"] == 25  # recorded
        assert result.rows("B", "cft.t1").num_rows == 2  # recorded
    assert {path.name for path in tmp_path.iterdir()} == {"go", *(f"out{number}" for number in range(PAIRS))}


@pytest.mark.slow
def test_two_ingests_into_one_folder(tmp_path: Path) -> None:
    """One makes the History; the other one is refused, or comes later and finds nothing new."""
    expected = None
    for number in range(PAIRS):
        out = tmp_path / f"history{number}"
        for code, said in raced(tmp_path, "ingest", DEMO / "run.toml", "--out", out):
            assert (code, "is being written by process" in said) in ((0, False), (2, True))
        history = Folder(str(out))
        refuse_damage(history, read_manifest(history))
        found = rows_of(history)
        expected = expected or found
        assert found == expected
        assert sum(len(rows) for kind, rows in found.items() if kind[0] == "changes") == 90  # recorded
    assert {path.name for path in tmp_path.iterdir()} == {"go", *(f"history{number}" for number in range(PAIRS))}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["resolve", "ingest"])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_stopped_and_run_again(command: str, how: signal.Signals, tmp_path: Path) -> None:
    """Nothing half is left where the result goes, and the same command succeeds afterwards."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201  # shown if it fails
    chance = random.Random(seed)
    go, out = tmp_path / "go", tmp_path / "out"
    options = ["--engine", "local"] if command == "resolve" else []
    words = (command, DEMO / "run.toml", "--out", out, *options)
    for _ in range(STOPS):
        process = started(go, *words)
        go.touch()
        time.sleep(chance.uniform(0.05, 0.6))
        os.kill(process.pid, how)
        process.communicate()
        assert process.returncode in (0, INTERRUPTED, -how)
        if command == "resolve" and out.exists():
            conflict.read_result(str(out))
            shutil.rmtree(out)
        go.unlink()
        go.touch()
        again = started(go, *words)
        again.communicate()
        assert again.returncode == 0
        assert {path.name for path in tmp_path.iterdir()} == {"go", "out"}
        if command == "ingest":
            refuse_damage(Folder(str(out)), read_manifest(Folder(str(out))))
        shutil.rmtree(out)
        go.unlink()
