"""
The zoo of a large scope: states a second, and what a second core is worth.

    python -m benchmarks.zoo --out build/bench/zoo.json
    python -m benchmarks.zoo --transactions 2 --rows 1 --outages 0 --function 'NDB$MAX(x)'   # a small one

All nine functions under one format, for all anomalies, until nothing is left to see. A search ends where its last
anomaly is found. Under the functions with roles no schedule lets rows differ, so that all states are seen; their scope
is smaller: see `PARTS`. With the same tasks, on one process and on two. Finished searches are not kept, so that each
run does all of the work.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import environment, start
from benchmarks.timing import Run, Timing, markdown_table, write_results
from conflict.config.arguments import no_progress
from conflict.history.tasks import process_runner
from conflict.rules.functions import typed_function
from conflict.whatif.diverging.scope import Goal, Values
from conflict.whatif.zoo.hunt import Caught, hunt
from conflict.whatif.zoo.pairs import NONE, Bounds, Pair, all_functions, pairs_of

RESULTS = Path(__file__).parent / "results" / "zoo.json"
NINE = tuple(each for each in all_functions() if each != NONE)
ROLES = tuple(each for each in NINE if typed_function(each).spec.uses_role)
OTHERS = tuple(each for each in NINE if each not in ROLES)
LARGE = Bounds(4, 2, 1, 1)
# Where all states are seen, 4 transactions on 2 rows with an outage are some 20 million under each function, by how
# smaller scopes grow.
PARTS: tuple[tuple[tuple[str, ...], Bounds], ...] = ((OTHERS, LARGE), (ROLES, Bounds(4, 1, 1, 1)))


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


def measured(
    functions: Sequence[str], bounds: Bounds, binlog_type: int, processes: Sequence[int], runs: int
) -> tuple[str, dict[str, Any]]:
    """Return the table of a scope, and its results as a document."""
    pairs = list(pairs_of(functions, (binlog_type,), [Values.VERSION], bounds))
    found = {number: timed(pairs, number, runs) for number in processes}
    alone = min(found[processes[0]][1].wall)
    rows = [
        [str(number), f"{states:,}", f"{min(timing.wall):,.1f}", f"{states / min(timing.wall):,.0f}",
         f"{states / timing.seconds:,.0f}", f"{alone / min(timing.wall):.2f}"]
        for number, (states, timing) in found.items()
    ]  # fmt: skip
    headings = ["processes", "states", "wall s", "states/s", "states/s per core", "speed-up"]
    text = f"{bounds.words}, type {binlog_type}, {', '.join(functions)}:\n\n{markdown_table(headings, rows)}"
    results = {
        f"{bounds.words}, {number} processes": {"count": states, "unit": "states", **timing.document()}
        for number, (states, timing) in found.items()
    }
    return text, results


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    for name in ("transactions", "rows", "columns", "outages"):
        parser.add_argument(f"--{name}", type=int, default=getattr(LARGE, name))
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--format", type=int, default=7, help="the binlog type")
    parser.add_argument("--function", action="append", help="a function; all nine by default; can be repeated")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON to write; a Markdown file is put beside it")
    given = parser.parse_args()
    bounds = Bounds(given.transactions, given.rows, given.columns, given.outages)
    parts = PARTS
    if given.function or bounds != LARGE:
        parts = ((tuple(given.function or NINE), bounds),)
    began, texts, results = start(), list[str](), dict[str, Any]()
    for functions, scope in parts:
        text, found = measured(functions, scope, given.format, given.processes, given.runs)
        print(text, flush=True)
        texts.append(text)
        results |= found
    scopes = {scope.words: list(functions) for functions, scope in parts}
    write_results(given.out, {"environment": environment(began), "scopes": scopes, "results": results}, texts)


if __name__ == "__main__":
    main()
