"""Rows that are not compared: of tables that a filter drops, and such as a cluster changed without a log."""

from pathlib import Path

import attrs
import pytest

from conflict.config.configuration import Span
from conflict.config.run_file import GivenSchedule, RunFile
from conflict.errors import ConfigurationError
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.judge.case import ConflictCase
from conflict.runs.pipeline import ENGINES
from conflict.whatif.comparing.comparison import Comparison, ComparisonWanted, compare_run
from tests.corpora import RECORDINGS

OPERATIONS = RECORDINGS / "operations"


def compared(case: str, functions: str = "") -> Comparison:
    """Compare functions on a recording."""
    configuration = ConflictCase.load(OPERATIONS / case).configuration()
    run_file = RunFile(OPERATIONS / case / "run.toml", configuration, GivenSchedule(), ())
    return compare_run(run_file, ComparisonWanted(functions), engine="local")


def resolved_tables(case: str, folder: Path) -> dict[str, dict[str, dict[str, int]]]:
    """Return the figures of each table by applier as the reference engine finds them."""
    configuration = ConflictCase.load(OPERATIONS / case).configuration()
    return ENGINES["reference"](make_run(configuration), Folder(str(folder))).summary.tables


def rejected(tables: dict[str, dict[str, dict[str, int]]], left_out: tuple[str, ...]) -> dict[tuple[str, str], int]:
    """Return how many operations were rejected by applier and table, but for some tables."""
    return {
        (applier, table): figures["rejected"]
        for applier, own in tables.items()
        for table, figures in own.items()
        if table not in left_out
    }


def test_a_table_that_a_filter_drops(tmp_path: Path) -> None:
    """A drops t2 and plain; on t1 the functions of the run do what resolve finds, and it says how many are left out."""
    case = "filter_wild_do/filter_wild_do_max_type7"
    found = compared(case)
    (used,) = (row for row in found.rows if row.used)
    assert used.figures is not None
    expected = rejected(resolved_tables(case, tmp_path), ("ops.t2", "ops.plain"))
    assert rejected(used.figures.tables, ("ops.t2", "ops.plain")) == expected
    assert sum(expected.values()) > 0
    assert 0 < found.compared < found.changes
    assert found.left_out == (
        "ops.plain of B: a filter of A drops its changes (replicate_*)",
        "ops.t2 of B: a filter of A drops its changes (replicate_*)",
    )
    assert f"Of {found.changes} changes {found.changes - found.compared} are not compared" in str(found)


def test_transactions_that_can_hold_such_rows() -> None:
    """B drops t2 of A, but A judges transactions with t2 of B: that pair is named; the mirror image is compared."""
    found = compared("filter_ignore_table/filter_ignore_table_epoch_trans_type7")
    errors = {row.function: row.error for row in found.rows if row.figures is None}
    assert errors["NDB$EPOCH_TRANS() @A"] == (
        "A judges transactions, and rows that are not compared can be among theirs"
    )
    assert "NDB$EPOCH_TRANS() @B" not in errors
    assert not found.run.contradicted


@pytest.mark.parametrize("case", ["hidden_changes_epoch_type8", "hidden_changes_epoch2_trans_type7"])
def test_rows_that_were_changed_without_a_log(case: str) -> None:
    """They are no contradiction, here as in resolve; the figures are of the other rows."""
    found = compared(f"hidden_changes/{case}")
    assert not found.run.contradicted
    assert any("A changed them without a log" in each for each in found.left_out)
    assert 0 < found.compared < found.changes
    tried = {row.function for row in found.rows if row.figures is not None}
    assert "NDB$EPOCH() @A" in tried
    assert not any("TRANS" in each for each in tried)


def test_rows_without_a_log_in_the_rest(tmp_path: Path) -> None:
    """On the tables without such rows, the functions of the run do what resolve finds."""
    case = "hidden_changes/hidden_changes_epoch_type8"
    found = compared(case)
    (used,) = (row for row in found.rows if row.used)
    assert used.figures is not None
    left_out = tuple({each.table for changes in found.run.unlogged.values() for each in changes})
    expected = rejected(resolved_tables(case, tmp_path), left_out)
    assert rejected(used.figures.tables, left_out) == expected
    assert expected


def test_a_renamed_database_is_compared() -> None:
    """Nothing is left out, and the functions of the run agree with the binlogs."""
    found = compared("rewrite_db/rewrite_db_max_type7")
    assert (found.left_out, found.run.contradicted, found.compared) == ((), False, found.changes)


def test_such_rows_in_a_log_from_the_middle() -> None:
    """It is refused by name."""
    case = "filter_wild_do/filter_wild_do_max_type7"
    configuration = attrs.evolve(ConflictCase.load(OPERATIONS / case).configuration(), span=Span(empty=False))
    run_file = RunFile(OPERATIONS / case / "run.toml", configuration, GivenSchedule(), ())
    with pytest.raises(ConfigurationError, match=r"start in the middle, and rows cannot be compared: ops\.plain of B"):
        compare_run(run_file, engine="local")
