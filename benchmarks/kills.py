"""
Kill executors and drivers of an ingest at seeded moments, on a cluster whose workers share nothing but an S3 server.

    python -m benchmarks.kills --changes 200000 --times 20 --who executor driver

A moment is the number of a request to the server. After each kill the ingest ends, or is run again, and what is
resolved of the History is compared with what the local engine finds; nothing may be left on the server or a worker.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import conflict
from benchmarks.apart import REMOVED_AFTER, Cluster, cluster, put_logs, same_rows, with_environment
from benchmarks.makers.pair_maker import make_pair
from benchmarks.process_tree import tree
from conflict.history.grid.stored_folder import stored_folder
from tests.conflict.object_storage import BUCKET, S3, s3_server

PLACE = f"s3://{BUCKET}"
_LOOK_EVERY = 0.02  # seconds


def executors(running: Cluster) -> list[int]:
    """Return the processes of the executors."""
    found = [each for process in running.workers.values() for each in tree(process)]
    return [each for each in found if b"CoarseGrainedExecutorBackend" in _command(each)]


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def killed_at(s3: S3, request: int, find: Callable[[], list[int]], ended: threading.Event) -> None:
    """Kill one of some processes when the server has answered so many requests."""
    while not ended.wait(_LOOK_EVERY):
        if len(s3.requests) >= request and (found := find()):
            os.kill(found[request % len(found)], signal.SIGKILL)
            return


def ingest(running: Cluster, s3: S3, name: str, who: str, request: int) -> None:
    """Ingest with a kill, and again if that was the driver."""
    arguments = ["ingest", f"{PLACE}/logs/run.toml", "--out", f"{PLACE}/{name}"]
    s3.requests.clear()
    ended = threading.Event()
    find = (lambda: executors(running)) if who == "executor" else running.drivers
    killer = threading.Thread(target=killed_at, args=(s3, request, find, ended))
    killer.start()
    try:
        running.run(*arguments)
    except RuntimeError:
        if who == "executor":
            raise
        running.run(*arguments)
    finally:
        ended.set()
        killer.join()


def left_over(s3: S3, running: Cluster, name: str) -> list[str]:
    """Return what is on the server and in no version, and what is on the disks of workers."""
    listed = {each.object.removeprefix(f"{PLACE}/") for each in stored_folder(f"{PLACE}/{name}").files.values()}
    objects = {each for each in s3.keys(f"{name}/") if "/versions/" not in each} - listed
    end, files = time.monotonic() + 6 * REMOVED_AFTER, [Path()]
    while files and time.monotonic() < end:
        time.sleep(_LOOK_EVERY)
        files = [file for each in running.workers for file in each.files()]
    return [*sorted(objects), *map(str, files)]


def checked(options: argparse.Namespace, folder: Path) -> dict[str, int]:
    """Return how many kills were right, of each kind."""
    logs, right = folder / "logs", dict.fromkeys(options.who, 0)
    make_pair(logs, options.changes)
    here: Any = conflict.resolve(logs / "run.toml", out=folder / "here", engine="local")
    with with_environment() as setenv, s3_server(setenv) as s3, cluster(folder, 2, 1, [logs]) as running:
        put_logs(s3, logs)
        ingest(running, s3, "first", "nobody", 1 << 60)
        most = len(s3.requests)
        for who in options.who:
            for number in range(options.times):
                name, request = f"{who}-{number}", int(np.random.default_rng([number, len(who)]).integers(most))
                ingest(running, s3, name, who, request)
                left = left_over(s3, running, name)
                out = folder / name
                found = conflict.resolve(logs / "run.toml", history=f"{PLACE}/{name}", out=out, engine="local")
                same = same_rows(found, here)
                shutil.rmtree(out)
                right[who] += same and not left
                print(f"{who} killed at request {request} of {most}: same {same}, left {left}", flush=True)
    return right


def main() -> None:
    """Kill, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--changes", type=int, default=200_000)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--who", nargs="+", default=["executor", "driver"])
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        right = checked(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(", ".join(f"{count} of {options.times} right after the kill of the {who}" for who, count in right.items()))


if __name__ == "__main__":
    main()
