"""
What runs the tasks of a job: this process, or Spark (see `conflict.jobs.spark_runner`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from ndb_formats.columnar.kernel_mode import are_interpreted

__all__ = ["Progress", "Runner", "StageProgress", "in_process", "in_threads"]

Task = TypeVar("Task")
Result = TypeVar("Result")

# Called with the tasks done and their number; a job adds the name of the stage in front.
Progress = Callable[[int, int], None]
StageProgress = Callable[[str, int, int], None]


class Runner(Protocol):
    """Runs a function on every task and returns the results in order."""

    def __call__(self, function: Callable[[Task], Result], tasks: Sequence[Task], progress: Progress) -> list[Result]:
        """Run `function`, which may run twice on a task without harm, on all of `tasks`."""
        ...


def in_process(function: Callable[[Task], Result], tasks: Sequence[Task], progress: Progress) -> list[Result]:
    """Run the tasks one after the other in this process: for tests and very small inputs."""
    results = []
    for done, task in enumerate(tasks, start=1):
        results.append(function(task))
        progress(done, len(tasks))
    return results


def in_threads(function: Callable[[Task], Result], tasks: Sequence[Task], progress: Progress) -> list[Result]:
    """Run the tasks in this process, in one thread per core: compiled code runs on all cores, interpreted on one."""
    results = []
    with ThreadPoolExecutor(1 if are_interpreted() else os.cpu_count()) as threads:
        for done, result in enumerate(threads.map(function, tasks), start=1):
            results.append(result)
            progress(done, len(tasks))
    return results
