"""Transactions in conflict, and rows with one unique value, over all buckets."""

import numpy as np
import pyarrow as pa
import pytest

from conflict.engine.columnar.applier_stops import Phase, StoppingOperation
from conflict.engine.columnar.fixed_point import in_conflict
from conflict.engine.columnar.keys.unique_keys import find_duplicates, states_schema
from conflict.rules.stops import ServerStop
from ndb_formats.schema.create_table import parse_schema


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
    """All that depend on a transaction in conflict are in conflict too, within one epoch apply."""
    found = in_conflict(np.array(conflicting, np.int32).reshape(-1, 2), np.array(dependencies, np.int32).reshape(-1, 3))
    assert [tuple(pair) for pair in found.tolist()] == sorted(expected)


SCHEMA = states_schema(parse_schema("CREATE TABLE t (k INT PRIMARY KEY, u INT UNIQUE)", database="d").tables)


def state(moment: int, row: int, value: bytes | None, order: int = 0, *, own: bool = False) -> dict[str, object]:
    """Return a row of cluster 0 with its unique value, after an epoch apply or an own change."""
    applied = {"order": [order, 0, 0, -1], "table": 0, "operation": 1, "foreign_epoch": 100 + moment}
    applied |= {"file": -1, "position": 0, "payload_position": 0, "row": 0}
    when = {"cluster": 0, "epoch": moment, "group": 0, "untraced": False, "number": moment}
    return {**when, "key": row, "value0": value, **({} if own else applied)}


R, S = 0, 1


@pytest.mark.parametrize(
    ("states", "applied"),
    [
        ([state(1, R, b"x"), state(2, S, b"y")], None),
        ([state(1, R, b"x"), state(2, S, b"x")], 2),
        ([state(1, R, b"x", own=True), state(2, S, b"x")], 2),
        ([state(1, R, b"x"), state(2, R, None), state(3, S, b"x")], None),
        # Two rows exchange their values in one epoch apply.
        ([state(1, R, b"x"), state(1, S, b"y"), state(2, R, b"y"), state(2, S, b"x", 1)], None),
        ([state(1, R, b"x"), state(1, S, b"x", 1)], 1),
        # An own change stops nothing; one that is not possible is left out.
        ([state(1, R, b"x"), state(2, S, b"x", own=True), state(3, S, b"y")], None),
    ],
)
def test_two_rows_with_one_value(states: list[dict[str, object]], applied: int | None):
    """An epoch apply that leaves two rows with one value stops its applier, whichever buckets the rows are in."""
    for cut in range(len(states) + 1):
        # A row is in one bucket.
        rows = {each["key"] for each in states[:cut]}
        parts = [[each for each in states if (each["key"] in rows) is inside] for inside in (True, False)]
        found = find_duplicates([pa.Table.from_pylist(part[::-1], SCHEMA) for part in parts])
        assert {cluster: each.apply for cluster, each in found.items()} == ({} if applied is None else {0: applied})


def test_which_of_the_rows_is_the_one():
    """The first row in the order of the source whose value another row has too."""
    states = [state(1, R, b"x"), state(2, S, b"x", 5), state(2, 2, b"y", 4), state(2, 3, b"y", 7), state(2, 4, b"y", 6)]
    (found,) = find_duplicates([pa.Table.from_pylist(states, SCHEMA)]).values()
    assert found == StoppingOperation(
        2, Phase.COMMIT, (5, 0, 0, -1), 0, 1, 102, -1, 0, 0, 0, ServerStop.DUPLICATE_VALUE
    )
