"""
The first job of a run: outlines of its binlogs, one task each, so that who plans need not read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import attrs

from conflict.config.arguments import StageProgress
from conflict.runs.runner import Runner
from ndb_formats.columnar.file_outline import FileOutline, outline_of
from ndb_formats.stored import reading

__all__ = ["outlines_by_tasks"]


@attrs.frozen
class OutlineTask:
    """
    One file to read.

    Attributes:
        file: The file.
        size: Bytes that it had when the command began; of a file on object storage, no more are read.
    """

    file: Path
    size: int


def read_outline(task: OutlineTask) -> FileOutline:
    """Return the outline of a file."""
    with reading(task.file, 0, task.size):
        return outline_of(task.file)


def outlines_by_tasks(runner: Runner, progress: StageProgress, files: Sequence[Path]) -> list[FileOutline]:
    """Return the outline of each file."""
    tasks = [OutlineTask(file, file.stat().st_size) for file in files]
    return runner(read_outline, tasks, partial(progress, "reading headers"))
