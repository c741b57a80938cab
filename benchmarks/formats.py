"""
What the formats save, and what they cost a conflict function: one workload, logged under every NDB binlog type.

    python -m benchmarks.formats --changes 200000 --out build/bench/formats.json

The workload is a simulation of two clusters with the same seed for all types: rows of 4 data columns and the resolve
column, updates that set one of them, inserts and deletes. Of each type: the bytes of both clusters' logs, as they are
and compressed whole, as a backup of them is; the processor time in which one core decodes all their rows; that in
which the local engine resolves them under a function that the type allows, from binlogs to final rows, in turns; and
how many of the nine functions can judge every change. Beside the JSON and the tables stands a picture.
"""

from __future__ import annotations

import argparse
import gc
import resource
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import partial, reduce
from operator import getitem
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import zstandard

from benchmarks.end_to_end import binlogs, timed
from benchmarks.machine import environment, start
from benchmarks.makers.simulated_pair import Shape
from benchmarks.timing import Run, Timing, in_turns, markdown_table, write_results
from conflict.checking.deployment import Deployment, TableLogging
from conflict.checking.requirements import example_function, example_table, mark, requirements
from conflict.config.arguments import DeploymentPolicy
from conflict.config.run_file import load_run_file
from conflict.rules.functions import FUNCTIONS
from conflict.runs.pipeline import resolve
from conflict.telling.drawing import draw
from conflict.telling.value import Chart, Form
from conflict.whatif.simulating.model_file import parse_model
from conflict.whatif.simulating.run import simulate
from conflict.whatif.simulating.run_folder import write_run
from ndb_formats.columnar.batches import read_batches
from ndb_formats.rules.update_format import BINLOG_TYPES

RESULTS = Path(__file__).parent / "results" / "formats.json"
TYPES = (2, 3, 6, 7, 8, 9)
FUNCTION = "NDB$EPOCH()"
SHAPE = Shape(2_000, (1, 2, 4), 50_000, 0.8, 20)
MEGABYTE = 1_000_000
_LEVEL = 3  # of zstd, its default


@attrs.frozen
class Format:
    """
    One binlog type.

    Attributes:
        number: The type.
        size: Bytes of the logs of both clusters.
        compressed: The same, compressed.
        rows: Row changes in the logs.
        judges: The functions that can judge every change of a table that is logged so.
    """

    number: int
    size: int
    compressed: int
    rows: int
    judges: tuple[str, ...]

    @property
    def name(self) -> str:
        """The type, with its name in the manual."""
        return f"{self.number} {next(each.name for each in BINLOG_TYPES if each.number == self.number)}"


def made(number: int, changes: int, folder: Path) -> Format:
    """Simulate the workload under a type, and write its binlogs with a run file."""
    folder.mkdir()
    write_run(simulate(parse_model({**SHAPE.model(FUNCTION, changes), "binlog_type": number}), 1), folder)
    files = binlogs(folder)
    texts = [file.read_bytes() for file in files]
    compress = zstandard.ZstdCompressor(level=_LEVEL).compress
    return Format(
        number, sum(map(len, texts)), sum(len(compress(text)) for text in texts), decoded(folder), judging(number)
    )


def judging(number: int) -> tuple[str, ...]:
    """Return the functions that can judge every change that is logged under a type."""
    logging, table = TableLogging(number), example_table()
    return tuple(
        spec.name
        for spec in FUNCTIONS
        if mark(requirements(Deployment(example_function(spec), table, logging), DeploymentPolicy.NEEDS)) == "ok"
    )


def decoded(folder: Path) -> int:
    """Decode every row of the binlogs of a folder; return how many there are."""
    return sum(len(batch) for file in binlogs(folder) for batch in read_batches(file))


def resolved(folder: Path) -> None:
    """Resolve the binlogs of a folder."""
    out = folder / "result"
    shutil.rmtree(out, ignore_errors=True)
    done = resolve(load_run_file(folder / "run.toml"), str(out), engine="local", policy=DeploymentPolicy.NEEDS)
    assert not done.contradicted


def measured(formats: dict[Path, Format], runs: int) -> dict[str, dict[str, Timing]]:
    """Return the runs of each work, by type."""
    found: dict[str, dict[str, Timing]] = {}
    works: dict[str, Callable[[Path], object]] = {"decode": decoded, "resolve": resolved}
    for title, work in works.items():
        once: dict[str, Callable[[], Run]] = {
            each.name: partial(timed, partial(work, folder), resource.RUSAGE_SELF) for folder, each in formats.items()
        }
        next(iter(once.values()))()  # compiles
        gc.freeze()
        for name, own in in_turns(once, runs, again=2).items():
            found.setdefault(name, {})[title] = Timing.of(own)
    return found


def table(formats: list[Format], timings: dict[str, dict[str, Timing]]) -> str:
    """Return a line a type: what it takes and what it allows."""
    full = next(each for each in formats if each.number == 7)
    rows = [
        [
            each.name,
            f"{each.size / MEGABYTE:.1f}",
            f"{each.size / full.size:.0%}",
            f"{each.compressed / full.compressed:.0%}",
            *(f"{timings[each.name][work].seconds:.2f}" for work in ("decode", "resolve")),
            f"{len(each.judges)} of {len(FUNCTIONS)}",
        ]
        for each in formats
    ]
    headings = ["binlog type", "MB", "of type 7", "compressed, of type 7", "decode, s", "resolve, s", "functions"]
    return markdown_table(headings, rows)


def chart(results: Mapping[str, Mapping[str, Any]]) -> Chart:
    """Return bytes and times of each type, in percent of those of type 7, from the results of a document."""
    full = next(each for each in results.values() if each["number"] == 7)
    works = [(f"time to {work}", (work, "median_processor_seconds")) for work in ("decode", "resolve")]
    columns = {"bytes": ("size",), "bytes, compressed": ("compressed",), **dict(works)}
    parts = {
        title: [round(100 * reduce(getitem, path, each) / reduce(getitem, path, full)) for each in results.values()]
        for title, path in columns.items()
    }
    names = [f"{name} ({len(each['judges'])} of {len(FUNCTIONS)})" for name, each in results.items()]
    title = "What each binlog type takes, and how many functions can judge every change of it"
    return Chart(
        "formats", title, Form.GROUPED, pa.table({"type": names, **parts}), "percent of type 7, FULL_USE_UPDATE"
    )


def main() -> None:
    """Measure, print, draw and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--changes", type=int, default=400_000, help="row changes in the binlogs, about")
    parser.add_argument("--runs", type=int, default=5, help="runs of each work")
    parser.add_argument("--scratch", type=Path, help="folder for the binlogs; they have 100 bytes per row change")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON; Markdown and an SVG are put beside it")
    arguments = parser.parse_args()
    began = start()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as name:
        folders = {number: Path(name, str(number)) for number in TYPES}
        formats = {folder: made(number, arguments.changes, folder) for number, folder in folders.items()}
        timings = measured(formats, arguments.runs)
    text = table([*formats.values()], timings)
    print(text)
    document: dict[str, Any] = {
        "environment": environment(began, "numba", "numpy", "pyarrow", "zstandard"),
        "function": FUNCTION,
        "results": {
            each.name: {**attrs.asdict(each), **{work: own.document() for work, own in timings[each.name].items()}}
            for each in formats.values()
        },
    }
    write_results(arguments.out, document, [text])
    arguments.out.with_suffix(".svg").write_bytes(draw(chart(document["results"]), "svg"))


if __name__ == "__main__":
    main()
