"""`repair --reapply`: lost changes are applied again where they fit; judged by continued binlogs and both engines."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import conflict
from conflict.config.run_file import GivenSchedule, RunFile
from conflict.judge.case import ConflictCase
from conflict.operating.repairing.ended_run import EndedRun, ended_as
from conflict.operating.repairing.fitting import Reapplied
from conflict.operating.repairing.planning import REAPPLY, Planned, Wanted, planned
from conflict.operating.repairing.reading_lost import read_lost
from conflict.operating.repairing.reapply import Allowed, lost_in_history, reapplied
from conflict.operating.repairing.winners import rules_of
from conflict.results.conflicts import ALL
from conflict.results.result import Result
from conflict.runs.run_inputs import run_of
from tests.conflict.operating.repairing.continued_logs import continued
from tests.conflict.operating.repairing.test_repair import folders
from tests.corpora import RECORDINGS

EPOCH = RECORDINGS / "conflict" / "epoch"
# Their tables have columns of other times, several SQL nodes log, or databases are renamed: logs cannot be continued.
NOT_CONTINUED = ("ddl_", "channel_", "every_node_", "rewrite_db")
MODEL: dict[str, Any] = {
    "seconds": 1,
    "seed": 5,
    "function": "NDB$MAX(x)",
    "binlog_type": 6,
    "recordcount": 100,
    "workload": {"transactions_per_second": 60, "readproportion": 0.0, "updateproportion": 1.0, "columnsperupdate": 1},
    "clusters": {"A": {"link": {"latency_ms": 100}}, "B": {"link": {"latency_ms": 100}}},
}


def run_of_recording(folder: Path) -> RunFile:
    """Return the run of a recording."""
    case = ConflictCase.load(folder)
    return RunFile(case.path / "run.toml", case.configuration(), GivenSchedule(), ())


def replanned(
    run: RunFile, out: Path, wins: str = "newest", *, raises: bool = False
) -> tuple[Result, EndedRun, Planned]:
    """Resolve a run, and plan its repair by a rule, with all lost changes that fit."""
    result = conflict.resolve(run, out=out, engine="reference", policy="needs")
    lost = read_lost(result, ALL)
    end = ended_as(result, run_of(run), lost)
    rules = rules_of({"*": wins}, end.clusters, result.tables, deletes=True)
    changes = lost_in_history(end, lost)
    plan = planned(end, Wanted(rules, True, changes, True, raises, 3))
    assert plan.proof.holds
    assert len(changes) == len(lost)
    assert plan.reapplied + len(plan.reviewed_of(REAPPLY)) == len(lost)
    reviewed = [each.change.origin for each in plan.reviewed_of(REAPPLY) if each.change is not None]
    assert len(set(reviewed)) == len(reviewed)
    return result, end, plan


def continued_run(end: EndedRun, plan: Planned, folder: Path) -> RunFile:
    """Return the run of binlogs that go on with a plan."""
    folder.mkdir()
    return RunFile(folder / "run.toml", continued(end, plan, folder), GivenSchedule(), ())


def assert_carried_out(end: EndedRun, plan: Planned, folder: Path) -> None:
    """Binlogs that go on with the plan contradict nothing, and leave the rows different that the proof says."""
    run = continued_run(end, plan, folder / "logs")
    expected = Counter(table for table, _ in plan.proof.differing)
    for engine in ("reference", "local"):
        found = conflict.resolve(run, out=folder / engine, engine=engine, policy="needs").run
        assert found["contradicted_by_binlogs"] == 0
        assert Counter(found["differing_rows"]) == expected


def judge(folder: Path, out: Path) -> None:
    """Plan a recording's repair; where anything is repaired, go on with its logs."""
    _, end, plan = replanned(run_of_recording(folder), out / "result")
    if plan.files and not end.result.run["contradicted_by_binlogs"]:
        assert_carried_out(end, plan, out)


@pytest.mark.parametrize("name", ["extra_gci_bits_0_type7", "random_28_type8"])
def test_lost_changes_end_once(name: str, tmp_path: Path) -> None:
    """Two recordings at every commit: one with a lost change that fits, one with rows that differ."""
    judge(EPOCH / name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    [each for each in folders(RECORDINGS) if not each.name.startswith(NOT_CONTINUED)],
    ids=lambda path: f"{path.parent.name}-{path.name}",
)
def test_lost_changes_of_all_recordings_end_once(folder: Path, tmp_path: Path) -> None:
    """Every bundled recording of two clusters whose logs can be continued."""
    if len(ConflictCase.load(folder).configuration().clusters) == 2:
        judge(folder, tmp_path)


def test_a_change_that_fits(tmp_path: Path) -> None:
    """
    An update of B that A rejected; the refresh brought the row back to what it was.

    So all its columns hold what it found, by its before image, and it is made again on A, which judges.
    """
    result, _, plan = replanned(run_of_recording(EPOCH / "extra_gci_bits_0_type7"), tmp_path / "result")
    ((cluster, (statement,)),) = plan.files
    assert (cluster, statement.kind, statement.changes) == ("A", REAPPLY, 1)
    rows = [row for row in read_lost(result, ALL).to_pylist() if row["position"] == 4728]
    assert [(row["cluster"], row["rejected_by"], row["cause"]) for row in rows] == [("B", "A", "ROW_IN_CONFLICT")]
    decoded = conflict.read_binlog(next((EPOCH / "extra_gci_bits_0_type7").glob("B.binlog*"))).to_arrow()
    (image,) = [row for row in decoded.to_pylist() if row["position"] == 4728 and row["table"].endswith("t1")]
    before, after = dict(image["before"]), dict(image["after"])
    assert (before["@2"], after["@2"]) == ("55", "99")
    assert statement.sql == (
        "UPDATE `cft`.`t1` SET `x` = 99, `v` = 858, `s` = 'oak73' "
        "WHERE `k` = 2 AND `x` <=> 55 AND `v` <=> 815 AND CAST(`s` AS BINARY) <=> 'hazel73'"
    )


def test_a_greater_version_is_asked_for(tmp_path: Path) -> None:
    """
    Under NDB$MAX, rows are repaired first; then a lost change fits, but its column is not greater, and is raised.

    The other cluster lets the raised one pass, as both engines find in the binlogs that go on.
    """
    conflict.simulate(MODEL, out=tmp_path / "simulated")
    run = conflict.load_run_file(tmp_path / "simulated-binlogs" / "run.toml")
    result, end, _ = replanned(run, tmp_path / "result")
    equal = planned(end, Wanted(rules_of({"*": "B"}, end.clusters, result.tables, deletes=True)))
    again = continued_run(end, equal, tmp_path / "equal")
    _, _, refused = replanned(again, tmp_path / "refused")
    repairs = [each for each in refused.reviewed if each.change and each.change.origin.file.endswith("000002")]
    assert len(repairs) == sum(len(found) for _, found in equal.files)
    assert {each.reason for each in repairs} == {"B had the row like that already, as after a repair"}
    (reason,) = [each.reason for each in refused.reviewed if "--raise-version" in each.reason]
    assert "NDB$MAX(x) lets only a greater x than" in reason
    assert refused.reapplied == 0
    _, end, raised = replanned(again, tmp_path / "raised", raises=True)
    assert raised.reapplied == 1
    assert_carried_out(end, raised, tmp_path)


def test_what_did_not_fit_says_why(tmp_path: Path) -> None:
    """Columns that others set since are named; nothing is guessed from a counter that moved."""
    _, _, plan = replanned(run_of_recording(EPOCH / "random_28_type8"), tmp_path / "result")
    reasons = {each.reason for each in plan.reviewed_of(REAPPLY)}
    assert any("not what the change found" in reason for reason in reasons)


def test_no_change_is_applied_again_before_one_that_is_left(tmp_path: Path) -> None:
    """Two clusters that change the same rows: of each row, what is left is older than what is applied again."""
    model = {**MODEL, "seconds": 3, "function": "NDB$EPOCH_TRANS()", "x": "none", "recordcount": 60}
    conflict.simulate(model, out=tmp_path / "simulated")
    run = conflict.load_run_file(tmp_path / "simulated-binlogs" / "run.toml")
    result, end, plan = replanned(run, tmp_path / "result")
    lost = lost_in_history(end, read_lost(result, ALL))
    again = [each for each in reapplied(end, lost, Allowed(deletes=True)) if isinstance(each, Reapplied)]
    assert sum(len(each.changes) for each in again) == plan.reapplied > 0
    left = [each.change for each in plan.reviewed_of(REAPPLY) if each.change is not None]
    rows = {each.repaired.row: lost.index(each.changes[0]) for each in again}
    places = [(each.row, next(n for n, one in enumerate(lost) if one.origin == each.origin)) for each in left]
    assert any(row in rows for row, _ in places)
    assert all(place < rows[row] for row, place in places if row in rows)
