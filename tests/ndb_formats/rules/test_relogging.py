"""What the columns of an event show of its statement, and what the change looks like in another format: by hand."""

import pytest

from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.images import Logging
from ndb_formats.rules.relogging import Basis, LoggedAs, Obstacle, Relogged, relogged_columns
from ndb_formats.rules.row_image_rules import EventColumns, RowImageRule
from ndb_formats.rules.update_format import effective_format
from ndb_formats.schema.create_table import parse_create_table

# id 0, a 1, b 2, t 3 (a blob)
NDB = parse_create_table("CREATE TABLE d.t (id INT PRIMARY KEY, a INT, b INT, t TEXT) ENGINE=NDB")
OTHER = parse_create_table("CREATE TABLE d.t (id INT PRIMARY KEY, a INT, b INT DEFAULT 5, t TEXT) ENGINE=InnoDB")
NAMED = parse_create_table("CREATE TABLE d.t (name VARCHAR(9) PRIMARY KEY, v INT, w INT) ENGINE=NDB")
NOKEY = parse_create_table("CREATE TABLE d.t (a INT, b INT) ENGINE=NDB")


def update(before: tuple[int, ...], after: tuple[int, ...]) -> EventColumns:
    return EventColumns(Operation.UPDATE_ROW, before, after)


def write(after: tuple[int, ...]) -> EventColumns:
    return EventColumns(Operation.WRITE_ROW, None, after)


def delete(before: tuple[int, ...]) -> EventColumns:
    return EventColumns(Operation.DELETE_ROW, before, None)


def typed(number: int) -> Logging:
    return Logging(effective_format(number))


FULL, MINIMAL, NOBLOB = (Logging(row_image=rule) for rule in RowImageRule)
TYPE_7 = update((0, 1, 2), (0, 1, 2))


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (2, Relogged(write((0, 1)), Basis.CHANGED_VALUES)),
        (3, Relogged(write((0, 1, 2)))),
        (6, Relogged(update((0, 1), (0, 1)), Basis.CHANGED_VALUES)),
        (7, Relogged(TYPE_7)),
        (8, Relogged(update((0,), (1,)), Basis.CHANGED_VALUES)),
        (9, Relogged(update((0,), (1, 2)))),
        (1, Relogged(None)),
    ],
)
def test_an_update_of_type_7_that_changed_one_column(number: int, expected: Relogged):
    """The full types are exact; the others rest on the column that changed value."""
    assert relogged_columns(NDB, TYPE_7, frozenset({1}), typed(number)) == expected


def test_a_blob_in_the_event_was_written():
    """NDB logs a blob only if it was written, so it is in the other formats too, whatever its value."""
    source = update((0, 1, 2, 3), (0, 1, 2, 3))
    assert relogged_columns(NDB, source, frozenset(), typed(8)).event == update((0,), (3,))
    assert relogged_columns(NDB, source, frozenset(), typed(9)) == Relogged(update((0,), (1, 2, 3)))


def test_an_update_that_changed_nothing():
    """Which columns it set is hidden, unless it is a read, which set none."""
    assert relogged_columns(NDB, TYPE_7, frozenset(), typed(8)).obstacle is Obstacle.UNCHANGED
    assert relogged_columns(NDB, TYPE_7, frozenset(), typed(9)) == Relogged(update((0,), (1, 2)))
    assert relogged_columns(NDB, TYPE_7, frozenset(), typed(8), reads=True) == Relogged(update((0,), ()))


@pytest.mark.parametrize(
    ("source", "number", "expected"),
    [
        # 8 to 2 and 6 to 8 need no more than they have; the key of the row after is that of the row before.
        (update((0,), (1,)), 2, Relogged(write((0, 1)))),
        (update((0, 1), (0, 1)), 8, Relogged(update((0,), (1,)))),
        (update((0,), (1, 2)), 3, Relogged(write((0, 1, 2)))),
        (write((0, 1)), 8, Relogged(update((0,), (1,)))),
        # Old values that the minimal types do not log, and columns that were not set.
        (update((0,), (1,)), 6, Relogged(None, obstacle=Obstacle.OLD_VALUES, lacking=(1,))),
        (update((0,), (1,)), 9, Relogged(None, obstacle=Obstacle.NEW_VALUES, lacking=(2,))),
        (update((0,), (1,)), 7, Relogged(None, obstacle=Obstacle.OLD_VALUES, lacking=(1, 2))),
        (write((0, 1)), 7, Relogged(None, obstacle=Obstacle.OLD_VALUES, lacking=(1, 2))),
        (delete((0,)), 9, Relogged(None, obstacle=Obstacle.OLD_VALUES, lacking=(1, 2, 3))),
        # Type 9 hides what was set, and has nothing to compare with.
        (update((0,), (1, 2)), 8, Relogged(None, obstacle=Obstacle.HIDDEN)),
    ],
)
def test_from_other_types(source: EventColumns, number: int, expected: Relogged):
    """Only with columns that are there."""
    assert relogged_columns(NDB, source, frozenset(), typed(number)) == expected


@pytest.mark.parametrize("number", [2, 3, 6, 7, 8, 9])
def test_inserts_and_deletes_of_ndb(number: int):
    """An insert is the same in all types; a delete of type 7 has what any type needs."""
    every = (0, 1, 2, 3)
    assert relogged_columns(NDB, write(every), frozenset(), typed(number)) == Relogged(write(every))
    expected = delete(every if number in (3, 7, 9) else (0,))
    assert relogged_columns(NDB, delete(every), frozenset(), typed(number)) == Relogged(expected)


def test_a_write_in_a_log_of_updates_as_writes():
    """It is an insert or an update of all columns: the same in the types that log both so, and in no other."""
    known = LoggedAs(update_format=effective_format(3))
    source = write((0, 1, 2, 3))
    assert relogged_columns(NDB, source, frozenset(), typed(2), logged_as=known) == Relogged(source)
    assert relogged_columns(NDB, source, frozenset(), typed(8), logged_as=known).obstacle is Obstacle.AMBIGUOUS


def test_what_a_known_type_does_not_hide():
    """All columns in an event of type 6 were set; without the type they may not have been."""
    known = LoggedAs(update_format=effective_format(6))
    changed = frozenset({1})
    assert relogged_columns(NDB, TYPE_7, changed, typed(8), logged_as=known) == Relogged(update((0,), (1, 2)))
    assert relogged_columns(NDB, TYPE_7, changed, typed(8)).event == update((0,), (1,))


def test_a_key_with_another_spelling():
    """The server writes all columns then; a key that did not change stays in after images of the minimal types."""
    source = update((0, 1, 2), (0, 1, 2))
    assert relogged_columns(NAMED, source, frozenset({0}), typed(8)) == Relogged(update((0,), (0, 1, 2)))
    assert relogged_columns(NAMED, source, frozenset({1}), typed(8)).event == update((0,), (0, 1))


@pytest.mark.parametrize("number", [2, 3, 6, 7, 8, 9])
def test_a_write_without_columns_is_an_insert(number: int):
    """It is no update that is logged as a write, for that has columns; NDB logs all columns of an insert."""
    blob = parse_create_table("CREATE TABLE d.t (c TEXT) ENGINE=NDB")
    for table, lacking in ((NOKEY, (0, 1)), (blob, (0,))):
        expected = Relogged(None, Basis.EXACT, Obstacle.NEW_VALUES, lacking)
        assert relogged_columns(table, write(()), frozenset(), typed(number)) == expected


@pytest.mark.parametrize("number", [2, 3, 6, 7, 8, 9])
def test_a_table_without_a_key_is_logged_alike(number: int):
    """All columns in all images, and updates as updates."""
    for source in (update((0, 1), (0, 1)), delete((0, 1))):
        assert relogged_columns(NOKEY, source, frozenset(), typed(number)) == Relogged(source)


ALL = (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("source", "changed", "logging", "expected"),
    [
        (update(ALL, ALL), {1}, MINIMAL, Relogged(update((0,), (1,)), Basis.CHANGED_VALUES)),
        (update(ALL, ALL), {1}, NOBLOB, Relogged(update((0, 1, 2), (0, 1, 2)), Basis.CHANGED_VALUES)),
        (update(ALL, ALL), {1}, FULL, Relogged(update(ALL, ALL))),
        (update((0, 1, 2), (0, 1, 2)), {1}, MINIMAL, Relogged(update((0,), (1,)), Basis.CHANGED_VALUES)),
        (update((0, 1, 2), ALL), {1}, MINIMAL, Relogged(update((0,), (1, 3)), Basis.CHANGED_VALUES)),
        (update((0,), (1,)), {1}, MINIMAL, Relogged(update((0,), (1,)))),
        (update((0,), ALL), (), MINIMAL, Relogged(update((0,), ALL))),
        (update((0,), (1,)), {1}, FULL, Relogged(None, obstacle=Obstacle.OLD_VALUES, lacking=(1, 2, 3))),
        (delete(ALL), (), MINIMAL, Relogged(delete((0,)))),
        (delete((0,)), (), NOBLOB, Relogged(None, obstacle=Obstacle.OLD_VALUES, lacking=(1, 2))),
        # Of an insert, the columns that differ from their default were given, and perhaps others.
        (write(ALL), {0, 1}, MINIMAL, Relogged(write((0, 1)), Basis.CHANGED_VALUES)),
        (write(ALL), {0, 1}, NOBLOB, Relogged(write((0, 1, 2)), Basis.CHANGED_VALUES)),
        (write((0, 1)), (), MINIMAL, Relogged(write((0, 1)))),
        (write((0, 1)), (), FULL, Relogged(None, obstacle=Obstacle.NEW_VALUES, lacking=(2, 3))),
    ],
)
def test_other_engines(source: EventColumns, changed: set[int], logging: Logging, expected: Relogged):
    """From full to minimal and noblob, and from those upward."""
    assert relogged_columns(OTHER, source, frozenset(changed), logging) == expected
