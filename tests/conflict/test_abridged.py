"""What rounds keep of decisions: abridged and expanded again, they are those that a fold of all rows makes."""

import tempfile
from typing import Any
from unittest.mock import patch

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.history_maker import Shape
from benchmarks.history_maker import configuration as benchmark_configuration
from benchmarks.history_maker import make_history as make_large_history
from conflict.columnar.decided_bucket import BucketResult
from conflict.columnar.fold_bucket import fold_bucket
from conflict.columnar.kernels.abridged import abridge
from conflict.columnar.kernels.arrays import Conflicts, Decisions, Logged
from conflict.columnar.kernels.fold import Folded
from conflict.columnar.kernels.passes import are_rejected
from conflict.columnar.rounds.decisions import Entries
from conflict.grid.folder import Folder
from conflict.grid.tables import table_numbers
from conflict.grid.writer import write_history
from conflict.jobs.resolve_job import resolve_history
from conflict.jobs.runner import in_process
from conflict.rules.decision import Cause
from tests.conflict.random_histories import BINLOG_TYPES, SETTINGS, configuration, make_history

# Those with transactions, and without roles: nothing is reflected, or rounds keep nothing.
TRANSACTIONAL = [
    number
    for number, setting in enumerate(SETTINGS)
    if any("_TRANS" in (each[2] or "") for each in setting) and not any("EPOCH2" in (each[2] or "") for each in setting)
]


def columns_of(decisions: Decisions) -> dict[str, list[Any]]:
    """Return decisions by column, with the values that were compared where some were."""
    found = {
        field.name: getattr(decisions, field.name).tolist()
        for field in attrs.fields(Decisions)
        if field.name != "compared"
    }
    return {**found, "compared": decisions.compared[decisions.cause == Cause.ROW_IN_CONFLICT].tolist()}


def what_counts(folded: Folded, conflicts: Conflicts) -> dict[str, Any]:
    """Return all that a fold says; what may have been decided besides only of transactions in conflict."""
    tracked = folded.tracked
    rejected = np.zeros(len(tracked), np.bool_)
    are_rejected(tracked.apply, tracked.group, conflicts.offsets, conflicts.groups, rejected)
    passes = columns_of(tracked)
    del passes["compared"]
    return {
        "decisions": columns_of(folded.decisions),
        "tracked": passes,
        "candidates": folded.candidates[rejected].tolist(),
        "logged": {field.name: getattr(folded.logged, field.name).tolist() for field in attrs.fields(Logged)},
        "unexplained": folded.unexplained.tolist(),
        "exists": folded.exists.tolist(),
    }


class Comparing(BucketResult):
    """A bucket, decided; on the way, all of it is folded once more and compared."""

    compared = 0

    def __init__(self, bucket: Any, sites: Any, applies: Any, conflicts: Any, folded: Any, **rest: Any) -> None:
        super().__init__(bucket, sites, applies, conflicts, folded, **rest)
        whole = fold_bucket(bucket.rows, bucket.key_table, sites, applies, conflicts, candidates=True)
        expected, found = (what_counts(each, conflicts) for each in (whole.without_vain_passes(conflicts), folded))
        for part, columns in expected.items():
            assert found[part] == columns, part
        Comparing.compared += len(folded.decisions)


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(0, 150),
    setting=st.sampled_from(TRANSACTIONAL),
    binlog_type=st.sampled_from(BINLOG_TYPES),
    skip_missing=st.booleans(),
    buckets=st.integers(1, 3),
)
@settings(max_examples=150)
def test_rounds_come_to_what_one_fold_decides(
    seed: int, steps: int, setting: int, binlog_type: int, skip_missing: bool, buckets: int
) -> None:
    """Decisions of all rounds together are, in the same order, those of one fold with the conflicts known."""
    run = attrs.evolve(configuration(setting, binlog_type=binlog_type), skip_missing=skip_missing)
    history = make_history(seed, steps, complete=True)
    with tempfile.TemporaryDirectory() as folder, patch("conflict.jobs.resolve_job.BucketResult", Comparing):
        grid, out = Folder(f"{folder}/history"), Folder(f"{folder}/out")
        write_history(history, table_numbers(run), grid, buckets=buckets, epochs_per_segment=3)
        resolve_history(in_process, run, grid, out, use_evidence=False)


@pytest.mark.parametrize("seed", [1, 2])
def test_most_decisions_do_not_deviate(seed: int) -> None:
    """Of a History in which a hundredth of the transactions is in conflict, rounds keep few decisions."""
    shape = Shape(20_000, keys=5_000, changes_per_epoch=20, buckets=2, binlog_type=8, seed=seed)
    Comparing.compared = 0
    kept = []

    def counting(folded: Folded) -> Any:
        abridged = abridge(folded)
        kept.append(len(abridged.deviations))
        return abridged

    with (
        tempfile.TemporaryDirectory() as folder,
        patch("conflict.jobs.resolve_job.BucketResult", Comparing),
        patch("conflict.columnar.rounds.transactions.abridge", counting),
    ):
        grid, out = Folder(f"{folder}/history"), Folder(f"{folder}/out")
        changes = make_large_history(shape, grid).changes
        resolve_history(in_process, benchmark_configuration("NDB$EPOCH_TRANS"), grid, out, use_evidence=False)
    assert Comparing.compared > changes * 9 // 10
    assert 0 < sum(kept[:2]) < changes // 10


def test_entries_of_other_rows_stay() -> None:
    """What an applier logged of rows that were folded again is replaced; keys of the new ones are numbered anew."""
    known = Entries(np.array([0, 1, 2, 2], np.int32), np.array([5, 6, 7, 8], np.int32))
    again = np.array([False, True, True, False])
    later = Entries(np.array([1, 0], np.int32), np.array([9, 10], np.int32))
    found = known.with_others(again, np.array([1, 2], np.int32), later)
    assert list(zip(found.key.tolist(), found.apply.tolist(), strict=True)) == [(0, 5), (2, 9), (1, 10)]
