"""Kernels of small work that has become long are compiled beside the process, and taken as soon as they are there."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ndb_formats.columnar import kernel as kernel_module
from ndb_formats.columnar.kernel import Kernel, kernel
from ndb_formats.columnar.kernel_mode import Mode, Process, expect_work, set_mode
from tests.layers import ROOT
from tests.ndb_formats.columnar.test_kernel_cache import install

MEBIBYTE = 1 << 20


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Return what is asked to be compiled beside this process, which is not done; nothing was compiled before."""
    before = (Process.mode if Process.fixed else None), Process.overflow
    set_mode(None)
    found: list[str] = []

    def note(kernel: Kernel, _: Any) -> bool:
        found.append(kernel.__name__)
        return True

    monkeypatch.setattr(kernel_module, "compile_beside", note)
    monkeypatch.setattr(Kernel, "is_kept", lambda _: False)
    monkeypatch.setattr(Kernel, "form", lambda _, mode: mode.name.lower)
    yield found
    set_mode(before[0], overflow=before[1])


def named() -> Any:
    """Return a kernel."""

    @kernel
    def named() -> None:
        pass

    return named


@pytest.mark.parametrize(
    ("process", "own", "expected"),
    [(0.0, 0.0, False), (2.5, 2.5, False), (3.5, 0.2, False), (3.5, 0.5, True), (60.0, 0.2, False), (60.0, 5.0, True)],
)
def test_the_seconds_of_the_process_decide(asked: list[str], process: float, own: float, expected: bool) -> None:
    """After three of interpreted kernels, those that took a part of it are compiled; what took none is not worth it."""
    expect_work(1 * MEBIBYTE)
    made = named()
    Process.seconds, made.seconds = process, own
    assert made() == "interpreted"
    assert asked == (["named"] if expected else [])


@pytest.mark.parametrize(("size", "form"), [(4 * MEBIBYTE, "interpreted"), (4 * MEBIBYTE + 1, "compiled")])
def test_work_that_is_said_to_be_large_is_compiled_first(asked: list[str], size: int, form: str) -> None:
    """A single call could take minutes interpreted."""
    expect_work(size)
    assert named()() == form
    assert asked == []


def test_nothing_is_compiled_where_kernels_are_to_be_interpreted(asked: list[str]) -> None:
    """As in tests."""
    set_mode(Mode.INTERPRETED)
    made = named()
    Process.seconds, made.seconds = 60.0, 60.0
    assert made() == "interpreted"
    assert asked == []


BEGIN = """
import os, time
from counting import count
from ndb_formats.columnar import compiling
from ndb_formats.columnar.kernel_mode import Process, expect_work
expect_work(1 << 20)
def how(kernel):
    made = kernel._compiled_entry
    return "interpreted" if made is None else "loaded" if made.stats.cache_hits else "compiled"
"""
GO_ON = """
Process.seconds, count.seconds = 4.0, 4.0
results = {count(2)}
print(how(count))
while count._compiled_entry is None:
    Process.seconds = 4.0
    time.sleep(0.1)
    results.add(count(2))
print(how(count), results)
"""
WAIT = """
from conflict.cli.common import compilation_is_said
Process.seconds, count.seconds = 11.0, 4.0
with compilation_is_said():
    print(count(2), how(count))
"""
# Another process cannot find it by its name.
HIDDEN = f"""
from ndb_formats.columnar.kernel import kernel
count = kernel(count.function)
{WAIT}"""
TWO = """
other = os.fork()
Process.seconds, count.seconds = 11.0, 4.0
found = count(2), how(count)
if other == 0:
    os._exit(found != (1, "loaded"))
print(*found, os.waitpid(other, 0)[1])
"""
LEAVE = """
Process.seconds, count.seconds = 4.0, 4.0
count(2)
print(compiling._Beside.process.pid)
"""


def run(folder: Path, code: str) -> list[str]:
    """Run code in a new process, with a kernel that is not compiled; return the words that it prints."""
    install(folder, "brought > stored")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{folder}", "NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-c", BEGIN + code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [*done.stdout.split(), *done.stderr.split()[:3]]


def test_the_process_goes_on_until_it_is_compiled(tmp_path: Path) -> None:
    """The results are the same, and this process compiles nothing."""
    assert run(tmp_path, GO_ON) == ["interpreted", "loaded", "{1}"]


def test_when_it_took_long_the_process_waits(tmp_path: Path) -> None:
    """To go on without would be the longer way; a command says for what it waits."""
    assert run(tmp_path, WAIT) == ["1", "loaded", "Compiling", "the", "kernels,"]


def test_what_cannot_be_compiled_beside_the_process_is_compiled_in_it(tmp_path: Path) -> None:
    """As a kernel of the main module."""
    assert run(tmp_path, HIDDEN)[:2] == ["1", "compiled"]


def test_a_process_that_was_forked(tmp_path: Path) -> None:
    """Both ask, and both find it."""
    assert run(tmp_path, TWO) == ["1", "loaded", "0"]


@pytest.mark.parametrize("end", ["", "os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_it_ends_with_the_process(end: str, tmp_path: Path) -> None:
    """However that ends: nothing is left at work."""
    try:
        (number,) = run(tmp_path, f"{LEAVE}\nimport sys; sys.stdout.flush()\n{end}")
    except subprocess.CalledProcessError as error:
        number = error.stdout
    for _ in range(100):
        if not is_at_work(int(number)):
            break
        time.sleep(0.2)
    assert not is_at_work(int(number))
    assert list((tmp_path / "cache").rglob("*.nbc")) == []


def is_at_work(number: int) -> bool:
    """Whether a process is there that has not ended; nobody may ask for the end of one whose parent is gone."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
