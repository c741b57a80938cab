"""
The first job of a run: outlines of its binlogs, one task each, so that who plans need not read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from conflict.config.arguments import StageProgress
from conflict.history.tasks import Runner
from ndb_formats.columnar.file_outline import FileOutline, outline_of
from ndb_formats.stored import reading


def outlines_by_tasks(runner: Runner, progress: StageProgress, files: Sequence[Path]) -> list[FileOutline]:
    """Return the outline of each file; of one on object storage up to the size that it has for this process."""
    tasks = [(file, file.stat().st_size) for file in files]
    return runner(_read_outline, tasks, partial(progress, "reading headers"))


def _read_outline(task: tuple[Path, int]) -> FileOutline:
    file, size = task
    with reading(file, 0, size):
        return outline_of(file)
