"""Images: what a change would be logged as; from full recordings come those of the other formats, byte for byte."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.constants import ColumnCode
from ndb_formats.errors import SchemaError
from ndb_formats.events.row_image import RowImage, RowLayout, layout_of_types
from ndb_formats.events.rows_event import Operation
from ndb_formats.row_reader import LoggedRow
from ndb_formats.rules.images import LoggedImages, Logging, Row, images
from ndb_formats.rules.row_image_rules import RowImageRule
from ndb_formats.rules.update_format import BINLOG_TYPES, effective_format
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Table
from ndb_formats.types.column_types import WireType
from tests.ndb_formats.recordings import RECORDINGS
from tests.ndb_formats.statements import Statement, statements

LONG, VARCHAR = WireType(ColumnCode.LONG), WireType(ColumnCode.VARCHAR, 80)
ITEM = parse_create_table("CREATE TABLE d.t (id INT PRIMARY KEY, a INT, b VARCHAR(20)) ENGINE=NDB")
ITEM_LAYOUT = layout_of_types(ITEM, (LONG, LONG, VARCHAR))
NAMED = parse_create_table("CREATE TABLE d.t (name VARCHAR(20) PRIMARY KEY, v INT) ENGINE=NDB")
NAMED_LAYOUT = layout_of_types(NAMED, (VARCHAR, LONG))
NOKEY = attrs.evolve(ITEM, primary_key=())


def typed(number: int) -> Logging:
    """Return the settings of a server whose NDB tables have one type."""
    return Logging(effective_format(number))


def shown(result: tuple[LoggedImages, ...]) -> list[tuple[str, Any, Any]]:
    """Return each event as operation, before and after values by column name."""
    return [
        (event.operation.name, *(None if image is None else image.by_name() for image in (event.before, event.after)))
        for event in result
    ]


class TestNdb:
    """Changes of NDB tables."""

    @pytest.mark.parametrize(
        ("number", "expected"),
        [
            (1, []),
            (2, [("WRITE_ROW", None, {"id": 1, "b": "new"})]),
            (3, [("WRITE_ROW", None, {"id": 1, "a": None, "b": "new"})]),
            (6, [("UPDATE_ROW", {"id": 1, "b": "old"}, {"id": 1, "b": "new"})]),
            (7, [("UPDATE_ROW", {"id": 1, "a": None, "b": "old"}, {"id": 1, "a": None, "b": "new"})]),
            (8, [("UPDATE_ROW", {"id": 1}, {"b": "new"})]),
            (9, [("UPDATE_ROW", {"id": 1}, {"a": None, "b": "new"})]),
        ],
    )
    def test_an_update_under_each_type(self, number: int, expected: Any):
        """Before values stand before, after values after; NULL is a value."""
        before, after = {0: 1, 1: None, 2: "old"}, {0: 1, 1: None, 2: "new"}
        assert shown(images(ITEM, ITEM_LAYOUT, before, after, {2}, typed(number))) == expected

    def test_an_insert_and_a_delete(self):
        """No row before is an insert, none after a delete."""
        row = {0: 1, 1: 5, 2: "x"}
        whole = {"id": 1, "a": 5, "b": "x"}
        assert shown(images(ITEM, ITEM_LAYOUT, None, row, {0}, typed(8))) == [("WRITE_ROW", None, whole)]
        assert shown(images(ITEM, ITEM_LAYOUT, row, None, (), typed(8))) == [("DELETE_ROW", {"id": 1}, None)]
        assert shown(images(ITEM, ITEM_LAYOUT, row, None, (), typed(9))) == [("DELETE_ROW", whole, None)]

    def test_another_key_is_a_delete_and_an_insert(self):
        """Both with the row as it was and as it became."""
        result = images(NAMED, NAMED_LAYOUT, {0: "bob", 1: 20}, {0: "carl", 1: 20}, {0}, typed(8))
        assert shown(result) == [
            ("DELETE_ROW", {"name": "bob"}, None),
            ("WRITE_ROW", None, {"name": "carl", "v": 20}),
        ]

    @pytest.mark.parametrize(("old", "new"), [("Anna", "ANNA"), ("Émile", "emile")])
    def test_another_spelling_of_the_key_is_one_update_with_all_columns(self, old: str, new: str):
        """Letter case and accents do not make another key (recorded in `charkey`)."""
        result = images(NAMED, NAMED_LAYOUT, {0: old, 1: 1}, {0: new, 1: 1}, {0}, typed(8))
        assert shown(result) == [("UPDATE_ROW", {"name": old}, {"name": new, "v": 1})]

    def test_a_key_set_to_its_old_value_is_a_written_column(self):
        """Nothing but the written columns is logged."""
        result = images(ITEM, ITEM_LAYOUT, {0: 1, 1: 2, 2: ""}, {0: 1, 1: 3, 2: ""}, {0, 1}, typed(6))
        assert shown(result) == [("UPDATE_ROW", {"id": 1, "a": 2}, {"id": 1, "a": 3})]

    def test_a_column_set_to_its_old_value_is_logged(self):
        """SET a = 2 over 2 is logged, SET a = a writes nothing."""
        row = {0: 1, 1: 2, 2: ""}
        assert shown(images(ITEM, ITEM_LAYOUT, row, row, {1}, typed(8))) == [("UPDATE_ROW", {"id": 1}, {"a": 2})]
        assert images(ITEM, ITEM_LAYOUT, row, row, (), typed(8)) == ()


class TestWhichRuleCounts:
    """The engine decides, and the result says so."""

    @pytest.mark.parametrize("rule", RowImageRule)
    def test_ndb_ignores_binlog_row_image(self, rule: RowImageRule):
        """The images are those of the type, and the result names what had no effect."""
        row = {0: 1, 1: 2, 2: "x"}
        result = images(ITEM, ITEM_LAYOUT, row, {**row, 1: 3}, {1}, Logging(effective_format(9), rule))
        assert shown(result) == [("UPDATE_ROW", {"id": 1}, {"a": 3, "b": "x"})]

    @pytest.mark.parametrize("number", [1, 2, 8])
    def test_other_engines_ignore_binlog_types(self, number: int):
        """An InnoDB table is logged by binlog_row_image, also under NO_LOGGING."""
        row = {0: 1, 1: 2, 2: "x"}
        settings = Logging(effective_format(number), RowImageRule.MINIMAL)
        result = images(attrs.evolve(ITEM, engine="INNODB"), ITEM_LAYOUT, row, {**row, 0: 7}, {0}, settings)
        assert shown(result) == [("UPDATE_ROW", {"id": 1}, {"id": 7})]

    def test_defaults_of_a_server(self):
        """Without settings NDB logs as type 2, other engines log full images."""
        row = {0: 1, 1: 2, 2: "x"}
        assert shown(images(ITEM, ITEM_LAYOUT, row, {**row, 1: 3}, {1}, Logging())) == [
            ("WRITE_ROW", None, {"id": 1, "a": 3})
        ]
        other = attrs.evolve(ITEM, engine=None)
        assert shown(images(other, ITEM_LAYOUT, row, None, (), Logging())) == [
            ("DELETE_ROW", {"id": 1, "a": 2, "b": "x"}, None)
        ]

    def test_other_engines_log_no_update_that_changes_nothing(self):
        """SET a = 20 over 20 is found out by comparing the rows (recorded in `pk`)."""
        row = {0: 1, 1: 20, 2: "x"}
        assert images(attrs.evolve(ITEM, engine=None), ITEM_LAYOUT, row, dict(row), {1}, Logging()) == ()


class TestErrors:
    """Rows that do not do."""

    def test_no_row_at_all(self):
        """A change has a row before or after it."""
        with pytest.raises(SchemaError, match=r"table d\.t: a change needs the row before it or the row after it"):
            images(ITEM, ITEM_LAYOUT, None, None, (), Logging())

    def test_a_row_without_a_column_that_is_logged(self):
        """The error names the column; NULL would be another answer."""
        with pytest.raises(SchemaError) as caught:
            images(ITEM, ITEM_LAYOUT, None, {0: 1, 1: 2}, {0}, typed(7))
        assert (caught.value.table, caught.value.column) == ("d.t", "b")

    def test_a_row_without_a_column_that_is_not_logged(self):
        """What no image holds need not be given."""
        result = images(ITEM, ITEM_LAYOUT, {0: 1}, {0: 1, 1: 2}, {1}, typed(8))
        assert shown(result) == [("UPDATE_ROW", {"id": 1}, {"a": 2})]


# ---------------------------------------------------------------------------------------------------------
# Recordings: the rows of a full recording, logged under another format
# ---------------------------------------------------------------------------------------------------------


KINDS = {Operation.WRITE_ROW: "insert", Operation.UPDATE_ROW: "update", Operation.DELETE_ROW: "delete"}


def changes(written: list[Statement], rows: list[LoggedRow]) -> Iterator[tuple[Table, Row | None, Row | None, Any]]:
    """Yield table, row before, row after and written columns of what one transaction did, from its full images."""
    old: Row | None = None
    for row in rows:
        mine = [one for one in written if one.table.name == row.table]
        table, kind = mine[0].table, mine[0].kind
        if kind == "update" and len(written) == 1 and row.operation is Operation.DELETE_ROW:
            old = row.before  # the first half of a key change
        elif old is not None:
            yield table, old, row.after, mine[0].written
            old = None
        else:
            found = [one.written for one in mine if one.kind == KINDS[row.operation]]
            yield table, row.before, row.after, found[0] if found else range(len(table.columns))


def comparable(table: str, operation: Operation, before: RowImage | None, after: RowImage | None) -> tuple[Any, ...]:
    """Return an event as something that can be counted."""
    sides = (None if image is None else (image.present, image.payloads) for image in (before, after))
    return table, operation, *sides


@pytest.mark.parametrize(
    ("full", "other", "logging", "count"),
    [
        ("composite_type7", "composite_type7", typed(7), 18),
        ("composite_type7", "composite_type8", typed(8), 18),
        ("charkey_type7", "charkey_type7", typed(7), 18),
        ("charkey_type7", "charkey_type8", typed(8), 18),
        ("gencols_type7", "gencols_type8", typed(8), 8),
        ("defaults_full", "defaults_full", Logging(row_image=RowImageRule.FULL), 11),
        ("defaults_full", "defaults_minimal", Logging(row_image=RowImageRule.MINIMAL), 11),
        ("defaults_full", "defaults_noblob", Logging(row_image=RowImageRule.NOBLOB), 11),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_recorded_images(full: str, other: str, logging: Logging, count: int):
    """The rows of a full recording give, under another format, the events that the server logged under it."""
    compared = 0
    for (written, rows), (_, logged) in zip(statements(RECORDINGS / full), statements(RECORDINGS / other), strict=True):
        expected = Counter(comparable(row.table, row.operation, row.before, row.after) for row in logged)
        made: Counter[tuple[Any, ...]] = Counter()
        for table, before, after, columns in changes(written, rows):
            image = before if before is not None else after
            assert isinstance(image, RowImage)
            for event in images(table, image.layout, before, after, columns, logging):
                made[comparable(table.name, event.operation, event.before, event.after)] += 1
        assert made == expected
        compared += made.total()
    assert compared == count


# ---------------------------------------------------------------------------------------------------------
# Laws
# ---------------------------------------------------------------------------------------------------------

FORMATS = [typed(row.number) for row in BINLOG_TYPES] + [Logging(row_image=rule) for rule in RowImageRule]
VALUES = {"INT": st.integers(-(2**31), 2**31 - 1), "VARCHAR(20)": st.text("aAbß ", max_size=5)}
VALUES["TEXT"] = VALUES["VARCHAR(20)"]
WIRES = {"INT": LONG, "VARCHAR(20)": VARCHAR, "TEXT": WireType(ColumnCode.BLOB, 2)}


@attrs.frozen
class Change:
    """A table, a change of a row of it, and what a statement says of it."""

    table: Table
    layout: RowLayout
    before: dict[int, Any] | None
    after: dict[int, Any] | None
    written: set[int]


@st.composite
def change_of_a_table(draw: st.DrawFn) -> Change:
    """Make a table of one to five columns with or without a key, and an insert, update or delete of a row."""
    types = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=5))
    key = [place for place, kind in enumerate(types) if kind != "TEXT" and draw(st.booleans())]
    body = ", ".join(f"c{place} {kind}" for place, kind in enumerate(types))
    primary = f", PRIMARY KEY ({', '.join(f'c{place}' for place in key)})" if key else ""
    engine = draw(st.sampled_from(["NDB", "INNODB"]))
    table = parse_create_table(f"CREATE TABLE d.t ({body}{primary}) ENGINE={engine}")
    values = [VALUES[kind] if place in key else st.none() | VALUES[kind] for place, kind in enumerate(types)]
    before = dict(enumerate(draw(st.tuples(*values))))
    written = draw(st.sets(st.integers(0, len(types) - 1)))
    after = {place: draw(values[place]) if place in written else value for place, value in before.items()}
    sides = draw(st.sampled_from([(None, after), (before, after), (before, None)]))
    return Change(table, layout_of_types(table, tuple(WIRES[kind] for kind in types)), *sides, written)


@given(change=change_of_a_table(), logging=st.sampled_from(FORMATS))
def test_images_hold_values_of_the_rows(change: Change, logging: Logging):
    """Under every format, what an image carries is what the row before or after the change has there."""
    result = images(change.table, change.layout, change.before, change.after, change.written, logging)
    assert len(result) <= 2
    for event in result:
        for image, row in ((event.before, change.before), (event.after, change.after)):
            if image is not None:
                assert row is not None
                assert image.values() == {place: row[place] for place in image.present}
                assert image.present == tuple(sorted(image.present))


@given(change=change_of_a_table(), number=st.sampled_from([8, 9]))
def test_the_before_image_of_the_minimal_types_is_the_key(change: Change, number: int):
    """Of an update; a delete under type 9 has all columns, and so has a table without a key."""
    table = attrs.evolve(change.table, engine="NDB")
    for event in images(table, change.layout, change.before, change.after, change.written, typed(number)):
        if table.primary_key and event.operation is Operation.UPDATE_ROW:
            assert event.before is not None
            assert event.before.present == tuple(sorted(table.key_ordinals))


@given(change=change_of_a_table(), number=st.sampled_from(range(10)))
def test_a_row_can_be_found_by_its_event(change: Change, number: int):
    """Key columns are in the before image, or in the after image of a write, under every type that logs."""
    table = attrs.evolve(change.table, engine="NDB")
    for event in images(table, change.layout, change.before, change.after, change.written, typed(number)):
        image = event.after if event.before is None else event.before
        assert image is not None
        assert set(table.key_ordinals) <= set(image.present)
