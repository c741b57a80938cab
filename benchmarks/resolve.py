"""
How fast a History is resolved: this project's Spark job beside its own reference engine and a DuckDB query.

    python -m benchmarks.resolve --peer-python VENV/bin/python

Timed is `resolve_history`, from a History on disk to its result on disk: what was applied, outcomes, exceptions and
counters; and once more with the final rows of all tables, for which images have to be read. Spark's start is apart, and
so is a first run over a small History, which compiles the kernels, and a first one over the History itself. Histories
are made as the function's tables are usually logged (see `benchmarks.makers.history_maker`).

The reference engine resolves a smaller History of the same kind in memory. DuckDB judges nothing: on as many cores, one
window query numbers each key's changes over the same files, and another one makes the final rows of both clusters, from
values that stand in columns already (see `benchmarks/peer_duckdb.py`); without --peer-python it is left out. Outside
the times it is checked that job and reference engine come to the same result on the smaller History, that the job
decided every change that was taken, and that DuckDB saw all changes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs

from benchmarks.agreement import by_job, by_reference, differences
from benchmarks.machine import environment, package_version, start
from benchmarks.makers.history_buckets import plan_of
from benchmarks.makers.history_maker import configuration, make_history, usual_binlog_type
from benchmarks.makers.history_reader import read_history
from benchmarks.makers.history_shape import Shape
from benchmarks.makers.history_values import values_of
from benchmarks.sessions import Measured, Session, session
from benchmarks.timing import Run, Timing, in_turns, markdown_table, measure, write_results
from conflict.engine.reference.replay import resolve
from conflict.history.grid.folder import Folder
from conflict.rules.functions import FUNCTIONS

__all__ = ["describe", "history_of", "statistics_of", "warm_up"]

RESULTS = Path(__file__).parent / "results" / "resolve.json"
NAMES = tuple(spec.name for spec in FUNCTIONS)
GOALS = {"NDB$MAX": 10e6, "NDB$EPOCH": 10e6, "NDB$EPOCH_TRANS": 4e6}  # row changes per second on two cores
MILLION = 1e6
MIX = (
    "BIGINT UNSIGNED key; INT UNSIGNED, TINYINT, BIGINT UNSIGNED (the resolve column), VARCHAR(20) utf8mb4; whole rows "
    "in both images for the functions that compare a column (binlog type 7), the key before and the changed columns "
    "after for those by epoch (type 8)"
)


def small_shape(changes: int, binlog_type: int, buckets: int = 2) -> Shape:
    """Return a shape of the same kind for a small History: so many keys that they are not hotter than in a big one."""
    return Shape(changes, keys=changes // 4, changes_per_epoch=20, buckets=buckets, binlog_type=binlog_type)


def history_of(shape: Shape, folder: Path, processes: int = 2) -> Path:
    """Return where a History of a shape stands, which is made if it is not there."""
    path = folder / f"history-{shape.changes}-{shape.binlog_type}"
    if not path.exists():
        make_history(shape, Folder(str(path)), processes=processes)
    return path


def statistics_of(shape: Shape, measured: Measured) -> dict[str, Any]:
    """Return what a History is like, with the conflicts that were found in it."""
    plan = plan_of(shape)
    tables = (table for site in measured.answer["summary"]["tables"].values() for table in site.values())
    transactions = sum(int(clock.transactions.sum()) for clock in plan.clocks)
    judged = int(plan.clocks[1].transactions[plan.clocks[1].applied < shape.slots].sum())
    in_conflict = measured.answer["counters"]["A"].get("Ndb_conflict_trans_reject_count", 0)
    return {
        **attrs.asdict(shape),
        "epochs": 2 * shape.slots,
        "transactions": transactions,
        "operations_rejected": sum(table["rejected"] for table in tables),
        "part_of_transactions_in_conflict": in_conflict / judged,
    }


def decided(measured: Measured) -> int:
    """Return how many own changes of the clusters were decided, as the figures of a run tell."""
    received = ("Ndb_conflict_refresh_op_count", "Ndb_conflict_reflected_op_prepare_count")
    verdicts = ("applied", "rejected", "ignored", "discarded", "skipped")
    tables = (table for site in measured.answer["summary"]["tables"].values() for table in site.values())
    logged = sum(counters.get(name, 0) for counters in measured.answer["counters"].values() for name in received)
    return sum(table.get(name, 0) for table in tables for name in verdicts) - logged


def applied(shape: Shape) -> int:
    """Return how many changes of both clusters stand in epochs that are taken."""
    clocks = plan_of(shape).clocks
    return sum(int(clock.starts[(clock.applied < shape.slots).sum()]) for clock in clocks)


@attrs.frozen
class DuckDB:
    """Queries of DuckDB over a History, in a process of its own; `facts` are what it saw."""

    facts: dict[str, Any]
    _process: subprocess.Popen[str]

    def run(self) -> Run:
        """Run the query once."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return Run(**_next(self._process))


@contextmanager
def duckdb(asked: Sequence[str | Path], cores: int, python: str) -> Iterator[DuckDB]:
    """Start DuckDB by an interpreter that has it; what is asked are the arguments of `benchmarks/peer_duckdb.py`."""
    command = [python, str(Path(__file__).with_name("peer_duckdb.py")), *map(str, asked), str(cores)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - the caller's interpreter
        yield DuckDB(_next(process), process)


def _next(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    return dict(json.loads(process.stdout.readline()))


def reference(function: str, changes: int, runs: int, scratch: Path) -> Timing:
    """Measure the reference engine on a small History in memory."""
    history = history_of(small_shape(changes, usual_binlog_type(function)), scratch)
    run = configuration(function)
    made = read_history(Folder(str(history)), run)
    setups = run.setups.at_end
    return measure(lambda: resolve(made, setups), runs=runs, warm_up=False)


def check_agreement(function: str, changes: int, scratch: Path) -> None:
    """Check that the job and the reference engine come to the same result on a small History."""
    history = Folder(str(history_of(small_shape(changes, usual_binlog_type(function)), scratch)))
    run = configuration(function)
    found = differences(by_reference(history, run), by_job(history, run))
    assert not found, f"{function}: the engines differ in {', '.join(found)}"


def warm_up(spark: Session, function: str, scratch: Path) -> None:
    """Compile the kernels, and load them in every worker."""
    binlog_type = usual_binlog_type(function)
    history = history_of(small_shape(4000, binlog_type, 4 * spark.cores), scratch)
    spark.prepare(history, function, binlog_type, scratch).run()


@attrs.frozen
class Result:
    """One function: all of the job, without final rows, the reference engine, DuckDB by query, statistics."""

    function: str
    job: Measured
    without_rows: Measured
    reference_rate: float
    peers: dict[str, dict[str, Any]]
    shape: dict[str, Any]


def measured(function: str, spark: Session, arguments: argparse.Namespace, scratch: Path) -> Result:
    """Measure one function: the job and DuckDB in turns."""
    binlog_type = usual_binlog_type(function)
    shape = Shape(arguments.changes, arguments.seed, binlog_type=binlog_type)
    history = history_of(shape, scratch)
    check_agreement(function, arguments.reference_changes, scratch)
    warm_up(spark, function, scratch)
    job, without = (
        spark.prepare(history, function, binlog_type, scratch, final_rows=final_rows) for final_rows in (True, False)
    )
    works, facts = {"job": job.run, "without": without.run}, {}
    with ExitStack() as stack:
        if arguments.peer_python:
            for kind, more in (("order", []), ("rows", [values_of(history)])):
                asked = (kind, history, *more)
                peer = stack.enter_context(duckdb(asked, arguments.cores, arguments.peer_python))
                works[kind], facts[kind] = peer.run, peer.facts
            assert facts["order"]["changes"] == shape.changes
        runs = in_turns(works, arguments.repeat, again=arguments.repeat)
    all_of_it = job.measured(runs["job"])
    assert decided(all_of_it) == applied(shape)
    timing = reference(function, arguments.reference_changes, arguments.reference_runs, scratch)
    return Result(
        function,
        all_of_it,
        without.measured(runs["without"]),
        arguments.reference_changes / statistics.median(timing.wall),
        {kind: _peer_document(found, shape.changes, runs[kind]) for kind, found in facts.items()},
        statistics_of(shape, all_of_it),
    )


def _peer_document(facts: dict[str, Any], changes: int, runs: Sequence[Run]) -> dict[str, Any]:
    """Return what DuckDB took, for JSON."""
    wall = [run.wall for run in runs]
    rate = changes / statistics.median(wall)
    return {**facts, "wall": wall, "processor": [run.processor for run in runs], "changes_per_second": rate}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--changes", type=int, default=1_000_000, help="row changes of the Histories")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--functions", nargs="+", default=NAMES, choices=NAMES, metavar="FUNCTION")
    parser.add_argument("--repeat", type=int, default=5, help="runs of the job and of DuckDB")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reference-changes", type=int, default=20_000, help="row changes for the reference engine")
    parser.add_argument("--reference-runs", type=int, default=3)
    parser.add_argument("--peer-python", help="interpreter of an environment with duckdb")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON to write; a Markdown file is put beside it")
    arguments = parser.parse_args()
    began, peers = start(), {}
    if arguments.peer_python:
        peers["DuckDB"] = package_version(arguments.peer_python, "duckdb")
    else:
        print("--peer-python was not given: DuckDB is left out", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder, session(arguments.cores) as spark:
        scratch, results = Path(folder), []
        for function in arguments.functions:
            results.append(measured(function, spark, arguments, scratch))
            print(describe(results[-1]), flush=True)
        started = spark.start
    tables = [ratio_table(results), rate_table(results), history_table(results)]
    print("\n".join(tables))
    facts = environment(began, "numba", "numpy", "pyarrow", "pyspark", peers=peers)
    write_results(arguments.out, document(arguments, results, started, facts), tables)


def describe(result: Result) -> str:
    """Return one line on a function."""
    without, job = result.without_rows, result.job
    rates = f"{without.rate / MILLION:.2f} million row changes/s, {job.rate / MILLION:.2f} with final rows"
    return f"{result.function}: {rates}, noise {without.noise:.0%}, {job.noise:.0%}"


def ratio_table(results: list[Result]) -> str:
    """Return how many times faster the job is than each peer, and than the goal where there is one."""
    rows = []
    for result in results:
        goal = GOALS.get(result.function)
        both = (result.without_rows.rate, result.job.rate)
        peers = [result.peers.get(kind, {}).get("changes_per_second") for kind in ("order", "rows")]
        rows.append(
            [
                f"`{result.function}`",
                *(f"{rate / peer:.2f}x" if peer else "not measured" for rate, peer in zip(both, peers, strict=True)),
                f"{result.job.rate / result.reference_rate:.0f}x",
                *(f"{rate / goal:.2f}x of {goal / MILLION:.0f}" if goal else "none" for rate in both),
            ]
        )
    headings = [
        "the job, compared with", "DuckDB's order", "DuckDB's final rows", "reference engine, with final rows",
        "goal, million/s", "with final rows",
    ]  # fmt: skip
    return markdown_table(headings, rows)


def rate_table(results: list[Result]) -> str:
    """Return rates, times and memory of the job."""
    rows = []
    for result in results:
        job, without = result.job, result.without_rows
        rows.append(
            [
                f"`{result.function}`",
                f"{without.rate / MILLION:.2f}",
                f"{job.rate / MILLION:.2f}",
                *(f"{each.seconds:.2f}" for each in (without, job)),
                *(f"{statistics.median(each.processor):.2f}" for each in (without, job)),
                *(f"{each.noise:.0%}" for each in (without, job)),
                f"{statistics.median(job.stolen):.0%}",
                f"{job.gibibytes:.2f}",
                f"{result.reference_rate:,.0f}",
            ]
        )
    headings = [
        "function", "million row changes/s", "with final rows", "median s", "with final rows", "processor s",
        "with final rows", "noise", "with final rows", "stolen", "peak GiB", "reference engine, row changes/s",
    ]  # fmt: skip
    return markdown_table(headings, rows)


def history_table(results: list[Result]) -> str:
    """Return what the Histories are like."""
    rows = [
        [
            f"`{result.function}`",
            f"{result.shape['changes']:,}",
            f"{result.shape['keys']:,}",
            f"{result.shape['epochs']:,}",
            f"{result.shape['transactions']:,}",
            f"{result.shape['binlog_type']}",
            f"{result.shape['operations_rejected']:,}",
            f"{result.shape['part_of_transactions_in_conflict']:.2%}",
        ]
        for result in results
    ]
    headings = [
        "History", "row changes", "keys", "epochs", "transactions", "binlog type", "operations rejected",
        "transactions in conflict",
    ]  # fmt: skip
    return markdown_table(headings, rows)


def document(
    arguments: argparse.Namespace, results: list[Result], start: float, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return everything for JSON."""
    return {
        "environment": facts,
        "columns": MIX,
        "cores": arguments.cores,
        "goals": GOALS,
        "spark_start_seconds": start,
        "results": {
            result.function: {
                "job": result.job.document(),
                "job_without_final_rows": result.without_rows.document(),
                "reference_changes_per_second": result.reference_rate,
                "duckdb": result.peers,
                "history": result.shape,
            }
            for result in results
        },
    }


if __name__ == "__main__":
    main()
