"""Attempts of a task: two at a time, late ones, and those whose driver was killed."""

import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from conflict.errors import ConfigurationError
from conflict.history.grid.attempts import ATTEMPTS, Seen, Stage, publish
from conflict.history.grid.folder import Folder
from conflict.history.tasks import Progress
from tests.conflict.growing import DEMO, Recording, ingested, rows_of


def two_attempts(tasks: int) -> None:
    """Run the script until so many tasks were right."""
    seed = secrets.randbits(32)
    command = [sys.executable, "-m", "tests.conflict.runs.two_attempts", str(seed), str(tasks)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    right, _, of = done.stdout.splitlines()[-1].partition(": ")[2].partition(" of ")
    assert int(right) >= tasks, done.stdout
    assert of == f"{right} tasks right"


def test_two_attempts_of_some_tasks() -> None:
    """Every task of one ingest and one resolve."""
    two_attempts(1)


@pytest.mark.slow
def test_two_attempts_of_many_tasks() -> None:
    """Of 200 tasks, all are right."""
    two_attempts(200)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Return a folder."""
    (tmp_path / "folder").mkdir()
    return Folder(str(tmp_path / "folder"))


def stage_of(folder: Folder) -> Stage:
    """Return a stage that has begun."""
    stage = Stage([folder])
    stage.open()
    return stage


def test_an_attempt_sees_what_it_wrote_and_nobody_else_does(folder: Folder) -> None:
    """Until the driver publishes it; what was written twice is there as it was last."""
    folder.write_json("a.json", "old")
    stage = stage_of(folder)
    with stage.attempt() as attempt:
        folder.write_json("a.json", "new")
        folder.below("deep").write_json("b.json", 1)
        folder.below("deep").write_json("b.json", 2)
        assert (folder.read_json("a.json"), folder.read_json("deep/b.json")) == ("new", 2)
        assert folder.sizes(["deep/b.json", "c.json"]) == {"deep/b.json": 2}
    assert folder.read_json("a.json") == "old"
    assert folder.sizes().keys() == {"a.json"}
    publish(attempt.written)
    stage.close()
    assert (folder.read_json("a.json"), folder.read_json("deep/b.json")) == ("new", 2)
    assert {each.name for each in Path(folder.uri).iterdir()} == {"a.json", "deep"}


def test_an_attempt_that_comes_late_writes_nothing(folder: Folder) -> None:
    """Its stage is over: the place where it wrote is gone, and is not made again."""
    stage = stage_of(folder)
    attempt = stage.attempt()
    attempt.__enter__()
    folder.write_json("a.json", 1)
    stage.close()
    with pytest.raises(FileNotFoundError) as late:
        folder.write_json("b.json", 1)
    assert not attempt.__exit__(late.type, late.value, late.tb)
    with pytest.raises(ConfigurationError, match="not the same folder"), stage.attempt():
        pass
    assert not list(Path(folder.uri).iterdir())


def test_what_fails_is_not_written(folder: Folder) -> None:
    """An attempt may go on after an error of its own."""
    stage = stage_of(folder)
    with stage.attempt() as attempt:
        with pytest.raises(AttributeError):
            folder.write_table("a.parquet", "no table")  # type: ignore[arg-type]
        folder.write_json("b.json", 1)
    publish(attempt.written)
    assert folder.sizes().keys() == {"b.json"}


def test_a_folder_that_others_see_otherwise_is_refused(folder: Folder) -> None:
    """It names the file in which they differ."""
    folder.write_json("history.json", 1)
    seen = Seen.of(folder, "history.json")
    with Stage([], [seen]).attempt():
        pass
    with (
        pytest.raises(ConfigurationError, match=r"not the same folder .* its history\.json is another file"),
        Stage([], [Seen(folder, "history.json", "0")]).attempt(),
    ):
        pass
    with pytest.raises(ConfigurationError, match="not the same folder"), Stage([], [Seen(folder, "x", "")]).attempt():
        pass


class Killed(BaseException):
    """The driver is gone."""


@pytest.mark.parametrize("lost", [False, True])
def test_segments_of_a_killed_driver_are_not_read_again(tmp_path: Path, *, lost: bool) -> None:
    """But where a file of an attempt is lost, they are."""
    demo, history = Recording.copy(DEMO, tmp_path / "demo"), Folder(str(tmp_path / "history"))
    whole = Folder(str(tmp_path / "whole"))
    expected = ingested(demo, whole)

    def killed(function: Callable[[Any], Any], tasks: Sequence[Any], _: Progress) -> list[Any]:
        stage = stage_of(history)
        for task in tasks[:-1]:
            with stage.attempt():
                function(task)
        raise Killed

    with pytest.raises(Killed):
        ingested(demo, history, killed)
    if lost:
        first = min(Path(history.uri, ATTEMPTS).glob("*/*"))
        next(each for each in first.iterdir() if each.suffix != ".json").unlink()
    done = ingested(demo, history)
    assert (done.there, done.read) == (expected.read - 1 - lost, 1 + lost)
    assert rows_of(history) == rows_of(whole)
    assert not history.exists(ATTEMPTS)
    shutil.rmtree(history.uri)
