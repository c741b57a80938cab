"""`ndb-conflict resolve`, on the bundled demo."""

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from conflict.cli.refusals import ExitCode
from conflict.history.grid.folder import Folder
from conflict.results.files import whole_or_not_at_all
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO, RECORDINGS


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("engine", ["reference", "local", "spark"])
def test_resolve_writes_the_whole_result(engine: str, everything: bool, tmp_path: Path, spark: SparkSession) -> None:
    """Outcomes, exceptions, rows, counters and run.json are there, with the recorded counters of the case."""
    assert spark.version
    out = tmp_path / "out"
    options = ["--all-outcomes"] if everything else []
    code, output = invoke("resolve", DEMO / "run.toml", "--out", out, "--engine", engine, *options)
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
    # A receives 46 operations, and applies 21 of them as they stand (the summary of README.md).
    assert outcomes == (46 if everything else 25)
    assert ("one row for every operation that an applier received" in run["readme"]) is everything
    # As many epochs of A as mysqlbinlog shows in the rows of mysql.ndb_apply_status in B's binlog.
    assert pq.read_table(out / "applied_epochs/applier=B/epochs.parquet")["source"].to_pylist() == ["A"] * 16
    assert sum(pq.read_table(part).num_rows for part in (out / "rows/B/cft.t1").iterdir()) == 2
    assert "did not converge" in output
    # What each applier received: the own changes of the other cluster, 90 in all, and the refreshes.
    tables = re.findall(r"[AB] cft\.\w+ (\d+) \d+ \d+ \d+ \d+ ", output.partition("received")[2])
    assert sum(map(int, tables)) == run["changes"] + counters["B"]["Ndb_conflict_refresh_op_count"]


def test_tables_that_the_log_creates_need_no_schema(tmp_path: Path) -> None:
    """Their rows end different, as recorded; the tables that were there before are named as not read."""
    case = RECORDINGS / "everyday/epoch/ddl_create_another_type8"
    files = [case / f"{name}.binlog.000001" for name in "AB"]
    code, output = invoke("resolve", *files, "--engine", "local", "--out", tmp_path / "out")
    assert code == 0, output
    assert re.search(r" day\.t7 +none +\d+ +\d+ +1 ", output)
    assert "tables day.t1, day.t2 are not in the schema, and the binlogs do not name their columns" in output


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_tables_without_a_database_are_those_of_the_binlogs(engine: str, tmp_path: Path) -> None:
    """SHOW CREATE TABLE, and a dump of one database, name none; the result is that of the recording."""
    shutil.copytree(DEMO, tmp_path, dirs_exist_ok=True)
    schema = tmp_path / "schema.sql"
    schema.write_text(schema.read_text().replace("USE cft;", ""))
    code, output = invoke("resolve", tmp_path / "run.toml", "--out", tmp_path / "out", "--engine", engine)
    assert code == 0, output
    counters = json.loads((tmp_path / "out/counters.json").read_text())
    assert (counters["A"]["Ndb_conflict_fn_epoch"], counters["B"]["Ndb_conflict_refresh_op_count"]) == (25, 18)
    run = json.loads((tmp_path / "out/run.json").read_text())
    assert run["differing_rows"] == {"cft.t1": 0, "cft.t2": 0, "cft.plain": 1}
    assert (run["compared_with_binlogs"], run["contradicted_by_binlogs"]) == (81, 0)
    assert pq.read_table(tmp_path / "out/exceptions/A/cft.t1$EX.parquet").num_rows == 10


def test_spark_reads_every_result(tmp_path: Path, spark: SparkSession) -> None:
    """spark.read.parquet reads outcomes, rows, exceptions and the History; unsigned numbers are decimals."""
    out = tmp_path / "out"
    kept = tmp_path / "kept"
    assert invoke("resolve", DEMO / "run.toml", "--out", out, "--keep-history", kept)[0] == 0
    outcomes = spark.read.parquet(str(out / "outcomes"))
    assert {
        row.applier: row["count"] for row in outcomes.where("verdict = 'REJECTED'").groupBy("applier").count().collect()
    } == {"A": 25}
    assert dict(outcomes.dtypes)["source_epoch"] == "decimal(20,0)"
    assert spark.read.parquet(str(out / "rows/A/cft.t2")).count() == 3
    assert spark.read.parquet(str(out / "exceptions/A/cft.t2$EX.parquet")).count() == 15
    assert {"A", "B"} == {row.cluster for row in spark.read.parquet(str(kept / "changes")).collect()}


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    """The command refuses, and the folder stays as it is."""
    (tmp_path / "kept").write_text("mine")
    code, output = invoke("resolve", DEMO / "run.toml", "--out", tmp_path, "--engine", "reference")
    assert code == ExitCode.REFUSED
    assert "exists already" in output
    assert (tmp_path / "kept").read_text() == "mine"


def test_a_failed_run_leaves_nothing_behind(tmp_path: Path) -> None:
    """An error inside removes the unfinished folder; the next run removes what a killed one left."""
    target = Folder(str(tmp_path / "out"))

    def fail() -> None:
        with whole_or_not_at_all(target) as work:
            work.write_json("half.json", {})
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []
    Folder(str(tmp_path / ".out.0123456789abcdef.part")).write_json("killed.json", {})
    with whole_or_not_at_all(target) as work:
        work.write_json("whole.json", {})
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["whole.json"]
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--engine", "reference"), "the reference engine reads the binlogs itself"),
        ((), "there is no History in"),
    ],
)
def test_a_history_must_exist_and_is_not_for_the_reference_engine(
    options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    """Otherwise nothing is left behind."""
    out = tmp_path / "out"
    code, output = invoke("resolve", DEMO / "run.toml", "--out", out, "--history", tmp_path / "none", *options)
    assert code == ExitCode.REFUSED
    assert words in output
    assert list(tmp_path.iterdir()) == []


def test_a_definition_that_is_not_that_of_the_log_is_said_alone(max_run: Path, tmp_path: Path) -> None:
    """Not what follows from it: an exceptions table that does not fit the table, and tables of nothing."""
    schema = max_run.parent / "schema.sql"
    schema.write_text(schema.read_text().replace("  v INT,", "  v BIGINT,"))
    code, output = invoke("resolve", max_run, "--out", tmp_path / "out", "--engine", "reference", "--policy", "needs")
    assert code == ExitCode.CUT_SHORT
    assert output.startswith("The binlogs of A could not be read to the end: ")
    assert "TABLE_MAP_EVENT, table cft.t1, column v: the definition says bigint, the binlog LONG" in output
    assert "exceptions table" not in output
    assert "What the appliers did" not in output


def test_functions_for_other_servers_alone_are_said(max_run: Path, tmp_path: Path) -> None:
    """In one note, before any figure."""
    max_run.write_text(max_run.read_text().replace('"t1"\nserver_id = 1', '"t1"\nserver_id = 7'))
    max_run.write_text(max_run.read_text().replace('"t2"\nserver_id = 1', '"t2"\nserver_id = 7'))
    code, output = invoke("resolve", max_run, "--out", tmp_path / "out", "--engine", "reference", "--policy", "needs")
    assert code == ExitCode.CONTRADICTED
    note = (
        "Note: the conflict functions of cft.t1, cft.t2 in mysql.ndb_replication are in rows for server_id 7, and the "
        "logs are of servers 1 and 2: none is in force."
    )
    assert -1 < output.find(note) < output.find("What the appliers did")
