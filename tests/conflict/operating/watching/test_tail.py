"""A log that grows is read once, whole epoch by whole epoch, whatever happens to its files."""

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.config.run_file import load_run_file
from conflict.errors import HistoryError
from conflict.history.epochs import BinlogEpoch, EpochReader
from conflict.history.reading.epoch_logs import read_epochs
from conflict.operating.watching.tail import Tail
from conflict.runs.run_inputs import run_of
from ndb_formats.binlog_reader import read_events
from tests.corpora import DEMO
from tests.examples import examples

LOG = DEMO / "A.binlog.000001"
RUN = run_of(load_run_file(DEMO / "run.toml"))


def new_reader() -> EpochReader:
    """Return what reads the log of A."""
    return EpochReader(1, RUN.data_schema)


def tail() -> Tail:
    """Return the tail of the log of A."""
    return Tail("A", new_reader(), frozenset({"t1"}))


def read(found: Tail, folder: Path) -> list[BinlogEpoch]:
    """Return the epochs that came; where they stand holds the same ones."""
    epochs = []
    for each in found.read(sorted(folder.iterdir())):
        (again,) = read_epochs(
            [each.extent.file], new_reader(), {each.extent.file: (each.extent.start, each.extent.stop)}
        )
        assert again == each.epoch
        epochs.append(each.epoch)
    return epochs


def expected() -> list[BinlogEpoch]:
    """Return all epochs of the log."""
    return list(read_epochs([LOG], new_reader()))


def numbers(epochs: list[BinlogEpoch]) -> list[int]:
    """Return which epochs they are."""
    return [each.number for each in epochs]


@examples(20)
@given(st.integers(0, 2**32 - 1))
def test_every_epoch_once(seed: int) -> None:
    """While the file grows byte by byte, and is written again from its beginning now and then."""
    chosen, data = random.Random(seed), LOG.read_bytes()
    with tempfile.TemporaryDirectory() as name:
        folder, found, epochs, size = Path(name), tail(), list[BinlogEpoch](), 0
        while size < len(data):
            size = min(size + chosen.randint(1, 3000), len(data))
            shown = size if chosen.random() < 0.9 else chosen.randint(0, size)
            (folder / "binlog.000001").write_bytes(data[:shown])
            epochs += read(found, folder)
        (folder / "binlog.000001").write_bytes(data)
        epochs += read(found, folder)
        assert numbers(epochs) == numbers(expected())
        assert found.waits == ""


def test_the_next_file(tmp_path: Path) -> None:
    """It is read once it is there; the one before can be purged then, if its last event says that it was closed."""
    data, found = LOG.read_bytes(), tail()
    (tmp_path / "binlog.000001").write_bytes(data)
    assert numbers(read(found, tmp_path)) == numbers(expected())
    (tmp_path / "binlog.000002").write_bytes(data[:4])
    assert read(found, tmp_path) == []
    assert found.file.endswith("binlog.000002")
    (tmp_path / "binlog.000001").unlink()
    assert read(found, tmp_path) == []


def test_a_file_that_is_purged_too_early(tmp_path: Path) -> None:
    """What was in it is lost: that is an error."""
    data, found = LOG.read_bytes(), tail()
    (tmp_path / "binlog.000001").write_bytes(data[: len(data) // 2])
    read(found, tmp_path)
    (tmp_path / "binlog.000001").rename(tmp_path / "binlog.000002")
    with pytest.raises(HistoryError, match=r"binlog\.000001 is gone, which was read up to position \d+"):
        read(found, tmp_path)


def test_other_bytes(tmp_path: Path) -> None:
    """A file that is not the one that was read is no continuation of it."""
    data, found = LOG.read_bytes(), tail()
    ends = [event.end for event in read_events(LOG)]
    (tmp_path / "binlog.000001").write_bytes(data[: ends[9]])
    read(found, tmp_path)
    changed = bytearray(data)
    changed[ends[8] + 1] ^= 1
    (tmp_path / "binlog.000001").write_bytes(changed)
    with pytest.raises(HistoryError, match=f"another event at position {ends[8]}"):
        read(found, tmp_path)
