"""Tasks as bytes: each process gets its own tasks, and what all of them share once."""

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.cloudpickle import dumps

from conflict.engine.kernels.arrays import Conflicts
from conflict.engine.ledger.layout import DEFAULT_OPTIONS
from conflict.history.grid.blocks import ranges_of
from conflict.history.grid.epoch_files import read_schedule
from conflict.history.grid.folder import Folder
from conflict.history.grid.key_numbering import KINDS, KeyRun, KeyTask
from conflict.history.grid.manifest import Manifest
from conflict.history.ingestion.segment_task import SegmentTask
from conflict.history.ingestion.segments import Segment
from conflict.history.tasks import Shared
from conflict.runs.resolving.bucket_tasks import BucketTask
from conflict.runs.resolving.resolve_job import run_of_part
from conflict.runs.rows.task_inputs import WHOLE, Part, PartKind
from conflict.spark.packed_tasks import pack
from tests.conflict.growing import DEMO, Recording, ingested


@attrs.frozen
class Task:
    """A task with values of its own, and one that others may have."""

    number: int
    text: str
    common: Any


TASKS = st.lists(st.tuples(st.integers(), st.text(max_size=3), st.integers(0, 2)), min_size=1, max_size=20)


@given(TASKS, st.integers(1, 20), st.booleans())
def test_tasks_come_back(made: list[tuple[int, str, int]], rows: int, plain: bool):
    """In their order, in so many rows of about the same length; also those that are no attrs objects."""
    common = [["x" * 1000, each] for each in range(3)]
    tasks = [(number, text) if plain else Task(number, text, common[which]) for number, text, which in made]
    count = min(rows, len(tasks))
    shared, packed = pack(tasks, count)
    found = [shared.load(row) for row in packed]
    assert [task for row in found for task in row] == tasks
    assert len(found) == count
    assert max(map(len, found)) - min(map(len, found)) <= 1
    assert min(map(len, found)) > 0


def test_what_is_shared_is_there_once():
    """It is not in the rows, and one object again where it is loaded."""
    common = "x" * 100_000, ["y"]
    shared, rows = pack([Task(number, "", common) for number in range(100)], 10)
    assert shared.values == [common]
    assert max(map(len, rows)) < 1000
    assert all(task.common is common for row in rows for task in shared.load(row))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Folder, Manifest]:
    """Return the demo, and a History of it."""
    folder = Folder(str(tmp_path_factory.mktemp("history")))
    demo = Recording.load(DEMO, DEMO)
    return demo, folder, ingested(demo, folder).manifest


def plan(made: tuple[Recording, Folder, Manifest], segments: int, buckets: int) -> dict[str, list[Any]]:
    """Return the tasks of the stages of a run; half of the segments are of a cluster."""
    (demo, folder, manifest), half = made, segments // 2
    run, names = demo.run(), list(manifest.clusters)
    files = {name: tuple(f"/binlogs/{name}.{number:06d}" for number in range(half)) for name in names}
    facts = manifest.segments[names[0]][0]
    own = {
        name: tuple(attrs.evolve(facts, file=file, keyless=number == 0) for number, file in enumerate(files[name]))
        for name in names
    }
    grown = attrs.evolve(manifest, buckets=buckets, files=files, segments=own)
    schema, numbered = run.data_schema, run.numbers
    read = [
        SegmentTask(name, 1, files[name], Segment(number, Path(file), 4, 1 << 30), schema, numbered, 8, folder)
        for name in names
        for number, file in enumerate(files[name])
    ]
    numbers = {name: range(half) for name in names}
    keys = KeyRun(history=folder, batches=(), batch=0, segments=numbers, numbers=run.numbers, types=manifest.types)
    bounds = np.zeros(len(ranges_of(buckets)) + 1, np.int64).tobytes()
    places = {(kind, name): [bounds] * half for kind in KINDS for name in names}
    part = WHOLE, read_schedule(folder, names), grown
    inputs = run_of_part(run, folder, folder, part, DEFAULT_OPTIONS)
    shared = Shared(folder, Conflicts(np.zeros(1, np.int64), np.zeros(0, np.int32)))
    resolve = [BucketTask(inputs, Part(PartKind.BUCKET, bucket), shared, shared) for bucket in range(buckets)]
    return {"read": read, "number": KeyTask.of_buckets(keys, buckets, places), "resolve": resolve}


def sizes(tasks: list[Any], together: int) -> tuple[int, int]:
    """Return the bytes of what is shared, and most bytes of a task of its own, if so many go together."""
    shared, rows = pack(tasks, -(-len(tasks) // together))
    return len(dumps(shared)), max(map(len, rows)) // together


def check(made: tuple[Recording, Folder, Manifest], segments: int, buckets: int) -> None:
    """Make sure that tasks of a plan carry a number or two each, or two for each block that they read."""
    stages = plan(made, segments, buckets)
    names = 2 * segments * 25  # bytes of the names of files, which rows of the result hold
    for stage, tasks in stages.items():
        shared, own = sizes(tasks, 4)
        assert shared < 60_000 + names, stage
        assert own < {"read": 400, "number": 400 + 16 * len(KINDS) * segments, "resolve": 200}[stage], stage


@pytest.mark.parametrize(("segments", "buckets"), [(20, 8), (2_000, 512)])
def test_tasks_carry_what_they_need(made: tuple[Recording, Folder, Manifest], segments: int, buckets: int):
    """Their number and that of the segments do not make any of them larger."""
    check(made, segments, buckets)


@pytest.mark.slow
@pytest.mark.parametrize(("segments", "buckets"), [(3_125, 1_024), (31_250, 8_192), (10_000, 131_072)])
def test_tasks_of_large_logs(made: tuple[Recording, Folder, Manifest], segments: int, buckets: int):
    """Of 100 GB and 1 TB in segments of 32 MiB, and of 10 TB in segments of 1 GiB."""
    check(made, segments, buckets)
