"""
How fast a History is resolved: this project's Spark job beside its own reference engine and a DuckDB query.

    python -m benchmarks.resolve --peer-python VENV/bin/python

Timed is `resolve_history`, from a History on disk to its result on disk: what was applied, outcomes, exceptions and
counters; and once more with the final rows of all tables, for which images have to be read. Spark's start is apart, and
so is a first run over a small History, which compiles the kernels, and a first one over the History itself. Histories
are made as the function's tables are usually logged (see `benchmarks.history_maker`).

The reference engine resolves a smaller History of the same kind in memory. DuckDB merely numbers each key's changes in
order, by a window query over the same files on as many cores (see `benchmarks/peer_duckdb.py`); without --peer-python
it is left out. Outside the times it is checked that job and reference engine come to the same result on the smaller
History, that the job decided every change that was taken, and that DuckDB saw all changes and keys.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import attrs

from benchmarks.agreement import by_job, by_reference, differences
from benchmarks.history_buckets import plan_of
from benchmarks.history_maker import configuration, make_history, usual_binlog_type
from benchmarks.history_reader import read_history
from benchmarks.history_shape import Shape
from benchmarks.sessions import Measured, Session, session
from benchmarks.timing import Timing, environment, markdown_table, measure, write_results
from conflict.engine.replay import resolve
from conflict.functions import FUNCTIONS
from conflict.grid import Folder

__all__ = ["describe", "duckdb", "history_of", "statistics_of", "warm_up"]

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
    judged = int(plan.clocks[1].transactions[plan.clocks[1].taken < shape.slots].sum())
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


def taken(shape: Shape) -> int:
    """Return how many changes of both clusters stand in epochs that are taken."""
    clocks = plan_of(shape).clocks
    return sum(int(clock.starts[(clock.taken < shape.slots).sum()]) for clock in clocks)


def duckdb(history: Path, cores: int, runs: int, python: str) -> dict[str, Any]:
    """Measure DuckDB's query, and check that it saw every change."""
    script = Path(__file__).with_name("peer_duckdb.py")
    command = [python, str(script), str(history), str(cores), str(runs)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603 - the caller's interpreter
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["changes"] == json.loads((history / "history.json").read_text(encoding="utf-8"))["changes"]
    return {**found, "changes_per_second": found["changes"] / statistics.median(found["wall"])}


def reference(function: str, changes: int, runs: int, scratch: Path) -> Timing:
    """Measure the reference engine on a small History in memory."""
    history = history_of(small_shape(changes, usual_binlog_type(function)), scratch)
    run = configuration(function)
    made = read_history(Folder(str(history)), run)
    setups = run.setups()
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
    spark.resolve(history, function, binlog_type, scratch, runs=2)


@attrs.frozen
class Result:
    """One function: all of the job, and without final rows, the reference engine, statistics."""

    function: str
    job: Measured
    without_rows: Measured
    reference_rate: float
    shape: dict[str, Any]


def measured(function: str, spark: Session, arguments: argparse.Namespace, scratch: Path) -> Result:
    """Measure one function."""
    binlog_type = usual_binlog_type(function)
    shape = Shape(arguments.changes, arguments.seed, binlog_type=binlog_type)
    history = history_of(shape, scratch)
    check_agreement(function, arguments.reference_changes, scratch)
    warm_up(spark, function, scratch)
    job = spark.resolve(history, function, binlog_type, scratch, runs=arguments.repeat)
    assert decided(job) == taken(shape)
    without = spark.resolve(history, function, binlog_type, scratch, runs=arguments.repeat, final_rows=False)
    timing = reference(function, arguments.reference_changes, arguments.reference_runs, scratch)
    rate = arguments.reference_changes / statistics.median(timing.wall)
    return Result(function, job, without, rate, statistics_of(shape, job))


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
    if not arguments.peer_python:
        print("--peer-python was not given: DuckDB is left out", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder, session(arguments.cores) as spark:
        scratch, results, peers = Path(folder), [], {}
        for function in arguments.functions:
            results.append(measured(function, spark, arguments, scratch))
            print(describe(results[-1]), flush=True)
        for path in sorted(scratch.glob(f"history-{arguments.changes}-*")) if arguments.peer_python else ():
            peers[int(path.name[-1])] = duckdb(path, arguments.cores, arguments.repeat, arguments.peer_python)
        start = spark.start
    tables = [ratio_table(results, peers), rate_table(results), history_table(results)]
    print("\n".join(tables))
    write_results(arguments.out, document(arguments, results, peers, start), tables)


def describe(result: Result) -> str:
    """Return one line on a function."""
    without, job = result.without_rows, result.job
    rates = f"{without.rate / MILLION:.2f} million row changes/s, {job.rate / MILLION:.2f} with final rows"
    return f"{result.function}: {rates}, noise {without.noise:.0%}, {job.noise:.0%}"


def ratio_table(results: list[Result], peers: dict[int, dict[str, Any]]) -> str:
    """Return how many times faster the job is than each peer, and than the goal where there is one."""
    rows = []
    for result in results:
        peer = peers.get(result.shape["binlog_type"])
        goal = GOALS.get(result.function)
        both = (result.without_rows.rate, result.job.rate)
        ordering = peer["changes_per_second"] if peer else None
        rows.append(
            [
                f"`{result.function}`",
                *(f"{rate / ordering:.2f}x" if ordering else "not measured" for rate in both),
                f"{result.job.rate / result.reference_rate:.0f}x",
                *(f"{rate / goal:.2f}x of {goal / MILLION:.0f}" if goal else "none" for rate in both),
            ]
        )
    headings = [
        "the job, compared with", "DuckDB's window query", "with final rows", "reference engine, with final rows",
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
                f"{job.gibibytes:.2f}",
                f"{result.reference_rate:,.0f}",
            ]
        )
    headings = [
        "function", "million row changes/s", "with final rows", "median s", "with final rows", "processor s",
        "with final rows", "noise", "with final rows", "peak GiB", "reference engine, row changes/s",
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
    arguments: argparse.Namespace, results: list[Result], peers: dict[int, dict[str, Any]], start: float
) -> dict[str, Any]:
    """Return everything for JSON."""
    return {
        "environment": environment("numba", "numpy", "pyarrow", "pyspark"),
        "columns": MIX,
        "cores": arguments.cores,
        "goals": GOALS,
        "spark_start_seconds": start,
        "duckdb": {f"binlog type {number}": peer for number, peer in peers.items()},
        "results": {
            result.function: {
                "job": result.job.document(),
                "job_without_final_rows": result.without_rows.document(),
                "reference_changes_per_second": result.reference_rate,
                "history": result.shape,
            }
            for result in results
        },
    }


if __name__ == "__main__":
    main()
