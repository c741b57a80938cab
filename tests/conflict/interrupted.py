"""
The command line, with one task that waits to be killed: `python interrupted.py FOLDER ARGUMENTS...`.

The task is the first of the third job. Its first attempt does all of its work and then waits; each attempt leaves a
file `attempt-N` in the folder that says where it ran.
"""

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession

from conflict.cli import app as cli
from conflict.history.tasks import Progress, Runner
from conflict.spark import spark_runner as runner_module

FOLDER = Path(sys.argv.pop(1))
JOB = 3
PATIENCE = 300


def interrupted(function: Callable[[Any], Any], task: Any) -> Any:
    """Run a task; wait if it is the one."""
    result = function(task)
    context = TaskContext.get()
    if context.partitionId() == 0:
        (FOLDER / "written").write_text(str(Path.cwd()))
        (FOLDER / "written").rename(FOLDER / f"attempt-{context.attemptNumber()}")
        if context.attemptNumber() == 0:
            time.sleep(PATIENCE)
            message = "nobody killed this task"
            raise TimeoutError(message)
    return result


def interrupting_runner(spark: SparkSession, *folders: Any) -> Runner:
    """Return a runner whose third job is interrupted."""
    usual = spark_runner(spark, *folders)

    def run(function: Callable[[Any], Any], tasks: Sequence[Any], progress: Progress) -> list[Any]:
        return usual(partial(interrupted, function) if next(jobs) == JOB else function, tasks, progress)

    return run


jobs = count(1)
spark_runner = runner_module.spark_runner
runner_module.spark_runner = interrupting_runner
cli.main()
