"""Update formats: names, server options, and which columns NDB logs; checked against recordings."""

from pathlib import Path
from typing import Any

import pytest

from ndb_formats.errors import SettingError
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.row_image_rules import EventColumns
from ndb_formats.rules.update_format import (
    BINLOG_TYPES,
    ServerOptions,
    UpdateFormat,
    effective_format,
    key_change,
    ndb_columns,
    parse_binlog_type,
    server_options,
)
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Table
from tests.ndb_formats.recordings import RECORDINGS
from tests.ndb_formats.statements import Statement, columns_of, statements

INSERT, UPDATE, DELETE = Operation.WRITE_ROW, Operation.UPDATE_ROW, Operation.DELETE_ROW
ITEM = parse_create_table("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT) ENGINE=NDB")
CHARKEY = parse_create_table("CREATE TABLE t (a INT, name VARCHAR(9), n INT, PRIMARY KEY (name, n)) ENGINE=NDB")
NOKEY = parse_create_table("CREATE TABLE t (a INT, b VARCHAR(20), c DOUBLE) ENGINE=NDB")
BLOBS = parse_create_table("CREATE TABLE t (id INT PRIMARY KEY, n INT, x TEXT, j JSON) ENGINE=NDB")
GENCOLS = parse_create_table(
    """CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT, b INT, s INT GENERATED ALWAYS AS (a + b) STORED,
    v INT GENERATED ALWAYS AS (a * 2) VIRTUAL, t VARCHAR(20),
    z VARCHAR(30) GENERATED ALWAYS AS (CONCAT(t, '-', id)) STORED) ENGINE=NDB"""
)
TYPES = [row.number for row in BINLOG_TYPES]
LOGGED = [number for number in TYPES if number != 1]


def names(event: EventColumns | None, table: Table) -> tuple[str, str | None, str | None] | None:
    """Return an event as operation and column names, in one string per image."""
    if event is None:
        return None
    images = [
        None if places is None else " ".join(table.columns[place].name for place in places)
        for places in (event.before, event.after)
    ]
    return event.operation.name, images[0], images[1]


def logged(number: int, table: Table, operation: Operation, written: str = "") -> Any:
    """Return what a type logs of a change that writes the columns named."""
    places = [table.ordinal(name) for name in written.split()]
    return names(ndb_columns(effective_format(number), table, operation, places), table)


class TestNames:
    """Numbers and spellings of binlog types."""

    @pytest.mark.parametrize(
        ("number", "spellings"),
        [
            (0, ["DEFAULT", "NBT_DEFAULT", "default", None, "NULL", "null", "0", 0]),
            (1, ["NO_LOGGING", "NBT_NO_LOGGING", 1]),
            (2, ["UPDATED_ONLY", "NBT_UPDATED_ONLY", "updated-only", " 2 "]),
            (3, ["FULL", "NBT_FULL", "Full"]),
            (4, ["USE_UPDATE", "NBT_USE_UPDATE"]),
            (5, [5, "5"]),
            (6, ["UPDATED_ONLY_USE_UPDATE", "NBT_UPDATED_ONLY_USE_UPDATE"]),
            (7, ["FULL_USE_UPDATE", "NBT_FULL_USE_UPDATE", "nbt_full_use_update"]),
            (8, ["UPDATED_ONLY_USE_UPDATE_MINIMAL", "UPDATED_ONLY_MINIMAL", "NBT_UPDATED_ONLY_MINIMAL", "8"]),
            (9, ["FULL_USE_UPDATE_MINIMAL", "UPDATED_FULL_MINIMAL", "NBT_UPDATED_FULL_MINIMAL", 9]),
            (10, [10]),
        ],
    )
    def test_every_spelling(self, number: int, spellings: list[Any]):
        """Manual, enum and commit messages spell the types differently; all are read."""
        assert [parse_binlog_type(spelling) for spelling in spellings] == [number] * len(spellings)

    @pytest.mark.parametrize("value", [11, -1, "11", "", "MINIMAL", "FULL_", "NBT_", "7.0"])
    def test_an_unknown_type_is_an_error_that_lists_the_known(self, value: Any):
        """The message holds what was given and every name."""
        with pytest.raises(SettingError) as caught:
            parse_binlog_type(value)
        assert repr(value) in str(caught.value)
        assert all(name in str(caught.value) for row in BINLOG_TYPES for name in row.names)


class TestServerOptions:
    """The three server options."""

    def test_defaults(self):
        """ON, ON, OFF."""
        assert server_options({}) == ServerOptions(True, True, False)

    def test_names_and_values_as_servers_spell_them(self):
        """Dashes or underscores, words or digits; other settings are passed over."""
        settings = {"--ndb-log-updated-only": "off", "NDB_LOG_UPDATE_AS_WRITE": 0, "ndb_log_update_minimal": "1"}
        assert server_options(settings | {"ndb_log_bin": "ON", "binlog_row_image": "FULL"}) == ServerOptions(
            ndb_log_updated_only=False, ndb_log_update_as_write=False, ndb_log_update_minimal=True
        )
        assert server_options({"ndb_log_updated_only": False}) == ServerOptions(ndb_log_updated_only=False)

    def test_a_value_that_is_no_switch(self):
        """The message names option, value and what it can be."""
        with pytest.raises(SettingError, match="ndb-log-update-minimal is 'maybe'; it can be ON or OFF, 1 or 0"):
            server_options({"ndb-log-update-minimal": "maybe"})


class TestEffectiveFormat:
    """A type and the server options together."""

    @pytest.mark.parametrize(
        ("number", "expected"),
        [
            (None, UpdateFormat(updated_only=True, as_write=True)),
            (0, UpdateFormat(updated_only=True, as_write=True)),
            (1, UpdateFormat(logged=False)),
            (2, UpdateFormat(updated_only=True, as_write=True)),
            (3, UpdateFormat(updated_only=False, as_write=True)),
            (4, UpdateFormat(updated_only=True, as_write=False)),
            (5, UpdateFormat(updated_only=True, as_write=True)),
            (6, UpdateFormat(updated_only=True, as_write=False)),
            (7, UpdateFormat(updated_only=False, as_write=False)),
            (8, UpdateFormat(updated_only=True, as_write=False, minimal=True)),
            (9, UpdateFormat(updated_only=False, as_write=False, minimal=True)),
            (10, UpdateFormat(updated_only=True, as_write=True)),
        ],
    )
    def test_types_under_default_options(self, number: int | None, expected: UpdateFormat):
        """The flags of each type; 4 is as 6, and 0 under default options as 2."""
        assert effective_format(number) == expected

    @pytest.mark.parametrize(
        ("options", "like"),
        [
            ((True, True, False), 2),
            ((False, True, False), 3),
            ((True, False, False), 6),
            ((False, False, False), 7),
            ((True, False, True), 8),
            ((False, False, True), 9),
            ((True, True, True), 2),
            ((False, True, True), 3),
        ],
    )
    def test_type_0_is_what_the_options_say(self, options: tuple[bool, bool, bool], like: int):
        """Minimal matters together with update-as-update alone: a write cannot be minimal."""
        assert effective_format(0, ServerOptions(*options)) == effective_format(like)

    def test_other_types_do_not_depend_on_the_options(self):
        """Only type 0 asks the server options."""
        options = ServerOptions(False, False, True)
        assert [effective_format(number, options) for number in TYPES[1:]] == [
            effective_format(number) for number in TYPES[1:]
        ]

    @pytest.mark.parametrize("number", TYPES)
    def test_ndb_apply_status_is_always_full_and_write(self, number: int):
        """No type and no option changes how epochs are logged."""
        expected = UpdateFormat(as_write=True)
        assert effective_format(number, ServerOptions(True, False, True), table="mysql.ndb_apply_status") == expected


class TestUpdates:
    """Section 2 of the semantics, line by line, for ``UPDATE t SET b``."""

    @pytest.mark.parametrize(
        ("number", "expected"),
        [
            (0, ("WRITE_ROW", None, "id b")),
            (1, None),
            (2, ("WRITE_ROW", None, "id b")),
            (3, ("WRITE_ROW", None, "id a b")),
            (4, ("UPDATE_ROW", "id b", "id b")),
            (6, ("UPDATE_ROW", "id b", "id b")),
            (7, ("UPDATE_ROW", "id a b", "id a b")),
            (8, ("UPDATE_ROW", "id", "b")),
            (9, ("UPDATE_ROW", "id", "a b")),
        ],
    )
    def test_a_table_with_a_numeric_key(self, number: int, expected: Any):
        """Operation and columns of the one update under each type."""
        assert logged(number, ITEM, UPDATE, "b") == expected

    @pytest.mark.parametrize(
        ("number", "expected"),
        [
            (2, ("WRITE_ROW", None, "a name n")),
            (6, ("UPDATE_ROW", "a name n", "a name n")),
            (8, ("UPDATE_ROW", "name n", "a name")),
            (9, ("UPDATE_ROW", "name n", "a name")),
        ],
    )
    def test_a_character_key_column_stays_in_the_after_image(self, number: int, expected: Any):
        """Of the key (name, n) the minimal types leave out n alone."""
        assert logged(number, CHARKEY, UPDATE, "a") == expected

    @pytest.mark.parametrize(
        ("definition", "stays"),
        [
            ("VARCHAR(9)", True),
            ("CHAR(9) CHARACTER SET latin1", True),
            ("VARCHAR(9) COLLATE utf8mb4_bin", False),
            ("VARBINARY(9)", False),
            ("BINARY(9)", False),
            ("VARCHAR(9) CHARACTER SET binary", False),
            ("DATE", False),
            ("DECIMAL(6,2)", False),
            ("ENUM('a','A')", False),
        ],
    )
    def test_which_key_columns_stay(self, definition: str, stays: bool):
        """Only text under a collation can change and stay the same key."""
        table = parse_create_table(f"CREATE TABLE t (k {definition} PRIMARY KEY, a INT) ENGINE=NDB")
        assert logged(8, table, UPDATE, "a") == ("UPDATE_ROW", "k", "k a" if stays else "a")

    @pytest.mark.parametrize("number", LOGGED)
    def test_a_table_without_a_key(self, number: int):
        """All columns in every image and updates as updates, whatever the type."""
        assert logged(number, NOKEY, INSERT) == ("WRITE_ROW", None, "a b c")
        assert logged(number, NOKEY, UPDATE, "b") == ("UPDATE_ROW", "a b c", "a b c")
        assert logged(number, NOKEY, DELETE) == ("DELETE_ROW", "a b c", None)

    @pytest.mark.parametrize(
        ("number", "expected"),
        [
            (3, ("WRITE_ROW", None, "id n")),
            (6, ("UPDATE_ROW", "id n", "id n")),
            (7, ("UPDATE_ROW", "id n", "id n")),
            (9, ("UPDATE_ROW", "id", "n")),
        ],
    )
    def test_a_blob_that_is_not_written_is_in_no_image(self, number: int, expected: Any):
        """Also under the types that log all columns."""
        assert logged(number, BLOBS, UPDATE, "n") == expected

    @pytest.mark.parametrize(
        ("number", "expected"),
        [
            (3, ("WRITE_ROW", None, "id n x")),
            (6, ("UPDATE_ROW", "id x", "id x")),
            (7, ("UPDATE_ROW", "id n x", "id n x")),
            (8, ("UPDATE_ROW", "id", "x")),
            (9, ("UPDATE_ROW", "id", "n x")),
        ],
    )
    def test_a_blob_that_is_written(self, number: int, expected: Any):
        """It is in every image but the before image of the minimal types."""
        assert logged(number, BLOBS, UPDATE, "x") == expected

    def test_an_update_that_writes_nothing(self):
        """A read that is logged as an update has the key before, and nothing after under type 8."""
        assert logged(8, ITEM, UPDATE) == ("UPDATE_ROW", "id", "")
        assert logged(6, ITEM, UPDATE) == ("UPDATE_ROW", "id", "id")


class TestInsertsAndDeletes:
    """What does not depend on the statement's columns."""

    @pytest.mark.parametrize("number", LOGGED)
    def test_an_insert_logs_all_stored_columns(self, number: int):
        """Whatever the statement names, blobs too; only the virtual column is left out."""
        assert logged(number, BLOBS, INSERT, "id") == ("WRITE_ROW", None, "id n x j")
        assert logged(number, GENCOLS, INSERT, "id") == ("WRITE_ROW", None, "id a b s t z")

    @pytest.mark.parametrize("number", LOGGED)
    def test_a_delete_logs_the_key_or_all(self, number: int):
        """The key under the updated-only types, all stored columns under the others."""
        full = number in (3, 7, 9)
        assert logged(number, BLOBS, DELETE) == ("DELETE_ROW", "id n x j" if full else "id", None)
        assert logged(number, GENCOLS, DELETE) == ("DELETE_ROW", "id a b s t z" if full else "id", None)

    def test_nothing_is_logged_under_type_1(self):
        """No event of any kind."""
        assert [logged(1, ITEM, operation, "b") for operation in Operation] == [None] * 3
        assert key_change(effective_format(1), ITEM) == ()


class TestGeneratedColumns:
    """Generated columns count as written with what they are made of."""

    @pytest.mark.parametrize(
        ("written", "after"),
        [("a", "a s t"), ("b", "b s"), ("t", "t z"), ("b t", "b s t z"), ("a t", "a s t z")],
    )
    def test_gencols(self, written: str, after: str):
        """Writing a marks the virtual v too, and its mark falls on t, which follows it (recorded)."""
        assert logged(8, GENCOLS, UPDATE, written) == ("UPDATE_ROW", "id", after)
        assert logged(2, GENCOLS, UPDATE, written) == ("WRITE_ROW", None, f"id {after}")

    @pytest.mark.parametrize(
        ("columns", "after"),
        [
            ("v INT AS (a) VIRTUAL, t INT, u INT", "a t"),
            ("v INT AS (a) VIRTUAL, w INT AS (a) VIRTUAL, t INT", "a"),
            ("v INT AS (a) VIRTUAL, w INT AS (id) VIRTUAL, t INT", "a t"),
            ("v INT AS (a) VIRTUAL, t INT, s INT AS (a) STORED", "a s"),
            ("s INT AS (a) STORED, r INT AS (s) STORED, t INT", "a s r"),
            ("v INT AS (a) VIRTUAL, t TEXT", "a"),
            ("v INT AS (a) VIRTUAL", "a"),
            ("t INT, d DATETIME ON UPDATE CURRENT_TIMESTAMP", "a d"),
        ],
    )
    def test_which_stored_column_the_bit_of_a_virtual_one_marks(self, columns: str, after: str):
        """As the server's column map has it: only while nothing after the first virtual column is written."""
        table = parse_create_table(f"CREATE TABLE t (id INT PRIMARY KEY, a INT, {columns}) ENGINE=NDB")
        assert logged(8, table, UPDATE, "a") == ("UPDATE_ROW", "id", after)


class TestKeyChange:
    """A row that gets another key."""

    @pytest.mark.parametrize(("number", "before"), [(2, "id"), (3, "id a b"), (8, "id"), (9, "id a b")])
    def test_it_is_a_delete_and_an_insert(self, number: int, before: str):
        """The delete as the type has it, the insert with all columns."""
        events = key_change(effective_format(number), ITEM)
        assert [names(event, ITEM) for event in events] == [
            ("DELETE_ROW", before, None),
            ("WRITE_ROW", None, "id a b"),
        ]

    @pytest.mark.parametrize(("number", "before"), [(6, "a name n"), (8, "name n"), (9, "name n")])
    def test_an_equal_key_is_one_update_with_all_columns(self, number: int, before: str):
        """A change of letter case writes all columns; of the key the minimal types still leave out n after."""
        after = "a name n" if number == 6 else "a name"
        assert logged(number, CHARKEY, UPDATE, "a name n") == ("UPDATE_ROW", before, after)


def allowed(rule: UpdateFormat, statement: Statement) -> list[EventColumns | None]:
    """Return what a statement of a recording can be logged as; `test_images` tells which of them it is."""
    table, every = statement.table, range(len(statement.table.columns))
    if statement.kind == "insert":
        return [ndb_columns(rule, table, INSERT)]
    if statement.kind == "delete":
        return [ndb_columns(rule, table, DELETE)]
    if statement.kind == "upsert":
        return [ndb_columns(rule, table, operation, every) for operation in Operation]
    if statement.written & set(table.key_ordinals):
        return [ndb_columns(rule, table, UPDATE, every), *key_change(rule, table)]
    return [ndb_columns(rule, table, UPDATE, statement.written)]


@pytest.mark.parametrize(
    ("case", "number", "count"),
    [
        ("types_type8", 8, 27),
        ("composite_type7", 7, 18),
        ("composite_type8", 8, 18),
        ("charkey_type7", 7, 18),
        ("charkey_type8", 8, 18),
        ("gencols_type7", 7, 8),
        ("gencols_type8", 8, 8),
    ],
)
def test_recorded_columns(case: str, number: int, count: int):
    """Every row that a real server logged has the columns that the rules say."""
    path: Path = RECORDINGS / case
    rule, compared = effective_format(number), 0
    for written, rows in statements(path):
        for row in rows:
            candidates = [event for one in written if one.table.name == row.table for event in allowed(rule, one)]
            if len(written) == 2:  # DELETE and INSERT of one row in a transaction are logged as an update
                candidates = [ndb_columns(rule, written[0].table, UPDATE, range(2))]
            expected = [(event.operation.name, event.before, event.after) for event in candidates if event is not None]
            assert columns_of(row) in expected
            compared += 1
    assert compared == count
