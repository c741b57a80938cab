"""Definitions of MariaDB: application-time periods, options that leave columns out, moments with ON UPDATE."""

import attrs
import pytest

from ndb_formats.schema.definitions import Definitions
from ndb_formats.schema.session import ServerVersion, Session, SqlMode
from ndb_formats.schema.statements import Statement
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import ABSENT

MARIADB = Session.of(ServerVersion.of("10.11.6-MariaDB"), "latin1")
BOOKINGS = "CREATE TABLE t (id INT, d1 DATE, d2 DATE, PERIOD FOR app (d1, d2), UNIQUE u (id, app WITHOUT OVERLAPS))"


def after(*statements: str, session: Session = MARIADB) -> Table:
    """Return table t after statements."""
    known = Definitions.of([])
    for statement in statements:
        known = known.after(Statement(statement, "d", session))[0]
    found = known.find("d", "t")
    assert found is not None
    return found


def test_columns_of_a_period_are_not_null():
    """So are those of a key; other columns stay as they are."""
    assert [column.nullable for column in after(BOOKINGS).columns] == [True, False, False]


def test_a_key_without_overlaps_ends_with_the_end_and_the_start():
    """As information_schema.STATISTICS of MariaDB 10.11 lists it."""
    assert after(BOOKINGS).unique_keys == (("id", "d2", "d1"),)


def test_a_period_stays_through_alterations():
    """A key that is added later knows it, with the new name of a column."""
    table = after(
        BOOKINGS.replace(", UNIQUE u (id, app WITHOUT OVERLAPS)", ""),
        "ALTER TABLE t RENAME COLUMN d1 TO since",
        "ALTER TABLE t ADD PRIMARY KEY (id, APP WITHOUT OVERLAPS)",
    )
    assert table.primary_key == ("id", "d2", "since")
    assert [column.name for column in table.key_columns] == ["id", "d2", "since"]


def test_a_period_that_is_added_and_dropped():
    """The columns of a period that is dropped stay NOT NULL."""
    create = "CREATE TABLE t (id INT, d1 DATE, d2 DATE)"
    added = after(create, "ALTER TABLE t ADD PERIOD FOR p (d1, d2)")
    dropped = after(create, "ALTER TABLE t ADD PERIOD FOR p (d1, d2)", "ALTER TABLE t DROP PERIOD FOR p")
    assert [column.nullable for column in added.columns] == [True, False, False]
    assert [column.nullable for column in dropped.columns] == [True, False, False]
    assert dropped.period.name == ""


def test_if_not_exists_adds_the_first_of_two_columns_of_one_name():
    """The second one is left out."""
    table = after("CREATE TABLE t (a INT)", "ALTER TABLE t ADD IF NOT EXISTS (x TIME, x INET4)")
    assert [(column.name, column.type) for column in table.columns] == [("a", "int"), ("x", "time")]


def test_if_not_exists_keeps_the_primary_key():
    """A second primary key is left out; without a first one it is added."""
    add = "ALTER TABLE t ADD PRIMARY KEY IF NOT EXISTS (b)"
    assert after("CREATE TABLE t (a INT PRIMARY KEY, b INT)", add).primary_key == ("a",)
    assert after("CREATE TABLE t (a INT, b INT)", add).primary_key == ("b",)


@pytest.mark.parametrize(("declared", "made"), [("BLOB", "longblob"), ("BLOB(255)", "tinyblob")])
def test_a_blob_with_a_size_is_no_type_of_oracle(declared: str, made: str):
    """Under sql_mode=ORACLE, BLOB without one is LONGBLOB."""
    oracle = attrs.evolve(MARIADB, sql_mode=SqlMode.ORACLE)
    assert after(f"CREATE TABLE t (a {declared})", session=oracle).columns[0].type == made


@pytest.mark.parametrize(
    ("definition", "default"),
    [
        ("TEXT COMPRESSED NOT NULL", ""),
        ("DATETIME(3) NOT NULL ON UPDATE NOW(3)", "0000-00-00 00:00:00.000"),
        ("DATETIME NULL ON UPDATE NOW()", ABSENT),
        ("YEAR DEFAULT (YEAR(CURDATE())) DEFAULT NULL", None),
    ],
)
def test_defaults(definition: str, default: object):
    """A NOT NULL moment with ON UPDATE is the zero one, COMPRESSED text is empty; the last DEFAULT counts."""
    column = after(f"CREATE TABLE t (a {definition})").columns[0]
    assert (column.default, column.computed_default) == (default, False)


def test_without_explicit_defaults_a_timestamp_of_an_expression_is_not_null():
    """As in MySQL 9.7 with explicit_defaults_for_timestamp=OFF; one with ON UPDATE alone is the zero one."""
    session = attrs.evolve(Session(), explicit_timestamps=False)
    made = after("CREATE TABLE t (a INT, b TIMESTAMP AS (a), c TIMESTAMP NOT NULL ON UPDATE NOW())", session=session)
    assert [column.nullable for column in made.columns] == [True, False, False]
    assert made.columns[2].default == "0000-00-00 00:00:00"


def test_a_generated_timestamp_stays_nullable():
    """As in MariaDB 10.11 with explicit_defaults_for_timestamp=OFF; MySQL makes it NOT NULL."""
    session = attrs.evolve(MARIADB, explicit_timestamps=False)
    made = after("CREATE TABLE t (a INT, b TIMESTAMP AS ('2020-01-01') VIRTUAL, c TIMESTAMP)", session=session)
    assert [column.nullable for column in made.columns] == [True, True, False]


@pytest.mark.parametrize("option", ["DEFAULT CHARACTER SET = DEFAULT", "COLLATE DEFAULT"])
def test_default_stands_for_the_character_set_without_its_collation(option: str):
    """In a database with COLLATE utf8mb3_bin, MariaDB 10.11 takes utf8mb3_general_ci."""
    table = after("CREATE DATABASE d COLLATE utf8mb3_bin", f"CREATE TABLE t (a TEXT) {option}")
    assert table.columns[0].collation == "utf8mb3_general_ci"


def test_default_keeps_a_collation_of_its_character_set():
    """One that the same statement has given before."""
    alter = "ALTER TABLE t CONVERT TO CHARSET latin1 COLLATE latin1_bin, CONVERT TO CHARACTER SET DEFAULT"
    assert after("CREATE TABLE t (a TEXT)", alter).columns[0].collation == "latin1_bin"


def test_if_not_exists_of_a_column_is_of_its_key():
    """The column is added, and the table keeps its primary key."""
    add = "ALTER TABLE t ADD COLUMN IF NOT EXISTS b INT NOT NULL KEY, ADD IF NOT EXISTS c INT UNIQUE"
    table = after("CREATE TABLE t (a INT PRIMARY KEY)", add)
    assert (table.primary_key, table.unique_keys) == (("a",), (("c",),))


@pytest.mark.parametrize(
    ("create", "alter", "primary_key", "unique_names"),
    [
        ("a INT NOT NULL", "ADD COLUMN IF NOT EXISTS a INT NOT NULL UNIQUE", (), ("a",)),
        ("a INT NOT NULL", "ADD COLUMN IF NOT EXISTS a INT NOT NULL PRIMARY KEY", ("a",), ()),
        ("a INT NOT NULL, b INT PRIMARY KEY", "ADD COLUMN IF NOT EXISTS a INT KEY", ("b",), ()),
        ("a INT NOT NULL, b INT PRIMARY KEY", "MODIFY COLUMN IF EXISTS a INT NOT NULL KEY", ("b",), ()),
        ("a INT NOT NULL, UNIQUE (a)", "MODIFY COLUMN IF EXISTS a INT NOT NULL UNIQUE", (), ("a",)),
        ("d INT, UNIQUE q (d)", "ADD IF NOT EXISTS q INT UNIQUE", (), ("q",)),
    ],
)
def test_keys_of_columns_that_are_left_out(
    create: str, alter: str, primary_key: tuple[str, ...], unique_names: tuple[str, ...]
):
    """They are added, unless there is a primary key or a key of the column's name (MariaDB 10.11)."""
    table = after(f"CREATE TABLE t ({create}) ENGINE=InnoDB", f"ALTER TABLE t {alter}")
    assert (table.primary_key, table.unique_names) == (primary_key, unique_names)


def test_a_column_whose_key_is_left_out_is_not_null():
    """PRIMARY KEY in its definition says so."""
    table = after("CREATE TABLE t (a INT PRIMARY KEY)", "ALTER TABLE t ADD IF NOT EXISTS b INT PRIMARY KEY")
    assert [column.nullable for column in table.columns] == [False, False]


@pytest.mark.parametrize(
    "clauses",
    [
        "CONVERT TO CHARACTER SET utf8mb3, DEFAULT CHARSET=latin1",
        "DEFAULT CHARSET=latin1, CONVERT TO CHARACTER SET utf8mb3",
        "CONVERT TO CHARACTER SET utf8mb3, COLLATE utf8mb3_bin",
    ],
)
def test_options_of_the_table_are_not_those_of_its_conversion(clauses: str):
    """Old and new columns have the character set of CONVERT TO, wherever the option stands (MariaDB 10.11)."""
    table = after("CREATE TABLE t (a TEXT)", f"ALTER TABLE t {clauses}, ADD b TEXT")
    assert [column.collation for column in table.columns] == ["utf8mb3_general_ci"] * 2


def test_if_exists_is_of_the_old_columns():
    """MODIFY IF EXISTS does nothing to a column that the same statement adds."""
    table = after("CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT, MODIFY COLUMN IF EXISTS b TEXT")
    assert [column.type for column in table.columns] == ["int", "int"]
