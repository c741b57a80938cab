"""The Histories that benchmarks are made of: plausible, the same for the same seed, and read alike by both engines."""

import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest

from benchmarks.agreement import by_job, by_reference, differences
from benchmarks.makers import history_maker
from benchmarks.makers.history_maker import configuration, make_history, usual_binlog_type
from benchmarks.makers.history_reader import read_history
from benchmarks.makers.history_shape import Shape
from benchmarks.process_tree import MemoryPeak
from benchmarks.stages import profiled
from benchmarks.stages import rows_of as rows_of_profile
from conflict.history.epochs import AppliedEpoch
from conflict.history.grid.folder import Folder
from conflict.history.grid.schemas import CHANGES, IMAGES, KEYS, keys_part
from conflict.history.grid.writer import bucket_of, identity_of
from conflict.history.model import Cluster, History
from conflict.history.scheduling.schedule import place_applies
from conflict.history.scheduling.summaries import Summary
from conflict.history.timeline import EpochApply, RowChange, Transaction
from conflict.rules.functions import FUNCTIONS
from ndb_formats.events.row_image import put_image
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.update_format import effective_format, ndb_columns
from ndb_formats.schema.row_keys import key_text
from ndb_formats.schema.tables import Table

ROOT = Path(__file__).parents[1]
NAMES = [spec.name for spec in FUNCTIONS]
SMALL = Shape(6000, keys=1500, changes_per_epoch=20, buckets=3, segments=2, clashes=0.01)
CHANGED = (2, 3)  # positions of the columns that an update sets; every second one also sets the last, 4
NOTE = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for Histories."""
    return tmp_path_factory.mktemp("histories")


@cache
def made(shape: Shape, folder: Path) -> Folder:
    """Return a History of a shape."""
    target = Folder(str(folder / f"{hash(shape):x}"))
    make_history(shape, target)
    return target


def small(folder: Path, binlog_type: int = 7) -> History:
    """Return a small History in memory."""
    shape = attrs.evolve(SMALL, binlog_type=binlog_type)
    function = "NDB$MAX" if binlog_type == 7 else "NDB$EPOCH"
    return read_history(made(shape, folder), configuration(function, binlog_type))


def transactions(cluster: Cluster) -> list[Transaction]:
    """Return a cluster's own transactions."""
    return [item for item in cluster.timeline if isinstance(item, Transaction)]


def applies(cluster: Cluster) -> list[EpochApply]:
    """Return a cluster's takes."""
    return [item for item in cluster.timeline if isinstance(item, EpochApply)]


def own_changes(history: History) -> Iterator[tuple[Cluster, Transaction, RowChange]]:
    """Yield all row changes."""
    for cluster in history.clusters:
        for transaction in transactions(cluster):
            for change in transaction.changes:
                yield cluster, transaction, change


def home(change: RowChange) -> str:
    """Return the home of a key: odd ids belong to A."""
    return "A" if int.from_bytes(change.key[-8:], "little") % 2 else "B"


def contents(target: Folder) -> dict[str, bytes]:
    """Return every file of a History."""
    root = Path(target.uri)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_seed_gives_the_same_bytes(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many buckets are made at a time; another seed gives others."""
    monkeypatch.setattr(history_maker, "BUCKETS_AT_ONCE", 1)
    again, other = Folder(str(tmp_path / "again")), Folder(str(tmp_path / "other"))
    make_history(SMALL, again)
    make_history(attrs.evolve(SMALL, seed=2), other)
    files = contents(made(SMALL, folder))
    assert files == contents(again)
    assert files.keys() == contents(other).keys()
    assert sum(files[name] == data for name, data in contents(other).items()) == 0


def test_every_change_has_its_place(folder: Path) -> None:
    """Groups of an epoch are its transactions and takes, without gaps; a transaction has one id, and a row once."""
    history = small(folder)
    ids: set[int] = set()
    count = 0
    for cluster in history.clusters:
        groups: dict[int, list[int]] = defaultdict(list)
        for item in cluster.timeline:
            groups[item.epoch].append(item.group)
        assert all(sorted(each) == list(range(len(each))) for each in groups.values())
        for transaction in transactions(cluster):
            (number,) = {change.transaction_id for change in transaction.changes}
            assert number is not None
            assert number not in ids
            ids.add(number)
            assert len({change.key for change in transaction.changes}) == len(transaction.changes) <= 8
            count += len(transaction.changes)
    assert count == SMALL.changes


def test_takes_are_those_of_the_schedule(folder: Path) -> None:
    """What `place_applies` makes of the epochs is what was written, and stands in the window."""
    history = small(folder)
    first, second = history.clusters
    for applier, source in ((first, second), (second, first)):
        own, others = summaries(applier, source), summaries(source, applier)
        names = {"source_name": source.name, "source_id": source.server_id, "applier_id": applier.server_id}
        placed, assumed = place_applies(own, others, **names, cut=True)
        written = applies(applier)
        assert ([apply for apply in placed.applies() if apply.applied], assumed) == (written, 0)
        slots = [{summary.number: slot for slot, summary in enumerate(each)} for each in (own, others)]
        delays = {slots[0][apply.epoch] - slots[1][apply.foreign_epoch] for apply in written}
        assert delays == set(range(SMALL.window[0], SMALL.window[1] + 1))


def summaries(cluster: Cluster, source: Cluster) -> list[Summary]:
    """Return what a schedule is made of: per epoch its transactions, and the epochs that its binlog shows as taken."""
    groups: dict[int, list[int]] = defaultdict(list)
    applied: dict[int, list[AppliedEpoch]] = defaultdict(list)
    for transaction in transactions(cluster):
        groups[transaction.epoch].append(transaction.group)
    for apply in applies(cluster):
        applied[apply.epoch].append(AppliedEpoch(apply.group, source.server_id, apply.foreign_epoch))
    epochs = sorted(groups.keys() | applied.keys())
    return [Summary(epoch, tuple(groups[epoch]), tuple(applied[epoch])) for epoch in epochs]


def test_rows_live_at_home(folder: Path) -> None:
    """A home inserts a row before anything else, inserts only what is gone, and changes only what is there."""
    there: dict[bytes, bool] = {}
    foreign: Counter[str] = Counter()
    operations: Counter[Operation] = Counter()
    for cluster, _, change in own_changes(small(folder)):
        operations[change.operation] += 1
        if home(change) != cluster.name:
            assert change.operation is Operation.UPDATE_ROW
            foreign[cluster.name] += 1
            continue
        assert there.get(change.key, False) is (change.operation is not Operation.WRITE_ROW)
        there[change.key] = change.operation is not Operation.DELETE_ROW
    assert 0.85 * SMALL.keys < len(there) <= SMALL.keys
    updates = operations[Operation.UPDATE_ROW]
    wanted = SMALL.away + SMALL.clashes
    assert all(0.2 * wanted < 2 * count / updates < 1.5 * wanted for count in foreign.values())
    assert operations[Operation.DELETE_ROW] > 0.005 * SMALL.changes
    inserted_again = operations[Operation.WRITE_ROW] - len(there)
    assert 0 < inserted_again <= operations[Operation.DELETE_ROW]


def test_hot_keys_are_changed_more(folder: Path) -> None:
    """The hottest tenth of the keys gets more than its share, the more so the more skewed."""
    parts = []
    for skew in (0.0, 1.0, 2.0):
        shape = attrs.evolve(SMALL, skew=skew, flat=20)
        history = read_history(made(shape, folder), configuration("NDB$MAX"))
        counts = Counter(
            change.key for _, _, change in own_changes(history) if change.operation is Operation.UPDATE_ROW
        )
        hottest = [count for _, count in counts.most_common(shape.keys // 10)]
        parts.append(sum(hottest) / counts.total())
    assert parts[0] < 0.4 < parts[1] < 0.7 < parts[2]


@pytest.mark.parametrize("binlog_type", [7, 8, 9])
def test_images_are_what_is_logged(binlog_type: int, folder: Path) -> None:
    """Columns are those of the rules of logging, the bytes hold nothing else, values rise with time."""
    run = configuration("NDB$MAX", binlog_type)
    (table,) = run.data_schema.tables
    update_format = effective_format(binlog_type)
    last, written = dict.fromkeys(("A", "B"), 0), Counter()
    for cluster, _, change in own_changes(small(folder, binlog_type)):
        written.update(put_image(image) for image in (change.before, change.after) if image is not None)
        allowed = [ndb_columns(update_format, table, change.operation, each) for each in (CHANGED, (*CHANGED, NOTE))]
        carried = [None if image is None else image.present for image in (change.before, change.after)]
        assert carried in [[columns.before, columns.after] for columns in allowed if columns is not None]
        if change.after is not None:
            value = change.after.value(table.ordinal("updated_at"))
            assert isinstance(value, int)
            assert value > last[cluster.name]
            last[cluster.name] = value
    target = Path(made(attrs.evolve(SMALL, binlog_type=binlog_type), folder).uri)
    images = [row for path in target.glob("images/*/*/*.parquet") for row in rows_of(path, IMAGES)]
    assert written == Counter(data for row in images for data in row.values() if data is not None)


def test_before_images_are_what_the_cluster_saw(folder: Path) -> None:
    """Where nothing is in flight, a before image is the newest after image of all changes before."""
    history = small(folder)
    compared = 0
    for changes in by_key(history).values():
        for place, (slot, name, change) in enumerate(changes):
            own = [other for _, cluster, other in changes[:place] if cluster == name]
            foreign = [(then, other) for then, cluster, other in changes if cluster != name and then <= slot]
            if change.before is None or any(slot - then <= SMALL.window[1] for then, _ in foreign):
                continue
            rows = [other.after.by_name() for other in (*own, *(other for _, other in foreign)) if other.after]
            assert change.before.by_name() == max(rows, key=lambda row: row["updated_at"])
            compared += 1
    assert compared > 0.5 * SMALL.changes


def by_key(history: History) -> dict[bytes, list[tuple[int, str, RowChange]]]:
    """Return the changes of each key with slot and cluster: those of A in order, then those of B."""
    found: dict[bytes, list[tuple[int, str, RowChange]]] = defaultdict(list)
    for cluster in history.clusters:
        epochs = sorted({transaction.epoch for transaction in transactions(cluster)})
        slots = {epoch: slot for slot, epoch in enumerate(epochs)}
        for transaction in transactions(cluster):
            for change in transaction.changes:
                found[change.key].append((slots[transaction.epoch], cluster.name, change))
    return found


def test_narrow_columns_are_those_of_the_images(folder: Path) -> None:
    """The value of the resolve column stands beside the images that carry it, and nothing where none is compared."""
    for binlog_type in (7, 8):
        shape = attrs.evolve(SMALL, binlog_type=binlog_type)
        target, history = made(shape, folder), small(folder, binlog_type)
        values = {
            (cluster.name, transaction.epoch, change.origin): (change.before, change.after)
            for cluster, transaction, change in own_changes(history)
        }
        assert len(values) == SMALL.changes  # no two changes stand at one place
        seen = [row for path in Path(target.uri).glob("changes/*/*/*.parquet") for row in rows_of(path, CHANGES)]
        found = Counter((row["before_value"], row["after_value"]) for row in seen)
        compared = binlog_type == 7
        expected = Counter(
            tuple(0 if image is None or not compared else image.value(3) for image in images)
            for images in values.values()
        )
        assert found == expected


def rows_of(path: Path, schema: pa.Schema) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file."""
    return list(Folder(str(path.parent)).read_table(path.name, schema).to_pylist())


def test_keys_are_in_their_buckets(folder: Path) -> None:
    """A key's bucket is that of ingest, its number its place, its text what ingest would write."""
    target, run = made(SMALL, folder), configuration("NDB$MAX")
    (table,) = run.data_schema.tables
    codecs = small(folder).layouts[table.full_name].codecs
    for bucket in range(SMALL.buckets):
        keys = target.read_table(keys_part(bucket, 0), KEYS).to_pylist()
        assert [key["key"] for key in keys] == list(range(len(keys)))
        for key in keys:
            identity = key["identity"]
            assert identity_of(0, identity[2:]) == identity
            assert bucket_of(identity, SMALL.buckets) == bucket
            assert key["text"] == key_text(key_columns(table), codecs[:1], identity[2:])


def key_columns(table: Table) -> list[Any]:
    """Return the columns of a table's primary key."""
    return [table.columns[place] for place in table.key_ordinals]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("function", NAMES)
def test_engines_agree(function: str, seed: int, folder: Path) -> None:
    """The job decides as the reference engine does, some operations are in conflict, no own change is implausible."""
    binlog_type = usual_binlog_type(function)
    shape = attrs.evolve(SMALL, changes=3000, keys=750, seed=seed, binlog_type=binlog_type)
    history, run = made(shape, folder), configuration(function)
    expected = by_reference(history, run)
    assert differences(expected, by_job(history, run)) == []
    assert sum(table["rejected"] for site in expected["summary"]["tables"].values() for table in site.values()) > 0
    assert expected["summary"]["unexplained_changes"] == {"A": 0, "B": 0}
    assert expected["summary"]["stops"] == {}


def test_the_command_writes_what_the_function_does(folder: Path, tmp_path: Path) -> None:
    """Its options are the fields of a shape, its usual values theirs."""
    target = Folder(str(tmp_path / "history"))
    command = [sys.executable, "-m", "benchmarks.makers.history_maker", "--changes", "2000", "--window", "1", "3"]
    command += ["--processes", "1", "--keys", "300", "--out", target.uri]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.startswith("2,000 row changes")
    assert contents(target) == contents(made(Shape(2000, keys=300), folder))


def test_stages_are_told_apart(folder: Path) -> None:
    """The functions that are printed are this project's; the job stands first, as it calls all others."""
    first, *others = rows_of_profile(profiled("NDB$MAX", Path(made(SMALL, folder).uri)), 10)
    assert "conflict/runs/resolving/resolve_job.py" in first[0]
    assert first[-1] == "100%"
    assert len(others) == 9
    assert all(name.startswith(("`conflict/", "`ndb_formats/", "`pyarrow ")) for name, *_ in others)


def test_too_few_keys() -> None:
    """A bucket needs some keys."""
    with pytest.raises(ValueError, match="100 keys are too few for 2 buckets"):
        Shape(6000, keys=100, buckets=2)


def test_memory_of_all_processes() -> None:
    """A peak holds what a process had allocated in between."""
    with MemoryPeak(os.getpid()) as peak:
        block = bytearray(os.urandom(1)) * 50_000_000
        size = len(block)
        for _ in range(3):
            block[::4096] = b"x" * len(block[::4096])
    assert peak.size > size
