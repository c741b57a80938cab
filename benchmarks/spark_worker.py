"""
Resolves Histories in one Spark session: reads one request per line, writes one answer per line, both JSON.

Run by `benchmarks.sessions`, so that the caller can look at all its processes from outside. The first answer comes when
Spark has started. Only `resolve_history` is timed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from benchmarks.makers.history_maker import configuration
from conflict.engine.ledger.layout import ResultOptions
from conflict.history.grid.folder import Folder
from conflict.history.tasks import Runner
from conflict.runs.resolving.resolve_job import resolve_history
from conflict.spark.session import spark_session
from conflict.spark.spark_runner import spark_runner


def answer(run: Runner, request: dict[str, Any]) -> dict[str, Any]:
    """Resolve once; returns seconds in all and per stage, and the figures of the run."""
    stages: list[tuple[str, float]] = []
    started = time.perf_counter()

    def progress(stage: str, done: int, total: int) -> None:
        if done == total:
            stages.append((stage, time.perf_counter() - started))

    binlog_type = request["binlog_type"]
    summary = resolve_history(
        run,
        configuration(request["function"], binlog_type),
        Folder(request["history"]),
        Folder(request["out"]),
        ResultOptions(final_rows=request["final_rows"]),
        use_evidence=False,
        progress=progress,
    )
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "stages": stages, "summary": summary.to_json(), "counters": summary.counters}


def main() -> None:
    """Serve on ``argv[1]`` cores until there are no more requests."""
    cores = int(sys.argv[1])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])  # the JVM and all workers inherit it
    started = time.perf_counter()
    run = spark_runner(spark_session(str(cores)))
    print(json.dumps({"seconds": time.perf_counter() - started}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(run, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
