"""
Memory for very many epochs: of the process that derives a schedule and resolves, and of all its tasks together.

    python -m benchmarks.epochs --applies 2000000 8000000 --out build/bench/epochs.json

The Histories are those of `benchmarks.makers.many_epochs`. Tasks run in two other processes, as on Spark, and memory is
the proportional set size of all of them. What an epoch apply takes is the difference of two sizes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks.apart import started
from benchmarks.machine import environment, start
from benchmarks.makers.many_epochs import make_epochs
from benchmarks.process_tree import MemoryPeak, processor_seconds
from benchmarks.timing import markdown_table, write_results
from conflict.config.run_file import load_run_file
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import read_manifest, write_manifest
from conflict.history.tasks import process_runner
from conflict.runs.ingest_job import derive_schedule
from conflict.runs.run_inputs import run_of
from conflict.runs.settled import Settled, SettleOptions, settled

STAGES = ("schedule", "resolve")
_MEGABYTE = 1_000_000
_LOOK_EVERY = 0.1  # seconds


def work(stage: str, folder: Path) -> None:
    """Do one stage on a History."""
    history = Folder(str(folder / "history"))
    run = run_of(load_run_file(folder / "run.toml"), history)
    held = read_manifest(history)
    run = run.numbered_as(held.tables)
    if stage == "schedule":
        write_manifest(history, derive_schedule(run, history, held))
        return
    options = SettleOptions(out=Folder(str(folder / "result")), history=history, is_finished=True, held=held)
    found = settled(run, process_runner(2, alone=0), options)
    assert isinstance(found, Settled), found
    found.write()


def measured(applies: int, stages: Sequence[str], folder: Path) -> dict[str, tuple[int, float]]:
    """Return, per stage, the most memory in bytes, and processor seconds."""
    make_epochs(folder, applies // 2)
    found = {}
    for stage in stages:
        command = [sys.executable, "-m", "benchmarks.epochs", "--work", stage, str(folder)]
        log, seconds = folder / f"{stage}.log", 0.0
        with started(command, log, os.environ) as process, MemoryPeak(process.pid) as memory:
            while process.poll() is None:
                seconds = max(seconds, processor_seconds(process.pid))
                time.sleep(_LOOK_EVERY)
        if process.returncode:
            raise RuntimeError(log.read_text("utf-8", "replace"))
        found[stage] = memory.size, seconds
    return found


def text_of(found: Mapping[int, Mapping[str, tuple[int, float]]]) -> str:
    """Return the figures as a table."""
    rows = [
        [f"{applies:,}", stage, f"{memory / _MEGABYTE:,.0f}", f"{seconds:.0f}"]
        for applies, stages in found.items()
        for stage, (memory, seconds) in stages.items()
    ]
    table = markdown_table(["epoch applies", "stage", "MB", "processor s"], rows)
    each = [
        f"{stage}, {few:,} to {many:,}: {(found[many][stage][0] - found[few][stage][0]) / (many - few):.0f} bytes each"
        for few, many in pairwise(found)
        for stage in found[many]
    ]
    return "\n".join([table, *each])


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--applies", type=int, nargs="+", default=[2_000_000, 8_000_000], help="sizes, rising")
    parser.add_argument("--scratch", type=Path, help="where Histories and results go meanwhile")
    parser.add_argument("--out", type=Path, default=Path("build/bench/epochs.json"))
    parser.add_argument("--work", nargs=2, metavar=("STAGE", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work[0], Path(options.work[1]))
        return
    began, found = start(), {}
    for applies in options.applies:
        with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
            found[applies] = measured(applies, STAGES, Path(folder))
    text = text_of(found)
    write_results(options.out, {"environment": environment(began, "numpy", "pyarrow"), "found": found}, [text])
    print(text)


if __name__ == "__main__":
    main()
