"""
How long a user waits: from the binlogs of two clusters to the result, with final rows, and where the time goes.

    python -m benchmarks.end_to_end --mysqlbinlog PATH

Timed is `conflict.runs.pipeline.resolve` with the local engine in this process, after a run that compiles the kernels;
the start of the command is apart. The binlogs come from `benchmarks.makers.pair_maker`, or with ``--simulated`` from a
simulation, whose counters the result must have. Half of their row changes are the
clusters' own, the other half those that appliers logged; rates count all of them, because every reader has to. Beside
it, in turns, `mysqlbinlog -vv` writes the same files as text to nowhere; if it is not there, it is left out.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.machine import environment, program_version, start
from benchmarks.makers.pair_maker import make_pair
from benchmarks.makers.simulated_pair import COUNTERS, make_simulated_pair
from benchmarks.timing import Run, Timing, in_turns, markdown_table, write_results
from conflict.config.run_file import load_run_file
from conflict.runs.pipeline import resolve

RESULTS = Path(__file__).parent / "results" / "end_to_end.json"
OURS, TOOL = "resolve", "mysqlbinlog -vv --base64-output=decode-rows"
PIECE = 100  # one in so many row changes is resolved before, to compile


class Stages:
    """Adds up the seconds between the reports of a run, by the stage that reports."""

    def __init__(self) -> None:
        """Begin."""
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def __call__(self, stage: str, _done: int, _total: int) -> None:
        """Count what went by since the last report."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now


def timed(work: Callable[[], object], who: int) -> Run:
    """Run some work of this process or of its children, as `resource` names them."""
    before, used = time.perf_counter(), resource.getrusage(who)
    work()
    after = resource.getrusage(who)
    processor = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return Run(time.perf_counter() - before, processor)


def resolver(folder: Path, changes: int, stages: list[Stages]) -> Callable[[], Run]:
    """Return what resolves the binlogs of a folder once, and keeps the seconds by stage."""
    run, out = load_run_file(folder / "run.toml"), folder / "result"

    def once() -> Run:
        shutil.rmtree(out, ignore_errors=True)
        stages.append(Stages())
        progress = stages[-1]

        def work() -> None:
            done = resolve(run, str(out), engine="local", progress=progress)
            progress("writing the summary", 1, 1)
            assert done.changes == changes
            assert not done.contradicted
            if (folder / COUNTERS).exists():
                assert_counters(folder, done.summary.counters)

        return timed(work, resource.RUSAGE_SELF)

    return once


def assert_counters(folder: Path, found: Mapping[str, Mapping[str, int]]) -> None:
    """Make sure that a result has the counters of the simulation whose binlogs it was made of."""
    for cluster, counters in json.loads((folder / COUNTERS).read_text("utf-8")).items():
        for name, value in counters.items():
            assert found[cluster].get(name, 0) == value, (cluster, name)


def binlogs(folder: Path) -> list[Path]:
    """Return the binlogs of a folder."""
    return [file for cluster in load_run_file(folder / "run.toml").configuration.clusters for file in cluster.log.files]


def text_tool(folder: Path, program: str) -> Callable[[], Run]:
    """Return what writes the binlogs of a folder as text, to nowhere."""
    command = [program, "--no-defaults", "-vv", "--base64-output=decode-rows", *map(str, binlogs(folder))]

    def work() -> None:
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 - the caller's program

    return lambda: timed(work, resource.RUSAGE_CHILDREN)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--changes", type=int, default=10_000_000, help="row changes in the binlogs, about")
    parser.add_argument("--simulated", action="store_true", help="the binlogs are those of a simulation")
    parser.add_argument("--runs", type=int, default=3, help="runs of each program")
    parser.add_argument("--mysqlbinlog", default=shutil.which("mysqlbinlog"), help="the server's tool")
    parser.add_argument("--scratch", type=Path, help="folder for the binlogs; they have 100 bytes per row change")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON to write; a Markdown file is put beside it")
    arguments = parser.parse_args()
    began, peers = start(), {}
    stages: list[Stages] = []
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as name:
        whole, small = Path(name, "whole"), Path(name, "small")
        make = make_simulated_pair if arguments.simulated else make_pair
        own, logged = make(whole, arguments.changes)
        own_small, _ = make(small, arguments.changes // PIECE)
        resolver(small, own_small, stages)()  # compiles
        gc.freeze()  # as the command does
        stages.clear()
        works = {OURS: resolver(whole, own, stages)}
        if arguments.mysqlbinlog:
            works[TOOL] = text_tool(whole, arguments.mysqlbinlog)
            peers["mysqlbinlog"] = program_version(arguments.mysqlbinlog)
        else:
            print("mysqlbinlog is not on the PATH and was not given: left out", file=sys.stderr)
        runs = in_turns(works, arguments.runs, again=0)
        size = sum(file.stat().st_size for file in binlogs(whole))
    tables = [rate_table(runs, logged), stage_table(stages)]
    print("\n".join(tables))
    facts = environment(began, "numba", "numpy", "pyarrow", peers=peers)
    write_results(arguments.out, {"environment": facts, **document(runs, logged, stages, size)}, tables)


def rate_table(runs: dict[str, list[Run]], count: int) -> str:
    """Return times and rates of all programs, and how many times faster `resolve` is."""
    wall = {title: statistics.median(run.wall for run in each) / count for title, each in runs.items()}
    rows = [
        [
            title,
            f"{count:,}",
            f"{statistics.median(run.wall for run in each):.1f}",
            f"{statistics.median(run.processor for run in each):.1f}",
            f"{1 / wall[title]:,.0f}",
            f"{wall[title] / wall[OURS]:.1f}x as long",
        ]
        for title, each in runs.items()
    ]
    headings = ["two cores", "row changes", "s", "processor s", "row changes/s", "for each row change"]
    return markdown_table(headings, rows)


def stage_table(stages: list[Stages]) -> str:
    """Return the median seconds of each stage of `resolve`."""
    names = list(dict.fromkeys(name for each in stages for name in each.seconds))
    rows = [[name, f"{statistics.median(each.seconds.get(name, 0.0) for each in stages):.2f}"] for name in names]
    return markdown_table(["stage", "s"], rows)


def document(runs: dict[str, list[Run]], count: int, stages: list[Stages], size: int) -> dict[str, object]:
    """Return everything for JSON."""
    return {
        "bytes_of_binlogs": size,
        "goals": {"row changes per second": 3_000_000},
        "results": {
            title: {"row_changes": count, **Timing.of(each).document(), "stolen": [run.stolen for run in each]}
            for title, each in runs.items()
        },
        "stages": [each.seconds for each in stages],
    }


if __name__ == "__main__":
    main()
