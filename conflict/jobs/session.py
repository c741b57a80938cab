"""
A Spark session, and work descriptions spread over it.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from conflict.errors import ConfigurationError
from conflict.jobs.runner import Progress, Runner

__all__ = ["spark_runner", "spark_session"]

Task = TypeVar("Task")
Result = TypeVar("Result")
_POLL_SECONDS = 0.2


def spark_session(cores: str = "*") -> SparkSession:
    """Return the running session, or a local one on `cores` cores."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with _quiet_start():
        return _start(cores)


def _start(cores: str) -> SparkSession:
    builder = SparkSession.builder.appName("ndb-conflict")
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return builder.getOrCreate()  # run by spark-submit, which decides where and how
    return (
        builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
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
    work = [cloudpickle.dumps(task) for task in tasks]  # type: ignore[no-untyped-call]  # pyspark ships it untyped

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.record_batch(
                    [pa.array([number], pa.int64()), pa.array([_outcome(function, work[number])], pa.binary())],
                    names=["task", "result"],
                )

    frame = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(run, "task long, result binary")
    with _Watch(spark, len(tasks), progress):
        rows = frame.collect()
    results = [pickle.loads(row["result"]) for row in sorted(rows, key=lambda row: row["task"])]
    for error, _ in results:
        if error is not None:
            raise error
    return [result for _, result in results]


def _outcome(function: Callable[[Task], Result], work: bytes) -> bytes:
    """Return (error, result), pickled: an error keeps its class and fields on the way to the driver."""
    try:
        return pickle.dumps((None, function(pickle.loads(work))))
    except Exception as error:  # noqa: BLE001  # raised again by the driver
        return pickle.dumps((error, None))


class _Watch:
    """Reports how many tasks are done while a job runs."""

    def __init__(self, spark: SparkSession, total: int, progress: Progress) -> None:
        self._total, self._progress = total, progress
        self._done = threading.Event()
        # A remote session (Spark Connect) has no status tracker; the job then reports only its end.
        context: Any = getattr(spark, "_sc", None)
        self._tracker = None if context is None else context.statusTracker()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        if self._tracker is not None:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._tracker is not None:
            self._thread.join()
        self._progress(self._total, self._total)

    def _watch(self) -> None:
        assert self._tracker is not None
        while not self._done.wait(_POLL_SECONDS):
            stages = [self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds()]
            done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
            self._progress(min(done, self._total), self._total)
