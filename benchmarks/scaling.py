"""
How the resolve job scales with data and with cores, and how far it is from what the disk and Parquet allow.

    python -m benchmarks.scaling --changes 1000000 10000000 --cores 1 2

The job and its Histories are those of `benchmarks.resolve`. Beside every time stands a limit, measured in the same run
on as many cores: the seconds that pyarrow takes only to decode every file of the History once, plus those that it takes
to write as many bytes as the result has. The files are in the page cache for both.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow.parquet as pq

from benchmarks.machine import environment, start
from benchmarks.makers.history_maker import usual_binlog_type
from benchmarks.makers.history_shape import Shape
from benchmarks.resolve import MILLION, MIX, applied, decided, history_of, statistics_of, warm_up
from benchmarks.sessions import Job, Measured, Session, session
from benchmarks.timing import Run, in_turns, markdown_table, write_results

RESULTS = Path(__file__).parent / "results" / "scaling.json"
MEGABYTE = 1_000_000
PIECE = bytes(MEGABYTE)
RUNS = 3


@attrs.frozen
class Limit:
    """
    What a machine needs for the bytes alone, on as many cores as the job. Medians, in seconds.

    Attributes:
        read: To read all files of the History.
        decode: To read and decode them.
        write: To write as many bytes as the result has.
    """

    read: float
    decode: float
    write: float

    @property
    def seconds(self) -> float:
        """Seconds that no job can stay below that decodes everything once and writes as much."""
        return self.decode + self.write


def _median(work: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        before = time.perf_counter()
        work()
        times.append(time.perf_counter() - before)
    return statistics.median(times)


def _decode(path: Path) -> int:
    return sum(len(batch) for batch in pq.ParquetFile(path).iter_batches(use_threads=False))


def _write(path: Path, size: int) -> None:
    with path.open("wb") as file:
        for _ in range(size // len(PIECE) + 1):
            file.write(PIECE)


def limit_of(history: Path, written: int, cores: int, scratch: Path) -> Limit:
    """Measure the limit of resolving a History."""
    files = sorted(history.glob("*/**/*.parquet"))
    with ThreadPoolExecutor(cores) as pool, tempfile.TemporaryDirectory(dir=scratch) as folder:
        targets = [Path(folder) / str(number) for number in range(cores)]
        return Limit(
            _median(lambda: sum(pool.map(lambda path: len(path.read_bytes()), files))),
            _median(lambda: sum(pool.map(_decode, files))),
            _median(lambda: list(pool.map(lambda path: _write(path, written // cores), targets))),
        )


@attrs.frozen
class Point:
    """One function at one size on so many cores."""

    function: str
    changes: int
    cores: int
    job: Measured
    without_rows: Measured
    limit: Limit
    shape: dict[str, Any]


def measured(function: str, sessions: Sequence[Session], arguments: argparse.Namespace, scratch: Path) -> list[Point]:
    """Measure one function: all sizes and cores, in turns."""
    binlog_type, most = usual_binlog_type(function), max(arguments.cores)
    shapes = [Shape(changes, arguments.seed, binlog_type=binlog_type) for changes in arguments.changes]
    jobs: dict[str, tuple[Shape, Session, Job]] = {}
    for spark in sessions:
        warm_up(spark, function, scratch)
        for shape in shapes:
            if spark.cores == most or shape.changes <= arguments.fewer_cores_up_to:
                for final_rows in (True, False):
                    history = history_of(shape, scratch)
                    job = spark.prepare(history, function, binlog_type, scratch, final_rows=final_rows)
                    jobs[_name(shape, spark, final_rows)] = shape, spark, job
    works = {name: partial(_run_awake, spark, job, function, scratch) for name, (_, spark, job) in jobs.items()}
    runs = in_turns(works, arguments.repeat, again=0)
    found = {name: job.measured(runs[name]) for name, (_, _, job) in jobs.items()}
    points = []
    for name, (shape, spark, _) in jobs.items():
        if name != _name(shape, spark, False):
            job, without = found[name], found[_name(shape, spark, False)]
            assert decided(job) == applied(shape)
            limit = limit_of(history_of(shape, scratch), job.written, spark.cores, scratch)
            shape_document = statistics_of(shape, job)
            points.append(Point(function, shape.changes, spark.cores, job, without, limit, shape_document))
            seconds = f"{without.seconds:.2f} s, {job.seconds:.2f} s with final rows"
            print(f"{function}, {shape.changes:,} row changes, {spark.cores} cores: {seconds}", flush=True)
    return points


def _run_awake(spark: Session, job: Job, function: str, scratch: Path) -> Run:
    """Run a job after a small one: Spark ends workers that had nothing to do for a minute, while others ran."""
    warm_up(spark, function, scratch)
    return job.run()


def _name(shape: Shape, spark: Session, final_rows: bool) -> str:
    return f"{shape.changes}, {spark.cores} cores{', final rows' if final_rows else ''}"


def ratio_table(points: list[Point]) -> str:
    """Return how the time grows with data, and falls with cores."""
    times = {
        (point.function, point.changes, point.cores): np.array([point.without_rows.seconds, point.job.seconds])
        for point in points
    }
    rows = []
    for (function, changes, cores), seconds in times.items():
        fewer, less = times.get((function, changes, 1)), times.get((function, changes // 10, cores))
        if cores > 1 and fewer is not None:
            ratios = [f"{ratio:.2f}x as fast" for ratio in fewer / seconds]
            rows.append([f"`{function}`", f"{cores} cores, compared with 1, {changes:,}", *ratios])
        if less is not None:
            ratios = [f"{ratio:.2f}x as long" for ratio in seconds / less]
            rows.append([f"`{function}`", f"{changes:,}, compared with a tenth, {cores} cores", *ratios])
    return markdown_table(["function", "row changes", "ratio", "with final rows"], rows)


def point_table(points: list[Point]) -> str:
    """Return times, memory and limits."""
    rows = [
        [
            f"`{point.function}`",
            f"{point.changes:,}",
            str(point.cores),
            *(f"{each.rate / MILLION:.2f}" for each in (point.without_rows, point.job)),
            *(f"{each.seconds:.2f}" for each in (point.without_rows, point.job)),
            *(f"{each.noise:.0%}" for each in (point.without_rows, point.job)),
            f"{statistics.median(point.job.stolen):.0%}",
            f"{max(point.job.gibibytes, point.without_rows.gibibytes):.2f}",
            f"{point.limit.seconds:.2f}",
            f"{point.job.seconds / point.limit.seconds:.1f}x",
            f"{point.shape['part_of_transactions_in_conflict']:.2%}",
        ]
        for point in points
    ]
    headings = [
        "function", "row changes", "cores", "million row changes/s", "with final rows", "median s", "with final rows",
        "noise", "with final rows", "stolen", "peak GiB", "limit s", "job with final rows to limit",
        "transactions in conflict",
    ]  # fmt: skip
    return markdown_table(headings, rows)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--changes", type=int, nargs="+", default=[1_000_000, 10_000_000], help="sizes, rising")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--functions", nargs="+", default=["NDB$MAX", "NDB$EPOCH_TRANS"], metavar="FUNCTION")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--fewer-cores-up-to", type=int, default=10_000_000, help="leave out bigger sizes on fewer than the most cores"
    )
    parser.add_argument("--scratch", type=Path, help="where Histories and results go meanwhile")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON to write; a Markdown file is put beside it")
    arguments = parser.parse_args()
    began = start()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder, ExitStack() as stack:
        sessions = [stack.enter_context(session(cores)) for cores in arguments.cores]
        points = [
            point for function in arguments.functions for point in measured(function, sessions, arguments, Path(folder))
        ]
    points.sort(key=lambda point: (point.function, point.changes, point.cores))
    tables = [ratio_table(points), point_table(points)]
    print("\n".join(tables))
    results = [
        {
            "function": point.function,
            "cores": point.cores,
            "job": point.job.document(),
            "job_without_final_rows": point.without_rows.document(),
            "limit": {**attrs.asdict(point.limit), "seconds": point.limit.seconds},
            "history": point.shape,
        }
        for point in points
    ]
    facts = {"environment": environment(began, "numba", "numpy", "pyarrow", "pyspark"), "columns": MIX}
    write_results(arguments.out, {**facts, "results": results}, tables)


if __name__ == "__main__":
    main()
