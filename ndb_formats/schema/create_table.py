"""
CREATE TABLE statements, as typed or as SHOW CREATE TABLE prints them, to a `Table`.

Parts of a definition that do not matter here are skipped, so that options of other servers do no harm.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
from sqlglot.tokenizer_core import TokenType

from ndb_formats.errors import SchemaError
from ndb_formats.schema.sql_words import Words, statements
from ndb_formats.schema.tables import TEXT_TYPES, Column, Schema, Table
from ndb_formats.types.charsets import charset_of_collation, default_collation
from ndb_formats.types.values import Value

__all__ = ["DEFAULT_CHARSET", "parse_create_table", "parse_schema"]

DEFAULT_CHARSET = "utf8mb4"

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
_TABLE_ITEMS = frozenset({"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK"})


def parse_schema(sql: str, *, database: str = "", charset: str = DEFAULT_CHARSET) -> Schema:
    """
    Return every table that `sql` creates; USE sets the database, and other statements are ignored.

    Args:
        sql: Statements, separated by semicolons.
        database: Database of tables that are not qualified, until a USE statement.
        charset: Character set of tables that declare none.

    Raises:
        SchemaError: A definition cannot be read.
    """
    tables = []
    for words in statements(sql):
        if words.accept("USE"):
            database = words.step()
        elif words.accept("CREATE", "TABLE") or words.accept("CREATE", "TEMPORARY", "TABLE"):
            tables.append(_table(words, database, charset))
    return Schema(tuple(tables))


def parse_create_table(sql: str, *, database: str = "", charset: str = DEFAULT_CHARSET) -> Table:
    """
    Return the one table that `sql` creates.

    Raises:
        SchemaError: It creates no table or several, or cannot be read.
    """
    tables = parse_schema(sql, database=database, charset=charset).tables
    if len(tables) != 1:
        message = f"expected one CREATE TABLE, found {len(tables)}"
        raise SchemaError(message)
    return tables[0]


def _table(words: Words, database: str, charset: str) -> Table:
    words.accept("IF", "NOT", "EXISTS")
    name = words.step()
    if words.kind is TokenType.DOT:
        words.step()
        database, name = name, words.step()
    try:
        if words.kind is not TokenType.L_PAREN:
            message = "only CREATE TABLE with a column list can be read"
            raise SchemaError(message)
        body = words.group()
        engine, charset, collation = _table_options(words, charset)
        return _table_of_items(database, name, body, engine, (charset, collation))
    except SchemaError as error:
        raise error.located(table=f"{database}.{name}") from None


def _table_options(words: Words, charset: str) -> tuple[str | None, str, str]:
    engine, collation = None, None
    while words.word:
        if words.accept("ENGINE"):
            words.accept("=")
            engine = words.step().upper()
        elif words.accept("CHARSET") or words.accept("CHARACTER", "SET"):
            words.accept("=")
            charset = _charset_name(words.step())
        elif words.accept("COLLATE"):
            words.accept("=")
            collation = words.step().lower()
            charset = charset_of_collation(collation)
        elif words.upper == "SELECT":
            message = "CREATE TABLE ... SELECT cannot be read; give what SHOW CREATE TABLE prints"
            raise SchemaError(message)
        else:
            words.step()
    return engine, charset, collation or default_collation(charset)


def _table_of_items(database: str, name: str, body: Words, engine: str | None, text: tuple[str, str]) -> Table:
    columns: list[Column] = []
    primary_key: tuple[str, ...] = ()
    prefixes: tuple[int, ...] = ()
    unique_keys: list[tuple[str, ...]] = []
    for item in body.items():
        if item.upper == "LIKE":
            message = "CREATE TABLE ... LIKE cannot be read; give what SHOW CREATE TABLE prints"
            raise SchemaError(message)
        if item.upper not in _TABLE_ITEMS:
            column, keys = _column(item, text)
            columns.append(column)
            primary_key = (column.name,) if "primary" in keys else primary_key
            unique_keys += [(column.name,)] if "unique" in keys else []
            continue
        if item.accept("CONSTRAINT") and item.upper not in _TABLE_ITEMS:
            item.step()
        if item.accept("PRIMARY", "KEY"):
            primary_key, prefixes = _key_columns(item)
        elif item.accept("UNIQUE"):
            unique_keys.append(_key_columns(item)[0])
    primary_key = _as_declared(primary_key, columns)
    unique_keys = [_as_declared(key_columns, columns) for key_columns in unique_keys]
    key = set(primary_key)
    columns = [attrs.evolve(column, nullable=column.nullable and column.name not in key) for column in columns]
    columns = [attrs.evolve(column, depends_on=_mentioned(column.depends_on, columns)) for column in columns]
    return Table(database, name, tuple(columns), primary_key, tuple(unique_keys), engine, prefixes)


def _as_declared(names: tuple[str, ...], columns: list[Column]) -> tuple[str, ...]:
    """Return column names of a key, which MySQL takes in any letter case, as they were declared."""
    declared = {column.name.lower(): column.name for column in columns}
    return tuple(declared.get(name.lower(), name) for name in names)


def _mentioned(words: tuple[str, ...], columns: list[Column]) -> tuple[str, ...]:
    return tuple(column.name for column in columns if column.name.lower() in words)


def _key_columns(item: Words) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the columns of a key and the lengths of their prefixes, none if all are whole."""
    while item.kind is not TokenType.L_PAREN:
        item.step()
    parts = [(part.step(), _prefix(part)) for part in item.group().items()]
    prefixes = tuple(prefix for _, prefix in parts)
    return tuple(name for name, _ in parts), prefixes if any(prefixes) else ()


def _prefix(part: Words) -> int:
    length = part.group().step() if part.kind is TokenType.L_PAREN else ""
    return int(length) if length.isdecimal() else 0


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


def _column(words: Words, text: tuple[str, str]) -> tuple[Column, set[str]]:
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
    if not all(argument.isdecimal() for argument in arguments):
        message = f"{base}({','.join(arguments)}) is not a type"
        raise SchemaError(message)
    numbers = [int(argument) for argument in arguments]
    if base == "float" and len(numbers) == 1:
        return {}  # FLOAT(p) only chooses between FLOAT and DOUBLE
    return {"length": numbers[0], **({"scale": numbers[1]} if len(numbers) > 1 else {})}


def _charset_name(word: str) -> str:
    return {"utf8": "utf8mb3"}.get(word.lower(), word.lower())


def _set_charset(words: Words, facts: dict[str, object], _: set[str]) -> None:
    facts["charset"] = _charset_name(words.step())


def _set_collation(words: Words, facts: dict[str, object], _: set[str]) -> None:
    facts["collation"] = words.step().lower()


def _set_default(words: Words, facts: dict[str, object], _: set[str]) -> None:
    if words.kind is TokenType.L_PAREN:
        words.group()
        facts["computed_default"] = True
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
        facts["computed_default"] = True  # such as CURRENT_TIMESTAMP
        return
    facts["default"] = value


def _set_generated(words: Words, facts: dict[str, object], _: set[str]) -> None:
    expression = words.group()
    expression.step()  # an empty expression is an error
    facts.update(generated="virtual", depends_on=_identifiers(expression))


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
