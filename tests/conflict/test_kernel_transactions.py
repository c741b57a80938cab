"""Transactions in conflict, and rows that hold one unique value, as the driver puts them together."""

import numpy as np
import pytest

from conflict.jobs.rounds import in_conflict
from conflict.unique_values import UniqueState, find_duplicates
from conflict.unusable import Phase, Unusable


@pytest.mark.parametrize(
    ("conflicting", "dependencies", "expected"),
    [
        ([], [(0, 1, 2)], set()),
        ([(0, 1)], [], {(0, 1)}),
        ([(0, 1)], [(0, 1, 2), (0, 2, 3), (0, 4, 5)], {(0, 1), (0, 2), (0, 3)}),
        ([(0, 2)], [(0, 1, 2)], {(0, 2)}),
        ([(0, 1)], [(0, 1, 2), (0, 2, 1)], {(0, 1), (0, 2)}),
        ([(0, 1)], [(1, 1, 2)], {(0, 1)}),
        ([(0, -1), (2**31 - 1, 0)], [(0, -1, 2**31 - 1)], {(0, -1), (0, 2**31 - 1), (2**31 - 1, 0)}),
    ],
)
def test_dependents_are_in_conflict(
    conflicting: list[tuple[int, int]], dependencies: list[tuple[int, int, int]], expected: set[tuple[int, int]]
):
    """All that depend on a transaction in conflict are, transitively, but in its own take alone."""
    found = in_conflict(np.array(conflicting, np.int32).reshape(-1, 2), np.array(dependencies, np.int32).reshape(-1, 3))
    assert [tuple(pair) for pair in found.tolist()] == sorted(expected)


def stop(take: int) -> Unusable:
    """Return the operation that a take stops at."""
    return Unusable(take, Phase.COMMIT, (take,), 0, 1, 100 + take, -1, 0, 0)


def state(moment: int, row: bytes, value: bytes | None, place: int = 0, *, own: bool = False) -> UniqueState:
    """Return a row of cluster 0 with a unique value, or without a row; a take unless it is an own change."""
    entries = () if value is None else ((0, 0, value),)
    return UniqueState(0, (moment, 0, False, moment), (place,), row, entries, None if own else stop(moment))


@pytest.mark.parametrize(
    ("states", "taken"),
    [
        ([state(1, b"r", b"x"), state(2, b"s", b"y")], None),
        ([state(1, b"r", b"x"), state(2, b"s", b"x")], 2),
        ([state(1, b"r", b"x", own=True), state(2, b"s", b"x")], 2),
        ([state(1, b"r", b"x"), state(2, b"r", None), state(3, b"s", b"x")], None),
        # Two rows exchange their values in one take.
        ([state(1, b"r", b"x"), state(1, b"s", b"y"), state(2, b"r", b"y"), state(2, b"s", b"x", 1)], None),
        ([state(1, b"r", b"x"), state(1, b"s", b"x", 1)], 1),
        # An own change cannot stop anything; what it could not do is not taken over.
        ([state(1, b"r", b"x"), state(2, b"s", b"x", own=True), state(3, b"s", b"y")], None),
    ],
)
def test_two_rows_with_one_value(states: list[UniqueState], taken: int | None):
    """A take that leaves two rows with the same unique value stops its applier."""
    found = find_duplicates(reversed(states))
    assert {cluster: each.take for cluster, each in found.items()} == ({} if taken is None else {0: taken})
