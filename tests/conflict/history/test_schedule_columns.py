"""Epoch applies in columns, in memory and in a History on disk."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.errors import HistoryError
from conflict.history.grid import epoch_files
from conflict.history.grid.epoch_files import read_schedule, write_schedule
from conflict.history.grid.folder import Folder
from conflict.history.scheduling.schedule_columns import PLACES, ScheduleColumns
from conflict.history.timeline import START, EpochApply, Window
from conflict.rules.replication_table import Role
from tests.examples import examples

EPOCHS = st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)
POSITIONS = st.just(START) | st.tuples(EPOCHS, st.integers(-1, 2**31 - 1))
SERVERS = st.integers(0, 2**32 - 1)
APPLIES = st.builds(
    EpochApply,
    epoch=EPOCHS,
    group=st.integers(-1, 2**31 - 1),
    source=st.just("B"),
    foreign_epoch=EPOCHS,
    traced=st.booleans(),
    restarted=st.booleans(),
    arrived=POSITIONS,
    window=st.none() | st.builds(Window, POSITIONS, st.booleans()).filter(lambda window: window != Window(START)),
    applied=st.booleans(),
    period=st.integers(0, 9),
    role=st.none() | st.sampled_from(Role),
    committed=st.none() | st.integers(1, 2**62),
    server=SERVERS,
    source_server=SERVERS,
)


@given(st.lists(APPLIES))
@examples(12, long=1000)
def test_nothing_is_lost(applies: list[EpochApply]):
    """Neither a bit of an epoch, nor what is not known: a place that is given, a role, the time of the commit."""
    found = ScheduleColumns.of_applies("B", applies).applies()
    assert list(found) == applies
    assert [each.committed for each in found] == [each.committed for each in applies]


@given(st.lists(APPLIES, max_size=5), st.sampled_from([2, 100]))
@examples(8, long=300)
def test_nothing_is_lost_on_disk(tmp_path_factory: pytest.TempPathFactory, applies: list[EpochApply], at_once: int):
    """Nor is an applier that applied nothing; very many epoch applies are written and read part by part."""
    folder = Folder(str(tmp_path_factory.mktemp("history")))
    nothing = ScheduleColumns.of_applies("A", [])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(epoch_files, "_AT_ONCE", at_once)
        write_schedule(folder, {"A": ScheduleColumns.of_applies("B", applies), "B": nothing}.items())
        found = read_schedule(folder, ["A", "B"])
        assert list(found["A"].applies()) == applies
        assert [each.committed for each in found["A"].applies()] == [each.committed for each in applies]
        assert [each.committed for each in found["A"].chosen(slice(1, None)).applies()] == [
            each.committed for each in applies[1:]
        ]
        some = np.arange(len(applies))[::-2]
        assert list(found["A"].applies(some)) == applies[::-2]
        assert list(found["A"].chosen(slice(1, None)).applies(some[:-1] - 1)) == applies[::-2][:-1]
        assert list(found["A"].chosen(np.arange(len(applies)) % 2 == 1).applies()) == applies[1::2]
        assert found["B"].applies() == ()


def test_places_that_were_found():
    """An epoch without a trace stands where it was placed, or counts as not applied; all others stay."""
    bound = Window((9, 0))
    given = [EpochApply(epoch, 0, "B", epoch, window=bound if epoch in (2, 4) else None) for epoch in range(1, 6)]
    placed = [EpochApply(7, 3, "B", 2, window=bound), EpochApply(8, 8, "B", 3)]
    found = ScheduleColumns.of_applies("B", given).with_places(placed)
    assert [(each.epoch, each.group, each.applied) for each in found.applies()] == [
        *[(1, 0, True), (7, 3, True), (3, 0, True)],
        *[(4, 0, False), (5, 0, True)],
    ]
    assert [each.epoch for each in found.applied_alone().applies()] == [1, 7, 3, 5]


def test_places_that_are_known():
    """An epoch whose place an earlier result knows has it, as if its trace were there; later ones are to be placed."""
    bound, top = Window((9, 0)), 2**64 - 1
    given = [EpochApply(epoch, 0, "B", epoch, window=bound) for epoch in (2, 2**63, top - 1, top)]
    placed = [EpochApply(7, 3, "B", 2, window=bound), EpochApply(top, 8, "B", top - 1, window=bound)]
    schedule = ScheduleColumns.of_applies("B", given)
    known = schedule.with_places(placed).chosen(slice(3)).columns
    found = schedule.with_given({name: known[name] for name in PLACES})
    assert [(each.epoch, each.group, each.window, each.applied) for each in found.applies()] == [
        *[(7, 3, None, True), (2**63, 0, None, False), (top, 8, None, True)],
        (top, 0, bound, True),
    ]
    assert found.windowed.tolist() == [3]


def test_rows_of_an_applier_that_are_apart(tmp_path: Path):
    """Each applier has its rows in one piece; else the file is damaged."""
    own = ScheduleColumns.of_applies("B", [EpochApply(1, 0, "B", 1)])
    write_schedule(Folder(str(tmp_path)), [("A", own), ("B", own), ("A", own)])
    with pytest.raises(HistoryError, match=r"schedule.parquet is damaged \(rows of A are apart\)"):
        read_schedule(Folder(str(tmp_path)), ["A", "B"])
