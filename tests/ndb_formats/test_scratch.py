"""Scratch folders go with their process, however that ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ndb_formats import scratch

CODE = """
import sys
from pathlib import Path
from ndb_formats.scratch import scratch_folder
folder = Path(scratch_folder())
(folder / "file").write_text("x")
print(folder, flush=True)
sys.stdin.read()
"""


def started(above: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start a process that keeps a file in a folder below another one; return it and its folder."""
    environment = {**os.environ, "SPARK_LOCAL_DIRS": f"/nowhere,{above}"}
    process = subprocess.Popen(
        [sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_is_removed_by_the_next_one(tmp_path: Path):
    """And what a living one has stays; both are where Spark has its files."""
    (tmp_path / "other").mkdir()
    killed, first = started(tmp_path)
    living, second = started(tmp_path)
    assert first.is_relative_to(tmp_path)
    assert (first / "file").exists()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert (first / "file").exists()
    third, last = started(tmp_path)
    assert not first.parent.exists()
    assert (second / "file").exists()
    assert second.parent != last.parent
    for process in (living, third):
        process.communicate()
    assert [each.name for each in tmp_path.iterdir()] == ["other"]


def test_a_process_that_is_forked_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its end does not remove that of its parent."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    first, other = scratch._folder_of(os.getpid()), scratch._folder_of(0)
    assert first != other
    scratch._remove(first, 0)
    assert Path(first).exists()
