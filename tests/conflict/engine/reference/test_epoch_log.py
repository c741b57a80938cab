"""The one event that an NDB transaction leaves of all that it did to a row, as the secondary gets it reflected."""

import pytest

from conflict.engine.reference.cluster import LoggedChange, ReplayedCluster
from conflict.history.timeline import RowChange
from conflict.rules.replication_table import Role
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import ConflictFlag, Operation
from tests.conflict.histories import TABLES, image, replayed, resolved, rows

WRITE, UPDATE, DELETE = Operation.WRITE_ROW, Operation.UPDATE_ROW, Operation.DELETE_ROW
EPOCH2, TRANS = "NDB$EPOCH2()", "NDB$EPOCH_TRANS()"
ROLES = {"A": Role.PRIMARY, "B": Role.SECONDARY}
# Row 1 with x = 1, v = 2 on both sides; A knows that its epoch 1 has arrived.
BASE = "A:i1=1/2@1 B:<1@11 A:<11@2 "


def logged(cluster: ReplayedCluster, epoch: int) -> list[RowChange]:
    """Return the events of an own epoch."""
    return [entry.change for entry in cluster.log[epoch] if isinstance(entry, LoggedChange)]


def reflected(changes: str, binlog_type: int = 7) -> list[RowChange]:
    """Return what the primary logs of B's epoch 12."""
    text = f"{BASE}{changes} A:<12@3"
    return logged(replayed(text, EPOCH2, EPOCH2, roles=ROLES, binlog_type=binlog_type)["A"], 3)


def whole(x: int, v: int | None = None, k: int = 1) -> RowImage:
    """Return an image of all columns that are held."""
    return image("t", {0: k, 1: x} if v is None else {0: k, 1: x, 2: v})


@pytest.mark.parametrize(
    ("changes", "operation", "before", "after"),
    [
        ("B:i2=3/4@12 B:u2=3/4>5/4@12", WRITE, None, whole(5, 4, 2)),
        ("B:u1=1/2>3/2@12 B:u1=3/2>3/4@12", UPDATE, whole(1, 2), whole(3, 4)),
        ("B:u1=1/2>3/2@12 B:d1=3/2@12", DELETE, whole(1, 2), None),
        ("B:d1=1/2@12 B:i1=5/6@12", UPDATE, whole(1, 2), whole(5, 6)),
    ],
)
def test_one_event_per_row(changes: str, operation: Operation, before: RowImage | None, after: RowImage | None):
    """Insert + update is an insert, update + update one update, update + delete a delete, delete + insert an update."""
    (event,) = reflected(changes)
    assert (event.operation, event.before, event.after) == (operation, before, after)
    assert event.flags == ConflictFlag.REFLECTED


@pytest.mark.parametrize("changes", ["B:i2=3/4@12 B:d2=3/4@12", "B:i2=3@12 B:u2=3>4@12 B:d2=4@12"])
def test_insert_and_delete(changes: str):
    """Nothing is logged of a row that came and went."""
    assert reflected(changes) == []


@pytest.mark.parametrize(
    ("binlog_type", "before", "after"),
    [
        (6, {0: 1, 1: 1, 2: 2}, {0: 1, 1: 3, 2: 4}),  # changed columns and key in both
        (8, {0: 1}, {1: 3, 2: 4}),  # key, and changed columns without it
        (9, {0: 1}, {1: 3, 2: 4}),
    ],
)
def test_columns_of_two_updates(binlog_type: int, before: dict[int, int], after: dict[int, int]):
    """Two updates of different columns are one update of both."""
    (event,) = reflected("B:u1=1>3@12 B:u1=/2>/4@12", binlog_type)
    assert (event.before, event.after) == (image("t", before), image("t", after))


def test_columns_of_one_update():
    """Under type 8 an update carries the key before, and after it the columns that were written."""
    (event,) = reflected("B:u1=>3@12", 8)
    assert (event.before, event.after) == (image("t", {0: 1}), image("t", {1: 3}))


@pytest.mark.parametrize(("binlog_type", "before"), [(7, {0: 1, 1: 1, 2: 2}), (8, {0: 1}), (6, {0: 1})])
def test_columns_of_a_delete(binlog_type: int, before: dict[int, int]):
    """The updated-only types log the key of a deleted row alone."""
    (event,) = reflected("B:d1=1/2@12", binlog_type)
    assert (event.operation, event.before) == (DELETE, image("t", before))


def test_a_refresh_wins():
    """A row that was changed and rejected in one epoch is sent as it stands, and once."""
    text = "B:u1=3@12 B:i1=8/9@12 A:<12@4"
    (event,) = logged(replayed(text, EPOCH2, EPOCH2, roles=ROLES)["A"], 4)
    assert (event.operation, event.flags, event.after) == (WRITE, ConflictFlag.REFRESH, whole(8, 9))


def test_what_is_refreshed():
    """A row that is there is sent as a write of all its columns, whatever the format; another as a delete by key."""
    text = "A:i1=1/2@1 A:i2=1@1 B:<1@11 A:<11@2 A:u1=1/2>3/2,d2=1@3 B:u1=>9,u2=>9@12 A:<12@4"
    for binlog_type in (6, 7, 8, 9):
        first, second = logged(replayed(text, TRANS, binlog_type=binlog_type)["A"], 4)
        assert (first.operation, first.before, first.after) == (WRITE, None, whole(3, 2))
        assert (second.operation, second.before, second.after) == (DELETE, image("t", {0: 2}), None)


# A deletes row 1. An update of it on B, logged as a write, inserts it on A with x alone. On B the delete and another
# insert follow, which A rejects.
REJECTED = BASE + "A:d1=1/2@3 B:i1=7@12 B:<3@13 B:i1=9/4@14 A:<12@4 A:<14@5 B:<5@15"


@pytest.mark.parametrize(("v", "value"), [("INT", None), ("INT NOT NULL", 0), ("INT NOT NULL DEFAULT 42", 42)])
def test_a_refresh_carries_columns_that_no_operation_wrote(v: str, value: int | None):
    """A data node holds every column of a row, and in all recordings a refresh carries them all."""
    found = resolved(REJECTED, "NDB$EPOCH()", binlog_type=2, tables=TABLES.replace("v INT", f"v {v}"))
    assert rows(found, "A") == rows(found, "B") == [(1, 7, value)]


def test_a_refreshed_row_can_be_inserted():
    """As it has all columns, also where the other cluster has lost it: the operation that failed was a delete."""
    text = BASE + "A:d1=1/2@3 B:i1=7@12 B:<3@13 A:<12@4 A:u1=7>8@5 B:d1@14 A:<14@6 B:<6@15"
    found = resolved(text, "NDB$EPOCH()", binlog_type=2, tables=TABLES.replace("v INT", "v INT NOT NULL"))
    assert rows(found, "A") == rows(found, "B") == [(1, 8, 0)]


@pytest.mark.parametrize(("binlog_type", "columns"), [(7, {0: 1, 1: 3, 2: None}), (6, {0: 1, 1: 3})])
def test_a_reflected_update_of_a_row_with_a_column_that_no_operation_wrote(binlog_type: int, columns: dict[int, int]):
    """It is as the format says: all columns, or those that were written and the key."""
    text = "A:i1=1@1 B:<1@11 A:<11@2 B:u1=1>3@12 A:<12@3"
    (event,) = logged(replayed(text, EPOCH2, EPOCH2, roles=ROLES, binlog_type=binlog_type)["A"], 3)
    assert event.after == image("t", columns)


def test_own_changes_are_logged_as_they_were():
    """Nothing is merged of what the binlog holds already."""
    cluster = replayed("A:i1=1@1 A:u1=1>2@1")["A"]
    assert [(event.operation, event.flags) for event in logged(cluster, 1)] == [(WRITE, 0), (UPDATE, 0)]
