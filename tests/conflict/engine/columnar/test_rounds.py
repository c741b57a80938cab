"""Rounds of folding: which rows later rounds fold, and the lookups behind that."""

from pathlib import Path

import numpy as np
import pytest

from conflict.engine.kernels.apply_order import boundaries_of
from conflict.engine.kernels.arrays import OperationKind
from conflict.engine.kernels.column_scans import epoch_of_rows, mark_keys, row_numbers_of_keys
from conflict.engine.kernels.dependencies import dependent_groups, reachable
from conflict.engine.kernels.passes import are_rejected
from conflict.engine.ledger.layout import ResultOptions
from conflict.history.grid.folder import Folder
from conflict.history.model import Cluster, History
from conflict.history.tasks import in_process
from conflict.history.timeline import RowChange, Transaction
from conflict.runs.resolving.resolve_job import resolve_history
from tests.conflict.random_histories import SETTINGS, _Maker, configuration
from tests.conflict.written_histories import write_history

TRANSACTIONAL = SETTINGS.index([("judged", 1, "NDB$EPOCH_TRANS()")])


def marked(rows: list[tuple[int, int, int]], groups: list[tuple[int, int]]) -> list[int]:
    """Return the keys that are marked of rows (epoch, group, key), by groups (epoch, group)."""
    found = np.zeros(10, np.bool_)
    epoch, group, key = (
        np.array([row[place] for row in rows], kind) for place, kind in enumerate((np.uint64, np.int32, np.int32))
    )
    chosen = (np.array([each[place] for each in groups], kind) for place, kind in enumerate((np.uint64, np.int64)))
    mark_keys(*boundaries_of(epoch), group, key, *chosen, found)
    return np.flatnonzero(found).tolist()


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
def test_keys_of_groups_are_marked(groups: list[tuple[int, int]], keys: list[int]) -> None:
    """Every row of a group is found, and no other, at any distance."""
    assert marked(ROWS, groups) == keys
    assert marked([], groups) == []


@pytest.mark.parametrize(
    ("epoch", "epochs", "starts"),
    [([], [], [0]), ([7], [7], [0, 1]), ([0, 0, 2**63, 2**64 - 1, 2**64 - 1], [0, 2**63, 2**64 - 1], [0, 2, 3, 5])],
)
def test_where_epochs_begin(epoch: list[int], epochs: list[int], starts: list[int]) -> None:
    """The epochs of rows, and where each begins; from both, that of any row."""
    found = boundaries_of(np.array(epoch, np.uint64))
    assert [each.tolist() for each in found] == [epochs, starts]
    for step in (1, 2):
        assert epoch_of_rows(*found, np.arange(0, len(epoch), step, dtype=np.int32)).tolist() == epoch[::step]


def test_rows_of_keys_are_found() -> None:
    """The rows of some keys are found, in order."""
    key = np.array([3, 0, 3, 1, 0, 3], np.int32)
    found = [row_numbers_of_keys(key, np.isin(np.arange(5), keys)).tolist() for keys in ([], [3], [0, 2, 4], [1, 3])]
    assert found == [[], [0, 2, 5], [1, 4], [0, 2, 3, 5]]


def test_operations_of_transactions_in_conflict_are_rejected() -> None:
    """An operation is one of a transaction in conflict if its epoch apply has its group among those."""
    offsets, groups = np.array([0, 0, 2, 3]), np.array([-1, 4, 4], np.int32)
    apply, group = np.array([0, 1, 1, 1, 2, 2], np.int32), np.array([4, 4, 0, -1, -1, 4], np.int32)
    found = np.ones(len(apply), np.bool_)
    are_rejected(apply, group, offsets, groups, found)
    assert found.tolist() == [False, True, False, True, False, True]


def test_groups_depend_on_the_last_one_that_touched_the_row() -> None:
    """A group depends on the group right before it on a row, in one epoch apply; empty operations do not count."""
    apply, key = np.array([0, 0, 0, 0, 0, 1, 1], np.int32), np.array([5, 5, 5, 6, 5, 5, 5], np.int32)
    group, kind = np.array([1, 2, 2, 7, 3, 1, 4], np.int32), np.array([0, 1, 0, 0, OperationKind.EMPTY, 0, 2], np.int8)
    assert dependent_groups(apply, key, group, kind, 7).tolist() == [[5, 0, 1, 2], [5, 1, 1, 4]]


def test_there_can_be_many_dependencies() -> None:
    """All pairs are found, however many there are."""
    nothing, group = np.zeros(5000, np.int32), np.arange(5000, dtype=np.int32)
    pairs = dependent_groups(nothing, nothing, group, np.zeros(5000, np.int8), 1)
    assert pairs.tolist() == [[0, 0, number, number + 1] for number in range(4999)]


def test_successors_are_reachable() -> None:
    """All successors are reached, in cycles too."""
    offsets, successors = np.array([0, 1, 2, 3, 3, 4]), np.array([1, 2, 0, 3])
    assert np.flatnonzero(reachable(np.array([1]), offsets, successors, 5)).tolist() == [0, 1, 2]
    assert np.flatnonzero(reachable(np.array([], np.int64), offsets, successors, 5)).tolist() == []


class _IdentifiedMaker(_Maker):
    """Makes Histories over many keys in which no operation stops an applier."""

    def __init__(self, seed: int, steps: int, keys: int) -> None:
        super().__init__(seed, steps, complete=True)
        self.names, self.keys, self.set_back, self.apart = ["db.judged", "db.other"], keys, False, False

    def change(self, side: str, transaction: int | None) -> RowChange:
        """Return a change, which has a transaction id."""
        return super().change(side, self.transactions << 32 if transaction is None else transaction)


@pytest.mark.parametrize("seed", [1, 2])
def test_later_rounds_fold_less(seed: int, tmp_path: Path) -> None:
    """The first round folds everything, each later one less than the one before; the last one changes nothing."""
    folder, out, run = Folder(str(tmp_path / "history")), Folder(str(tmp_path / "out")), configuration(TRANSACTIONAL)
    maker = _IdentifiedMaker(seed, 3000, keys=2000)
    for _ in range(3000):
        maker.step()
    sides = tuple(Cluster(side, number, tuple(maker.timeline[side])) for number, side in enumerate("AB", start=1))
    made = History(sides, maker.layouts)
    write_history(made, run.numbers, folder, buckets=2, epochs_per_segment=50)
    rounds = resolve_history(in_process, run, folder, out, ResultOptions(final_rows=False), use_evidence=False).rounds
    sizes = [each.rows for each in rounds]
    assert sizes[0] == sum(
        len(item.changes) for side in sides for item in side.timeline if isinstance(item, Transaction)
    )
    assert len(sizes) > 2
    assert sizes == sorted(set(sizes), reverse=True)
    assert all(each.changed for each in rounds[:-1])
    assert (rounds[-1].changed, rounds[-1].in_conflict > 0) == (0, True)
