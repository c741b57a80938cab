"""The unique key that serves as the primary key, by hand-worked cases."""

import pytest

from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.definitions import Definitions
from ndb_formats.schema.row_keys import without_serving_key
from ndb_formats.schema.statements import Statement

AS_DECLARED = [
    # The first unique key without NULL, not the first one.
    ("a INT, b INT NOT NULL, UNIQUE (a), UNIQUE (b)", ("b",), (("a",),)),
    ("a INT NOT NULL, b INT NOT NULL, UNIQUE ab (b, a), UNIQUE (a)", ("b", "a"), (("a",),)),
    ("a INT NOT NULL UNIQUE, b INT", ("a",), ()),
    # A column that can be NULL, and a declared primary key.
    ("a INT NOT NULL, b INT, UNIQUE (a, b)", (), (("a", "b"),)),
    ("a INT NOT NULL UNIQUE, b INT PRIMARY KEY", ("b",), (("a",),)),
    ("a INT NOT NULL, KEY (a)", (), ()),
    # A key of a prefix identifies no row; one as long as the column is whole.
    ("a CHAR(5) NOT NULL, b INT NOT NULL, UNIQUE (A(3), b)", (), (("a", "b"),)),
    ("a CHAR(5) NOT NULL, b INT NOT NULL, UNIQUE (a(5), b)", ("a", "b"), ()),
    ("a CHAR(5) NOT NULL, b INT NOT NULL, UNIQUE (a(3), b), UNIQUE (b)", ("b",), (("a", "b"),)),
]


@pytest.mark.parametrize(("items", "primary_key", "unique_keys"), AS_DECLARED)
@pytest.mark.parametrize("engine", ["", "ENGINE=NDB", "ENGINE = ndbcluster"])
def test_which_key_serves(
    items: str, primary_key: tuple[str, ...], unique_keys: tuple[tuple[str, ...], ...], engine: str
) -> None:
    """The first unique key of columns that cannot be NULL serves where no primary key is declared."""
    table = parse_create_table(f"CREATE TABLE t ({items}) {engine}", database="d")
    assert (table.primary_key, table.unique_keys) == (primary_key, unique_keys)


def test_other_engines() -> None:
    """A table of another engine keeps its keys as declared: the rules of its row images know unique keys."""
    table = parse_create_table("CREATE TABLE t (a INT NOT NULL UNIQUE) ENGINE=InnoDB", database="d")
    assert (table.primary_key, table.unique_keys) == ((), (("a",),))


def test_as_declared_again() -> None:
    """The key goes back to the unique keys, with its name."""
    table = parse_create_table("CREATE TABLE t (a INT, b INT NOT NULL, UNIQUE x (a), UNIQUE y (b))", database="d")
    assert table.serving == "y"
    again = without_serving_key(table)
    assert (again.primary_key, again.unique_keys, again.unique_names) == ((), (("b",), ("a",)), ("y", "x"))


@pytest.mark.parametrize(
    ("before", "statement", "primary_key", "unique_keys", "copied"),
    [
        # A declared key takes over; the table is made anew, because the declared key makes it so.
        ("a INT NOT NULL UNIQUE, b INT NOT NULL", "ALTER TABLE d.t ADD PRIMARY KEY (b)", ("b",), (("a",),), True),
        # The hidden key gives way to a unique key, and comes back.
        ("a INT NOT NULL", "ALTER TABLE d.t ADD UNIQUE (a)", ("a",), (), True),
        ("a INT NOT NULL", "CREATE UNIQUE INDEX x ON d.t (a)", ("a",), (), True),
        ("a INT NOT NULL, UNIQUE x (a)", "ALTER TABLE d.t DROP INDEX x", (), (), True),
        ("a INT NOT NULL, UNIQUE x (a)", "DROP INDEX x ON d.t", (), (), True),
        # The key stays what it is, and a column is added in place.
        ("a INT NOT NULL, UNIQUE x (a)", "ALTER TABLE d.t ADD COLUMN c INT NULL", ("a",), (), False),
        # Nothing but a name changes; NDB copies the table for that of a key, and for that of a column in one.
        ("a INT NOT NULL, UNIQUE x (a)", "ALTER TABLE d.t RENAME INDEX x TO y", ("a",), (), True),
        ("a INT NOT NULL, UNIQUE x (a)", "ALTER TABLE d.t RENAME COLUMN a TO c", ("c",), (), True),
        ("a INT", "CREATE UNIQUE INDEX x ON d.t (a)", (), (("a",),), False),
        # Prefixes stay those of their key.
        ("a CHAR(5) NOT NULL, UNIQUE x (a(3))", "ALTER TABLE d.t RENAME INDEX x TO Y", (), (("a",),), True),
        ("a CHAR(5) NOT NULL, UNIQUE x (a(3))", "ALTER TABLE d.t RENAME COLUMN a TO c", (), (("c",),), True),
        ("a CHAR(5) NOT NULL, UNIQUE x (a(3))", "ALTER TABLE d.t DROP KEY x, ADD UNIQUE x (a)", ("a",), (), True),
    ],
)
def test_statements(
    before: str, statement: str, primary_key: tuple[str, ...], unique_keys: tuple[tuple[str, ...], ...], copied: bool
) -> None:
    """Statements change the keys as declared; where the key of the rows changes, the server copies the table."""
    table = parse_create_table(f"CREATE TABLE t ({before}) ENGINE=NDB", database="d")
    _, (step,) = Definitions.of([table]).after(Statement(statement, "d"))
    assert step.after is not None
    assert (step.after.primary_key, step.after.unique_keys, step.copied) == (primary_key, unique_keys, copied)
