"""Blocks of the rows of neighbouring buckets: each is one piece of a file."""

import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.errors import HistoryError
from conflict.history.grid.blocks import BlockPlace, places_of, ranges_of
from conflict.history.grid.folder import Folder
from conflict.history.grid.schemas import STAGED_CONSEQUENCES
from conflict.history.grid.stored_folder import stored_folder
from tests.examples import examples

KIND = pa.dictionary(pa.int32(), pa.binary())
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.binary()), ("c", KIND)])
ROWS = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.none() | st.binary(max_size=9), st.binary(max_size=2)))


def table_of(rows: list[tuple[int, bytes | None, bytes]]) -> pa.Table:
    """Return rows as a table with a dictionary of its own."""
    return pa.table([pa.array([row[place] for row in rows], kind.type) for place, kind in enumerate(SCHEMA)], SCHEMA)


@given(st.integers(1, 1 << 18))
def test_every_bucket_is_in_one_range(buckets: int):
    """Ranges follow each other; one task is not given more than 64 buckets, nor more than 4 while there are few."""
    ranges = ranges_of(buckets)
    assert [each.start for each in ranges] == [0, *(each.stop for each in ranges[:-1])]
    assert ranges[-1].stop == buckets
    assert max(map(len, ranges)) <= (64 if buckets >= 1280 else 4 if buckets >= 128 else 1)


@pytest.mark.parametrize(
    ("buckets", "tasks"), [(4, 4), (64, 64), (128, 64), (256, 64), (1024, 256), (8192, 256), (131_072, 2048)]
)
def test_how_many_tasks_there_are(buckets: int, tasks: int):
    """At 10 TB of binlog, the last one, a task reads 8 GiB of it."""
    assert len(ranges_of(buckets)) == tasks


@examples(30)
@given(st.lists(ROWS, min_size=1, max_size=6), st.sampled_from([(256, 64), (1, 2), (1, 6), (2, 64)]))
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list, sizes: tuple[int, int]):
    """In a folder here and on object storage: the rows of each bucket, whichever of its neighbours are read with it."""
    uri = f"memory://{uuid.uuid4().hex}/h"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("conflict.history.grid.blocks._TASKS", sizes[0])
        patch.setattr("conflict.history.grid.blocks._MOST_TOGETHER", sizes[1])
        here, stored = Folder(str(tmp_path_factory.mktemp("blocks"))), stored_folder(uri)
        bounds = [each.write_parts("a.arrow", [*map(table_of, rows)]) for each in (here, stored)]
        assert bounds[0].tolist() == bounds[1].tolist()
        stored.contents.upload()
        there = stored_folder(uri)
        there.contents.files.update(stored.files)
        places = places_of("a.arrow", len(rows), bounds[0])
        assert sum(place.stop - place.start for place in places) == here.sizes()["a.arrow"]
        expected = [list(zip(*own, strict=True)) if own else [(), (), ()] for own in rows]
        for folder in (here, stored, there):
            for chosen in (places, places[-1:]):
                with folder.parts(chosen) as parts:
                    found = [
                        each.of(bucket) for place, each in zip(chosen, parts, strict=True) for bucket in place.buckets
                    ]
                columns = [[tuple(column.to_pylist()) for column in each.columns] for each in found]
                assert columns == [[*map(tuple, own)] for own in expected[chosen[0].buckets.start :]]
                assert {each.schema for each in found} == {SCHEMA}
        assert not Path(there.contents.scratch, "fetched").exists()


def test_a_block_that_is_damaged_or_lost(tmp_path: Path):
    """The file is named, here and on object storage."""
    here, stored = Folder(str(tmp_path)), stored_folder(f"memory://{uuid.uuid4().hex}/h")
    for folder in (here, stored):
        bounds = folder.write_parts("a.arrow", [STAGED_CONSEQUENCES.empty_table()])
    stored.contents.upload()
    (place,), away = places_of("a.arrow", 1, bounds), stored_folder(stored.uri)
    away.contents.files.update(stored.files)
    wrong = BlockPlace("a.arrow", range(1), 8, place.stop)
    for folder in (here, away):
        with pytest.raises(HistoryError, match="damaged"), folder.parts([wrong]):
            pass
    beyond = BlockPlace("a.arrow", range(1), 0, place.stop + 8)
    with pytest.raises(OSError, match="it has no bytes 0 to"), away.parts([beyond]):
        pass
    away.remove_objects()
    with pytest.raises(HistoryError, match=r"a\.arrow was removed while it was read"), away.parts([place]):
        pass
    assert bounds.tolist() == [0, place.stop]
