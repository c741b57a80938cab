"""A disk that is full at some moment: a sentence, nothing half, and the same command succeeds when there is space."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import conflict
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import read_manifest, refuse_damage
from tests.corpora import DEMO
from tests.faults.commands import Ended, left_in, run
from tests.faults.forked import Forks

LOG = DEMO / "A.binlog.000001"
REFUSED = 2
COMMANDS: dict[str, Sequence[object]] = {
    "text": ("decode", "-vv", LOG, "-r"),
    "parquet": ("decode", "--format", "parquet", LOG, "-r"),
    "csv": ("decode", "--format", "csv", LOG, "-r"),
    "json": ("decode", "--format", "json", LOG, "-r"),
    "epochs": ("channel", LOG, "--to", 1, "--after-epoch", 5317169512466, "--sql"),
    "ingest": ("ingest", DEMO / "run.toml", "--out"),
    "local": ("resolve", DEMO / "run.toml", "--engine", "local", "--out"),
    "reference": ("resolve", DEMO / "run.toml", "--engine", "reference", "--out"),
}
OTHERS = [name for name in COMMANDS if name != "ingest"]
QUICK = [("text", 700), ("epochs", 700), ("ingest", 16)]


Run = Callable[..., Ended]


def check(name: str, file_bytes: int, folder: Path, run: Run = run) -> bool:
    """Run a command that cannot write longer files, then again as usual; return whether the limit stopped it."""
    out = folder / "out"
    ended = run(*COMMANDS[name], out, file_bytes=file_bytes)
    assert ended.code in (0, REFUSED), ended.said
    assert "Traceback" not in ended.said
    if ended.code == REFUSED:
        assert "cannot be written: File too large. Make space" in ended.said
        assert left_in(folder) <= ({"out"} if name == "ingest" else set())
        again = run(*COMMANDS[name], out)
        assert again.code == 0, again.said
    if name in ("local", "reference"):
        assert conflict.read_result(str(out)).counters["A"]["Ndb_conflict_fn_epoch"] == 25  # recorded
    elif name == "ingest":
        refuse_damage(Folder(str(out)), read_manifest(Folder(str(out))))
    assert left_in(folder) == {"out"}
    return ended.code == REFUSED


@pytest.mark.parametrize(("name", "file_bytes"), QUICK)
def test_no_space(name: str, file_bytes: int, tmp_path: Path) -> None:
    """At one moment for each command."""
    assert check(name, file_bytes, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_no_space_at_any_moment(name: str, forked: Forks, times: int, tmp_path: Path) -> None:
    """At random moments."""

    def run_fork(*words: object, file_bytes: int | None = None) -> Ended:
        (ended,) = forked.run(words, file_bytes=file_bytes)
        return ended

    seed = random.randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201  # shown if it fails
    chance = random.Random(seed)
    stopped = 0
    for number in range(times):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        stopped += check(name, int(2 ** chance.uniform(4, 14)), folder, run_fork)
    assert stopped
    print(f"{name}: {stopped} of {times} stopped")  # noqa: T201  # shown with -s


@pytest.mark.parametrize("name", ["ingest", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_a_folder_that_nobody_may_write_to(name: str, tmp_path: Path) -> None:
    """It is refused before any work."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    if os.access(closed, os.W_OK):  # for the superuser: a place below a file instead
        closed.rmdir()
        closed.write_text("")
    ended = run(*COMMANDS[name], closed / "out")
    assert ended.code == REFUSED
    assert "Traceback" not in ended.said
    assert str(closed) in ended.said
    if closed.is_dir():
        assert left_in(closed) == set()
        shutil.rmtree(closed)
