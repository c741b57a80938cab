"""
The peer of `resolve.py`: DuckDB orders each key's changes, and makes final rows of them.

Run by the interpreter of a virtual environment that has it (``pip install duckdb``). It judges nothing.

* ``order``: one window query gives every change its number among those of its key, and the value before it. Nothing is
  written: its rows are added up to one.
* ``rows``: the final rows of both clusters as Parquet files: the last value of each column among the cluster's own
  changes and those that it applied, with their places from the schedule. The values of images stand in columns, which
  is done before (see `benchmarks.makers.history_values`).

Arguments: ``order`` and the History, or ``rows``, the History and the folder with values; cores. Prints JSON objects,
one per line: what the caller checks, and then for every line of its input the seconds that the query takes once more.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ORDER = """
SELECT count(*), sum(place), count(*) FILTER (WHERE place = 1), count(*) FILTER (WHERE previous > after_value)
FROM (
    SELECT after_value,
        row_number() OVER (PARTITION BY bucket, key ORDER BY epoch, ordinal) AS place,
        lag(after_value) OVER (PARTITION BY bucket, key ORDER BY epoch, ordinal) AS previous
    FROM ({changes})
)
"""
PART = "SELECT {bucket} AS bucket, key, epoch, ordinal, after_value FROM read_parquet({files})"

ROWS = """
COPY (
    WITH changes AS (
        SELECT epoch, "group" AS place, * EXCLUDE (epoch, "group") FROM read_parquet('{values}/cluster={own}/*.parquet')
        UNION ALL BY NAME
        SELECT s.epoch, s."group" AS place, c.* EXCLUDE (epoch, "group")
        FROM read_parquet('{values}/cluster={other}/*.parquet') c
        JOIN read_parquet('{history}/schedule.parquet') s ON s.foreign_epoch = c.epoch AND s.applier = '{own}'
    )
    SELECT * EXCLUDE (operation) FROM (
        SELECT operation, {columns}
        FROM changes
        WINDOW earlier AS (
            PARTITION BY bucket, key ORDER BY epoch, place, ordinal ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
        QUALIFY lead(epoch) OVER (PARTITION BY bucket, key ORDER BY epoch, place, ordinal) IS NULL
    ) WHERE operation <> {delete}
) TO '{out}/{own}.parquet' (FORMAT parquet)
"""
COLUMN = "last_value(CASE WHEN carried & {bit} <> 0 THEN {{'value': {name}}} END IGNORE NULLS) OVER earlier"
COLUMNS = ("id", "customer", "status", "updated_at", "note")
DELETE = 3


def order_query(history: Path) -> str:
    """Return the query for the order of changes over a History."""
    files: dict[int, list[str]] = {}
    for path in sorted((history / "changes").rglob("*.parquet")):
        files.setdefault(int(path.parent.name.removeprefix("bucket=")), []).append(str(path))
    parts = (PART.format(bucket=bucket, files=names) for bucket, names in sorted(files.items()))
    return ORDER.format(changes=" UNION ALL ".join(parts))


def rows_queries(history: Path, values: Path, out: Path) -> Iterator[str]:
    """Yield the query for the final rows of each cluster."""
    columns = ", ".join(
        f"({COLUMN.format(bit=1 << place, name=name)}).value AS {name}" for place, name in enumerate(COLUMNS)
    )
    for own, other in (("A", "B"), ("B", "A")):
        yield ROWS.format(history=history, values=values, own=own, other=other, columns=columns, out=out, delete=DELETE)


def main() -> None:
    """Run the query once, and once more for every line of the input."""
    import duckdb  # noqa: PLC0415 - the text of the queries is tested without it

    kind, history, *more, cores = sys.argv[1:]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    connection = duckdb.connect()
    connection.execute(f"SET threads = {cores}")
    connection.execute("SET preserve_insertion_order = false")
    with tempfile.TemporaryDirectory() as out:
        if kind == "order":
            queries = [order_query(Path(history))]
        else:
            queries = list(rows_queries(Path(history), Path(more[0]), Path(out)))
        # Outside the time: what the caller checks, and the files are cached.
        rows = [connection.execute(query).fetchone() for query in queries]
        if kind == "order":
            assert rows[0] is not None
            found = {"changes": rows[0][0], "places": int(rows[0][1]), "keys": rows[0][2]}
        else:
            found = {"rows": sum(row[0] for row in rows if row)}
        print(json.dumps({**found, "version": duckdb.__version__}), flush=True)
        for _ in sys.stdin:
            before, used = time.perf_counter(), time.process_time()
            for query in queries:
                connection.execute(query).fetchall()
            spent = {"wall": time.perf_counter() - before, "processor": time.process_time() - used}
            print(json.dumps(spent), flush=True)


if __name__ == "__main__":
    main()
