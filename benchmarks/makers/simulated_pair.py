"""
The binlogs of a simulation, as large as wanted: two clusters with any function, quiet or busy, from users to files.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from conflict.whatif.simulating.figures import counters_of
from conflict.whatif.simulating.kernels.logged_rows import RowKind
from conflict.whatif.simulating.logged_rows import stretches
from conflict.whatif.simulating.model_file import parse_model
from conflict.whatif.simulating.run import Simulated, simulate
from conflict.whatif.simulating.run_folder import write_run

__all__ = ["BUSY", "COUNTERS", "QUIET", "Shape", "make_simulated_pair"]

COUNTERS = "counters.json"


@attrs.frozen
class Shape:
    """
    What users do, on both clusters alike, and how fast appliers are.

    Attributes:
        rate: Transactions per second.
        rows: Row changes of each transaction, all as frequent.
        records: Rows that there are at the start, at most.
        zipf: How much hot rows are preferred.
        row_us: Microseconds that an applier takes for a row.
    """

    rate: int
    rows: tuple[int, ...]
    records: int
    zipf: float
    row_us: int

    def model(self, function: str, changes: int) -> dict[str, Any]:
        """Return the model file of about so many row changes, those that appliers log among them."""
        records = min(self.records, changes // 20)
        each = sum(self.rows) / len(self.rows)
        cluster = {"link": {"latency_ms": 40}, "applier": {"row_us": self.row_us}}
        return {
            "function": function,
            "recordcount": records,
            "seconds": max((changes / 2 - records) / (2 * self.rate * each), 1),
            "drain_seconds": 600,
            "workload": {
                "transactions_per_second": self.rate,
                "rowspertransaction": {str(count): 1 for count in self.rows},
                "upsertproportion": 0.9,
                "insertproportion": 0.05,
                "deleteproportion": 0.05,
                "requestdistribution": "zipfian",
                "zipfianconstant": self.zipf,
            },
            "clusters": {"A": cluster, "B": cluster},
        }


QUIET = Shape(10_000, (1, 2), 500_000, 0.8, 10)
# Few rows, and appliers that fall behind while users work: rows change again and again while an epoch is under way.
BUSY = Shape(2_000, (1, 2, 4, 8), 2_000, 0.9, 140)


def make_simulated_pair(
    folder: Path, changes: int, *, function: str = "NDB$EPOCH()", shape: Shape = QUIET
) -> tuple[int, int]:
    """
    Simulate about so many row changes, and write the binlogs, a run file with the schedule, and the counters.

    Args:
        folder: Where; it is made.
        changes: Own row changes of both clusters and those that appliers logged.
        function: The conflict function of the table.
        shape: What users do, and how fast appliers are.

    Returns:
        How many own row changes there are, and how many row changes in all.
    """
    started = time.perf_counter()
    run = simulate(parse_model(shape.model(function, changes)), 1)
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
