"""
ALTER TABLE: derives the new definition of a table from the old one.

Source: MySQL manual, "ALTER TABLE Statement" and "Online Operations with ALTER TABLE in NDB Cluster".
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
from sqlglot.tokenizer_core import TokenType

from ndb_formats.errors import SchemaError
from ndb_formats.schema.column_definition import take_column, take_default
from ndb_formats.schema.create_table import TABLE_ITEMS, complete, options_charset, take_index, take_name
from ndb_formats.schema.foreign_keys import split_reference, with_foreign_key, without_foreign_key
from ndb_formats.schema.serving_key import without_serving_key
from ndb_formats.schema.sql_words import Words
from ndb_formats.schema.tables import TEXT_TYPES, Column, Table
from ndb_formats.types.charsets import charset_of_collation, default_collation
from ndb_formats.types.values import ABSENT

__all__ = ["Alteration", "alter_table", "without_index"]


@attrs.frozen
class Alteration:
    """
    What a statement makes of a table.

    Attributes:
        table: The table afterwards, under its new name if it has one.
        sources: Per column, the ordinal of the column that it was before; None for a new one.
        copied: Whether the server makes a new table and copies the rows into it.
        added_only: Whether it only adds columns and keys, or changes nothing that matters here.
    """

    table: Table
    sources: tuple[int | None, ...]
    copied: bool = False
    added_only: bool = True


@attrs.define
class _Work:
    """A table while its clauses are carried out."""

    table: Table
    text: tuple[str, str]
    columns: list[tuple[Column, int | None]]
    algorithm: str = ""
    rebuilds: bool = False
    added_only: bool = True

    def place(self, name: str) -> int:
        """Return the place of a column, whose name may be in any letter case."""
        for place, (column, _) in enumerate(self.columns):
            if column.name.lower() == name.lower():
                return place
        names = ", ".join(column.name for column, _ in self.columns)
        message = f"the statement names column {name}, but the table has {names}"
        raise SchemaError(message, table=self.table.full_name, column=name)

    def put(self, place: int, column: Column, source: int | None) -> None:
        """Insert a column."""
        if any(each.name.lower() == column.name.lower() for each, _ in self.columns):
            message = (
                f"the statement makes column {column.name}, which the table has already; is the definition that of "
                'a later time? Give the one from before the binlogs, or say that it is of their end: schema_at = "end" '
                "in a run file, --schema-at end for decode"
            )
            raise SchemaError(message, table=self.table.full_name, column=column.name)
        self.columns.insert(place, (column, source))

    def rename(self, old: str, new: str) -> None:
        """Rename a column in the keys."""

        def renamed(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(new if name.lower() == old.lower() else name for name in names)

        self.table = attrs.evolve(
            self.table,
            primary_key=renamed(self.table.primary_key),
            unique_keys=tuple(renamed(key) for key in self.table.unique_keys),
            foreign_keys=tuple(attrs.evolve(key, columns=renamed(key.columns)) for key in self.table.foreign_keys),
        )


def alter_table(table: Table, words: Words, database: str) -> Alteration:
    """
    Return what the clauses of ALTER TABLE make of a table.

    Args:
        table: The table before.
        words: The clauses, after the table's name.
        database: Database of a new name that is not qualified.

    Raises:
        SchemaError: A clause cannot be followed, or does not fit the table.
    """
    collation = table.collation or default_collation("utf8mb4")
    text = (charset_of_collation(collation), collation)
    work = _Work(without_serving_key(table), text, [(column, place) for place, column in enumerate(table.columns)])
    for clause in words.items():
        while clause.word:
            _clause(work, clause, database)
    columns = tuple(column for column, _ in work.columns)
    if not columns:
        message = "no column would be left"
        raise SchemaError(message, table=table.full_name)
    after = complete(attrs.evolve(work.table, columns=columns, collation=work.text[1]))
    another_key = bool(table.serving) != bool(after.serving)
    rebuilds = work.rebuilds or another_key
    copied = rebuilds if not work.algorithm or work.algorithm == "DEFAULT" else work.algorithm == "COPY"
    return Alteration(after, tuple(source for _, source in work.columns), copied, work.added_only and not another_key)


def without_index(table: Table, name: str) -> Table:
    """Return a table without a key; a name that is none of its unique keys is that of another index."""
    kept = [place for place, each in enumerate(table.unique_names) if each.lower() != name.lower()]
    return attrs.evolve(
        table,
        unique_keys=tuple(table.unique_keys[place] for place in kept),
        unique_names=tuple(table.unique_names[place] for place in kept),
    )


def _clause(work: _Work, clause: Words, database: str) -> None:
    for phrase, action in _CLAUSES:
        if clause.accept(*phrase):
            action(work, clause)
            return
    if clause.accept("RENAME"):
        clause.accept("TO") or clause.accept("AS") or clause.accept("=")
        new = take_name(clause, database)
        work.table, work.added_only = attrs.evolve(work.table, database=new[0], name=new[1]), False
        return
    given = options_charset(clause, None)
    if given is not None:
        while (more := options_charset(clause, given)) is not None:
            given = more
        work.text = given
        return
    if clause.upper in _HARMLESS:
        _skip_option(clause)
        return
    message = f"ALTER TABLE ... {clause.word} cannot be followed"
    raise SchemaError(message, table=work.table.full_name)


def _skip_option(clause: Words) -> None:
    """Step over a table option and its value; what follows may be the next option."""
    partitions = clause.upper in _TO_THE_END
    clause.step()
    while clause.word and (partitions or clause.kind in (TokenType.EQ, TokenType.L_PAREN)):
        if clause.kind is TokenType.L_PAREN:
            clause.group()
        else:
            clause.step()
            if not partitions and clause.word:
                clause.step()
                return
    if clause.word and clause.upper not in _HARMLESS and clause.upper not in _STARTS:
        clause.step()  # a value without an equals sign


def _add(work: _Work, clause: Words) -> None:
    clause.accept("COLUMN")
    if clause.upper == "PARTITION":
        _to_the_end(work, clause)
    elif clause.upper in TABLE_ITEMS:
        _add_index(work, clause)
    elif clause.kind is TokenType.L_PAREN:
        for item in clause.group().items():
            if item.upper in TABLE_ITEMS:
                _add_index(work, item)
            else:
                _add_column(work, item, len(work.columns))
    else:
        _add_column(work, clause, len(work.columns))


def _add_index(work: _Work, clause: Words) -> None:
    index = take_index(clause)
    if index.kind == "PRIMARY":
        work.table = attrs.evolve(work.table, primary_key=index.columns, primary_key_prefixes=index.prefixes)
        work.rebuilds, work.added_only = True, False
    elif index.kind == "UNIQUE":
        work.table = work.table.with_unique_key(index.name, index.columns)
    elif index.foreign is not None:
        work.table = with_foreign_key(work.table, index.foreign)
    _to_the_end(work, clause)


def _add_column(work: _Work, clause: Words, last: int) -> None:
    definition, after = _split_place(clause)
    place = last if after is None else work.place(after) + 1 if after else 0
    definition, reference = split_reference(definition)
    column, keys = take_column(definition, work.text)
    work.table = work.table if reference is None else with_foreign_key(work.table, reference)
    # What NDB can add online: at the end, NULL, without a default.
    work.rebuilds |= after is not None or not column.nullable or column.default not in (ABSENT, None)
    work.rebuilds |= bool(column.generated)
    work.put(place, column, None)
    _keys_of(work, column, keys)
    clause.position = len(clause.words)


def _keys_of(work: _Work, column: Column, keys: set[str]) -> None:
    if "primary" in keys:
        work.table = attrs.evolve(work.table, primary_key=(column.name,), primary_key_prefixes=())
        work.added_only = False
    if "unique" in keys:
        work.table = work.table.with_unique_key("", (column.name,))


def _split_place(clause: Words) -> tuple[Words, str | None]:
    """Return a column definition, and the column that it comes after: empty for the first place, None if not said."""
    rest = clause.rest().words
    keywords = (None, TokenType.IDENTIFIER, TokenType.STRING)
    if len(rest) > 1 and rest[-1][0].upper() == "FIRST" and rest[-1][1] not in keywords:
        return Words(rest[:-1]), ""
    if len(rest) > 2 and rest[-2][0].upper() == "AFTER" and rest[-2][1] not in keywords:
        return Words(rest[:-2]), rest[-1][0]
    return Words(rest), None


def _drop(work: _Work, clause: Words) -> None:
    work.added_only = False
    if clause.accept("PRIMARY", "KEY"):
        work.table = attrs.evolve(work.table, primary_key=(), primary_key_prefixes=())
        work.rebuilds = True
    elif clause.accept("INDEX") or clause.accept("KEY"):
        work.table = without_index(work.table, clause.step())
    elif clause.accept("CONSTRAINT"):
        name = clause.step()
        work.table = without_foreign_key(without_index(work.table, name), name)
    elif clause.accept("FOREIGN", "KEY"):
        work.table = without_foreign_key(work.table, clause.step())
    elif clause.accept("CHECK"):
        clause.step()
    elif clause.upper == "PARTITION":
        _to_the_end(work, clause)
    else:
        clause.accept("COLUMN")
        _drop_column(work, clause.step())
        _to_the_end(work, clause)


def _drop_column(work: _Work, name: str) -> None:
    column, _ = work.columns.pop(work.place(name))
    work.rebuilds, table = True, work.table
    if column.name in table.primary_key:
        key = tuple(each for each in table.primary_key if each != column.name)
        prefixes = tuple(
            prefix
            for each, prefix in zip(table.primary_key, table.primary_key_prefixes, strict=False)
            if each != column.name
        )
        table = attrs.evolve(table, primary_key=key, primary_key_prefixes=prefixes)
    left = [tuple(each for each in key if each != column.name) for key in table.unique_keys]
    kept = [(key, name) for key, name in zip(left, table.unique_names, strict=True) if key]
    work.table = attrs.evolve(
        table, unique_keys=tuple(key for key, _ in kept), unique_names=tuple(name for _, name in kept)
    )


def _modify(work: _Work, clause: Words) -> None:
    clause.accept("COLUMN")
    _redefine(work, clause.word, clause)


def _change(work: _Work, clause: Words) -> None:
    clause.accept("COLUMN")
    _redefine(work, clause.step(), clause)


def _redefine(work: _Work, old: str, clause: Words) -> None:
    definition, after = _split_place(clause)
    place = work.place(old)
    before, source = work.columns.pop(place)
    definition, reference = split_reference(definition)
    column, keys = take_column(definition, work.text)
    work.table = work.table if reference is None else with_foreign_key(work.table, reference)
    if after is not None:
        place = work.place(after) + 1 if after else 0
    work.put(place, column, source)
    work.rename(before.name, column.name)
    _keys_of(work, column, keys)
    work.rebuilds |= after is not None or attrs.evolve(column, name=before.name) != before
    work.added_only = False
    clause.position = len(clause.words)


def _alter_column(work: _Work, clause: Words) -> None:
    if clause.upper in ("INDEX", "CHECK", "CONSTRAINT"):
        _to_the_end(work, clause)
        return
    clause.accept("COLUMN")
    place = work.place(clause.step())
    column, source = work.columns[place]
    if clause.accept("SET", "DEFAULT"):
        column = take_default(attrs.evolve(column, default=ABSENT, computed_default=False), clause)
    elif clause.accept("DROP", "DEFAULT"):
        column = attrs.evolve(column, default=ABSENT, computed_default=False)
    elif clause.accept("SET", "INVISIBLE") or clause.accept("SET", "VISIBLE"):
        column = attrs.evolve(column, invisible=not column.invisible)
    work.columns[place] = column, source
    work.added_only = False


def _rename_column(work: _Work, clause: Words) -> None:
    place = work.place(clause.step())
    clause.accept("TO")
    column, source = work.columns.pop(place)
    renamed = attrs.evolve(column, name=clause.step())
    work.put(place, renamed, source)
    work.rename(column.name, renamed.name)
    work.added_only = False


def _rename_index(work: _Work, clause: Words) -> None:
    old = clause.step()
    clause.accept("TO")
    new = clause.step()
    names = tuple(new if each.lower() == old.lower() else each for each in work.table.unique_names)
    work.table, work.added_only = attrs.evolve(work.table, unique_names=names), False


def _convert(work: _Work, clause: Words) -> None:
    given = options_charset(clause, None)
    while (more := options_charset(clause, given)) is not None:
        given = more
    if given is None:
        message = f"CONVERT TO {clause.word} cannot be followed"
        raise SchemaError(message, table=work.table.full_name)
    work.text, work.rebuilds, work.added_only = given, True, False
    work.columns = [
        (attrs.evolve(column, charset=given[0], collation=given[1]) if _is_text(column) else column, source)
        for column, source in work.columns
    ]


def _is_text(column: Column) -> bool:
    return column.type in TEXT_TYPES or column.type in ("enum", "set")


def _algorithm(work: _Work, clause: Words) -> None:
    clause.accept("=")
    work.algorithm = clause.step().upper()


def _engine(work: _Work, clause: Words) -> None:
    clause.accept("=")
    work.table = attrs.evolve(work.table, engine=clause.step().upper())
    work.rebuilds, work.added_only = True, False


def _to_the_end(_: _Work, clause: Words) -> None:
    clause.position = len(clause.words)


_Action = Callable[[_Work, Words], object]
_CLAUSES: tuple[tuple[tuple[str, ...], _Action], ...] = (
    (("ADD",), _add),
    (("DROP",), _drop),
    (("MODIFY",), _modify),
    (("CHANGE",), _change),
    (("ALTER",), _alter_column),
    (("RENAME", "COLUMN"), _rename_column),
    (("RENAME", "INDEX"), _rename_index),
    (("RENAME", "KEY"), _rename_index),
    (("CONVERT", "TO"), _convert),
    (("ALGORITHM",), _algorithm),
    (("ENGINE",), _engine),
    (("DEFAULT",), lambda work, clause: None),  # of the CHARACTER SET that follows
)
_STARTS = frozenset(phrase[0] for phrase, _ in _CLAUSES) | {"CHARACTER", "CHARSET", "COLLATE"}
# What changes neither columns nor keys. The last of them take all words that follow.
_TO_THE_END = frozenset(
    {"PARTITION", "REORGANIZE", "COALESCE", "REMOVE", "REBUILD", "ANALYZE", "CHECK", "OPTIMIZE", "REPAIR", "EXCHANGE"}
    | {"TRUNCATE", "DISCARD", "IMPORT", "ORDER", "DISABLE", "ENABLE", "WITH", "WITHOUT", "UNION"}
)
_HARMLESS = _TO_THE_END | {
    *("LOCK", "COMMENT", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHECKSUM", "COMPRESSION", "CONNECTION", "DATA", "INDEX"),
    *("DELAY_KEY_WRITE", "ENCRYPTION", "INSERT_METHOD", "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS"),
    *("PASSWORD", "ROW_FORMAT", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "STORAGE", "FORCE"),
    *("TABLESPACE", "NODEGROUP", "SECONDARY_ENGINE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"),
    *("AUTOEXTEND_SIZE",),
}
