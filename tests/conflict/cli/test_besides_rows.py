"""What an NDB log holds besides its rows: other engines, changes as statements, incidents."""

import re
import struct
from pathlib import Path

import attrs
import pytest

from ndb_formats.errors import TruncatedError
from ndb_formats.events.control_events import IncidentEvent, decode_incident, encode_incident
from ndb_formats.events.logged_statement import changed_tables, changes_rows
from ndb_formats.schema.session import Session, SqlMode
from tests.conflict.cli.commands import invoke
from tests.conflict.raw_events import LONG, QUERY, TABLE_MAP, WRITE, XID, Raw, payload
from tests.conflict.spliced_logs import run_with
from tests.ndb_formats.building import query_body, rows_body, table_map_body

DEMO = Path("conflict/demo")
NAMES = bytes([2]) + b"id" + bytes([1]) + b"v"  # of binlog_row_metadata=FULL
FULL = [(4, NAMES), (8, b"\0")]  # column names, and the primary key
BEGIN, COMMIT, END = (QUERY, 1, query_body(b"f", b"BEGIN")), (QUERY, 1, query_body(b"f", b"COMMIT")), (XID, 1, bytes(8))
INSIDE = (0, 3, 10)  # after as many transactions of the recording


def insert(table: bytes, *, full: bool = False, database: bytes = b"f", commit: Raw = END) -> list[Raw]:
    """Return a transaction of another engine that writes one row of two integers."""
    described = table_map_body(LONG + LONG, table_id=999, database=database, table=table, optional=FULL if full else ())
    row = rows_body(b"\0" + struct.pack("<II", 1, 2), 2, [[0, 1]], table_id=999)
    return [BEGIN, (TABLE_MAP, 1, described), (WRITE, 1, row), commit]


def query(text: bytes) -> Raw:
    """Return a Query event."""
    return QUERY, 1, query_body(b"f", text)


def xa(table: bytes, *, one_phase: bool = False) -> list[Raw]:
    """Return an XA transaction of another engine, up to where it is prepared or committed."""
    body = bytes([one_phase]) + struct.pack("<III", 1, 1, 0) + b"x"
    _, *rows, _ = insert(table)
    return [query(b"XA START X'78',X'',1"), *rows, query(b"XA END X'78',X'',1"), (XA_PREPARE, 1, body)]


XA_PREPARE = 38
DECLARED = "CREATE TABLE f.t (id INT PRIMARY KEY, v INT);"
OTHERS = {
    "InnoDB, declared": (insert(b"t"), "CREATE TABLE f.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB;"),
    "InnoDB, no engine": (insert(b"t"), "CREATE TABLE f.t (id INT PRIMARY KEY, v INT);"),
    "InnoDB, unique key": (insert(b"t"), "CREATE TABLE f.t (id INT NOT NULL UNIQUE, v INT) ENGINE=InnoDB;"),
    "InnoDB, metadata": (insert(b"t", full=True), ""),
    "InnoDB, metadata, key": (insert(b"t", full=True), "CREATE TABLE f.t (id INT NOT NULL UNIQUE, v INT);"),
    "MyISAM": (insert(b"t", commit=COMMIT), "CREATE TABLE f.t (id INT, v INT) ENGINE=MyISAM;"),
    "created there": (
        [(QUERY, 1, query_body(b"f", b"CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB")), *insert(b"t")],
        "",
    ),
    "several": ([*insert(b"t"), *insert(b"u"), *insert(b"t")], "CREATE TABLE f.t (id INT PRIMARY KEY, v INT);"),
    "XA": ([*xa(b"t"), query(b"XA COMMIT X'78',X'',1"), *insert(b"u")], DECLARED),
    "XA in one phase": ([*xa(b"t", one_phase=True), *insert(b"u")], DECLARED),
    "XA with a rollback": ([*xa(b"t"), query(b"XA ROLLBACK X'78',X'',1"), *insert(b"u")], DECLARED),
    "rollback": (insert(b"t", commit=query(b"ROLLBACK")), DECLARED),
    "rollback to a savepoint": (
        [*insert(b"t")[:3], query(b"SAVEPOINT a"), *insert(b"t")[1:3], query(b"ROLLBACK TO a"), END],
        DECLARED,
    ),
    "mysql": (insert(b"time_zone", database=b"mysql"), ""),
}


@pytest.mark.parametrize(
    ("name", "after"),
    [
        pytest.param(name, after, marks=() if after == INSIDE[number % 3] else pytest.mark.slow)
        for number, name in enumerate(OTHERS)
        for after in INSIDE
    ],
)
def test_other_engines_are_no_part_of_a_run(name: str, after: int, tmp_path: Path):
    """
    The result is that of the recording; a note names the table, if it is not one of the server's own.

    The engines say the same, with the same examples.
    """
    raws, schema = OTHERS[name]
    run = run_with(tmp_path, DEMO, raws, after=after, schema=schema)
    told = set[str]()
    for engine in ("local", "reference"):
        code, shown = invoke("resolve", run, "--engine", engine, "--out", tmp_path / engine)
        assert "All 81 row changes by appliers in the binlogs agree." in shown
        assert code == 0
        assert ("no part of the run" in shown or "no parts of the run" in shown) == (name != "mysql")
        told.add(shown[shown.index("What the appliers did") : shown.index("Results are in")])
    assert len(told) == 1


def test_a_table_that_declares_ndb_needs_an_epoch(tmp_path: Path):
    """Its transaction has none: the log is read up to there."""
    schema = "CREATE TABLE f.t (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=NDB;"
    run = run_with(tmp_path, DEMO, insert(b"t"), after=3, schema=schema)
    code, shown = invoke("resolve", run, "--out", tmp_path / "out")
    assert "has no mysql.ndb_apply_status row" in shown
    assert code == 3


LOST = (26, 1, encode_incident(IncidentEvent(1, "cluster disconnect")))
STATEMENT = [BEGIN, (QUERY, 1, query_body(b"cft", b"INSERT INTO t1 VALUES (1,1,1,'x')")), COMMIT]
JOINED = [BEGIN, (QUERY, 1, query_body(b"cft", b"UPDATE plain AS p JOIN t1 AS q SET p.v = 1, q.v = 2")), COMMIT]
LONG_TEXT = [BEGIN, (QUERY, 1, query_body(b"cft", b"INSERT INTO t1 VALUES (1,1,1,'%s')" % (b"x" * 500))), COMMIT]
UNREAD = [BEGIN, (QUERY, 1, query_body(b"cft", b"INSERT INTO (t1) VALUES ('open")), COMMIT]
CALLED = [BEGIN, (QUERY, 1, query_body(b"cft", b"SELECT f() FROM t1")), COMMIT]
PLAIN = [BEGIN, (QUERY, 1, query_body(b"cft", b"/* app */ UPDATE cft.plain SET v = 1")), COMMIT]


def execute_load_query(database: bytes, text: bytes) -> bytes:
    """Return the body of an Execute_load_query event: a Query event with four more fields before its status."""
    query = query_body(database, text)
    return query[:13] + struct.pack("<IIIB", 1, 10, 20, 0) + query[13:]


LOADED = [BEGIN, (18, 1, execute_load_query(b"cft", b"LOAD DATA INFILE 'x' INTO TABLE `t1` (k)")), COMMIT]


@pytest.mark.parametrize(
    ("raws", "code", "said"),
    [
        ([LOST], 3, "incident 1, LOST_EVENTS (cluster disconnect)"),
        (PLAIN, 4, "1 change is logged as a statement and is not among the rows"),
        (STATEMENT, 1, "1 change is logged as a statement and is not among the rows, on cft.t1, for which"),
        (JOINED, 1, "1 change is logged as a statement and is not among the rows, on cft.t1, for which"),
        (LONG_TEXT, 1, "1 change is logged as a statement and is not among the rows, on cft.t1, for which"),
        (
            UNREAD,
            1,
            "1 change is logged as a statement and is not among the rows, and may have changed cft.t1, for which",
        ),
        (CALLED, 4, "1 change is logged as a statement and is not among the rows; the first is at"),
        (LOADED, 1, "1 change is logged as a statement and is not among the rows, on cft.t1, for which"),
        ([payload(PLAIN)], 4, "1 change is logged as a statement and is not among the rows"),
        ([payload(STATEMENT)], 1, "1 change is logged as a statement and is not among the rows, on cft.t1, for which"),
    ],
)
def test_what_is_not_among_the_rows_is_said(raws: list[Raw], code: int, said: str, tmp_path: Path):
    """With its place; on a table with a conflict function it contradicts the result."""
    run = run_with(tmp_path, DEMO, raws, after=3)
    binlog, schema = tmp_path / "A.binlog.000001", tmp_path / "schema.sql"
    found, shown = invoke("resolve", run, "--out", tmp_path / "out")
    assert (found, said in shown, "position " in shown) == (code, True, True)
    found, shown = invoke("compare", run, "--functions", "NDB$EPOCH()@A")
    assert (found, said in shown) == (code, True)
    part = re.split(", on |, and may|; the", said)[0]
    for command in (
        ("decode", "--format", "json", "-r", tmp_path / "rows.json", binlog),
        ("decode", "--format", "csv", "-r", tmp_path / "rows", binlog),
        ("sizes", "--schema", schema, binlog),
        ("ingest", run, "--out", tmp_path / "history"),
    ):
        found, shown = invoke(*command)
        assert (found, part in shown) == (4, True), command


def test_an_incident_in_text(tmp_path: Path):
    """Is printed as mysqlbinlog does."""
    run_with(tmp_path, DEMO, [LOST], after=3)
    invoke("decode", "-r", tmp_path / "text", tmp_path / "A.binlog.000001")
    text = (tmp_path / "text").read_text(encoding="utf-8")
    assert "\n# Incident: LOST_EVENTS\nRELOAD DATABASE; # Shall generate syntax error\n" in text


def test_incident_events():
    """Number, length and message."""
    event = decode_incident(b"\x01\x00\x03abc")
    assert (event.number, event.name, event.message) == (1, "LOST_EVENTS", "abc")
    assert encode_incident(event) == b"\x01\x00\x03abc"
    with pytest.raises(TruncatedError):
        decode_incident(b"\x01\x00\x04abc")


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("INSERT INTO t VALUES (1)", "d.t"),
        ("INSERT INTO t SELECT * FROM u", "d.t"),
        ("UPDATE t AS a JOIN e.u b ON a.i = b.i SET b.x = 1, a.y = 2 WHERE a.i = 1", "d.t e.u"),
        ("UPDATE t a, u SET a.x = (SELECT MAX(v.x) FROM v), a.y = u.y", "d.t"),
        ("UPDATE t LEFT JOIN (u, v) ON t.i = u.i SET x = 1", "d.t d.u d.v"),
        ("UPDATE t JOIN (SELECT 1 AS i FROM w) AS q ON t.i = q.i SET x = 1", "d.t"),
        ("UPDATE `a.b`.t SET e.u.x = 1", "e.u"),
        ("UPDATE t SET x = 1", "d.t"),
        ("DELETE a, e.u.* FROM t AS a JOIN e.u WHERE a.i = u.i", "d.t e.u"),
        ("DELETE FROM a, b USING t AS a JOIN u AS b JOIN v ON a.i = v.i", "d.t d.u"),
        ("DELETE FROM t AS a WHERE a.i = 1", "d.t"),
        ("WITH q AS (SELECT i FROM w) DELETE t FROM t JOIN q ON t.i = q.i", "d.t"),
        ("WITH q AS (SELECT i FROM w) UPDATE t JOIN q ON t.i = q.i SET t.x = 1", "d.t"),
        ("insert low_priority ignore t set a = 1", "d.t"),
        ("REPLACE e.t VALUES (1)", "e.t"),
        ("/* x */ DELETE QUICK FROM `t` WHERE a = 1", "d.t"),
        ("-- x\nUPDATE t SET a = 1", "d.t"),
        ("LOAD DATA INFILE 'x' INTO TABLE t", "d.t"),
        ("CREATE TABLE t (a INT) SELECT 1 AS a", "d.t"),
        ("CALL p()", ""),
        ("SELECT f()", ""),
    ],
)
def test_statements_that_change_rows(text: str, tables: str):
    """And the tables that they change, or may change."""
    assert changes_rows(text)
    assert changed_tables(text, "d", Session()) == set(tables.split())


def test_names_are_quoted_as_the_session_says():
    """Double quotes are names under ANSI_QUOTES."""
    ansi = attrs.evolve(Session(), sql_mode=SqlMode.ANSI_QUOTES)
    assert changed_tables('UPDATE "t" SET "x" = 1', "d", ansi) == {"d.t"}


NO_CHANGES = """
BEGIN; COMMIT; SAVEPOINT a; SET @a = 1; CREATE TABLE t (a INT); CREATE VIEW v AS SELECT 1; GRANT SELECT ON t TO u;
TRUNCATE t; XA START 'x'; FLUSH TABLES; ANALYZE TABLE t; # Dum; CREATE PROCEDURE p() INSERT INTO t SELECT 1
"""


@pytest.mark.parametrize("text", [each.strip() for each in NO_CHANGES.split(";")])
def test_statements_that_change_no_rows(text: str):
    """Control, definitions, and what a program would change if it were called."""
    assert not changes_rows(text)
