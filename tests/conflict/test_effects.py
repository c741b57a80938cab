"""What an applier did, beside what its binlog shows."""

import numpy as np
import pytest

from conflict.kernels.effects import compare, in_order

CHANGED, DELETED, REFRESHED = 1, 2, 3
# Take, own epoch, group, row and effect; what is shown has no take.
Row = tuple[int, int, int, int, int]


def columns(rows: list[Row]) -> list[np.ndarray]:
    """Return rows as the kernel takes them."""
    kinds = (np.int64, np.uint64, np.int32, np.int64, np.int8)
    return [np.array([row[place] for row in rows], kind) for place, kind in enumerate(kinds)]


def compared(done: list[Row], shown: list[Row]) -> tuple[int, list[tuple[int, int, int]]]:
    """Return how many rows were compared, and where they differ."""
    count, *places = compare(*columns(done)[1:], *columns(shown)[1:], 10)
    return count, list(zip(*(column.tolist() for column in places), strict=True))


SAME = [(0, 2**63, 0, 5, CHANGED), (0, 2**63, 0, 3, DELETED), (1, 2**64 - 1, 2, 5, CHANGED)]


@pytest.mark.parametrize(
    ("done", "shown", "count", "differing"),
    [
        ([], [], 0, []),
        (SAME, SAME, 3, []),
        (SAME, [SAME[1], SAME[0], SAME[2]], 3, []),
        (SAME, [], 3, [(2**63, 0, 5), (2**63, 0, 3), (2**64 - 1, 2, 5)]),
        ([], SAME, 3, [(2**63, 0, 5), (2**63, 0, 3), (2**64 - 1, 2, 5)]),
        (SAME, SAME[:2], 3, [(2**64 - 1, 2, 5)]),
        (SAME[:1], [(0, 2**63, 0, 5, REFRESHED)], 1, [(2**63, 0, 5)]),
        # What the binlog shows twice counts once, unless the two are not the same.
        (SAME[:1], [SAME[0], SAME[0]], 1, []),
        (SAME[:1], [SAME[0], (0, 2**63, 0, 5, DELETED)], 1, [(2**63, 0, 5)]),
        # Two takes without a trace stand at one place: what the last of them did counts.
        ([(0, 7, -1, 4, CHANGED), (1, 7, -1, 4, DELETED)], [(0, 7, -1, 4, DELETED)], 1, []),
        ([(0, 7, -1, 4, CHANGED), (1, 7, -1, 4, DELETED)], [(0, 7, -1, 4, CHANGED)], 1, [(7, -1, 4)]),
        # Places that the other one does not have, in between.
        ([(0, 1, 0, 1, CHANGED)], [(0, 0, 9, 1, CHANGED), (0, 1, 0, 1, CHANGED)], 2, [(0, 9, 1)]),
    ],
)
def test_compare(done: list[Row], shown: list[Row], count: int, differing: list[tuple[int, int, int]]) -> None:
    """Rows are compared place by place, in whatever order they stand there."""
    assert compared(done, shown) == (count, differing)


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([], True),
        ([(1, 5)], True),
        ([(1, 5), (1, 5), (2, -1)], True),
        ([(1, 5), (1, 4)], False),
        ([(2**63, 0), (2**63 - 1, 9)], False),
    ],
)
def test_in_order(places: list[tuple[int, int]], expected: bool) -> None:
    """Epochs rise, and groups within an epoch."""
    epochs, groups = (
        np.array([each[place] for each in places], kind) for place, kind in ((0, np.uint64), (1, np.int32))
    )
    assert in_order(epochs, groups) == expected
