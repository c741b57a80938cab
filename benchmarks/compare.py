"""
How much more ten pairs of a conflict function and a format cost than one.

    python -m benchmarks.compare --changes 10000000

Timed are `settle_history` and `compare_settled` on Spark in this process, from a History on disk to the figures: with
the functions of the run alone, and with ten pairs, among them a function that judges transactions, and another format.
The Histories are those of `benchmarks.resolve` for `NDB$MAX`; a small one goes first, which compiles the kernels.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks import timing
from benchmarks.machine import environment, start
from benchmarks.makers.history_maker import configuration
from benchmarks.makers.history_shape import Shape
from benchmarks.process_tree import processor_seconds
from benchmarks.resolve import history_of, small_shape
from conflict.engine.ledger.layout import ResultOptions
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import read_manifest
from conflict.history.run import Run
from conflict.history.tasks import Runner
from conflict.runs.resolving.resolve_job import SettledHistory, settle_history
from conflict.runs.rows.task_inputs import part_of_log
from conflict.spark.session import spark_session
from conflict.spark.spark_runner import spark_runner
from conflict.whatif.comparing.compare_job import compare_settled
from conflict.whatif.comparing.default_policies import all_policies
from conflict.whatif.comparing.figures import Figures
from conflict.whatif.comparing.pairs import Pair, parse_policies

RESULTS = Path(__file__).parent / "results" / "compare.json"
COLUMN_TYPE = 7  # all columns in both images
POLICIES = (
    "NDB$MAX({0}),NDB$OLD({0}),NDB$MAX_DELETE_WIN({0}),NDB$MAX_INS({0}),LOWEST({0}),OVERWRITE,"
    "NDB$EPOCH(),NDB$EPOCH2(),NDB$EPOCH_TRANS()"
)
FIGURES_ALONE = ResultOptions(final_rows=False, all_outcomes=False)
GOAL = 4  # times as long as one pair


def ten_pairs(run: Run, column: str) -> list[Pair]:
    """Return the functions of the run, others, and those of the run in type 9."""
    policies = all_policies(
        run, parse_policies(POLICIES.format(column), run.configuration.functions, ("A", "B"), "A", {})
    )
    return [*(Pair(policy) for policy in policies), Pair(policies[0], 9)]


def compared(runner: Runner, run: Run, history: Path, pairs: list[Pair]) -> timing.Run:
    """Compare once."""
    folder = Folder(str(history))
    manifest = read_manifest(folder)
    part = part_of_log(run, folder, manifest)
    with tempfile.TemporaryDirectory(dir=history.parent) as out:
        started, used = time.perf_counter(), processor_seconds(os.getpid())
        settled = settle_history(runner, run, folder, Folder(out), FIGURES_ALONE, use_evidence=False, part=part)
        assert isinstance(settled, SettledHistory)
        found = compare_settled(runner, settled.job.run, settled.applied, pairs)
        taken = timing.Run(time.perf_counter() - started, processor_seconds(os.getpid()) - used)
    assert all(isinstance(each, Figures) for each in found), found
    return taken


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    began = start()
    run = configuration("NDB$MAX", COLUMN_TYPE)
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        small = history_of(small_shape(4000, COLUMN_TYPE, 4 * arguments.cores), Path(scratch))
        history = history_of(Shape(arguments.changes, binlog_type=COLUMN_TYPE), Path(scratch))
        pairs = ten_pairs(run, read_manifest(Folder(str(history))).resolve_columns["bench.account"])
        runner = spark_runner(spark_session(str(arguments.cores)))
        compared(runner, run, small, pairs)
        works = {f"{count} pairs": partial(compared, runner, run, history, pairs[:count]) for count in (1, len(pairs))}
        taken = timing.in_turns(works, arguments.repeat, again=0)
    one, ten = (statistics.median(run.wall for run in own) for own in taken.values())
    document = {
        "changes": arguments.changes,
        "pairs": [f"{pair.policy.name}, type {pair.binlog_type or COLUMN_TYPE}" for pair in pairs],
        "results": {name: timing.Timing.of(own).document() for name, own in taken.items()},
        "times_as_long": ten / one,
        "goal": GOAL,
        "environment": environment(began),
    }
    rows = [[f"{arguments.changes:,}", f"{one:.1f}", f"{ten:.1f}", f"{ten / one:.1f}", f"below {GOAL}"]]
    table = timing.markdown_table(["row changes", "one pair, s", "ten pairs, s", "times as long", "goal"], rows)
    timing.write_results(arguments.out, document, [table])
    print(table)


if __name__ == "__main__":
    main()
