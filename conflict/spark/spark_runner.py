"""
Runs the tasks of a job on Spark.
"""

from __future__ import annotations

import gc
import pickle
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, takewhile
from typing import Any, TypeVar

import attrs
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkContext, StatusTracker
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from conflict.errors import ConfigurationError, WorkerError
from conflict.history.grid.attempts import Seen, Stage, Written, publish
from conflict.history.grid.folder import Folder
from conflict.history.tasks import Progress, Runner
from conflict.spark.packed_tasks import pack

Task = TypeVar("Task")
Result = TypeVar("Result")
_POLL_SECONDS = 0.5  # each question costs the JVM a hundredth of a second
# Spark tasks per core: few, because starting one has a cost; enough for all cores to end at about the same time.
_PER_CORE = 8
# Most tasks of ours in one Spark task on a cluster, which may get more cores while a stage runs.
_MOST_IN_ONE = 4
# Bytes of tasks that a remote session gets at a time: all of them come to each of its processes, in one message.
_WAVE_BYTES = 4 << 20
_MANY_OBJECTS = 30_000
_ASKED_FOR = 64  # cores, where their number is not known before the work
# What to do, by words of Spark; else nothing is known to help.
_ADVICE = (
    (("spark.driver.maxResultSize",), ". Raise spark.driver.maxResultSize"),
    (("Error: [Errno", "OSError: ", "crashed", "EOFException", "ExecutorLost", "lost"), ". Run the command again"),
)
_LASTING = (FileNotFoundError, PermissionError, FileExistsError, IsADirectoryError, NotADirectoryError)


def context_of(spark: SparkSession) -> SparkContext | None:
    """Return the context of a session; None for a remote session (Spark Connect), which has none."""
    context: SparkContext | None = getattr(spark, "_sc", None)
    return context


def spark_runner(spark: SparkSession, folders: Sequence[Folder] = (), seen: Sequence[Seen] = ()) -> Runner:
    """
    Return a runner that spreads tasks over Spark.

    Args:
        spark: The session.
        folders: Where tasks write: what they write there is there once, whatever number of attempts they have.
        seen: What executors must see as the driver does.
    """
    return SparkRunner(partial(_run_tasks, spark, folders, seen), _cores(spark))


@attrs.frozen
class SparkRunner:
    """
    A runner that spreads tasks over Spark.

    Attributes:
        run: Runs them.
        cores: How many can run at the same time; where executors come as they are needed, how many are to be asked for.
    """

    run: Runner
    cores: int

    def __call__(self, function: Callable[[Task], Result], tasks: Sequence[Task], progress: Progress) -> list[Result]:
        """Run `function` on all of `tasks`."""
        return self.run(function, tasks, progress)


def _cores(spark: SparkSession) -> int:
    context = context_of(spark)
    if context is None or context.getConf().get("spark.dynamicAllocation.enabled") == "true":
        return _ASKED_FOR
    return int(context.defaultParallelism)


def runs_here(spark: SparkSession) -> bool:
    """Whether all tasks run on the machine of the driver."""
    context = context_of(spark)
    return context is not None and str(context.master).startswith("local")


def _run_tasks(
    spark: SparkSession,
    folders: Sequence[Folder],
    seen: Sequence[Seen],
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    progress: Progress,
) -> list[Result]:
    """
    Run `function` on every task and return the results in order; see `spark_runner`.

    Args:
        spark: The session.
        folders: Where it writes.
        seen: What it must see.
        function: Anything that can be pickled, and run twice at the same time.
        tasks: Small work descriptions.
        progress: Called with the tasks done and their number.

    Raises:
        Exception: Whatever `function` raised, with its fields.
        WorkerError: Spark gave the job up.
    """
    if not tasks:
        return []
    parts, stage, apart = _parts(spark, len(tasks)), Stage(folders, seen), not runs_here(spark)
    shared, rows = pack(tasks, parts)

    def run(row: bytes) -> bytes:
        own = shared.load(row)
        return pickle.dumps([_outcome(stage, partial(function, task), apart=apart) for task in own])

    def report(done: int) -> None:
        progress(len(tasks) * min(done, parts) // parts, len(tasks))

    stage.open()
    try:
        outcomes = _spread(spark, run, rows, report)
    except (Py4JError, PySparkException) as failure:  # other errors of `function` come as outcomes
        raise WorkerError(_told(failure)) from failure
    report(parts)
    results = [each for outcome in outcomes for each in pickle.loads(outcome)]
    publish(each for _, _, written in results for each in written)
    stage.close()
    for error, _, _ in results:
        if error is not None:
            raise error
    return [result for _, result, _ in results]


def _told(error: Exception) -> str:
    """Return what Spark says of a job that it gave up, without the stacks of both languages, and what to do."""
    lines = [line.strip(" :") for line in str(error).splitlines()]
    lacked = re.search(r"No module named '([\w.]+)'", str(error))
    if lacked:
        return (
            f"the Python of the executors lacks {lacked.group(1)}: install ndb-conflict there with its dependencies, "
            "or set PYSPARK_PYTHON to a Python that has them"
        )
    said = next((line for line in lines if "Exception: " in line or "Error: " in line), lines[0] if lines else "")
    cause = said.split("Exception: ", 1)[-1][:400].rstrip(". ")
    advice = next((advice for signs, advice in _ADVICE if any(sign in str(error) for sign in signs)), "")
    return f"Spark gave up this job: {cause}{advice}"


def _spread(
    spark: SparkSession, run: Callable[[bytes], bytes], rows: Sequence[bytes], report: Callable[[int], None]
) -> list[bytes]:
    """
    Return `run(row)` for each row, in order, each computed by a Spark task; `report` gets how many are done.

    An RDD starts in half the time of a data frame, which Spark plans anew each time; but a remote session has only data
    frames.
    """
    context = context_of(spark)
    if context is not None:
        with _polling(context.statusTracker(), report):
            return context.parallelize(rows, len(rows)).map(run).collect()
    found = list[bytes]()
    while len(found) < len(rows):
        wave, before = _wave(rows[len(found) :]), len(found)
        with _notified(spark, lambda done, before=before: report(before + done)):  # type: ignore[misc]
            found += _in_data_frame(spark, run, wave)
    return found


def _wave(rows: Sequence[bytes]) -> Sequence[bytes]:
    """Return the first rows: so many that they can all go to each process."""
    ends = accumulate(map(len, rows))
    return rows[: max(sum(1 for _ in takewhile(lambda end: end <= _WAVE_BYTES, ends)), 1)]


def _in_data_frame(spark: SparkSession, run: Callable[[bytes], bytes], rows: Sequence[bytes]) -> list[bytes]:
    """Return `run(row)` for each row, in order; all of them go with the function."""

    def run_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                columns = [pa.array([number], pa.int64()), pa.array([run(rows[number])], pa.binary())]
                yield pa.record_batch(columns, names=["task", "result"])

    count = len(rows)
    done = spark.range(0, count, 1, count).mapInArrow(run_all, "task long, result binary").collect()
    return [row["result"] for row in sorted(done, key=lambda row: row["task"])]


def _parts(spark: SparkSession, tasks: int) -> int:
    """
    Return how many Spark tasks run `tasks` tasks of ours, several of them one after the other.

    A Spark task costs some hundredths of a second, as much as a small bucket. A cluster with dynamic allocation has as
    many cores as its stages have Spark tasks, so their number is bound by the work, not by the cores of the moment.
    """
    context = context_of(spark)
    if context is None:
        return tasks
    together = -(-tasks // (_PER_CORE * context.defaultParallelism))
    together = together if runs_here(spark) else min(together, _MOST_IN_ONE)
    return -(-tasks // together)  # so that each of them runs nearly the same number of ours


def _outcome(
    stage: Stage, task: Callable[[], Result], *, apart: bool
) -> tuple[Exception | None, Result | None, Sequence[Written]]:
    """
    Return the error of an attempt, its result, and what it wrote.

    So an error reaches the driver with its class and fields.

    Raises:
        OSError: Trying again may help, which Spark does.
    """
    try:
        with stage.attempt() as attempt:
            result = task()
    except OSError as error:
        if not isinstance(error, _LASTING):
            raise
        return (ConfigurationError(_lacking(error)) if apart else error), None, ()
    except Exception as error:  # noqa: BLE001  # raised again by the driver
        return error, None, ()
    else:
        return None, result, [each for each in attempt.written if each.files]
    finally:
        _exempt_from_collection()


def _lacking(error: OSError) -> str:
    return (
        f"the executor on {socket.gethostname()} cannot use a file: {error}. Binlogs, History and result must be on "
        "storage that the driver and all executors share under one path"
    )


def _exempt_from_collection() -> None:
    """
    Exempt all objects that exist by now from garbage collection.

    Spark's worker collects garbage after every task. To go through all objects of numba and pyarrow each time takes a
    fifth of the time of resolving a bucket.
    """
    if len(gc.get_objects()) > _MANY_OBJECTS:
        gc.collect()
        gc.freeze()


@contextmanager
def _notified(spark: SparkSession, report: Callable[[int], None]) -> Iterator[None]:
    def handler(*, stages: Iterable[Any] | None, **_: object) -> None:
        report(sum(stage.num_completed_tasks for stage in stages or ()))

    spark.registerProgressHandler(handler)  # type: ignore[arg-type]  # it is called with names
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)  # type: ignore[arg-type]  # as above


@contextmanager
def _polling(tracker: StatusTracker, report: Callable[[int], None]) -> Iterator[None]:
    finished = threading.Event()

    def ask() -> None:
        while not finished.wait(_POLL_SECONDS):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            report(sum(stage.numCompletedTasks for stage in stages if stage is not None))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()
