"""Outputs that appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from conflict.decoding.staging import staged_file, staged_folder
from conflict.errors import ConfigurationError
from conflict.history.grid.folder import Folder
from conflict.history.grid.whole_files import only_writer

KILLED = ".out.0123456789abcdef.part"


def names(folder: Path) -> set[str]:
    """Return the names of what is in a folder."""
    return {path.name for path in folder.iterdir()}


def test_a_file_that_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    """And nothing else that is beside the output."""
    for name in (KILLED, ".other.0123456789abcdef.part", ".out.part"):
        (tmp_path / name).write_text("half")
    with staged_file(tmp_path / "out") as out:
        assert KILLED not in names(tmp_path)
        out.write(b"whole")
    assert names(tmp_path) == {"out", ".other.0123456789abcdef.part", ".out.part"}
    assert (tmp_path / "out").read_bytes() == b"whole"


def test_folders_that_a_killed_run_left_are_removed(tmp_path: Path) -> None:
    """What it was replacing is there again until the new one takes its place."""
    old = tmp_path / ".out.0123456789abcdef.old"
    for folder in (tmp_path / KILLED, old):
        folder.mkdir()
        (folder / "table.csv").write_text("1")
    with staged_folder(tmp_path / "out", {}) as folder:
        assert not (tmp_path / KILLED).exists()
        assert not old.exists()
        assert (tmp_path / "out" / "table.csv").read_text() == "1"
        (folder / "table.csv").write_text("2")
    assert names(tmp_path) == {"out"}
    assert names(tmp_path / "out") == {"table.csv", "tables.json"}


def test_what_another_process_writes_stays(tmp_path: Path) -> None:
    """The second writer is refused before it touches anything."""
    (tmp_path / KILLED).write_text("half")
    with (
        only_writer(Folder(str(tmp_path / "out"))),
        pytest.raises(ConfigurationError, match="is being written by process"),
        staged_file(tmp_path / "out"),
    ):
        pytest.fail("it was let in")
    assert names(tmp_path) == {KILLED}


def test_what_another_process_has_just_written_stays(tmp_path: Path) -> None:
    """It is replaced only by force."""
    (tmp_path / "out").write_text("first")
    with (
        pytest.raises(ConfigurationError, match="exists already; --force replaces it"),
        staged_file(tmp_path / "out", force=False),
    ):
        pytest.fail("it was let in")
    with staged_file(tmp_path / "out", force=True) as out:
        out.write(b"second")
    assert (tmp_path / "out").read_bytes() == b"second"
    assert names(tmp_path) == {"out"}
