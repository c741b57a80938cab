"""
The zoo of a large scope: states a second, and what a second core is worth.

    python -m benchmarks.zoo --out build/bench/zoo.json
    python -m benchmarks.zoo --transactions 2 --rows 1 --outages 0 --function 'NDB$MAX(x)'   # a small one

All nine functions under one format, for all anomalies, until nothing is left to see. With the same tasks, on one
process and on two: searches of pairs, and of groups of prefixes where a level has many states, see
`conflict.whatif.zoo.hunt`. Finished tasks are not kept, so that each run does all of the work.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import environment, start
from benchmarks.timing import Run, Timing, markdown_table, write_results
from conflict.config.arguments import no_progress
from conflict.history.tasks import process_runner
from conflict.whatif.diverging.scope import Goal, Values
from conflict.whatif.zoo.hunt import Caught, hunt
from conflict.whatif.zoo.pairs import NONE, Bounds, Pair, all_functions, pairs_of

RESULTS = Path(__file__).parent / "results" / "zoo.json"


def searched(pairs: Sequence[Pair], processes: int) -> list[Caught]:
    """Search all pairs in so many processes; with several, all of them are started at once."""
    return hunt(pairs, tuple(Goal), None, process_runner(processes, alone=0), no_progress)


def timed(pairs: Sequence[Pair], processes: int, runs: int) -> tuple[int, Timing]:
    """Return how many states are seen, and how long that takes; the time of other processes counts."""
    found, states = list[Run](), 0
    for _ in range(runs):
        wall, before = time.perf_counter(), _processor_seconds()
        states = sum(each.states for each in searched(pairs, processes))
        found.append(Run(time.perf_counter() - wall, _processor_seconds() - before))
    return states, Timing.of(found)


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    for name, default in (("transactions", 4), ("rows", 2), ("columns", 1), ("outages", 1), ("runs", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--format", type=int, default=7, help="the binlog type")
    parser.add_argument("--function", action="append", help="a function; all nine by default; can be repeated")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON to write; a Markdown file is put beside it")
    given = parser.parse_args()
    bounds = Bounds(given.transactions, given.rows, given.columns, given.outages)
    functions = given.function or [each for each in all_functions() if each != NONE]
    pairs = list(pairs_of(functions, (given.format,), [Values.VERSION], bounds))
    began = start()
    measured = {number: timed(pairs, number, given.runs) for number in given.processes}
    alone = min(measured[given.processes[0]][1].wall)
    rows = [
        [str(number), f"{states:,}", f"{min(timing.wall):,.1f}", f"{states / min(timing.wall):,.0f}",
         f"{states / timing.seconds:,.0f}", f"{alone / min(timing.wall):.2f}"]
        for number, (states, timing) in measured.items()
    ]  # fmt: skip
    headings = ["processes", "states", "wall s", "states/s", "states/s per core", "speed-up"]
    text = f"{bounds.words}, type {given.format}:\n\n{markdown_table(headings, rows)}"
    print(text)
    results = {
        f"{number} processes": {"count": states, "unit": "states", **timing.document()}
        for number, (states, timing) in measured.items()
    }
    document = {"environment": environment(began), "scope": bounds.words, "functions": functions, "results": results}
    write_results(given.out, document, [text])


if __name__ == "__main__":
    main()
