"""What was applied, change by change."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from conflict.errors import HistoryError
from conflict.grid.folder import Folder
from conflict.grid.tables import table_numbers
from conflict.grid.writer import write_history
from conflict.reference.replay import resolve
from conflict.results.applied_changes import applied_changes, applied_places
from conflict.results.files import write_resolution
from conflict.results.model import Resolution
from conflict.rules.decision import Verdict
from tests.conflict.random_histories import configuration, make_history

Result = tuple[Resolution, Folder, Folder, Folder]


@pytest.fixture
def result(tmp_path: Path) -> Result:
    """A result of the reference engine, which knows one bucket, and its History in one bucket and in three."""
    history, run = make_history(7, 200, complete=True), configuration(0)
    folders = [Folder(str(tmp_path / name)) for name in ("out", "one", "three")]
    for folder, buckets in zip(folders[1:], (1, 3), strict=True):
        write_history(history, table_numbers(run), folder, buckets=buckets, epochs_per_segment=3)
    resolution = resolve(history, run.setups())
    write_resolution(folders[0], history, run.setups(), resolution)
    return resolution, *folders


def test_changes_one_by_one(result: Result) -> None:
    """Table, operation and both epochs are those that the engine decided."""
    resolution, out, history, _ = result
    names = ["source_epoch", "group", "ordinal", "epoch", "table", "operation"]
    for applier in ("A", "B"):
        found = pa.concat_tables(applied_changes(out, history, applier)).select(names).to_pylist()
        expected = [
            {**{name: getattr(each, name) for name in names}, "operation": each.operation.name}
            for each in resolution.outcomes
            if each.applier == applier and each.verdict is Verdict.APPLIED and each.ordinal >= 0
        ]
        assert expected
        assert sorted(found, key=str) == sorted(expected, key=str)


def test_another_history_is_refused(result: Result) -> None:
    """One in three buckets is not the one in one; nor is one with a change more or less in a bucket, or elsewhere."""
    _, out, one, three = result
    with pytest.raises(HistoryError, match=r"is not a result of the History .* that has 3 buckets and not 1"):
        list(applied_changes(out, three, "A"))
    (count,) = out.read_json("applied.json")["A"]
    for other in ([count - 1], [count + 1]):
        out.write_json("applied.json", {"A": other})
        with pytest.raises(HistoryError, match="its bucket 0 has not just the changes that A took"):
            list(applied_changes(out, one, "A"))
    out.write_json("applied.json", {"A": [count, 0, 0]})
    with pytest.raises(HistoryError, match="its bucket 0 has not just the changes that A took"):
        list(applied_changes(out, three, "A"))


def test_epochs_that_a_history_does_not_know(result: Result, tmp_path: Path) -> None:
    """A History of less has not all epochs that were taken."""
    _, out, _, _ = result
    history, fewer = make_history(7, 40, complete=True), Folder(str(tmp_path / "fewer"))
    write_history(history, table_numbers(configuration(0)), fewer, buckets=1, epochs_per_segment=3)
    with pytest.raises(HistoryError, match=r"in it A did not take epoch [0-9]+; give the History"):
        list(applied_changes(out, fewer, "A"))


@pytest.mark.parametrize("applier", ["A", "C"])
def test_a_folder_without_a_result(result: Result, applier: str) -> None:
    """A History holds no result; a result nothing of a cluster that was not there."""
    _, out, history, _ = result
    with pytest.raises(HistoryError, match=f"does not say which epochs {applier} took"):
        list(applied_changes(history if applier == "A" else out, history, applier))


def test_an_epoch_that_is_taken_twice_in_one_own_epoch() -> None:
    """Epoch 7 holds two changes and is taken twice in epoch 20; one of the four was not simply applied."""
    changes = pa.table({"epoch": pa.array([5, 7, 7], pa.uint64()), "ordinal": pa.array([0, 1, 4], pa.int32())})
    applies = _numbers(source_epoch=[7, 7, 9], epoch=[20, 20, 21])
    other = _numbers(source_epoch=[7], epoch=[20], ordinal=[4])
    places = applied_places(applies, changes, other)
    assert places is not None
    assert [column.tolist() for column in places] == [[1, 1, 2], [0, 0, 0]]


@pytest.mark.parametrize(
    ("epoch", "own_epoch", "ordinal"), [(5, 20, 0), (7, 21, 1), (7, 20, 0), (7, 20, 2), (8, 20, 1), (7, 19, 1)]
)
def test_an_outcome_of_nothing(epoch: int, own_epoch: int, ordinal: int) -> None:
    """Its epoch was not taken, not in that own epoch, or holds no such change."""
    changes = pa.table({"epoch": pa.array([5, 7, 7], pa.uint64()), "ordinal": pa.array([0, 1, 4], pa.int32())})
    applies = _numbers(source_epoch=[7, 9], epoch=[20, 21])
    other = _numbers(source_epoch=[epoch], epoch=[own_epoch], ordinal=[ordinal])
    assert applied_places(applies, changes, other) is None


def test_an_outcome_twice() -> None:
    """A change that was taken once has one outcome."""
    changes = pa.table({"epoch": pa.array([7], pa.uint64()), "ordinal": pa.array([1], pa.int32())})
    applies = _numbers(source_epoch=[7], epoch=[2**64 - 1])
    other = _numbers(source_epoch=[7, 7], epoch=[2**64 - 1] * 2, ordinal=[1, 1])
    assert applied_places(applies, changes, other) is None


def _numbers(**columns: list[int]) -> dict[str, np.ndarray]:
    return {name: np.array(numbers, np.int32 if name == "ordinal" else np.uint64) for name, numbers in columns.items()}
