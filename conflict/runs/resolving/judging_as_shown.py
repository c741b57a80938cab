"""
Which of the epoch applies that differ from their binlogs do so by themselves.

Most of them differ only because an earlier one did: its rows are not what they were. These are told apart in columns,
so that `conflict.engine.inference.moments` looks at few. Computes "In the columnar engine" of docs/inference.md.
"""

from __future__ import annotations

import attrs
import numpy as np

from conflict.engine.columnar.applier_stops import can_stop_in_a_pass
from conflict.engine.columnar.as_shown import JudgedAsShown, judged_as_shown
from conflict.engine.columnar.fixed_point import FixedPoint, conflicts_of, in_conflict
from conflict.engine.kernels.arrays import Conflicts, Int64
from conflict.history.tasks import Shared
from conflict.runs.resolving.bucket_tasks import BucketTask
from conflict.runs.resolving.resolve_stages import ResolveJob


@attrs.frozen
class AsShownTask:
    """
    One bucket.

    Attributes:
        task: The bucket, with the transactions in conflict as far as they are known.
        looked_at: Numbers of the epoch applies that are judged.
    """

    task: BucketTask
    looked_at: Shared[Int64]


def judge_bucket(task: AsShownTask) -> JudgedAsShown:
    """Judge epoch applies on the rows of a bucket as the binlogs show them."""
    given = task.task
    bucket = given.load_after_rounds(images=False)
    applies, conflicts = given.applies.load(), given.conflicts.load()
    return judged_as_shown(bucket, given.run.clusters, applies, conflicts, task.looked_at.load())


def differing_as_shown(job: ResolveJob, found: FixedPoint, differing: Int64) -> Int64:
    """
    Return those of some epoch applies that have to be explained by themselves.

    All of them, where that is not told apart: without functions that judge transactions, each row is looked at by
    itself; and where an operation can stop an applier, because of what was decided before.

    Args:
        job: The job, after its rounds; rows are known by where they were changed, and by whom.
        found: What it found.
        differing: Numbers of epoch applies whose binlogs show other effects, sorted.
    """
    if not job.run.needs_rounds or can_stop_in_a_pass(job.run.clusters):
        return differing
    traced = found.applies.records["traced"][differing]
    looked_at = Shared(job.run.shared, differing[traced])
    first = _judged(job, found, conflicts_of(found.applies, np.zeros((0, 2), np.int64)), looked_at)
    if not np.logical_or.reduce([each.showing for each in first]).all():
        return differing  # a log that shows nothing of its applier's work does not tell what that did to rows
    own, links = (np.concatenate([getattr(each, name) for each in first]) for name in ("conflicting", "dependencies"))
    second = _judged(job, found, conflicts_of(found.applies, in_conflict(own, links)), looked_at)
    told = np.concatenate([each.differing for each in second])
    return differing[~traced | np.isin(differing, told)]


def _judged(job: ResolveJob, found: FixedPoint, conflicts: Conflicts, looked_at: Shared[Int64]) -> list[JudgedAsShown]:
    """Judge epoch applies in all buckets, given the transactions in conflict."""
    tasks = [AsShownTask(each, looked_at) for each in job.bucket_tasks(found.applies, conflicts)]
    return job.stage("comparing", judge_bucket, tasks)
