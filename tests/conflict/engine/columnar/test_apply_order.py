"""The order of all epoch applies, and the max replicated epoch before each."""

from pathlib import Path

import pytest

from conflict.engine.columnar.order import ApplierEpochs, order_applies, schedule_of
from conflict.engine.kernels.arrays import EPOCH_APPLY
from conflict.errors import HistoryError
from conflict.history.grid.epoch_files import read_schedule, write_schedule
from conflict.history.grid.folder import Folder
from conflict.history.scheduling.schedule_columns import COLUMNS, ScheduleColumns
from conflict.history.timeline import EpochApply
from conflict.rules.replication_table import Role
from tests.conflict.engine.columnar.one_bucket import plan_applies
from tests.conflict.histories import history

BACK_AND_FORTH = "A:i1=1@1 B:<1@11 A:<11@2 B:u1=2@12 A:<12@3 B:<3@13 A:<13@4"


def planned(text: str) -> list[tuple[int, int, int, int, bool, int]]:
    """Return (applier, foreign epoch, epoch, group, traced, M) of each epoch apply; A is 0, B is 1."""
    applies = plan_applies(history(text).clusters)
    columns = (
        applies.applier,
        applies.foreign_epoch,
        applies.epoch,
        applies.group,
        applies.traced,
        applies.max_replicated_epoch,
    )
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_nothing():
    """Without epoch applies all arrays are empty, and have their types all the same."""
    applies = plan_applies(history("A:i1=1@1 B:i1=2@11").clusters)
    assert len(applies) == 0
    assert (applies.epoch.dtype, applies.max_replicated_epoch.dtype) == ("uint64", "uint64")


def test_causes_come_first():
    """No epoch is applied before it was made; M is the last own epoch that came back before."""
    assert planned(BACK_AND_FORTH) == [
        (1, 1, 11, 0, True, 0),
        (0, 11, 2, 0, True, 0),
        (0, 12, 3, 0, True, 1),
        (1, 3, 13, 0, True, 0),
        (0, 13, 4, 0, True, 1),
    ]


def test_own_order_is_kept():
    """Epoch applies of one cluster stay in order, whatever the other does."""
    applies = planned("A:i1=1@1 A:i1=1@2 A:i1=1@3 B:<1@11 B:<2@11 B:<3@12")
    assert [(foreign, epoch, group) for _, foreign, epoch, group, _, _ in applies] == [
        (1, 11, 0),
        (2, 11, 1),
        (3, 12, 0),
    ]


def test_an_epoch_counts_from_its_commit():
    """An epoch that brings back an own epoch is still judged without it; the next one is judged with it."""
    applies = planned("A:i1=1@1 B:<1@11 A:<11@2 B:i2=1@12 A:<12@3")
    assert [(foreign, known) for applier, foreign, *_, known in applies if applier == 0] == [(11, 0), (12, 1)]


def test_the_last_of_several_epochs_counts():
    """If an own epoch shows two foreign ones, the later one comes back."""
    applies = planned("A:i1=1@1 A:i1=1@2 B:<1@11 B:<2@11 A:<11@3 B:i2=1@12 A:<12@4")
    assert applies[-1] == (0, 12, 4, 0, True, 2)


def test_what_left_no_trace_does_not_come_back():
    """An epoch that the other cluster applied without a trace is not known to have arrived."""
    applies = planned("A:i1=1@1 B:<1?@11 B:i2=1@11 A:<11@2 B:i3=1@12 A:<12@3")
    assert applies == [(1, 1, 11, -1, False, 0), (0, 11, 2, 0, True, 0), (0, 12, 3, 0, True, 0)]


def test_m_never_falls():
    """An epoch that brings back nothing leaves M where it is."""
    applies = planned("A:i1=1@1 B:<1@11 A:<11@2 B:i2=1@12 B:i3=1@13 A:<12@3 A:<13@4")
    assert [known for applier, *_, known in applies if applier == 0] == [0, 1, 1]


@pytest.mark.parametrize(("first", "second"), [(2**63 - 1, 2**63), (2**63, 2**64 - 1)])
def test_high_epochs(first: int, second: int):
    """Epochs survive as unsigned 64-bit numbers, in every column."""
    text = f"A:i1=1@{first} B:<{first}@{first} A:<{first}@{second} B:i2=1@{second} A:<{second}@{second}"
    assert planned(text) == [
        (1, first, first, 0, True, 0),
        (0, first, second, 0, True, 0),
        (0, second, second, 1, True, first),
    ]


def test_circular():
    """Two epochs that each contain news of the other cannot be ordered."""
    with pytest.raises(HistoryError) as caught:
        planned("A:<11@1 A:i1=1@1 B:<1@11 B:i1=1@11")
    said = str(caught.value)
    assert said.startswith("the schedule is circular: cluster A applies epoch 11 before the other cluster can have")
    assert said.endswith("give all binlog files of both clusters")


def test_the_first_applied_epochs_alone():
    """Epochs after a stop are left out; None leaves out nothing."""
    applied = ApplierEpochs.of_cluster(history(BACK_AND_FORTH).cluster("A"))
    assert applied.columns["foreign_epoch"].tolist() == [11, 12, 13]
    first = [applied.first(kept).columns["foreign_epoch"].tolist() for kept in (0, 2, None)]
    assert first == [[], [11, 12], [11, 12, 13]]


def test_engines_read_columns_as_they_are():
    """No column loses a bit in the records that compiled code reads."""
    read = {name: column.kind for name, column in COLUMNS.items() if name in EPOCH_APPLY.names}
    assert len(read) == 7
    assert {name: EPOCH_APPLY[name] for name in read} == read


def test_epoch_applies_come_back():
    """An epoch apply keeps in order what it had in its schedule; only what bounded its place is gone."""
    high, time = 2**64 - 1, 1_700_000_000_000_000
    first = EpochApply(
        5, 2, "B", 11, restarted=True, arrived=(4, 1), role=Role.SECONDARY, committed=time, server=3, source_server=4
    )
    applies = {"A": [first, EpochApply(high, -1, "B", high, traced=False)], "B": [EpochApply(12, 0, "A", 5)]}
    own = [ApplierEpochs(ScheduleColumns.of_applies("", each)) for each in applies.values()]
    ordered = order_applies(own, ["A", "B"])
    found = [list(schedule_of(ordered, number, source).applies()) for number, source in enumerate("BA")]
    assert found == list(applies.values())
    assert found[0][0].committed == time


def test_epoch_applies_of_a_table(tmp_path: Path):
    """Epoch applies in memory and in a History on disk are the same."""
    clusters, folder = history(BACK_AND_FORTH).clusters, Folder(str(tmp_path))
    schedule = {
        cluster.name: ScheduleColumns.of_applies(
            other.name, [item for item in cluster.timeline if isinstance(item, EpochApply)]
        )
        for cluster, other in zip(clusters, reversed(clusters), strict=True)
    }
    write_schedule(folder, schedule.items())
    on_disk = read_schedule(folder, list(schedule))
    for cluster in clusters:
        assert on_disk[cluster.name].applies() == schedule[cluster.name].applies()
        read, made = ApplierEpochs.of_columns(on_disk[cluster.name]), ApplierEpochs.of_cluster(cluster)
        assert len(read.moments) == len(made.moments) == 0
        for name, column in read.columns.columns.items():
            assert column.tolist() == made.columns[name].tolist()
            assert column.dtype == made.columns[name].dtype
