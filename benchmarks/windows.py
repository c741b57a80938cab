"""
What it takes to decide one night more: all of the History again, or what came after an earlier result.

    python -m benchmarks.windows --changes 64000000 --nights 30 --out build/bench/windows.json

The binlogs come from `benchmarks.makers.pair_maker`. All but their last files, one night, are resolved once, with a
state. Then three ways are measured in turns: all again; the last night alone; the last night, and
a state for the next one. Without final rows, which are those of all rows whatever is decided.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import conflict
from benchmarks.machine import environment, start
from benchmarks.makers.pair_maker import CLUSTERS, make_pair
from benchmarks.timing import Run, Timing, in_turns, markdown_table, write_results

_BYTES = 51  # of a row change in the binlog of a cluster, about


def resolved(folder: Path, run_file: str, out: str, **how: Any) -> Run:
    """Resolve what the History holds, or a part, into a new result; return what that took."""
    shutil.rmtree(folder / out, ignore_errors=True)
    before, used = time.perf_counter(), time.process_time()
    conflict.resolve(
        folder / run_file, out=folder / out, history=folder / "history", engine="local", final_rows=False, **how
    )
    return Run(time.perf_counter() - before, time.process_time() - used)


def without_last(folder: Path, nights: int) -> None:
    """Write a run file without the last binlogs, which hold one of so many nights at least."""
    text = (folder / "run.toml").read_text("utf-8")
    for name in CLUSTERS:
        files = sorted(folder.glob(f"{name}.0*"))
        least, kept = sum(each.stat().st_size for each in files) / nights, files
        while sum(each.stat().st_size for each in files[len(kept) :]) < least:
            kept = kept[:-1]
        for each in files[len(kept) :]:
            text = text.replace(f', "{each.name}"', "")
    (folder / "before.toml").write_text(text, "utf-8")


def prepared(folder: Path, changes: int, nights: int) -> dict[str, int]:
    """Make the binlogs, resolve all nights but one with a state, and ingest the last one; return figures of them."""
    own, logged = make_pair(folder, changes, file_bytes=changes * _BYTES // nights)
    without_last(folder, nights)
    conflict.ingest(folder / "before.toml", out=folder / "history", engine="local")
    resolved(folder, "before.toml", "earlier", keep_state=True)
    conflict.ingest(folder / "run.toml", out=folder / "history", engine="local")
    return {"own_changes": own, "row_changes": logged}


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--changes", type=int, default=16_000_000)
    parser.add_argument("--nights", type=int, default=30)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scratch", type=Path, help="folder for the binlogs, by default one of the system")
    parser.add_argument("--out", type=Path, default=Path("build/bench/windows.json"))
    options = parser.parse_args()
    began = start()
    with tempfile.TemporaryDirectory(dir=options.scratch) as name:
        folder = Path(name)
        figures = prepared(folder, options.changes, options.nights)
        after = {"after": folder / "earlier"}
        works: dict[str, Callable[[], Run]] = {
            "all": partial(resolved, folder, "run.toml", "all"),
            "last night": partial(resolved, folder, "run.toml", "night", **after),
            "last night, with a state": partial(resolved, folder, "run.toml", "next", keep_state=True, **after),
        }
        timings = {work: Timing.of(runs) for work, runs in in_turns(works, options.runs, options.runs).items()}
        figures["changes_of_last_night"] = conflict.read_result(str(folder / "night")).run["changes"]
    whole = timings["all"].seconds
    text = markdown_table(
        ("decided", "s of processor time", "of all", "noise"),
        [
            (work, f"{each.seconds:.1f}", f"{each.seconds / whole:.2f}", f"{each.noise:.0%}")
            for work, each in timings.items()
        ],
    )
    document = {
        "environment": environment(began, "numba", "numpy", "pyarrow"),
        "results": {**figures, **{work: each.document() for work, each in timings.items()}},
    }
    write_results(options.out, document, [text])
    print("{own_changes:,} own changes, {changes_of_last_night:,} of them in the last night\n".format(**figures))
    print(text)


if __name__ == "__main__":
    main()
