"""
How fast one core reads an NDB binlog into a History, and numbers its keys.

    python -m benchmarks.ingest --size 64 --out build/bench/ingest.json

The binlog is made by `benchmarks.makers.ndb_maker`; the scalar reader reads it once.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from benchmarks.machine import environment, start
from benchmarks.makers.ndb_maker import SCHEMA, SERVER, write_ndb_binlog
from benchmarks.timing import Timing, markdown_table, measure, write_results
from conflict.history.grid.folder import Folder
from conflict.history.grid.key_numbering import KINDS, KeyRun, KeyTask, number_keys
from conflict.history.ingestion import segment_task
from conflict.history.ingestion.segment_arrays import UnreadableError
from conflict.history.ingestion.segment_task import SegmentTask, read_segment
from conflict.history.ingestion.segments import SegmentRecord, plan_segments
from conflict.history.run import TableNumbers
from ndb_formats.schema.create_table import parse_schema

TABLES = parse_schema(SCHEMA, database="bench")
NUMBERS = TableNumbers(TABLES.tables, {"bench.accounts": "version", "bench.people": "version"})
BUCKETS = 4


def _read(file: Path, history: Folder) -> list[SegmentRecord]:
    """Read every segment of a file."""
    return [
        read_segment(SegmentTask("A", SERVER, (str(file),), segment, TABLES, NUMBERS, BUCKETS, history))
        for segment in plan_segments([file]).segments
    ]


def _number(history: Folder, records: Sequence[SegmentRecord]) -> None:
    """Number the keys of all buckets."""
    segments, types = {"A": range(len(records))}, records[0].types
    run = KeyRun(history=history, batches=(), batch=0, segments=segments, numbers=NUMBERS, types=types)
    for task in KeyTask.of_buckets(
        run, BUCKETS, {(kind, "A"): [each.places[kind] for each in records] for kind in KINDS}
    ):
        number_keys(task)


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=64, help="megabytes of binlog")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("build/bench/ingest.json"))
    options = parser.parse_args()
    began = start()
    with tempfile.TemporaryDirectory() as folder:
        file, history = Path(folder, "binlog"), Folder(f"{folder}/history")
        rows = write_ndb_binlog(file, options.size * 10**6)
        results: list[tuple[str, Timing]] = []
        with mock.patch.object(segment_task, "read_columns", side_effect=UnreadableError):
            timing = measure(lambda: _read(file, history), runs=1, warm_up=False)
        results.append(("row by row", timing))
        results.append(("in columns", measure(lambda: _read(file, history), runs=options.runs)))
        records = _read(file, history)
        results.append(("numbering keys", measure(lambda: _number(history, records), runs=options.runs)))
        table = [
            (
                name,
                f"{file.stat().st_size / 1e6 / timing.seconds:.1f}",
                f"{rows / timing.seconds:,.0f}",
                f"{timing.noise:.0%}",
            )
            for name, timing in results
        ]
    document = {
        "environment": environment(began, "numba", "numpy", "pyarrow"),
        "results": {name: {"rows": rows, **timing.document()} for name, timing in results},
    }
    text = markdown_table(("stage", "MB/s per core", "rows/s per core", "noise"), table)
    write_results(options.out, document, [text])
    print(text)


if __name__ == "__main__":
    main()
