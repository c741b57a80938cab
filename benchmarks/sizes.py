"""
How fast the sizes of a log in every format are worked out, beside decoding the same log.

    python -m benchmarks.sizes --size 200

Both read the same seeded file in the same run, one after the other in every round: `read_batches` decodes every column
of every row to Arrow, and `LogSizer` works out the sizes in nine formats, each with two bounds. The last column is the
speed of sizes as a part of that of decoding; the goal is a third. Memory is the most that the process had.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.machine import environment, start
from benchmarks.makers.binlog_maker import MIXES, Mix, write_binlog
from benchmarks.timing import Run, Timing, in_turns, markdown_table, write_results
from ndb_formats.columnar.batches import read_batches
from ndb_formats.sizes.compression import CompressionMeter
from ndb_formats.sizes.log_sizes import LogSizer

RESULTS = Path(__file__).parent / "results" / "sizes.json"
MEGABYTE = 1_000_000
DECODE, SIZES, COMPRESSED = "decode", "sizes", "sizes and compression"


def timed(work: Callable[[], object]) -> Callable[[], Run]:
    """Return work that is measured."""

    def run() -> Run:
        before, used = time.perf_counter(), time.process_time()
        work()
        return Run(time.perf_counter() - before, time.process_time() - used)

    return run


def sizes(path: Path, *, compression: bool = False) -> int:
    """Work out the sizes of a file; return its rows."""
    sizer, meter = LogSizer(), CompressionMeter(path.stat().st_size)
    sizer.add(path, seen=meter.add if compression else lambda chunk: None)
    return int(sizer.tally.rows[:, 0].sum())


def measured(path: Path, mix: Mix, size: int, rounds: int) -> dict[str, Any]:
    """Measure one mix."""
    rows = write_binlog(path, mix, size)
    works = {
        DECODE: lambda: sum(len(batch) for batch in read_batches(path)),
        SIZES: lambda: sizes(path),
        COMPRESSED: lambda: sizes(path, compression=True),
    }
    for name, work in works.items():
        assert work() == rows, name
    runs = in_turns({name: timed(work) for name, work in works.items()}, rounds, again=2)
    found = {name: Timing.of(each) for name, each in runs.items()}
    return {
        "bytes": path.stat().st_size,
        "rows": rows,
        "works": {name: each.document() for name, each in found.items()},
        "part_of_decode": {name: found[DECODE].seconds / each.seconds for name, each in found.items()},
        "most_memory_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--size", type=int, default=200, help="megabytes of each file")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each program")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON to write; a Markdown file is put beside it")
    arguments = parser.parse_args()
    began = start()
    lines, results = [], {}
    for mix in MIXES:
        with tempfile.TemporaryDirectory() as folder:
            found = measured(Path(folder) / mix.name, mix, arguments.size * MEGABYTE, arguments.rounds)
        results[mix.name] = found
        for name in (DECODE, SIZES, COMPRESSED):
            seconds = found["works"][name]["median_processor_seconds"]
            lines.append(
                [
                    mix.title,
                    name,
                    f"{seconds:.2f}",
                    f"{found['bytes'] / seconds / MEGABYTE:.0f}",
                    f"{found['rows'] / seconds:,.0f}",
                    f"{found['part_of_decode'][name]:.2f}",
                ]
            )
    headings = ["log", "work", "processor s", "MB/s", "row changes/s", "speed, part of decode"]
    tables = [markdown_table(headings, lines)]
    print("\n".join(tables))
    write_results(arguments.out, {"environment": environment(began, "numba", "numpy"), "results": results}, tables)


if __name__ == "__main__":
    main()
