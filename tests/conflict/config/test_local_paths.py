"""The names that data give to files."""

import os
from pathlib import Path

import pytest

import conflict
from conflict.config.text_file import plain_path
from tests.corpora import DEMO


def test_names_are_absolute_and_without_dots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All spellings of a path are one name; above the root is the root."""
    monkeypatch.chdir(tmp_path)
    for given in ("a/binlog.1", "./a/binlog.1", "b/../a/binlog.1", str(tmp_path / "b/c/../../a/binlog.1")):
        assert plain_path(given) == tmp_path / "a/binlog.1"
    assert plain_path("/../../x") == Path("/x")


def test_dots_after_a_link_lead_where_the_system_leads(tmp_path: Path) -> None:
    """``link/..`` is the folder above what the link names; other links keep their names, which have numbers."""
    (tmp_path / "store/day").mkdir(parents=True)
    (tmp_path / "link").symlink_to("store/day")
    (tmp_path / "store/log").write_text("")
    (tmp_path / "binlog.000001").symlink_to("store/log")
    found = plain_path(tmp_path / "link/../log")
    assert found == tmp_path / "store/log"
    assert found.samefile(tmp_path / "link/../log")
    assert plain_path(tmp_path / "link/binlog.000001") == tmp_path / "link/binlog.000001"
    assert plain_path(tmp_path / "binlog.000001") == tmp_path / "binlog.000001"


def test_outcomes_and_changes_join_however_their_binlogs_were_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run file with ``..`` in its paths, and relative, absolute and roundabout paths of the same files."""
    (tmp_path / "run").mkdir()
    (tmp_path / "logs").symlink_to(DEMO)
    text = (DEMO / "run.toml").read_text()
    for name in ("A.binlog", "B.binlog", "schema.sql", "steps.json"):
        text = text.replace(f'"{name}', f'"../logs/{name}')
    (tmp_path / "run/run.toml").write_text(text)
    monkeypatch.chdir(tmp_path / "run")
    outcomes = conflict.resolve("run.toml", engine="reference").conflicts.to_pandas()
    assert len(outcomes) == 25
    for logs in ("../logs", tmp_path / "logs", "./../run/../logs", os.path.relpath(tmp_path / "logs")):
        changes = conflict.read_binlog(logs).to_pandas()
        assert len(outcomes.merge(changes, on=["file", "position", "row"])) == 25
