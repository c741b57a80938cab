"""Runs whose files are on object storage, judged by the same runs on this machine; an S3 server on loopback."""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import conflict
from conflict.cli.refusals import ExitCode
from conflict.config.arguments import no_progress
from conflict.config.run_file import load_run_file
from conflict.errors import ConfigurationError
from conflict.history.ingestion.plan import files_document, plan_ingest
from conflict.history.preparing.log_files import check_log_files
from conflict.history.tasks import in_process
from conflict.results.result import Result
from conflict.runs.ingest_job import outlines_by_tasks
from conflict.runs.run_inputs import run_of
from tests.conflict.cli.commands import invoke
from tests.conflict.object_storage import BUCKET, S3, s3_server
from tests.corpora import DEMO

RUN = f"s3://{BUCKET}/demo/run.toml"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """Give a server with the demo's recording."""
    with pytest.MonkeyPatch.context() as patch, s3_server(patch.setenv) as server:
        server.put((f"demo/{file.name}", file.read_bytes()) for file in DEMO.iterdir() if file.is_file())
        yield server


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Return what is to be found."""
    return conflict.resolve(DEMO / "run.toml", out=tmp_path_factory.mktemp("local") / "result", engine="local")


def _outcomes(result: Result, cluster: str) -> pa.Table:
    """Return the outcomes in one order, without the names of files, which differ."""
    order = [("source_epoch", "ascending"), ("ordinal", "ascending"), ("table", "ascending"), ("key", "ascending")]
    return result.outcomes(cluster).sort_by(order).drop(["file", "winner_file"])


def _same(found: Result, expected: Result) -> bool:
    """Whether two results hold the same rows, counters and outcomes."""
    tables = [(cluster, table) for cluster in expected.clusters for table in expected.tables]
    return (
        found.counters == expected.counters
        and all(found.rows(*each).to_pylist() == expected.rows(*each).to_pylist() for each in tables)
        and all(_outcomes(found, cluster) == _outcomes(expected, cluster) for cluster in expected.clusters)
    )


def test_resolve(s3: S3, local: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run file, schema, binlogs and result are there; nothing is here; few requests."""
    monkeypatch.chdir(tmp_path)
    s3.requests.clear()
    code, said = invoke("resolve", RUN, "--out", f"s3a://{BUCKET}/result", "--engine", "local")
    assert code == ExitCode.DONE, said
    assert f"Results are in s3://{BUCKET}/result" in said
    assert len([each for each in s3.requests if not each.startswith("PUT")]) < 30
    found = conflict.read_result(f"s3://{BUCKET}/result")
    assert _same(found, local)
    assert found.run["inputs"]["run_file"] == RUN
    assert [*tmp_path.iterdir()] == []


def test_planning_in_tasks(s3: S3, monkeypatch: pytest.MonkeyPatch):
    """Who plans reads the head of each binlog and the digest of its ends; a task reads it once, and keeps no copy."""
    held = dict[str, str]()
    monkeypatch.setattr("ndb_formats.stored._Copies._held", held)
    run_file = load_run_file(RUN)
    s3.requests.clear()
    check_log_files(run_file.configuration)
    run = run_of(run_file, None, partial(outlines_by_tasks, in_process, no_progress))
    plan_ingest(run, None, None, 1 << 16)
    files_document(run.configuration.files)
    asked = [each for each in s3.requests if each.startswith("GET") and ".binlog.000001" in each]
    assert len(asked) == 2 * (1 + 1 + 2)
    assert held == {}
    here = run_of(load_run_file(DEMO / "run.toml"))
    assert (run.notes, run.remarks, run.restarts, run.numbers) == (
        here.notes,
        here.remarks,
        here.restarts,
        here.numbers,
    )
    assert [each.starts.tolist() for each in run.outlines.values()] == [
        each.starts.tolist() for each in here.outlines.values()
    ]


@pytest.mark.usefixtures("s3")
def test_what_is_said():
    """Of what is not there, and of storage that lacks a package."""
    for arguments, expected in (
        (["resolve", f"s3://{BUCKET}/demo/no.toml"], f"s3://{BUCKET}/demo/no.toml: No such file or directory"),
        (["resolve", RUN, "--out", "s3://nosuch/x"], "s3://nosuch/x: "),
        (["conflicts", f"s3://{BUCKET}/none"], f"there is no result in s3://{BUCKET}/none; make one"),
        (["lost", RUN], f"{RUN} is a run file, not a result"),
        (["decode", f"s3://{BUCKET}/none*"], f"s3://{BUCKET}/none*: no such file or folder"),
    ):
        code, said = invoke(*arguments)
        assert code == ExitCode.REFUSED
        assert said.startswith(expected), said


@pytest.mark.slow
@pytest.mark.usefixtures("s3")
def test_bare_binlogs_and_commands_that_read_results(local: Result, tmp_path: Path):
    """Binlogs below an address; what reads a result, and the binlogs that it was made of."""
    below = f"s3://{BUCKET}/demo"
    out, schema, rows = f"s3://{BUCKET}/bare", f"{below}/schema.sql", f"{below}/ndb_replication.sql"
    sources = [f"{below}/A.binlog.000001", f"{below}/B.binlog.*"]
    found = conflict.resolve(*sources, schema=schema, ndb_replication=rows, out=out, engine="reference")
    assert found.summary.changes == local.summary.changes
    result = f"s3://{BUCKET}/reading"
    conflict.resolve(RUN, out=result, engine="reference")
    here = str(local.folder.uri)
    for command in (["conflicts"], ["lost"], ["explain", "--differences"]):
        code, said = invoke(*command, result)
        assert code == ExitCode.DONE, said
        assert said.replace(result, here) == invoke(*command, here)[1]
    code, said = invoke("report", result, "--out", tmp_path / "r.html")
    assert code == ExitCode.DONE, said
    assert result in (tmp_path / "r.html").read_text()
    table = conflict.read_binlog(f"{below}/A.binlog.000001").to_arrow()
    assert table.drop(["file"]) == conflict.read_binlog(DEMO / "A.binlog.000001").to_arrow().drop(["file"])
    assert set(table["file"].to_pylist()) == {f"{below}/A.binlog.000001"}


def test_a_binlog_that_grows(s3: S3):
    """A process that reads it again reads what it is then."""
    data, place = (DEMO / "A.binlog.000001").read_bytes(), f"s3://{BUCKET}/grows/A.000001"
    s3.put([("grows/A.000001", data[:1448])])
    with pytest.warns(match="ends"):
        before = conflict.read_binlog(place).to_arrow().num_rows
    s3.put([("grows/A.000001", data)])
    assert before < conflict.read_binlog(place).to_arrow().num_rows


def _command(*arguments: str) -> str:
    """Run a command in a process of its own, whose Spark has the server's address from its start."""
    done = subprocess.run([sys.executable, "-m", "conflict", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.DONE, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_history(s3: S3, local: Result):
    """Ingest, nothing new, and resolve of it; a History that resolve keeps is one, too."""
    history, kept, out = (f"s3://{BUCKET}/{name}" for name in ("history", "kept", "of-history"))
    s3.requests.clear()
    assert "Read 2 segments; 0 were in" in _command("ingest", RUN, "--out", history, "--engine", "spark")
    of_binlogs = [each for each in s3.requests if each.startswith("GET") and ".binlog.000001" in each]
    assert len(of_binlogs) <= 1 + 2 * (1 + 1 + 1)  # the driver reads heads, tasks each file and each segment
    objects = s3.keys("history/")
    assert "Nothing new; 2 segments" in _command("ingest", RUN, "--out", history)
    assert s3.keys("history/") == objects
    _command("resolve", RUN, "--history", history, "--out", f"{out}/spark", "--engine", "spark")
    assert _same(conflict.read_result(f"{out}/spark"), local)
    assert _same(conflict.resolve(RUN, history=history, out=f"{out}/local", engine="local"), local)
    assert _same(conflict.resolve(RUN, keep_history=kept, out=f"{out}/keeps", engine="local"), local)
    assert _same(conflict.resolve(RUN, history=kept, out=f"{out}/kept", engine="local"), local)


@pytest.mark.slow
@pytest.mark.usefixtures("s3")
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_windows(engine: str):
    """A result with a state, and what came after it."""
    history, first, second = (f"s3://{BUCKET}/{engine}-{name}" for name in ("nights", "night1", "night2"))
    conflict.ingest(RUN, out=history, engine=engine)
    before = conflict.resolve(RUN, out=first, history=history, engine=engine, keep_state=True)
    found = conflict.resolve(RUN, out=second, history=history, engine=engine, after=first)
    assert found.run["rows"] == before.run["rows"]
    assert found.run["after"]["counters"] == before.counters
    assert not any(count for own in found.counters.values() for count in own.values())


@pytest.mark.slow
def test_two_writers_of_one_result(s3: S3, local: Result):
    """One wins, the other one is told; as often as it is tried."""
    for number in range(5):
        out = f"s3://{BUCKET}/two/{number}"

        def write(_: int, out: str = out) -> str:
            try:
                conflict.resolve(RUN, out=out, engine="reference")
            except ConfigurationError as error:
                return str(error)
            return ""

        with ThreadPoolExecutor(2) as threads:
            said = sorted(threads.map(write, range(2)))
        assert said[0] == ""
        assert "was written by another process meanwhile" in said[1] or "exists already" in said[1]
        assert conflict.read_result(out).counters == local.counters
        (version,) = s3.keys(f"two/{number}/versions/")
        files = json.loads(s3.client().get_object(Bucket=BUCKET, Key=version)["Body"].read())["files"]
        assert {*s3.keys(f"two/{number}/")} == {version, *(f"two/{number}/{place}" for place, _ in files.values())}


@pytest.mark.slow
def test_storage_that_refuses_requests(s3: S3, local: Result):
    """One in five is answered by 503 or 500, and the answer that a version was created is lost: the result is right."""
    s3.share, s3.refused, s3.lost = 0.2, 0, "faults/versions/"
    try:
        found = conflict.resolve(RUN, out=f"s3://{BUCKET}/faults", engine="local")
    finally:
        s3.share = 0.0
    assert s3.lost == ""
    assert s3.refused > 3
    assert _same(found, local)


def test_a_folder_on_a_filesystem_that_is_not_known():
    """What is known is said, before any work."""
    with pytest.raises(ConfigurationError, match=r"is nosuch://b/x, which cannot be .* fsspec knows, as"):
        conflict.resolve((DEMO / "run.toml").resolve(), keep_history="nosuch://b/x")
    with pytest.raises(ConfigurationError, match="cannot be opened"):
        conflict.read_result("nosuch://b/x")
