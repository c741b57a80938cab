"""Rows of tables without a primary key, by hand-worked cases."""

import pytest

from conflict.engine.inference.rows import OlderRows
from conflict.engine.reference.row_store import CopyChanges, RowStore, as_own_row, change_copies, touched_keys
from conflict.history.row_identities import identity_without_key, payloads_of
from conflict.history.shown_effects import Effect
from conflict.history.timeline import RowChange
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowImage, layout_of_types
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.types.column_types import WireType
from tests.conflict.histories import KEYLESS_TABLE, TABLES, resolved, rows

TABLE = parse_create_table("CREATE TABLE t (v INT)", database="d")
LAYOUT = layout_of_types(TABLE, (WireType(ColumnCode.LONG),))


def image(value: int) -> RowImage:
    """Return the image of a row with one value."""
    return RowImage(LAYOUT, (0,), (value.to_bytes(4, "little"),))


def change(text: str) -> RowChange:
    """Return an insert, update or delete: ``+5``, ``5>6``, ``-5``."""
    if text[0] == "+":
        return RowChange("d.t", text[1:].encode(), Operation.WRITE_ROW, None, image(int(text[1:])))
    if text[0] == "-":
        return RowChange("d.t", text[1:].encode(), Operation.DELETE_ROW, image(int(text[1:])), None)
    old, new = text.split(">")
    images = image(int(old)), image(int(new))
    return RowChange("d.t", old.encode(), Operation.UPDATE_ROW, *images, moved_to=new.encode())


@pytest.mark.parametrize(
    ("changes", "found", "copies"),
    [
        (["+5"], [True], {b"5": 1}),
        (["+5", "+5", "+6"], [True] * 3, {b"5": 2, b"6": 1}),
        # Of rows that are alike, one is taken.
        (["+5", "+5", "-5"], [True] * 3, {b"5": 1}),
        (["+5", "+5", "5>6"], [True] * 3, {b"5": 1, b"6": 1}),
        (["+5", "+6", "5>6"], [True] * 3, {b"6": 2}),
        (["+5", "5>5"], [True] * 2, {b"5": 1}),
        # A row that is not there changes nothing.
        (["-5"], [False], {}),
        (["+5", "6>7"], [True, False], {b"5": 1}),
        (["+5", "-5", "-5"], [True, True, False], {}),
    ],
)
def test_changes(changes: list[str], found: list[bool], copies: dict[bytes, int]) -> None:
    """A row is found by its image, and equal rows are counted."""
    store = RowStore()
    made = [change_copies(store, TABLE, change(each), local=True, epoch=1) for each in changes]
    assert [each is not None for each in made] == found
    assert {key: row.copies for (_, key), row in store.rows.items()} == copies


@pytest.mark.parametrize(("value", "found"), [(5, True), (6, False)])
def test_an_image_with_fewer_columns(value: int, found: bool) -> None:
    """A row is found by the columns that both have, and keeps its other ones; one that does not agree is not found."""
    wide = parse_create_table("CREATE TABLE t (v INT, w INT DEFAULT 1)", database="d")
    layout = layout_of_types(wide, (WireType(ColumnCode.LONG),) * 2)
    five, one, seven = (number.to_bytes(4, "little") for number in (5, 1, 7))
    row = RowImage(layout, (0, 1), (five, seven))
    key = identity_without_key(wide, payloads_of(row))
    store = RowStore()
    change_copies(store, wide, RowChange("d.t", key, Operation.WRITE_ROW, None, row), local=True, epoch=1)
    before, after = (RowImage(layout, (0,), (each,)) for each in (value.to_bytes(4, "little"), one))
    arrived = as_own_row(RowChange("d.t", b"", Operation.UPDATE_ROW, before, after), wide)
    made = change_copies(store, wide, arrived, local=False, epoch=2)
    assert (made is not None) == found
    assert [each.payloads for each in store.rows.values()] == [{0: one if found else five, 1: seven}]


def test_a_change_is_undone() -> None:
    """Copies come back when an epoch is undone."""
    store = RowStore()
    for text in ("+5", "+5"):
        change_copies(store, TABLE, change(text), local=True, epoch=1)
    store.commit()
    for text in ("5>6", "-5", "+7"):
        assert change_copies(store, TABLE, change(text), local=False, epoch=2)
    store.roll_back()
    assert {key: row.copies for (_, key), row in store.rows.items()} == {b"5": 2}


def test_touched_keys() -> None:
    """An update touches the row that it changes, and the one that it makes."""
    assert touched_keys(change("+5")) == (("d.t", b"5"),)
    assert touched_keys(change("5>6")) == (("d.t", b"5"), ("d.t", b"6"))


def test_in_a_chain_of_clusters() -> None:
    """A cluster between two others logs what it applied for the third: C has A's rows too, with their number."""
    text = "A:ih1=1,ih1=1,ih2=1@1 B:<A1@11 A:uh1=1>5,dh2=1@2 B:<A2@12 C:<B11@21 C:<B12@22"
    found = resolved(text, tables=TABLES + KEYLESS_TABLE)
    assert [rows(found, name, "d.h") for name in "ABC"] == [[(1, 1, None), (1, 5, None)]] * 3


@pytest.mark.parametrize(
    ("older", "given", "found", "left"),
    [
        (False, frozenset(), [True, False], {b"6": 1}),
        # It may have begun with more copies than it tells.
        (True, frozenset(), [True, True], {b"6": 2}),
        (True, frozenset({"d.t"}), [True, False], {b"6": 1}),
    ],
)
def test_a_log_that_starts_in_the_middle(
    older: bool, given: frozenset[str], found: list[bool], left: dict[bytes, int]
) -> None:
    """A row that was made and deleted in the log may have had equal ones before, unless all rows are given."""
    store = OlderRows(given=given) if older else RowStore()
    change_copies(store, TABLE, change("+5"), local=True, epoch=1)
    made = [change_copies(store, TABLE, change("5>6"), local=False, epoch=2) for _ in range(2)]
    assert [each is not None for each in made] == found
    assert {key: row.copies for (_, key), row in store.rows.items()} == left


@pytest.mark.parametrize(
    ("changes", "effects"),
    [
        (["+5", "-5"], {}),
        (["5>6", "6>7"], {b"5": Effect.DELETED, b"7": Effect.CHANGED}),
        (["-5", "-5", "+5"], {b"5": Effect.DELETED}),
        (["5>5"], {}),
    ],
)
def test_effects(changes: list[str], effects: dict[bytes, Effect]) -> None:
    """However an NDB transaction merges its events, as many copies come and go."""
    copies = CopyChanges()
    for text in changes:
        copies.note(change(text), 1, 0)
    assert copies.effects() == {("d.t", key): effect for key, effect in effects.items()}
