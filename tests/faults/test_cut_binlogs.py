"""Binlogs cut at every byte: the epochs before the cut are there."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from conflict.config.run_file import load_run_file
from conflict.conformance.case import ConflictCase
from conflict.history.epochs import BinlogEpoch, EpochReader, read_epochs
from ndb_formats.binlog_reader import read_events
from ndb_formats.errors import CutFileError
from ndb_formats.schema.tables import Schema
from tests.corpora import DEMO, RECORDINGS


def size_of(folder: Path) -> int:
    """Return the size of the longest binlog of a recording."""
    return max(path.stat().st_size for path in folder.glob("*.binlog.*"))


# One per function and binlog type, of those that log anything.
SMALLEST = 1000  # bytes
LOGGED = [path for path in sorted(RECORDINGS.glob("conflict/*/*_type?")) if size_of(path) > SMALLEST]
CASES = list({(path.parent.name, path.name[-1]): path for path in LOGGED}.values())[:29]
EVERY, ANYWHERE = 4096, 1000


def log_of(folder: Path) -> tuple[Path, int, Schema]:
    """Return the first binlog of the cluster that changed most, its server id, and the definitions."""
    run = (
        load_run_file(folder / "run.toml").configuration
        if folder == DEMO
        else ConflictCase.load(folder).configuration()
    )
    cluster = max(run.clusters, key=lambda each: Path(each.files[0]).stat().st_size)
    return Path(cluster.files[0]), cluster.server_id, run.schema


def epochs_of(path: Path, server: int, schema: Schema) -> tuple[list[BinlogEpoch], bool]:
    """Return the epochs of a file, up to its end or the cut, and whether there is a cut."""
    epochs: list[BinlogEpoch] = []
    try:
        epochs.extend(read_epochs([path], EpochReader(server, schema)))
    except CutFileError:
        return epochs, True
    return epochs, False


def check(folder: Path, scratch: Path, every: int, anywhere: int) -> None:
    """Cut a binlog at each of its first bytes, and anywhere."""
    path, server, schema = log_of(folder)
    data, reader = path.read_bytes(), EpochReader(server, schema)
    whole = [(event.end, epoch) for event in read_events(path) if (epoch := reader.feed(event)) is not None]
    assert whole
    ends = {4, *(event.end for event in read_events(path))}
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201  # shown if it fails
    chance = random.Random(seed)
    first = range(4, min(every, len(data)))
    cut = scratch / path.name
    for place in (*first, *(chance.randrange(4, len(data)) for _ in range(anywhere))):
        cut.write_bytes(data[:place])
        found, is_cut = epochs_of(cut, server, schema)
        assert [epoch.number for epoch in found] == [epoch.number for end, epoch in whole if end <= place], place
        assert is_cut == (place not in ends), place


def test_the_demo_cut_at_some_bytes(tmp_path: Path) -> None:
    """What is whole before the cut is read, and the cut is said."""
    check(DEMO, tmp_path, 0, 40)


@pytest.mark.slow
@pytest.mark.parametrize("folder", [DEMO, *CASES], ids=lambda folder: folder.name)
def test_a_binlog_cut_anywhere(folder: Path, tmp_path: Path) -> None:
    """At each byte of the first 4 KiB, and at 1,000 random places."""
    check(folder, tmp_path, EVERY, ANYWHERE)
