"""A folder is replaced as a whole, whatever ends the run that replaces it, and whenever."""

import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import conflict
from conflict.cli.refusals import ExitCode
from conflict.errors import ConfigurationError
from conflict.history.grid import whole_files as module
from conflict.history.grid.folder import Folder
from conflict.history.grid.whole_files import only_writer, put_back, whole_folder
from conflict.results.files import check_target, whole_or_not_at_all
from tests.conflict.cli.commands import invoke

# Before the old one is moved away, before and after the new one is moved in, and when the old one is being removed.
STEPS = (0, 1, 2, 3)
OLD_STAYS = (0, 1)


def made(path: Path, text: str) -> Path:
    """Return a result that holds a text."""
    path.mkdir()
    (path / "run.json").write_text(text)
    return path


def replace(target: Path) -> None:
    """Replace a result by a new one."""
    with whole_or_not_at_all(Folder(str(target)), replace=True) as work:
        work.write_json("run.json", "new")


def at_step(patch: pytest.MonkeyPatch, wanted: int, act: Callable[[], object]) -> None:
    """Act at one of the steps of replacing."""
    steps = iter(STEPS)

    def stepping(step: Callable[..., None], *arguments: object, **options: object) -> None:
        if next(steps, None) == wanted:
            act()
        step(*arguments, **options)

    patch.setattr(os, "rename", partial(stepping, os.rename))
    patch.setattr(module.shutil, "rmtree", partial(stepping, shutil.rmtree))


def killed_at(step: int, target: Path) -> None:
    """Replace a result in a process that is killed at a step."""
    child = os.fork()
    if not child:
        with pytest.MonkeyPatch.context() as patch:
            at_step(patch, step, lambda: os.kill(os.getpid(), signal.SIGKILL))
            replace(target)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def held(target: Path) -> str:
    """Return the text of a result."""
    return (target / "run.json").read_text().strip('"\n')


@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_is_killed(step: int, tmp_path: Path):
    """One of both is there for the next run, which is refused without force, and leaves nothing else with it."""
    target = made(tmp_path / "out", "old")
    killed_at(step, target)
    with pytest.raises(ConfigurationError, match=r"out exists already.*; give another folder"):
        check_target(Folder(str(target)), [], replace=False)
    assert held(target) == ("old" if step in OLD_STAYS else "new")
    check_target(Folder(str(target)), [], replace=True)
    replace(target)
    assert held(target) == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_what_is_put_back_is_said(tmp_path: Path):
    """Where nothing seemed to be, something exists already."""
    killed_at(1, made(tmp_path / "out", "old"))
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigurationError, match="a run that replaced it was killed; it is as it was before"):
        check_target(Folder(str(tmp_path / "out")), [], replace=False)
    assert put_back(tmp_path / "out") == ""


def test_what_is_moved_away_is_said_to_readers(tmp_path: Path):
    """They change nothing."""
    killed_at(1, made(tmp_path / "out", "old"))
    for arguments in (["conflicts"], ["explain", "--differences"], ["report", "--out", tmp_path / "page"]):
        code, said = invoke(*arguments, tmp_path / "out")
        assert code == ExitCode.REFUSED
        assert "what was there is" in said
        assert str(next(tmp_path.glob(".out.*.old"))) in said
    with pytest.raises(ConfigurationError, match="rename it, or run again"):
        conflict.read_result(str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_what_another_process_is_replacing_is_left_to_it(tmp_path: Path):
    """Nothing is put back while it may be between two steps."""
    (tmp_path / ".out.0123456789abcdef.old").mkdir()
    with (
        only_writer(Folder(str(tmp_path / "out"))),
        pytest.raises(ConfigurationError, match="is being written by process"),
    ):
        put_back(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def _interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("step", STEPS[:2])
def test_an_interruption_before_the_new_one_is_there(step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The old one is there at once, and nothing else."""
    target = made(tmp_path / "out", "old")
    at_step(monkeypatch, step, _interrupt)
    with pytest.raises(KeyboardInterrupt):
        replace(target)
    assert held(target) == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_an_interruption_right_after_the_new_one_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The new one stays, and nothing else."""
    target, rename, done = made(tmp_path / "out", "old"), os.rename, []

    def interrupted_after(source: str, place: str) -> None:
        rename(source, place)
        done.append(place)
        if len(done) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted_after)
    with pytest.raises(KeyboardInterrupt):
        replace(target)
    assert held(target) == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_a_new_one_that_cannot_be_moved(tmp_path: Path):
    """As where it is gone: the old one is there again."""
    target = made(tmp_path / "out", "old")
    with pytest.raises(OSError, match="part"), whole_folder(target, lambda: None) as work:
        shutil.rmtree(work)
    assert held(target) == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
