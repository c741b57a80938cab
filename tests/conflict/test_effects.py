"""What an applier did, beside what its binlog shows."""

import numpy as np
import pytest

from conflict.columnar.kernels.effects import compare, in_order, look_quickly
from conflict.columnar.kernels.search import boundaries_of

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


UPDATE, DELETE, APPLIED, REJECTED = 2, 3, 0, 1
# Takes 0 and 2 of A at (7, 0) and (2**64 - 1, 0), take 1 of B. Decisions: take, verdict, row, operation.
Decided = tuple[int, int, int, int]
TWO: list[Decided] = [(0, APPLIED, 4, UPDATE), (1, APPLIED, 4, UPDATE), (2, APPLIED, 5, DELETE)]
SHOWN: list[Row] = [(0, 7, 0, 4, CHANGED), (0, 2**64 - 1, 0, 5, DELETED)]
SENT_AGAIN: Row = (0, 2**64 - 1, 0, 3, REFRESHED)


@pytest.mark.parametrize(
    ("decided", "sent_again", "alone", "shown", "expected"),
    [
        ([], [], True, [], (0, [], [])),
        (TWO, [], True, SHOWN, (2, [], [])),
        # Changed twice in one take shows once; deleted and written again does not show as deleted.
        ([TWO[0], *TWO], [], True, SHOWN, (2, [], [])),
        ([*TWO, (2, APPLIED, 5, UPDATE)], [], True, SHOWN, (1, [2, 3], [1])),
        # What was rejected touches nothing, unless the binlog shows that it did.
        ([(0, REJECTED, 4, UPDATE)], [], True, [], (0, [], [])),
        ([(0, REJECTED, 4, UPDATE)], [], True, SHOWN[:1], (0, [0], [0])),
        (TWO, [], True, [SHOWN[0]], (1, [2], [])),
        (TWO, [], True, [SHOWN[0], (0, 8, 0, 1, CHANGED), SHOWN[1]], (2, [], [1])),
        (TWO, [], True, [SHOWN[0], SHOWN[0], SHOWN[1]], (1, [0], [0, 1])),
        (TWO, [], True, [(0, 7, 0, 4, DELETED), SHOWN[1]], (1, [0], [0])),
        # Rows that were sent again are looked at with care, and the others of the take are not.
        (TWO, [(2, 5)], True, SHOWN, (1, [2], [1])),
        ([(2, REJECTED, 3, UPDATE), *TWO[2:]], [(2, 3)], True, SHOWN[1:], (1, [0], [])),
        ([(2, REJECTED, 3, UPDATE), *TWO[2:]], [(2, 3)], True, [SENT_AGAIN, SHOWN[1]], (1, [0], [0])),
        ([*TWO[2:], (2, REJECTED, 3, UPDATE)], [(2, 3)], True, [SHOWN[1], SENT_AGAIN], (1, [1], [1])),
        ([*TWO[2:], (2, REJECTED, 3, UPDATE)], [(2, 3)], True, [SENT_AGAIN], (0, [0, 1], [0])),
        (TWO, [(0, 3), (2, 3)], True, SHOWN, (2, [], [])),
        # Takes at one place are, too.
        (TWO, [], False, SHOWN, (0, [0, 2], [0, 1])),
    ],
)
def test_a_quick_look(
    decided: list[Decided],
    sent_again: list[tuple[int, int]],
    alone: bool,
    shown: list[Row],
    expected: tuple[int, list[int], list[int]],
) -> None:
    """Takes of which the binlog shows the same are done with; all else is left for a second look."""
    apply, verdict, row, operation = (
        np.array([each[place] for each in decided], kind)
        for place, kind in enumerate((np.int32, np.int8, np.int32, np.int8))
    )
    log = (np.array([each[place] for each in sent_again], np.int64) for place in (0, 1))
    places = (np.array([7, 9, 2**64 - 1], np.uint64), np.zeros(3, np.int32), np.full(3, alone, np.bool_))
    count, left, unseen = look_quickly(
        *(*boundaries_of(apply), verdict, np.ones(len(apply), np.bool_), row, operation, *log),
        *(np.array([0, 1, 0], np.int8), *places, 0, *columns(shown)[1:], 10),
    )
    assert (count, left.tolist(), unseen.tolist()) == expected
