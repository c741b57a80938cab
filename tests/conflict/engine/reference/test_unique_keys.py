"""Unique keys besides the primary key: two rows with one value stop the applier, with error 1022."""

import pytest

from tests.conflict.histories import counters, resolved, rows

TABLE = "d.q"


def test_two_rows_with_one_value():
    """Each cluster used the same value for another row: the applier stops at that epoch; earlier ones stay."""
    found = resolved("A:iq1=1/7@1 B:iq2=1/8@11 A:<11@2 B:iq3=1/7@12 A:<12@3 B:iq4=1/9@13 A:<13@4")
    stop = found.clusters["A"].stop
    assert stop is not None
    assert (stop.error, stop.foreign_epoch, stop.table) == (1022, 12, TABLE)
    assert "unique key" in stop.message
    assert rows(found, "A", TABLE) == [(1, 1, 7), (2, 1, 8)]


def test_an_update_to_a_value_that_is_used():
    """Whatever made the value, the commit checks it."""
    found = resolved("A:iq1=1/7,iq2=1/8@1 B:<1@11 B:uq2=1/8>1/9@12 A:uq1=1/7>1/9@2 A:<12@3")
    assert found.clusters["A"].stop is not None
    assert rows(found, "A", TABLE) == [(1, 1, 9), (2, 1, 8)]


def test_nothing_of_the_epoch_is_counted():
    """The epoch is undone whole, with what was rejected in it."""
    text = "A:iq1=1/7,i1=5@1 B:i1=6@11 B:iq3=1/7@11 A:<11@2"
    found = resolved(text, "NDB$MAX(x)", exceptions="t$EX")
    assert found.clusters["A"].stop is not None
    assert (counters(found, "A"), found.clusters["A"].exceptions) == ({}, {"d.t$EX": []})


@pytest.mark.parametrize(("value", "stops", "undecided"), [("1/9", False, 1), ("1/7", True, 0)])
def test_nothing_of_the_epoch_is_open(value: str, stops: bool, undecided: int):
    """A decision that no binlog tells counts for nothing either, once its epoch is undone."""
    text = f"A:i1=1,iq1=1/7@1 B:<1@11 A:<11@2 A:u1=1>5@3 B:u1=1>9@12 B:iq3={value}@12 A:<12@5"
    found = resolved(text, "NDB$EPOCH_TRANS()").clusters["A"]
    assert (found.stop is not None, len(found.undecided)) == (stops, undecided)


@pytest.mark.parametrize(
    "changes",
    [
        "B:dq1=1/7,iq2=1/7@12",  # freed, then used
        "B:iq2=1/7,dq1=1/7@12",  # used, then freed: the order inside a transaction does not matter
        "B:uq1=1/7>1/8,iq2=1/7@12",
        "B:dq1=1/7@12 B:iq2=1/7@12",  # one epoch is one transaction here
    ],
)
def test_a_value_that_moves(changes: str):
    """A value may pass from one row to another within what is applied at once."""
    found = resolved(f"A:iq1=1/7@1 B:<1@11 {changes} A:<12@2")
    assert found.clusters["A"].stop is None
    assert (2, 1, 7) in rows(found, "A", TABLE)


def test_two_rows_of_one_epoch():
    """Rows that arrive together can stand against each other as well."""
    found = resolved("B:iq1=1/7@11 B:uq1=1/7>1/8@12 B:iq2=1/7@12 A:iq3=1/8@1 A:<11@2 A:<12@3")
    stop = found.clusters["A"].stop
    assert stop is not None
    assert stop.foreign_epoch == 12


@pytest.mark.parametrize("value", ["", "/N"])
def test_null_is_equal_to_nothing(value: str):
    """Rows without a value do not stand against each other."""
    found = resolved(f"A:iq1=1{value}@1 B:iq2=1{value}@11 A:<11@2")
    assert found.clusters["A"].stop is None
    assert len(rows(found, "A", TABLE)) == 2


def test_the_same_row():
    """A row may be written over with the value that it has."""
    found = resolved("A:iq1=1/7@1 B:iq1=2/7@11 A:<11@2")
    assert rows(found, "A", TABLE) == [(1, 2, 7)]


def test_a_row_that_is_rejected():
    """A rejected operation uses no value."""
    found = resolved("A:iq1=5/7@1 A:iq2=5/8@1 B:iq2=4/7@11 A:<11@2", "NDB$MAX(x)")
    assert (found.clusters["A"].stop, counters(found, "A")) == (None, {"fn_max": 1})


def test_a_value_of_a_deleted_row():
    """It may be used again."""
    found = resolved("A:iq1=1/7@1 A:dq1=1/7@2 B:iq2=1/7@11 A:<11@3")
    assert found.clusters["A"].stop is None
    assert rows(found, "A", TABLE) == [(2, 1, 7)]


def test_other_tables():
    """Table t has the same column and no unique key."""
    assert resolved("A:i1=1/7@1 B:i2=1/7@11 A:<11@2").clusters["A"].stop is None
