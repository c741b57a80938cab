"""Rows as a data node keeps them: images written over each other, undo."""

from conflict.engine.reference.row_store import EMPTY_ROW, Row, RowStore
from tests.conflict.histories import image


class TestRow:
    """Images written over a row."""

    def test_columns_of_the_image_win(self):
        """Columns that an image holds are replaced, NULL among them; the others stay."""
        row = EMPTY_ROW.with_image(image("t", {0: 1, 1: 5, 2: 6}), local=True, epoch=3)
        row = row.with_image(image("t", {2: None}), local=False, epoch=9)
        one, five = (1).to_bytes(4, "little"), (5).to_bytes(8, "little")
        assert row == Row({0: one, 1: five, 2: None}, local=False, epoch=9)

    def test_the_old_row_stays_as_it_was(self):
        """A row is a value."""
        EMPTY_ROW.with_image(image("t", {0: 1}), local=False, epoch=3)
        assert Row({}, local=True, epoch=0) == EMPTY_ROW


FIRST, SECOND, THIRD = (Row({}, local=True, epoch=epoch) for epoch in (1, 2, 3))
KEY, OTHER = ("d.t", b"\1"), ("d.t", b"\2")


class TestStore:
    """Commit and undo."""

    def test_put_and_get(self):
        """A row is there until it is removed."""
        store = RowStore()
        assert store.get(KEY) is None
        store.put(KEY, FIRST)
        assert store.get(KEY) == FIRST
        store.put(KEY, None)
        assert store.get(KEY) is None

    def test_removing_nothing(self):
        """A row that is not there can be removed."""
        store = RowStore()
        store.put(KEY, None)
        assert store.rows == {}

    def test_undo_restores_the_last_commit(self):
        """However often a row was changed since, it is as it was; a new one is gone, a removed one is back."""
        store = RowStore()
        store.put(KEY, FIRST)
        store.commit()
        store.put(KEY, SECOND)
        store.put(KEY, None)
        store.put(KEY, THIRD)
        store.put(OTHER, SECOND)
        store.roll_back()
        assert store.rows == {KEY: FIRST}
        store.put(KEY, None)
        store.roll_back()
        assert store.rows == {KEY: FIRST}

    def test_a_commit_cannot_be_undone(self):
        """Undo goes back to the last commit only."""
        store = RowStore()
        store.put(KEY, FIRST)
        store.commit()
        store.roll_back()
        store.roll_back()
        assert store.rows == {KEY: FIRST}

    def test_undo_is_done_once(self):
        """After an undo nothing is pending."""
        store = RowStore()
        store.put(KEY, FIRST)
        store.roll_back()
        store.put(KEY, SECOND)
        store.commit()
        store.roll_back()
        assert store.rows == {KEY: SECOND}
