"""Rules of binlog_row_image: the primary key equivalent, and which columns other engines than NDB log."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.errors import SettingError
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.row_image_rules import RowImageRule, image_columns, parse_row_image, primary_key_equivalent
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Table
from tests.ndb_formats.recordings import RECORDINGS
from tests.ndb_formats.statements import columns_of, statements

INSERT, UPDATE, DELETE = Operation.WRITE_ROW, Operation.UPDATE_ROW, Operation.DELETE_ROW
PK = parse_create_table("CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(20) DEFAULT 'bee', c TEXT, d INT)")
UNIQUE = parse_create_table(
    "CREATE TABLE t (a INT, u VARCHAR(9) NOT NULL, w INT NOT NULL, t TEXT, UNIQUE (a), UNIQUE (w, u))"
)
NO_KEY = parse_create_table("CREATE TABLE t (a INT, b CHAR(3), t TEXT)")
DEFAULTS = parse_create_table(
    """CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL DEFAULT 5, b VARCHAR(9) DEFAULT (CONCAT('d', 'ef')),
    g INT AS (a + 1) STORED, v INT AS (a * 3) VIRTUAL, h INT DEFAULT 8)"""
)
SPECIAL = parse_create_table("CREATE TABLE t (id INT PRIMARY KEY, j JSON, g GEOMETRY, b TINYBLOB, x LONGTEXT)")


def columns(rule: str, table: Table, operation: Operation, written: str = "") -> tuple[str | None, str | None]:
    """Return the names in the before and the after image of a change that writes the columns named."""
    event = image_columns(parse_row_image(rule), table, operation, [table.ordinal(name) for name in written.split()])
    assert event.operation is operation
    before, after = (
        None if places is None else " ".join(table.columns[place].name for place in places)
        for places in (event.before, event.after)
    )
    return before, after


def test_names_are_read_in_any_case():
    """SHOW VARIABLES prints capitals, the manual small letters."""
    assert [parse_row_image(name) for name in ("FULL", "minimal", " NoBlob ")] == list(RowImageRule)


def test_an_unknown_name_is_an_error_that_lists_the_known():
    """The message holds what was given and every rule."""
    with pytest.raises(SettingError, match="binlog_row_image 'half' is not known; there are full, minimal, noblob"):
        parse_row_image("half")


class TestPrimaryKeyEquivalent:
    """The columns that tell which row is meant."""

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ("a INT, b INT, c INT, PRIMARY KEY (c, a), UNIQUE (b)", {0, 2}),
            ("a INT NOT NULL, b INT NOT NULL, c INT, UNIQUE (c), UNIQUE (b), UNIQUE (a)", {1}),
            ("a INT NOT NULL, b INT NOT NULL, c INT, UNIQUE (a, c), UNIQUE (b, a)", {0, 1}),
            ("a INT NOT NULL UNIQUE, b INT NOT NULL, UNIQUE (b)", {0}),
            ("a INT UNIQUE, b INT", {0, 1}),
            ("a INT, b TEXT NOT NULL, UNIQUE (b(8))", {0, 1}),
            ("t TEXT NOT NULL, b BLOB, PRIMARY KEY (t(8))", {0}),
            ("a INT NOT NULL, b INT NOT NULL, UNIQUE ((a + b)), UNIQUE (b)", {1}),
            ("a INT, b INT", {0, 1}),
        ],
    )
    def test_which_key(self, body: str, expected: set[int]):
        """The primary key, else the first unique key of whole NOT NULL columns, else all columns."""
        assert primary_key_equivalent(parse_create_table(f"CREATE TABLE t ({body})")) == expected


class TestRules:
    """Section 10 of the semantics, cell by cell."""

    @pytest.mark.parametrize(
        ("rule", "insert", "before", "after", "delete"),
        [
            ("full", "id a b c d", "id a b c d", "id a b c d", "id a b c d"),
            ("minimal", "id a", "id", "b c", "id"),
            ("noblob", "id a b d", "id a b d", "id a b c d", "id a b d"),
        ],
    )
    def test_a_table_with_a_key(self, rule: str, insert: str, before: str, after: str, delete: str):
        """INSERT (id, a); UPDATE SET b, c; DELETE; c is the blob."""
        assert columns(rule, PK, INSERT, "id a") == (None, insert)
        assert columns(rule, PK, UPDATE, "b c") == (before, after)
        assert columns(rule, PK, DELETE) == (delete, None)

    @pytest.mark.parametrize(
        ("rule", "before", "after"),
        [("full", "a u w t", "a u w t"), ("minimal", "u w", "a"), ("noblob", "a u w", "a u w")],
    )
    def test_without_a_primary_key_a_unique_key_identifies_rows(self, rule: str, before: str, after: str):
        """UPDATE SET a of a table whose second unique key is NOT NULL."""
        assert columns(rule, UNIQUE, UPDATE, "a") == (before, after)

    @pytest.mark.parametrize(("rule", "after"), [("full", "a b t"), ("minimal", "a"), ("noblob", "a b")])
    def test_without_a_key_the_whole_row_is_before(self, rule: str, after: str):
        """Also the blob, under every rule."""
        assert columns(rule, NO_KEY, UPDATE, "a") == ("a b t", after)
        assert columns(rule, NO_KEY, DELETE) == ("a b t", None)

    def test_json_and_geometry_are_no_blobs(self):
        """Noblob leaves out BLOB and TEXT types alone."""
        assert columns("noblob", SPECIAL, DELETE) == ("id j g", None)
        assert columns("noblob", SPECIAL, UPDATE, "x") == ("id j g", "id j g x")

    @pytest.mark.parametrize(
        ("table", "written", "after"),
        [
            ("id INT PRIMARY KEY AUTO_INCREMENT, a INT, b INT", "a", "id a"),
            ("id INT PRIMARY KEY AUTO_INCREMENT, a INT, b INT", "", "id"),
            ("id INT PRIMARY KEY, a TIMESTAMP DEFAULT CURRENT_TIMESTAMP, b INT DEFAULT 3", "id", "id a"),
        ],
    )
    def test_an_insert_has_the_values_that_the_server_provides(self, table: str, written: str, after: str):
        """AUTO_INCREMENT and defaults that are no constants are in a minimal insert."""
        made = parse_create_table(f"CREATE TABLE t ({table})")
        assert columns("minimal", made, INSERT, written) == (None, after)

    def test_generated_columns(self):
        """An insert has all of them; an update those that depend on what it sets; virtual ones like stored ones."""
        assert columns("minimal", DEFAULTS, INSERT, "id") == (None, "id b g v")
        assert columns("minimal", DEFAULTS, UPDATE, "a") == ("id", "a g v")
        assert columns("minimal", DEFAULTS, UPDATE, "h") == ("id", "h")
        assert columns("noblob", DEFAULTS, DELETE) == ("id a b g v h", None)

    def test_on_update_current_timestamp(self):
        """A column with ON UPDATE is written by every update, and what is made of it too."""
        table = parse_create_table(
            "CREATE TABLE t (id INT PRIMARY KEY, d DATETIME ON UPDATE NOW(), y INT AS (YEAR(d)), a INT)"
        )
        assert columns("minimal", table, UPDATE, "a") == ("id", "d y a")
        assert columns("minimal", table, UPDATE) == ("id", "")


@pytest.mark.parametrize("rule", ["full", "minimal", "noblob"])
def test_recorded_columns(rule: str):
    """Every row of the recordings of `defaults` has the columns that the rules say."""
    kinds = {"insert": INSERT, "update": UPDATE, "delete": DELETE}
    compared = 0
    for (statement,), rows in statements(RECORDINGS / f"defaults_{rule}"):
        event = image_columns(parse_row_image(rule), statement.table, kinds[statement.kind], statement.written)
        for row in rows:
            assert columns_of(row) == (event.operation.name, event.before, event.after)
            compared += 1
    assert compared == 11


PIECES = st.lists(
    st.tuples(
        st.sampled_from(["INT", "INT NOT NULL", "TEXT", "JSON", "VARCHAR(9) NOT NULL UNIQUE", "INT DEFAULT (1)"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@given(pieces=PIECES, operation=st.sampled_from(Operation), data=st.data())
def test_minimal_is_in_noblob_is_in_full(pieces: list[tuple[str, bool]], operation: Operation, data: Any):
    """Whatever the table and the change, a smaller rule never logs a column that a larger one leaves out."""
    body = [f"c{place} {definition}" for place, (definition, _) in enumerate(pieces)]
    key = [f"c{place}" for place, (definition, chosen) in enumerate(pieces) if chosen and definition[:3] == "INT"]
    body += [f"PRIMARY KEY ({', '.join(key)})"] if key else []
    table = parse_create_table(f"CREATE TABLE t ({', '.join(body)})")
    written = data.draw(st.sets(st.integers(0, len(pieces) - 1)))
    minimal, noblob, full = (
        image_columns(rule, table, operation, written)
        for rule in (RowImageRule.MINIMAL, RowImageRule.NOBLOB, RowImageRule.FULL)
    )
    for small, middle, large in (
        (minimal.before, noblob.before, full.before),
        (minimal.after, noblob.after, full.after),
    ):
        assert (small is None) is (middle is None) is (large is None)
        assert set(small or ()) <= set(middle or ()) <= set(large or ())
        assert large in (None, tuple(range(len(pieces))))
