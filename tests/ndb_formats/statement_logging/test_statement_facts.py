"""What is read from the words of a statement; the expected tables are worked out by hand."""

import pytest

from ndb_formats.statement_logging.references import SAFE_FUNCTIONS, UNSAFE_FUNCTIONS
from ndb_formats.statement_logging.sql_text import split_statements
from ndb_formats.statement_logging.statement_facts import statement_facts
from ndb_formats.statement_logging.statement_kinds import Action, StatementFacts


def facts_of(sql: str) -> StatementFacts:
    """Return the facts of the one statement of a text."""
    (statement,) = split_statements(sql)
    return statement_facts(statement)


@pytest.mark.parametrize(
    ("sql", "action", "written", "read"),
    [
        ("INSERT INTO t VALUES (1)", "INSERT", "t", ""),
        ("INSERT IGNORE d.t (a, b) SELECT a, b FROM u JOIN v USING (a)", "INSERT", "d.t", "u v"),
        ("INSERT INTO t SET a = (SELECT MAX(b) FROM u)", "INSERT", "t", "u"),
        ("INSERT INTO t (a) WITH q AS (SELECT b FROM u) SELECT b FROM q", "INSERT", "t", "u"),
        ("INSERT LOW_PRIORITY INTO t PARTITION (p0) VALUES (1)", "INSERT", "t", ""),
        ("REPLACE INTO t TABLE u LIMIT 1", "REPLACE", "t", "u"),
        ("INSERT INTO t SELECT EXTRACT(DAY FROM d), TRIM(LEADING 'x' FROM s) FROM u", "INSERT", "t", "u"),
        ("INSERT INTO t SELECT * FROM (SELECT a FROM u) AS x, v WHERE a IN (SELECT b FROM w)", "INSERT", "t", "u v w"),
        ("INSERT INTO t SELECT j.x FROM JSON_TABLE('[1]', '$[*]' COLUMNS (x INT PATH '$')) AS j", "INSERT", "t", ""),
        ("INSERT INTO t SELECT 1 FROM DUAL", "INSERT", "t", ""),
        ("UPDATE t SET a = 1 WHERE b IN (SELECT c FROM u)", "UPDATE", "t", "u"),
        ("WITH q AS (SELECT 1 AS x FROM u) UPDATE t JOIN q ON t.a = q.x SET t.a = 2", "UPDATE", "t", ""),
        ("DELETE FROM t AS x WHERE x.a = 1", "DELETE", "t", ""),
        ("DELETE x, d.y.* FROM t AS x JOIN d.y JOIN z", "DELETE", "t d.y", "z"),
        ("DELETE FROM t USING t JOIN u ON t.a = u.a", "DELETE", "t", "u"),
        ("LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE t FIELDS TERMINATED BY ',' (a, @b)", "LOAD DATA", "t", ""),
        ("CREATE TABLE t (a INT) IGNORE SELECT a FROM u", "CREATE TABLE", "t", "u"),
        ("CREATE TEMPORARY TABLE t AS (SELECT a FROM u)", "CREATE TABLE", "t", "u"),
        ("CREATE UNIQUE INDEX i ON t (a)", "definition of tables", "t", ""),
        ("DROP TABLE IF EXISTS t, d.u", "definition of tables", "t d.u", ""),
        ("SELECT a FROM t FOR UPDATE", "query", "", "t"),
        ("(SELECT a FROM t) UNION (SELECT a FROM u)", "query", "", "t u"),
        ("SELECT * FROM t NATURAL LEFT JOIN (u, v) STRAIGHT_JOIN w", "query", "", "t u v w"),
    ],
)  # fmt: skip
def test_tables(sql: str, action: str, written: str, read: str) -> None:
    """Targets and reads, in order; common table expressions are no tables."""
    facts = facts_of(sql)
    names = [[f"{each.database}.{each.name}".lstrip(".") for each in group] for group in (facts.targets, facts.reads)]
    assert (facts.action.value, *names) == (action, written.split(), read.split())


@pytest.mark.parametrize(
    ("sql", "action"),
    [
        ("GRANT SELECT ON *.* TO u", Action.DEFINITION),
        ("SET PASSWORD FOR u = 'x'", Action.DEFINITION),
        ("SET DEFAULT ROLE NONE TO u", Action.DEFINITION),
        ("SET sort_buffer_size = 1", Action.CONTROL),
        ("ANALYZE TABLE t", Action.DEFINITION),
        ("ANALYZE LOCAL TABLE t", Action.OTHER),
        ("OPTIMIZE NO_WRITE_TO_BINLOG TABLE t", Action.OTHER),
        ("FLUSH TABLES t", Action.DEFINITION),
        ("FLUSH TABLES WITH READ LOCK", Action.OTHER),
        ("FLUSH TABLES t FOR EXPORT", Action.OTHER),
        ("FLUSH BINARY LOGS", Action.OTHER),
        ("CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')", Action.OTHER),
        ("CREATE USER u", Action.DEFINITION),
        ("RENAME TABLE t TO u", Action.DEFINITION),
        ("CHECK TABLE t", Action.OTHER),
        ("SHOW TABLES", Action.OTHER),
        ("EXPLAIN DELETE FROM t LIMIT 1", Action.OTHER),
        ("BINLOG 'x'", Action.BINLOG),
        ("UPDATE", Action.UNKNOWN),
        ("UPSERT INTO t VALUES (1)", Action.UNKNOWN),
        ("INSERT INTO", Action.UNKNOWN),
    ],
)
def test_actions(sql: str, action: Action) -> None:
    """Definitions are logged, what is local is not; what cannot be read is unknown."""
    assert facts_of(sql).action is action


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("INSERT INTO t VALUES (1)", True),
        ("INSERT IGNORE INTO t VALUES (1)", None),
        ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1", None),
        ("INSERT INTO t SELECT 1", None),
        ("REPLACE INTO t VALUES (1)", None),
        ("UPDATE t SET a = 1", None),
        ("UPDATE t SET a = 1 LIMIT 0", False),
        ("DELETE FROM t WHERE FALSE", False),
        ("DELETE FROM t WHERE 1 = 0", False),
        ("DELETE FROM t WHERE 1 = 1", None),
        ("DELETE FROM t WHERE a = 0", None),
    ],
)
def test_rows(sql: str, rows: bool | None) -> None:
    """Whether the text alone tells that rows change."""
    assert facts_of(sql).rows is rows


def test_functions_and_variables() -> None:
    """What is called, by name; strings, comments, columns and lists of columns are nothing that is called."""
    facts = facts_of(
        "INSERT /* RAND() */ INTO user (id, version) VALUES ('UUID()', CURRENT_USER), (d.f(@x := 2), NOW()) "
        "AS new(m, n) ON DUPLICATE KEY UPDATE id = CAST(n AS CHAR(9)), version = @@global.time_zone, x = @@time_zone"
    )
    called = [(database, name) for database, name in facts.functions if name.upper() not in SAFE_FUNCTIONS]
    assert called == [("", "CURRENT_USER"), ("d", "f")]
    assert facts.variables == ("global.time_zone",)


def test_no_function_is_safe_and_unsafe() -> None:
    """The two lists have nothing in common."""
    assert not SAFE_FUNCTIONS & UNSAFE_FUNCTIONS


def test_bodies_are_one_statement() -> None:
    """With and without DELIMITER; CASE and IF do not end a body."""
    body = (
        "BEGIN IF x THEN DELETE FROM t; END IF; SELECT CASE 1 WHEN 1 THEN 2 END; "
        "CASE x WHEN 1 THEN SELECT 1; END CASE; END"
    )
    plain = f"CREATE PROCEDURE p(x INT) {body}; SELECT ';'; SELECT 2"
    delimited = f"DELIMITER //\nCREATE PROCEDURE p(x INT) {body}//\nDELIMITER ;\nSELECT ';'; SELECT 2;\n"
    for text in (plain, delimited):
        first, *others = [statement.text for statement in split_statements(text)]
        assert first.endswith("END")
        assert others == ["SELECT ';'", "SELECT 2"]
