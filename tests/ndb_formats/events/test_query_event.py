"""Query: a statement and its database."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.errors import TruncatedError
from ndb_formats.events.query_event import QueryEvent, decode_query, encode_query, has_ansi_quotes
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


@pytest.mark.parametrize(("sql_mode", "expected"), [(0x45A00020, False), (0x45A00024, True)])
def test_ansi_quotes(sql_mode: int, expected: bool):
    """One bit of the sql_mode, which follows the flags."""
    status = b"\x00" + bytes(4) + b"\x01" + sql_mode.to_bytes(8, "little") + b"\x06\x03std"
    assert has_ansi_quotes(QueryEvent("d", "BEGIN", status=status)) is expected
    assert not has_ansi_quotes(QueryEvent("d", "BEGIN"))
