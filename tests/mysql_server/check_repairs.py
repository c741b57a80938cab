"""
Repairs, carried out by a real MySQL server: `make test-mysql` runs this; the name keeps it out of other test runs.

Every value of every type is compared and stored exactly; a file makes the rows of one side those of its plan, changes
nothing when it runs again, leaves a row alone that has moved on, and does nothing else whatever names and values hold.
"""

import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from conflict.operating.repairing.ended_run import EndedRun
from conflict.operating.repairing.planning import Wanted, planned
from conflict.operating.repairing.script import SETTINGS, Numbered, Script
from conflict.operating.repairing.sql_values import name_in_sql, sql_value, table_in_sql
from conflict.operating.repairing.statements import Payloads, RepairedRow, RowTable
from conflict.operating.repairing.winners import rules_of
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Column
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.json_values import JsonUint
from ndb_formats.types.values import Geometry, Vector
from tests.conflict.operating.repairing.test_repair import ended, folders
from tests.conflict.operating.repairing.test_sql import HOSTILE, NAMES, table_of
from tests.corpora import RECORDINGS
from tests.mysql_server.connection import Connection
from tests.mysql_server.server import Server, given_server

SEEN, EXPECTED, CANARY = "ndb_repair_seen", "ndb_repair_expected", "ndb_repair_canary"
PLAN, DONE = "0f" * 16, "all: done by an earlier run"
LOG_PLACE = "SHOW BINARY LOG STATUS"
SINGLE = struct.unpack("<f", struct.pack("<f", 0.1))[0]
DOCUMENTS = (
    *(
        [1, 2.5, "x\"y'\\"],
        {"a": None, "ä": "😀", "n": True},
        "",
        1.0,
        1e308,
        0.1,
        JsonUint(2**64 - 1),
        -1,
        {"*/": "`"},
    ),
    *([], {}, None, 5e-324, 123456789012345680.0, 0.1 + 0.2),
)
SPACES = " \t\n\v\f\r"
MANY = ",".join(f"'m{number}'" for number in range(64))
VALUES: Sequence[tuple[str, Sequence[Any]]] = [
    ("tinyint", (-128, 127)),
    ("bigint unsigned", (0, 2**64 - 1, 2**63)),
    ("bigint", (-(2**63), 2**63 - 1)),
    ("float", (SINGLE, 3.4028234663852886e38, 1.401298464324817e-45, 16777216.0, -1.5)),
    ("double", (0.1, 1.7976931348623157e308, 5e-324, -2.5, 1e22, 123456789.12345679)),
    (
        "decimal(65,30)",
        (Decimal("12345678901234567890123456789012345.123456789012345678901234567890"), Decimal("-1e-30")),
    ),
    ("bit(64)", (0, 2**64 - 1, 5)),
    ("bit(1)", (0, 1)),
    ("year", (0, 1901, 2155, 2000)),
    ("date", ("2026-11-27", "0000-00-00", "2026-02-31", "1000-00-01")),
    ("datetime(6)", ("2026-11-27 12:00:00.123456", "0000-00-00 00:00:00.000000", "9999-12-31 23:59:59.999999")),
    ("timestamp(3) null", ("1970-01-01 00:00:01.000", "2026-10-25 01:30:00.500", "0000-00-00 00:00:00.000")),
    ("time(6)", ("-838:59:59.000000", "00:00:00.000001", "838:59:59.000000", "-00:00:01.500000")),
    ("char(10) character set latin1", ("abc", "", "it's", "a\\b", "ABC")),
    ("varchar(40) character set utf8mb4", ("A", "a", "ä", "😀", "x\0y", "*/ -- '\"`\\", "  ", "a ", "a\nb", "a\x1a")),
    ("text character set utf8mb4", ("x" * 300, "ab")),
    ("varchar(20) character set ucs2", ("ab", "ä")),
    ("varchar(20) character set utf16", ("a😀", "b")),
    ("varchar(20) character set utf16le", ("aä", "b")),
    ("varchar(20) character set utf32", ("a😀", "b")),
    ("varchar(20) character set utf8mb3", ("ä", "a")),
    ("varchar(20) character set cp932", ("ソ", "a")),
    ("varchar(20) character set gbk", ("誠", "`")),
    ("varchar(20) character set big5", ("功", "\\")),
    ("varchar(20) character set sjis", ("表", "a")),
    ("varchar(20) character set gb18030", ("中😀", "a")),
    ("varchar(20) character set swe7", ("Aa", "b")),
    ("varchar(20) character set koi8r", ("ж", "a")),
    ("binary(4)", (b"a\0\0\0", b"\0\0\0\0", b"\xff'\\\0")),
    ("varbinary(10)", (b"", b"\0", b"'\\\xff")),
    ("blob", (b"\x00\xff" * 100, b"")),
    ("enum('a','b','it''s','ä') character set latin1", ("a", "it's", "ä")),
    ("set('x','y','z')", ("", "x,z")),
    (f"set({MANY})", (MANY.replace("'", ""), "m63")),
    ("json", tuple(JsonDocument.of(each) for each in DOCUMENTS)),
    (
        "geometry",
        (Geometry(struct.pack("<IBIdd", 0, 1, 1, 1, 2.5)), Geometry(struct.pack("<IBIdd", 4326, 1, 1, 1, 2.5))),
    ),
    ("vector(3)", (Vector(struct.pack("<3f", 0.1, -2, 3e38)), Vector(struct.pack("<3f", 0, 1, 2)))),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Return the server, or end the run with what is missing."""
    found = given_server()
    yield found
    for database in (SEEN, EXPECTED, CANARY):
        found.run(f"DROP DATABASE IF EXISTS {database}")


def anew(server: Server, *databases: str) -> None:
    """Make databases, without tables."""
    server.run(
        "".join(
            f"DROP DATABASE IF EXISTS {name_in_sql(each)}; CREATE DATABASE {name_in_sql(each)};" for each in databases
        )
    )


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[kind for kind, _ in VALUES])
def test_values_are_exact(server: Server, kind: str, values: Sequence[Any]) -> None:
    """Each value is stored as it is, by the server's own binary log, and equal to itself alone."""
    anew(server, SEEN)
    created = f"CREATE TABLE {SEEN}.t (id INT PRIMARY KEY, c {kind})"
    server.run(created)
    table = table_of(SEEN, "t", list(parse_create_table(created).columns))
    codec, column = table.layout.codecs[1], table.columns[1]
    payloads = [None, *(codec.encode(each) for each in values)]
    with Connection(server.setup.socket, server.setup.user) as session:
        for setting in SETTINGS:
            session.run(setting)
        found = [sql_value(column, codec, payload) for payload in payloads]
        for number, each in enumerate(found):
            session.run(f"INSERT INTO {SEEN}.t VALUES ({number}, {each.literal})")
        for number, each in enumerate(found):
            assert session.run(f"SELECT id FROM {SEEN}.t WHERE {each.condition('c')}") == [(str(number).encode(),)]


def definition(table: RowTable, database: str) -> str:
    """Return the statement that creates a table of a recording with another engine."""
    setup, _ = table.setup.shown
    parts = [_column(each) for each in setup.columns]
    parts.append(f"PRIMARY KEY ({', '.join(map(name_in_sql, setup.primary_key))})")
    return f"CREATE TABLE {table_in_sql(database, setup.name)} ({', '.join(parts)}) ENGINE=InnoDB"


def _column(column: Column) -> str:
    charset = f" CHARACTER SET {column.charset} COLLATE {column.collation}" if column.charset else ""
    generated = f" AS ({column.expression}) {column.generated}" if column.generated else ""
    return f"{name_in_sql(column.name)} {column.sql_type}{charset}{generated}{'' if column.nullable else ' NOT NULL'}"


def load(server: Server, table: RowTable, database: str, rows: Sequence[Payloads]) -> None:
    """Create a table in a database, and insert rows."""
    here = attrs.evolve(table, database=database)
    lines = [*SETTINGS, definition(table, database)]
    lines += [RepairedRow(here, "t", b"", None, row, frozenset(), "").sql for row in rows]
    server.run(";\n".join(lines))


def reported(server: Server, text: str) -> list[tuple[int, int, str]]:
    """Run a file with the real client; return, per transaction, rows changed, left alone, and the statements."""
    rows = [line.split("\t") for line in server.run(text).splitlines()]
    return [(int(changed), int(left), which) for _, changed, left, which in rows]


def checksums(server: Server, database: str, tables: Sequence[str]) -> dict[str, str]:
    """Return the checksum of each table."""
    return {
        name: server.run(f"CHECKSUM TABLE {table_in_sql(database, name)}").split("\t")[1].strip() for name in tables
    }


@pytest.mark.parametrize("folder", folders(RECORDINGS), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_files_do_what_their_plans_say(server: Server, folder: Path, tmp_path: Path) -> None:
    """Rows of a recording are loaded, the file runs: the rows of the plan; again: nothing; a row moved: left alone."""
    result, end = ended(folder, tmp_path / "result")
    for wins in end.clusters:
        plan = planned(
            end, Wanted(rules_of({"*": wins}, end.clusters, result.tables, deletes=True), rows_per_transaction=3)
        )
        for cluster, statements in plan.files:
            _judge(server, end, cluster, statements)


def _judge(server: Server, end: EndedRun, cluster: str, statements: Sequence[Numbered]) -> None:
    anew(server, SEEN, EXPECTED)
    tables = {each.repaired.name: each.repaired.table for each in statements}
    names = [table.setup.shown[0].name for table in tables.values()]
    repaired = {each.repaired.row: each.repaired for each in statements}
    for name, table in tables.items():
        own = [row for row in end.cluster(cluster).store.rows if row[0] == name]
        before = {row: table.stored(end.state(cluster, row)) for row in own}
        after = before | {row: each.after for row, each in repaired.items() if row[0] == name}
        load(server, table, SEEN, [row for row in before.values() if row is not None])
        load(server, table, EXPECTED, [row for row in after.values() if row is not None])
    here = [
        attrs.evolve(each, repaired=attrs.evolve(each.repaired, table=attrs.evolve(each.repaired.table, database=SEEN)))
        for each in statements
    ]
    script = Script(cluster, "1.sql", [], [attrs.evolve(each, sql=each.repaired.sql) for each in here], PLAN)
    loaded, expected = checksums(server, SEEN, names), checksums(server, EXPECTED, names)
    assert loaded != expected
    done = reported(server, script.text)
    assert sum(changed for changed, _, _ in done) == len(statements)
    assert all(left == 0 for _, left, _ in done)
    assert checksums(server, SEEN, names) == expected
    place = server.run(LOG_PLACE)
    again = reported(server, script.text)
    assert server.run(LOG_PLACE) == place
    assert sum(left for _, left, _ in again) == len(statements)
    assert all(changed == 0 for changed, _, _ in again)
    assert checksums(server, SEEN, names) == expected


def test_a_row_that_moved_on_is_left_alone(server: Server) -> None:
    """One row of several was changed since: it keeps that, the report has its statement, the others are repaired."""
    anew(server, SEEN)
    table = table_of(
        SEEN,
        "t",
        [
            Column("k", "int", nullable=False),
            Column("x", "varchar", 9, charset="utf8mb4", collation="utf8mb4_0900_ai_ci"),
        ],
    )

    def row(key: int, text: str) -> dict[int, bytes | None]:
        return {0: key.to_bytes(4, "little"), 1: text.encode()}

    load(server, table, SEEN, [row(key, "a") for key in (1, 2, 3)])
    server.run(f"UPDATE {SEEN}.t SET x = 'A' WHERE k = 2")
    rows = [RepairedRow(table, "t", b"", row(key, "a"), row(key, "b"), frozenset({1}), "") for key in (1, 2)]
    rows += [RepairedRow(table, "t", b"", row(3, "a"), None, frozenset(), "")]
    rows += [RepairedRow(table, "t", b"", None, row(key, "new"), frozenset(), "") for key in (2, 4)]
    statements = [Numbered(number, 1, "equal", each, "", each.sql) for number, each in enumerate(rows, start=1)]
    assert reported(server, Script("A", "1.sql", [], statements, PLAN).text) == [(3, 2, "2 4")]
    assert server.run(f"SELECT k, x FROM {SEEN}.t ORDER BY k").split() == ["1", "b", "2", "A", "4", "new"]


def test_what_users_change_after_a_run_stays(server: Server, tmp_path: Path) -> None:
    """
    Rows that are as before the first run again are left alone by a second one; another plan repairs them.

    Of the notes, which tell that, nothing is in the binary log.
    """
    anew(server, SEEN)
    table = table_of(SEEN, "t", [Column("k", "int", nullable=False), Column("x", "int")])

    def row(key: int, value: int) -> dict[int, bytes | None]:
        return {0: key.to_bytes(4, "little"), 1: value.to_bytes(4, "little")}

    load(server, table, SEEN, [row(1, 1), row(2, 1)])
    changes = [(row(1, 1), row(1, 2), frozenset({1})), (row(2, 1), None, frozenset()), (None, row(3, 1), frozenset())]
    rows = [RepairedRow(table, "t", b"", *each, "") for each in changes]
    statements = [Numbered(number, number, "equal", each, "", each.sql) for number, each in enumerate(rows, start=1)]
    first, other = (Script("A", "1.sql", [], statements, plan).text for plan in (PLAN, "1e" * 16))
    assert reported(server, first) == [(1, 0, "")] * 3
    server.run(f"UPDATE {SEEN}.t SET x = 1 WHERE k = 1; INSERT INTO {SEEN}.t VALUES (2, 1)")
    server.run(f"DELETE FROM {SEEN}.t WHERE k = 3")
    assert reported(server, first) == [(0, 1, DONE)] * 3
    assert server.run(f"SELECT k, x FROM {SEEN}.t ORDER BY k").split() == ["1", "1", "2", "1"]
    assert reported(server, other) == [(1, 0, "")] * 3
    assert server.run(f"SELECT k, x FROM {SEEN}.t ORDER BY k").split() == ["1", "2", "3", "1"]
    assert server.run(f"SELECT plan_id, transaction_number FROM {SEEN}.ndb_conflict_repairs").count(PLAN) == 3
    logged = server.own_log(tmp_path).read_bytes()
    assert SEEN.encode() in logged
    assert b"ndb_conflict_repairs" not in logged


def test_a_file_that_ended_early_goes_on(server: Server) -> None:
    """The second transaction fails; once its cause is gone, another run does it and the third, and not the first."""
    anew(server, SEEN)
    table = table_of(SEEN, "t", [Column("k", "int", nullable=False), Column("x", "int")])
    load(server, table, SEEN, [])
    rows = [{0: key.to_bytes(4, "little"), 1: key.to_bytes(4, "little")} for key in (1, 2, 3)]
    inserts = [RepairedRow(table, "t", b"", None, each, frozenset(), "") for each in rows]
    statements = [Numbered(number, number, "equal", each, "", each.sql) for number, each in enumerate(inserts, start=1)]
    text = Script("A", "1.sql", [], statements, PLAN).text
    server.run(f"ALTER TABLE {SEEN}.t ADD CONSTRAINT two CHECK (k <> 2)")
    with pytest.raises(AssertionError, match="two"):
        reported(server, text)
    server.run(f"ALTER TABLE {SEEN}.t DROP CHECK two; DELETE FROM {SEEN}.t WHERE k = 1")
    assert reported(server, text) == [(0, 1, DONE), (1, 0, ""), (1, 0, "")]
    assert server.run(f"SELECT k, x FROM {SEEN}.t ORDER BY k").split() == ["2", "2", "3", "3"]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    names=st.lists(NAMES, min_size=4, max_size=4, unique_by=str.lower), texts=st.lists(HOSTILE, min_size=5, max_size=5)
)
def test_nothing_breaks_out(server: Server, names: list[str], texts: list[str]) -> None:
    """Hostile names and values through the real client and parser: the row changes, and nothing else."""
    name, *columns = names
    assume(all(each[-1] not in SPACES and max(each) < "\U00010000" for each in names))  # as servers ask
    kinds = [("int", {}), ("varchar", {"length": 200, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"})]
    table = table_of(
        SEEN,
        name,
        [
            Column(columns[0], kinds[0][0], nullable=False),
            *(Column(each, kinds[1][0], **kinds[1][1]) for each in columns[1:]),
        ],
    )
    anew(server, SEEN, CANARY)
    server.run(f"CREATE TABLE {CANARY}.t (k INT PRIMARY KEY); INSERT INTO {CANARY}.t VALUES (1)")
    key = (7).to_bytes(4, "little")
    before, after = ({0: key, 1: first.encode(), 2: second.encode()} for first, second in (texts[:2], texts[2:4]))
    assume(before != after)
    load(server, table, SEEN, [before])
    repaired = RepairedRow(table, "t", b"", before, after, frozenset({1, 2}), texts[4])
    script = Script("A", "1.sql", texts, [Numbered(1, 1, "equal", repaired, texts[4], repaired.sql)], PLAN)
    assert reported(server, script.text) == [(1, 0, "")]
    assert reported(server, script.text) == [(0, 1, DONE)]
    shown_columns = ", ".join(f"HEX({name_in_sql(each)})" for each in columns[1:])
    shown = server.run(f"{SETTINGS[1]}; SELECT {shown_columns} FROM {table.name}")
    assert shown.rstrip("\n").split("\t") == [after[place].hex().upper() for place in (1, 2)]
    assert server.run(f"SELECT COUNT(*) FROM {CANARY}.t").strip() == "1"
    assert server.run(f"SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{SEEN}'").strip() == "2"
