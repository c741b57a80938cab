"""A real standalone cluster, a master and two workers on this machine, finds what one process finds."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs
import pyarrow.parquet as pq
import pyspark
import pytest

import conflict
from conflict.config.run_file import load_run_file
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import read_manifest
from conflict.history.grid.stored_folder import folder_of
from conflict.history.tasks import in_process
from conflict.results.run_document import RunDocument
from conflict.rules.counters import zero_counters
from conflict.runs.ingest_job import ingest
from conflict.runs.resolving.resolve_job import resolve_history
from conflict.runs.run_inputs import run_of
from tests.conflict.growing import commits
from tests.conflict.object_storage import BUCKET, s3_server
from tests.corpora import DEMO

pytestmark = pytest.mark.xdist_group("cluster")

ROOT = Path(__file__).parents[3]
RUN_FILE = ROOT / "conflict/demo/run.toml"
PAGE = (ROOT / "docs/spark.md").read_text("utf-8").partition("\n## On a cluster\n")[2]
COMMANDS = re.findall(r"^\$ (.*)$", PAGE, re.MULTILINE)
SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin/spark-class")
Found = TypeVar("Found")
PATIENCE = 300  # seconds: this machine may have much else to do
TOLD_BY = ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME", "SPARK_REMOTE")
# One core of each worker per application, so that two applications fit beside each other; small and quick to start.
DEFAULTS = """
spark.cores.max 2
spark.executor.cores 1
spark.executor.memory 512m
spark.ui.enabled false
spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.executor.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.connect.grpc.binding.address 127.0.0.1
spark.connect.grpc.binding.port 0
"""
SPECULATION = """
spark.speculation true
spark.speculation.quantile 0.5
spark.speculation.multiplier 1.1
"""


@attrs.frozen
class Worker:
    """A worker's process, and the folder that its executors run in."""

    process: subprocess.Popen[bytes]
    folder: Path

    def kill(self) -> None:
        """Kill it and its executors at once."""
        os.killpg(self.process.pid, signal.SIGKILL)


@attrs.frozen
class Cluster:
    """A running cluster, and the environment of those who use it."""

    master: str
    workers: tuple[Worker, ...]
    environment: Mapping[str, str]
    folder: Path

    def configured(self, name: str, lines: str) -> dict[str, str]:
        """Return the environment with a `spark-defaults.conf` that has these lines too."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "spark-defaults.conf").write_text(DEFAULTS + lines)
        return {**self.environment, "SPARK_CONF_DIR": str(folder)}


@contextmanager
def running(arguments: list[str], log: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program, and end it and all that it started."""
    with log.open("wb") as stream:
        process = subprocess.Popen(
            arguments, stdout=stream, stderr=stream, env=environment, cwd=log.parent, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(find: Callable[[], Found | None], process: subprocess.Popen[bytes], log: Path) -> Found:
    """Wait until something is found while a program runs."""
    end = time.monotonic() + PATIENCE
    while (found := find()) is None:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.1)
    return found


def printed(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """Wait until a program has printed something, and return the group of the pattern."""
    return wait_for(lambda: re.search(pattern, log.read_text("utf-8", "replace")), process, log).group(1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a master and two workers, and end them."""
    folder = tmp_path_factory.mktemp("cluster")
    environment = {name: value for name, value in os.environ.items() if name not in TOLD_BY}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    daemons = {
        **environment,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dspark.master.rest.enabled=false",
    }
    place = ["--port", "0", "--webui-port", "0", "--host"]
    deploy = "org.apache.spark.deploy"
    with ExitStack() as stack:
        log = folder / "master.log"
        arguments = [SPARK_CLASS, f"{deploy}.master.Master", *place, "127.0.0.1"]
        process = stack.enter_context(running(arguments, log, daemons))
        master = printed(process, log, r"Starting Spark master at (spark://\S+)")
        workers = []
        # Spark starts a second attempt of a task on another host only.
        for name, host in (("first", "127.0.0.1"), ("second", "127.0.0.2")):
            own = folder / name
            own.mkdir()
            size = ["--cores", "2", "--memory", "2g", "--work-dir", str(own)]
            arguments = [SPARK_CLASS, f"{deploy}.worker.Worker", *place, host, *size, master]
            workers.append(Worker(stack.enter_context(running(arguments, own / "worker.log", daemons)), own))
        for worker in workers:
            printed(worker.process, worker.folder / "worker.log", r"(Successfully registered) with master")
        yield Cluster(master, tuple(workers), environment, folder)


def result(folder: Path) -> dict[str, Any]:
    """Return all that a result folder holds: tables row by row, documents as they are."""
    files = [file for file in folder.rglob("*.parquet") if file.name != "files.parquet"]  # has digests of the others
    tables = {file: pq.read_table(file, partitioning=None).to_pylist() for file in files}
    documents = {file: json.loads(file.read_text()) for file in folder.rglob("*.json")}
    for entry in ("files", "inputs"):  # of the files that were read and written
        documents.get(folder / "run.json", {}).pop(entry, None)
    return {str(file.relative_to(folder)): content for file, content in (tables | documents).items()}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Resolve in this process."""
    folder = tmp_path_factory.mktemp("expected")
    out, loaded = Folder(str(folder)), load_run_file(RUN_FILE)
    run, history = run_of(loaded), Folder(str(tmp_path_factory.mktemp("history")))
    manifest = ingest(in_process, run, history).manifest
    summary = resolve_history(in_process, run, history, out)
    resolved = RunDocument(
        run,
        summary,
        manifest.changes,
        manifest.errors,
        manifest.left_out,
        manifest.assumed,
        manifest.epochs_left_out,
        summary.settled,
    )
    out.write_json("counters.json", {name: {**zero_counters(), **each} for name, each in summary.counters.items()})
    out.write_json("run.json", resolved.to_json("spark"))
    found = result(folder)
    assert found["counters.json"]["A"]["Ndb_conflict_fn_epoch"] == 25
    return found


def command(start: str) -> str:
    """Return the command of the page that starts in some way."""
    (found,) = [each for each in COMMANDS if each.startswith(start)]
    return found


def run(line: str, environment: Mapping[str, str]) -> None:
    """Run a command line from the folder of the project."""
    done = subprocess.run(
        line, shell=True, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_spark_submit_finds_what_one_process_finds(cluster: Cluster, expected: dict[str, Any], tmp_path: Path) -> None:
    """The command of the page, on the cluster."""
    line = command("spark-submit --master spark://HOST:7077 conflict/__main__.py")
    line = line.replace("spark://HOST:7077", cluster.master)
    line = line.replace("build/demo/recording", str(DEMO)).replace("build", str(tmp_path))
    run(line, cluster.configured("submit", ""))
    assert result(tmp_path / "cluster") == expected


@pytest.mark.slow
def test_object_storage_is_all_that_machines_share(cluster: Cluster, tmp_path: Path) -> None:
    """
    Binlogs, History and result are there; each process has a folder of its own; nothing else is left there.

    The binlogs grow, and a second ingest merges the batch of the first one with its own.
    """
    here = conflict.resolve(RUN_FILE, out=tmp_path / "here", engine="local")
    with pytest.MonkeyPatch.context() as patch, s3_server(patch.setenv) as s3:
        files = [file for file in DEMO.iterdir() if file.is_file()]
        s3.put((f"demo/{file.name}", file.read_bytes()[: begun(file)]) for file in files)
        keys = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        lines = "".join(f"spark.executorEnv.{name} {value}\n" for name, value in keys.items())
        environment = cluster.configured("storage", f"spark.master {cluster.master}\n{lines}") | keys
        place, command = f"s3://{BUCKET}", f"{shlex.quote(sys.executable)} -m conflict"
        for _ in range(2):
            run(f"{command} ingest {place}/demo/run.toml --out {place}/history", environment)
            s3.put((f"demo/{file.name}", file.read_bytes()) for file in files)
        manifest = read_manifest(folder_of(f"{place}/history"))
        assert (manifest.batches, manifest.merged) == ((1,), (0,))
        arguments = f"--history {place}/history --engine spark --out {place}/result"
        run(f"{command} resolve {place}/demo/run.toml {arguments}", environment)
        found = conflict.read_result(f"{place}/result")
        assert found.counters == here.counters
        for each in [(name, table) for name in here.clusters for table in here.tables]:
            assert found.rows(*each).to_pylist() == here.rows(*each).to_pylist()
        of_table = TABLE_OF_RESULT.format(place=f"{place}/result", sum=sum(here.outcomes()["epoch"].to_pylist()))
        run(f"{shlex.quote(sys.executable)} -c {shlex.quote(of_table)}", environment)
        (prefix,) = {each.split("/")[1] for each in s3.keys("result/")} - {"versions"}
        assert found.address("outcomes") == f"{place}/result/{prefix}/outcomes"
        for name in ("history", "result"):
            versions = s3.keys(f"{name}/versions/")
            bodies = (s3.client().get_object(Bucket=BUCKET, Key=each)["Body"].read() for each in versions)
            listed = {f"{name}/{each}" for body in bodies for each, _ in json.loads(body)["files"].values()}
            assert {*s3.keys(f"{name}/")} == listed | {*versions}


TABLE_OF_RESULT = """
import conflict
outcomes = conflict.read_result({place!r}).spark("outcomes")
assert int(outcomes.groupBy().sum("epoch").first()[0]) == {sum}
assert outcomes.select("applier").distinct().count() == 2
"""


def begun(file: Path) -> int | None:
    """Return the end of the first third of a binlog's transactions; None for another file."""
    ends = commits(file) if ".binlog." in file.name else []
    return ends[len(ends) // 3] if ends else None


@pytest.fixture(scope="module")
def connect(cluster: Cluster) -> Iterator[Mapping[str, str]]:
    """Start a Spark Connect server on the cluster with the page's command; gives the environment of its clients."""
    log = cluster.folder / "connect.log"
    line = command("spark-submit --class").replace("spark://HOST:7077", cluster.master)
    with running(shlex.split(line), log, cluster.configured("connect", "")) as process:
        address = printed(process, log, r"Spark Connect server started at: (\S+)")
        yield {**cluster.environment, "SPARK_REMOTE": f"sc://{address}"}


@pytest.mark.slow
def test_spark_connect_finds_what_one_process_finds(
    connect: Mapping[str, str], expected: dict[str, Any], tmp_path: Path
) -> None:
    """The command of the page, as a client of the server."""
    address = f"sc://HOST:{connect['SPARK_REMOTE'].rpartition(':')[2]}"
    line = command("SPARK_REMOTE=").replace("sc://HOST:15002", address).replace("HOST", "127.0.0.1")
    run(line.replace("build/demo/recording", str(DEMO)).replace("build", str(tmp_path)), connect)
    assert result(tmp_path / "connect") == expected
    epochs = conflict.read_result(str(tmp_path / "connect")).outcomes()["epoch"].to_pylist()
    of_table = TABLE_OF_RESULT.format(place=str(tmp_path / "connect"), sum=sum(epochs))
    run(f"{shlex.quote(sys.executable)} -c {shlex.quote(of_table)}", connect)


@pytest.mark.slow
def test_a_folder_that_is_not_shared_is_refused(connect: Mapping[str, str], tmp_path: Path) -> None:
    """A relative path is another folder on the executors: they find nothing there, and the run is refused."""
    code = """
from conflict.errors import ConfigurationError
from conflict.rules.counters import zero_counters
from conflict.history.grid.attempts import Seen
from conflict.history.grid.folder import Folder
from conflict.spark.session import check_shared, spark_session

check_shared(spark_session(), [Folder({shared!r})])
try:
    check_shared(spark_session(), [Folder("build/not-shared")])
except ConfigurationError as error:
    assert "build/not-shared is not the same folder" in str(error), error
else:
    raise AssertionError
try:
    check_shared(spark_session(), [], [Seen(Folder("build/history"), "history.json", "0")])
except ConfigurationError as error:
    assert "build/history is not the same folder" in str(error), error
else:
    raise AssertionError
"""
    done = subprocess.run(
        [sys.executable, "-c", code.format(shared=str(tmp_path))],
        capture_output=True,
        text=True,
        env=connect,
        cwd=tmp_path,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("how", ["slow", "killed"])  # this last test on the cluster kills a worker
def test_an_interrupted_task_changes_nothing(
    cluster: Cluster, expected: dict[str, Any], tmp_path: Path, how: str
) -> None:
    """
    A task waits whose work is done but not yet reported; or its worker dies with its executors meanwhile.

    The task runs again elsewhere, and the result is the same. Spark is told of the cluster by `spark-defaults.conf`.
    """
    script = ROOT / "tests/conflict/interrupted.py"
    out, log, attempt = tmp_path / "out", tmp_path / "log", tmp_path / "attempt-0"
    arguments = [
        sys.executable,
        str(script),
        str(tmp_path),
        "resolve",
        str(RUN_FILE),
        "--engine",
        "spark",
        "--out",
        str(out),
    ]
    lines = f"spark.master {cluster.master}\n{SPECULATION if how == 'slow' else ''}"
    with running(arguments, log, cluster.configured(how, lines)) as process:
        ran_in = wait_for(lambda: attempt.read_text() if attempt.exists() else None, process, log)
        (worker,) = [each for each in cluster.workers if Path(ran_in).is_relative_to(each.folder)]
        if how == "killed":
            worker.kill()
        assert process.wait(PATIENCE) == 0, log.read_text()
    assert not Path((tmp_path / "attempt-1").read_text()).is_relative_to(worker.folder)
    assert result(out) == expected


def test_every_command_of_the_page_is_run_here() -> None:
    """There is no command under the heading besides those of these tests."""
    assert [each.split()[0] for each in COMMANDS] == ["spark-submit", "spark-submit", "SPARK_REMOTE=sc://HOST:15002"]
