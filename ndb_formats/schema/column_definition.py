"""
The definition of one column in a statement, to a `Column`.

Attributes that do not matter here are skipped.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
from sqlglot.tokenizer_core import TokenType

from ndb_formats.errors import SchemaError
from ndb_formats.schema.sql_words import Words
from ndb_formats.schema.tables import TEXT_TYPES, Column
from ndb_formats.types.charsets import charset_of_collation, default_collation
from ndb_formats.types.digits import whole_number
from ndb_formats.types.values import Value

__all__ = ["CANONICAL_TYPES", "charset_name", "take_column", "take_default"]

# Synonyms of MySQL's types (manual, "Data Types") to the spelling that information_schema uses.
CANONICAL_TYPES = {
    "integer": "int", "int1": "tinyint", "int2": "smallint", "int3": "mediumint", "middleint": "mediumint",
    "int4": "int", "int8": "bigint", "bool": "tinyint", "boolean": "tinyint", "serial": "bigint",
    "dec": "decimal", "numeric": "decimal", "fixed": "decimal", "float4": "float", "float8": "double",
    "real": "double", "character": "char", "nchar": "char", "nvarchar": "varchar", "geomcollection": "geometry",
    "point": "geometry", "linestring": "geometry", "polygon": "geometry", "multipoint": "geometry",
    "multilinestring": "geometry", "multipolygon": "geometry", "geometrycollection": "geometry",
}  # fmt: skip
_DEFAULT_LENGTHS = {"decimal": 10, "bit": 1, "char": 1, "binary": 1}
# Display widths are no part of the type; information_schema leaves them out too.
_WIDTHLESS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})


def _type(words: Words) -> str:
    words.accept("NATIONAL")
    if words.accept("LONG"):
        # LONG and LONG VARCHAR are old names of MEDIUMTEXT, LONG VARBINARY of MEDIUMBLOB.
        binary = words.accept("VARBINARY")
        words.accept("VARCHAR")
        return "mediumblob" if binary else "mediumtext"
    base = words.step().lower()
    words.accept("PRECISION")
    if base in ("char", "character", "nchar") and words.accept("VARYING"):
        return "varchar"
    return CANONICAL_TYPES.get(base, base)


def take_column(words: Words, text: tuple[str, str]) -> tuple[Column, set[str]]:
    """
    Read the definition of a column.

    Args:
        words: Its name, its type and its attributes.
        text: Character set and collation of text that declares none.

    Returns:
        The column, and which keys it is by itself: ``primary``, ``unique``.

    Raises:
        SchemaError: It cannot be read.
    """
    name = words.step()
    declared = words.upper
    base = _type(words)
    facts: dict[str, object] = {}
    if words.kind is TokenType.L_PAREN:
        arguments = [part.step() for part in words.group().items()]
        facts.update(_arguments(base, arguments))
    elif base in _DEFAULT_LENGTHS:
        facts["length"] = _DEFAULT_LENGTHS[base]
    if base == "decimal":
        facts.setdefault("scale", 0)
    if base == "geometry":
        facts["geometry"] = declared.lower()
    if declared in ("NATIONAL", "NCHAR", "NVARCHAR"):
        facts["charset"] = "utf8mb3"
    keys: set[str] = set()
    if declared == "SERIAL":
        facts.update(unsigned=True, nullable=False, auto_increment=True)
        keys.add("unique")
    while words.word:
        for phrase, action in _ATTRIBUTES:
            if words.accept(*phrase):
                action(words, facts, keys)
                break
        else:
            words.group() if words.kind is TokenType.L_PAREN else words.step()
    charset, collation = _charset_and_collation(base, facts, text)
    if charset == "binary":
        base, charset, collation = _binary_twin(base), None, None
    facts.update(charset=charset, collation=collation)
    return Column(name=name, type=base, **facts), keys  # type: ignore[arg-type]  # facts are filled by field name below


def _charset_and_collation(base: str, facts: dict[str, object], text: tuple[str, str]) -> tuple[str | None, str | None]:
    """Return character set and collation of a text column: as declared, else those of its table."""
    if base not in TEXT_TYPES and base not in ("enum", "set"):
        return None, None
    charset, collation = facts.get("charset"), facts.get("collation")
    if charset is None and collation is None:
        return text
    if charset is None:
        return charset_of_collation(str(collation)), str(collation)
    return str(charset), str(collation or default_collation(str(charset)))


def _binary_twin(base: str) -> str:
    """Return the binary type that a text type becomes under CHARACTER SET binary."""
    twins = {"char": "binary", "varchar": "varbinary"}
    return twins.get(base, base.replace("text", "blob"))


def _arguments(base: str, arguments: list[str]) -> dict[str, object]:
    if base in ("enum", "set"):
        return {"members": tuple(arguments)}
    if base in _WIDTHLESS:
        return {}
    numbers = [number for number in map(whole_number, arguments) if number is not None]
    if len(numbers) < len(arguments):
        message = f"{base}({','.join(arguments)[:40]}) is not a type"
        raise SchemaError(message)
    if base == "float" and len(numbers) == 1:
        return {}  # FLOAT(p) only chooses between FLOAT and DOUBLE
    return {"length": numbers[0], **({"scale": numbers[1]} if len(numbers) > 1 else {})}


def charset_name(word: str) -> str:
    """Return the name of a character set as servers of today spell it."""
    return {"utf8": "utf8mb3"}.get(word.lower(), word.lower())


def _set_charset(words: Words, facts: dict[str, object], _: set[str]) -> None:
    facts["charset"] = charset_name(words.step())


def _set_collation(words: Words, facts: dict[str, object], _: set[str]) -> None:
    facts["collation"] = words.step().lower()


def take_default(column: Column, words: Words) -> Column:
    """Read what follows DEFAULT, and return the column with it."""
    facts: dict[str, object] = {}
    _set_default(words, facts, set())
    return attrs.evolve(column, **facts)  # type: ignore[arg-type]  # facts are named like fields


def _set_default(words: Words, facts: dict[str, object], _: set[str]) -> None:
    if words.kind is TokenType.L_PAREN:
        facts.update(computed_default=True, expression=_text_of(words.group()))
        return
    negative = words.accept("-")
    words.accept("+")
    if words.kind is TokenType.INTRODUCER:
        words.step()
    kind, null = words.kind, words.upper == "NULL"
    text = words.step()
    value: Value = text
    if kind is TokenType.HEX_STRING:
        value = bytes.fromhex(text if len(text) % 2 == 0 else "0" + text)
    elif kind is TokenType.BIT_STRING:
        value = str(int(text, 2))
    elif kind in (TokenType.TRUE, TokenType.FALSE):
        value = "1" if kind is TokenType.TRUE else "0"
    elif kind in (TokenType.NUMBER, TokenType.STRING):
        value = "-" + text if negative else text
    elif null:
        value = None
    else:
        facts.update(computed_default=True, expression="current_timestamp")  # by any of its names
        return
    facts["default"] = value


def _set_generated(words: Words, facts: dict[str, object], _: set[str]) -> None:
    expression = words.group()
    expression.step()  # an empty expression is an error
    facts.update(generated="virtual", depends_on=_identifiers(expression), expression=_text_of(expression))


def _text_of(words: Words) -> str:
    """Return an expression as text, with names in small letters and quotes where it has them."""
    quotes = {TokenType.STRING: "'{}'", TokenType.IDENTIFIER: "`{}`"}
    return " ".join(
        quotes[kind].format(word.replace("'", "''") if kind is TokenType.STRING else word.lower())
        if kind in quotes
        else word.lower()
        for word, kind in words.words
    )


def _identifiers(words: Words) -> tuple[str, ...]:
    """Return the words of an expression that can be names of columns, in lower case; those of functions cannot."""
    after = [kind for _, kind in words.words[1:]] + [None]
    return tuple(
        word.lower()
        for (word, kind), following in zip(words.words, after, strict=True)
        if kind not in (TokenType.STRING, TokenType.NUMBER) and following not in (TokenType.L_PAREN, TokenType.DOT)
    )


_Action = Callable[[Words, dict[str, object], set[str]], object]
_ATTRIBUTES: tuple[tuple[tuple[str, ...], _Action], ...] = (
    (("UNSIGNED",), lambda words, facts, keys: facts.update(unsigned=True)),
    (("ZEROFILL",), lambda words, facts, keys: facts.update(unsigned=True)),
    (("NOT", "NULL"), lambda words, facts, keys: facts.update(nullable=False)),
    (("NULL",), lambda words, facts, keys: facts.update(nullable=True)),
    (("CHARACTER", "SET"), _set_charset),
    (("CHARSET",), _set_charset),
    (("COLLATE",), _set_collation),
    (("DEFAULT",), _set_default),
    (("GENERATED", "ALWAYS", "AS"), _set_generated),
    (("AS",), _set_generated),
    *(
        (("ON", "UPDATE", now), lambda words, facts, keys: facts.update(on_update=True))
        for now in ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP")
    ),
    (("AUTO_INCREMENT",), lambda words, facts, keys: facts.update(auto_increment=True)),
    (("INVISIBLE",), lambda words, facts, keys: facts.update(invisible=True)),
    (("VIRTUAL",), lambda words, facts, keys: facts.update(generated="virtual")),
    (("STORED",), lambda words, facts, keys: facts.update(generated="stored")),
    (("PRIMARY", "KEY"), lambda words, facts, keys: keys.add("primary")),
    (("UNIQUE", "KEY"), lambda words, facts, keys: keys.add("unique")),
    (("UNIQUE",), lambda words, facts, keys: keys.add("unique")),
    (("KEY",), lambda words, facts, keys: keys.add("primary")),
    (("COMMENT",), lambda words, facts, keys: words.step()),
)
