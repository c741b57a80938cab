"""
Keys and foreign keys in definitions of tables: how statements declare them, and what they make of a table.

Source: MySQL manual, "FOREIGN KEY Constraints".
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ndb_formats.cursor import whole_number
from ndb_formats.schema.lexer import WordKind, Words
from ndb_formats.schema.row_keys import with_serving_key
from ndb_formats.schema.tables import TEXT_TYPES, Column, ForeignKey, KeyPart, Period, ReferenceAction, Table

_ACTIONS = {
    ("RESTRICT",): ReferenceAction.RESTRICT,
    ("CASCADE",): ReferenceAction.CASCADE,
    ("SET", "NULL"): ReferenceAction.SET_NULL,
    ("NO", "ACTION"): ReferenceAction.NO_ACTION,
}


def _take_foreign_key(item: Words, symbol: str) -> ForeignKey:
    """
    Read what follows FOREIGN KEY.

    Args:
        item: The rest of the clause. A name of its index is skipped: it does not name the constraint.
        symbol: What CONSTRAINT names; empty if it names nothing.
    """
    while item.kind is not WordKind.L_PAREN:
        item.step()
    columns = tuple(part.step() for part in item.group().items())
    while item.word and not item.accept("REFERENCES"):
        item.step()
    return _reference(item, symbol, columns)


def split_reference(definition: Words) -> tuple[Words, ForeignKey | None]:
    """Split the definition of a column from the REFERENCES after it, which is a foreign key of that column."""
    depth = 0
    for place, (word, kind) in enumerate(definition.words):
        depth += (kind is WordKind.L_PAREN) - (kind is WordKind.R_PAREN)
        name = kind in (WordKind.IDENTIFIER, WordKind.STRING)
        if place and depth == 0 and not name and word.upper() == "REFERENCES":
            reference = Words(definition.words[place + 1 :])
            key = _reference(reference, "", (definition.words[0][0],))
            return Words(definition.words[:place]), attrs.evolve(key, inline=True)
    return definition, None


def _reference(words: Words, symbol: str, columns: tuple[str, ...]) -> ForeignKey:
    """Read a parent and what happens with it; without columns, its primary key is meant."""
    database, parent = "", words.step()
    if words.kind is WordKind.DOT:
        words.step()
        database, parent = parent, words.step()
    listed = words.group().items() if words.kind is WordKind.L_PAREN else ()
    found = ForeignKey(symbol, columns, database, parent, tuple(part.step() for part in listed))
    while words.word and words.upper != "MATCH":  # with MATCH the server ignores ON DELETE and ON UPDATE
        if words.accept("ON", "DELETE"):
            found = attrs.evolve(found, on_delete=_action(words))
        elif words.accept("ON", "UPDATE"):
            found = attrs.evolve(found, on_update=_action(words))
        else:
            words.step()
    return found


def _action(words: Words) -> ReferenceAction:
    """Read an action; SET DEFAULT, which the server refuses, counts as none."""
    return next((action for phrase, action in _ACTIONS.items() if words.accept(*phrase)), ReferenceAction.NO_ACTION)


def with_foreign_key(table: Table, key: ForeignKey) -> Table:
    """Return a table with one more foreign key; the server numbers those without a name."""
    if not key.name:
        prefix = f"{table.name}_fk_"
        numbers = (each.name.removeprefix(prefix) for each in table.foreign_keys if each.name.startswith(prefix))
        last = max((whole_number(number) or 0 for number in numbers), default=0)
        key = attrs.evolve(key, name=f"{prefix}{last + 1}")
    return attrs.evolve(table, foreign_keys=(*table.foreign_keys, key))


def without_foreign_key(table: Table, name: str) -> Table:
    """Return a table without a foreign key; the letter case of its name does not count."""
    kept = tuple(each for each in table.foreign_keys if each.name.lower() != name.lower())
    return attrs.evolve(table, foreign_keys=kept)


_STARTS = frozenset({"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK"})
_CHARACTER_TYPES = TEXT_TYPES | {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}


@attrs.frozen
class IndexItem:
    """
    A key in a definition.

    Attributes:
        kind: ``PRIMARY``, ``UNIQUE``, ``FOREIGN``, ``INDEX`` for one that is not unique; empty for checks.
        name: Its name; empty if it has none.
        columns: Its columns.
        prefixes: The lengths of their prefixes; empty if all are whole.
        parts: All its parts, if one of them is an expression, which is not among the columns.
        foreign: The foreign key that it is.
        inline: Whether the definition of its column declares it.
        optional: Whether it is left out if there is one of its name (MariaDB).
    """

    kind: str
    name: str = ""
    columns: tuple[str, ...] = ()
    prefixes: tuple[int, ...] = ()
    parts: tuple[KeyPart, ...] = ()
    foreign: ForeignKey | None = None
    inline: bool = False
    optional: bool = False


def is_key_item(item: Words) -> bool:
    """Return whether a part of a definition is a key, an index or a constraint, and not a column."""
    if item.upper in _STARTS:
        return True
    return item.upper == "VECTOR" and item.rest().words[1:2] in ([("INDEX", WordKind.WORD)], [("KEY", WordKind.WORD)])


def take_index(item: Words) -> IndexItem:
    """Read a key, an index or a constraint; see `is_key_item`."""
    name = ""
    if item.accept("CONSTRAINT"):
        item.accept("IF", "NOT", "EXISTS")
        if item.upper not in _STARTS:
            name = item.step()
    if item.accept("PRIMARY", "KEY"):
        optional = item.accept("IF", "NOT", "EXISTS")
        return attrs.evolve(key_columns(item), kind="PRIMARY", name="PRIMARY", optional=optional)
    if item.accept("FOREIGN", "KEY"):
        item.accept("IF", "NOT", "EXISTS")
        return IndexItem("FOREIGN", name, foreign=_take_foreign_key(item, name))
    if item.upper == "CHECK":
        return IndexItem("")
    kind = "UNIQUE" if item.step().upper() == "UNIQUE" else "INDEX"
    item.accept("KEY") or item.accept("INDEX")
    optional = item.accept("IF", "NOT", "EXISTS")
    if item.kind is not WordKind.L_PAREN and item.upper not in ("USING", "TYPE"):
        name = item.step()
    return attrs.evolve(key_columns(item), kind=kind, name=name, optional=optional)


def take_period(item: Words) -> Period | None:
    """Read what follows PERIOD FOR; None for the period of row versions, which is not of the application (MariaDB)."""
    name = item.step()
    start, end = (part.step() for part in item.group().items())
    return None if name.upper() == "SYSTEM_TIME" else Period(name, start, end)


def key_columns(item: Words) -> IndexItem:
    """Read the columns of a key, which stand in the next parenthesis."""
    while item.kind is not WordKind.L_PAREN:
        item.step()
    parts = list[KeyPart]()
    for part in item.group().items():
        if part.kind is WordKind.L_PAREN:
            parts.append(KeyPart(expression=part.group().text))
            continue
        name = part.step()
        length = part.group().step() if part.word == "(" else ""
        parts.append(KeyPart(name, whole_number(length) or 0))
    columns = [part for part in parts if not part.expression]
    prefixes = tuple(part.prefix for part in columns)
    return IndexItem(
        "INDEX",
        "",
        tuple(part.column for part in columns),
        prefixes if any(prefixes) else (),
        tuple(parts) if len(columns) < len(parts) else (),
    )


def with_key(table: Table, index: IndexItem) -> Table:
    """
    Return a table with one more key that is no foreign key.

    A key with an expression identifies no row here: its name counts, and that it is unique.
    """
    if index.optional and (table.primary_key if index.kind == "PRIMARY" else table.has_key(index.name)):
        return table
    if index.kind == "PRIMARY":
        return attrs.evolve(table, primary_key=index.columns, primary_key_prefixes=index.prefixes)
    if index.kind == "UNIQUE" and not index.parts:
        made = table.with_unique_key(index.name, index.columns)
        lengths = _true_prefixes(_as_declared(index.columns, table.columns), index.prefixes, table.columns)
        parts = {
            (made.unique_names[-1].lower(), name.lower(), cut)
            for name, cut in zip(index.columns, lengths, strict=False)
            if cut
        }
        return attrs.evolve(made, unique_prefixes=table.unique_prefixes | parts)
    if index.kind in ("UNIQUE", "INDEX"):
        name = index.name or table.free_name("functional_index" if index.parts else index.columns[0])
        if index.kind == "UNIQUE":
            declared = _as_declared(tuple(part.column for part in index.parts), table.columns)
            key = tuple(attrs.evolve(part, column=each) for part, each in zip(index.parts, declared, strict=True))
            table = attrs.evolve(table, functional_keys=(*table.functional_keys, (name, key)))
        return table.with_index(name, index.columns)
    return table


def without_key(table: Table, name: str) -> Table:
    """Return a table without a key of a name; PRIMARY is the primary key."""
    if name.upper() == "PRIMARY":
        return attrs.evolve(table, primary_key=(), primary_key_prefixes=())
    kept = [place for place, each in enumerate(table.unique_names) if each.lower() != name.lower()]
    return attrs.evolve(
        table,
        unique_keys=tuple(table.unique_keys[place] for place in kept),
        unique_names=tuple(table.unique_names[place] for place in kept),
        unique_prefixes=frozenset(part for part in table.unique_prefixes if part[0] != name.lower()),
        functional_keys=tuple(key for key in table.functional_keys if key[0].lower() != name.lower()),
        indexes=tuple(index for index in table.indexes if index[0].lower() != name.lower()),
    )


def complete(table: Table) -> Table:
    """Return a table with what follows from its keys and expressions: names as declared, key columns NOT NULL."""
    table = _with_period(table)
    primary_key = _as_declared(table.primary_key, table.columns)
    unique_keys = tuple(_as_declared(names, table.columns) for names in table.unique_keys)
    foreign = [attrs.evolve(each, columns=_as_declared(each.columns, table.columns)) for each in table.foreign_keys]
    key = {*primary_key, *_as_declared(table.period.columns, table.columns)}
    columns = [attrs.evolve(column, nullable=column.nullable and column.name not in key) for column in table.columns]
    columns = [attrs.evolve(column, depends_on=_mentioned(column.depends_on, columns)) for column in columns]
    table = attrs.evolve(
        table,
        columns=tuple(columns),
        primary_key=primary_key,
        unique_keys=unique_keys,
        foreign_keys=tuple(foreign),
        primary_key_prefixes=_true_prefixes(primary_key, table.primary_key_prefixes, columns),
    )
    return with_serving_key(table)


def _with_period(table: Table) -> Table:
    """Return a table in whose keys the columns of its period stand in place of its name: the end, then the start."""
    period, prefixes = table.period, dict(zip(table.primary_key, table.primary_key_prefixes, strict=False))

    def spelled(key: tuple[str, ...]) -> tuple[str, ...]:
        parts = ((period.end, period.start) if name.lower() == period.name.lower() else (name,) for name in key)
        return tuple(name for part in parts for name in part)

    if not period.name:
        return table
    primary_key = spelled(table.primary_key)
    return attrs.evolve(
        table,
        primary_key=primary_key,
        primary_key_prefixes=tuple(prefixes.get(name, 0) for name in primary_key) if prefixes else (),
        unique_keys=tuple(map(spelled, table.unique_keys)),
    )


def _as_declared(names: tuple[str, ...], columns: Sequence[Column]) -> tuple[str, ...]:
    """Return column names of a key, which MySQL takes in any letter case, as they were declared."""
    declared = {column.name.lower(): column.name for column in columns}
    return tuple(declared.get(name.lower(), name) for name in names)


def _mentioned(words: tuple[str, ...], columns: Sequence[Column]) -> tuple[str, ...]:
    return tuple(column.name for column in columns if column.name.lower() in {word.lower() for word in words})


def _true_prefixes(names: tuple[str, ...], prefixes: tuple[int, ...], columns: Sequence[Column]) -> tuple[int, ...]:
    """Return the lengths of prefixes; one as long as its column is the whole column."""
    declared = {column.name: column for column in columns}
    found = tuple(
        0 if name in declared and _is_whole(declared[name], prefix) else prefix
        for name, prefix in zip(names, (*prefixes, *[0] * len(names)), strict=False)
    )
    return found if any(found) else ()


def _is_whole(column: Column, prefix: int) -> bool:
    return (column.length is not None and prefix >= column.length) or column.type not in _CHARACTER_TYPES
