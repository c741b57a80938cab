"""Commands that are stopped at any moment: nothing half is left, and the same command succeeds afterwards."""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

import pytest

import conflict
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import read_manifest, refuse_damage
from conflict.history.grid.schemas import batch_of
from tests.conflict.growing import Recording, commits, rows_of
from tests.corpora import DEMO
from tests.faults.commands import left_in
from tests.faults.forked import Forks

LOG, RUN = DEMO / "A.binlog.000001", DEMO / "run.toml"
INTERRUPTED = 130
HOW = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def whole_text(out: Path) -> object:
    """Return what `decode` wrote."""
    return out.read_bytes()


def whole_tables(out: Path) -> object:
    """Return the tables that `decode` wrote."""
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def whole_history(out: Path) -> object:
    """Return the rows of a History that is not damaged."""
    history = Folder(str(out))
    refuse_damage(history, read_manifest(history))
    found = rows_of(history)
    assert sum(len(rows) for kind, rows in found.items() if kind[0] == "changes") == 90  # recorded
    return found


def whole_result(out: Path) -> object:
    """Return the figures of a result that is not damaged."""
    result = conflict.read_result(str(out))
    assert result.counters["A"]["Ndb_conflict_fn_epoch"] == 25  # recorded
    assert result.rows("B", "cft.t1").num_rows == 2  # recorded
    return result.counters, result.conflicts.num_rows


COMMANDS: dict[str, tuple[Sequence[object], Callable[[Path], object]]] = {
    "text": (("decode", "-vv", LOG, "-r"), whole_text),
    "csv": (("decode", "--format", "csv", LOG, "-r"), whole_tables),
    "ingest": (("ingest", RUN, "--out"), whole_history),
    "local": (("resolve", RUN, "--engine", "local", "--out"), whole_result),
    "reference": (("resolve", RUN, "--engine", "reference", "--out"), whole_result),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_any_moment(name: str, forked: Forks, times: int, tmp_path: Path) -> None:
    """Killed, terminated or interrupted: what is there is whole, and what is not there comes with the next run."""
    words, whole = COMMANDS[name]
    expected, seconds = _undisturbed(forked, words, whole, tmp_path / "undisturbed")
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201  # shown if it fails
    chance, stopped, number = random.Random(seed), 0, -1
    while stopped < times:  # some have ended before
        number += 1
        folder = tmp_path / f"{number}"
        folder.mkdir()
        out, how = folder / "out", HOW[number % len(HOW)]
        ended = forked.stopped([*words, out], how, chance.uniform(0, seconds))
        assert ended.code in (0, INTERRUPTED, -how), ended.said
        assert "Traceback" not in ended.said
        stopped += ended.code != 0
        if how != signal.SIGKILL and name != "ingest":
            assert left_in(folder) <= {"out", ".out.lock"}  # a lock that nobody holds is none
        if name != "ingest" and out.exists():
            assert whole(out) == expected
            shutil.rmtree(out) if out.is_dir() else out.unlink()
        (again,) = forked.run([*words, out])
        assert again.code == 0, again.said
        assert whole(out) == expected
        assert left_in(folder) == {"out"}
        shutil.rmtree(folder)
    print(f"{name}: {stopped} stopped of {number + 1}")  # noqa: T201  # shown with -s


@pytest.mark.slow
def test_killed_while_batches_are_merged(forked: Forks, times: int, tmp_path: Path) -> None:
    """The rows are those from before or those from after; the same command finishes, and the History is sound."""
    demo = Recording.copy(DEMO, tmp_path / "demo")
    words = ("ingest", demo.folder / "run.toml", "--out")
    begun, whole, rows = tmp_path / "begun", tmp_path / "whole", list[object]()
    ends = {name: commits(DEMO / file.name) for name, file in demo.files.items()}
    for share in (6, 3, 1):
        demo.cut({name: own[len(own) // share - 1] for name, own in ends.items()})
        if share == 1:
            shutil.copytree(begun, whole)
        out, start = whole if share == 1 else begun, perf_counter()
        (ended,) = forked.run([*words, out])
        seconds = perf_counter() - start
        assert ended.code == 0, ended.said
        rows.append(_rows_alone(out))
    manifests = [read_manifest(Folder(str(each))) for each in (begun, whole)]
    assert [(each.batches, each.merged) for each in manifests] == [((1,), (0,)), ((2,), (1,))]
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201  # shown if it fails
    chance, stopped, number = random.Random(seed), 0, -1
    while stopped < times:
        number += 1
        out = tmp_path / f"{number}" / "out"
        shutil.copytree(begun, out)
        ended = forked.stopped([*words, out], (how := HOW[number % len(HOW)]), chance.uniform(0, seconds))
        assert ended.code in (0, INTERRUPTED, -how), ended.said
        stopped += ended.code != 0
        assert _rows_alone(out) in rows[1:]
        (again,) = forked.run([*words, out])
        assert again.code == 0, again.said
        assert whole_history(out) == whole_history(whole)
        assert {batch_of(path) for path in Folder(str(out)).sizes()} == {None, 1, 2}
        shutil.rmtree(out.parent)


def _rows_alone(out: Path) -> object:
    """Return the rows of a History, however far an ingest into it is; the schedule may be of later rows already."""
    return {name: rows for name, rows in rows_of(Folder(str(out))).items() if name != "applies"}


def _undisturbed(
    forked: Forks, words: Sequence[object], whole: Callable[[Path], object], folder: Path
) -> tuple[object, float]:
    """Return what a command writes, and the fewest seconds that it took, kernels being compiled."""
    took = []
    for number in range(4):
        out, start = folder / f"{number}" / "out", perf_counter()
        out.parent.mkdir(parents=True)
        (ended,) = forked.run([*words, out])
        assert ended.code == 0, ended.said
        took.append(perf_counter() - start)
    return whole(out), min(took)
