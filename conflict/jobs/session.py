"""
A Spark session, and work descriptions spread over it.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import SparkContext, StatusTracker, cloudpickle
from pyspark.sql import SparkSession

from conflict.errors import ConfigurationError
from conflict.grid.folder import Folder
from conflict.jobs.runner import Progress, Runner

__all__ = ["check_shared", "spark_runner", "spark_session"]

Task = TypeVar("Task")
Result = TypeVar("Result")
_NAME = "ndb-conflict"
_POLL_SECONDS = 0.5  # to ask takes the JVM a hundredth of a second
# Spark tasks per core: few enough that starting them costs little, and enough that cores end at about the same time.
_PER_CORE = 8
_MANY_OBJECTS = 30_000
_QUESTION, _ANSWER = "question.json", "answer.json"
# Tasks that are pickled as one: what they share is then shipped once, and a task unpickles its neighbours too.
_TOGETHER = 64
# What users tell Spark by where to run; with PYSPARK_GATEWAY_PORT, spark-submit has started this process.
_TOLD_BY = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME")


def spark_session(cores: str = "*") -> SparkSession:
    """
    Return the running session, or start one: where Spark is told to run, and on `cores` cores here if it is not told.

    Spark is told by `spark-submit`, by the address of a Spark Connect server in `SPARK_REMOTE`, by
    `PYSPARK_SUBMIT_ARGS`, and by the `spark-defaults.conf` of an installation of its own.

    Raises:
        ConfigurationError: Spark could not be started, or not be reached.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if any(name in os.environ for name in _TOLD_BY):
        return _start_where_told()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with _quiet_start():
        return _start_here(cores)


def _start_where_told() -> SparkSession:
    try:
        return SparkSession.builder.appName(_NAME).getOrCreate()
    except Exception as error:
        message = f"Spark could not be started where it is told to run: {error}"
        raise ConfigurationError(message) from error


def _start_here(cores: str) -> SparkSession:
    return (
        SparkSession.builder.appName(_NAME)
        .master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        # All that the JVM does here is to hand out tasks: code that is soon compiled serves better than good code.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.python.unix.domain.socket.enabled", "true")
        # Workers keep the memory that one task frees for the next one (see mallopt(3)). By default every large array is
        # fresh memory, which the system clears page by page: a tenth of the time of a task.
        .config("spark.executorEnv.MALLOC_MMAP_MAX_", "0")
        .config("spark.executorEnv.MALLOC_TRIM_THRESHOLD_", str(2**40))
        .config("spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL", "system")
        .getOrCreate()
    )


@contextmanager
def _quiet_start() -> Iterator[None]:
    """
    Keep what the JVM says from then on out of the terminal; show it if Spark cannot start.

    The JVM inherits this process's error stream when it is launched, and prints its own chatter there.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        except Exception as error:
            log.seek(0)
            said = log.read().decode("utf-8", "replace").strip()
            message = f"Spark could not be started; it needs Java 17 or later. It said: {said or error}"
            raise ConfigurationError(message) from error
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def check_shared(spark: SparkSession, folder: Folder) -> None:
    """
    Make sure that a folder is the same for this process and for tasks, unless all run on this machine.

    Otherwise tasks would find nothing where something was written, and nothing is a History too.

    Raises:
        ConfigurationError: It is not, or one of them cannot write there.
    """
    context = _context(spark)
    if context is not None and str(context.master).startswith("local"):
        return
    folder.write_json(_QUESTION, "")
    try:
        spark_runner(spark)(_answer, [folder], lambda done, total: None)
        folder.read_json(_ANSWER)
    except OSError as error:
        message = f"{folder.uri} is not the same folder here and on the executors, as it must be: {error}"
        raise ConfigurationError(message) from error
    folder.delete(_QUESTION)
    folder.delete(_ANSWER)


def _answer(folder: Folder) -> None:
    folder.read_json(_QUESTION)
    folder.write_json(_ANSWER, "")


def _context(spark: SparkSession) -> SparkContext | None:
    context: SparkContext | None = getattr(spark, "_sc", None)  # a remote session (Spark Connect) has none
    return context


def spark_runner(spark: SparkSession) -> Runner:
    """Return a runner that makes one Spark task of every task."""
    return partial(_run_tasks, spark)


def _run_tasks(
    spark: SparkSession, function: Callable[[Task], Result], tasks: Sequence[Task], progress: Progress
) -> list[Result]:
    """
    Run `function` on every task, one Spark task each, and return the results in order.

    Args:
        spark: The session.
        function: Anything that can be pickled, and run twice without harm.
        tasks: Small work descriptions.
        progress: Called with the tasks done and their number.

    Raises:
        Exception: Whatever `function` raised, with its fields.
    """
    if not tasks:
        return []
    groups = (tasks[first : first + _TOGETHER] for first in range(0, len(tasks), _TOGETHER))
    work = [cloudpickle.dumps(group) for group in groups]  # type: ignore[no-untyped-call]  # pyspark ships it untyped

    def run(number: int) -> bytes:
        group, place = divmod(number, _TOGETHER)
        return _outcome(function, work[group], place)

    parts = _parts(spark, len(tasks))
    with _watch(spark, parts, lambda done, _: progress(len(tasks) * done // parts, len(tasks))):
        results = [pickle.loads(outcome) for outcome in _spread(spark, run, len(tasks), parts)]
    for error, _ in results:
        if error is not None:
            raise error
    return [result for _, result in results]


def _spread(spark: SparkSession, run: Callable[[int], bytes], count: int, parts: int) -> list[bytes]:
    """
    Return what `run` makes of each number up to `count`, in order, as so many Spark tasks.

    Spark begins a stage of an RDD in half the time that a data frame takes, which it plans anew each time; but a remote
    session has data frames alone.
    """
    context = _context(spark)
    if context is not None:
        return context.parallelize(range(count), parts).map(run).collect()

    def run_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                columns = [pa.array([number], pa.int64()), pa.array([run(number)], pa.binary())]
                yield pa.record_batch(columns, names=["task", "result"])

    rows = spark.range(0, count, 1, parts).mapInArrow(run_all, "task long, result binary").collect()
    return [row["result"] for row in sorted(rows, key=lambda row: row["task"])]


def _parts(spark: SparkSession, tasks: int) -> int:
    """
    Return how many Spark tasks run so many tasks, several of ours one after the other.

    Spark takes some hundredths of a second for each of its tasks, as long as a small bucket does.
    """
    context = _context(spark)
    if context is None:
        return tasks
    together = -(-tasks // (_PER_CORE * context.defaultParallelism))
    return -(-tasks // together)  # as many in one as in the other, nearly


def _outcome(function: Callable[[Task], Result], group: bytes, place: int) -> bytes:
    """Return (error, result) of one task, pickled: an error keeps its class and fields on the way to the driver."""
    try:
        return pickle.dumps((None, function(pickle.loads(group)[place])))
    except Exception as error:  # noqa: BLE001  # raised again by the driver
        return pickle.dumps((error, None))
    finally:
        _spare_garbage_collection()


def _spare_garbage_collection() -> None:
    """
    Exempt all that is loaded by now from garbage collection.

    Spark's worker collects garbage after every task. To look through all objects of numba and pyarrow each time takes a
    fifth of the time of resolving a bucket.
    """
    if len(gc.get_objects()) > _MANY_OBJECTS:
        gc.collect()
        gc.freeze()


@contextmanager
def _watch(spark: SparkSession, total: int, progress: Progress) -> Iterator[None]:
    """Report how many tasks are done while a job runs, and at its end that all are."""

    def report(done: int) -> None:
        progress(min(done, total), total)

    context = _context(spark)
    with _told_by(spark, report) if context is None else _asking(context.statusTracker(), report):
        yield
    report(total)


@contextmanager
def _told_by(spark: SparkSession, report: Callable[[int], None]) -> Iterator[None]:
    def handler(*, stages: Iterable[Any] | None, **_: object) -> None:
        report(sum(stage.num_completed_tasks for stage in stages or ()))

    spark.registerProgressHandler(handler)  # type: ignore[arg-type]  # it is called with names
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)  # type: ignore[arg-type]  # as above


@contextmanager
def _asking(tracker: StatusTracker, report: Callable[[int], None]) -> Iterator[None]:
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
