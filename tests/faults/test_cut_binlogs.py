"""Binlogs cut at every byte: the epochs before the cut are there."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pyarrow as pa
import pytest

from conflict.config.run_file import load_run_file
from conflict.history.epochs import BinlogEpoch, EpochReader
from conflict.history.grid.epoch_files import EPOCHS
from conflict.history.ingestion.segment_arrays import UnreadableError, tables_in_force
from conflict.history.ingestion.segment_columns import read_columns
from conflict.history.ingestion.segments import Segment
from conflict.history.reading.epoch_logs import read_epochs
from conflict.history.run import TableNumbers
from conflict.judge.case import ConflictCase
from ndb_formats.binlog_reader import FIRST_POSITION, read_events
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
    cluster = max(run.clusters, key=lambda each: Path(each.log.files[0]).stat().st_size)
    return Path(cluster.log.files[0]), cluster.server_id, run.schema


def epochs_of(path: Path, server: int, schema: Schema) -> tuple[list[BinlogEpoch], bool]:
    """Return the epochs of a file, up to its end or the cut, and whether there is a cut."""
    epochs: list[BinlogEpoch] = []
    try:
        epochs.extend(read_epochs([path], EpochReader(server, schema)))
    except CutFileError:
        return epochs, True
    return epochs, False


def columns_of(path: Path, server: int, schema: Schema) -> tuple[pa.Table, bool]:
    """Return the same of the reader in columns: number, changes and time of each epoch."""
    segment, numbers = Segment(0, path, 0, path.stat().st_size), TableNumbers(schema.tables, {})
    try:
        content = read_columns(segment, server, tables_in_force(schema, None), numbers, 1, 0)
    except UnreadableError:  # nothing is whole, not even the first event
        return EPOCHS.empty_table(), path.stat().st_size > FIRST_POSITION
    assert content.error is None or isinstance(content.error, CutFileError)
    return content.epochs, content.error is not None


def check(folder: Path, scratch: Path, every: int, anywhere: int) -> None:
    """Cut a binlog at each of its first bytes, and anywhere; the same place is not tried twice."""
    path, server, schema = log_of(folder)
    data, reader = path.read_bytes(), EpochReader(server, schema)
    cut = scratch / path.name
    cut.write_bytes(data)
    whole = [(event.end, epoch) for event in read_events(cut) if (epoch := reader.feed(event)) is not None]
    assert whole
    ends = {4, *(event.end for event in read_events(cut))}
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201  # shown if it fails
    chance = random.Random(seed)
    columns, _ = columns_of(cut, server, schema)
    assert columns.column("number").to_pylist() == [epoch.number for _, epoch in whole]
    places = {*range(4, min(every, len(data))), *(chance.randrange(4, len(data)) for _ in range(anywhere))}
    for place in sorted(places, reverse=True):
        os.truncate(cut, place)
        before = [epoch for end, epoch in whole if end <= place]
        assert epochs_of(cut, server, schema) == (before, place not in ends), place
        assert columns_of(cut, server, schema) == (columns[: len(before)], place not in ends), place


def test_the_demo_cut_at_some_bytes(tmp_path: Path) -> None:
    """What is whole before the cut is read, and the cut is said."""
    check(DEMO, tmp_path, 0, 40)


@pytest.mark.slow
@pytest.mark.parametrize("folder", [DEMO, *CASES], ids=lambda folder: folder.name)
def test_a_binlog_cut_anywhere(folder: Path, tmp_path: Path) -> None:
    """At each byte of the first 4 KiB, and at 1,000 random places."""
    check(folder, tmp_path, EVERY, ANYWHERE)
