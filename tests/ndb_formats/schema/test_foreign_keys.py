"""Foreign keys in definitions: how they are declared, and how they follow the statements of a log."""

import pytest

from ndb_formats.schema.create_table import definitions_before, parse_create_table
from ndb_formats.schema.definitions import Definitions
from ndb_formats.schema.session import ServerVersion, Session
from ndb_formats.schema.statements import Statement
from ndb_formats.schema.tables import ForeignKey, ReferenceAction, Table

PARENT = "CREATE TABLE p (a INT PRIMARY KEY, b INT UNIQUE)"
CHILD = "CREATE TABLE c (k INT PRIMARY KEY, v INT, FOREIGN KEY (v) REFERENCES p (a))"


def keys(definition: str) -> list[str]:
    """Return the foreign keys that a table c has after CREATE TABLE with these items, as text."""
    table = parse_create_table(f"CREATE TABLE c (k INT PRIMARY KEY, v INT, {definition})", database="d")
    return [str(key) for key in table.foreign_keys]


def after(*statements: str, inline: bool = True) -> Definitions:
    """Return the definitions after statements in database d."""
    known = Definitions()
    for text in statements:
        known, _ = known.after(Statement(text, "d", Session(ServerVersion(90_000 if inline else 80_000))))
    return known


def only(known: Definitions, name: str = "c") -> ForeignKey:
    """Return the one foreign key of a table in database d."""
    (key,) = known.tables["d", name].foreign_keys
    return key


NONE = "ON DELETE NO ACTION ON UPDATE NO ACTION"


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        # What the recorded servers print in error 1452.
        (
            "FOREIGN KEY (v) REFERENCES t1 (k) ON DELETE CASCADE",
            "`c_fk_1` FOREIGN KEY (`v`) REFERENCES `t1` (`k`) ON DELETE CASCADE ON UPDATE NO ACTION",
        ),
        (
            "FOREIGN KEY (v) REFERENCES t1 (k) ON DELETE RESTRICT",
            "`c_fk_1` FOREIGN KEY (`v`) REFERENCES `t1` (`k`) ON DELETE RESTRICT ON UPDATE NO ACTION",
        ),
        (
            "CONSTRAINT `no 1` FOREIGN KEY i (`V`, k) REFERENCES `e`.`p` (a, b) ON UPDATE CASCADE ON DELETE SET NULL",
            "`no 1` FOREIGN KEY (`v`, `k`) REFERENCES `e`.`p` (`a`, `b`) ON DELETE SET NULL ON UPDATE CASCADE",
        ),
        ("CONSTRAINT FOREIGN KEY (v) REFERENCES p (a)", f"`c_fk_1` FOREIGN KEY (`v`) REFERENCES `p` (`a`) {NONE}"),
        # "Their use should be avoided, as they cause the MySQL Server to ignore any ON DELETE or ON UPDATE clause."
        (
            "FOREIGN KEY (v) REFERENCES p (a) MATCH SIMPLE ON DELETE CASCADE",
            f"`c_fk_1` FOREIGN KEY (`v`) REFERENCES `p` (`a`) {NONE}",
        ),
        ("FOREIGN KEY (v) REFERENCES p", f"`c_fk_1` FOREIGN KEY (`v`) REFERENCES `p` () {NONE}"),
        ("w INT NOT NULL DEFAULT 3 REFERENCES p (a)", f"`c_fk_1` FOREIGN KEY (`w`) REFERENCES `p` (`a`) {NONE}"),
    ],
)
def test_how_it_is_declared(definition: str, expected: str) -> None:
    """With its names and actions; without a name it is numbered."""
    assert keys(definition) == [f"CONSTRAINT {expected}"]


def test_several_are_numbered() -> None:
    """Those without a name get the next number; other items are no foreign keys."""
    found = keys("FOREIGN KEY (v) REFERENCES p (a), KEY (v), CHECK (v > 0), FOREIGN KEY (k) REFERENCES p (b)")
    assert [text.split("`")[1] for text in found] == ["c_fk_1", "c_fk_2"]


def test_a_reference_does_not_change_its_column() -> None:
    """SET NULL and SET DEFAULT belong to the reference."""
    table = parse_create_table("CREATE TABLE c (k INT PRIMARY KEY, v INT NOT NULL REFERENCES p (a) ON DELETE SET NULL)")
    assert not table.columns[1].nullable
    assert table.foreign_keys[0].on_delete is ReferenceAction.SET_NULL


def test_the_columns_of_the_parent() -> None:
    """In any letter case; the primary key if none are named; none if the parent lacks one."""
    parent = parse_create_table("CREATE TABLE p (a INT, b INT UNIQUE, PRIMARY KEY (b, a))")
    for references, expected in ((("B",), (1,)), (("x",), ()), ((), ())):
        assert ForeignKey("f", ("v",), "", "p", references).referenced(parent) == expected
    assert ForeignKey("f", ("v", "w"), "", "p").referenced(parent) == (1, 0)


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("ADD FOREIGN KEY (w) REFERENCES p (b)", ["c_fk_1", "c_fk_2"]),
        ("ADD CONSTRAINT f FOREIGN KEY (w) REFERENCES p (b), ADD COLUMN x INT", ["c_fk_1", "f"]),
        ("ADD COLUMN x INT REFERENCES p (a) AFTER k", ["c_fk_1", "c_fk_2"]),
        ("DROP FOREIGN KEY C_FK_1", []),
        ("DROP CONSTRAINT c_fk_1", []),
        ("DROP INDEX c_fk_1", ["c_fk_1"]),
    ],
)
def test_alter_table(clause: str, expected: list[str]) -> None:
    """Adds foreign keys and drops them by name."""
    known = after(PARENT, CHILD, "ALTER TABLE c ADD w INT", f"ALTER TABLE c {clause}")
    assert [key.name for key in known.tables["d", "c"].foreign_keys] == expected


def test_columns_that_are_renamed() -> None:
    """In the child and in the parent."""
    key = only(after(PARENT, CHILD, "ALTER TABLE c CHANGE v w INT", "ALTER TABLE p RENAME COLUMN a TO z"))
    assert (key.columns, key.references) == (("w",), ("z",))


@pytest.mark.parametrize(
    ("statement", "child", "parent"),
    [
        ("RENAME TABLE p TO q", "d.c", "d.q"),
        ("ALTER TABLE p RENAME TO e.p", "d.c", "e.p"),
        ("RENAME TABLE c TO e.c", "e.c", "d.p"),
        ("RENAME TABLE p TO x, c TO p, x TO c", "d.p", "d.c"),
    ],
)
def test_tables_that_are_renamed(statement: str, child: str, parent: str) -> None:
    """The foreign key goes with its table, and refers to the same table."""
    tables = {table.full_name: table for table in after(PARENT, CHILD, statement).tables.values()}
    (key,) = tables[child].foreign_keys
    assert ".".join(tables[child].parent_of(key)) == parent
    assert key.name == f"{tables[child].name}_fk_1"


def test_a_table_that_refers_to_itself() -> None:
    """Its new name is that of its parent too."""
    known = after("CREATE TABLE c (k INT PRIMARY KEY, v INT REFERENCES c (k))", "RENAME TABLE c TO e.x")
    table: Table = known.tables["e", "x"]
    assert table.parent_of(table.foreign_keys[0]) == ("e", "x")


def test_a_table_made_like_another() -> None:
    """It has no foreign keys."""
    assert after(PARENT, CHILD, "CREATE TABLE x LIKE c").tables["d", "x"].foreign_keys == ()


def test_references_in_columns_of_older_servers() -> None:
    """Before MySQL 9.0 a server reads them and ignores them."""
    text = "CREATE TABLE c (k INT PRIMARY KEY, v INT REFERENCES p (a), FOREIGN KEY (v) REFERENCES p (a))"
    assert len(after(PARENT, text).tables["d", "c"].foreign_keys) == 2
    assert not only(after(PARENT, text, inline=False)).inline


@pytest.mark.parametrize(
    ("statement", "before"),
    [
        ("ALTER TABLE c ADD FOREIGN KEY (v) REFERENCES p (a)", None),
        ("ALTER TABLE c ADD CONSTRAINT C_fk_1 FOREIGN KEY (v) REFERENCES p (a)", None),
        ("ALTER TABLE c ADD CONSTRAINT other FOREIGN KEY (k) REFERENCES p (a)", "p"),
        ("ALTER TABLE c ADD v INT REFERENCES p (a)", None),
        ("RENAME TABLE x TO p", "x"),
    ],
)
def test_before_a_statement(statement: str, before: str | None) -> None:
    """What it added is taken away, what it renamed has its old name."""
    end = after(PARENT, CHILD)
    start = definitions_before(end, [Statement(statement, "d")])
    assert [key.parent for key in start.tables["d", "c"].foreign_keys] == ([] if before is None else [before])
