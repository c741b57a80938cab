"""
What every benchmark needs: medians of several runs, the machine they ran on, and results as JSON and Markdown.

On a shared machine the clock on the wall says how busy it was; the processor time of the work itself says what the work
costs. Both are kept, and rates are given per second of processor time, that is, per core.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs

__all__ = ["Run", "Timing", "environment", "in_turns", "markdown_table", "measure", "measure_command", "write_results"]

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

    @property
    def seconds(self) -> float:
        """Median of the processor time."""
        return statistics.median(self.processor)

    @property
    def noise(self) -> float:
        """How far the runs lie apart: the widest distance from the median, as a part of it."""
        return max(abs(each - self.seconds) for each in self.processor) / self.seconds

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "median_processor_seconds": self.seconds,
            "median_wall_seconds": statistics.median(self.wall),
            "noise": self.noise,
            "processor_seconds": self.processor,
            "wall_seconds": self.wall,
        }


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


def measure_command(command: Sequence[str], *, runs: int) -> Timing:
    """Run a command, its output thrown away."""
    wall, processor = [], []
    for _ in range(runs):
        before, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 - the command is the caller's
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall.append(time.perf_counter() - before)
        processor.append(after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime)
    return Timing(tuple(wall), tuple(processor))


def environment(*packages: str) -> dict[str, Any]:
    """Return what the numbers depend on: machine, load, versions."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        model = next(line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor()
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
    }


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; every column but the first is set to the right."""
    rule = ["---", *["---:"] * (len(headings) - 1)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (headings, rule, *rows))


def write_results(path: Path, document: dict[str, Any], tables: Sequence[str]) -> None:
    """Write results as JSON, and the tables beside them as Markdown."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text("\n".join(tables), encoding="utf-8")
