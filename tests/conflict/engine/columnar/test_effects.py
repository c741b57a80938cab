"""What an applier does to rows, compared with what its binlog shows."""

import numpy as np
import pytest

from conflict.engine.kernels.effects import (
    DecidedRows,
    SentRows,
    ShownRows,
    compare_with_binlog,
    effects_on_rows,
    is_in_order,
)
from conflict.history.shown_effects import Effect
from conflict.rules.decision import Verdict
from ndb_formats.events.rows_event import Operation

CHANGED, DELETED, REFRESHED, ABSENT = (
    int(each) for each in (Effect.CHANGED, Effect.DELETED, Effect.REFRESHED, Effect.REFRESHED_ABSENT)
)
KEYS = 10
# Own epoch, group, row and effect.
Row = tuple[int, int, int, int]


def columns(rows: list[tuple[int, ...]], kinds: tuple[type, ...]) -> list[np.ndarray]:
    """Return rows as columns."""
    return [np.array([row[place] for row in rows], kind) for place, kind in enumerate(kinds)]


def shown_rows(rows: list[Row]) -> ShownRows:
    """Return rows in the form that the kernel reads."""
    return ShownRows(*columns([*rows], (np.uint64, np.int32, np.int64, np.int8)), np.zeros(len(rows), np.uint64))


def compared(done: list[Row], shown: list[Row]) -> tuple[int, list[tuple[int, int, int]]]:
    """Return how many rows were compared, and epoch, group and row of those that differ."""
    # An epoch apply has a row once: when a row comes again in its group, it is of a later one.
    apply = [sum(before[:3] == row[:3] for before in done[:place]) for place, row in enumerate(done)]
    count, *differing = compare_with_binlog(shown_rows(done), np.array(apply, np.int64), shown_rows(shown), KEYS)
    return count, list(zip(*(column.tolist() for column in differing[:3]), strict=True))


SAME = [(2**63, 0, 5, CHANGED), (2**63, 0, 3, DELETED), (2**64 - 1, 2, 5, CHANGED)]


@pytest.mark.parametrize(
    ("done", "shown", "count", "differing"),
    [
        ([], [], 0, []),
        (SAME, SAME, 3, []),
        (SAME, [SAME[1], SAME[0], SAME[2]], 3, []),
        (SAME, [], 3, [(2**63, 0, 5), (2**63, 0, 3), (2**64 - 1, 2, 5)]),
        ([], SAME, 3, [(2**63, 0, 5), (2**63, 0, 3), (2**64 - 1, 2, 5)]),
        (SAME, SAME[:2], 3, [(2**64 - 1, 2, 5)]),
        (SAME[:1], [(2**63, 0, 5, REFRESHED)], 1, [(2**63, 0, 5)]),
        # What the binlog shows twice counts once, unless the two effects differ.
        (SAME[:1], [SAME[0], SAME[0]], 1, []),
        (SAME[:1], [SAME[0], (2**63, 0, 5, DELETED)], 1, [(2**63, 0, 5)]),
        # Two epoch applies without a trace can have the same group: the effect of the last one counts.
        ([(7, -1, 4, CHANGED), (7, -1, 4, DELETED)], [(7, -1, 4, DELETED)], 1, []),
        ([(7, -1, 4, CHANGED), (7, -1, 4, DELETED)], [(7, -1, 4, CHANGED)], 1, [(7, -1, 4)]),
        ([(7, -1, 4, CHANGED)] * 2, [(7, -1, 4, CHANGED)] * 2, 1, []),
        # A group in between that only one of the two has.
        ([(1, 0, 1, CHANGED)], [(0, 9, 1, CHANGED), (1, 0, 1, CHANGED)], 2, [(0, 9, 1)]),
    ],
)
def test_compare(done: list[Row], shown: list[Row], count: int, differing: list[tuple[int, int, int]]) -> None:
    """Rows are compared group by group, in whatever order a group has them."""
    assert compared(done, shown) == (count, differing)


DIGEST = 7 << 32 | 9
SAME_COLUMNS, OTHER_COLUMNS = 7 << 32 | 8, 6 << 32 | 9


@pytest.mark.parametrize(
    ("given", "shown", "differs"),
    [
        (DIGEST, DIGEST, False),
        (DIGEST, SAME_COLUMNS, True),
        # Values can be compared where both carry the same columns.
        (DIGEST, OTHER_COLUMNS, False),
        (0, DIGEST, False),
        (DIGEST, 0, False),
    ],
)
def test_values_are_compared(given: int, shown: int, differs: bool) -> None:
    """A row with the same effect differs if it was given other values."""
    rows = [(5, 1, 2, CHANGED), (5, 1, 3, CHANGED)]
    mine, theirs = (shown_rows(rows)._replace(digest=np.array([each, DIGEST], np.uint64)) for each in (given, shown))
    count, epoch, group, row, derived, seen = compare_with_binlog(mine, np.zeros(2, np.int64), theirs, KEYS)
    assert count == 2
    found = list(zip(*(each.tolist() for each in (epoch, group, row, derived, seen)), strict=True))
    assert found == ([(5, 1, 2, 1 << CHANGED, 1 << CHANGED)] if differs else [])


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([], True),
        ([(1, 5)], True),
        ([(1, 5), (1, 5), (2, -1)], True),
        ([(1, 5), (1, 4)], False),
        ([(2**63, 0), (2**63 - 1, 9)], False),
    ],
)
def test_in_order(groups: list[tuple[int, int]], expected: bool) -> None:
    """Epochs ascend, and groups within an epoch."""
    assert is_in_order(*columns([*groups], (np.uint64, np.int32))) == expected


APPLIED, REJECTED = int(Verdict.APPLIED), int(Verdict.REJECTED)
WRITE, UPDATE, DELETE = (int(each) for each in Operation)
# Epoch applies 0 and 2 are of the first applier, 1 of the second. Decisions: epoch apply, verdict, whether the row
# existed, row, operation.
Decided = tuple[int, int, bool, int, int]
TWO: list[Decided] = [(0, APPLIED, True, 4, UPDATE), (1, APPLIED, True, 4, UPDATE), (2, APPLIED, True, 5, DELETE)]
EFFECTS_OF_TWO = [(0, 4, CHANGED), (2, 5, DELETED)]


@pytest.mark.parametrize(
    ("decided", "sent", "expected"),
    [
        ([], [], []),
        (TWO, [], EFFECTS_OF_TWO),
        # Several operations on a row have one effect: a row that is deleted and written again is changed.
        ([TWO[0], *TWO], [], EFFECTS_OF_TWO),
        ([*TWO, (2, APPLIED, False, 5, WRITE)], [], [(0, 4, CHANGED), (2, 5, CHANGED)]),
        # A row that is written and deleted again was not there before and is not there after: no effect.
        ([(0, APPLIED, False, 4, WRITE), (0, APPLIED, True, 4, DELETE)], [], []),
        ([(0, APPLIED, False, 4, WRITE)], [], [(0, 4, CHANGED)]),
        # A rejected operation has no effect, unless its row is refreshed; a refresh hides other effects.
        ([(0, REJECTED, True, 4, UPDATE)], [], []),
        ([(0, REJECTED, True, 4, UPDATE)], [(0, 4, WRITE)], [(0, 4, REFRESHED)]),
        ([(0, REJECTED, False, 4, UPDATE)], [(0, 4, DELETE)], [(0, 4, ABSENT)]),
        (TWO, [(2, 5, WRITE)], [(0, 4, CHANGED), (2, 5, REFRESHED)]),
        (TWO, [(0, 3, WRITE), (2, 3, DELETE)], [(0, 4, CHANGED), (0, 3, REFRESHED), (2, 5, DELETED), (2, 3, ABSENT)]),
    ],
)
def test_effects_of_an_applier(
    decided: list[Decided], sent: list[tuple[int, int, int]], expected: list[tuple[int, int, int]]
) -> None:
    """An epoch apply has one effect on each row that it touches; the other applier's work does not count."""
    apply, *others = columns([*decided], (np.int32, np.int8, np.bool_, np.int32, np.int8))
    decisions = DecidedRows(apply, np.arange(len(decided), dtype=np.int32), *others)
    entries = SentRows(*columns([*sent], (np.int64, np.int32, np.int8)))
    digests = np.arange(100, 100 + len(decided), dtype=np.uint64)
    *found, given = effects_on_rows(0, np.array([0, 1, 0], np.int8), decisions, entries, digests, KEYS)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected
    for number, row, effect, digest in zip(*(column.tolist() for column in (*found, given)), strict=True):
        mine = [(each[0], each[3], each[1]) == (number, row, APPLIED) for each in decided]
        changes = [100 + place for place, each in enumerate(mine) if each]
        assert digest == (0 if effect in (REFRESHED, ABSENT) else changes[-1])
