"""Rounds of folding: what later ones look at, and what is looked up for that."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.history_maker import Shape, configuration, make_history
from conflict.columnar.kernels.arrays import OperationKind
from conflict.columnar.kernels.links import epoch_of_rows, linked, mark_keys, reach, rows_of_keys
from conflict.columnar.kernels.passes import are_rejected
from conflict.columnar.kernels.search import boundaries_of
from conflict.grid.folder import Folder
from conflict.jobs.resolve_job import resolve_history
from conflict.jobs.runner import in_process


def marked(rows: list[tuple[int, int, int]], groups: list[tuple[int, int]]) -> list[int]:
    """Return the keys that are marked of rows (epoch, group, key), by groups (epoch, group)."""
    affected = np.zeros(10, np.bool_)
    epoch, group, key = (
        np.array([row[place] for row in rows], kind) for place, kind in enumerate((np.uint64, np.int32, np.int32))
    )
    wanted = (np.array([each[place] for each in groups], kind) for place, kind in enumerate((np.uint64, np.int64)))
    mark_keys(*boundaries_of(epoch), group, key, *wanted, affected)
    return np.flatnonzero(affected).tolist()


ROWS = [(1, 0, 4), (1, 0, 5), (1, 2, 6), (2**63, 0, 7), (2**64 - 1, -1, 8), (2**64 - 1, 3, 4)]


@pytest.mark.parametrize(
    ("groups", "keys"),
    [
        ([], []),
        ([(1, 0)], [4, 5]),
        ([(1, 1)], []),
        ([(0, 0), (1, 2), (2**64 - 1, 3)], [4, 6]),
        ([(1, 0), (1, 2), (2**63, 0), (2**64 - 1, -1)], [4, 5, 6, 7, 8]),
        ([(2**64 - 1, 4)], []),
    ],
)
def test_mark_keys(groups: list[tuple[int, int]], keys: list[int]) -> None:
    """Every row of a group is found, and no other, at any distance."""
    assert marked(ROWS, groups) == keys
    assert marked([], groups) == []


@pytest.mark.parametrize(
    ("epoch", "epochs", "starts"),
    [([], [], [0]), ([7], [7], [0, 1]), ([0, 0, 2**63, 2**64 - 1, 2**64 - 1], [0, 2**63, 2**64 - 1], [0, 2, 3, 5])],
)
def test_stretches_of(epoch: list[int], epochs: list[int], starts: list[int]) -> None:
    """The epochs of rows, and where each begins; from both, that of any row."""
    found = boundaries_of(np.array(epoch, np.uint64))
    assert [each.tolist() for each in found] == [epochs, starts]
    for step in (1, 2):
        assert epoch_of_rows(*found, np.arange(0, len(epoch), step, dtype=np.int32)).tolist() == epoch[::step]


def test_rows_of_keys() -> None:
    """The rows of some keys are found, in order."""
    key = np.array([3, 0, 3, 1, 0, 3], np.int32)
    found = [rows_of_keys(key, np.isin(np.arange(5), keys)).tolist() for keys in ([], [3], [0, 2, 4], [1, 3])]
    assert found == [[], [0, 2, 5], [1, 4], [0, 2, 3, 5]]


def test_are_rejected() -> None:
    """An operation is one of a transaction in conflict if its take holds its group among those."""
    offsets, groups = np.array([0, 0, 2, 3]), np.array([-1, 4, 4], np.int32)
    apply, group = np.array([0, 1, 1, 1, 2, 2], np.int32), np.array([4, 4, 0, -1, -1, 4], np.int32)
    found = np.ones(len(apply), np.bool_)
    are_rejected(apply, group, offsets, groups, found)
    assert found.tolist() == [False, True, False, True, False, True]


def test_linked() -> None:
    """A group depends on the one that touched the row right before it in the take; empty operations do not count."""
    apply, key = np.array([0, 0, 0, 0, 0, 1, 1], np.int32), np.array([5, 5, 5, 6, 5, 5, 5], np.int32)
    group, kind = np.array([1, 2, 2, 7, 3, 1, 4], np.int32), np.array([0, 1, 0, 0, OperationKind.EMPTY, 0, 2], np.int8)
    assert linked(apply, key, group, kind, 7).tolist() == [[5, 0, 1, 2], [5, 1, 1, 4]]


def test_many_are_linked() -> None:
    """However many pairs there are."""
    nothing, group = np.zeros(5000, np.int32), np.arange(5000, dtype=np.int32)
    pairs = linked(nothing, nothing, group, np.zeros(5000, np.int8), 1)
    assert pairs.tolist() == [[0, 0, number, number + 1] for number in range(4999)]


def test_reach() -> None:
    """All that follows from a start is reached, round in circles too."""
    offsets, successors = np.array([0, 1, 2, 3, 3, 4]), np.array([1, 2, 0, 3])
    assert np.flatnonzero(reach(np.array([1]), offsets, successors, 5)).tolist() == [0, 1, 2]
    assert np.flatnonzero(reach(np.array([], np.int64), offsets, successors, 5)).tolist() == []


@pytest.mark.parametrize("seed", [1, 2])
def test_later_rounds_fold_less(seed: int, tmp_path: Path) -> None:
    """The first round folds everything, each later one less than the one before; the last one changes nothing."""
    history, out = Folder(str(tmp_path / "history")), Folder(str(tmp_path / "out"))
    shape = Shape(20_000, keys=5_000, changes_per_epoch=20, buckets=2, binlog_type=8, seed=seed)
    changes = make_history(shape, history).changes
    run = configuration("NDB$EPOCH_TRANS")
    rounds = resolve_history(in_process, run, history, out, use_evidence=False, final_rows=False).rounds
    sizes = [each.rows for each in rounds]
    assert sizes[0] == changes
    assert len(sizes) > 2
    assert sizes == sorted(set(sizes), reverse=True)
    assert all(each.changed for each in rounds[:-1])
    assert (rounds[-1].changed, rounds[-1].in_conflict > 0) == (0, True)
