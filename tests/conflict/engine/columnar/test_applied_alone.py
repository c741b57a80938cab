"""Final rows come from what was applied alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.inference.replay import resolve
from conflict.rules.decision import Verdict
from conflict.rules.replication_table import Role
from tests.conflict.engine.columnar.one_bucket import bucket_by_kernels
from tests.conflict.engine.columnar.test_early_rows import with_moments
from tests.conflict.histories import history, setups
from tests.conflict.worlds import random_steps, world
from tests.examples import examples

ROLES = {"A": Role.PRIMARY, "B": Role.SECONDARY}


def applied_alone(result: FoldedBucket) -> FoldedBucket:
    """Leave out what was not applied."""
    folded = result.folded.applied_alone()
    return FoldedBucket(result.bucket, result.clusters, result.applies, result.conflicts, folded)


@examples(10, long=800)
@given(st.sampled_from(["NDB$EPOCH()", "NDB$EPOCH2()", "NDB$EPOCH2_TRANS()"]), st.integers(0, 2**32))
def test_final_rows_are_the_same(function: str, seed: int) -> None:
    """Every column of every final row comes from the same image as with all decisions and all log entries."""
    both = "EPOCH2" in function
    roles = ROLES if both else {}
    made = world(function, only_first=not both, roles=roles)
    made.run(random_steps(seed, 60, "tn"))
    for cluster in (0, 1):
        made.close(cluster)
    known, tables = with_moments(made, roles), setups(function, function if both else None)
    whole = bucket_by_kernels(known, tables, resolve(known, tables))
    expected, found = whole.final, applied_alone(whole).final
    assert np.array_equal(expected.exists, found.exists)
    there = np.repeat(expected.exists, np.diff(whole.bucket.slots), axis=1)
    assert np.array_equal(expected.images[there], found.images[there])


@pytest.mark.parametrize(
    ("text", "logged", "left"),
    [
        # A reflects the update of B, which B discards: nothing is left of it.
        ("A:i1=5@1 B:<1@11 A:<11@2 B:u1=5>9@12 A:<12@3 B:<3@13", [False], []),
        # A rejects it and refreshes the row, which B applies.
        ("A:i1=5@1 B:<1@11 A:u1=5>6@2 B:u1=5>9@12 A:<12@3 B:<2@13 B:<3@14", [True], [True]),
        # Row 2 is reflected before row 1 is refreshed: the refresh gets another number.
        ("A:i1=5,i2=5@1 B:<1@11 A:<11@2 A:u1=5>6@3 B:u2=5>9,u1=5>9@12 A:<12@4 B:<3@13 B:<4@14", [False, True], [True]),
    ],
)
def test_log_entries_that_nobody_applied(text: str, logged: list[bool], left: list[bool]) -> None:
    """They go, with the decisions that applied nothing; the sources of the others follow."""
    made, tables = history(text, ROLES), setups("NDB$EPOCH2()", "NDB$EPOCH2()")
    whole = bucket_by_kernels(made, tables, resolve(made, tables))
    assert whole.folded.logged.refresh.tolist() == logged
    found = whole.folded.applied_alone()
    assert found.logged.refresh.tolist() == left
    assert set(found.decisions.verdict.tolist()) == {Verdict.APPLIED}
    source = found.decisions.source
    assert (-1 - source[source < 0]).tolist() == [*range(len(left))]
    assert np.array_equal(found.logged.key[-1 - source[source < 0]], found.decisions.key[source < 0])


def test_nothing_is_logged() -> None:
    """Then all stays as it is."""
    made, tables = history("A:i1=5@1 B:<1@11"), setups(None, None)
    whole = bucket_by_kernels(made, tables, resolve(made, tables)).folded
    assert whole.applied_alone() is whole
