"""
What every benchmark needs: medians of several runs, the machine they ran on, and results as JSON and Markdown.

On a shared machine the clock on the wall says how busy it was; the processor time of the work itself says what the work
costs. Both are kept, and rates are given per second of processor time, that is, per core.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

_STOLEN = 0.02  # part of the processors that the host of a virtual machine may keep from it in a round
_TICKS = os.sysconf("SC_CLK_TCK")


@attrs.frozen
class Run:
    """
    One run of some work.

    Attributes:
        wall: Seconds on the wall.
        processor: Seconds of processor time.
        stolen: Part of the processors that others had meanwhile, as far as the system knows (see `in_turns`).
    """

    wall: float
    processor: float
    stolen: float = 0.0


@attrs.frozen
class Timing:
    """
    Several runs of the same work.

    Attributes:
        wall: Seconds on the wall, run by run.
        processor: Seconds of processor time of the work, run by run.
    """

    wall: tuple[float, ...]
    processor: tuple[float, ...]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Timing:
        """Return the runs of one work together."""
        return cls(tuple(run.wall for run in runs), tuple(run.processor for run in runs))

    @property
    def seconds(self) -> float:
        """Median of the processor time."""
        return statistics.median(self.processor)

    @property
    def noise(self) -> float:
        """How far the runs lie apart; see `spread`."""
        return spread(self.processor)

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "median_processor_seconds": self.seconds,
            "median_wall_seconds": statistics.median(self.wall),
            "noise": self.noise,
            "processor_seconds": self.processor,
            "wall_seconds": self.wall,
        }


def spread(runs: Sequence[float]) -> float:
    """Return how far runs lie apart: the median distance from their median, as a part of it."""
    middle = statistics.median(runs)
    return statistics.median(abs(each - middle) for each in runs) / middle if middle else 0.0


def measure(work: Callable[[], object], *, runs: int, warm_up: bool = True) -> Timing:
    """Run work in this process; the first run, which compiles and fills caches, is not counted."""
    if warm_up:
        work()
    wall, processor = [], []
    for _ in range(runs):
        before, used = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - before)
        processor.append(time.process_time() - used)
    return Timing(tuple(wall), tuple(processor))


def in_turns(works: Mapping[str, Callable[[], Run]], rounds: int, again: int) -> dict[str, list[Run]]:
    """
    Run several works one after the other, again and again, so that a machine that gets slower slows all of them.

    Where the host of a virtual machine gave its processors to others meanwhile, the whole round is run again; then
    those rounds count in which it did so least, whatever they took.

    Args:
        works: What is measured, by name.
        rounds: How many runs of each are wanted.
        again: How many rounds more there may be.

    Returns:
        The runs of each, round by round.
    """
    found: list[tuple[float, dict[str, Run]]] = []
    while len(found) < rounds + again and sum(stolen <= _STOLEN for stolen, _ in found) < rounds:
        before, stolen = time.perf_counter(), _stolen_seconds()
        runs = {name: work() for name, work in works.items()}
        seconds = (time.perf_counter() - before) * (os.cpu_count() or 1)
        found.append(((_stolen_seconds() - stolen) / seconds, runs))
    kept = sorted(sorted(range(len(found)), key=lambda number: found[number][0])[:rounds])
    return {name: [attrs.evolve(found[each][1][name], stolen=found[each][0]) for each in kept] for name in works}


def _stolen_seconds() -> float:
    """Return the processor time that this machine wanted and its host gave to others; 0 where that is not known."""
    try:
        return int(Path("/proc/stat").read_text(encoding="ascii").split()[8]) / _TICKS
    except (OSError, IndexError):
        return 0.0


def measure_command(command: Sequence[str], *, runs: int, output: Path = Path(os.devnull)) -> Timing:
    """Run a command, its output written to a file, or thrown away."""
    wall, processor = [], []
    for _ in range(runs):
        before, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        with output.open("wb") as stream:
            subprocess.run(command, stdout=stream, check=True)  # noqa: S603 - the command is the caller's
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall.append(time.perf_counter() - before)
        processor.append(after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime)
    return Timing(tuple(wall), tuple(processor))


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; every column but the first is set to the right."""
    rule = ["---", *["---:"] * (len(headings) - 1)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (headings, rule, *rows))


def write_results(path: Path, document: dict[str, Any], tables: Sequence[str]) -> None:
    """Write results as JSON, and the tables beside them as Markdown."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text("\n".join(tables), encoding="utf-8")
