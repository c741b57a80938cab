"""The outline of a file says what a scan of the file says, whichever file is broken and wherever."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from ndb_formats.columnar.event_index import index_events
from ndb_formats.columnar.file_outline import FileOutline, items_of_log, outline_of, outlines_of
from ndb_formats.columnar.log_scan import LogItem, scan_log
from ndb_formats.constants import TRANSACTION_STARTS
from ndb_formats.errors import FormatError
from tests.corpora import DEMO
from tests.ndb_formats.recordings import BINLOGS, name_of

FIRST, SECOND = DEMO / "A.binlog.000001", DEMO / "B.binlog.000001"


def scanned(files: list[Path]) -> list[LogItem]:
    """Return what a scan says of files."""
    return list(scan_log(files, verify=True))


def places(outline: FileOutline) -> tuple[object, ...]:
    """Return where a file can be divided, and how it ends."""
    error = outline.error
    said = None if error is None else (type(error), str(error), error.position)
    return outline.file, outline.size, outline.starts.tolist(), outline.end, said


@pytest.mark.parametrize("path", BINLOGS, ids=name_of)
def test_recordings(path: Path):
    """Every bundled file: its items, its transactions and its end."""
    found, index = outline_of(path), index_events(path)
    assert list(found.items) == scanned([path])
    starts = [
        int(place) for place, kind in zip(index.positions, index.types, strict=True) if kind in TRANSACTION_STARTS
    ]
    assert places(found)[1:4] == (path.stat().st_size, starts, index.end if len(index) else 0)
    assert places(found) == places(outline_of(path, with_items=False))


def test_a_broken_file_ends_the_log(tmp_path: Path):
    """Cut anywhere, or with any byte of its head changed: files after it say nothing, those before it all."""
    data, broken = FIRST.read_bytes(), tmp_path / "A.000002"
    cuts = [data[:size] for size in [*range(160), *range(160, len(data), 97)]]
    damaged = [data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :] for place in range(400)]
    wholes = []
    for content in (*cuts, *damaged):
        broken.write_bytes(content)
        outlines = {each.file: each for each in outlines_of([SECOND, broken, FIRST])}
        files = [SECOND, tmp_path / "gone", broken, FIRST]
        assert list(items_of_log(outlines, files)) == scanned(files)
        wholes.append(outlines[str(broken)].whole)
    assert any(wholes)
    assert not all(wholes)


def test_an_outline_goes_to_another_process(tmp_path: Path):
    """With its error; one of no binlog, too."""
    broken, other = tmp_path / "A.000001", tmp_path / "A.000002"
    broken.write_bytes(FIRST.read_bytes()[:-3])
    other.write_bytes(b"PAR1")
    for each in outlines_of([FIRST, broken, other]):
        found = pickle.loads(pickle.dumps(each))
        assert places(found) == places(each)
        assert (found.items, found.whole) == (each.items, each.whole)
        assert found.starts.dtype == np.int64
    assert isinstance(outline_of(other).error, FormatError)
