"""Rows of a table without a primary key that an applier does not find, and passes over (replica_skip_errors=1032)."""

from __future__ import annotations

from pathlib import Path

import pytest

from conflict.cli.commands.resolve import code_of
from conflict.cli.refusals import ExitCode
from conflict.engine.ledger.layout import rows_folder
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.results.files import read_rows
from conflict.results.run_document import RunDocument
from conflict.rules.stops import StopError
from conflict.runs.pipeline import ENGINES
from tests.conflict.keyless_logs import Arrived, Change, Epoch, keyless_run

SCHEMA = "CREATE TABLE h (a INT, b INT)"
# A changes a row that B deleted meanwhile, and inserts another one in the same epoch.
UPDATE, INSERT = ((1, 1), (1, 9)), (None, (3, 3))
OF_A = [Epoch(1, [(None, (1, 1)), (None, (2, 2))]), Epoch(5, [UPDATE, INSERT]), Epoch(6, [(None, (4, 4))])]
BEFORE = [Epoch(2, Arrived(1, [(None, (1, 1)), (None, (2, 2))])), Epoch(3, [((1, 1), None)])]


def resolved(folder: Path, engine: str, shown: list[Change], *, goes_on: bool = True) -> tuple[RunDocument, Folder]:
    """Resolve the logs where that of B shows some changes of epoch 5 of A."""
    later = [Epoch(8, Arrived(6, [(None, (4, 4))]))] * goes_on
    of_b = [*BEFORE, *([Epoch(7, Arrived(5, shown))] if shown else []), *later]
    run = make_run(keyless_run(folder, (SCHEMA, None), (OF_A, of_b)))
    out = Folder(str(folder / "out"))
    return ENGINES[engine](run, out), out


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_row_is_passed_over(engine: str, tmp_path: Path) -> None:
    """The log shows the rest of its epoch: the operation is ignored, nothing stops, and it is said."""
    found, out = resolved(tmp_path, engine, [INSERT])
    assert not found.summary.contradicted
    assert "B" not in found.summary.stops
    tally = found.summary.tables["B"]["d.h"]
    assert (tally["ignored"], tally["applied"]) == (1, 4)
    assert (found.passed_over, code_of(found)) == (True, ExitCode.WARNED)
    (table,) = found.run.schema.tables
    assert sorted(read_rows(out, rows_folder("B", "d.h"), table)) == [(2, 2), (3, 3), (4, 4)]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_an_epoch_is_passed_over(engine: str, tmp_path: Path) -> None:
    """The log shows nothing of it, but later ones."""
    found, _ = resolved(tmp_path, engine, [])
    assert [(each.applier, each.foreign_epoch) for each in found.summary.schedule.skipped] == [("B", 5)]
    assert not found.summary.contradicted
    assert not found.passed_over


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_an_applier_that_stops(engine: str, tmp_path: Path) -> None:
    """The log shows nothing after it."""
    found, _ = resolved(tmp_path, engine, [], goes_on=False)
    assert found.summary.stops["B"].error == StopError.ROW_NOT_FOUND
    assert not found.passed_over
