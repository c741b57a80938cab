"""Query: a statement and its database."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.errors import TruncatedError
from ndb_formats.events.logged_statement import definitions_following, statement_of
from ndb_formats.events.query_event import QueryEvent, decode_query, encode_query, session_of
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.definitions import Definitions
from ndb_formats.schema.session import Session, SqlMode
from tests.ndb_formats.building import query_body


@pytest.mark.parametrize(
    ("database", "statement", "status"),
    [
        (b"", b"BEGIN", b""),
        (b"db", b"COMMIT", bytes.fromhex("00000000000120000000000000000603737464")),
        (b"db", b"", b"x" * 300),
        ("größe".encode(), "CREATE TABLE `ä` (a INT) COMMENT '€'".encode(), b"\0"),
    ],
)
def test_query(database: bytes, statement: bytes, status: bytes):
    """Database and statement are UTF-8; the session's variables are kept as they stand."""
    event = decode_query(query_body(database, statement, status))
    assert (event.database, event.statement, event.status) == (database.decode(), statement.decode(), status)


def test_numbers_of_a_query():
    """Thread id, seconds and error number stand before and after the size of the database name."""
    body = bytes.fromhex("2a000000 03000000 01 ff04 0000") + b"d\0DROP TABLE t"
    assert decode_query(body) == QueryEvent("d", "DROP TABLE t", thread_id=42, seconds=3, error=1279)
    assert encode_query(decode_query(body)) == body


def test_a_statement_that_is_not_utf8_survives():
    """Bytes that are not UTF-8 become lone surrogates."""
    assert decode_query(query_body(b"d", b"caf\xe9")).statement == "caf\udce9"


@given(st.binary(max_size=10), st.binary(max_size=10), st.binary(max_size=10))
def test_only_the_statement_may_be_cut(database: bytes, statement: bytes, status: bytes):
    """Every prefix that ends before the statement is a truncation; a statement lasts as long as the body."""
    body = query_body(database, statement, status)
    start = len(body) - len(statement)
    for length in range(len(body)):
        if length < start:
            with pytest.raises(TruncatedError):
                decode_query(body[:length])
        else:
            cut = decode_query(body[:length]).statement.encode("utf-8", "surrogateescape")
            assert cut == statement[: length - start]


def session(status: str, server: str = "9.7.4") -> Session:
    """Return the session that variables tell, given as hexadecimal digits."""
    return session_of(QueryEvent("d", "BEGIN", status=bytes.fromhex(status), server=server))


@pytest.mark.parametrize(
    ("sql_mode", "expected"),
    [
        (0x45A00020, SqlMode.STRICT_TRANS_TABLES),
        (0x45800020, SqlMode(0)),
        (0x45A00024, SqlMode.STRICT_TRANS_TABLES | SqlMode.ANSI_QUOTES),
        (0x45900021, SqlMode.NO_BACKSLASH_ESCAPES | SqlMode.REAL_AS_FLOAT),
    ],
)
def test_sql_mode(sql_mode: int, expected: SqlMode):
    """Bits of the variable of 8 bytes that follows the flags."""
    assert session("00 00000000 01" + sql_mode.to_bytes(8, "little").hex() + "0603737464").sql_mode == expected
    assert session("").sql_mode == SqlMode(0)


def test_character_sets_of_a_session():
    """The client's, the connection's and the server's follow type 4; type 8 is the default database's."""
    found = session("04 1c00 1c00 0800 08 2100")
    assert (found.charset, found.server_charset) == (
        ("utf8mb3", "utf8mb3_general_ci"),
        ("latin1", "latin1_swedish_ci"),
    )


def test_default_collations():
    """Of MySQL type 18, for utf8mb4; of MariaDB type 131, which names any number of character sets."""
    assert session("12 2d00").default_collation("utf8mb4") == "utf8mb4_general_ci"
    assert session("83 02 2d00 e000 0800 0f00", "11.6.2-MariaDB").collations == {
        "utf8mb4": "utf8mb4_unicode_ci",
        "latin1": "latin1_danish_ci",
    }


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("5.7.44-ndb-7.6.28", "utf8mb4_general_ci"),
        ("8.0.34-ndb-8.0.34", "utf8mb4_0900_ai_ci"),
        ("10.11.6-MariaDB-log", "utf8mb4_general_ci"),
    ],
)
def test_the_servers_default_collation(server: str, expected: str):
    """Without a variable, the version of the server tells it."""
    assert session("", server).default_collation("utf8mb4") == expected


ALL = (  # one variable of each type, with the bytes that the servers' sources give it
    "00 00000000 01 0000000000000000 02 03737464 00 03 01000100 04 2d002d002d00 05 06 53595354454d 06 03737464 07 0000"
    "08 2d00 09 0000000000000000 0a 00000000 0b 01 61 01 62 0c 02 6100 6200 0d 000000 10 00 11 0000000000000000"
    "13 01 14 00 80 000000 81 0000000000000000 82 00 82 04 0000000000000000 83 01 08000f00"
)


def test_every_variable_is_stepped_over():
    """Type 18 behind all others is found; behind one that is not known it is not."""
    assert session(ALL + "12 2e00").collations["utf8mb4"] == "utf8mb4_bin"
    assert session(ALL + "7f 12 2e00").collations == {"latin1": "latin1_danish_ci"}


def test_timestamps_as_declared():
    """A variable of MySQL, a flag of MariaDB; before them, servers completed definitions."""
    assert not session("10 00").explicit_timestamps
    assert session("10 01").explicit_timestamps
    assert not session("", "5.7.44").explicit_timestamps
    assert not session("00 00000000", "10.11.6-MariaDB").explicit_timestamps
    assert session("00 00000001", "10.11.6-MariaDB").explicit_timestamps


@pytest.mark.parametrize(
    ("collation", "logged", "statement"),
    [
        (28, "CREATE TABLE t (`碶` INT)", "gbk"),  # its second byte is a backtick
        (13, "CREATE TABLE t (a ENUM('表'))", "shift_jis"),  # its second byte is a backslash
        (51, "CREATE TABLE `Ж` (a INT)", "cp1251"),
        (8, "CREATE TABLE `tä` (a INT)", "cp1252"),
    ],
)
def test_a_statement_in_the_clients_character_set(collation: int, logged: str, statement: str):
    """It is read in that, and written back as it was."""
    status = b"\x04" + 3 * collation.to_bytes(2, "little")
    body = query_body(b"d", logged.encode(statement), status)
    event = decode_query(body)
    assert event.statement == logged
    assert event.logged_text == logged.encode(statement)
    assert encode_query(event) == body


@pytest.mark.parametrize(
    ("status", "logged", "statement"),
    [
        ("04080008000800", "CREATE TABLE `t` (\n  `größe` int(11) DEFAULT NULL\n)".encode(), "größe"),
        ("04080008000800", "CREATE TABLE `t` (\n  `größe` int(11) DEFAULT NULL\n)".encode("cp1252"), "größe"),
        ("0408000800080081075a030000000000", "CREATE TABLE `t` (\n  `größe` int\n)".encode(), "grÃ¶ÃŸe"),
        ("04080008000800", "CREATE TABLE `t` (`größe` INT)".encode(), "grÃ¶ÃŸe"),
    ],
)
def test_mariadb_makes_the_text_of_create_table_select(status: str, logged: bytes, statement: str):
    """That is UTF-8, laid out as SHOW CREATE TABLE has it, and without a number; others are the client's."""
    event = decode_query(query_body(b"d", logged, bytes.fromhex(status)), "10.11.19-MariaDB")
    assert statement in event.statement
    assert event.logged_text == logged


def test_texts_in_expressions_of_a_made_statement():
    """The server keeps these in the client's character set, after its name; all else is UTF-8 (MySQL 9.7)."""
    logged = (
        "CREATE TABLE `t` (\n  `my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */,\n  `予` int,"
        "\n  `b` varchar(9) GENERATED ALWAYS AS (concat(`予`,_cp932')',_cp932'"
    ).encode() + b"\x97\\\\')) STORED,\n  PRIMARY KEY (`my_row_id`)\n)"
    event = decode_query(query_body(b"d", logged, bytes.fromhex("045f005f00ff00")), "9.7.0")
    table = parse_create_table(event.statement, database="d")
    assert [column.name for column in table.columns] == ["my_row_id", "予", "b"]
    assert event.logged_text == logged


# As MariaDB 10.11 logged them under binlog_alter_two_phase; that of a rollback is made from that of a commit.
_PLAIN = bytes.fromhex("00000000010100002054000000000603737464042d002d000800")
STARTED = _PLAIN + bytes.fromhex("8202")
COMMITTED = _PLAIN + bytes.fromhex("811f0d0000000000008204e50a000000000000")
ROLLED_BACK = _PLAIN + bytes.fromhex("8208e50a000000000000")


def columns_after(*statements: tuple[str, bytes]) -> list[str]:
    """Return the columns of a table after statements, each with its session variables."""
    known = Definitions.of([parse_create_table("CREATE TABLE t (a INT, b INT)", database="d")])
    for text, status in statements:
        statement = statement_of(decode_query(query_body(b"d", text.encode(), status), "10.11.19-MariaDB"))
        known = known if statement is None else definitions_following(known, statement)
    return [column.name for column in known.tables["d", "t"].columns]


def test_an_alter_in_two_phases_counts_where_it_commits():
    """It is logged twice, and not carried out where it starts, nor where it is rolled back."""
    swap = "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a"
    add = "ALTER TABLE t ADD COLUMN c INT"
    assert columns_after((swap, STARTED)) == ["a", "b"]
    assert columns_after((swap, STARTED), (swap, COMMITTED)) == ["b", "a"]
    assert columns_after((swap, STARTED), (swap, ROLLED_BACK)) == ["a", "b"]
    assert columns_after((add, STARTED), (swap, STARTED), (swap, ROLLED_BACK), (add, COMMITTED)) == ["a", "b", "c"]
    assert columns_after((add, COMMITTED)) == ["a", "b", "c"]
    assert columns_after((add, _PLAIN)) == ["a", "b", "c"]
    index = "CREATE UNIQUE INDEX i ON t (a)"
    assert columns_after((index, STARTED), (add, STARTED), (index, COMMITTED), (add, COMMITTED)) == ["a", "b", "c"]


def test_variables_after_the_flags_of_an_alter():
    """They are read: its number follows the flags only where it ends."""
    for status in (STARTED, COMMITTED, ROLLED_BACK):
        collations = b"\x83\x01" + (45).to_bytes(2, "little") + (46).to_bytes(2, "little")
        event = decode_query(query_body(b"d", b"ALTER TABLE t FORCE", status + collations), "10.11.19-MariaDB")
        assert session_of(event).collations == {"utf8mb4": "utf8mb4_bin"}
