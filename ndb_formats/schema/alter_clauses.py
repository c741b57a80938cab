"""
The clauses of an ALTER TABLE statement, as data: nothing is carried out here.

Source: MySQL manual, "ALTER TABLE Statement"; MariaDB, "ALTER TABLE".
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from itertools import pairwise

import attrs

from ndb_formats.schema.column_definition import ColumnItem, take_column, take_default
from ndb_formats.schema.lexer import WordKind, Words
from ndb_formats.schema.session import Session, Text
from ndb_formats.schema.table_body import keys_of, take_charset, take_name, take_options
from ndb_formats.schema.table_keys import IndexItem, is_key_item, take_index, take_period
from ndb_formats.schema.tables import Column, Period
from ndb_formats.types.values import ABSENT

_PARTITIONS = frozenset({"PARTITION", "PARTITIONING"})
_PARTITION_VERBS = frozenset(
    {"ADD", "DROP", "TRUNCATE", "COALESCE", "REORGANIZE", "EXCHANGE", "ANALYZE", "CHECK", "OPTIMIZE", "REBUILD"}
    | {"REPAIR", "DISCARD", "IMPORT", "REMOVE", "UPGRADE", "CONVERT"}
)


class Said(Enum):
    """What a statement can say that changes no definition, but how NDB carries it out."""

    CHECK = "a check is added, dropped or switched"
    FORCE = "FORCE"
    ORDER = "ORDER BY"
    AUTO_INCREMENT = "AUTO_INCREMENT of the table"
    MAX_ROWS = "MAX_ROWS"
    ROW_FORMAT = "ROW_FORMAT"
    TABLESPACE = "TABLESPACE or STORAGE of the table"
    FORMAT = "COLUMN_FORMAT or STORAGE DISK of a column"
    PARTITIONS = "partitions other than ADD PARTITION and REORGANIZE PARTITION"
    OPTION = "another option"


_OPTIONS = {
    **{each.name: each for each in (Said.AUTO_INCREMENT, Said.MAX_ROWS, Said.ROW_FORMAT, Said.TABLESPACE)},
    "STORAGE": Said.TABLESPACE,
}


@attrs.frozen
class NewColumn:
    """
    A column that a clause defines.

    Attributes:
        item: Its definition.
        old: Name of the column that it was; empty for a new one.
        after: Name of the column that it comes after; empty for the first place, None if not said.
        optional: Whether nothing happens if the column is there already, or the old one is not (MariaDB).
    """

    item: ColumnItem
    old: str = ""
    after: str | None = None
    optional: bool = False


@attrs.define
class Clauses:
    """
    What a statement says, in the order of its clauses.

    Attributes:
        columns: New columns, and new definitions of old ones.
        dropped: Names of columns that are dropped, each with whether it may be missing.
        renamed: New names of columns, by old name in lower case.
        changed: What else becomes of columns, by name in lower case.
        keys: New keys.
        dropped_keys: Names of keys that are dropped.
        dropped_foreign: Names of foreign keys that are dropped.
        renamed_keys: New names of keys, by old name in lower case.
        engine: New storage engine.
        charset: New character set and collation of the table.
        converted: Character set and collation that all its text is converted to; None if it is not.
        name: New database and name of the table.
        algorithm: What ALGORITHM says, in upper case.
        versioned: Whether row versions are added or dropped (MariaDB).
        period: The new application-time period, an empty one if it is dropped (MariaDB).
        detached: Database and name of the table that a partition becomes (MariaDB).
        attached: Database and name of the table that becomes a partition (MariaDB).
        said: What else it says.
    """

    columns: list[NewColumn] = attrs.field(factory=list)
    dropped: dict[str, bool] = attrs.field(factory=dict)
    renamed: dict[str, str] = attrs.field(factory=dict)
    changed: dict[str, list[Callable[[Column], Column]]] = attrs.field(factory=dict)
    keys: list[IndexItem] = attrs.field(factory=list)
    dropped_keys: list[str] = attrs.field(factory=list)
    dropped_foreign: list[str] = attrs.field(factory=list)
    renamed_keys: dict[str, str] = attrs.field(factory=dict)
    engine: str | None = None
    charset: Text | None = None
    converted: Text | None = None
    name: tuple[str, str] | None = None
    algorithm: str = ""
    versioned: bool | None = None
    period: Period | None = None
    detached: tuple[str, str] | None = None
    attached: tuple[str, str] | None = None
    said: set[Said] = attrs.field(factory=set)

    def key_name(self, name: str) -> str:
        """Return the name that a key has afterwards."""
        return self.renamed_keys.get(name.lower(), name)


@attrs.frozen
class _Reader:
    """What the meaning of a clause depends on."""

    database: str
    session: Session
    default: Text
    found: Clauses


def take_clauses(words: Words, database: str, session: Session, *, table: Text, default: Text) -> Clauses:
    """
    Read the clauses of a statement.

    Args:
        words: What follows the name of the table.
        database: Database of a new name that is not qualified.
        session: The session that makes it.
        table: Character set and collation of the table before.
        default: Those of its database.

    Raises:
        SchemaError: A clause cannot be read.
    """
    # A new character set of the table holds for all columns of the statement, wherever it stands.
    options = Clauses()
    for clause in words.rest().items():
        _take_charset(_Reader(database, session, default, options), clause)
    if options.converted and not session.server.mariadb:
        options.converted = options.charset  # MariaDB alone keeps options of the table apart
    text = options.charset or table
    found = attrs.evolve(options, said=set())
    reader = _Reader(database, session, default, found)
    rest = words.rest()
    while rest.word:
        _take_clause(reader, rest, text)
        rest.accept(",")
    return found


def _take_charset(reader: _Reader, clause: Words) -> None:
    convert = clause.accept("CONVERT", "TO")
    if not convert and (clause.upper in _ACTIONS or clause.kind is WordKind.IDENTIFIER):
        return
    found = reader.found
    while clause.word and clause.upper != "PARTITION":
        charset = take_charset(clause, found.charset, reader.session, reader.default)
        if charset is None:
            clause.step()
        else:
            found.charset, found.converted = charset, charset if convert else found.converted


def _take_clause(reader: _Reader, rest: Words, text: Text) -> None:
    """Read one clause from the words that are left."""
    if _is_of_partitions(rest):
        if not (rest.rest().accept("ADD") or rest.rest().accept("REORGANIZE")):
            reader.found.said.add(Said.PARTITIONS)
        _take_partitions(reader, rest)
        return
    clause = next(rest.rest().items())
    rest.position += len(clause.words)
    partitions = _partition_options(clause)
    if partitions:
        reader.found.said.add(Said.PARTITIONS)
    action = _ACTIONS.get(clause.upper)
    if action is not None:
        clause.step()
        action(reader, clause, text)
    else:
        words = {word.upper() for word, kind in clause.words if kind is WordKind.WORD}
        reader.found.said |= {Said.OPTION, *(said for name, said in _OPTIONS.items() if name in words)}
        options = take_options(clause, reader.session, reader.default)
        reader.found.engine = options.engine or reader.found.engine
    if partitions:
        rest.to_the_end()


def _is_of_partitions(words: Words) -> bool:
    """Return whether a statement goes on with partitions, which is its last clause and may hold commas."""
    words = words.rest()
    verb = words.accept_any(_PARTITION_VERBS)
    words.accept("ONLINE")
    return words.upper in _PARTITIONS and (bool(verb) or words.upper == "PARTITION")


def _take_partitions(reader: _Reader, words: Words) -> None:
    if words.accept("CONVERT", "PARTITION"):
        words.step()
        words.accept("TO", "TABLE")
        reader.found.detached = take_name(words, reader.database)
    words.to_the_end()


def _partition_options(clause: Words) -> bool:
    """Cut ``PARTITION BY`` from a clause, and return whether it is there."""
    depth = 0
    for place, (word, kind) in enumerate(clause.words):
        depth += (kind is WordKind.L_PAREN) - (kind is WordKind.R_PAREN)
        following = clause.words[place + 1][0].upper() if place + 1 < len(clause.words) else ""
        if depth == 0 and kind is WordKind.WORD and (word.upper(), following) in _PARTITION_ENDS:
            del clause.words[place:]
            return True
    return False


_PARTITION_ENDS = {("PARTITION", "BY"), ("REMOVE", "PARTITIONING")}


_Action = Callable[[_Reader, Words, Text], object]


def _add(reader: _Reader, clause: Words, text: Text) -> None:
    if clause.accept("SYSTEM", "VERSIONING"):
        reader.found.versioned = True
        return
    if clause.accept("PERIOD", "FOR"):
        reader.found.period = take_period(clause)
        return
    clause.accept("COLUMN")
    optional = clause.accept("IF", "NOT", "EXISTS")
    for item in clause.group().items() if clause.kind is WordKind.L_PAREN else (clause,):
        if item.accept("PERIOD", "FOR"):
            reader.found.period = take_period(item)
            continue
        if is_key_item(item):
            reader.found.keys.append(take_index(item))
            if not reader.found.keys[-1].kind:
                reader.found.said.add(Said.CHECK)
        else:
            _take_column(reader, item, text, NewColumn(_NO_ITEM, optional=optional))


def _take_column(reader: _Reader, clause: Words, text: Text, new: NewColumn) -> None:
    definition, after = _split_place(clause)
    found = reader.found
    words = [word.upper() for word, kind in definition.words if kind is WordKind.WORD]
    found.said |= {Said.CHECK} if "CHECK" in words[1:] else set()
    pairs = {*pairwise(words)}
    if ("COLUMN_FORMAT" in words and not pairs & _DYNAMIC) or ("STORAGE", "DISK") in pairs:
        found.said.add(Said.FORMAT)
    item = take_column(definition, text, reader.session, found.converted)
    # IF [NOT] EXISTS is of the keys that the definition declares, too: they come unless there is one of the name.
    found.keys += [
        attrs.evolve(key, name=key.name or item.column.name, optional=True) if new.optional else key
        for key in keys_of(item)
    ]
    reader.found.columns.append(attrs.evolve(new, item=item, after=after))


_DYNAMIC = {("COLUMN_FORMAT", "DYNAMIC"), ("COLUMN_FORMAT", "DEFAULT")}
_NO_ITEM = ColumnItem(Column("", ""))


def _split_place(clause: Words) -> tuple[Words, str | None]:
    """Return a column definition, and the column that it comes after: empty for the first place, None if not said."""
    rest = clause.rest().words
    if len(rest) > 1 and rest[-1][0].upper() == "FIRST" and rest[-1][1] is WordKind.WORD:
        return Words(rest[:-1]), ""
    if len(rest) > 2 and rest[-2][0].upper() == "AFTER" and rest[-2][1] is WordKind.WORD:
        return Words(rest[:-2]), rest[-1][0]
    return Words(rest), None


def _drop(reader: _Reader, clause: Words, _: Text) -> None:
    found = reader.found
    if clause.accept("SYSTEM", "VERSIONING"):
        found.versioned = False
    elif clause.accept("PRIMARY", "KEY"):
        found.dropped_keys.append("PRIMARY")
    elif clause.accept("INDEX") or clause.accept("KEY"):
        clause.accept("IF", "EXISTS")
        found.dropped_keys.append(clause.step())
    elif clause.accept("CONSTRAINT"):
        clause.accept("IF", "EXISTS")
        name = clause.step()
        found.dropped_keys.append(name)
        found.dropped_foreign.append(name)
    elif clause.accept("FOREIGN", "KEY"):
        clause.accept("IF", "EXISTS")
        found.dropped_foreign.append(clause.step())
    elif clause.accept("PERIOD"):
        is_of_versions = any(word.upper() == "SYSTEM_TIME" for word, _ in clause.words)
        found.period = found.period if is_of_versions else Period()
    elif clause.upper == "CHECK":
        found.said.add(Said.CHECK)
    else:
        clause.accept("COLUMN")
        optional = clause.accept("IF", "EXISTS")
        found.dropped[clause.step()] = optional


def _modify(reader: _Reader, clause: Words, text: Text) -> None:
    clause.accept("COLUMN")
    optional = clause.accept("IF", "EXISTS")
    _take_column(reader, clause, text, NewColumn(_NO_ITEM, clause.word, optional=optional))


def _change(reader: _Reader, clause: Words, text: Text) -> None:
    clause.accept("COLUMN")
    optional = clause.accept("IF", "EXISTS")
    _take_column(reader, clause, text, NewColumn(_NO_ITEM, clause.step(), optional=optional))


def _alter_column(reader: _Reader, clause: Words, _: Text) -> None:
    if clause.upper in ("INDEX", "KEY", "CHECK", "CONSTRAINT"):
        reader.found.said.add(Said.CHECK if clause.upper in ("CHECK", "CONSTRAINT") else Said.OPTION)
        return
    clause.accept("COLUMN")
    clause.accept("IF", "EXISTS")
    changes = reader.found.changed.setdefault(clause.step().lower(), [])
    if clause.accept("SET", "DEFAULT"):
        changes.append(lambda column: take_default(_without_default(column), clause.rest()))
    elif clause.accept("DROP", "DEFAULT"):
        changes.append(_without_default)
    elif clause.accept("SET", "INVISIBLE"):
        changes.append(lambda column: attrs.evolve(column, invisible=True))
    elif clause.accept("SET", "VISIBLE"):
        changes.append(lambda column: attrs.evolve(column, invisible=False))


def _without_default(column: Column) -> Column:
    return attrs.evolve(column, default=ABSENT, computed_default=False, expression=None)


def _rename(reader: _Reader, clause: Words, _: Text) -> None:
    found = reader.found
    if clause.upper in ("COLUMN", "INDEX", "KEY"):
        names = found.renamed if clause.step().upper() == "COLUMN" else found.renamed_keys
        clause.accept("IF", "EXISTS")
        old = clause.step()
        clause.accept("TO")
        names[old.lower()] = clause.step()
    else:
        clause.accept("TO") or clause.accept("AS") or clause.accept("=")
        found.name = take_name(clause, reader.database)


def _convert(reader: _Reader, clause: Words, _: Text) -> None:
    if clause.accept("TABLE"):
        reader.found.attached = take_name(clause, reader.database)


def _algorithm(reader: _Reader, clause: Words, _: Text) -> None:
    clause.accept("=")
    reader.found.algorithm = clause.step().upper()


def _says(said: Said) -> _Action:
    def take(reader: _Reader, clause: Words, _: Text) -> None:
        reader.found.said.add(said)
        clause.to_the_end()

    return take


def _nothing(_: _Reader, clause: Words, __: Text) -> None:
    clause.to_the_end()


_ACTIONS: dict[str, _Action] = {
    "ADD": _add,
    "DROP": _drop,
    "MODIFY": _modify,
    "CHANGE": _change,
    "ALTER": _alter_column,
    "RENAME": _rename,
    "CONVERT": _convert,
    "ALGORITHM": _algorithm,
    "LOCK": _nothing,
    "ORDER": _says(Said.ORDER),
    "DISABLE": _nothing,
    "ENABLE": _nothing,
    "FORCE": _says(Said.FORCE),
    "DISCARD": _nothing,
    "IMPORT": _nothing,
    "WITH": _nothing,
    "WITHOUT": _nothing,
    "WAIT": _nothing,
    "NOWAIT": _nothing,
}
