"""
What runs the tasks of a job, and what all of them share.

Tasks run in this process, in several processes of this machine where they hold Python's lock, or on Spark
(`conflict.spark.spark_runner`). Values that every task of a stage needs are written once to shared storage, if tasks
run in other processes, and mapped there.
"""

from __future__ import annotations

import copyreg
import hashlib
import io
import multiprocessing
import os
import pickle
import struct
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing import connection
from types import ModuleType
from typing import Any, Generic, Protocol, Self, TypeVar, cast

import attrs
import numpy as np
import numpy.typing as npt

from conflict.errors import HistoryError, WorkerError
from conflict.history.grid.folder import Folder
from ndb_formats.columnar.kernel_mode import are_interpreted

Task = TypeVar("Task")
Result = TypeVar("Result")

# Called with the tasks done and their number; a job adds the name of the stage in front.
Progress = Callable[[int, int], None]


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


def runs_here(runner: Runner) -> bool:
    """Whether the tasks of a runner surely run in this process."""
    return runner in (in_process, in_threads)


def cores_of(runner: Runner) -> int:
    """Return how many tasks of a runner can run at the same time."""
    return (os.cpu_count() or 1) if runner is in_threads else int(getattr(runner, "cores", 1))


Value = TypeVar("Value")


@attrs.frozen
class _File:
    """
    A file that holds a value.

    Attributes:
        folder: Where it is.
        name: Its name, which is never used twice.
        digest: SHA-256 of its bytes. Spark brings it to the tasks, so a file that somebody else wrote is not loaded.
    """

    folder: Folder = attrs.field(eq=False)
    name: str
    digest: str


class Shared(Generic[Value]):
    """
    A value that every task of a stage needs.

    Tasks of this process have the value itself. For others it goes to a file, which all processes of a machine map.
    """

    def __init__(self, folder: Folder, value: Value, file: _File | None = None) -> None:
        self._folder, self._value = folder, value
        # A folder that is copied to the tasks must have it before they are made.
        self._file = _written(folder, value) if file is None and folder.is_apart else file

    @classmethod
    def large(cls, folder: Folder, value: Value, runner: Runner) -> Self:
        """Return a large value; where the tasks of a runner map it, so does this process, in place of a copy of it."""
        if runs_here(runner):
            return cls(folder, value)
        file = _written(folder, value)
        return cls(folder, _unpacked(memoryview(folder.mapped(file.name))), file)

    def load(self) -> Value:
        """Return the value."""
        return self._value

    def __reduce__(self) -> tuple[object, ...]:
        """Write the value down when a first task leaves this process."""
        if self._file is None:
            self._file = _written(self._folder, self._value)
        return _Received, (self._file,)


@attrs.frozen
class _Received(Generic[Value]):
    """A shared value in another process."""

    file: _File

    def load(self) -> Value:
        """
        Return the value; a process that uses only a few values reads each of them once.

        Raises:
            HistoryError: The file is not as it was written.
        """
        with _reading:  # threads that begin together would each read it
            return cast(Value, _read(self.file))


_reading = threading.Lock()
_HEAD = struct.Struct("<QQ")  # bytes of the pickle, and how many buffers follow it, each after its bytes
_ALIGNED = 64


def _reduced(array: npt.NDArray[Any]) -> Any:
    """Return how an array is made again: one that has the same value everywhere, of that value."""
    if array.size > 1 and not any(array.strides):
        return np.broadcast_to, (array[(0,) * array.ndim], array.shape)
    return array.__reduce_ex__(_PROTOCOL)


_PROTOCOL = 5  # buffers stay apart


def _written(folder: Folder, value: object) -> _File:
    """Write a value, which can be pickled, to a new file; its arrays as they are, so that they can be mapped."""
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, _PROTOCOL, buffer_callback=buffers.append)
    pickler.dispatch_table = {**copyreg.dispatch_table, np.ndarray: _reduced}
    pickler.dump(value)
    head = stream.getvalue()
    sizes = np.array([each.raw().nbytes for each in buffers], np.int64).tobytes()
    parts: list[bytes | memoryview] = [_HEAD.pack(len(head), len(buffers)) + sizes + head]
    parts += [each.raw() for each in buffers]
    whole = [each for part in parts for each in (part, bytes(-len(part) % _ALIGNED))]
    digest = hashlib.sha256()
    for each in whole:
        digest.update(each)
    name = uuid.uuid4().hex
    folder.write_bytes(name, *whole)
    return _File(folder, name, digest.hexdigest())


@lru_cache(maxsize=4)  # the epoch applies of a run, and the conflicts and changed transactions of a round
def _read(file: _File) -> Any:
    data = memoryview(file.folder.mapped(file.name))
    if hashlib.sha256(data).hexdigest() != file.digest:
        message = f"{file.folder.uri}/{file.name} is not what this run wrote; run the command again"
        raise HistoryError(message)
    return _unpacked(data)


def _unpacked(data: memoryview) -> Any:
    """Return the value that a file holds, whose arrays are parts of its data."""
    length, count = _HEAD.unpack_from(data)
    start = _HEAD.size + 8 * count
    head, place, buffers = data[start : start + length], start + length, []
    for size in np.frombuffer(data, np.int64, count, _HEAD.size).tolist():
        place += -place % _ALIGNED
        buffers.append(data[place : place + size])
        place += size
    return pickle.loads(head, buffers=buffers)


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
    return in_process if count == 1 else _Processes(count, alone)


@attrs.frozen
class _Processes:
    """
    Runs tasks in several processes; see `process_runner`.

    Attributes:
        cores: How many.
        alone: Seconds for which this process works before it starts them.
    """

    cores: int
    alone: float

    def __call__(self, function: Callable[[Task], Result], tasks: Sequence[Task], progress: Progress) -> list[Result]:
        """Run `function` on every task and return the results in order; see `conflict.history.tasks.Runner`."""
        results: list[Result] = []
        begun = time.monotonic()
        while len(results) < len(tasks) and time.monotonic() - begun < self.alone:
            results.append(function(tasks[len(results)]))
            progress(len(results), len(tasks))
        done, rest = len(results), tasks[len(results) :]
        return results + _in_processes(self.cores, function, rest, lambda more, _: progress(done + more, len(tasks)))


def _in_processes(
    workers: int, function: Callable[[Task], Result], tasks: Sequence[Task], progress: Progress
) -> list[Result]:
    if len(tasks) < 2:
        return in_process(function, tasks, progress)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(tasks)), context, _end_with_parent) as pool:
        with _without_script():
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


@contextmanager
def _without_script() -> Iterator[None]:
    """Let processes start without the user's script: no task needs it, and run again, it would start processes, too."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_end, args=(parent.sentinel,), daemon=True).start()


def _wait_and_end(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
