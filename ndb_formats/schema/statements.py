"""
Statements: those of a file, split as the mysql client splits it, and what one does to the definition of each table.

The client ends a statement at its delimiter outside quotes and comments, and a line ``DELIMITER`` changes that. A body
of a stored program is kept whole, also where its file lacks the DELIMITER that the client needs.

Source: MySQL manual, "mysql Client Commands" and "Defining Stored Programs".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import attrs

from ndb_formats.errors import FormatError
from ndb_formats.schema.lexer import Token, WordKind, Words, lex, words_of
from ndb_formats.schema.session import Session, SqlMode
from ndb_formats.schema.tables import ForeignKey, Table

_DELIMITER = re.compile(r"DELIMITER[ \t]+(\S+)[^\n]*(?:\n|$)", re.IGNORECASE)
_LINE_COMMENT = re.compile(r"#[^\n]*|--(?=[\s\x01-\x1f]|$)[^\n]*")
_PLAIN_COMMENT = re.compile(r"/\*(?![!+]|M!).*?(?:\*/|$)", re.DOTALL)
_BETWEEN = re.compile(rf"\s+|{_LINE_COMMENT.pattern}|{_PLAIN_COMMENT.pattern}", re.DOTALL)
_HEAD = 60  # words among which a statement says that it creates a stored program
_SET = re.compile(r"(?:/\*!\d*\s*)?SET\b", re.IGNORECASE)
_PROGRAMS = frozenset({"PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"})
_OTHER_OBJECTS = frozenset({"TABLE", "VIEW", "INDEX", "DATABASE", "SCHEMA", "USER", "ROLE", "SERVER"})
_BLOCK_ENDS = frozenset({"IF", "WHILE", "LOOP", "REPEAT", "FOR"})


@attrs.frozen
class ScriptStatement:
    """
    One statement of a file.

    Attributes:
        text: Its text, without the delimiter and the comments before it.
        session: The session that it runs in.
    """

    text: str
    session: Session = attrs.field(factory=Session, repr=False)

    def words(self) -> Words:
        """
        Return its words, to be read from the first.

        Raises:
            SchemaError: A quote or comment has no end.
        """
        return words_of(self.text, self.session)


def split_script(text: str, session: Session | None = None) -> Iterator[ScriptStatement]:
    """
    Yield the statements of a file; ``SET sql_mode`` with a text changes how those after it are read.

    Args:
        text: The file.
        session: The session at its start.

    Raises:
        SchemaError: A quote or comment in a statement has no end.
    """
    session, position, delimiter = session or Session(), _start(text, 0), ";"
    while position < len(text):
        changed = _DELIMITER.match(text, position)
        if changed is not None:
            delimiter, position = changed[1], _start(text, changed.end())
            continue
        end = _end_of_piece(text, position, delimiter, session)
        if delimiter == ";" and _creates_program(words_of(text[position:end], session, _HEAD)):
            end = _end_of_program(text, position, end, session)
        statement = ScriptStatement(text[position:end].strip(), session)
        if statement.text:
            yield statement
            session = _after(session, statement)
        position = _start(text, end + len(delimiter))


def _start(text: str, position: int) -> int:
    """Return where the next statement starts, after blanks and comments."""
    while found := _BETWEEN.match(text, position):
        position = found.end()
    return position


def _end_of_piece(text: str, position: int, delimiter: str, session: Session) -> int:
    """Return where the delimiter stands that ends a statement; the end of the text without one."""
    escapes = SqlMode.NO_BACKSLASH_ESCAPES not in session.sql_mode
    quoted = r"'(?:[^'\\]|\\.)*(?:'|$)|\"(?:[^\"\\]|\\.)*(?:\"|$)" if escapes else r"'[^']*(?:'|$)|\"[^\"]*(?:\"|$)"
    pattern = re.compile(
        rf"(?P<delimiter>{re.escape(delimiter)})|{quoted}|`[^`]*(?:`|$)|{_LINE_COMMENT.pattern}"
        rf"|{_PLAIN_COMMENT.pattern}",
        re.DOTALL,
    )
    for found in pattern.finditer(text, position):
        if found["delimiter"] is not None:
            return found.start()
    return len(text)


def _creates_program(words: Words) -> bool:
    """Return whether a statement creates a stored program, or is a block of its own (MariaDB)."""
    words = words.rest()
    if words.accept("BEGIN", "NOT", "ATOMIC"):
        return True
    if not words.accept("CREATE"):
        return False
    while words.word:
        if words.upper in _PROGRAMS or words.upper in _OTHER_OBJECTS:
            return words.upper in _PROGRAMS
        words.step()
    return False


def _end_of_program(text: str, start: int, end: int, session: Session) -> int:
    """Return where the delimiter stands that is outside all blocks of a stored program."""
    depth, piece = 0, start
    while True:
        depth += _nesting(list(lex(text[piece:end], session)))
        if depth <= 0 or end >= len(text):
            return end
        piece, end = end + 1, _end_of_piece(text, end + 1, ";", session)


def _nesting(tokens: Sequence[Token]) -> int:
    """Return how many more blocks a piece of a program opens than it ends: BEGIN and CASE open one, END ends it."""
    words = [token.text.upper() if token.kind is WordKind.WORD else "" for token in tokens]
    depth = 0
    for place, word in enumerate(words):
        before, after = words[place - 1] if place else "", words[place + 1] if place + 1 < len(words) else ""
        if word == "END":
            depth -= after not in _BLOCK_ENDS
        elif word in ("BEGIN", "CASE"):
            depth += before != "END"
    return depth


def _after(session: Session, statement: ScriptStatement) -> Session:
    """Return a session after a statement; only ``SET sql_mode = 'text'`` matters here."""
    if not _SET.match(statement.text):
        return session
    words = statement.words()
    while words.word:
        if words.step().upper() == "SQL_MODE" and words.accept("=") and words.kind is WordKind.STRING:
            session = attrs.evolve(session, sql_mode=SqlMode.named(words.step()))
    return session


Name = tuple[str, str]  # database and table
_MOST_SHOWN = 200  # characters of a statement in a message
# Their first words; before and between these may be comments.
_DEFINES = re.compile(r"[\s(]*(?:[/#-]|CREATE|ALTER|DROP|RENAME|TRUNCATE|SET\s*(?:[/#-]|STATEMENT))", re.IGNORECASE)


@attrs.frozen
class Statement:
    """
    A statement in a log or a file: one, whatever semicolons it holds.

    Attributes:
        text: The statement.
        database: The database that it ran in.
        session: What it depends on besides.
    """

    text: str
    database: str
    session: Session = attrs.field(factory=Session)

    def words(self) -> Words:
        """
        Return its words, without what stands before the statement proper (SET STATEMENT ... FOR of MariaDB).

        Raises:
            SchemaError: A quote or comment has no end.
        """
        words = words_of(self.text, self.session)
        if words.accept("SET", "STATEMENT"):
            while words.word and not words.accept("FOR"):
                words.step()
        return words.rest()

    def shown_in(self, error: FormatError) -> FormatError:
        """Add the statement to the message of an error, and return the error."""
        error.message = f"{error.message}. The statement: {self.text[:_MOST_SHOWN]}"
        return error


@attrs.frozen
class TableStep:
    """
    What a statement did to one table.

    Attributes:
        before: The table before; None for a new one.
        after: The table afterwards; None for one that is gone.
        sources: Per column of `after`, the ordinal of the column of `before` that it was, None for a new one; empty for
            a new table.
        emptied: Whether none of its rows is left.
        copied: Whether the rows were copied into a new table, so that data nodes forgot author and epoch.
        added_only: Whether only columns and keys were added.
    """

    before: Table | None
    after: Table | None
    sources: tuple[int | None, ...] = ()
    emptied: bool = False
    copied: bool = False
    added_only: bool = False


def defines_tables(text: str) -> bool:
    """Whether a statement may change definitions, by its first word: quick, for statements that mostly do not."""
    return _DEFINES.match(text) is not None


def with_references(tables: dict[Name, Table], steps: Sequence[TableStep]) -> dict[Name, Table]:
    """Return tables whose foreign keys follow what steps renamed: tables and columns."""
    changed = [(step.before, step.after, step.sources) for step in steps if step.before and step.after]
    parents, homes = dict[Name, tuple[Table, dict[str, str]]](), dict[Name, Table]()
    for before, after, sources in changed:
        columns = {
            before.columns[source].name.lower(): column.name
            for column, source in zip(after.columns, sources, strict=False)
            if source is not None
        }
        parents[before.database, before.name] = after, columns
        homes[after.database, after.name] = before
    for name, table in tables.items():
        if table.foreign_keys:
            home = homes.get(name, table)
            keys = tuple(_following(key, home, table, parents) for key in table.foreign_keys)
            tables[name] = attrs.evolve(table, foreign_keys=keys)
    return tables


def _following(
    key: ForeignKey, home: Table, table: Table, parents: Mapping[Name, tuple[Table, Mapping[str, str]]]
) -> ForeignKey:
    """Return a foreign key after steps; its table was `home` before and is `table` now."""
    generated = f"{home.name}_fk_"
    if home.name != table.name and key.name.startswith(generated):
        key = attrs.evolve(key, name=f"{table.name}_fk_{key.name.removeprefix(generated)}")
    if home.parent_of(key) in parents:
        parent, columns = parents[home.parent_of(key)]
        references = tuple(columns.get(column.lower(), column) for column in key.references)
        database = "" if parent.database == table.database else parent.database
        return attrs.evolve(key, parent_database=database, parent=parent.name, references=references)
    return attrs.evolve(key, parent_database=home.database) if home.parent_of(key) != table.parent_of(key) else key
