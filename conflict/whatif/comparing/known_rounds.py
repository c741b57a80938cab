"""
What is not known under pairs of all buckets together, where the logs start in the middle.

A transaction with a row that is not known may be rejected, and with it its other rows, in any bucket. So the buckets
are looked at in rounds until nothing is added, as `conflict.engine.columnar.fixed_point` finds the transactions in
conflict. Of the functions that were in force, the rounds also tell where the moments of judging are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import attrs
import numpy as np

from conflict.config.arguments import StageProgress
from conflict.history.tasks import Runner
from conflict.runs.rows.task_inputs import TaskInputs
from conflict.whatif.comparing.compare_tasks import DecidedTrial, DecideTask, find_unsure_in_bucket
from conflict.whatif.comparing.known_part import judging
from conflict.whatif.comparing.unsure_transactions import SettledRows, Unsure, UnsureFindings

# From where something still changes after so many rounds, any transaction may be rejected.
_MOST_ROUNDS = 50


def with_unsure(
    runner: Runner, run: TaskInputs, trials: Mapping[int, DecidedTrial], progress: StageProgress
) -> dict[int, DecidedTrial]:
    """
    Return trials with what is not known under each.

    Args:
        runner: Runs the tasks.
        run: The run as it is configured.
        trials: The trials by number.
        progress: Called with the name of the stage, tasks done, and their number.
    """
    found, settled = dict(trials), None
    for number in sorted(trials, key=lambda each: not trials[each].configured):
        unsure = _unsure(runner, run, trials[number], settled, progress)
        found[number] = attrs.evolve(trials[number], unsure=unsure)
        settled = unsure.settled if trials[number].configured else settled
    return found


def _unsure(
    runner: Runner, run: TaskInputs, trial: DecidedTrial, settled: SettledRows | None, progress: StageProgress
) -> Unsure:
    """Return what is not known under a trial; `settled`: what is known of moments from the functions in force."""
    unsure, judges = Unsure.none(len(trial.applies), settled), judging(trial.clusters).any(axis=1)
    if not judges.any() and not trial.configured:
        return unsure
    for number in range(_MOST_ROUNDS):
        tasks = DecideTask.of_buckets(run, [attrs.evolve(trial, unsure=unsure)])
        stage = f"round {number + 1} on what is not known"
        parts = runner(find_unsure_in_bucket, tasks, partial(progress, stage))
        before, unsure = unsure, unsure.joined(UnsureFindings.transactions(parts))
        if trial.configured:
            rows = {bucket: each.settled for bucket, each in enumerate(parts)}
            contradicted = np.asarray(np.logical_or.reduce([each.contradicted for each in parts]))
            unsure = attrs.evolve(unsure, settled=SettledRows(rows, contradicted | before.settled.contradicted))
        same = before.settled.contradicted == unsure.settled.contradicted
        if len(before.pairs) == len(unsure.pairs) and same.all():
            return unsure
    return attrs.evolve(unsure, settled=SettledRows.none(0)).from_the_first_after(before, np.asarray(judges))
