"""
How fast the command `decode` is, and the data source: whole outputs, beside mysqlbinlog and python-mysql-replication.

    python -m benchmarks.decode_files --peer-python VENV/bin/python --mysqlbinlog PATH

All read a seeded file of one table with integers, decimals, temporals, text and JSON; python-mysql-replication only
iterates over it. What is compared is processor time per row change, and beside it the time on the wall: ours in this
process, after one run that compiles, mysqlbinlog as a whole process that writes a file. For the data source it is the
time on the wall, on two cores, in a session with the JVM's own settings, as users start it; beside it, Spark itself
copies the same Parquet, which is what its own reader and writer need. Peers that are not given are left out, with a
message.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.decode import reader_versions
from benchmarks.machine import environment, start
from benchmarks.makers.binlog_maker import MIXED_TYPES, write_binlog
from benchmarks.timing import Timing, markdown_table, measure, measure_command, write_results
from conflict.config.option_values import DecodedFormat
from conflict.decoding.decoding import Decoding, Output
from conflict.decoding.inputs import opened_inputs
from conflict.spark.data_source import register
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import Selection
from ndb_formats.text.row_printer import TextOptions

RESULTS = Path(__file__).parent / "results" / "decode_files.json"
MEGABYTE = 1_000_000
PEER, TOOL = "python-mysql-replication, iterating", "mysqlbinlog -vv --base64-output=decode-rows"


def decode(path: Path, form: DecodedFormat, target: Path) -> None:
    """Decode a file as the command does."""
    output = Output(form, target, force=True)
    output.check([path])
    with opened_inputs([path]) as inputs:
        output.write(Decoding(inputs, Selection(), Schema(), TextOptions(2), False), BytesIO())


def spark_timings(path: Path, folder: Path, runs: int) -> dict[str, Timing]:
    """
    Measure the data source on two cores, read to the end and written to Parquet, and Spark itself copying that Parquet.

    Processor time is not known, so it is the wall's.
    """
    spark = _users_session()
    register(spark)
    changes = spark.read.format("ndb_binlog").option("table", "bench.mixed").load(str(path))
    first, second = str(folder / "spark"), str(folder / "copy")

    def write(frame: DataFrame, target: str, dictionaries: str) -> None:
        frame.write.mode("overwrite").option("parquet.enable.dictionary", dictionaries).parquet(target)

    def copy(dictionaries: str) -> None:
        write(spark.read.parquet(first), second, dictionaries)

    works: dict[str, Callable[[], None]] = {
        "data source, 2 cores": lambda: changes.write.mode("overwrite").format("noop").save(),
        "data source to Parquet, 2 cores": partial(write, changes, first, "true"),
        "data source to Parquet without dictionaries, 2 cores": partial(write, changes, first, "false"),
        "Spark, that Parquet to Parquet, 2 cores": partial(copy, "true"),
        "Spark, that Parquet to Parquet without dictionaries, 2 cores": partial(copy, "false"),
    }
    found = {}
    for title, work in works.items():
        wall = []
        for _ in range(runs + 1):
            before = time.perf_counter()
            work()
            wall.append(time.perf_counter() - before)
        found[title] = Timing(tuple(wall[1:]), tuple(wall[1:]))
    spark.stop()
    return found


def _users_session() -> SparkSession:
    """Return a session as users start it: only what it prints is set."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.log.level", "ERROR")
    return builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").getOrCreate()


def peer(path: Path, runs: int, python: str) -> Timing:
    """Measure python-mysql-replication."""
    script = Path(__file__).with_name("peer_mysql_replication.py")
    command = [python, str(script), str(path), str(runs)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603 - the caller's interpreter
    answer = json.loads(done.stdout)
    return Timing(tuple(answer["wall"]), tuple(answer["processor"]))


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--size", type=int, default=64, help="megabytes of the file")
    parser.add_argument("--runs", type=int, default=5, help="runs of each program")
    parser.add_argument("--mysqlbinlog", default=shutil.which("mysqlbinlog"), help="the server's tool")
    parser.add_argument("--peer-python", help="interpreter of an environment with mysql-replication")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON to write; a Markdown file is put beside it")
    arguments = parser.parse_args()
    began = start()
    peers = reader_versions(arguments)
    found: dict[str, Timing] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "mixed"
        rows = write_binlog(file, MIXED_TYPES, arguments.size * MEGABYTE)
        works: dict[str, Callable[[], None]] = {
            f"decode, {form}": lambda form=form: decode(file, form, folder / f"out.{form}") for form in DecodedFormat
        }
        for title, work in works.items():
            found[title] = measure(work, runs=arguments.runs)
        found |= spark_timings(file, folder, arguments.runs)
        if arguments.mysqlbinlog:
            command = [arguments.mysqlbinlog, "--no-defaults", "-vv", "--base64-output=decode-rows", str(file)]
            found[TOOL] = measure_command(command, runs=arguments.runs, output=folder / "out.tool")
        if arguments.peer_python:
            found[PEER] = peer(file, arguments.runs, arguments.peer_python)
    rates = {title: rows / timing.seconds for title, timing in found.items()}
    lines = [
        [
            title,
            f"{rates[title]:,.0f}",
            *(f"{rates[title] / rates[name]:.2f}x" if name in rates else "not measured" for name in (TOOL, PEER)),
            f"{rows / statistics.median(found[title].wall):,.0f}",
            f"{found[title].noise:.0%}",
        ]
        for title in found
    ]
    headings = [
        "integers, decimals, temporals, text, JSON",
        "row changes/s",
        f"as fast as {TOOL}",
        f"as {PEER}",
        "row changes/s on the wall",
        "noise",
    ]
    tables = [markdown_table(headings, lines)]
    print(tables[0])
    document = {
        "environment": environment(began, "numba", "numpy", "pyarrow", "pyspark", peers=peers),
        "goals": {"parquet to mysqlbinlog": 10, "text, json and csv to mysqlbinlog": 3},
        "results": {
            title: {"rows": rows, "rows_per_second": rates[title], **timing.document()}
            for title, timing in found.items()
        },
    }
    write_results(arguments.out, document, tables)


if __name__ == "__main__":
    main()
