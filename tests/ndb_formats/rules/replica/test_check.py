"""The check of a replica's tables: a case for every code, and laws."""

import re

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.errors import SettingError
from ndb_formats.findings import Finding, ReplicaEffect, ReplicaSeverity
from ndb_formats.rules.images import Logging
from ndb_formats.rules.replica.check import ReplicaSettings, check_replica, check_table
from ndb_formats.rules.replica.codes import RULES
from ndb_formats.rules.replica.conversions import TypeConversion, parse_type_conversions
from ndb_formats.rules.row_image_rules import RowImageRule
from ndb_formats.rules.update_format import effective_format
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema

K = "k INT NOT NULL PRIMARY KEY"
FULL = ReplicaSettings()
MINIMAL = ReplicaSettings(Logging(row_image=RowImageRule.MINIMAL))


def ndb(number: int) -> ReplicaSettings:
    """Return the settings of NDB tables with a binlog type."""
    return ReplicaSettings(Logging(effective_format(number)), undeclared_is_ndb=True)


def allowing(members: str) -> ReplicaSettings:
    """Return full images and a value of replica_type_conversions."""
    return ReplicaSettings(conversions=parse_type_conversions(members))


def found(source: str, replica: str, settings: ReplicaSettings = FULL) -> set[tuple[str, str | None]]:
    """Return number and column of the findings for a table, given what stands between its parentheses."""
    texts = [body if "TABLE" in body or not body else f"CREATE TABLE d.t ({body})" for body in (source, replica)]
    schemas = [parse_schema(text) for text in texts]
    return {(finding.code[-3:], finding.column) for finding in check_replica(schemas[0], schemas[1], settings)}


# What is found, on the source, on the replica, and the settings.
CASES: list[tuple[set[tuple[str, str | None]], str, str, ReplicaSettings]] = [
    ({("001", None)}, K, "", FULL),
    ({("002", None)}, "", K, FULL),
    ({("003", None)}, K, K, ndb(1)),
    ({("004", None)}, f"CREATE TABLE d.t ({K}) ENGINE=NDB", f"CREATE TABLE d.t ({K}) ENGINE=InnoDB", ndb(2)),
    ({("005", None)}, f"CREATE TABLE d.t ({K}) ENGINE=NDB", f"CREATE TABLE d.t ({K}) ENGINE=InnoDB", ndb(7)),
    ({("010", "a")}, f"{K}, a INT, b INT", f"{K}, b INT, a INT", FULL),
    ({("010", "a"), ("021", "a"), ("021", "b")}, f"{K}, a INT, b DATE", f"{K}, b DATE, a INT", FULL),
    ({("011", "c")}, f"{K}, a INT", f"{K}, c INT, a INT", FULL),
    ({("012", "a")}, f"{K}, a INT, b INT", f"{K}, b INT", FULL),
    ({("013", "a")}, f"{K}, a INT", f"{K}, c INT", FULL),
    (set(), f"{K}, a INT", f"{K}, A INT", FULL),
    ({("014", "a")}, f"{K}, a INT", K, FULL),
    ({("015", "a")}, K, f"{K}, a INT", FULL),
    ({("015", "a")}, K, f"{K}, a INT NOT NULL DEFAULT 3", ndb(7)),
    ({("016", "a")}, K, f"{K}, a INT NOT NULL", ndb(7)),
    ({("016", "a")}, K, f"{K}, a DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP", ndb(7)),
    ({("015", "a")}, K, f"{K}, a DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP", FULL),
    ({("019", "a")}, K, f"{K}, a INT NOT NULL", FULL),
    ({("014", "a"), ("017", None)}, f"{K}, a INT", K, MINIMAL),
    ({("015", "a"), ("017", None)}, K, f"{K}, a INT", ndb(8)),
    ({("015", "a")}, K, f"{K}, a INT", ndb(3)),
    ({("018", "my_row_id"), ("043", None)}, "a INT",
     "my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY, a INT", FULL),
    ({("020", "a")}, f"{K}, a INT", f"{K}, a BIGINT", FULL),
    ({("020", "a")}, f"{K}, a INT", f"{K}, a BIGINT", allowing("ALL_LOSSY")),
    ({("020", "a")}, f"{K}, a VARCHAR(20)", f"{K}, a VARCHAR(40)", FULL),
    ({("021", "a")}, f"{K}, a INT", f"{K}, a DECIMAL(10)", allowing("lossy,non-lossy")),
    ({("021", "a")}, f"{K}, a TIME(3)", f"{K}, a TIME(6)", allowing("lossy,non-lossy")),
    ({("022", "a")}, f"{K}, a INT", f"{K}, a BIGINT", allowing("ALL_NON_LOSSY")),
    ({("023", "a")}, f"{K}, a BIGINT", f"{K}, a INT", allowing("ALL_LOSSY")),
    ({("024", "a")}, f"{K}, a INT", f"{K}, a INT UNSIGNED", FULL),
    (set(), f"{K}, a DECIMAL(5) UNSIGNED", f"{K}, a DECIMAL(5)", FULL),
    ({("022", "a"), ("025", "a")}, f"{K}, a INT UNSIGNED", f"{K}, a BIGINT", allowing("ALL_NON_LOSSY")),
    ({("022", "a")}, f"{K}, a INT UNSIGNED", f"{K}, a BIGINT", allowing("ALL_NON_LOSSY,ALL_UNSIGNED")),
    ({("022", "a"), ("026", "a")}, f"{K}, a DECIMAL(8,4)", f"{K}, a DECIMAL(9,2)", allowing("ALL_NON_LOSSY")),
    ({("022", "a"), ("026", "a")}, f"{K}, a DECIMAL(8,2)", f"{K}, a DECIMAL(9,4)", allowing("ALL_NON_LOSSY")),
    ({("027", "a")}, f"{K}, a ENUM('x','y')", f"{K}, a ENUM('y','x')", FULL),
    ({("028", "a")}, f"{K}, a SET('x','y')", f"{K}, a SET('x','y','z')", FULL),
    ({("022", "a"), ("029", "a")}, f"{K}, a FLOAT", f"{K}, a DOUBLE", allowing("ALL_NON_LOSSY")),
    ({("030", "a")}, f"{K}, a TEXT CHARSET latin1", f"{K}, a TEXT CHARSET utf8mb4", FULL),
    ({("031", "a")}, f"{K}, a CHAR(4) CHARSET ascii", f"{K}, a CHAR(4) CHARSET latin1", FULL),
    ({("032", "c")}, "c CHAR(9) COLLATE utf8mb4_bin PRIMARY KEY", "c CHAR(9) PRIMARY KEY", FULL),
    ({("045", "c")}, "c CHAR(9) PRIMARY KEY", "c CHAR(9) COLLATE utf8mb4_bin PRIMARY KEY", FULL),
    ({("033", "a")}, f"{K}, a CHAR(9) COLLATE utf8mb4_bin", f"{K}, a CHAR(9)", FULL),
    ({("034", "a")}, f"{K}, a TEXT", f"{K}, a BLOB", FULL),
    ({("040", None), ("042", None)}, K, "k INT NOT NULL", MINIMAL),
    ({("042", None)}, K, "k INT NOT NULL", FULL),
    ({("040", None)}, f"{K}, a INT NOT NULL", "k INT, a INT, PRIMARY KEY (k, a)", ndb(8)),
    ({("045", None)}, f"{K}, a INT NOT NULL", "k INT, a INT, PRIMARY KEY (k, a)", ndb(7)),
    ({("041", None)}, "k INT, a INT, PRIMARY KEY (k, a)", f"{K}, a INT NOT NULL", FULL),
    ({("041", None)}, "a INT NOT NULL", "a INT NOT NULL PRIMARY KEY", FULL),
    ({("043", None)}, "a INT", "a INT", FULL),
    ({("015", "a"), ("044", None)}, K, "k INT, a INT DEFAULT 0, PRIMARY KEY (k, a)", ndb(7)),
    ({("045", None)}, K, "k INT NOT NULL UNIQUE", FULL),
    (set(), "k INT NOT NULL UNIQUE, a INT UNIQUE", "k INT NOT NULL UNIQUE, a INT UNIQUE", MINIMAL),
    ({("046", None)}, f"{K}, a INT", f"{K}, a INT UNIQUE", FULL),
    ({("047", None)}, f"{K}, a INT UNIQUE", f"{K}, a INT", FULL),
    ({("020", "k")}, "k BIGINT PRIMARY KEY", "k INT PRIMARY KEY", FULL),
    ({("023", "k"), ("032", "k")}, "k BIGINT PRIMARY KEY", "k INT PRIMARY KEY", allowing("ALL_LOSSY")),
    ({("048", "a")}, f"{K}, a VARCHAR(9) UNIQUE", f"{K}, a VARCHAR(9) COLLATE utf8mb4_bin UNIQUE", FULL),
    # Of NDB tables, the primary key alone finds rows.
    ({("045", None), ("046", None)}, f"{K}, a INT NOT NULL", "k INT NOT NULL UNIQUE, a INT PRIMARY KEY", FULL),
    ({("041", None)}, f"{K}, a INT NOT NULL", "k INT NOT NULL UNIQUE, a INT PRIMARY KEY", ndb(7)),
    (set(), "a INT NOT NULL, b INT NOT NULL, UNIQUE (a), UNIQUE (b)",
     "a INT NOT NULL, b INT NOT NULL, UNIQUE (b), UNIQUE (a)", MINIMAL),
    ({("050", "a")}, f"{K}, a INT", f"{K}, a INT NOT NULL", FULL),
    ({("051", "a")}, f"{K}, a INT NOT NULL", f"{K}, a INT", FULL),
    ({("052", "a")}, f"{K}, a INT DEFAULT 1", f"{K}, a INT DEFAULT 2", MINIMAL),
    ({("053", "a")}, f"{K}, a INT DEFAULT 1", f"{K}, a INT DEFAULT 2", FULL),
    # The first member is the default of an ENUM that is NOT NULL.
    (set(), f"{K}, a ENUM('x','y') NOT NULL", f"{K}, a ENUM('x','y') NOT NULL DEFAULT 'x'", MINIMAL),
    ({("052", "a")}, f"{K}, a ENUM('x','y') NOT NULL", f"{K}, a ENUM('x','y') NOT NULL DEFAULT 'y'", MINIMAL),
    ({("052", "a"), ("051", "a")}, f"{K}, a ENUM('x','y') NOT NULL", f"{K}, a ENUM('x','y')", MINIMAL),
    (set(), f"{K}, a SET('x','y') NOT NULL", f"{K}, a SET('x','y') NOT NULL DEFAULT 'y'", MINIMAL),
    ({("015", "a")}, K, f"{K}, a ENUM('x','y') NOT NULL", FULL),
    ({("016", "a")}, K, f"{K}, a ENUM('x','y') NOT NULL", ndb(7)),
    ({("053", "a")}, f"{K}, a INT DEFAULT 1", f"{K}, a INT DEFAULT 2", ndb(8)),
    (set(), f"{K}, a INT DEFAULT NULL", f"{K}, a INT", MINIMAL),
    (set(), f"{K}, a DECIMAL(5,2) DEFAULT 1", f"{K}, a DECIMAL(5,2) DEFAULT '1.00'", MINIMAL),
    ({("054", "k")}, K, "k INT NOT NULL AUTO_INCREMENT PRIMARY KEY", MINIMAL),
    ({("055", "a")}, f"{K}, a INT", f"{K}, a INT INVISIBLE", FULL),
    ({("056", "a")}, f"{K}, a GEOMETRY", f"{K}, a POINT", FULL),
    (set(), f"{K}, a MULTIPOINT", f"{K}, a GEOMETRYCOLLECTION", FULL),
    ({("022", "a"), ("026", "a")}, f"{K}, a VARCHAR(9)", f"{K}, a CHAR(9)", allowing("ALL_NON_LOSSY")),
    ({("022", "a"), ("026", "a")}, f"{K}, a TINYTEXT", f"{K}, a VARCHAR(64)", allowing("ALL_NON_LOSSY")),
    ({("060", "a")}, f"{K}, a INT", f"{K}, a INT AS (k) STORED", FULL),
    ({("061", "a")}, f"{K}, a INT AS (k + 1)", f"{K}, a INT AS (k + 2)", FULL),
    (set(), f"{K}, a INT AS (K+1)", f"{K}, a INT GENERATED ALWAYS AS (k + 1)", FULL),
    (set(), f"{K}, a DATETIME DEFAULT NOW()", f"{K}, a DATETIME DEFAULT CURRENT_TIMESTAMP", MINIMAL),
    ({("062", "a")}, f"{K}, a INT AS (k) VIRTUAL", f"{K}, a INT", ndb(7)),
    ({("063", "a")}, f"{K}, a INT AS (k) VIRTUAL", f"{K}, a INT", FULL),
    ({("064", "a")}, f"{K}, a INT AS (k) VIRTUAL", f"{K}, a INT AS (k) STORED", FULL),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "source", "replica", "settings"), CASES)
def test_cases(expected: set[tuple[str, str | None]], source: str, replica: str, settings: ReplicaSettings):
    """Each pair of tables has these findings and no others."""
    assert found(source, replica, settings) == expected


def test_a_table_of_another_database_is_named():
    """Files that name databases in different ways are a common mistake."""
    (finding, _) = check_replica(schema(("t", K)), parse_schema(f"CREATE TABLE e.T ({K})"), FULL)
    assert (finding.code, finding.table) == ("NDB-R001", "d.t")
    assert finding.reason.endswith("; the replica has e.T")


def test_every_code_has_a_case():
    """The cases above cover the table of codes."""
    assert {f"NDB-R{number}" for case in CASES for number, _ in case[0]} == {rule.code for rule in RULES}


def test_codes_are_stable_and_unique():
    """The scheme of a code is a letter and three digits; codes ascend."""
    codes = [rule.code for rule in RULES]
    assert all(re.fullmatch(r"NDB-[A-Z]\d{3}", code) for code in codes)
    assert len(set(codes)) == len(codes)


def test_errors_have_an_effect():
    """A note is without effect, and anything worse has one."""
    assert all((rule.severity is ReplicaSeverity.NOTE) == (rule.effect is ReplicaEffect.NOTHING) for rule in RULES)


def test_type_conversions_are_read_in_any_spelling():
    """As SHOW VARIABLES prints them, or without ALL and with dashes."""
    assert parse_type_conversions(" all_lossy, non-lossy ") == {TypeConversion.ALL_LOSSY, TypeConversion.ALL_NON_LOSSY}
    assert parse_type_conversions("") == frozenset()
    with pytest.raises(SettingError, match="'SOME' is not known; it can hold ALL_LOSSY, ALL_NON_LOSSY"):
        parse_type_conversions("SOME")


TYPES = st.sampled_from(
    (
        *("INT", "INT UNSIGNED", "BIGINT", "DECIMAL(8,2)", "FLOAT", "VARCHAR(9)", "CHAR(9) CHARSET latin1", "TEXT"),
        *("BLOB", "ENUM('a','b')", "DATETIME(3)", "DATETIME", "BIT(5)", "JSON", "BINARY(4)"),
    )
)
ATTRIBUTES = st.sampled_from(["", "NOT NULL", "INVISIBLE", "NULL"])
SETTINGS = st.builds(
    ReplicaSettings,
    st.builds(Logging, st.sampled_from([effective_format(number) for number in (2, 3, 6, 7, 8, 9)]),
              st.sampled_from(RowImageRule)),
    st.frozensets(st.sampled_from(TypeConversion)),
    st.booleans(),
)  # fmt: skip


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """Return the columns and keys of a table."""
    names = draw(st.permutations(["a", "b", "c", "d"]))[: draw(st.integers(1, 4))]
    columns = ["k INT NOT NULL", *(f"{name} {draw(TYPES)} {draw(ATTRIBUTES)}" for name in names)]
    keys = draw(st.lists(st.sampled_from(["PRIMARY KEY (k)", "UNIQUE (k)"]), unique=True))
    return ", ".join(columns + keys)


def schema(*tables: tuple[str, str]) -> Schema:
    """Return tables from their names and bodies."""
    return parse_schema(";".join(f"CREATE TABLE {name} ({body})" for name, body in tables), database="d")


@given(bodies(), SETTINGS)
def test_a_table_and_its_copy_differ_in_nothing(body: str, settings: ReplicaSettings):
    """Only a table without a key is worth a warning."""
    same = schema(("t", body))
    assert {finding.code for finding in check_replica(same, same, settings)} <= {"NDB-R043"}
    assert ("KEY" in body or "UNIQUE" in body) == (check_replica(same, same, settings) == ())


@given(bodies(), bodies(), bodies(), bodies(), SETTINGS)
def test_names_and_order_of_tables_do_not_matter(one: str, two: str, three: str, four: str, settings: ReplicaSettings):
    """Tables swap their names, and files their order: the findings go with the tables."""
    before = check_replica(schema(("t", one), ("u", two)), schema(("t", three), ("u", four)), settings)
    after = check_replica(schema(("t", two), ("u", one)), schema(("u", three), ("t", four)), settings)
    swapped = {"d.t": "d.u", "d.u": "d.t"}
    renamed = {attrs.evolve(finding, table=swapped[finding.table]) for finding in after}
    assert renamed == set(before)


@given(bodies(), bodies(), SETTINGS, st.frozensets(st.sampled_from(["ALL_LOSSY", "ALL_NON_LOSSY"])))
def test_what_is_allowed_stops_no_applier(source: str, replica: str, settings: ReplicaSettings, more: frozenset[str]):
    """With more conversions allowed, no column stops the applier that did not stop it before."""
    wider = attrs.evolve(settings, conversions=settings.conversions | {TypeConversion[name] for name in more})
    tables = [schema(("t", body)).tables[0] for body in (source, replica)]
    assert _stopping(check_table(*tables, wider)) <= _stopping(check_table(*tables, settings))


@given(bodies(), bodies(), SETTINGS)
def test_full_images_ask_for_no_more_than_partial_ones(source: str, replica: str, settings: ReplicaSettings):
    """Every error under binlog_row_image=FULL is one under MINIMAL, too."""
    tables = [schema(("t", body)).tables[0] for body in (source, replica)]
    errors = [
        {
            finding
            for finding in check_table(*tables, _with_image(settings, rule))
            if finding.severity is ReplicaSeverity.ERROR
        }
        for rule in (RowImageRule.FULL, RowImageRule.MINIMAL)
    ]
    assert errors[0] <= errors[1]


def _with_image(settings: ReplicaSettings, rule: RowImageRule) -> ReplicaSettings:
    return attrs.evolve(settings, logging=Logging(row_image=rule), undeclared_is_ndb=False)


def _stopping(findings: tuple[Finding, ...]) -> set[tuple[str, str | None]]:
    return {("types", finding.column) for finding in findings if finding.code in ("NDB-R020", "NDB-R021")} | {
        (finding.code, finding.column)
        for finding in findings
        if finding.rule.effect is ReplicaEffect.STOPS and finding.code not in ("NDB-R020", "NDB-R021")
    }
