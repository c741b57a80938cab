"""
Ingest and resolve on a cluster whose workers share nothing but an S3 server on loopback (moto).

    python -m benchmarks.apart --changes 10000000 --workers 2 --out build/bench/apart.json

A standalone master; each worker has temporary files and a home of its own, and, where the system allows it
(`unshare -m`, as root), a mount namespace in which the binlogs and the folders of the others are not there. Measured
are the bytes that each process moved, the processor time and the greatest memory of each, and what is left on the disks
of the workers, during and after. Counters and final rows are compared with those of the local engine in one process.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pandas as pd
import pyspark
from s3fs import S3FileSystem

import conflict
from benchmarks.machine import environment, start
from benchmarks.makers.pair_maker import make_pair
from benchmarks.process_tree import processor_seconds, tree
from benchmarks.timing import markdown_table, write_results
from tests.conflict.object_storage import BUCKET, S3, Moved, s3_server

ROOT = Path(__file__).parents[1]
SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin/spark-class")
PATIENCE = 3600.0  # seconds
MEGABYTE = 10**6
FILE_BYTES = 1 << 28
_LOOK_EVERY, REMOVED_AFTER = 0.5, 10.0  # seconds; Spark removes the folders of executors when these have ended
CONFIGURATION = """
spark.master {master}
spark.executor.cores {cores}
spark.executor.memory 512m
spark.ui.enabled false
spark.ui.showConsoleProgress false
spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.executor.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
"""


@attrs.frozen
class Place:
    """A worker, or the driver: its folder, in which all its files are."""

    name: str
    folder: Path

    def environment(self, shared: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of its processes."""
        own = {name: str(self.folder / name.lower()) for name in ("HOME", "TMPDIR", "SPARK_LOCAL_DIRS")}
        for each in own.values():
            Path(each).mkdir(parents=True, exist_ok=True)
        return {**shared, **own, "AWS_SDK_UA_APP_ID": self.name}

    def files(self) -> list[Path]:
        """Return the files of the program that are there: not those of Spark, and no compiled kernels."""
        walked = os.walk(self.folder)  # which passes over what is gone meanwhile
        return [Path(folder, name) for folder, _, names in walked if "/ndb-scratch-" in folder for name in names]


@attrs.define
class Watched:
    """
    What was seen of some processes and folders while a command ran.

    Attributes:
        peaks: By place and kind of process, the greatest resident memory of one of them, in bytes.
        disk: By place, the most bytes of files of the program at a time.
    """

    peaks: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    disk: Counter[str] = attrs.field(factory=Counter)

    def look(self, places: Mapping[Place, int]) -> None:
        """Look at the processes below that of each place, and at its folder."""
        for place, process in places.items():
            for each in tree(process):
                kind, memory = kind_and_memory(each)
                self.peaks[place.name, kind] = max(self.peaks[place.name, kind], memory)
            size = sum(_size(each) for each in place.files())
            self.disk[place.name] = max(self.disk[place.name], size)


def kind_and_memory(process: int) -> tuple[str, int]:
    """Return whether a process runs Java or Python, and the greatest memory that it had, in bytes."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return "", 0
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return "Java" if b"java" in command.partition(b"\0")[0] else "Python", 1024 * int(found.group(1)) if found else 0


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0  # it is gone


@contextmanager
def started(command: Sequence[str], log: Path, own: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program, and end it and all that it started."""
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream, env=own, start_new_session=True)  # noqa: S603  # our own
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def _printed(log: Path, pattern: str) -> str:
    end = time.monotonic() + 120
    while (found := re.search(pattern, log.read_text("utf-8", "replace"))) is None:
        if time.monotonic() > end:
            raise TimeoutError(log.read_text("utf-8", "replace"))
        time.sleep(0.2)
    return found.group(1)


def _alone(command: Sequence[str], hidden: Sequence[Path]) -> list[str]:
    """Return a command that runs where some folders are empty, if the system allows it."""
    program = shutil.which("unshare")
    if program is None or subprocess.run([program, "-m", "true"], capture_output=True, check=False).returncode:  # noqa: S603
        return list(command)
    mounts = " && ".join(f"mount -t tmpfs none {each}" for each in hidden)
    return [program, "-m", "sh", "-c", f'{mounts} && exec "$@"', "sh", *command]


@attrs.frozen
class Cluster:
    """
    A running cluster.

    Attributes:
        master: Its address.
        workers: The process of each worker.
        driver: Where the commands run.
        shared: The environment that all processes have.
        folder: Where all folders are.
        commands: The processes of its commands until now.
    """

    master: str
    workers: Mapping[Place, int]
    driver: Place
    shared: Mapping[str, str]
    folder: Path
    commands: list[int] = attrs.field(factory=list)

    def drivers(self) -> list[int]:
        """Return the process of the command that runs now."""
        return [each for each in self.commands[-1:] if len(tree(each)) > 1]

    def run(self, *arguments: str) -> tuple[Watched, dict[str, float]]:
        """Run a command; return what was seen, and its seconds and those of processor time by place."""
        watched, begun = Watched(), time.monotonic()
        before = {place: processor_seconds(process) for place, process in self.workers.items()}
        print(f"{' '.join(arguments)}", flush=True)
        log, used = self.folder / "command.log", dict[str, float]()
        command = [sys.executable, "-m", "conflict", *arguments]
        with started(command, log, self.driver.environment(self.shared)) as process:
            self.commands.append(process.pid)
            while process.poll() is None:
                used["driver"] = processor_seconds(process.pid)
                for place, own in self.workers.items():  # what has ended is not counted later
                    used[place.name] = max(used.get(place.name, 0.0), processor_seconds(own) - before[place])
                watched.look({**self.workers, self.driver: process.pid})
                time.sleep(_LOOK_EVERY)
        if process.returncode not in (0, 1, 3, 4):
            raise RuntimeError(log.read_text("utf-8", "replace"))
        return watched, {"seconds": time.monotonic() - begun, **used}


@contextmanager
def cluster(folder: Path, workers: int, cores: int, hidden: Sequence[Path]) -> Iterator[Cluster]:
    """Start a master and workers, each with a folder of its own; `hidden` folders are not there for workers."""
    shared = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    shared |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dspark.master.rest.enabled=false",
    }
    places = [Place(f"w{number}", folder / f"w{number}") for number in range(1, workers + 1)]
    driver = Place("driver", folder / "driver")
    for each in (*places, driver, Place("conf", folder / "conf")):
        each.folder.mkdir()
    deploy, address = "org.apache.spark.deploy", ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with ExitStack() as held:
        log = folder / "master.log"
        held.enter_context(started([SPARK_CLASS, f"{deploy}.master.Master", *address], log, shared))
        master = _printed(log, r"Starting Spark master at (spark://\S+)")
        (folder / "conf/spark-defaults.conf").write_text(CONFIGURATION.format(master=master, cores=cores))
        running = dict[Place, int]()
        for place in places:
            size = ["--cores", str(cores), "--memory", "2g", "--work-dir", str(place.folder / "work")]
            command = [SPARK_CLASS, f"{deploy}.worker.Worker", *address, *size, master]
            own = _alone(command, [*hidden, *(each.folder for each in (*places, driver) if each != place)])
            log = folder / f"{place.name}.log"
            running[place] = held.enter_context(started(own, log, place.environment(shared))).pid
            _printed(log, "(Successfully registered) with master")
        yield Cluster(master, running, driver, shared, folder)


def moved_by(moved: Sequence[Moved], method: str, wanted: Callable[[str], bool]) -> Counter[str]:
    """Return the bytes that each place moved."""
    found = Counter[str]()
    for each in moved:
        if each.method == method and wanted(each.path):
            found[each.process] += each.bytes
    return found


def _is_staged(path: str) -> bool:
    return "/staged/changes/" in path or "/staged/consequences/" in path


def measured(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Measure, and compare the rows with those of the local engine."""
    logs = folder / "logs"
    logs.mkdir()
    changes, _ = make_pair(logs, options.changes, file_bytes=FILE_BYTES)
    size = _size_of_logs(logs)
    with with_environment() as setenv, s3_server(setenv) as s3:
        put_logs(s3, logs)
        for each in logs.iterdir():  # what is made of the logs needs the disk
            each.unlink()
        place, found = f"s3://{BUCKET}", dict[str, Any]()
        of_history = ["--history", f"{place}/history", "--engine", "spark"]
        with cluster(folder, options.workers, options.cores, [logs]) as running:
            for name, arguments in (
                ("ingest", ["ingest", f"{place}/logs/run.toml", "--out", f"{place}/history"]),
                ("resolve", ["resolve", f"{place}/logs/run.toml", "--out", f"{place}/result", *of_history]),
            ):
                s3.moved.clear()
                s3.requests.clear()
                watched, used = running.run(*arguments)
                time.sleep(REMOVED_AFTER)
                left = {each.name: sum(map(_size, each.files())) for each in (*running.workers, running.driver)}
                found[name] = {
                    "processor_seconds": used,
                    "requests": len(s3.requests),
                    "got": moved_by(s3.moved, "GET", lambda _: True),
                    "got_staged": moved_by(s3.moved, "GET", _is_staged),
                    "put": moved_by(s3.moved, "PUT", lambda _: True) + moved_by(s3.moved, "POST", lambda _: True),
                    "peak_memory": {" ".join(each): size for each, size in watched.peaks.items() if each[1]},
                    "peak_disk": watched.disk,
                    "left_on_disk": left,
                }
        S3FileSystem().rm(f"{BUCKET}/history", recursive=True)
        here = conflict.resolve(f"{place}/logs/run.toml", out=folder / "here", engine="local")
        same = same_rows(conflict.read_result(f"{place}/result"), here)
    return {"changes": changes, "binlog_bytes": size, "same_rows": same, **found}


def same_rows(found: conflict.Result, expected: conflict.Result) -> bool:
    """Whether two results hold the same counters and final rows, in any order."""
    parts = [f"rows/{name}/{table}" for name in expected.clusters for table in expected.tables]
    return found.counters == expected.counters and all(
        _digest(found, each) == _digest(expected, each) for each in parts
    )


def _digest(result: conflict.Result, part: str) -> tuple[int, int]:
    """Return the number of rows, and the sum of the digests of each, which no order changes."""
    number, total = 0, 0
    for batch in result.batches(part):
        number += batch.num_rows
        digests = pd.util.hash_pandas_object(batch.to_pandas(), index=False).to_numpy()
        total += int(digests.sum(dtype=np.uint64))
    return number, total % 2**64


def _size_of_logs(logs: Path) -> int:
    return sum(each.stat().st_size for each in logs.glob("*.0*"))


def put_logs(s3: S3, logs: Path) -> None:
    """Put a run file and what it names on the server."""
    for each in sorted(logs.iterdir()):
        s3.client().upload_file(str(each), BUCKET, f"logs/{each.name}")


@contextmanager
def with_environment() -> Iterator[Callable[[str, str], None]]:
    """Give what sets a variable of the environment until the end of the block."""
    before = dict(os.environ)
    try:
        yield os.environ.__setitem__
    finally:
        os.environ.clear()
        os.environ.update(before)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--changes", type=int, default=10_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cores", type=int, default=1, help="of each worker")
    parser.add_argument("--out", type=Path, default=Path("build/bench/apart.json"))
    options = parser.parse_args()
    began = start()
    folder = Path(tempfile.mkdtemp())
    try:
        found = measured(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    facts = {"environment": environment(began, "numpy", "pyarrow", "pyspark", "s3fs"), **found}
    write_results(options.out, facts, [text_of(found)])
    print(text_of(found))


def text_of(found: Mapping[str, Any]) -> str:
    """Return the figures of each process as a table; bytes in megabytes."""
    rows, size = [], found["binlog_bytes"]
    for command in ("ingest", "resolve"):
        own = found[command]
        for place in sorted(own["left_on_disk"]):
            memory = {each.split()[1]: peak for each, peak in own["peak_memory"].items() if each.split()[0] == place}
            figures = [own[kind].get(place, 0) for kind in ("got", "got_staged", "put", "peak_disk", "left_on_disk")]
            figures += [memory.get("Python", 0), memory.get("Java", 0)]
            seconds = f"{own['processor_seconds'].get(place, 0):.1f}"
            rows.append([command, place, seconds, *(f"{each / MEGABYTE:.1f}" for each in figures)])
    headings = ["command", "place", "processor s", "MB got", "of staged rows", "MB sent", "most MB on disk"]
    headings += ["left on disk", "MB of memory: Python", "Java"]
    staged = sum(found["ingest"]["got_staged"].values()) / size
    said = f"{size / MEGABYTE:.1f} MB of binlogs, {staged:.2f} times fetched as staged rows; same: {found['same_rows']}"
    return f"{markdown_table(headings, rows)}\n{said}"


if __name__ == "__main__":
    main()
