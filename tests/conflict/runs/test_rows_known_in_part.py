"""Rows with values that only the server computed, in both engines: worked by hand."""

from pathlib import Path

import pytest

from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.results.run_document import RunDocument
from conflict.runs.pipeline import run_by
from tests.conflict.keyless_logs import Arrived, Change, Epoch, Log, Statement, keyless_run

TABLE = "CREATE TABLE h (k INT PRIMARY KEY, x INT)"
ADDED = Statement("A", "ALTER TABLE h ADD w INT DEFAULT (x + 40)")
INSERTED: list[Change] = [(None, (1, 1)), (None, (2, 2)), (None, (3, 3))]


def resolved(engine: str, logs: tuple[Log, Log], folder: Path) -> RunDocument:
    """Return the result of logs of a table with a primary key."""
    run = make_run(keyless_run(folder, (TABLE, None), logs, key=1))
    return run_by(engine, run, Folder(str(folder / "out")))


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_rows_can_differ_in_what_is_known_of_them(engine: str, tmp_path: Path) -> None:
    """Both clusters update x of row 1, whose w nobody knows, and apply the other's update afterwards."""
    mine: list[Change] = [((1, 1), (1, 5)), ((3, 3, 43), (3, 4, 43))]
    theirs: list[Change] = [((1, 1), (1, 6)), ((2, 2, 42), (2, 3, 42))]
    logs: tuple[Log, Log] = (
        [Epoch(1, INSERTED), ADDED, Epoch(2, mine), Epoch(3, Arrived(12, [((1, 5), (1, 6)), theirs[1]]))],
        [Epoch(11, Arrived(1, INSERTED)), ADDED, Epoch(12, theirs), Epoch(13, Arrived(2, [((1, 6), (1, 5)), mine[1]]))],
    )
    summary = resolved(engine, logs, tmp_path).summary
    assert summary.contradicted == 0
    assert summary.differing_rows == {"d.h": 1}
    assert summary.not_known == {name: {"d.h": {"rows": 0, "rows_in_part": 1, "columns": 1}} for name in "AB"}
    assert summary.rows == {name: {"d.h": 2} for name in "AB"}
