"""
The stage that looks for rows whose keys are spelled in several ways, in a History: a task for each bucket.
"""

from __future__ import annotations

from functools import partial

import attrs
import numpy as np

from conflict.config.arguments import StageProgress
from conflict.engine.columnar.bucket import CarefulRows
from conflict.engine.columnar.keys.respelled_keys import can_be_respelled, respelled_keys
from conflict.engine.kernels.arrays import Int64
from conflict.history.tasks import Runner
from conflict.runs.rows.task_inputs import TaskInputs


def with_respelled(runner: Runner, run: TaskInputs, progress: StageProgress) -> TaskInputs:
    """
    Make the rows whose keys are spelled in several ways careful ones.

    Raises:
        FormatError: An image is cut off.
    """
    if not any(map(can_be_respelled, run.numbers.tables)):
        return run
    tasks = [_RespelledTask(run, bucket) for bucket in range(run.manifest.buckets)]
    found = enumerate(runner(_RespelledTask.find, tasks, partial(progress, "comparing keys")))
    keys = {bucket: own for bucket, own in found if len(own)}
    if not keys:
        return run
    respelled = CarefulRows(np.zeros(len(run.numbers.tables), np.bool_), keys)
    return attrs.evolve(run.with_careful(respelled), respelled=respelled)


@attrs.frozen
class _RespelledTask:
    """A bucket in which keys are looked for that are spelled in several ways."""

    run: TaskInputs
    bucket: int

    def find(self) -> Int64:
        """Return their numbers."""
        return respelled_keys(self.run.load_bucket(self.bucket))
