"""Batches of a History: an ingest merges small ones into the one that it adds, and nothing else changes."""

from __future__ import annotations

import tempfile
import uuid
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.config.configuration import Configuration
from conflict.errors import HistoryError
from conflict.history.grid.epoch_files import EPOCHS
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest
from conflict.history.grid.merging import batches_to_merge
from conflict.history.grid.schemas import CHANGES, KEYLESS, KEYS, RowStep, batch_of, keys_part, log_part, part
from conflict.history.grid.stored_folder import folder_of
from conflict.history.grid.whole_files import only_writer
from conflict.history.ingestion import plan
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.tasks import in_process
from conflict.runs import ingest_job
from conflict.runs.ingest_job import ingest
from conflict.runs.resolving.resolve_job import resolve_history
from conflict.runs.settled import finished_history
from tests.conflict.changing_logs import SETTINGS, write_logs
from tests.conflict.growing import DEMO, Recording, commits, ingested, results, rows_of
from tests.conflict.keyless_logs import Epoch, keyless_run
from tests.conflict.random_histories import USUAL_ROLES
from tests.examples import examples

BASE, SMALL, SMALLER = 100, 4, 2  # changes of a batch


@pytest.mark.parametrize(
    ("batches", "added", "merged"),
    [
        ([], 5, 0),
        # The last batch stays if it is twice as large as what comes.
        ([10], 5, 0),
        ([9], 5, 1),
        ([BASE, SMALL, SMALLER], 1, 0),
        # 2 and 2 are 4, 4 and 4 are 8, and 100 is more than twice 8.
        ([BASE, SMALL, SMALLER], 2, 2),
        ([8, SMALL, SMALLER], 2, 3),
        # A batch without changes counts as nothing, and one that is added as one change.
        ([BASE, 0], 0, 1),
        ([SMALLER, 0], 0, 1),
        ([1, 0], 0, 2),
    ],
)
def test_which_batches_are_merged(batches: list[int], added: int, merged: int, tmp_path: Path):
    """The last ones, as long as each is less than twice what comes after it; `merged` is how many."""
    folder, last = Folder(str(tmp_path)), 2**63
    for batch, changes in enumerate(batches):
        for cluster, own in {"A": changes // 2, "B": changes - changes // 2}.items():
            row = {**dict.fromkeys(EPOCHS.names), "number": last + batch, "changes": own}
            folder.write_table(log_part("epochs", cluster, batch), pa.Table.from_pylist([row], EPOCHS))
    held = manifest_of(batches)
    assert batches_to_merge(folder, held, added, 2) == held.batches[len(batches) - merged :]
    assert batches_to_merge(folder, held, added, 4) == held.batches  # buckets are divided


def manifest_of(batches: Sequence[int]) -> Manifest:
    """Return the manifest of a History with so many batches, of which nothing else matters."""
    nothing: dict[str, Any] = {each: {} for each in ("tables", "resolve_columns", "files", "segments", "types")}
    nothing |= {each: {} for each in ("errors", "left_out", "assumed", "last_epochs", "epochs_left_out")}
    clusters = {"A": 1, "B": 2}
    return Manifest(batches=tuple(range(len(batches))), buckets=2, clusters=clusters, changes=0, **nothing)


class Nights:
    """Two binlogs that grow, whole transactions at a time, and what is ingested of them."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.whole = {cluster.name: cluster.log.files[0].read_bytes() for cluster in configuration.clusters}
        self.ends = {cluster.name: commits(cluster.log.files[0]) for cluster in configuration.clusters}

    def ingest(self, history: Folder, shares: Sequence[float], buckets: int | None = 2) -> list[Manifest]:
        """Ingest as of several nights, each with a share of what the binlogs have in the end, and then all."""
        found = []
        for share in (*sorted(shares), None):
            for cluster in self.configuration.clusters:
                whole, ends = self.whole[cluster.name], self.ends[cluster.name]
                size = len(whole) if share is None or not ends else ends[int(share * (len(ends) - 1))]
                cluster.log.files[0].write_bytes(whole[:size])
            run = make_run(self.configuration)
            found.append(ingest(in_process, run, history, buckets=buckets, segment_bytes=3000).manifest)
        return found

    def result(self, history: Folder, out: Folder) -> dict[str, Any]:
        """Resolve, and return the summary and the bytes of all files."""
        summary = resolve_history(in_process, make_run(self.configuration), history, out)
        files = [file for file in Path(out.uri).rglob("*") if file.is_file()]
        return {"": summary, **{str(file.relative_to(out.uri)): file.read_bytes() for file in files}}


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(30, 150),
    setting=st.integers(0, len(SETTINGS) - 1),
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=9),
)
@examples(4)
def test_any_nights_give_what_one_ingest_gives(seed: int, steps: int, setting: int, shares: list[float]):
    """The same rows, in as many batches as the number of changes has binary digits, at most."""
    with tempfile.TemporaryDirectory() as folder:
        nights = Nights(write_logs(Path(folder), seed, steps, setting, statements=0, roles=USUAL_ROLES))
        once = Folder(f"{folder}/once")
        nights.ingest(once, [])
        for manifest in merged_and_apart(nights, shares, folder):
            read = sum(segment.changes for own in manifest.segments.values() for segment in own)
            assert 1 << (len(manifest.batches) - 1) <= max(read, 1)
        assert rows_of(Folder(f"{folder}/merged")) == rows_of(once)


def test_nights_with_a_statement(tmp_path: Path):
    """What a statement does to rows is merged with them."""
    configuration = write_logs(tmp_path, 32, 60, 0, statements=1, roles=USUAL_ROLES)
    found = merged_and_apart(Nights(configuration), [0.2, 0.6], str(tmp_path))
    assert [manifest.batches for manifest in found] == [(0,), (1,), (2,)]
    changes = Folder(f"{tmp_path}/merged").read_table(part("changes", "A", 0, 2), CHANGES)
    assert RowStep.EMPTIED in changes.column("operation").to_pylist()


@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(60, 150), shares=st.lists(st.floats(0, 1), max_size=5))
@examples(3)
def test_buckets_that_are_divided_give_what_one_ingest_gives(seed: int, steps: int, shares: list[float]):
    """However often: in the end there are 16, and rows and results are the same."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        nights = Nights(write_logs(Path(folder), seed, steps, seed % len(SETTINGS), statements=0, roles=USUAL_ROLES))
        grown, once = (Folder(f"{folder}/{name}") for name in ("grown", "once"))
        patch.setattr(plan, "BUCKET_BYTES", sum(map(len, nights.whole.values())) // 10)
        found = nights.ingest(grown, [0, 0.1, *shares], None)
        assert found[0].buckets < found[-1].buckets == 16
        nights.ingest(once, [], 16)
        assert rows_of(grown) == rows_of(once)
        run = make_run(nights.configuration)
        assert results(run, grown, Folder(f"{folder}/of-grown")) == results(run, once, Folder(f"{folder}/of-once"))


def test_a_bucket_is_divided(demo: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By an ingest after which it would be too large; all batches become one, and who reads the old ones goes on."""
    history = Folder(str(tmp_path / "history"))
    halved(demo, 1)
    first = ingested(demo, history, buckets=None).manifest
    rows = rows_of(history)
    halved(demo, 0)
    monkeypatch.setattr(plan, "BUCKET_BYTES", sum(file.stat().st_size for file in demo.files.values()) // 8 + 1)
    second = ingested(demo, history, buckets=None).manifest
    assert (first.buckets, second.buckets, second.batches, second.merged) == (4, 8, (1,), (0,))
    for bucket in range(8):
        identities = history.read_table(keys_part(bucket, 1), KEYS).column("identity").to_pylist()
        assert {zlib.crc32(each) % 8 for each in identities} <= {bucket}
    assert {**rows_of(history, first), "applies": rows["applies"]} == rows
    assert finished_history(history, make_run(demo.configuration)) == second
    assert ingested(demo, history, buckets=None).manifest == second


def merged_and_apart(nights: Nights, shares: Sequence[float], folder: str) -> list[Manifest]:
    """
    Ingest nights with batches that are merged and with batches that are not; both hold and give the same, byte by byte.

    Return what the first one held after each night.
    """
    merged, apart = (Folder(f"{folder}/{name}") for name in ("merged", "apart"))
    found = nights.ingest(merged, shares)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest_job, "batches_to_merge", lambda *_: ())
        nights.ingest(apart, shares)
    assert rows_of(merged) == rows_of(apart)
    assert nights.result(merged, Folder(f"{folder}/of-merged")) == nights.result(apart, Folder(f"{folder}/of-apart"))
    return found


def test_rows_without_a_primary_key(tmp_path: Path):
    """They are merged, too: four nights with one epoch each."""
    log = [Epoch(number, [(None, (number, number))]) for number in range(1, 5)]
    nights = Nights(keyless_run(tmp_path, ("CREATE TABLE h (a INT, b INT);", None), (log, [])))
    history = Folder(f"{tmp_path}/history")
    batches = [manifest.batches for manifest in nights.ingest(history, [0, 1 / 3, 2 / 3])]
    assert batches == [(0,), (1,), (1, 2), (3,)]
    keyless = history.read_table(log_part("keyless", "A", 3), KEYLESS)
    assert keyless.column("epoch").to_pylist() == [1, 2, 3, 4]


@pytest.fixture
def demo(tmp_path: Path) -> Recording:
    """Return a copy of the demo."""
    return Recording.copy(DEMO, tmp_path / "demo")


def halved(demo: Recording, times: int) -> None:
    """Let the binlogs of the demo have a half, a quarter, ... of their bytes."""
    demo.cut({name: (demo.original / file.name).stat().st_size >> times for name, file in demo.files.items()})


def test_who_reads_goes_on_while_batches_are_merged(demo: Recording, tmp_path: Path):
    """The files of merged batches stay until the next ingest; then they are gone, and the History is sound."""
    history = Folder(str(tmp_path / "history"))
    halved(demo, 2)
    first = ingested(demo, history).manifest
    rows = rows_of(history)
    halved(demo, 1)
    second = ingested(demo, history).manifest
    assert (first.batches, second.batches, second.merged) == ((0,), (1,), (0,))
    assert {**rows_of(history, first), "applies": rows["applies"]} == rows
    assert finished_history(history, make_run(demo.configuration)) == second
    halved(demo, 0)
    third = ingested(demo, history).manifest
    assert (third.batches, third.merged) == ((2,), (1,))
    assert {batch_of(path) for path in history.sizes()} == {None, 1, 2}
    assert ingested(demo, history).manifest == third
    Path(history.uri, "keys/bucket=00000/batch=00000.parquet").write_bytes(b"")
    with pytest.raises(HistoryError, match=r"keys/bucket=00000/batch=00000\.parquet does not belong to it"):
        finished_history(history, make_run(demo.configuration))


def test_at_an_address(demo: Recording, tmp_path: Path):
    """The same on object storage, where the objects of what was merged are removed two versions later."""
    uri, local = f"memory://{uuid.uuid4().hex}/history", Folder(str(tmp_path / "history"))
    objects = []
    for times in (3, 2, 1, 0):
        halved(demo, times)
        stored = folder_of(uri)
        with only_writer(stored):
            there = ingested(demo, stored).manifest
        here = ingested(demo, local).manifest
        assert (there.batches, there.merged, there.changes) == (here.batches, here.merged, here.changes)
        assert rows_of(folder_of(uri)) == rows_of(local)
        found = [each for each in fsspec.filesystem("memory").find(uri) if each.endswith(".parquet")]
        objects.append({each.partition("keys/")[2] for each in found if "/keys/bucket=00000/" in each})
    names = [{f"bucket=00000/batch={batch:05d}.parquet" for batch in batches} for batches in ([0], [0, 1], [0, 1, 2])]
    assert objects == [*names, {f"bucket=00000/batch={batch:05d}.parquet" for batch in (1, 2, 3)}]
