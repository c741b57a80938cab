"""Server options that are off, and roles that change: what a run says, and that a wrong recording does not pass."""

import json
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.judge.case import ConflictCase
from conflict.judge.judged_run import JudgedRun, compare_readings, read_readings
from conflict.results.cause_kinds import CauseKind
from conflict.results.run_document import RunDocument
from conflict.runs.pipeline import run_by
from tests.conflict.cli.commands import invoke
from tests.conflict.judge.test_without_steps import changed
from tests.corpora import RECORDINGS

BUNDLED = RECORDINGS / "everyday"
CAUSES = {
    "epoch/option_no_apply_status_type7": CauseKind.APPLY_STATUS,
    "max/option_no_apply_status_type7": CauseKind.APPLY_STATUS,
    "epoch2/option_no_transaction_ids_type7": CauseKind.TRANSACTION_IDS,
    "max/option_no_transaction_ids_type7": CauseKind.TRANSACTION_IDS,
    "epoch2/rule_roles_swapped_midway_type7": CauseKind.ROLE_CHANGE,
    "epoch2_trans/rule_roles_swapped_midway_type7": CauseKind.ROLE_CHANGE,
}
SEEDS = range(60)


@cache
def resolved(case: str) -> tuple[RunDocument, list[JudgedRun], dict[str, Any]]:
    """Return what a case comes to without steps, its readings, and its recording."""
    loaded = ConflictCase.load(BUNDLED / case)
    with TemporaryDirectory() as folder:
        run = run_by("reference", make_run(loaded.configuration()), Folder(folder))
        return run, read_readings(loaded, Folder(folder), run), loaded.expected


@pytest.mark.parametrize("case", CAUSES)
def test_the_cause_is_named(case: str) -> None:
    """The run counts as contradicted, although what was derived agrees; but for a role that changed and was found."""
    run, _, _ = resolved(case)
    assert {cause.kind for cause in run.likely_causes} == {CAUSES[case]}
    assert run.contradicted == (CAUSES[case] is not CauseKind.ROLE_CHANGE)
    assert not run.summary.contradicted


def test_a_wrong_recording_does_not_pass() -> None:
    """Seeded changes of a row, a counter or an exceptions row: none agrees, with no reading."""
    tried = 0
    for seed in SEEDS:
        chance = Random(seed)
        case = chance.choice(sorted(CAUSES))
        _, readings, expected = resolved(case)
        found = changed(expected, chance)
        if found is not None:
            tried += 1
            assert compare_readings(readings, found[0]).differences, (seed, case, found[1])
    assert tried > len(SEEDS) / 2


def write_run_file(case: str, folder: Path, schedule: str = "") -> Path:
    """Write the run file of a recording as a user would, with paths to its binlogs."""
    source = BUNDLED / case
    scenario = json.loads((source / "scenario.json").read_text("utf-8"))
    statements = [text for table in scenario["tables"] for text in (table["create"], table.get("ex")) if text]
    (folder / "schema.sql").write_text(";\n".join(statements) + ";\n", encoding="utf-8")
    lines = ['schema = "schema.sql"', f'database = "{scenario["database"]}"', 'start = "empty"']
    for side, files in scenario["binlog_files"].items():
        lines += [f"[clusters.{side}]", f"server_id = {scenario['globals'][side]['server_id']}"]
        lines += [f"binlogs = {json.dumps([str(source / name) for name in files])}"]
        lines += [f'role = "{scenario["roles"][side]}"'] if side in scenario.get("roles", {}) else []
    for row in scenario["ndb_replication"]:
        known = {name: value for name, value in row.items() if value is not None}
        lines += ["[[ndb_replication]]", *(f"{name} = {json.dumps(value)}" for name, value in known.items())]
    path = folder / "run.toml"
    path.write_text("\n".join(lines) + "\n" + schedule, encoding="utf-8")
    return path


def test_resolve_says_which_option_was_off(tmp_path: Path) -> None:
    """On the terminal, with exit code 1."""
    run_file = write_run_file("max/option_no_apply_status_type7", tmp_path)
    code, output = invoke("resolve", run_file, "--out", tmp_path / "out", "--engine", "reference")
    assert code == 1
    assert "ndb_log_apply_status was OFF on A" in output


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_role_that_changed_is_a_note(engine: str, tmp_path: Path) -> None:
    """Between which epochs, and how to say so; the result holds, and the exit code is 0."""
    run_file = write_run_file("epoch2/rule_roles_swapped_midway_type7", tmp_path)
    code, output = invoke("resolve", run_file, "--out", tmp_path / "out", "--engine", engine)
    assert (code, "contradict" in output) == (0, False)
    assert "Note: The role of A changed" in output
    assert "Note: The role of B changed" in output


SWAPPED = "epoch2/rule_roles_swapped_midway_type7"
# The epochs after which both appliers were stopped, by the steps of the recording.
LAST_AS_PRIMARY, LAST_AS_SECONDARY = 2869038153734, 2856153251845


def write_swapped(folder: Path, last_as_primary: int = LAST_AS_PRIMARY) -> Path:
    """Write a run file that says when the roles were swapped."""
    entry = '[[schedule.role]]\napplier = "{}"\nafter_epoch = {}\nrole = "{}"\n'
    schedule = entry.format("A", last_as_primary, "SECONDARY") + entry.format("B", LAST_AS_SECONDARY, "PRIMARY")
    return write_run_file(SWAPPED, folder, schedule)


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_schedule_entry_says_when_a_role_changed(engine: str, tmp_path: Path) -> None:
    """The run then agrees, there is nothing to notice, and the kernels resolve it."""
    run_file = write_swapped(tmp_path)
    code, output = invoke("resolve", run_file, "--out", tmp_path / "out", "--engine", engine)
    assert code == 0, output
    assert "The reference engine resolved this" not in output
    case = SWAPPED
    counters = json.loads((tmp_path / "out" / "counters.json").read_text("utf-8"))
    expected = json.loads((BUNDLED / case / "expected.json").read_text("utf-8"))
    for side, recorded in expected.items():
        assert {name: counters[side][name] for name in recorded["status_difference"]} == recorded["status_difference"]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_schedule_entry_that_is_wrong_is_noticed(engine: str, tmp_path: Path) -> None:
    """By the marks of the rows, which another role would not have left."""
    run_file = write_swapped(tmp_path, 1)
    code, output = invoke("resolve", run_file, "--out", tmp_path / "out", "--engine", engine)
    assert code == 1
    assert "as reflected" in output, output
