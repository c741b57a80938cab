"""
How much more a busy pair of clusters costs than a quiet one, and ten times its size than one of it.

    python -m benchmarks.busy --changes 300000

Timed is `conflict.runs.pipeline.resolve` with the local engine in this process, on the binlogs of simulations (see
`benchmarks.makers.simulated_pair`), whose counters each result must have. The busy pair has a few hot rows,
transactions of one to eight rows, and appliers that fall behind; the quiet one has as many row changes. Pairs of one
function take turns. The model judges rows when an epoch is committed, so no binlog contradicts its result, and the
search for rows that were judged earlier (`conflict.engine.inference.moments`) is not among what is measured here.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
from pathlib import Path

from benchmarks.end_to_end import Stages, resolver
from benchmarks.machine import environment, start
from benchmarks.makers.simulated_pair import BUSY, QUIET, Shape, make_simulated_pair
from benchmarks.timing import Run, Timing, in_turns, markdown_table, write_results
from conflict.rules.functions import FUNCTIONS, Argument

RESULTS = Path(__file__).parent / "results" / "busy.json"
LARGER, GOAL = 10, 11  # so many times the row changes, and times as long at most
SIZES: dict[str, tuple[Shape, int]] = {"quiet": (QUIET, LARGER), "busy": (BUSY, LARGER), "a tenth": (BUSY, 1)}
FUNCTION_TEXTS = [f"{spec.name}({'x' if spec.argument is Argument.COLUMN else ''})" for spec in FUNCTIONS]


def measured(function: str, changes: int, runs: int, folder: Path) -> dict[str, list[Run]]:
    """Return the runs of the pairs of a function, by name."""
    works = {}
    for name, (shape, part) in SIZES.items():
        pair = folder / name
        own, _ = make_simulated_pair(pair, changes * part // LARGER, function=function, shape=shape)
        works[name] = resolver(pair, own, list[Stages]())
    works["a tenth"]()  # compiles
    gc.freeze()  # as the command does
    return in_turns(works, runs, again=0)


def table(found: dict[str, dict[str, list[Run]]]) -> str:
    """Return the processor seconds and their ratios by function."""
    rows = []
    for function, runs in found.items():
        quiet, busy, tenth = (statistics.median(run.processor for run in runs[name]) for name in SIZES)
        ratios = [f"{busy / quiet:.2f}", f"{busy / tenth:.1f}"]
        rows.append([f"`{function}`", *(f"{each:.1f}" for each in (quiet, busy, tenth)), *ratios])
    headings = ["processor s", "quiet", "busy", "busy, a tenth", "busy / quiet", f"busy / a tenth, goal below {GOAL}"]
    return markdown_table(headings, rows)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--changes", type=int, default=300_000, help="row changes in the binlogs, about")
    parser.add_argument("--runs", type=int, default=3, help="runs of each pair")
    parser.add_argument("--functions", nargs="+", default=FUNCTION_TEXTS, help="as in mysql.ndb_replication, column x")
    parser.add_argument("--scratch", type=Path, help="folder for the binlogs; they have 100 bytes per row change")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON to write; a Markdown file is put beside it")
    arguments = parser.parse_args()
    began = start()
    found = {}
    for function in arguments.functions:
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as name:
            found[function] = measured(function, arguments.changes, arguments.runs, Path(name))
    text = table(found)
    print(text)
    document = {
        "changes": arguments.changes,
        "environment": environment(began, "numba", "numpy", "pyarrow"),
        "results": {
            function: {name: Timing.of(own).document() for name, own in runs.items()}
            for function, runs in found.items()
        },
    }
    write_results(arguments.out, document, [text])


if __name__ == "__main__":
    main()
