"""
What a value of each column type costs on its way from the binlog to Arrow, beside a copy of its bytes.

    python -m benchmarks.value_types --out build/bench/value_types.json

Each type has a file of its own, with tables of two columns. Measured is `read_batches` of the column, less the same
without any column; nanoseconds of processor time a value. No reader can be faster than a copy of the bytes.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import environment, start
from benchmarks.makers.binlog_maker import INTEGERS, MIXED_TYPES, TYPED, Column, Mix, write_binlog
from benchmarks.timing import Run, Timing, in_turns, markdown_table, measure, write_results
from ndb_formats.columnar.batches import RowBatch, read_batches
from ndb_formats.constants import ColumnCode
from ndb_formats.types.column_types import WireType, codec_of

RESULTS = Path(__file__).parent / "results" / "value_types.json"
NANOSECONDS = 1e9
KEY = INTEGERS[0]
NAMES = {
    "owner": "INT UNSIGNED",
    "kind": "TINYINT",
    "hits": "MEDIUMINT",
    "rate": "DOUBLE",
    "price": "DECIMAL(12,2)",
    "day": "DATE",
    "span": "TIME",
    "made": "DATETIME(6)",
    "seen": "TIMESTAMP(3)",
    "code": "CHAR(8), latin1",
    "name": "VARCHAR(20), utf8mb4, ASCII",
    "city": "VARCHAR(40), utf8mb4, not ASCII",
    "note": "TEXT, utf8mb4",
    "facts": "JSON",
}
OTHERS = {
    "ENUM": Column("value", WireType(ColumnCode.ENUM, 1), lambda made: made.randint(1, 9)),
    "SET": Column("value", WireType(ColumnCode.SET, 1), lambda made: made.randrange(256)),
    "BIT(12)": Column("value", WireType(ColumnCode.BIT, 12), lambda made: made.randrange(1 << 12)),
    "YEAR": Column("value", WireType(ColumnCode.YEAR), lambda made: made.randint(1970, 2100)),
}


def columns() -> dict[str, Column]:
    """Return the columns that are measured, by their types in words."""
    known = {column.name: column for column in (*MIXED_TYPES.columns, *TYPED, *INTEGERS)}
    made = {NAMES[name]: known[name] for name in NAMES}
    return {"BIGINT UNSIGNED": KEY, **made, **OTHERS}


def cost(column: Column, size: int, runs: int, folder: Path) -> dict[str, Any]:
    """Return nanoseconds a value, of the column and of a copy of its bytes, and bytes a value."""
    own = (KEY,) if column is KEY else (KEY, column)
    path = folder / "binlog"
    write_binlog(path, Mix("values", "", own, (50, 150)), size)
    values = sum(map(images, read_batches(path, columns=[])))
    bytes_of = len(column_bytes(column)) / 1000

    def read(names: list[str]) -> Run:
        timing = measure(lambda: sum(len(each) for each in read_batches(path, columns=names)), runs=1, warm_up=False)
        return Run(timing.wall[0], timing.processor[0])

    found = in_turns({"with": lambda: read([column.name]), "without": lambda: read([])}, runs, again=runs)
    taken = [
        (own.processor - none.processor) * NANOSECONDS / values
        for own, none in zip(found["with"], found["without"], strict=True)
    ]
    source = np.ones(round(bytes_of * values), np.uint8)
    copied = measure(source.copy, runs=runs)
    return {
        "values": values,
        "bytes": bytes_of,
        "nanoseconds": statistics.median(taken),
        "copy_nanoseconds": copied.seconds * NANOSECONDS / values,
        "with": Timing.of(found["with"]).document(),
        "without": Timing.of(found["without"]).document(),
    }


def images(batch: RowBatch) -> int:
    """Return how many images a batch has."""
    return len(batch) * len({"before", "after"}.intersection(batch.records.schema.names))


def column_bytes(column: Column) -> bytes:
    """Return the bytes of a thousand values of a column, as a binlog has them."""
    codec = codec_of(column.wire, unsigned=column.unsigned, charset=column.charset)
    made = random.Random(1)  # noqa: S311 - values, not secrets
    return b"".join(codec.put(codec.encode(column.value(made))) for _ in range(1000))


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--size", type=int, default=16, help="megabytes of each file")
    parser.add_argument("--runs", type=int, default=7, help="runs of each")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON to write; a Markdown file is put beside it")
    arguments = parser.parse_args()
    began = start()
    with tempfile.TemporaryDirectory() as folder:
        results = {
            title: cost(column, arguments.size * 10**6, arguments.runs, Path(folder))
            for title, column in columns().items()
        }
    rows = [
        [
            title,
            f"{each['bytes']:.0f}",
            f"{each['nanoseconds']:.1f}",
            f"{each['copy_nanoseconds']:.1f}",
        ]
        for title, each in results.items()
    ]
    table = markdown_table(["type", "bytes a value", "ns a value", "a copy of its bytes, ns"], rows)
    print(table)
    document = {"environment": environment(began, "numba", "numpy", "pyarrow"), "results": results}
    write_results(arguments.out, document, [table])


if __name__ == "__main__":
    main()
