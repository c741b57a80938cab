"""
How well simulations of learnt workloads meet recordings, and how fast they run.

    python -m benchmarks.model RECORDINGS [--seeds 20]

Prints, per recording of two clusters under load below a folder, what its appliers counted, and the median and the
extremes of the simulations; then how many seconds of simulated time pass per second.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conflict.judge.case import ConflictCase
from conflict.whatif.simulating.learning import learn, read_logs
from conflict.whatif.simulating.model_file import parse_model
from conflict.whatif.simulating.report import run_seeds
from conflict.whatif.simulating.run import simulate

PREFIX = "Ndb_conflict_"
REFRESHES = "refresh_op_count"  # on the other cluster: the rows that this one refreshed
SPEED = {"seconds": 5, "function": "NDB$EPOCH()", "recordcount": 100_000}
RATES = (1000, 10_000)


def figures(case: ConflictCase, runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int, list[int]]]:
    """Yield name, recorded value and simulated values of each counter that moved."""
    for cluster, expected in case.expected.items():
        if not isinstance(expected, Mapping) or "status_difference" not in expected:
            continue
        for name, value in expected["status_difference"].items():
            simulated = [run["clusters"][cluster]["counters"].get(name, 0) for run in runs]
            if int(value) or max(simulated):
                yield f"{cluster} {name.removeprefix(PREFIX)}", int(value), simulated


def print_recordings(folder: Path, seeds: int) -> None:
    """Print the table of all recordings below a folder that have a live load."""
    print("| recording | counter | recorded | median | least | most | |")
    print("|---|---|---|---|---|---|---|")
    outside = total = 0
    for path in sorted(folder.rglob("transactions.jsonl")):
        case = ConflictCase.load(path.parent)
        runs = run_seeds(parse_model(learn(read_logs(case.configuration()))), seeds)
        for name, recorded, values in figures(case, runs):
            within = min(values) <= recorded <= max(values)
            outside, total = outside + (not within), total + 1
            cells = (path.parent.name, name, recorded, f"{np.median(values):.0f}", min(values), max(values))
            print("|", " | ".join(map(str, cells)), "|", "" if within else "outside", "|")
    print(f"\n{outside} of {total} outside.")


def print_speed() -> None:
    """Print how fast simulated time passes at some rates."""
    for rate in RATES:
        model = parse_model(
            {**SPEED, "workload": {"rowspertransaction": {"1": 1, "2": 1}, "transactions_per_second": rate}}
        )
        simulate(model, 1)
        start = time.perf_counter()
        simulate(model, 2)
        took = time.perf_counter() - start
        print(f"{rate:,} transactions per second and cluster: {SPEED['seconds'] / took:.1f} s per second")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recordings", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    print_recordings(arguments.recordings, arguments.seeds)
    print_speed()


if __name__ == "__main__":
    main()
