"""A run to change."""

import shutil
from pathlib import Path

import pytest

from tests.corpora import DEMO


@pytest.fixture
def max_run(tmp_path: Path) -> Path:
    """Return the run file of a copy of the demo that uses NDB$MAX instead of NDB$EPOCH, under its type 9."""
    folder = tmp_path / "run"
    shutil.copytree(DEMO, folder)
    path = folder / "run.toml"
    path.write_text(path.read_text().replace("NDB$EPOCH()", "NDB$MAX(x)"))
    return path
