"""Tasks that share nothing but object storage: what they fetch, what they leave, and what a killed driver leaves."""

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from errno import ENOSPC
from pathlib import Path
from unittest.mock import Mock

import pytest

from conflict.history.grid import signs_of_life
from conflict.history.grid import stored_folder as module
from conflict.history.grid.folder import Folder
from conflict.history.grid.stored_folder import stored_folder
from conflict.runs import ingest_job
from tests.conflict import apart
from tests.conflict.growing import DEMO as SMALL
from tests.conflict.growing import Recording, rows_of
from tests.conflict.growing import ingested as ingested_here
from tests.conflict.object_storage import BUCKET, S3, s3_server
from tests.corpora import DEMO

STAGED = ("/staged/changes/", "/staged/consequences/")


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """Give a server with the demo's recording."""
    with pytest.MonkeyPatch.context() as patch, s3_server(patch.setenv) as server:
        server.put((f"demo/{file.name}", file.read_bytes()) for file in DEMO.iterdir() if file.is_file())
        patch.setattr(signs_of_life, "_DEAD_AFTER", 0.0)
        yield server


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Return the rows of the History that one process makes of files that are here."""
    history = Folder(str(tmp_path_factory.mktemp("here")))
    ingested_here(Recording.load(SMALL, SMALL), history, buckets=4, segment_bytes=apart.SEGMENT_BYTES)
    return rows_of(history)


def objects(s3: S3, name: str) -> set[str]:
    """Return what is below a folder besides its version and the files of that."""
    folder = stored_folder(f"s3://{BUCKET}/{name}")
    listed = {each.object.removeprefix(f"s3://{BUCKET}/") for each in folder.files.values()}
    return {each for each in s3.keys(f"{name}/") if "/versions/" not in each} - listed


@pytest.mark.parametrize("processes", [2, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 3))])
def test_every_staged_byte_is_fetched_once(s3: S3, expected: dict[str, object], tmp_path: Path, processes: int):
    """By whichever process; and nothing of it is left in any of them, nor what they wrote."""
    s3.moved.clear()
    name = f"history-{processes}"
    _, left = apart.ingested(f"s3://{BUCKET}/{name}", processes, tmp_path)
    moved = [each for each in s3.moved if any(part in each.path for part in STAGED)]
    put, got = ({each.path: 0 for each in moved} | Counter({each.path: 0 for each in moved}) for _ in range(2))
    for each in moved:
        (put if each.method == "PUT" else got)[each.path] += each.bytes
    assert sum(put.values()) > 0
    assert got == put
    assert {each.process for each in moved} == {f"process-{number}" for number in range(processes)}
    assert left == []
    module._published.clear()
    assert rows_of(stored_folder(f"s3://{BUCKET}/{name}")) == expected
    assert objects(s3, name) == set()


def killed(s3: S3, history: str, request: int, above: Path) -> int:
    """Ingest in a process that is killed at a request; return how many requests it made."""
    s3.requests.clear()
    command = [sys.executable, "-m", "tests.conflict.apart", history, "1", str(above)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ) as process:
        s3.killed = process.pid, request
        said = process.communicate()
        s3.killed = None
        assert process.returncode in (0, -9), said
    return len(s3.requests)


@pytest.fixture(scope="module")
def requests(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> int:
    """Return how many requests an ingest makes that nobody kills."""
    return killed(s3, f"s3://{BUCKET}/whole", 1 << 60, tmp_path_factory.mktemp("whole"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_killed_driver(s3: S3, requests: int, expected: dict[str, object], tmp_path: Path, seed: int):
    """The next run has the same rows, reads no segment again whose record is there, and nothing is left."""
    name = f"killed-{seed}"
    killed(s3, f"s3://{BUCKET}/{name}", random.Random(seed).randrange(requests), tmp_path)
    module._published.clear()
    is_there = stored_folder(f"s3://{BUCKET}/{name}").exists()
    records = [each for each in s3.keys(f"{name}/") if "/staged/segments/" in each]
    done, _ = apart.ingested(f"s3://{BUCKET}/{name}", 1, tmp_path)
    assert done.there == (done.there + done.read if is_there else len(records))
    assert done.read + done.there > 4
    module._published.clear()
    assert rows_of(stored_folder(f"s3://{BUCKET}/{name}")) == expected
    assert objects(s3, name) == set()


def test_an_ingest_that_failed_goes_on(
    s3: S3, expected: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The disk of the driver was full at its end; the next run reads nothing again, and nothing is left."""
    with monkeypatch.context() as patch:
        patch.setattr(ingest_job, "with_schedule", Mock(side_effect=OSError(ENOSPC, os.strerror(ENOSPC))))
        with pytest.raises(OSError, match=os.strerror(ENOSPC)):
            apart.ingested(f"s3://{BUCKET}/failed", 1, tmp_path)
    module._published.clear()
    done, _ = apart.ingested(f"s3://{BUCKET}/failed", 1, tmp_path)
    assert (done.read, done.there > 4) == (0, True)
    module._published.clear()
    assert rows_of(stored_folder(f"s3://{BUCKET}/failed")) == expected
    assert objects(s3, "failed") == set()
