"""Kernels are compiled for one process where no folder can keep them, and that is said."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.event import start_event

from conflict.cli import compiling
from ndb_formats import compiled_cache


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Leave the cache of this process as it is."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", "set")
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setitem(compiled_cache._state, "lasting", True)
    return monkeypatch


def test_a_folder_that_can_be_written(unset: pytest.MonkeyPatch, tmp_path: Path):
    """Nothing is set."""
    unset.setenv("NUMBA_CACHE_DIR", str(tmp_path / "new" / "folder"))
    compiled_cache.provide_cache()
    assert compiled_cache.is_lasting()
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / "new" / "folder")


def test_no_folder_that_can_be_written(unset: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """One is made for this process, and the sentence about compiling says so."""
    file = tmp_path / "file"
    file.touch()
    unset.setenv("NUMBA_CACHE_DIR", str(file / "below"))
    unset.setattr(compiled_cache.tempfile, "mkdtemp", lambda prefix: str(tmp_path / prefix))
    compiled_cache.provide_cache()
    assert not compiled_cache.is_lasting()
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / "ndb-conflict-kernels-")
    with compiling.compilation_is_said():
        start_event("numba:compile")
    assert "Set NUMBA_CACHE_DIR to a folder that can" in capsys.readouterr().err


def test_kernels_run_without_one(tmp_path: Path):
    """There is no traceback, and the folder is gone at the end."""
    file = tmp_path / "file"
    file.touch()
    code = (
        "import os, ndb_formats; from numba import njit; f = njit(cache=True)(lambda x: x + 1); "
        "print(f(1), os.environ['NUMBA_CACHE_DIR'])"
    )
    script = tmp_path / "kernel.py"
    script.write_text(code.replace("; ", "\n"))
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(file), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    value, folder = done.stdout.split()
    assert value == "2"
    assert not Path(folder).exists()
