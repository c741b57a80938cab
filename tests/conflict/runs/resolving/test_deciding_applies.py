"""Which epoch applies become objects, where the rest of the schedule stays in columns."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import PropertyMock, patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.scheduling.schedule_columns import ScheduleColumns, known_before
from conflict.history.timeline import EpochApply, Transaction, Window
from conflict.judge.case import ConflictCase
from conflict.runs.pipeline import run_by
from conflict.runs.resolving.deciding_applies import deciding_numbers
from conflict.runs.resolving.settling import Settling
from conflict.runs.rows.row_spans import WantedRows
from tests.corpora import RECORDINGS

OPEN = EpochApply(1001, -1, "B", 1000, traced=False, arrived=(1000, 0), window=Window())
COUNT = 1000  # epoch applies of each cluster: each applies an epoch of the other in its next one


def quiet(source: str, *more: EpochApply) -> ScheduleColumns:
    """Return traced epoch applies in own epochs 1 to `COUNT`, each of the epoch before it, and some more."""
    return ScheduleColumns.of_applies(
        source, [EpochApply(number + 1, 0, source, number) for number in range(COUNT)] + [*more]
    )


class TestDecidingNumbers:
    """Epoch applies that decide on those that are looked at."""

    def test_a_quiet_log(self):
        """Of the last epoch, those are left that count as neighbours or as news, and those that touch its rows."""
        schedule = {"A": quiet("B", OPEN), "B": quiet("A")}
        looked_at = {name: own.windowed for name, own in schedule.items()}
        own = {"A": [], "B": [Transaction(1000, 0, ()), Transaction(500, 0, ())]}
        found = deciding_numbers(schedule, looked_at, own, {"A": {(700, 0): {}}, "B": {}})
        assert found["A"].tolist() == [0, 500, 996, 997, 998, 999, 1000]
        # The epoch that A applied in its epoch 700, the first and the last, which is the news before epoch 1000.
        assert found["B"].tolist() == [0, 700, 999]

    def test_nothing_is_looked_at(self):
        """Then the first and last ones of the schedule are left."""
        schedule = {"A": quiet("B"), "B": ScheduleColumns.of_applies("A", [])}
        none = {name: np.zeros(0, np.int64) for name in schedule}
        found = deciding_numbers(schedule, none, {"A": [], "B": []}, {"A": {}, "B": {}})
        assert [each.tolist() for each in found.values()] == [[0, COUNT - 1], []]

    @pytest.mark.parametrize(
        "name",
        [
            "conflict/max/one_key_many_ops_type7",
            pytest.param("conflict/epoch/hot_3020_type9", marks=pytest.mark.slow),
            pytest.param("conflict/epoch/concurrent_5021_type8", marks=pytest.mark.slow),
            pytest.param("conflict/epoch/rewound_type7", marks=pytest.mark.slow),
            pytest.param("conflict/epoch_trans/hot_3020_type8", marks=pytest.mark.slow),
            pytest.param("everyday/max/option_no_transaction_ids_type7", marks=pytest.mark.slow),
        ],
    )
    def test_the_others_decide_nothing(self, name: str, tmp_path: Path):
        """The result is the same, to the byte, if all of them become objects."""
        found = []
        for tell in (True, False):
            out = Folder(str(tmp_path / str(tell)))
            with patch.object(Settling, "_binlogs_tell", new_callable=PropertyMock, return_value=tell):
                resolved = run_by("local", make_run(ConflictCase.load(RECORDINGS / name).configuration()), out)
            files = {path: out.read_bytes(path) for path in sorted(out.sizes())}
            found.append((files, resolved.to_json("local", all_outcomes=False, final_rows=True)))
        assert found[0] == found[1]


applies = st.builds(
    lambda epoch, foreign, traced, applied: (epoch, foreign, traced, applied or traced),
    st.integers(1, 8),
    st.integers(1, 8),
    st.booleans(),
    st.booleans(),
)


def columns(drawn: list[tuple[int, int, bool, bool]], falls: int) -> ScheduleColumns:
    """Return epoch applies in the order of own epochs; the period rises with the place of one of them."""
    ordered = sorted(drawn)
    return ScheduleColumns.of_applies(
        "B",
        [
            EpochApply(epoch, place, "B", foreign, traced=traced, applied=applied, period=int(place >= falls))
            for place, (epoch, foreign, traced, applied) in enumerate(ordered)
        ],
    )


@given(st.lists(applies), st.lists(applies), st.integers(0, 8), st.integers(0, 3))
def test_max_replicated_epoch(
    ours: list[tuple[int, int, bool, bool]], theirs: list[tuple[int, int, bool, bool]], falls: int, returned: int
):
    """It is the highest own epoch that came back in an epoch applied before; one not applied counts in its period."""
    own, others = columns(ours, falls), columns(theirs, 0)
    back: dict[int, int] = {}
    for each in others.applies():
        if each.traced:
            back[each.epoch] = max(back.get(each.epoch, 0), each.foreign_epoch)
    expected, before = [], list[EpochApply]()
    for each in own.applies():
        # In an earlier period, those before the last one that was applied.
        last = {one.period: place for place, one in enumerate(before) if one.applied}
        counted = [
            one for place, one in enumerate(before) if one.period == each.period or place <= last.get(one.period, -1)
        ]
        expected.append(max([returned, *(back.get(one.foreign_epoch, 0) for one in counted)]))
        before.append(each)
    assert known_before(own, others, returned).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), unique=True), st.integers(0, 6), st.integers(-1, 6))
def test_the_epoch_apply_at_a_position(places: list[tuple[int, int]], epoch: int, group: int):
    """It is found by its own epoch and group; an epoch can hold many."""
    traced = [EpochApply(*place, "B", number) for number, place in enumerate(sorted(places))]
    wanted = WantedRows.of_schedule(ScheduleColumns.of_applies("B", traced), np.zeros(0, np.int64))
    expected = next((number for number, each in enumerate(traced) if (each.epoch, each.group) == (epoch, group)), -1)
    found = wanted.applied_at(np.array([epoch], np.uint64), np.array([group], np.int32))
    assert found.tolist() == [expected]
