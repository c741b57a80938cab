"""A binlog that another program changes while it is read: a sentence, nothing half, and the next run succeeds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import conflict
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import read_manifest, refuse_damage
from tests.corpora import DEMO
from tests.faults.commands import left_in, run

# The change happens when the file has been mapped, and nothing of it read but its first event.
CHANGING = """
import os, sys
from pathlib import Path
import conflict.runs.pipeline
from conflict.cli import app
from conflict.history.tasks import in_threads
from ndb_formats.columnar import event_index
conflict.runs.pipeline.spark_workers = lambda *given: in_threads
log, original = Path(sys.argv.pop(1)), event_index.first_event
change = sys.argv.pop(1)
def changed(*arguments, **options):
    event = original(*arguments, **options)
    exec(change, {"os": os, "log": log})
    return event
event_index.first_event = changed
app.main()
"""
REFUSED, CUT_SHORT = 2, 3
WHOLE = (DEMO / "A.binlog.000001").read_bytes()
LINES = 66  # that say INSERT INTO in the text of the whole recording
CHANGES = {
    "cut": ("os.truncate(log, 4096)", REFUSED, "was cut short while it was read"),
    "appended": ("log.open('ab').write(log.read_bytes()[200:300])", 0, ""),
    "rotated away": ("log.unlink()", 0, ""),
    "replaced": ("log.unlink(); log.write_bytes(b'')", 0, ""),
}


def changing(log: Path, change: str, *words: object) -> tuple[int, str]:
    """Run a command while a binlog changes; return how it ended and what it said."""
    arguments = [sys.executable, "-c", CHANGING, str(log), change, *map(str, words)]
    ended = subprocess.run(arguments, capture_output=True, text=True, check=False)
    said = ended.stdout + ended.stderr
    assert "Traceback" not in said
    return ended.returncode, said


@pytest.mark.parametrize("name", CHANGES)
def test_a_binlog_that_changes(name: str, tmp_path: Path) -> None:
    """What was there when reading began is read, or a sentence says why not."""
    change, code, sentence = CHANGES[name]
    log, out = tmp_path / "in" / "binlog.000001", tmp_path / "out" / "text"
    log.parent.mkdir()
    out.parent.mkdir()
    log.write_bytes(WHOLE)
    ended, said = changing(log, change, "decode", "-vv", log, "-r", out)
    assert ended == code, said
    assert sentence in said
    if code == 0:
        assert out.read_bytes().count(b"### INSERT INTO") == LINES
        return
    assert not out.exists()
    log.write_bytes(WHOLE)
    assert run("decode", "-vv", log, "-r", out).code == 0
    assert out.read_bytes().count(b"### INSERT INTO") == LINES


@pytest.mark.slow
@pytest.mark.parametrize("command", [("ingest",), ("resolve", "--engine", "local")], ids=" ".join)
@pytest.mark.parametrize("name", CHANGES)
def test_a_binlog_that_changes_meanwhile(name: str, command: tuple[str, ...], tmp_path: Path) -> None:
    """Either all or what was left of the log was read, or a sentence says why not; the command succeeds afterwards."""
    folder, out = Path(shutil.copytree(DEMO, tmp_path / "in")), tmp_path / "out"
    words = (command[0], folder / "run.toml", *command[1:], "--out", out)
    code, said = changing(folder / "A.binlog.000001", CHANGES[name][0], *words)
    assert code in (0, REFUSED, CUT_SHORT), said
    assert (out / "run.json").exists() == (command[0] == "resolve" and code != REFUSED)
    if code:
        (folder / "A.binlog.000001").write_bytes(WHOLE)
        assert run(*words, *(["--force"] if (out / "run.json").exists() else [])).code == 0
    if command[0] == "resolve":
        assert conflict.read_result(str(out)).counters["A"]["Ndb_conflict_fn_epoch"] == 25  # recorded
    else:
        history = Folder(str(out))
        refuse_damage(history, read_manifest(history))
        assert read_manifest(history).changes == 90  # recorded
    assert left_in(tmp_path) == {"in", "out"}
