"""
The whole bill of one command: processor time and memory of all processes, by engine and size.

    python -m benchmarks.bill --changes 1000000 4000000 --out build/bench/bill.json

`resolve` from binlogs of `benchmarks.makers.pair_maker` to a result, kernels compiled. The processor time is that of
the whole tree of processes; of several runs, the least counts, because others may use the machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from benchmarks.apart import MEGABYTE, kind_and_memory, started
from benchmarks.machine import environment, start
from benchmarks.makers.pair_maker import make_pair
from benchmarks.process_tree import processor_seconds, tree
from benchmarks.timing import markdown_table, write_results

ENGINES = ("local", "spark")
_LOOK_EVERY = 0.1  # seconds


def run(logs: Path, engine: str, out: Path) -> tuple[float, Counter[str]]:
    """Resolve; return processor seconds, and the most memory of a process of a kind, in bytes."""
    log, seconds, peaks = out.with_suffix(".log"), 0.0, Counter[str]()
    command = [
        sys.executable,
        "-m",
        "conflict",
        "resolve",
        str(logs / "run.toml"),
        "--engine",
        engine,
        "--out",
        str(out),
    ]
    with started(command, log, os.environ) as process:
        while process.poll() is None:
            seconds = max(seconds, processor_seconds(process.pid))
            for each in tree(process.pid):
                kind, memory = kind_and_memory(each)
                name = "driver" if each == process.pid else kind
                peaks[name] = max(peaks[name], memory)
            time.sleep(_LOOK_EVERY)
    if process.returncode not in (0, 1, 3, 4):
        raise RuntimeError(log.read_text("utf-8", "replace"))
    return seconds, peaks


def measured(changes: int, runs: int, folder: Path) -> dict[str, tuple[float, Counter[str]]]:
    """Return the cheapest run of each engine."""
    logs = folder / f"logs-{changes}"
    make_pair(logs, changes)
    found = {
        engine: [run(logs, engine, folder / f"{engine}-{changes}-{number}") for number in range(runs)]
        for engine in ENGINES
    }
    return {engine: min(own, key=lambda each: each[0]) for engine, own in found.items()}


def text_of(found: Mapping[int, Mapping[str, tuple[float, Counter[str]]]]) -> str:
    """Return the figures as a table."""
    rows = []
    for changes, engines in found.items():
        (local, here), (spark, there) = (engines[each] for each in ENGINES)
        memory = "; ".join(f"{there[kind] / MEGABYTE:.0f}" for kind in ("driver", "Java", "Python"))
        figures = [f"{local:.1f}", f"{here['driver'] / MEGABYTE:.0f}", f"{spark:.1f}", memory, f"{spark / local:.1f}"]
        rows.append([f"{changes:,}", *figures])
    headings = ["row changes", "local: processor s", "MB", "Spark: processor s", "MB: driver; JVM; largest worker"]
    return markdown_table([*headings, "Spark / local"], rows)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--changes", type=int, nargs="+", default=[1_000_000, 4_000_000])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("build/bench/bill.json"))
    options = parser.parse_args()
    began = start()
    with tempfile.TemporaryDirectory() as folder:
        found = {changes: measured(changes, options.runs, Path(folder)) for changes in options.changes}
    text = text_of(found)
    write_results(
        options.out, {"environment": environment(began, "numpy", "pyarrow", "pyspark"), "found": found}, [text]
    )
    print(text)


if __name__ == "__main__":
    main()
