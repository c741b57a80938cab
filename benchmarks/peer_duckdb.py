"""
The peer of `resolve.py`: DuckDB merely orders each key's changes.

Run by the interpreter of a virtual environment that has it (``pip install duckdb``). One window query over the same
Parquet files gives every change its number among those of its key, and the value before it. It judges nothing and
writes nothing: its rows are added up to one. Buckets are files, so their numbers are put in by the query.

Arguments: folder of the History, cores. Prints JSON objects, one per line: what the caller checks, and then for every
line of its input the seconds that the query takes once more.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import duckdb

QUERY = """
SELECT count(*), sum(place), count(*) FILTER (WHERE place = 1), count(*) FILTER (WHERE previous > after_value)
FROM (
    SELECT after_value,
        row_number() OVER (PARTITION BY bucket, key ORDER BY epoch, ordinal) AS place,
        lag(after_value) OVER (PARTITION BY bucket, key ORDER BY epoch, ordinal) AS previous
    FROM ({changes})
)
"""
PART = "SELECT {bucket} AS bucket, key, epoch, ordinal, after_value FROM read_parquet({files})"


def query(history: Path) -> str:
    """Return the query over a History."""
    files: dict[int, list[str]] = {}
    for path in sorted((history / "changes").rglob("*.parquet")):
        files.setdefault(int(path.stem.removeprefix("bucket=")), []).append(str(path))
    parts = (PART.format(bucket=bucket, files=names) for bucket, names in sorted(files.items()))
    return QUERY.format(changes=" UNION ALL ".join(parts))


def main() -> None:
    """Run the query once, and once more for every line of the input."""
    history, cores = Path(sys.argv[1]), int(sys.argv[2])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    connection = duckdb.connect()
    connection.execute(f"SET threads = {cores}")
    connection.execute("SET preserve_insertion_order = false")
    text = query(history)
    rows = connection.execute(text).fetchone()  # outside the time: what the caller checks, and the files are cached
    assert rows is not None
    found = {"changes": rows[0], "places": int(rows[1]), "keys": rows[2]}
    print(json.dumps({**found, "version": duckdb.__version__}), flush=True)
    for _ in sys.stdin:
        before, used = time.perf_counter(), time.process_time()
        connection.execute(text).fetchall()
        spent = {"wall": time.perf_counter() - before, "processor": time.process_time() - used}
        print(json.dumps(spent), flush=True)


if __name__ == "__main__":
    main()
