"""Binlogs cut at any byte: an error with file and position, and everything before it resolved."""

import json
import re
import shutil
from pathlib import Path

import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import conflict
from conflict.cli.app import app
from conflict.cli.refusals import ExitCode
from conflict.config.run_file import RunFile, load_run_file
from conflict.history.epochs import BinlogEpoch
from conflict.history.grid.folder import Folder
from conflict.history.reading.readings import read_cluster
from conflict.history.run import Run
from conflict.results.doubts import doubts_of
from conflict.results.result import read_result
from conflict.results.run_document import UnderWay
from conflict.runs.pipeline import run_by
from conflict.runs.run_inputs import run_of
from ndb_formats.binlog_reader import read_headers
from ndb_formats.constants import EventType
from tests.corpora import DEMO, RECORDINGS

WHOLE = (DEMO / "B.binlog.000001").read_bytes()


def _cut(folder: Path, size: int) -> RunFile:
    """Return the demo's run with the binlog of B cut after `size` bytes."""
    shutil.copytree(DEMO, folder, dirs_exist_ok=True)
    (folder / "B.binlog.000001").write_bytes(WHOLE[:size])
    return load_run_file(folder / "run.toml")


def _epochs(run: RunFile) -> list[BinlogEpoch]:
    return read_cluster(run.configuration.clusters[1], Run(run.configuration)).epochs


def _commits() -> list[int]:
    """Positions after which a transaction of the binlog of B is complete."""
    commit = EventType.QUERY_EVENT
    queries = [
        position + header.size
        for position, header in read_headers(DEMO / "B.binlog.000001")
        if header.type_code == commit
    ]
    return queries[1::2]  # BEGIN, COMMIT, BEGIN, COMMIT, ...


COMMITS = _commits()
BOUNDARIES = {position for position, _ in read_headers(DEMO / "B.binlog.000001")} | {len(WHOLE)}


@given(size=st.integers(0, len(WHOLE) - 1))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_epoch_before_the_cut_is_there(size: int, tmp_path: Path) -> None:
    """Exactly the epochs whose COMMIT lies before the cut are read; inside an event, the error names the place."""
    run = _cut(tmp_path / str(size), size)
    reading = read_cluster(run.configuration.clusters[1], Run(run.configuration))
    assert sum(position <= size for position in COMMITS) == len(reading.epochs)
    if size in BOUNDARIES:
        assert reading.error is None
    else:
        assert reading.error is not None
        assert reading.error.file is not None
        assert reading.error.file.endswith("B.binlog.000001")
        assert max((place for place in BOUNDARIES if place <= size), default=0) == reading.error.position


def test_the_reference_engine_resolves_what_comes_before_the_cut(tmp_path: Path) -> None:
    """The result covers whole epochs, says what was wrong and how many rows of an unfinished epoch are left out."""
    run = _cut(tmp_path / "cut", COMMITS[4] + 400)
    found = run_by("reference", run_of(run), Folder(str(tmp_path / "out")))
    assert list(found.errors) == ["B"]
    assert re.search(r"B\.binlog\.000001, position \d+", found.errors["B"])
    assert len(_epochs(run)) == 5


@pytest.mark.parametrize("commits", [0, 1, 3, 6, 9])
def test_both_engines_leave_out_what_builds_on_what_is_missing(
    commits: int, tmp_path: Path, spark: SparkSession
) -> None:
    """Epochs of A that applied epochs of B beyond the cut are left out; up to there the binlogs agree."""
    assert spark.version
    run = _cut(tmp_path / "cut", COMMITS[commits] + 100)
    by_reference = run_by("reference", run_of(run), Folder(str(tmp_path / "reference")))
    by_spark = run_by("spark", run_of(run), Folder(str(tmp_path / "spark")))
    assert by_reference.epochs_left_out["A"] > 0
    assert by_reference == by_spark
    assert by_reference.summary.contradicted == 0


@pytest.mark.parametrize("command", ["resolve", "ingest"])
def test_the_command_line_keeps_what_comes_before_the_cut(command: str, tmp_path: Path, spark: SparkSession) -> None:
    """Both commands name file and position, exit with 3, and leave a usable result behind."""
    assert spark.version
    _cut(tmp_path / "cut", COMMITS[6] + 30)
    out = tmp_path / "out"
    kept = tmp_path / "history" if command == "resolve" else out
    keeps = ["--keep-history", str(kept)] if command == "resolve" else []
    done = CliRunner().invoke(app, [command, str(tmp_path / "cut" / "run.toml"), "--out", str(out), *keeps])
    assert done.exit_code == ExitCode.CUT_SHORT
    assert re.search(r"B\.binlog\.000001,\s+position\s+\d+", done.output)
    history = json.loads((kept / "history.json").read_text())
    reading = _epochs(load_run_file(tmp_path / "cut" / "run.toml"))
    assert reading[-1].number == history["segments"]["B"][-1]["last_epoch"]
    changes = sum(len(transaction.changes) for epoch in reading for transaction in epoch.transactions)
    assert changes == sum(run["changes"] for run in history["segments"]["B"])
    assert not list(tmp_path.glob(".out*"))


def test_a_damaged_byte_is_an_error_with_its_place(tmp_path: Path, spark: SparkSession) -> None:
    """A flipped bit is found by its checksum, and the epochs before it are resolved on Spark."""
    assert spark.version
    shutil.copytree(DEMO, tmp_path / "bad")
    damaged = bytearray(WHOLE)
    damaged[COMMITS[3] + 200] ^= 0x10
    (tmp_path / "bad" / "B.binlog.000001").write_bytes(damaged)
    done = CliRunner().invoke(app, ["resolve", str(tmp_path / "bad/run.toml"), "--out", str(tmp_path / "out")])
    assert done.exit_code == ExitCode.CUT_SHORT
    document = json.loads((tmp_path / "out/run.json").read_text())
    assert "CRC32" in document["binlog_errors"]["B"]
    assert (
        f"position {max(place for place in BOUNDARIES if place <= COMMITS[3] + 200)}" in document["binlog_errors"]["B"]
    )


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_changes_that_the_applier_had_not_come_to_are_counted(engine: str, tmp_path: Path) -> None:
    """They are those of A after the last epoch that B's binlog names, as far as the result goes."""
    run = _cut(tmp_path / "cut", COMMITS[6] + 100)
    named = max(each.epoch for epoch in _epochs(run) for each in epoch.applied)
    own = read_cluster(run.configuration.clusters[0], Run(run.configuration)).epochs
    found = run_by(engine, run_of(run), Folder(str(tmp_path / "out")))
    counted = own[: len(own) - found.epochs_left_out["A"]]
    changes = [sum(len(each.changes) for each in epoch.transactions) for epoch in counted if epoch.number > named]
    assert any(changes)
    assert [each for each in found.under_way if each.applier == "B"] == [
        UnderWay("B", "A", sum(map(bool, changes)), sum(changes))
    ]
    alarms = [doubt.label for doubt in doubts_of(found.checks()) if doubt.alarm]
    assert alarms == ["The binlogs of B could not be read to the end", "Changes were still under way"]


LIVES = RECORDINGS / "lives"


def _live(folder: Path, *options: str) -> str:
    """Resolve the live recording of NDB$EPOCH by its bare binlogs, and return the output on one line."""
    live, schema = LIVES / "live_2_epoch_type8", folder / "schema.sql"
    tables = json.loads((live / "scenario.json").read_text())["tables"]
    schema.write_text("\n".join(each["create"].replace("TABLE ", "TABLE lv.", 1) + ";" for each in tables))
    logs = [str(live / f"{name}.binlog.000001") for name in "AB"]
    declared = ["--schema", str(schema), "--conflict-fn", "lv.t*=NDB$EPOCH()", "--primary", "server1"]
    done = CliRunner().invoke(app, ["resolve", *logs, *declared, *options, "--out", str(folder / "out")])
    assert done.exit_code == ExitCode.DONE
    return " ".join(done.output.split())


def test_a_log_that_stops_early_says_what_was_under_way(tmp_path: Path) -> None:
    """Before any figure; that rows differ is then no word on whether the clusters converge."""
    output = _live(tmp_path, "--stop-datetime", "2026-11-22 23:37:40")
    said = output.index("of server2 that server1 had not applied yet")
    assert said < output.index("What the appliers did")
    assert "the clusters had not converged yet when the logs end" in output
    assert "did not converge" not in output
    (link,) = json.loads((tmp_path / "out" / "run.json").read_text())["changes_under_way"]
    assert (link["applier"], link["source"]) == ("server1", "server2")
    shown = " ".join(repr(read_result(str(tmp_path / "out")).summary).split())
    assert shown.startswith("Changes were still under way: the logs end with ")
    assert "the clusters had not converged yet when the logs end" in shown
    assert output.count("engine resolve") == 1


def test_no_epoch_is_said_to_have_come_back_before_the_log(tmp_path: Path) -> None:
    """In a log that starts in the middle, that none came back in it is not that none had; the result holds no 0."""
    output = _live(tmp_path, "--start-datetime", "2026-11-22 23:37:40")
    assert "epoch 2091649073155, and it is not known which epochs had come back: none in this part" in output
    outcomes = read_result(str(tmp_path / "out")).outcomes("server1")
    assert 0 not in outcomes["incoming"].to_pylist()
    conflicts = outcomes.filter(pc.equal(outcomes["stored"], 2091649073155))
    assert None in conflicts["incoming"].to_pylist()


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (LIVES / "live_2_epoch_type8", LIVES / "live_3_epoch2_trans_type7"),
        (LIVES / "live_3_epoch2_trans_type7", LIVES / "live_2_epoch_type8"),
    ],
)
def test_binlogs_of_different_clusters_do_not_belong_together(
    first: Path, second: Path, engine: str, tmp_path: Path
) -> None:
    """Either may be the later one: no operation is judged, and that is said instead of what the tables hold."""
    schema = RECORDINGS.parents[1] / "docs" / "examples" / "case_study" / "schema.sql"
    logs = [str(first / "A.binlog.000001"), str(second / "B.binlog.000001")]
    out = tmp_path / "out"
    command = ["resolve", *logs, "--schema", str(schema), "--engine", engine, "--out", str(out)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == ExitCode.CUT_SHORT
    assert "The binlogs do not belong together: no change by an applier is of an epoch" in done.output
    assert "agrees" not in done.output
    assert "converge" not in done.output
    assert "type next" not in done.output
    run = json.loads((out / "run.json").read_text())
    assert (run["unrelated_binlogs"], run["converged"]) == (True, None)
    page = tmp_path / "page.html"
    conflict.report(out, out=page)
    result = conflict.read_result(str(out))
    for shown in (repr(result), result._repr_html_(), page.read_text("utf-8")):
        assert "The binlogs do not belong together" in shown
        assert not re.search("agree|converge|end equal|end different", shown)
