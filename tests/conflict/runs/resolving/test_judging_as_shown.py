"""Epoch applies that differ by themselves are told apart in columns as the reference engine tells them apart."""

import tempfile
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conflict.engine.columnar.fixed_point import FixedPoint
from conflict.engine.inference import moments
from conflict.engine.inference.trial_apply import TrialApply
from conflict.engine.kernels.arrays import Int64
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.runs.pipeline import run_by
from conflict.runs.resolving import resolve_job
from conflict.runs.resolving.judging_as_shown import differing_as_shown
from conflict.runs.resolving.resolve_stages import ResolveJob
from tests.conflict.runs.resolving.test_moments import EARLY, one_sided
from tests.examples import examples

# Applier, own epoch and group of an epoch apply.
Place = tuple[str, int, int]
# The function with which a world was made, and the one with which it is resolved. If these are not the same, many epoch
# applies differ.
FUNCTIONS = [
    ("NDB$EPOCH_TRANS()", "NDB$EPOCH_TRANS()"),
    ("NDB$EPOCH2_TRANS()", "NDB$EPOCH2_TRANS()"),
    ("NDB$EPOCH()", "NDB$EPOCH_TRANS()"),
    ("NDB$EPOCH2()", "NDB$EPOCH2_TRANS()"),
]


def told_apart(
    functions: tuple[str, str], seed: int, early: list[int], binlog_type: int
) -> tuple[dict[Place, bool], set[Place]]:
    """
    Look at all epoch applies with a trace of a world whose binlogs contradict the result.

    Returns:
        Whether the reference engine finds that each differs, of those that apply something; and those that columns tell
        to differ. Nothing if there is no contradiction.
    """
    by_trials, by_columns = dict[Place, bool](), set[Place]()

    def trial(*arguments: Any) -> TrialApply:
        made = TrialApply(*arguments)
        place = made.here.cluster.name, made.apply.epoch, made.apply.group
        by_trials[place] = bool(made.at_commit.differing)
        return made

    def every(job: ResolveJob, found: FixedPoint, _: Int64) -> Int64:
        traced = np.flatnonzero(found.applies.records["traced"])
        names = [cluster.name for cluster in job.run.clusters]
        for number in differing_as_shown(job, found, traced).tolist():
            applies = found.applies
            by_columns.add((names[applies.applier[number]], int(applies.epoch[number]), int(applies.group[number])))
        return traced

    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        made, function = functions
        configuration = one_sided(made, seed, early, folder, binlog_type)
        rows = [attrs.evolve(row, conflict_fn=row.conflict_fn and function) for row in configuration.replication]
        run = make_run(attrs.evolve(configuration, replication=tuple(rows)))
        patch.setattr(moments, "TrialApply", trial)
        patch.setattr(resolve_job, "differing_as_shown", every)
        run_by("local", run, Folder(str(folder / "result")))
    return by_trials, by_columns


def agree(functions: tuple[str, str], seed: int, early: list[int], binlog_type: int) -> tuple[int, int]:
    """Compare both; return how many differ, and how many do not."""
    by_trials, by_columns = told_apart(functions, seed, early, binlog_type)
    differing = {place for place, differs in by_trials.items() if differs}
    assert by_columns & by_trials.keys() == differing
    return len(differing), len(by_trials) - len(differing)


@examples(5, long=30)
@given(st.sampled_from(FUNCTIONS), st.integers(0, 10_000), EARLY, st.sampled_from([7, 8]))
def test_columns_tell_what_trials_do(functions: tuple[str, str], seed: int, early: list[int], binlog_type: int) -> None:
    """All epoch applies of worlds in which some rows were judged early, or by another function."""
    agree(functions, seed, early, binlog_type)


@pytest.mark.parametrize("functions", FUNCTIONS)
def test_some_differ_and_most_do_not(functions: tuple[str, str]) -> None:
    """A world that has both."""
    differing, others = agree(functions, 0, [3, 1], 8)
    assert 0 < differing < others


@pytest.mark.slow
@settings(max_examples=200)
@given(st.sampled_from(FUNCTIONS), st.integers(0, 10_000), EARLY, st.sampled_from([7, 8]))
def test_columns_tell_what_trials_do_in_many_worlds(
    functions: tuple[str, str], seed: int, early: list[int], binlog_type: int
) -> None:
    """The same, more often."""
    agree(functions, seed, early, binlog_type)
