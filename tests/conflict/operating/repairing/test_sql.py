"""Statements and files of SQL: whatever names and values hold, nothing breaks out of its literal or comment."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.dialects.mysql import MySQL
from sqlglot.tokens import Token, TokenType

from conflict.operating.repairing.script import Numbered, Script
from conflict.operating.repairing.sql_values import NotWritableError, sql_value, table_in_sql
from conflict.operating.repairing.statements import RepairedRow, RowTable
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowLayout, layout_of
from ndb_formats.events.table_map_of_table import table_map_of
from ndb_formats.schema.tables import Column, Table
from ndb_formats.types.charsets import encode_text
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.json_values import JsonOpaque

NASTY = st.sampled_from(
    [
        *("'", '"', "`", "\\", "*/", "/*", "-- ", "#", "\n", "\r", ";", "\0", "$$", "\u2028", "é", "😀", "\x1a", " "),
        *("delimiter ", "\\c", "X'", "a", "_utf8mb4", "NULL", "\x85", "\u202e", "%", "\t"),
    ]
)
HOSTILE = st.lists(NASTY, max_size=6).map("".join)
# A server takes no NUL in a name, and no space at its end.
NAMES = HOSTILE.map(lambda text: text.replace("\0", "")).filter(lambda text: text.strip(" ") == text != "")


def table_of(database: str, name: str, columns: list[Column]) -> RowTable:
    """Return a table whose first column is its key."""
    table = Table(database, name, tuple(columns), (columns[0].name,))
    layout: RowLayout = layout_of(table_map_of(table, 1), table)
    return RowTable("A", database, TableSetup(table), layout)


def tokens(sql: str) -> list[Token]:
    """Return the tokens of MySQL's text, as another program reads it."""
    return list(MySQL.Tokenizer().tokenize(sql))


@st.composite
def repaired_rows(draw: st.DrawFn) -> RepairedRow:
    """Return a row of two texts and bytes under hostile names, inserted, updated or deleted."""
    names = draw(st.lists(NAMES, min_size=3, max_size=3, unique_by=str.lower))
    charset = draw(st.sampled_from(["utf8mb4", "latin1", "ucs2", "binary"]))
    text = {} if charset == "binary" else {"charset": charset, "collation": f"{charset}_bin"}
    kind = "varbinary" if charset == "binary" else "varchar"
    columns = [
        Column(names[0], "varchar", 100, charset="utf8mb4", collation="utf8mb4_bin", nullable=False),
        Column(names[1], kind, 100, **text),
        Column(names[2], "varbinary", 100),
    ]
    table = table_of(draw(NAMES), draw(NAMES), columns)

    def value() -> bytes | None:
        words = draw(HOSTILE)
        return words.encode() if charset == "binary" else words.encode(*_codec(charset))

    key = draw(HOSTILE).encode()
    images = [{0: key, 1: value(), 2: draw(st.none() | st.binary(max_size=20))} for _ in range(2)]
    before, after = draw(st.sampled_from([(0, 1), (None, 1), (0, None)]))
    return RepairedRow(
        table,
        "t",
        b"",
        None if before is None else images[0],
        None if after is None else images[1],
        frozenset({1, 2}),
        draw(HOSTILE),
    )


def _codec(charset: str) -> tuple[str, str]:
    return {"utf8mb4": "utf-8", "latin1": "cp1252", "ucs2": "utf-16-be"}[charset], "ignore"


@given(repaired_rows(), HOSTILE)
def test_a_statement_is_one_statement(repaired: RepairedRow, head: str) -> None:
    """Another program's tokenizer reads its names whole, nothing but plain literals beside them, and no comment."""
    read = tokens(repaired.sql)
    table = repaired.table.setup.table
    names = {table.database, table.name, *(column.name for column in table.columns)}
    quoted = [token.text for token in read if token.token_type is TokenType.IDENTIFIER]
    assert set(quoted) <= names
    assert quoted[:2] == [table.database, table.name]
    assert TokenType.SEMICOLON not in {token.token_type for token in read}
    assert not any(token.comments for token in read)
    for token in read:
        if token.token_type is TokenType.STRING:
            assert re.fullmatch(r"[A-Za-z0-9 _.,:;@+=()\[\]{}-]*", token.text)
    script = Script("A", "1-A.sql", [head], [Numbered(1, 1, "equal", repaired, head, repaired.sql)], "0f" * 16)
    found = tokens(script.text)
    ends = sum(token.token_type is TokenType.SEMICOLON for token in found)
    assert ends == 3 + 3 + 2 + 2 + 1 + 3 + 1
    others = {"transaction", "ndb_conflict_repairs"}
    assert {token.text for token in found if token.token_type is TokenType.IDENTIFIER} <= names | others


@given(repaired_rows(), HOSTILE)
def test_comments_stay_on_their_lines(repaired: RepairedRow, text: str) -> None:
    """Each line of a file is a comment, empty, or belongs to a statement; nothing hidden stands in a comment."""
    script = Script(
        "A", text.replace("\0", ""), [text], [Numbered(1, 1, "equal", repaired, text, repaired.sql)], "0f" * 16
    )
    notes = f"{table_in_sql(repaired.table.database, 'ndb_conflict_repairs')}"
    rest = script.text.replace(f"{repaired.sql} AND @ndb_conflict_done = 0;\n", "").replace(notes, "notes")
    for line in rest.split("\n"):
        assert re.match(r"(-- .*|--)?$|(SET|START|COMMIT|SELECT|CREATE|INSERT) ?", line)
        assert not re.search("[\0\r\x1a\u2028\u202e\x85]", line)


@pytest.mark.parametrize(
    ("column", "value", "literal", "condition"),
    [
        (Column("c", "int"), -5, "-5", "c <=> -5"),
        (Column("c", "bigint", unsigned=True), 2**64 - 1, "18446744073709551615", "c <=> 18446744073709551615"),
        (Column("c", "float"), 0.10000000149011612, "0.10000000149011612e0", "c <=> 0.10000000149011612e0"),
        (Column("c", "double"), 1e300, "1e+300", "c <=> 1e+300"),
        (Column("c", "varbinary", 9), b"'\\", "X'275C'", "c <=> X'275C'"),
        (Column("c", "datetime", 3), "2026-01-02 03:04:05.678", *["'2026-01-02 03:04:05.678'"] * 1, None),
        (
            Column("c", "varchar", 9, charset="latin1", collation="latin1_bin"),
            "ab",
            "'ab'",
            "CAST(c AS BINARY) <=> 'ab'",
        ),
        (
            Column("c", "varchar", 9, charset="latin1", collation="latin1_bin"),
            "é'",
            "_latin1 X'E927'",
            "CAST(c AS BINARY) <=> X'E927'",
        ),
        (
            Column("c", "varchar", 9, charset="ucs2", collation="ucs2_bin"),
            "a",
            "_ucs2 X'0061'",
            "CAST(c AS BINARY) <=> X'0061'",
        ),
        (
            Column("c", "json"),
            JsonDocument.of({"a": 1}),
            "CAST(_utf8mb4 X'7B2261223A20317D' AS JSON)",
            "c <=> CAST(_utf8mb4 X'7B2261223A20317D' AS JSON)",
        ),
    ],
)
def test_values(column: Column, value: Any, literal: str, condition: str | None) -> None:
    """As the manual has literals; that the server takes them so is checked with a server."""
    codec = layout_of(table_map_of(Table("d", "t", (column,), ()), 1)).codecs[0]
    codec = table_of("d", "t", [Column("k", "int"), column]).layout.codecs[1]
    found = sql_value(column, codec, codec.encode(value))
    assert found.literal == literal
    assert found.condition("c") == (condition or f"c <=> {literal}")
    assert sql_value(column, codec, None).condition("c") == "c IS NULL"


@pytest.mark.parametrize(
    ("column", "payload", "said"),
    [
        (
            Column("c", "varchar", 9, charset="utf8mb4", collation="utf8mb4_bin"),
            b"a\xff",
            "is not valid in character set utf8mb4",
        ),
        (Column("c", "double"), bytes.fromhex("000000000000f87f"), "is no finite number"),
        (
            Column("c", "json"),
            JsonDocument.of([JsonOpaque(246, bytes.fromhex("02018105"))]).data,
            "with a decimal number",
        ),
        (
            Column("c", "enum", charset="utf8mb4", collation="utf8mb4_bin", members=("a",)),
            b"\0",
            "is the error value of an ENUM",
        ),
    ],
)
def test_values_that_no_text_stands_for(column: Column, payload: bytes, said: str) -> None:
    """They are refused, and so reviewed."""
    codec = table_of("d", "t", [Column("k", "int"), column]).layout.codecs[1]
    with pytest.raises(NotWritableError, match=said):
        sql_value(column, codec, payload)


def test_bytes_of_texts_are_those_of_the_column() -> None:
    """No character set is converted: a character with two codes keeps the one that it has."""
    column = Column("c", "varchar", 9, charset="cp932", collation="cp932_bin")
    codec = table_of("d", "t", [Column("k", "int"), column]).layout.codecs[1]
    payload = encode_text("ソ", "cp932")
    assert sql_value(column, codec, payload).literal == f"_cp932 X'{payload.hex().upper()}'"


def test_a_transaction_is_noted_after_it_is_done() -> None:
    """A file writes its notes between transactions, without a log, into a table of the database that it repairs."""
    table = table_of("shop", "t", [Column("k", "int", nullable=False), Column("x", "int")])
    rows = [{0: bytes([key, 0, 0, 0]), 1: None} for key in (1, 2)]
    repaired = [RepairedRow(table, "shop.t", b"", None, row, frozenset(), "") for row in rows]
    numbered = [Numbered(n, n, "equal", each, "", each.sql) for n, each in enumerate(repaired, start=1)]
    script = Script("A", "1-A.sql", [], numbered, "0f" * 16)
    assert script.notes == "`shop`.`ndb_conflict_repairs`"
    lines = [line for line in script.text.split("\n") if line and not line.startswith("--")]
    off, on = (f"SET SESSION sql_log_bin = {state};" for state in ("OFF", "ON"))
    made = f"CREATE TABLE IF NOT EXISTS {script.notes}"
    assert [line[: len(made)] for line in lines[3:6]] == [off, made, on]
    for number, transaction in enumerate((lines[6:15], lines[15:]), start=1):
        start, insert, left, commit = transaction[1:5]
        assert (start, commit) == ("START TRANSACTION;", "COMMIT;")
        assert insert == f"{repaired[number - 1].sql} AND @ndb_conflict_done = 0;"
        assert "ROW_COUNT()" in left
        note = f"INSERT IGNORE INTO {script.notes} VALUES ('{'0f' * 16}', {number}, CURRENT_TIMESTAMP(6));"
        assert transaction[5:8] == [off, note, on]
