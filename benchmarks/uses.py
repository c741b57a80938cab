"""
The three uses themselves: transactions simulated, recordings judged, and states searched, a second of processor time.

    python -m benchmarks.uses --out build/bench/uses.json

Simulated is a pair of clusters under each function, with its figures; the first run, which compiles, is not counted.
Judged are the recordings of real pairs that the project carries, by each engine. Searched is a scope of three
transactions on one row, for each function, until nothing is left to see.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs

from benchmarks.machine import environment, start
from benchmarks.makers.simulated_pair import QUIET
from benchmarks.timing import Timing, markdown_table, measure, write_results
from conflict.judge.case import Recording, RecordingKind, find_recordings
from conflict.judge.judge import CaseStatus, judge_all
from conflict.rules.functions import FUNCTIONS, Argument
from conflict.whatif.diverging.scope import Goal, Scope
from conflict.whatif.diverging.search import search
from conflict.whatif.simulating.model_file import parse_model
from conflict.whatif.simulating.report import figures_of
from conflict.whatif.simulating.run import simulate

RESULTS = Path(__file__).parent / "results" / "uses.json"
RECORDINGS = Path(__file__).parents[1] / "tests" / "recordings" / "conflict"
ENGINES = ("reference", "local")

NEVER = Goal.STOP  # under these functions no applier stops, so that everything is searched
SEARCHED = ("NDB$EPOCH()", "NDB$EPOCH_TRANS()", "NDB$EPOCH2()", "NDB$EPOCH2_TRANS()")


@attrs.frozen
class Use:
    """
    A use under one condition.

    Attributes:
        name: What is done.
        condition: Under which function, or by which engine.
        unit: What is counted.
        count: How many in one run.
        timing: The runs.
    """

    name: str
    condition: str
    unit: str
    count: int
    timing: Timing

    @property
    def rate(self) -> float:
        """How many a second of processor time."""
        return self.count / self.timing.seconds


def measured(name: str, condition: str, unit: str, work: Callable[[], int], runs: int) -> Use:
    """Measure a work that returns how many it did; a first run, which compiles, is not counted."""
    count = work()
    return Use(name, condition, unit, count, measure(work, runs=runs, warm_up=False))


def simulated(function: str, changes: int) -> int:
    """Simulate a pair of clusters, and return how many transactions were committed."""
    figures = figures_of(simulate(parse_model(QUIET.model(function, changes)), 1))
    return sum(each["transactions"] for each in figures["clusters"].values())


def judged(engine: str, recordings: list[Recording]) -> int:
    """Judge an engine by recordings, and return how many there are; all must agree."""
    verdicts = list(judge_all(recordings, engine))
    assert all(each.status is CaseStatus.PASS for each in verdicts)
    return len(verdicts)


def searched(function: str) -> int:
    """Search a scope to its end, and return how many states there are."""
    found = search(Scope(function), NEVER)
    assert found.steps is None
    return found.states


def uses(changes: int, cases: int, runs: int) -> list[Use]:
    """Measure all."""
    texts = [f"{spec.name}({'x' if spec.argument is Argument.COLUMN else ''})" for spec in FUNCTIONS]
    recordings = [each for each in find_recordings(RECORDINGS) if each.kind is RecordingKind.CONFLICT][:cases]
    simulate_all = [
        measured("simulate", text, "transactions", partial(simulated, text, changes), runs) for text in texts
    ]
    judge_each = [measured("conformance", name, "cases", partial(judged, name, recordings), runs) for name in ENGINES]
    search_all = [measured("diverge", text, "states", partial(searched, text), runs) for text in SEARCHED]
    return [*simulate_all, *judge_each, *search_all]


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--changes", type=int, default=400_000, help="row changes of a simulation, about")
    parser.add_argument("--cases", type=int, default=50, help="recordings")
    parser.add_argument("--runs", type=int, default=5, help="runs of each")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON to write; a Markdown file is put beside it")
    arguments = parser.parse_args()
    began = start()
    found = uses(arguments.changes, arguments.cases, arguments.runs)
    rows = [
        [each.name, f"`{each.condition}`", f"{each.rate:,.0f} {each.unit}/s", f"{each.timing.seconds:.2f}",
         f"{each.timing.noise:.0%}"]
        for each in found
    ]  # fmt: skip
    text = markdown_table(["use", "by or under", "per core", "processor s", "noise"], rows)
    print(text)
    results = {
        f"{each.name}, {each.condition}": {"count": each.count, "unit": each.unit, **each.timing.document()}
        for each in found
    }
    write_results(arguments.out, {"environment": environment(began, "numba", "numpy"), "results": results}, [text])


if __name__ == "__main__":
    main()
