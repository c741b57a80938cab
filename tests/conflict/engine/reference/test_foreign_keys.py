"""Foreign keys: what stops an applier when it commits, and what the actions of data nodes do."""

import pytest

from conflict.engine.inference.rows import OlderRows
from conflict.engine.ledger.resolution import Resolution
from conflict.engine.reference.keys import ForeignKeys, KeySide, Value
from conflict.engine.reference.row_store import Row, RowStore
from tests.conflict.histories import MORE_TABLES, TABLES, key, resolved, rows, setups

CHILD = "d.c"
ON_CHILD = "CREATE TABLE c (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED, v INT"


def with_key(definition: str) -> str:
    """Return all tables, with a foreign key in table c."""
    return (TABLES + MORE_TABLES).replace(ON_CHILD, f"{ON_CHILD}, FOREIGN KEY {definition}")


def linked(text: str, function: str | None = None, *, definition: str = "(v) REFERENCES t (k)") -> Resolution:
    """Resolve a text with a foreign key in table c."""
    return resolved(text, function, tables=with_key(definition))


def stop(found: Resolution, name: str = "A") -> tuple[int, int, str] | None:
    """Return error, foreign epoch and table of a stop."""
    it = found.clusters[name].stop
    return None if it is None else (it.error, it.foreign_epoch, it.table)


def test_a_parent_that_is_missing():
    """B's row refers to a row that A deleted: A stops, and nothing of that epoch is there."""
    found = linked("A:i1=1@1 B:<1@11 A:d1=1@2 B:ic1=1@12 B:ic2=1/1,i9=9@13 A:<12@3 A:<13@4")
    assert stop(found) == (1452, 13, CHILD)
    assert (rows(found, "A"), rows(found, "A", CHILD)) == ([], [(1, 1, None)])
    message = found.clusters["A"].stop.message
    assert "CONSTRAINT `c_fk_1` FOREIGN KEY (`v`) REFERENCES `t` (`k`)" in message
    assert stop(found, "B") is None


@pytest.mark.parametrize(
    "changes",
    [
        "B:i1=1,ic1=1/1@11",
        "B:ic1=1/1,i1=1@11",  # parent and child in any order
        "B:ic1=1/1@11 B:i1=1@11",  # one epoch is one transaction here
        "B:ic1=1/N@11",  # NULL refers to nothing
        "B:ic1=1@11",
        "B:ic1=1/1,dc1=1@11",  # gone again
    ],
)
def test_what_breaks_nothing(changes: str):
    """The check sees what the whole epoch leaves."""
    assert stop(linked(f"{changes} A:<11@1")) is None


def test_an_update_that_refers_to_a_missing_row():
    """Whatever wrote the reference, the commit checks it; an update that does not write it is not checked."""
    start = "A:i1=1,i2=2,ic1=1/1@1 B:<1@11 A:d2=2@2"
    assert stop(linked(f"{start} B:uc1=1/1>1/2@12 A:<12@3")) == (1452, 12, CHILD)
    assert stop(linked(f"{start} A:uc1=1/1>1/2@2 B:uc1=1>7@12 A:<12@3")) is None


def test_own_changes_are_not_checked():
    """A cluster's own changes passed its checks, or were made without any."""
    assert stop(linked("A:ic1=1/5@1 B:<1@11"), "A") is None


class TestParentsThatGo:
    """A row is deleted to which rows of the applier's cluster refer."""

    LOCAL_CHILD = "A:i1=1@1 B:<1@11 A:ic1=1/1@2 B:d1=1@12 A:<12@3"

    @pytest.mark.parametrize("action", ["", "ON DELETE NO ACTION", "ON DELETE RESTRICT", "ON UPDATE CASCADE"])
    def test_the_applier_stops(self, action: str):
        found = linked(self.LOCAL_CHILD, definition=f"(v) REFERENCES t (k) {action}")
        assert stop(found) == (1451, 12, "d.t")
        assert (rows(found, "A"), rows(found, "A", CHILD)) == ([(1, 1, None)], [(1, 1, 1)])

    @pytest.mark.parametrize(("action", "left"), [("CASCADE", []), ("SET NULL", [(1, 1, None)])])
    def test_the_action_follows(self, action: str, left: list[object]):
        found = linked(self.LOCAL_CHILD, definition=f"(v) REFERENCES t (k) ON DELETE {action}")
        assert (stop(found), rows(found, "A"), rows(found, "A", CHILD)) == (None, [], left)

    @pytest.mark.parametrize("action", ["RESTRICT", "CASCADE", "SET NULL"])
    def test_what_the_source_deleted_too(self, action: str):
        """A cascaded delete is in the log as a change of its own: nothing is left to do, and nothing to refuse."""
        text = "A:i1=1,ic1=1/1@1 B:<1@11 B:d1=1,dc1=1@12 A:<12@2"
        found = linked(text, definition=f"(v) REFERENCES t (k) ON DELETE {action}")
        assert (stop(found), rows(found, "A"), rows(found, "A", CHILD)) == (None, [], [])

    def test_a_delete_that_is_rejected(self):
        """It removes no parent."""
        text = "A:i1=1@1 B:<1@11 A:u1=1>5@2 A:ic1=1/1@2 B:d1=1@12 A:<12@3"
        found = linked(text, "NDB$OLD(x)")
        assert (stop(found), rows(found, "A"), rows(found, "A", CHILD)) == (None, [(1, 5, None)], [(1, 1, 1)])

    def test_a_parent_that_comes_back(self):
        """Deleted and inserted again in one epoch, it is there when the epoch commits."""
        assert stop(linked("A:i1=1@1 B:<1@11 A:ic1=1/1@2 B:d1=1@12 B:i1=2@12 A:<12@3")) is None


def test_rows_that_refer_to_rows_of_their_own_table():
    """The action follows from row to row."""
    definition = "(v) REFERENCES c (k) ON DELETE CASCADE"
    text = "B:ic2=1/1,ic1=1@11 A:<11@1 A:ic3=1/2,ic4=1/3,ic5=1@2 B:dc1=1,dc2=1@12 A:<12@3"
    found = linked(text, definition=definition)
    assert (stop(found), rows(found, "A", CHILD)) == (None, [(5, 1, None)])


@pytest.mark.parametrize(("action", "left"), [("CASCADE", [(1, 1, 8)]), ("SET NULL", [(1, 1, None)])])
def test_a_unique_key_of_the_parent_that_is_updated(action: str, left: list[object]):
    """The references follow, or are emptied."""
    text = "A:iq1=1/7@1 B:<1@11 A:ic1=1/7@2 B:uq1=1/7>1/8@12 A:<12@3"
    found = linked(text, definition=f"(v) REFERENCES q (v) ON UPDATE {action}")
    assert (stop(found), rows(found, "A", CHILD)) == (None, left)


def test_a_unique_key_of_the_parent_that_is_needed():
    """Without an action the update is refused."""
    text = "A:iq1=1/7@1 B:<1@11 A:ic1=1/7@2 B:uq1=1/7>1/8@12 A:<12@3"
    assert stop(linked(text, definition="(v) REFERENCES q (v)")) == (1451, 12, "d.q")


def test_what_an_action_did_goes_to_the_other_cluster():
    """It is logged as a change of the cluster whose data nodes made it."""
    text = "A:i1=1@1 B:<1@11 A:ic1=1/1@2 B:d1=1@12 B:i1=3@13 A:<12@3 B:<2@14"
    definition = "(v) REFERENCES t (k) ON DELETE CASCADE"
    assert rows(linked(text, definition=definition), "B", CHILD) == [(1, 1, 1)]
    assert rows(linked(f"{text} B:<3@15", definition=definition), "B", CHILD) == []


@pytest.mark.parametrize(
    "definition",
    ["(v) REFERENCES elsewhere (k)", "(v) REFERENCES t (v)", "(v) REFERENCES t (k, x)", "(w) REFERENCES t (k)"],
)
def test_what_cannot_be_checked(definition: str):
    """A parent that is not among the tables, or that has no such key."""
    assert stop(linked("B:ic1=1/5@11 A:<11@1", definition=definition)) is None


class TestRowsThatAreNotKnown:
    """The log starts in the middle."""

    REFERENCE = Value(0, KeySide.CHILD, key(1))

    @staticmethod
    def keys() -> ForeignKeys:
        return ForeignKeys.of(setups(tables=with_key("(v) REFERENCES t (k)"))["A"])

    def test_a_parent_that_may_be_there(self):
        assert not self.keys().lacks_parent(self.REFERENCE, OlderRows())

    def test_a_parent_that_is_known_to_be_gone(self):
        store = OlderRows()
        store.put(("d.t", key(1)), None)
        assert self.keys().lacks_parent(self.REFERENCE, store)

    def test_a_parent_whose_table_is_given_whole(self):
        assert self.keys().lacks_parent(self.REFERENCE, OlderRows(given=frozenset({"d.t"})))

    def test_a_row_that_changed_without_the_index(self):
        """A value that a row has no more is not found."""
        keys, store = self.keys(), RowStore()
        row = "d.t", key(1)
        store.put(row, Row({0: (1).to_bytes(4, "little")}, local=True, epoch=1))
        keys.update([row], store)
        assert not keys.lacks_parent(self.REFERENCE, store)
        store.put(row, None)
        assert keys.lacks_parent(self.REFERENCE, store)
