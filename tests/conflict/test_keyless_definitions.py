"""
Tables without a primary key whose columns change, or differ between the clusters: worked by hand, in both engines.

The logs hold what the appliers did, so that the result is compared with them too.
"""

from __future__ import annotations

from pathlib import Path

import attrs
import pyarrow.dataset as pads
import pytest

from conflict.config.configuration import Configuration
from conflict.engine.ledger.layout import rows_folder
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.results.run_document import RunDocument
from conflict.runs.pipeline import run_by
from tests.conflict.keyless_logs import BARE, Arrived, Epoch, Log, Row, Statement, keyless_run

TWO, THREE = "CREATE TABLE h (k INT, x INT)", "CREATE TABLE h (k INT, x INT, w INT DEFAULT 5)"
Rows = list[Row]


@attrs.frozen
class Case:
    """
    Two logs, and what the clusters end with.

    Attributes:
        a: The log of A.
        b: The log of B.
        rows: The rows on A and on B.
        schemas: The schema of the run, and that of B if it has its own.
    """

    a: Log
    b: Log
    rows: tuple[Rows, Rows]
    schemas: tuple[str, str | None] = (TWO, None)


def after_statement(text: str, changes: list[tuple[Row | None, Row | None]], rows: Rows) -> Case:
    """Return a case: A inserts (1, 1), (2, 2), (2, 3), B has them, A runs a statement and then makes changes."""
    inserts = [(None, (1, 1)), (None, (2, 2)), (None, (2, 3))]
    statement = Statement("A", f"ALTER TABLE h {text}")
    return Case(
        [Epoch(1, inserts), statement, Epoch(2, changes)],
        [Epoch(11, Arrived(1, inserts)), statement, Epoch(12, Arrived(2, changes))],
        (rows, rows),
    )


CASES = {
    # The rows have w = NULL then; one is deleted, one gets w = 7, the third stays.
    "a column added in place": after_statement(
        "ADD COLUMN w INT", [((1, 1, None), None), ((2, 2, None), (2, 2, 7))], [(2, 2, 7), (2, 3, None)]
    ),
    "a column added with a default": after_statement(
        "ADD COLUMN w INT DEFAULT 5", [((1, 1, 5), None), ((2, 2, 5), (2, 2, 7))], [(2, 2, 7), (2, 3, 5)]
    ),
    # The server computes the value, so no statement tells it: the rows are found by their other columns.
    "a column added with a computed default": after_statement(
        "ADD COLUMN w INT DEFAULT (x + 40)",
        [((1, 1, 41), None), ((2, 3, 43), None), ((2, 2, 42), (2, 2, 7))],
        [(2, 2, 7)],
    ),
    # Without x, the last two rows are equal; one of them is deleted, and the other one updated.
    "a column dropped": after_statement("DROP COLUMN x", [((2,), None), ((2,), (3,))], [(1,), (3,)]),
    "a column renamed": after_statement("RENAME COLUMN x TO y", [((1, 1), None), ((2, 2), (2, 9))], [(2, 3), (2, 9)]),
    "a column in another place": after_statement(
        "MODIFY COLUMN x INT FIRST", [((1, 1), None), ((2, 2), (9, 2))], [(3, 2), (9, 2)]
    ),
    # B added the column first, so what A did before it arrives without it: the default counts.
    "a change on its way": Case(
        [
            Epoch(1, [(None, (1, 1)), (None, (2, 2))]),
            Epoch(2, [((1, 1), None), ((2, 2), (2, 9))]),
            Epoch(3, [(None, (4, 4))]),
            Epoch(4, Arrived(12, [(None, (3, 3))])),
            Statement("B", "ALTER TABLE h ADD COLUMN w INT DEFAULT 5"),
            Epoch(5, [((4, 4, 5), (4, 4, 6))]),
        ],
        [
            Epoch(11, Arrived(1, [(None, (1, 1)), (None, (2, 2))])),
            Epoch(12, [(None, (3, 3))]),
            Statement("B", "ALTER TABLE h ADD COLUMN w INT DEFAULT 5"),
            Epoch(13, Arrived(2, [((1, 1, 5), None), ((2, 2, 5), (2, 9, 5))])),
            Epoch(14, Arrived(3, [(None, (4, 4, 5))])),
            Epoch(15, Arrived(5, [((4, 4, 5), (4, 4, 6))])),
        ],
        ([(2, 9, 5), (3, 3, 5), (4, 4, 6)], [(2, 9, 5), (3, 3, 5), (4, 4, 6)]),
    ),
    # B's third column gets its default. B changes it, which A's table does not show; so A's delete finds the row.
    "B has a column more": Case(
        [
            Epoch(1, [(None, (1, 1)), (None, (2, 2)), (None, (3, 3))]),
            Epoch(2, Arrived(12, [((2, 2), (2, 2))])),
            Epoch(3, [((1, 1), None), ((2, 2), (2, 9))]),
            Epoch(4, [((3, 3), (3, 9))]),
        ],
        [
            Epoch(11, Arrived(1, [(None, (1, 1, 5)), (None, (2, 2, 5)), (None, (3, 3, 5))])),
            Epoch(12, [((2, 2, 5), (2, 2, 6))]),
            Epoch(13, Arrived(3, [((1, 1, 5), None), ((2, 2, 6), (2, 9, 6))])),
            Epoch(14, Arrived(4, [((3, 3, 5), (3, 9, 5))])),
        ],
        ([(2, 9), (3, 9)], [(2, 9, 6), (3, 9, 5)]),
        schemas=(TWO, THREE),
    ),
    # B lacks the third column: the two rows are equal there, and it does not matter which of them goes.
    "A has a column more": Case(
        [Epoch(1, [(None, (1, 1, 1)), (None, (1, 1, 2))]), Epoch(2, [((1, 1, 2), None)])],
        [Epoch(11, Arrived(1, [(None, (1, 1))] * 2)), Epoch(12, Arrived(2, [((1, 1), None)]))],
        ([(1, 1, 1)], [(1, 1)]),
        schemas=(THREE, TWO),
    ),
}


def resolve(by: str, configuration: Configuration, out: Folder) -> RunDocument:
    """Resolve a run with an engine."""
    return run_by(by, make_run(configuration), out)


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rows_of_changing_tables(case: Case, engine: str, tmp_path: Path) -> None:
    """Rows are found after their columns changed, nothing stops in error, and the logs agree."""
    run, out = keyless_run(tmp_path, case.schemas, (case.a, case.b)), Folder(str(tmp_path / "out"))
    summary = resolve(engine, run, out).summary
    assert summary.stops == {}
    assert summary.contradicted == 0
    assert not any(summary.differing_rows.values())
    assert tuple(rows_of(out, side) for side in "AB") == case.rows


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_row_without_columns_is_one_of_defaults(engine: str, tmp_path: Path) -> None:
    """Each of two such inserts makes a row on both clusters, and an update finds one of them by its values."""
    update = ((None, None, 5), (3, None, 5))
    default = (None, (None, None, 5))
    a = [Epoch(1, [(None, (1, 1, 1)), (None, BARE), (None, BARE), (None, (2, 2, 2))]), Epoch(2, [update])]
    inserts = [(None, (1, 1, 1)), default, default, (None, (2, 2, 2))]
    b = [Epoch(11, Arrived(1, inserts)), Epoch(12, Arrived(2, [update]))]
    out = Folder(str(tmp_path / "out"))
    assert resolve(engine, keyless_run(tmp_path, (THREE, None), (a, b)), out).summary.stops == {}
    for side in "AB":
        assert rows_of(out, side) == [(1, 1, 1), (2, 2, 2), (3, None, 5), (None, None, 5)]


def rows_of(out: Folder, side: str) -> Rows:
    """Return the final rows of the table on a cluster."""
    path = rows_folder(side, "d.h")
    found = pads.dataset(f"{out.uri}/{path}").to_table().to_pylist() if out.exists(path) else []
    return sorted((tuple(row.values()) for row in found), key=str)
