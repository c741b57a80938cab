"""Commands in processes of their own, with a limit on what they can write, and files that change meanwhile."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
from pathlib import Path

import attrs

__all__ = ["Ended", "left_in", "run"]

# Tasks run in threads, not on Spark, which takes longer to start than all the rest.
_MAIN = """
import conflict.runs.pipeline
from conflict.cli import app
from conflict.history.tasks import in_threads
conflict.runs.pipeline.spark_workers = lambda *given: in_threads
app.main()
"""
_PR_CAPBSET_DROP, _WRITES_EVERYWHERE = 24, (1, 2)  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH


@attrs.frozen
class Ended:
    """How a command ended: its code, negative for a signal, and what it said."""

    code: int
    said: str


def run(*words: object, file_bytes: int | None = None, powers: bool = True) -> Ended:
    """
    Run a command.

    Args:
        words: Its arguments.
        file_bytes: A file cannot become longer, as on a disk that is full at that moment; None for any length.
        powers: Whether the superuser may write everywhere, if the tests are run by the superuser.
    """

    def limit() -> None:
        if file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
        if not powers:
            for power in _WRITES_EVERYWHERE:
                ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, power)  # nobody else has it anyway

    environment = {**os.environ, "COLUMNS": "500", "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", _MAIN, *map(str, words)],
        preexec_fn=limit,
        capture_output=True,
        check=False,
        text=True,
        errors="replace",
        env=environment,
    )
    return Ended(ended.returncode, ended.stdout + ended.stderr)


def left_in(folder: Path) -> set[str]:
    """Return the names of what is in a folder, hidden files too."""
    return {path.name for path in folder.iterdir()}
