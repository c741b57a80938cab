"""
The binlogs of a simulation, as large as wanted: two busy clusters with a function by epoch, from users to files.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

from conflict.whatif.simulating.figures import counters_of
from conflict.whatif.simulating.kernels.logged_rows import RowKind
from conflict.whatif.simulating.logged_rows import stretches
from conflict.whatif.simulating.model_file import parse_model
from conflict.whatif.simulating.run import Simulated, simulate
from conflict.whatif.simulating.run_folder import write_run

__all__ = ["COUNTERS", "make_simulated_pair"]

COUNTERS = "counters.json"
RATE, ROWS = 10_000, 1.5  # transactions per second and cluster, and row changes of each
MODEL = {
    "function": "NDB$EPOCH()",
    "recordcount": 500_000,
    "drain_seconds": 600,
    "workload": {
        "transactions_per_second": RATE,
        "rowspertransaction": {"1": 1, "2": 1},
        "upsertproportion": 0.9,
        "insertproportion": 0.05,
        "deleteproportion": 0.05,
        "requestdistribution": "zipfian",
        "zipfianconstant": 0.8,
    },
    "clusters": {
        "A": {"link": {"latency_ms": 40}, "applier": {"row_us": 10}},
        "B": {"link": {"latency_ms": 40}, "applier": {"row_us": 10}},
    },
}


def make_simulated_pair(folder: Path, changes: int) -> tuple[int, int]:
    """
    Simulate about so many row changes, and write the binlogs, a run file with the schedule, and the counters.

    Args:
        folder: Where; it is made.
        changes: Own row changes of both clusters and those that appliers logged.

    Returns:
        How many own row changes there are, and how many row changes in all.
    """
    loaded = min(int(MODEL["recordcount"]), changes // 20)
    seconds = max((changes / 2 - loaded) / (2 * RATE * ROWS), 1)
    started = time.perf_counter()
    run = simulate(parse_model({**MODEL, "recordcount": loaded, "seconds": seconds}), 1)
    simulated = time.perf_counter()
    folder.mkdir(parents=True)
    write_run(run, folder)
    written = time.perf_counter()
    (folder / COUNTERS).write_text(json.dumps(counters_of(run)))
    own = sum(
        int(site["stop"]) - begin for site, begin in zip(run.world.site, run.world.changes.begin[:-1], strict=True)
    )
    logged = sum(_row_changes(run, side) for side in range(2))
    print(f"{logged:,} row changes: simulated in {simulated - started:.1f} s, written in {written - simulated:.1f} s")
    return own, logged


def _row_changes(run: Simulated, side: int) -> int:
    """Return how many row changes are in the log of a cluster."""
    kinds = [stretch.rows.kind for stretch in stretches(run, side)]
    return sum(int(np.count_nonzero((kind != RowKind.NOTHING) & (kind != RowKind.STATUS))) for kind in kinds)
