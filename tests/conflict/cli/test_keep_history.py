"""`resolve` with the History that it makes: in memory, on disk, kept and continued."""

import filecmp
from pathlib import Path

import pytest

from conflict.cli.refusals import ExitCode
from conflict.history.grid import memory_folder
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO


def _resolve(out: Path, *options: object) -> str:
    code, output = invoke("resolve", DEMO / "run.toml", "--engine", "local", "--out", out, *options)
    assert code == 0, output
    return output


def _same(one: Path, other: Path) -> bool:
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(other) for path in other.rglob("*") if path.is_file())
    return all(filecmp.cmp(one / path, other / path, shallow=False) for path in files)


def test_the_result_does_not_depend_on_where_the_history_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory, in files because nothing fits, or kept: the same bytes, and no History beside the result."""
    _resolve(tmp_path / "memory")
    _resolve(tmp_path / "kept", "--keep-history", tmp_path / "history")
    _resolve(tmp_path / "again", "--history", tmp_path / "history")
    monkeypatch.setattr(memory_folder, "memory_limit", lambda: 0)
    _resolve(tmp_path / "files")
    assert not (tmp_path / "memory/history").exists()
    assert not (tmp_path / "files/history").exists()
    assert (tmp_path / "history/history.json").exists()
    for other in ("kept", "again", "files"):
        assert _same(tmp_path / "memory", tmp_path / other)


def test_a_history_that_is_there_is_continued(tmp_path: Path) -> None:
    """The second run finds nothing new, and leaves the rows of the History as they are."""
    _resolve(tmp_path / "one", "--keep-history", tmp_path / "history")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "history/changes").rglob("*.parquet")}
    _resolve(tmp_path / "two", "--keep-history", tmp_path / "history")
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "history/changes").rglob("*.parquet")}
    assert _same(tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize(
    ("history", "engine", "says"),
    [
        ("other", "local", "is no History"),
        ("out/history", "local", "inside each other"),
        ("new", "reference", "no History"),
    ],
)
def test_folders_that_are_refused(tmp_path: Path, history: str, engine: str, says: str) -> None:
    """Something else is in the folder, it is inside the result, or the engine makes no History: nothing is written."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other/mine.txt").write_text("mine")
    arguments = ("--out", tmp_path / "out", "--keep-history", tmp_path / history)
    code, output = invoke("resolve", DEMO / "run.toml", "--engine", engine, *arguments)
    assert code == ExitCode.REFUSED
    assert says in " ".join(output.split())
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    assert (tmp_path / "other/mine.txt").read_text() == "mine"
