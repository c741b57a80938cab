"""What statements make of definitions: hand-worked cases, and random sequences against a model."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.errors import SchemaError, UnsupportedError
from ndb_formats.schema.create_table import definitions_before, parse_create_table
from ndb_formats.schema.definitions import Definitions
from ndb_formats.schema.row_keys import refuse_inexact_keys
from ndb_formats.schema.session import Session, SqlMode
from ndb_formats.schema.statements import Statement, TableStep, defines_tables
from ndb_formats.types.values import ABSENT

ANSI = Session(sql_mode=SqlMode.ANSI_QUOTES)
TABLE = "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(3), c INT UNIQUE) DEFAULT CHARSET latin1 ENGINE=NDB"


def known(*creates: str) -> Definitions:
    """Return the definitions of some tables of database d."""
    return Definitions.of([parse_create_table(create, database="d") for create in creates or (TABLE,)])


def step(text: str, before: Definitions | None = None) -> TableStep:
    """Return what a statement does to one table."""
    _, steps = (before or known()).after(Statement(text, "d"))
    (one,) = steps
    return one


def columns(text: str) -> list[str]:
    """Return the columns of table t after a statement, each with its type."""
    after = step(text).after
    assert after is not None
    return [f"{column.name} {column.sql_type}" for column in after.columns]


PLAIN = ["a int", "b varchar(3)", "c int"]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("ADD x INT", [*PLAIN, "x int"]),
        ("ADD COLUMN x INT FIRST", ["x int", *PLAIN]),
        ("ADD COLUMN x INT AFTER a", ["a int", "x int", "b varchar(3)", "c int"]),
        ("ADD (x INT, y DATE)", [*PLAIN, "x int", "y date"]),
        ("DROP b", ["a int", "c int"]),
        ("MODIFY c BIGINT UNSIGNED", ["a int", "b varchar(3)", "c bigint unsigned"]),
        ("MODIFY c BIGINT AFTER a", ["a int", "c bigint", "b varchar(3)"]),
        ("CHANGE b bb TEXT FIRST", ["bb text", "a int", "c int"]),
        ("RENAME COLUMN b TO `order`", ["a int", "order varchar(3)", "c int"]),
        ("ADD x INT, DROP c, ALGORITHM=COPY, LOCK=SHARED", ["a int", "b varchar(3)", "x int"]),
        ("ADD x INT COLUMN_FORMAT DYNAMIC DEFAULT NULL, ALGORITHM=INPLACE", [*PLAIN, "x int"]),
        ("CRUMBLE, ADD x INT", [*PLAIN, "x int"]),
        ("ORDER BY a, b, ADD x INT", [*PLAIN, "x int"]),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", ["b int", "a varchar(3)", "c int"]),
        ("CHANGE a b INT, CHANGE b a VARCHAR(3)", ["b int", "a varchar(3)", "c int"]),
        ("ADD COLUMN b BIGINT, DROP COLUMN b", ["a int", "c int", "b bigint"]),
        ("ADD x INT AFTER y, ADD y INT FIRST", None),
        ("ADD y INT FIRST, ADD x INT AFTER y", ["y int", "x int", *PLAIN]),
        ("ADD x INT AFTER y, RENAME COLUMN b TO y", ["a int", "y varchar(3)", "x int", "c int"]),
        ("ADD d TEXT CHARACTER SET latin1, CONVERT TO CHARACTER SET utf8mb4", [*PLAIN, "d text"]),
        ("CONVERT TO CHARACTER SET binary", ["a int", "b varbinary(3)", "c int"]),
        ("ADD COLUMN x INT PARTITION BY KEY (a) PARTITIONS 4", [*PLAIN, "x int"]),
        ("DROP PARTITION p0, p1", PLAIN),
        ("COMMENT 'x, DROP b', ADD KEY (b), MAX_ROWS 5 AUTO_INCREMENT=7", PLAIN),
        ("PARTITION BY KEY (a) PARTITIONS 4", PLAIN),
        ("ADD CONSTRAINT f FOREIGN KEY (c) REFERENCES u (a) ON DELETE CASCADE", PLAIN),
    ],
)
def test_columns_after_alter_table(clauses: str, expected: list[str] | None):
    """Of every kind of clause; all act at once, on the old columns. None where the server refuses it."""
    if expected is None:
        with pytest.raises(SchemaError, match="names column y"):
            columns(f"ALTER TABLE t {clauses}")
        return
    assert columns(f"ALTER TABLE t {clauses}") == expected


def test_columns_keep_what_they_were():
    """By their ordinals before the statement."""
    assert step("ALTER TABLE t ADD x INT FIRST, DROP b, CHANGE c cc BIGINT").sources == (None, 0, 2)


@pytest.mark.parametrize(
    ("text", "copied"),
    [
        ("ADD x INT", False),
        ("ADD x INT DEFAULT 5", True),
        ("ADD x INT NOT NULL", True),
        ("ADD x INT FIRST", True),
        ("ADD x INT, ALGORITHM=COPY", True),
        ("DROP b", True),
        ("DROP b, ALGORITHM=INPLACE", False),
        ("MODIFY c BIGINT", True),
        ("ADD UNIQUE KEY (b)", False),
        ("RENAME COLUMN b TO bb", False),
        ("RENAME COLUMN c TO cc", True),
        ("CHANGE b bb VARCHAR(3)", False),
        ("ADD n INT, ADD INDEX (c)", True),
        ("ADD n INT, ADD FOREIGN KEY (n) REFERENCES t (a)", True),
        ("ADD n INT, DROP INDEX c", True),
        ("ADD n INT, RENAME COLUMN b TO bb", True),
        ("ADD n INT COLUMN_FORMAT FIXED", True),
        ("ADD n INT COLUMN_FORMAT DYNAMIC", False),
        ("ADD n INT UNIQUE", True),
        ("ADD n INT CHECK (n > 0)", True),
        ("ADD n INT AUTO_INCREMENT", True),
        ("ADD n TEXT", True),
        ("ADD n TINYTEXT", False),
        ("ADD n JSON", True),
        ("ADD n TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP", True),
        ("ADD n INT AS (c + 1) VIRTUAL", False),
        ("ADD n INT AS (c + 1) STORED", True),
        ("ADD n INT, ADD m INT", False),
        ("ADD n INT, COMMENT='x'", True),
        ("ADD n INT, RENAME TO u", True),
        ("RENAME TO u", False),
        ("ALTER COLUMN c SET DEFAULT 5", True),
        ("ALTER COLUMN c DROP DEFAULT", False),
        ("ALTER COLUMN c SET INVISIBLE", True),
        ("RENAME INDEX c TO cc", True),
        ("ALTER INDEX c INVISIBLE", False),
        ("ADD CHECK (c > 0)", True),
        ("ADD CONSTRAINT positive CHECK (c > 0)", True),
        ("DROP CHECK positive", True),
        ("DROP CONSTRAINT positive", True),
        ("ALTER CHECK positive NOT ENFORCED", True),
        ("ADD INDEX (c), ADD INDEX (a, c)", True),
        ("ADD INDEX (b), DROP INDEX c", True),
        ("DROP INDEX c", False),
        ("ADD FOREIGN KEY (c) REFERENCES t (a)", False),
        ("AUTO_INCREMENT=100", True),
        ("MAX_ROWS=1000", True),
        ("COMMENT='x'", False),
        ("COMMENT='x' MAX_ROWS=1000", True),
        ("DEFAULT CHARACTER SET latin1", False),
        ("FORCE", True),
        ("ENGINE=NDB", True),
        ("ORDER BY c", True),
        ("ADD PARTITION PARTITIONS 2", False),
        ("COALESCE PARTITION 2", True),
        ("PARTITION BY KEY (a) PARTITIONS 4", True),
        ("MODIFY c INT", False),
        ("MODIFY c INT COMMENT 'x'", False),
        ("MODIFY c INT STORAGE DISK", True),
        ("MODIFY c INT NULL DEFAULT 5", True),
        ("CONVERT TO CHARACTER SET utf8mb4", True),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (c)", True),
    ],
)
def test_what_ndb_does_online(text: str, copied: bool):  # a column of the table above
    """Everything else makes a new table, as the server's source tells; ALGORITHM decides where it is given."""
    assert step(f"ALTER TABLE t {text}").copied is copied


def test_parts_of_unique_keys_follow_their_columns():
    """Prefixes and expressions, through renames and drops."""
    before = known("CREATE TABLE t (a INT PRIMARY KEY, b INT, d CHAR(9), UNIQUE p (d(3)), UNIQUE e ((LOWER(d)), b))")

    def parts(text: str) -> list[str]:
        after = step(f"ALTER TABLE t {text}", before).after
        assert after is not None
        return [", ".join(map(str, key)) for key in after.unique_parts]

    assert parts("ADD COLUMN c INT") == ["a", "d(3)", "(lower ( d )), b"]
    assert parts("RENAME COLUMN b TO bb, RENAME INDEX p TO q") == ["a", "d(3)", "(lower ( d )), bb"]
    assert parts("DROP INDEX e, ADD UNIQUE ((b + 1))") == ["a", "d(3)", "(b + 1)"]
    assert parts("DROP INDEX p") == ["a", "(lower ( d )), b"]


def test_keys_follow_their_columns():
    """Through renames, drops and names that the server chose."""
    after = step(
        "ALTER TABLE t ADD UNIQUE (bb), ADD UNIQUE KEY both (c, bb), RENAME COLUMN b TO bb, DROP INDEX c"
    ).after
    assert after is not None
    assert dict(zip(after.unique_names, after.unique_keys, strict=True)) == {"bb": ("bb",), "both": ("c", "bb")}


@pytest.mark.parametrize(
    ("clauses", "key"),
    [
        ("DROP a, ADD a BIGINT FIRST", ("a",)),
        ("ADD a BIGINT, DROP a", ("a",)),
        ("CHANGE a x INT, ADD a INT", ("x",)),
        ("CHANGE a x INT, ADD a INT FIRST", ("a",)),
        ("RENAME COLUMN a TO x, ADD a INT FIRST", ("a",)),
        ("RENAME COLUMN a TO x, RENAME COLUMN b TO a", ("x",)),
        ("DROP a", ()),
    ],
)
def test_a_key_has_the_first_column_of_its_name(clauses: str, key: tuple[str, ...]):
    """Be it a new one: as MySQL 9.7 and MariaDB 10.11 make it."""
    _, (one,) = known("CREATE TABLE t (a INT PRIMARY KEY, b INT)").after(Statement(f"ALTER TABLE t {clauses}", "d"))
    assert one.after is not None
    assert one.after.primary_key == key


@pytest.mark.parametrize(
    ("before", "after", "members"),
    [
        ("utf8mb4", "latin1", ("Ã©", "b")),
        ("latin1", "cp1251", ("й", "b")),
        ("utf8mb3", "utf8mb4", ("é", "b")),
        ("ucs2", "latin1", ("\0é", "\0b")),
        ("latin1", "binary", ("é", "b")),
    ],
)
def test_members_keep_their_bytes(before: str, after: str, members: tuple[str, str]):
    """CONVERT TO reads the bytes of members in the new character set, as MySQL 9.7 and MariaDB 10.11 do."""
    create = f"CREATE TABLE t (a ENUM('é', 'b') CHARACTER SET {before})"
    converted = step(f"ALTER TABLE t CONVERT TO CHARACTER SET {after}", known(create)).after
    assert converted is not None
    assert converted.columns[0].members == members


def test_character_sets():
    """A new column has the table's, CONVERT changes every column, a table without one has its database's."""
    added, converted = step("ALTER TABLE t ADD x TEXT").after, step("ALTER TABLE t CONVERT TO CHARSET utf8mb4").after
    assert added is not None
    assert converted is not None
    assert [added.columns[3].collation, converted.columns[1].collation] == ["latin1_swedish_ci", "utf8mb4_0900_ai_ci"]
    current, _ = Definitions().after(Statement("CREATE DATABASE IF NOT EXISTS e COLLATE utf8mb4_bin", ""))
    current, _ = current.after(Statement("CREATE TABLE e.t (s TEXT)", "d"))
    current, _ = current.after(Statement("ALTER DATABASE e CHARACTER SET ascii", "d"))
    current, _ = current.after(Statement("CREATE TABLE u LIKE e.t", "e"))
    current, _ = current.after(Statement("CREATE TABLE v (s TEXT)", "e"))
    found = {name: table.columns[0].collation for (_, name), table in current.tables.items()}
    assert found == {"t": "utf8mb4_bin", "u": "utf8mb4_bin", "v": "ascii_general_ci"}


def test_two_tables_change_places():
    """By one RENAME TABLE."""
    before = known("CREATE TABLE t (a INT)", "CREATE TABLE u (b INT)")
    after, steps = before.after(Statement("RENAME TABLE t TO x, u TO t, x TO u", "d"))
    assert {name: table.columns[0].name for (_, name), table in after.tables.items()} == {"t": "b", "u": "a"}
    assert {(one.before.name, one.after.name) for one in steps if one.before and one.after} == {("t", "u"), ("u", "t")}


def test_what_empties_tables():
    """TRUNCATE keeps the definition; DROP DATABASE drops its tables."""
    assert step("TRUNCATE t").emptied
    assert step("TRUNCATE TABLE d.t").after == known().tables["d", "t"]
    assert step("DROP TABLE IF EXISTS `t` /* generated by server */").after is None
    after, steps = known(TABLE, "CREATE TABLE u (b INT)").after(Statement("DROP DATABASE d", "x"))
    assert (after.tables, len(steps)) == ({}, 2)


@pytest.mark.parametrize(
    "text", ["CREATE VIEW v AS SELECT 1", "ALTER TABLE other ADD x INT", "DROP TRIGGER t", "CREATE INDEX i ON t (b)"]
)
def test_what_changes_no_definition(text: str):
    """Other objects, tables that are not known, indexes that are not unique."""
    after, steps = known().after(Statement(text, "d"))
    assert (after, steps) == (known(), ())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("ALTER TABLE t DROP x", "the statement names column x, but the table has a, b, c"),
        ("ALTER TABLE t ADD b INT", "the statement makes column b, which the table has already"),
        ("CREATE TABLE t (a INT)", "the statement creates a table that is there already"),
        ("CREATE TABLE u LIKE v", "the statement makes a table like d.v, whose definition is not known"),
        ("CREATE TABLE u SELECT 1", "only CREATE TABLE with a column list can be read"),
    ],
)
def test_what_cannot_be_followed(text: str, complaint: str):
    """Is an error."""
    with pytest.raises(SchemaError) as caught:
        known().after(Statement(text, "d"))
    assert caught.value.message.startswith(complaint)


def test_a_table_may_be_in_the_schema_and_in_the_log():
    """If both say the same."""
    after, (one,) = known().after(Statement(TABLE, "d"))
    assert (after, one.emptied) == (known(), True)


def test_first_words():
    """Tell which statements to look at."""
    assert all(
        defines_tables(text)
        for text in (
            "create table t (a int)",
            "/* x */ DROP TABLE t",
            "RENAME TABLE t TO u",
            "SET  STATEMENT max_statement_time=1 FOR ALTER TABLE t ADD b INT",
            "set -- x\n STATEMENT max_statement_time=1 FOR DROP TABLE t",
        )
    )
    assert not any(
        defines_tables(text)
        for text in ("INSERT INTO t VALUES (1)", "FLUSH TABLES", "GRANT ALL ON *.* TO x", "SET PASSWORD = ''")
    )


NAMES = st.sampled_from("abcdef")
TYPES = st.sampled_from(["int", "bigint", "date", "varchar(9)"])


@st.composite
def clauses(draw: st.DrawFn, present: list[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    """Return a clause and the columns after it, worked out on a list of names and types."""
    place = draw(st.integers(0, len(present) - 1))
    name, kind = present[place]
    free = sorted(set("abcdef") - {each for each, _ in present})
    choices = ["modify"] + ["drop"] * (len(present) > 1) + ["add", "add first", "add after", "change"] * bool(free)
    new, new_kind = (draw(st.sampled_from(free)) if free else ""), draw(TYPES)
    match draw(st.sampled_from(choices)):
        case "add":
            return f"ADD COLUMN {new} {new_kind}", [*present, (new, new_kind)]
        case "add first":
            return f"ADD {new} {new_kind} FIRST", [(new, new_kind), *present]
        case "add after":
            after = [*present[: place + 1], (new, new_kind), *present[place + 1 :]]
            return f"ADD {new} {new_kind} AFTER `{name}`", after
        case "drop":
            return f"DROP COLUMN {name}", [*present[:place], *present[place + 1 :]]
        case "change":
            return f"CHANGE {name} {new} {kind}", [*present[:place], (new, kind), *present[place + 1 :]]
    return f"MODIFY {name} {new_kind}", [*present[:place], (name, new_kind), *present[place + 1 :]]


@given(st.data())
def test_random_statements_against_a_model(data: st.DataObject):
    """A list of names and types, edited beside the statements; sources lead back through all of them."""
    model = [("a", "int"), ("b", "date")]
    current = known("CREATE TABLE t (a INT, b DATE)")
    for _ in range(data.draw(st.integers(1, 8))):
        text, after = data.draw(clauses(model))
        old = [column.name for column in current.tables["d", "t"].columns]
        current, (one,) = current.after(Statement(f"ALTER TABLE t {text}", "d"))
        table = current.tables["d", "t"]
        assert [(column.name, column.sql_type) for column in table.columns] == after
        for column, source in zip(table.columns, one.sources, strict=True):
            if source is None:
                assert text.startswith("ADD")
            elif text.startswith("CHANGE"):
                assert old[source] == column.name or text.split()[1] == old[source]
            else:
                assert old[source] == column.name
        model = after


@given(st.data())
def test_added_columns_are_taken_back(data: st.DataObject):
    """Definitions at the start follow from those at the end where statements only added and renamed."""
    start = known("CREATE TABLE t (a INT, b DATE)")
    current, made, name = start, [], "t"
    for number in range(data.draw(st.integers(1, 5))):
        if data.draw(st.booleans()):
            made.append(Statement(f"ALTER TABLE {name} ADD COLUMN x{number} INT", "d"))
        else:
            made.append(Statement(f"RENAME TABLE {name} TO t{number}", "d"))
            name = f"t{number}"
        current, _ = current.after(made[-1])
    assert definitions_before(current, made) == attrs.evolve(start, charsets=current.charsets)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE u (s VARCHAR(9) CHARACTER SET sjis PRIMARY KEY)",
        "ALTER TABLE t ADD s VARCHAR(9) CHARACTER SET sjis, ADD UNIQUE KEY (s)",
        "ALTER TABLE t MODIFY b VARCHAR(9) CHARACTER SET sjis, ADD UNIQUE KEY (b)",
    ],
)
def test_inexact_keys_are_allowed_in_what_statements_make(text: str):
    """If they are allowed at all; a table that is created as it is known already contradicts nothing."""
    statement = Statement(text, "d")
    with pytest.raises(UnsupportedError, match="sjis_japanese_ci"):
        refuse_inexact_keys(known().after(statement)[0].schema.tables)
    allowed = Definitions.of(known().schema.tables, inexact_keys=True).after(statement)[0]
    refuse_inexact_keys(allowed.schema.tables)
    if text.startswith("CREATE"):
        assert allowed.after(statement)[0] == allowed


def test_names_in_double_quotes():
    """Under ANSI_QUOTES they are names, whatever they say; without it they are text."""
    text = """CREATE TABLE "d"."from" ("primary" INT PRIMARY KEY, "x y" CHAR(1) DEFAULT 'z', g INT AS ("x y" + 1))"""
    known, _ = Definitions().after(Statement(text, "d", ANSI))
    table = known.tables["d", "from"]
    assert [(column.name, column.default) for column in table.columns[:2]] == [("primary", ABSENT), ("x y", "z")]
    assert (table.primary_key, table.columns[2].depends_on) == (("primary",), ("x y",))
    known, _ = known.after(Statement('RENAME TABLE "from" TO "to"', "d", ANSI))
    assert list(known.tables) == [("d", "to")]
    assert step('ALTER TABLE t ADD x CHAR(1) NOT NULL DEFAULT "z"').after.columns[-1].default == "z"  # type: ignore[union-attr]
