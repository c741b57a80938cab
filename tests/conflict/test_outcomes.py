"""What was applied, in stretches and one by one."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from conflict.applied_changes import applied_changes
from conflict.decision import Verdict
from conflict.engine.replay import resolve
from conflict.errors import HistoryError
from conflict.grid import Folder
from conflict.grid_writer import write_history
from conflict.kernels.outcomes import applied_stretches
from conflict.manifest import table_numbers
from conflict.resolution import Resolution
from conflict.result_files import write_resolution
from tests.conflict.random_histories import configuration, make_history

Result = tuple[Resolution, Folder, Folder, Folder]
APPLIED_ONE, REJECTED = int(Verdict.APPLIED), int(Verdict.REJECTED)


def test_stretches_end_where_something_else_happened() -> None:
    """Takes 0 and 2 are of applier 0; what was rejected, logged by the other applier or left out ends a stretch."""
    applier = np.array([0, 1, 0], np.int8)
    taken, starts = np.array([0, 1, 2], np.int32), np.array([0, 3, 4, 10], np.int32)
    source = np.array([0, 1, 2, 0, 3, 4, -1, 5, 7, 8], np.int32)
    verdict = np.array([APPLIED_ONE] * 10, np.int8)
    verdict[9] = REJECTED
    takes, first, last, others = applied_stretches(applier, 0, taken, starts, source, verdict)
    assert list(zip(takes.tolist(), first.tolist(), last.tolist(), strict=True)) == [(0, 0, 2), (2, 3, 5), (2, 7, 7)]
    assert others.tolist() == [6, 9]


@pytest.fixture
def result(tmp_path: Path) -> Result:
    """A result of the reference engine, which knows one bucket, and its History in one bucket and in three."""
    history, run = make_history(7, 200, complete=True), configuration(0)
    folders = [Folder(str(tmp_path / name)) for name in ("out", "one", "three")]
    for folder, buckets in zip(folders[1:], (1, 3), strict=True):
        write_history(history, table_numbers(run), folder, buckets=buckets, epochs_per_run=3)
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
    """Stretches over all keys are not those of one bucket of three."""
    _, out, _, three = result
    with pytest.raises(HistoryError, match="is not a result of the History"):
        list(applied_changes(out, three, "A"))
