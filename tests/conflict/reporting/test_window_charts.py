"""The window of conflicts over time on the report of a result: the figures of `window`, as long as it has binlogs."""

import shutil
from pathlib import Path

import pyarrow.compute as pc
import pytest

import conflict
from conflict.reporting.reading import part_of
from tests.corpora import DEMO


def test_what_is_drawn(tmp_path: Path) -> None:
    """The longest of each direction; nothing without binlogs."""
    shutil.copytree(DEMO, tmp_path / "demo")
    result = conflict.resolve(tmp_path / "demo" / "run.toml", out=tmp_path / "result", engine="reference")
    charts = {each.name: each.data for each in part_of(tmp_path / "result").telling.charts}
    channels = conflict.window(result).document()["channels"]
    for each in channels:
        name = f"{each['source']} → {each['applier']}"
        assert pc.max(charts["window-applied"][name]).as_py() == pytest.approx(each["applied_ms"]["max"] / 1000)
        assert pc.max(charts["window-window"][name]).as_py() == pytest.approx(each["window_ms"]["max"] / 1000)
        assert pc.max(charts["window-backlog"][name]).as_py() == each["backlog"]
    (tmp_path / "demo" / "A.binlog.000001").unlink()
    left = {each.name for each in part_of(tmp_path / "result").telling.charts}
    assert left == {name for name in charts if not name.startswith("window")}
