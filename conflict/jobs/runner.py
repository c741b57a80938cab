"""
Who runs the tasks of a job: Spark, or this process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

__all__ = ["Progress", "Runner", "StageProgress", "in_process"]

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
