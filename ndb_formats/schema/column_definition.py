"""
The definition of one column in a statement, to a `Column` in the form that the server gives it.

Attributes that do not matter here are skipped. Source: MySQL manual, "Data Types", "CREATE TABLE Statement" and "Silent
Column Specification Changes".
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ndb_formats.schema.declared_type import DeclaredType, charset_name, literal_bytes, take_type
from ndb_formats.schema.default_values import declared_default, zero_value
from ndb_formats.schema.lexer import WordKind, Words
from ndb_formats.schema.session import Session, Text
from ndb_formats.schema.table_keys import split_reference
from ndb_formats.schema.tables import BLOB_TYPES, Column, ForeignKey
from ndb_formats.types.charsets import decode_text
from ndb_formats.types.values import ABSENT, MaybeValue, Value

# The expressions of the columns that say from when to when MariaDB's row version holds.
ROW_START, ROW_END = "row start", "row end"
_NOW = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})


@attrs.frozen
class ColumnItem:
    """
    A column in a definition, and what its definition says of the table.

    Attributes:
        column: The column.
        primary: Whether it is the primary key.
        unique: Whether it is a unique key.
        reference: The foreign key that it is; None without one.
        null_declared: Whether it declares NULL.
        versioned: Whether it asks for row versions (MariaDB).
    """

    column: Column
    primary: bool = False
    unique: bool = False
    reference: ForeignKey | None = None
    null_declared: bool = False
    versioned: bool = False


@attrs.define
class _Draft:
    """What was read of a column."""

    declared: DeclaredType
    nullable: bool | None = None
    default: MaybeValue = ABSENT
    generated: str | None = None
    depends_on: tuple[str, ...] = ()
    auto_increment: bool = False
    computed_default: bool = False
    on_update: bool = False
    expression: str | None = None
    invisible: bool = False
    primary: bool = False
    unique: bool = False
    versioned: bool = False
    mariadb: bool = False
    stays: bool = False


def take_column(words: Words, text: Text, session: Session, converted: Text | None = None) -> ColumnItem:
    """
    Read the definition of a column.

    Args:
        words: Its name, its type and its attributes.
        text: Character set and collation of text that declares none.
        session: The session that defines it.
        converted: Character set and collation that the statement gives all text; None if it does not.

    Raises:
        SchemaError: It cannot be read.
    """
    words, reference = split_reference(words)
    name = words.step()
    draft = _Draft(take_type(words, session), mariadb=session.server.mariadb)
    if draft.declared.serial:
        _serial(draft, words)
    while words.word:
        for phrase, action in _ATTRIBUTES:
            if words.accept(*phrase):
                action(draft, words)
                break
        else:
            words.group() if words.kind is WordKind.L_PAREN else words.step()
    column = Column(
        name=name,
        nullable=draft.nullable is not False and not draft.primary,
        default=draft.default,
        generated=draft.generated,
        depends_on=draft.depends_on,
        auto_increment=draft.auto_increment,
        computed_default=draft.computed_default,
        on_update=draft.on_update,
        expression=draft.expression,
        invisible=draft.invisible,
        **draft.declared.facts(text, session, converted),
    )
    default = declared_default(column, draft.default)
    if column.type in BLOB_TYPES and default is not None and not session.server.mariadb:
        default = ABSENT  # MySQL takes an empty one outside the strict modes, and drops it
    if draft.declared.compressed and not column.nullable and default is ABSENT and not draft.computed_default:
        default = ""  # as MariaDB does
    column = attrs.evolve(column, default=default)
    return ColumnItem(column, draft.primary, draft.unique, reference, draft.nullable is True, draft.versioned)


def with_implicit_timestamps(items: list[ColumnItem], session: Session) -> list[ColumnItem]:
    """
    Return columns with the defaults of moments that declare none.

    Without explicit_defaults_for_timestamp that concerns TIMESTAMP. A moment that is NOT NULL and has ON UPDATE is the
    zero one in MariaDB.

    Source: MySQL manual, "Server System Variables", explicit_defaults_for_timestamp.
    """
    if session.explicit_timestamps:
        return [_with_zero(item) for item in items] if session.server.mariadb else items
    found, first = list[ColumnItem](), True
    for item in items:
        column = item.column
        implicit = column.type == "timestamp" and not item.null_declared
        if implicit and not (column.generated and session.server.mariadb):
            column = attrs.evolve(column, nullable=False)
        if implicit and not column.generated:
            bare = column.default is ABSENT and not column.computed_default
            if bare and first and not column.on_update:
                column = attrs.evolve(column, computed_default=True, on_update=True, expression="current_timestamp")
            elif bare:
                column = attrs.evolve(column, default=zero_value(column))
        first = first and column.type != "timestamp"
        found.append(attrs.evolve(item, column=column))
    return [_with_zero(item) for item in found] if session.server.mariadb else found


def _with_zero(item: ColumnItem) -> ColumnItem:
    column = item.column
    if not column.on_update or column.nullable or column.computed_default or column.default is not ABSENT:
        return item
    return attrs.evolve(item, column=attrs.evolve(column, default=zero_value(column)))


def take_default(column: Column, words: Words) -> Column:
    """Read what follows DEFAULT, and return the column with it."""
    draft = _Draft(DeclaredType(column.type))
    _set_default(draft, words)
    return attrs.evolve(
        column,
        default=declared_default(column, draft.default),
        computed_default=draft.computed_default,
        expression=draft.expression,
    )


def _set_default(draft: _Draft, words: Words) -> None:
    # The last of several counts; but in MySQL an expression in parentheses stays.
    if not draft.stays:
        draft.computed_default, draft.expression, draft.default = False, None, ABSENT
    if words.kind is WordKind.L_PAREN:
        draft.computed_default, draft.expression = True, words.group().text
        draft.stays = not draft.mariadb
        return
    negative = words.accept("-")
    words.accept("+")
    charset = charset_name(words.step()[1:]) if words.kind is WordKind.INTRODUCER else ""
    if words.upper in ("DATE", "TIME", "TIMESTAMP"):
        words.step()
    kind, keyword = words.kind, words.upper
    text = words.step()
    value: Value = text
    if kind in (WordKind.HEX_STRING, WordKind.BIT_STRING):
        value = literal_bytes(kind, text)
        if charset and charset != "binary":
            value = decode_text(value, charset)
    elif keyword in ("TRUE", "FALSE"):
        value = "1" if keyword == "TRUE" else "0"
    elif kind in (WordKind.NUMBER, WordKind.STRING):
        value = "-" + text if negative else text
        if kind is WordKind.STRING and draft.declared.type == "bit":
            value = text.encode()
        while words.kind is WordKind.STRING and isinstance(value, str):  # texts beside each other are one
            value += words.step()
    elif keyword == "NULL":
        value = None
    else:
        draft.computed_default = True
        draft.expression = "current_timestamp" if keyword in _NOW else text.lower()  # by any of its names
        if words.word == "(":
            words.group()
        return
    draft.default = value


def _set_generated(draft: _Draft, words: Words) -> None:
    if words.accept("ROW"):
        bound = ROW_START if words.accept("START") else ROW_END
        words.accept("END")
        draft.generated, draft.expression, draft.nullable = "stored", bound, False
        return
    expression = words.group()
    expression.step()  # an empty expression is an error
    draft.generated, draft.depends_on = "virtual", _identifiers(expression)
    draft.expression = expression.text


def _identifiers(words: Words) -> tuple[str, ...]:
    """Return the words of an expression that can be names of columns, in lower case; those of functions cannot."""
    after = [kind for _, kind in words.words[1:]] + [None]
    return tuple(
        word.lower()
        for (word, kind), following in zip(words.words, after, strict=True)
        if kind in (WordKind.WORD, WordKind.IDENTIFIER) and following not in (WordKind.L_PAREN, WordKind.DOT)
    )


def _serial(draft: _Draft, _: Words) -> None:
    draft.nullable, draft.auto_increment, draft.unique = False, True, True


def _set(**values: object) -> Callable[[_Draft, Words], None]:
    """Return an action that sets fields of a draft."""

    def action(draft: _Draft, _: Words) -> None:
        for name, value in values.items():
            setattr(draft, name, value)

    return action


def _set_type(**values: object) -> Callable[[_Draft, Words], None]:
    """Return an action that sets fields of the type."""

    def action(draft: _Draft, _: Words) -> None:
        for name, value in values.items():
            setattr(draft.declared, name, value)

    return action


def _set_charset(draft: _Draft, words: Words) -> None:
    words.accept("=")
    draft.declared.set_charset(words.step())


def _set_collation(draft: _Draft, words: Words) -> None:
    words.accept("=")
    draft.declared.set_collation(words.step())


def _set_on_update(draft: _Draft, words: Words) -> None:
    draft.on_update = words.step().upper() in _NOW


def _skip_word(_: _Draft, words: Words) -> None:
    words.accept("=")
    words.step()


def _skip_check(_: _Draft, words: Words) -> None:
    if words.upper != "CHECK":
        words.step()


_Action = Callable[[_Draft, Words], object]
_ATTRIBUTES: tuple[tuple[tuple[str, ...], _Action], ...] = (
    (("UNSIGNED",), _set_type(unsigned=True)),
    (("ZEROFILL",), _set_type(unsigned=True)),
    (("NOT", "NULL"), _set(nullable=False)),
    (("NULL",), _set(nullable=True)),
    (("CHARACTER", "SET"), _set_charset),
    (("CHAR", "SET"), _set_charset),
    (("CHARSET",), _set_charset),
    (("COLLATE",), _set_collation),
    (("ASCII",), _set_type(charset="latin1")),
    (("UNICODE",), _set_type(charset="ucs2")),
    (("BYTE",), _set_type(charset="binary")),
    (("BINARY",), _set_type(by_code=True)),
    (("SERIAL", "DEFAULT", "VALUE"), _serial),
    (("DEFAULT",), _set_default),
    (("GENERATED", "ALWAYS", "AS"), _set_generated),
    (("AS",), _set_generated),
    (("ON", "UPDATE"), _set_on_update),
    (("AUTO_INCREMENT",), _set(auto_increment=True, nullable=False)),
    (("INVISIBLE",), _set(invisible=True)),
    (("VIRTUAL",), _set(generated="virtual")),
    (("STORED",), _set(generated="stored")),
    (("PERSISTENT",), _set(generated="stored")),
    (("PRIMARY", "KEY"), _set(primary=True)),
    (("UNIQUE", "KEY"), _set(unique=True)),
    (("UNIQUE",), _set(unique=True)),
    (("KEY",), _set(primary=True)),
    (("WITH", "SYSTEM", "VERSIONING"), _set(versioned=True)),
    (("COMPRESSED",), _set_type(compressed=True)),
    # Words that stand before a value of their own.
    (("COMMENT",), _skip_word),
    (("COLUMN_FORMAT",), _skip_word),
    (("STORAGE",), _skip_word),
    (("SRID",), _skip_word),
    (("ENGINE_ATTRIBUTE",), _skip_word),
    (("SECONDARY_ENGINE_ATTRIBUTE",), _skip_word),
    (("CONSTRAINT",), _skip_check),
)
