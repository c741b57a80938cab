"""One writer at a time."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.errors import ConfigurationError
from conflict.history.grid import whole_files
from conflict.history.grid.folder import Folder
from conflict.history.grid.whole_files import only_writer
from tests.examples import examples

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


def test_a_lease_counts_until_it_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On storage without locks: a second writer is refused, and one that stopped renewing is passed over, and told."""
    folder = Folder(f"file://{tmp_path}/result")
    first = only_writer(folder)
    first.__enter__()
    with pytest.raises(ConfigurationError, match=f"is being written by process {os.getpid()} on "):
        only_writer(folder).__enter__()
    later = time.time() + whole_files.LEASE + 1
    monkeypatch.setattr(whole_files.time, "time", lambda: later)
    with only_writer(folder):
        pass
    with pytest.raises(ConfigurationError, match="may have got another writer"):
        first.__exit__(None, None, None)
    assert list(tmp_path.rglob("*.json")) == []


@examples(10)
@given(st.lists(st.floats(0, 0.02), min_size=2, max_size=5))
def test_one_of_many_has_the_lease(pauses: list[float]) -> None:
    """Writers that begin together, each a little later: one has it, and the others are told by whom."""
    with tempfile.TemporaryDirectory() as above:
        folder, told, had = Folder(f"file://{above}/history"), list[str](), list[int]()
        done = threading.Semaphore(0)

        def write(number: int) -> None:
            time.sleep(pauses[number])
            try:
                with only_writer(folder):
                    had.append(number)
                    for _ in range(len(pauses) - 1):  # hold it until the others have given up
                        assert done.acquire(timeout=60)
            except ConfigurationError as error:
                told.append(str(error))
                done.release()

        with ThreadPoolExecutor(len(pauses)) as threads:
            list(threads.map(write, range(len(pauses))))
        assert (len(had), len(told)) == (1, len(pauses) - 1)
        assert all(f"is being written by process {os.getpid()} on " in each for each in told)
