"""
The Spark session: where it runs, and whether its tasks see the same storage as this process.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import SparkSession

from conflict.errors import ConfigurationError
from conflict.history.grid.attempts import Seen
from conflict.history.grid.folder import Folder
from conflict.spark.spark_runner import context_of, runs_here, spark_runner
from ndb_formats.scratch import scratch_folder

_NAME = "ndb-conflict"
_ATTEMPTS = 4  # of a task whose worker dies, as Spark has it on a cluster
_LOOKS = 8  # tasks that look at the folders first; all later ones look, too
# With any of these, users choose where Spark runs; PYSPARK_GATEWAY_PORT shows that spark-submit started this process.
_CHOSEN_BY = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME")


def spark_session(cores: str = "*") -> SparkSession:
    """
    Return the active session, or start one: where the user chose, or else on `cores` cores of this machine.

    Users choose by `spark-submit`, by the address of a Spark Connect server in `SPARK_REMOTE`, by
    `PYSPARK_SUBMIT_ARGS`, or by the `spark-defaults.conf` of a Spark installation.

    Raises:
        ConfigurationError: Spark cannot be started or reached.
    """
    return SparkSession.getActiveSession() or _started(cores)


def _started(cores: str) -> SparkSession:
    if any(name in os.environ for name in _CHOSEN_BY):
        return _start_where_chosen()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with _quiet_start():
        return _start_here(cores)


def _start_where_chosen() -> SparkSession:
    try:
        return SparkSession.builder.appName(_NAME).getOrCreate()
    except Exception as error:
        message = f"Spark could not be started where it is configured to run: {error}"
        raise ConfigurationError(message) from error


def _start_here(cores: str) -> SparkSession:
    return (
        SparkSession.builder.appName(_NAME)
        .master(f"local[{cores},{_ATTEMPTS}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        # The JVM only hands out tasks here: code that is compiled soon serves better than code that is compiled well.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.python.unix.domain.socket.dir", scratch_folder())
        # Workers keep the memory that a task frees for the next task (see mallopt(3)). By default every large array is
        # fresh memory, which the system clears page by page: a tenth of the time of a task.
        .config("spark.executorEnv.MALLOC_MMAP_MAX_", "0")
        .config("spark.executorEnv.MALLOC_TRIM_THRESHOLD_", str(2**40))
        .config("spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL", "system")
        .getOrCreate()
    )


@contextmanager
def _quiet_start() -> Iterator[None]:
    """
    Hide what the JVM prints; show it if Spark cannot start.

    The JVM inherits this process's error stream when it is launched, and prints its messages there.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        except Exception as error:
            log.seek(0)
            printed = log.read().decode("utf-8", "replace").strip()
            message = (
                "Spark could not be started; it needs Java 17 or later. The engine local needs neither (--engine"
                f" local). Its output: {printed or error}"
            )
            raise ConfigurationError(message) from error
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def check_shared(spark: SparkSession, folders: Sequence[Folder], seen: Sequence[Seen] = ()) -> None:
    """
    Make sure that folders are the same for this process and for tasks, unless all run on this machine.

    Args:
        spark: The session.
        folders: Where tasks write.
        seen: What executors must see as this process does.

    Raises:
        ConfigurationError: They are not the same, or one of them cannot write there.
    """
    if not runs_here(spark):
        context = context_of(spark)
        looks = range(_LOOKS if context is None else 2 * context.defaultParallelism)
        spark_runner(spark, folders, seen)(_look, looks, lambda done, total: None)


def _look(number: int) -> int:
    """Do nothing, in an attempt that looks at its folders."""
    return number
