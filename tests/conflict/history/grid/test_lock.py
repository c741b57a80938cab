"""One writer at a time."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conflict.errors import ConfigurationError
from conflict.history.grid.folder import Folder
from conflict.history.grid.whole_files import only_writer

HOLD = """
import sys, time
from conflict.history.grid.folder import Folder
from conflict.history.grid.whole_files import only_writer
with only_writer(Folder(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def held_elsewhere(folder: Path) -> subprocess.Popen[str]:
    """Start a process that holds the lock of a folder."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_second_process_is_refused_by_name(tmp_path: Path) -> None:
    """Until the first one is gone, even if it was killed."""
    folder = tmp_path / "result"
    holder = held_elsewhere(folder)
    try:
        with pytest.raises(ConfigurationError, match=f"is being written by process {holder.pid} on "):
            only_writer(Folder(str(folder))).__enter__()
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    with only_writer(Folder(str(folder))):
        assert [path.name for path in tmp_path.iterdir()] == [".result.lock"]
    assert list(tmp_path.iterdir()) == []


def test_a_lock_is_no_link_to_another_file(tmp_path: Path) -> None:
    """A link that stands there is not followed."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".result.lock").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        only_writer(Folder(str(tmp_path / "result"))).__enter__()
    assert victim.read_text() == "mine"
