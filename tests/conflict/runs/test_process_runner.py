"""Tasks in several processes."""

import math
import os
import signal

import pytest

from conflict.errors import WorkerError
from conflict.history.tasks import process_runner


def test_results_are_in_order() -> None:
    """Whichever process is done first; every task is reported."""
    seen: list[tuple[int, int]] = []
    assert process_runner(2, alone=0)(math.factorial, [5, 3, 4], lambda done, total: seen.append((done, total))) == [
        120,
        6,
        24,
    ]
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_an_error_of_a_task_is_raised() -> None:
    """As it is."""
    with pytest.raises(ValueError, match="negative"):
        process_runner(2, alone=0)(math.factorial, [1, -1, 2], lambda done, total: None)


def test_few_tasks_start_no_process() -> None:
    """They are done before one would be ready."""
    here: list[int] = []
    seen: list[tuple[int, int]] = []
    process_runner(2, alone=1e9)(here.append, [1, 2], lambda done, total: seen.append((done, total)))
    assert (here, seen) == ([1, 2], [(1, 2), (2, 2)])


def test_one_process_is_this_one() -> None:
    """No other is started."""
    here: list[int] = []
    process_runner(1)(here.append, [1, 2], lambda done, total: None)
    assert here == [1, 2]


def killed(_: int) -> None:
    """End the process of a task as the kernel does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_is_said() -> None:
    """With what to do, and without a traceback."""
    with pytest.raises(WorkerError, match=r"a worker was killed.*run the command again"):
        process_runner(2, alone=0)(killed, [1, 2], lambda done, total: None)
