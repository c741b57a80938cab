"""Foreign epochs of an applier whose binlog does not name them: by hand, and of recordings whose binlogs do."""

import attrs
import pytest

from conflict.history.epochs import AppliedEpoch, BinlogEpoch
from conflict.history.reading.epochs_by_content import epochs_found, hides_epochs, readings_by_content
from conflict.history.reading.readings import read_cluster
from conflict.history.run import Run
from conflict.history.timeline import RowChange, Transaction
from conflict.judge.case import ConflictCase
from ndb_formats.events.rows_event import ConflictFlag
from tests.conflict.histories import change
from tests.corpora import RECORDINGS

RECORDED = ("max/random_27_type7", "max/hot_3021_type7", "old/random_26_type6", "max_ins/random_1023_type3")


def changes(text: str) -> list[RowChange]:
    """Return changes; one that begins with ! is a refresh."""
    found = [change(each.removeprefix("!")) for each in text.split(",")]
    flags = [ConflictFlag.REFRESH if each.startswith("!") else ConflictFlag(0) for each in text.split(",")]
    return [attrs.evolve(each, flags=flag) for each, flag in zip(found, flags, strict=True)]


def made(number: int, text: str) -> BinlogEpoch:
    """Return an epoch of one own transaction."""
    return BinlogEpoch(number, (Transaction(number, 0, tuple(changes(text))),), (), ())


def applied(number: int, *groups: str) -> BinlogEpoch:
    """Return an epoch in which an applier committed some groups."""
    rows = [(group, each) for group, text in enumerate(groups) for each in changes(text)]
    return BinlogEpoch(number, (), (), tuple(rows))


def test_a_group_is_the_epoch_that_changes_its_rows() -> None:
    """Rows that were rejected are missing from it, refreshed ones are not."""
    source = [made(11, "i1=1"), made(12, "u1=1>2,u2=1>2,u3=1>2"), made(13, "u2=2>3")]
    applier = [applied(1, "i1=1"), applied(2, "!i1=9,u2=1>2", "u2=2>3")]
    assert epochs_found(applier, source)[0] == {(1, 0): 11, (2, 0): 12, (2, 1): 13}


def test_values_tell_epochs_of_one_row_apart() -> None:
    """The second of three updates was applied, the others were rejected."""
    source = [made(11, "u1=1>2"), made(12, "u1=2>3"), made(13, "u1=3>4")]
    assert epochs_found([applied(1, "u1=9>3")], source)[0] == {(1, 0): 12}


def test_refreshes_leave_it_open() -> None:
    """A refresh does not hold the values that were rejected."""
    source = [made(11, "u1=1>2"), made(12, "u1=2>3")]
    found = epochs_found([applied(1, "!i1=9")], source)
    assert sorted(each[1, 0] for each in found) == [11, 12]


def test_later_groups_are_later_epochs() -> None:
    """Epochs are applied in order."""
    source = [made(11, "u1=1>2"), made(12, "u1=2>3")]
    assert epochs_found([applied(1, "!i1=9", "!i1=9")], source) == [{(1, 0): 11, (1, 1): 12}]


def test_nothing_fits() -> None:
    """More groups than epochs, or a row that no epoch changes."""
    source = [made(11, "u1=1>2")]
    assert epochs_found([applied(1, "!i1=9", "!i1=9")], source) == []
    assert epochs_found([applied(1, "i2=1")], source) == []


def test_a_binlog_that_names_epochs_is_taken_as_it_is() -> None:
    """Also if some of its groups have no name."""
    named = attrs.evolve(applied(2, "u1=1>2"), applied=(AppliedEpoch(0, 2, 11),))
    assert hides_epochs([applied(1, "i1=1")])
    assert not hides_epochs([applied(1, "i1=1"), named])
    epochs = {"A": [applied(1, "i1=1"), named], "B": [made(10, "i1=1"), made(11, "u1=1>2")]}
    assert readings_by_content(epochs, {"A": 1, "B": 2}) == [epochs]


@pytest.mark.parametrize("name", RECORDED)
def test_recordings_whose_binlogs_name_the_epochs(name: str) -> None:
    """Without the names, the same epochs are found."""
    configuration = ConflictCase.load(RECORDINGS / "conflict" / name).configuration()
    epochs = {each.name: read_cluster(each, Run(configuration)).epochs for each in configuration.clusters}
    for mine, theirs in (("A", "B"), ("B", "A")):
        shown = {(each.number, group) for each in epochs[mine] for group, _ in each.consequences}
        truth = {
            (each.number, item.group): item.epoch
            for each in epochs[mine]
            for item in each.applied
            if (each.number, item.group) in shown
        }
        hidden = [attrs.evolve(each, applied=()) for each in epochs[mine]]
        assert truth in epochs_found(hidden, epochs[theirs])
