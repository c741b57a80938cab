"""Files and folders take their place; what was there is there again when they cannot."""

from pathlib import Path

import pytest

from conflict.grid.beside import put_back_left_over, take_place


def made(path: Path, text: str) -> Path:
    """Return a folder that holds one file with a text."""
    path.mkdir()
    (path / "inside").write_text(text)
    return path


def test_the_new_takes_the_place_of_the_old(tmp_path: Path):
    """Nothing else is left in the folder."""
    target = made(tmp_path / "out", "old")
    take_place(made(tmp_path / "beside", "new"), target)
    assert (target / "inside").read_text() == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_the_old_is_there_again_when_the_new_cannot_be_moved(tmp_path: Path):
    """As where the new one is gone, or is on another filesystem."""
    target = made(tmp_path / "out", "old")
    with pytest.raises(OSError, match="beside"):
        take_place(tmp_path / "beside", target)
    assert (target / "inside").read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_a_run_that_was_killed_between_both_moves(tmp_path: Path):
    """The next run finds the old one where it was; what has been replaced is removed."""
    target = tmp_path / "out"
    made(tmp_path / ".out.0123456789abcdef.old", "old")
    put_back_left_over(target)
    assert (target / "inside").read_text() == "old"
    made(tmp_path / ".out.fedcba9876543210.old", "older")
    put_back_left_over(target)
    assert (target / "inside").read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
