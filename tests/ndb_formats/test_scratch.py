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


FOR_ALL = """
import sys
from pathlib import Path
from ndb_formats.scratch import for_all
print(for_all("run", "file", lambda place: Path(place).write_text(sys.argv[1])), flush=True)
sys.stdin.read()
"""


def started(above: Path, code: str = CODE, *arguments: str) -> tuple[subprocess.Popen[str], Path]:
    """Start a process that keeps a file below another folder; return it and what it prints: a place."""
    environment = {**os.environ, "SPARK_LOCAL_DIRS": f"/nowhere,{above}"}
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
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


def test_processes_read_one_file(tmp_path: Path):
    """The first one fetches it; it goes with the last one, or is removed by the next one if that is killed."""
    first, place = started(tmp_path, FOR_ALL, "fetched by the first")
    second, same = started(tmp_path, FOR_ALL, "fetched by the second")
    assert same == place
    assert place.read_text() == "fetched by the first"
    first.communicate()
    assert place.read_text() == "fetched by the first"
    second.send_signal(signal.SIGKILL)
    second.wait()
    third, again = started(tmp_path, FOR_ALL, "fetched by the third")
    assert (again, again.read_text()) == (place, "fetched by the third")
    third.communicate()
    assert not list(tmp_path.iterdir())
