"""
Runs the tasks of a job in several processes of this machine: for tasks that hold Python's lock.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import connection
from typing import TypeVar

from conflict.errors import WorkerError
from conflict.runs.runner import Progress, Runner, in_process

__all__ = ["process_runner"]

Task = TypeVar("Task")
Result = TypeVar("Result")
_ALONE = 3.0  # seconds: about what a process takes to import the simulator and load its kernels


def process_runner(workers: int | None = None, alone: float = _ALONE) -> Runner:
    """
    Return a runner of tasks in several processes.

    Args:
        workers: How many, one per core if None; with one, tasks run in this process.
        alone: Seconds for which this process works before it starts others.

    The runner raises `WorkerError` if one of the processes is killed.
    """
    count = (os.cpu_count() or 1) if workers is None else workers
    return in_process if count == 1 else partial(_run_tasks, count, alone)


def _run_tasks(
    workers: int, alone: float, function: Callable[[Task], Result], tasks: Sequence[Task], progress: Progress
) -> list[Result]:
    """Run `function` on every task and return the results in order; see `conflict.runs.runner.Runner`."""
    results: list[Result] = []
    begun = time.monotonic()
    while len(results) < len(tasks) and time.monotonic() - begun < alone:
        results.append(function(tasks[len(results)]))
        progress(len(results), len(tasks))
    done, rest = len(results), tasks[len(results) :]
    return results + _in_processes(workers, function, rest, lambda more, _: progress(done + more, len(tasks)))


def _in_processes(
    workers: int, function: Callable[[Task], Result], tasks: Sequence[Task], progress: Progress
) -> list[Result]:
    if len(tasks) < 2:
        return in_process(function, tasks, progress)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(tasks)), context, _end_with_parent) as pool:
        waiting: list[Future[Result]] = [pool.submit(function, task) for task in tasks]
        try:
            for done, each in enumerate(as_completed(waiting), start=1):
                each.result()
                progress(done, len(tasks))
        except BrokenProcessPool as error:
            message = "a worker was killed, perhaps for want of memory; run the command again, with fewer --workers"
            raise WorkerError(message) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [each.result() for each in waiting]


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_end, args=(parent.sentinel,), daemon=True).start()


def _wait_and_end(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
