"""
Where the time of the resolve job goes inside its tasks: one History in this process, without Spark, under cProfile.

    python -m benchmarks.stages --function 'NDB$EPOCH_TRANS' --changes 1000000

Printed are the functions of this project, and those of pyarrow that read and write, by the time spent in them and in
what they call. Compiled kernels count for the function that calls them.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
from pathlib import Path

from benchmarks.makers.history_maker import configuration, usual_binlog_type
from benchmarks.makers.history_shape import Shape
from benchmarks.resolve import NAMES, history_of, small_shape
from benchmarks.timing import markdown_table
from conflict.history.grid.folder import Folder
from conflict.history.tasks import in_process
from conflict.runs.resolving.resolve_job import resolve_history

PACKAGES = ("conflict", "ndb_formats")
FILES = ("read_table", "write_table")


def profiled(function: str, history: Path) -> pstats.Stats:
    """Resolve a History under the profiler."""
    profile = cProfile.Profile()
    with tempfile.TemporaryDirectory() as out:
        run, folder = configuration(function), Folder(str(history))
        profile.runcall(resolve_history, in_process, run, folder, Folder(out), use_evidence=False)
    return pstats.Stats(profile)


def rows_of(found: pstats.Stats, count: int) -> list[list[str]]:
    """Return the functions that most time is spent below."""
    entries = []
    for (file, line, name), (_, calls, own, cumulative, _) in found.stats.items():  # type: ignore[attr-defined]  # untold by its stub
        path = Path(file)
        package = next((part for part in path.parts if part in PACKAGES), None)
        if package is not None:
            module = "/".join(path.parts[path.parts.index(package) :])
            entries.append((cumulative, own, calls, f"{module}:{line} {name}"))
        elif name in FILES and "pyarrow" in path.parts:
            entries.append((cumulative, own, calls, f"pyarrow {name}"))
    total = max(entry[0] for entry in entries)
    return [
        [f"`{name}`", f"{calls:,}", f"{cumulative:.3f}", f"{own:.3f}", f"{cumulative / total:.0%}"]
        for cumulative, own, calls, name in sorted(entries, reverse=True)[:count]
    ]


def main() -> None:
    """Profile and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--function", default="NDB$EPOCH_TRANS", choices=NAMES, metavar="FUNCTION")
    parser.add_argument("--changes", type=int, default=1_000_000)
    parser.add_argument("--history", type=Path, help="an existing History, instead of one of so many changes")
    parser.add_argument("--rows", type=int, default=40, help="how many functions to print")
    arguments = parser.parse_args()
    binlog_type = usual_binlog_type(arguments.function)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        profiled(arguments.function, history_of(small_shape(2000, binlog_type), scratch))  # compiles
        history = arguments.history or history_of(Shape(arguments.changes, binlog_type=binlog_type), scratch)
        found = profiled(arguments.function, history)
    headings = ["function", "calls", "s with what it calls", "own s", "part"]
    print(markdown_table(headings, rows_of(found, arguments.rows)))


if __name__ == "__main__":
    main()
