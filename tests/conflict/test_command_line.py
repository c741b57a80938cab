"""The command line, on the bundled demo."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from conflict.cli.app import REFUSED, app
from conflict.grid.folder import Folder
from conflict.pipeline import whole_or_not_at_all
from tests.conflict.growing import commits

RECORDINGS = Path(__file__).parents[1] / "recordings"
DEMO = RECORDINGS / "demo"


def _run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return done.exit_code, done.output


@pytest.mark.parametrize("engine", ["reference", "spark"])
def test_resolve_writes_the_whole_result(engine: str, tmp_path: Path, spark: SparkSession) -> None:
    """Outcomes, exceptions, rows, counters and run.json are there, with the recorded counters of the case."""
    assert spark.version
    out = tmp_path / "out"
    code, output = _run("resolve", DEMO / "run.toml", "--out", out, "--engine", engine)
    assert code == 0, output
    counters = json.loads((out / "counters.json").read_text())
    # Recorded by the real clusters (hot_3021_type9).
    assert counters["A"]["Ndb_conflict_fn_epoch"] == 25
    assert counters["A"]["Ndb_conflict_epoch_delete_delete_count"] == 2
    assert counters["B"]["Ndb_conflict_refresh_op_count"] == 18
    run = json.loads((out / "run.json").read_text())
    assert engine == run["engine"]
    assert run["differing_rows"] == {"cft.t1": 0, "cft.t2": 0, "cft.plain": 1}
    assert (run["compared_with_binlogs"], run["contradicted_by_binlogs"]) == (81, 0)
    assert run["epochs_with_assumed_place"] == {"A": 0, "B": 0}
    assert pq.read_table(out / "exceptions/A/cft.t1$EX.parquet").num_rows == 10
    outcomes = sum(pq.read_table(part).num_rows for part in (out / "outcomes/applier=A").iterdir())
    assert outcomes + sum(json.loads((out / "applied.json").read_text())["A"]) == 46
    # As many epochs of A as mysqlbinlog shows in the rows of mysql.ndb_apply_status in B's binlog.
    assert pq.read_table(out / "applied_epochs/applier=B/epochs.parquet")["source"].to_pylist() == ["A"] * 16
    assert sum(pq.read_table(part).num_rows for part in (out / "rows/B/cft.t1").iterdir()) == 2
    assert "did not converge" in output


def test_spark_reads_every_result(tmp_path: Path, spark: SparkSession) -> None:
    """spark.read.parquet reads outcomes, rows, exceptions and the History; unsigned numbers are decimals."""
    out = tmp_path / "out"
    assert _run("resolve", DEMO / "run.toml", "--out", out)[0] == 0
    outcomes = spark.read.parquet(str(out / "outcomes"))
    assert {
        row.applier: row["count"] for row in outcomes.where("verdict = 'REJECTED'").groupBy("applier").count().collect()
    } == {"A": 25}
    assert dict(outcomes.dtypes)["source_epoch"] == "decimal(20,0)"
    assert spark.read.parquet(str(out / "rows/A/cft.t2")).count() == 3
    assert spark.read.parquet(str(out / "exceptions/A/cft.t2$EX.parquet")).count() == 15
    assert {"A", "B"} == {row.cluster for row in spark.read.parquet(str(out / "history/changes")).collect()}


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    """The command refuses, and what is there stays."""
    (tmp_path / "kept").write_text("mine")
    code, output = _run("resolve", DEMO / "run.toml", "--out", tmp_path, "--engine", "reference")
    assert code == REFUSED
    # The message stands in a box, wrapped wherever the length of the path puts it.
    assert "exists already" in " ".join(output.replace("│", " ").split())
    assert (tmp_path / "kept").read_text() == "mine"


def test_a_failed_run_leaves_nothing(tmp_path: Path) -> None:
    """An error inside removes the unfinished folder; the next run removes what a killed one left."""
    target = Folder(str(tmp_path / "out"))

    def fail() -> None:
        with whole_or_not_at_all(target) as work:
            work.write_json("half.json", {})
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []
    Folder(str(tmp_path / "out.incomplete")).write_json("killed.json", {})
    with whole_or_not_at_all(target) as work:
        work.write_json("whole.json", {})
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["whole.json"]


def _grown(folder: Path, size: int | None) -> Path:
    """Return a run of the demo whose binlog of B has so many bytes."""
    shutil.copytree(DEMO, folder, dirs_exist_ok=True)
    file = folder / "B.binlog.000001"
    file.write_bytes(file.read_bytes()[:size])
    return folder / "run.toml"


def test_ingest_continues_and_resolve_uses_what_was_ingested(tmp_path: Path, spark: SparkSession) -> None:
    """The command says what it did; a History is resolved when the binlogs are gone, with the same result."""
    assert spark.version
    history, demo = tmp_path / "history", tmp_path / "demo"
    first = commits(DEMO / "B.binlog.000001")[5]
    code, output = _run("ingest", _grown(demo, first), "--out", history)
    assert (code, "Read 2 segments; 0 were there already." in output) == (0, True), output
    code, output = _run("ingest", _grown(demo, None), "--out", history)
    assert (code, "Read 1 segment; 2 were there already." in output) == (0, True), output
    assert "B: 46 row changes of its own" in output
    code, output = _run("ingest", demo / "run.toml", "--out", history)
    assert (code, "Nothing new; 3 segments were there already." in output) == (0, True), output
    for name in "AB":
        (demo / f"{name}.binlog.000001").write_bytes(b"")
    out = tmp_path / "out"
    code, output = _run("resolve", demo / "run.toml", "--out", out, "--history", history)
    assert code == 0, output
    assert not (out / "history").exists()
    counters = json.loads((out / "counters.json").read_text())
    # Recorded by the real clusters (hot_3021_type9).
    assert (counters["A"]["Ndb_conflict_fn_epoch"], counters["B"]["Ndb_conflict_refresh_op_count"]) == (25, 18)
    run = json.loads((out / "run.json").read_text())
    assert (run["changes"], run["compared_with_binlogs"], run["contradicted_by_binlogs"]) == (90, 81, 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--engine", "reference"), "the reference engine reads the binlogs themselves"),
        ((), "there is no History in"),
    ],
)
def test_histories_that_cannot_be_resolved(options: tuple[str, ...], words: str, tmp_path: Path) -> None:
    """One that is not there, or with the wrong engine; no result is left behind."""
    out = tmp_path / "out"
    code, output = _run("resolve", DEMO / "run.toml", "--out", out, "--history", tmp_path / "none", *options)
    assert code == REFUSED
    assert words in " ".join(output.replace("│", " ").split())
    assert list(tmp_path.iterdir()) == []


def test_ingest_leaves_other_folders_alone(tmp_path: Path) -> None:
    """A folder that holds something else is refused, and what is there stays."""
    (tmp_path / "kept").write_text("mine")
    code, output = _run("ingest", DEMO / "run.toml", "--out", tmp_path)
    assert code == REFUSED
    assert "is no History" in " ".join(output.replace("│", " ").split())
    assert (tmp_path / "kept").read_text() == "mine"


def test_functions_that_cannot_meet_are_said(tmp_path: Path) -> None:
    """A run is refused before anything is read where one table is judged by epoch on one side and by column there."""
    text = (
        (DEMO / "run.toml")
        .read_text()
        .replace("server_id = 2\nbinlog_type", 'server_id = 2\nconflict_fn = "NDB$MAX(x)"\nbinlog_type')
    )
    for name in ("schema.sql", "steps.json", "A.binlog.000001", "B.binlog.000001"):
        (tmp_path / name).write_bytes((DEMO / name).read_bytes())
    (tmp_path / "run.toml").write_text(text)
    code, output = _run("resolve", tmp_path / "run.toml", "--out", tmp_path / "out", "--engine", "reference")
    assert code == REFUSED
    assert "table cft.t1 has a function by epoch on one cluster" in " ".join(output.replace("│", " ").split())
    assert not (tmp_path / "out").exists()


def test_conformance_writes_its_verdicts(tmp_path: Path) -> None:
    """The JSON has counts, and part, case, engine, status, detail and open decisions of every case."""
    file = tmp_path / "verdicts.json"
    folder = RECORDINGS / "conflict" / "epoch"
    code, output = _run("conformance", folder, "--engine", "reference", "--json", file)
    assert code == 0, output
    document = json.loads(file.read_text())
    assert document["counts"] == {"pass": 19, "fail": 0, "not yet": 0}
    first = document["cases"][0]
    assert {"part", "case", "engine", "status", "detail", "undecided"} == set(first)
    assert (
        first["part"],
        first["case"],
        first["engine"],
        first["status"],
    ) == ("conflict", "before_refresh_type8", "reference", "pass")


def test_conformance_fails_on_a_contradicted_recording(tmp_path: Path) -> None:
    """One changed row in a recording makes exit code 1, and the difference is named."""
    case = RECORDINGS / "conflict" / "max" / "probe_type9"
    for file in case.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    expected = json.loads((case / "expected.json").read_text())
    expected["A"]["tables"]["t1"]["rows"][0][1] += 1
    (tmp_path / "expected.json").write_text(json.dumps(expected))
    code, output = _run("conformance", tmp_path, "--engine", "reference")
    assert code == 1
    assert "A: t1 lacks the recorded row (k=1, x=" in " ".join(output.split())
