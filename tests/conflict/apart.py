"""
Tasks in processes of their own, which share nothing with the driver but object storage.

    python -m tests.conflict.apart HISTORY PROCESSES FOLDER

ingests the demo on object storage into a History there; temporary files are below the folder.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs
from pyspark import cloudpickle

from conflict.config.run_file import load_run_file
from conflict.history.grid.attempts import Stage, publish
from conflict.history.grid.stored_folder import StoredFolder, stored_folder
from conflict.history.grid.whole_files import only_writer
from conflict.history.tasks import Progress, _end_with_parent
from conflict.runs.ingest_job import Ingested, ingest
from conflict.runs.run_inputs import run_of
from conflict.spark.spark_runner import _outcome
from tests.conflict.object_storage import BUCKET

RUN = f"s3://{BUCKET}/demo/run.toml"
SEGMENT_BYTES = 5000


def _begin(scratch: str, name: str) -> None:
    """Make a process one of another machine."""
    _end_with_parent()
    tempfile.tempdir = None
    os.environ.update(TMPDIR=scratch, AWS_SDK_UA_APP_ID=name)


def _run(work: bytes) -> bytes:
    stage, function, task = pickle.loads(work)
    return pickle.dumps(_outcome(stage, lambda: function(task), apart=True))


@attrs.frozen
class Apart:
    """
    A runner of tasks in such processes, each of which has one after the other.

    Attributes:
        folders: Where tasks write.
        scratch: By process, its folder for temporary files.
        pools: By process, what gives it tasks.
    """

    folders: Sequence[StoredFolder]
    scratch: Sequence[Path]
    pools: Sequence[ProcessPoolExecutor]

    @classmethod
    @contextmanager
    def processes(cls, count: int, above: Path, *folders: StoredFolder) -> Iterator[Apart]:
        """Start processes."""
        places = [above / f"process-{number}" for number in range(count)]
        context = multiprocessing.get_context("spawn")
        with ExitStack() as held:
            pools = list[ProcessPoolExecutor]()
            for place in places:
                place.mkdir(exist_ok=True)
                pool = ProcessPoolExecutor(1, context, _begin, (str(place), place.name))
                pools.append(held.enter_context(pool))
            for folder in folders:
                folder.spread()
            yield cls(folders, places, pools)

    def __call__(self, function: Callable[[Any], Any], tasks: Sequence[Any], _: Progress) -> list[Any]:
        """Run a stage as Spark does."""
        stage = Stage(self.folders)
        stage.open()
        work = [cloudpickle.dumps((stage, function, task)) for task in tasks]
        waiting = [self.pools[number % len(self.pools)].submit(_run, each) for number, each in enumerate(work)]
        outcomes = [pickle.loads(each.result()) for each in waiting]
        publish(each for _, _, written in outcomes for each in written)
        stage.close()
        for error, _, _ in outcomes:
            if error is not None:
                raise error
        return [result for _, result, _ in outcomes]

    def left(self) -> list[Path]:
        """Return the files that are in the processes' folders now."""
        return [each for place in self.scratch for each in place.rglob("*") if each.is_file()]


def ingested(history: str, count: int, above: Path, **options: Any) -> tuple[Ingested, list[Path]]:
    """Ingest the demo; return what that did, and which files the processes had after their last task."""
    folder = stored_folder(history)
    with only_writer(folder), Apart.processes(count, above, folder) as runner:
        options = {"segment_bytes": SEGMENT_BYTES, "buckets": 4, **options}
        return ingest(runner, run_of(load_run_file(RUN)), folder, **options), runner.left()


if __name__ == "__main__":
    ingested(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
