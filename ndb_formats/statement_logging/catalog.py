"""
What the server knows when a statement runs: tables, temporary tables, views, triggers and routines.

It is built from the statements that create them, and follows the definitions in a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import attrs

from ndb_formats.errors import SchemaError
from ndb_formats.schema.lexer import WordKind, Words
from ndb_formats.schema.table_body import take_name
from ndb_formats.statement_logging.references import (
    LOGGED_VARIABLES,
    UNSAFE_FUNCTIONS,
    called_functions,
    unsafe_variables,
)
from ndb_formats.statement_logging.sql_text import BodyStatement, SqlStatement, body_statements

Name = tuple[str, str]
_CHARACTERISTICS = frozenset(
    {"COMMENT", "LANGUAGE", "NOT", "DETERMINISTIC", "CONTAINS", "NO", "READS", "MODIFIES", "SQL", "USING"}
)
_KEYS = frozenset({"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK"})


@attrs.frozen
class CatalogKey:
    """
    A foreign key: the parent table, and what a change of the parent does.

    Attributes:
        parent: Database and name of the parent table.
        on_delete: ``CASCADE``, ``SET NULL``, or empty where the child stays as it is.
        on_update: The same for updates.
    """

    parent: Name
    on_delete: str = ""
    on_update: str = ""

    def action(self, event: str) -> str:
        """Return the action for DELETE or UPDATE."""
        return self.on_delete if event == "DELETE" else self.on_update


@attrs.frozen
class TableFacts:
    """
    What the logging of a statement depends on of a table.

    Attributes:
        engine: Its storage engine in upper case.
        columns: Its columns; empty if they are not known (CREATE TABLE ... SELECT).
        auto_increment: Its AUTO_INCREMENT column, or None.
        auto_increment_first: Whether a key begins with that column.
        unique_keys: How many unique keys it has, the primary key among them.
        unsafe_defaults: Columns whose DEFAULT is an unsafe expression.
        parser_plugin: Whether a fulltext key uses a parser plugin.
        foreign_keys: Its foreign keys.
    """

    engine: str
    columns: tuple[str, ...] = ()
    auto_increment: str | None = None
    auto_increment_first: bool = True
    unique_keys: int = 0
    unsafe_defaults: tuple[str, ...] = ()
    parser_plugin: bool = False
    foreign_keys: tuple[CatalogKey, ...] = ()


@attrs.frozen
class Routine:
    """
    A stored procedure or function.

    Attributes:
        database: The database of the names in its body.
        body: The statements of its body.
    """

    database: str
    body: tuple[BodyStatement, ...]


@attrs.frozen
class View:
    """A view: its query, and the database of the names in it."""

    database: str
    query: SqlStatement


@attrs.frozen
class TriggerFacts:
    """A trigger: the table and event (INSERT, UPDATE or DELETE) that fire it, and its body."""

    table: tuple[str, str]
    event: str
    routine: Routine


@attrs.define
class Catalog:
    """
    Tables and all else that statements use, by database and name.

    Attributes:
        tables: Tables.
        temporary: Temporary tables of the session, which hide tables of the same name.
        views: Views.
        triggers: Triggers by their own name.
        procedures: Stored procedures, whose names are in lower case.
        functions: Stored functions, whose names are in lower case.
        assumed_engine: Engine of every table that is not among them, in upper case; None if it is not known.
    """

    tables: dict[Name, TableFacts] = attrs.field(factory=dict)
    temporary: dict[Name, TableFacts] = attrs.field(factory=dict)
    views: dict[Name, View] = attrs.field(factory=dict)
    triggers: dict[Name, TriggerFacts] = attrs.field(factory=dict)
    procedures: dict[Name, Routine] = attrs.field(factory=dict)
    functions: dict[Name, Routine] = attrs.field(factory=dict)
    assumed_engine: str | None = None

    def copy(self) -> Catalog:
        """Return a copy that changes by itself."""
        return attrs.evolve(
            self,
            tables=dict(self.tables),
            temporary=dict(self.temporary),
            views=dict(self.views),
            triggers=dict(self.triggers),
            procedures=dict(self.procedures),
            functions=dict(self.functions),
        )

    def forget(self, name: Name, *, temporary: bool) -> None:
        """Remove a table that was not created after all."""
        (self.temporary if temporary else self.tables).pop(name, None)

    def children(self, parent: Name) -> Iterator[tuple[Name, CatalogKey]]:
        """Yield the other tables that refer to `parent`, and their foreign keys."""
        for name, table in self.tables.items():
            for key in table.foreign_keys:
                if key.parent == parent and name != parent:
                    yield name, key

    def fired(self, table: Name, events: frozenset[str]) -> Iterator[Routine]:
        """Yield the triggers of a table for some events."""
        for trigger in self.triggers.values():
            if trigger.table == table and trigger.event in events:
                yield trigger.routine

    def define(self, statement: SqlStatement, database: str, engine: str, temporary_engine: str) -> None:
        """
        Follow a statement that creates, changes or drops something; others change nothing.

        Args:
            statement: The statement.
            database: The default database.
            engine: Engine of a table that names none (``default_storage_engine``).
            temporary_engine: The same of a temporary table (``default_tmp_storage_engine``).
        """
        with suppress(SchemaError):  # what cannot be read is not known, and asked where it matters
            self.follow(statement, database, engine, temporary_engine)

    def follow(self, statement: SqlStatement, database: str, engine: str, temporary_engine: str) -> None:
        """
        Follow a statement as `define` does.

        Raises:
            SchemaError: It cannot be read.
        """
        words = statement.words()
        if words.accept("CREATE"):
            self._create(words, database, (engine, temporary_engine))
        elif words.accept("DROP"):
            self._drop(words, database)
        elif words.accept("ALTER", "TABLE"):
            self._alter(words, database)
        elif words.accept("RENAME", "TABLE"):
            self._rename(words, database)

    def _create(self, words: Words, database: str, engines: tuple[str, str]) -> None:
        words.accept("OR", "REPLACE")
        while words.upper not in ("TABLE", "TEMPORARY", "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "UNIQUE", ""):
            words.step()  # DEFINER = ..., ALGORITHM = ...
        temporary = words.accept("TEMPORARY")
        kind = words.step().upper()
        words.accept("IF", "NOT", "EXISTS")
        if kind == "TABLE":
            name = take_name(words, database)
            tables = self.temporary if temporary else self.tables
            if name not in tables:
                tables[name] = self._table(words, database, engines[1] if temporary else engines[0])
        elif kind == "VIEW":
            name = take_name(words, database)
            while words.upper not in ("AS", ""):
                words.step()
            words.step()
            self.views[name] = View(database, SqlStatement("", tuple(words.rest().words)))
        elif kind == "TRIGGER":
            self._create_trigger(words, database)
        elif kind in ("PROCEDURE", "FUNCTION"):
            owner, routine = take_name(words, database)
            words.group()
            routines = self.procedures if kind == "PROCEDURE" else self.functions
            routines[owner, routine.lower()] = Routine(owner, tuple(body_statements(_body(words))))
        elif kind == "UNIQUE":
            while words.upper != "ON":
                words.step()
            words.step()
            self._evolve_unique(take_name(words, database), 1)

    def _evolve_unique(self, name: Name, more: int) -> None:
        if name in self.tables:
            table = self.tables[name]
            self.tables[name] = attrs.evolve(table, unique_keys=max(0, table.unique_keys + more))

    def _create_trigger(self, words: Words, database: str) -> None:
        name = take_name(words, database)
        words.step()  # BEFORE or AFTER
        event = words.step().upper()
        words.step()  # ON
        table = take_name(words, name[0])
        words.accept("FOR", "EACH", "ROW")
        if words.accept("FOLLOWS") or words.accept("PRECEDES"):
            words.step()
        body = words.rest()
        self.triggers[name] = TriggerFacts(table, event, Routine(name[0], tuple(body_statements(body))))

    def _table(self, words: Words, database: str, engine: str) -> TableFacts:
        if words.accept("LIKE"):
            return self.tables.get(take_name(words, database), TableFacts(engine))
        columns = words.group() if words.kind is WordKind.L_PAREN else Words([])
        if columns.accept("LIKE"):
            return self.tables.get(take_name(columns, database), TableFacts(engine))
        return _table_facts(columns, database, _option(words, "ENGINE") or engine)

    def _drop(self, words: Words, database: str) -> None:
        temporary = words.accept("TEMPORARY")
        kind = words.step().upper()
        words.accept("IF", "EXISTS")
        if kind in ("TABLE", "TABLES"):
            for part in words.rest().items():
                name = take_name(part, database)
                if self.temporary.pop(name, None) is None and not temporary:
                    self.tables.pop(name, None)
            return
        owner, other = take_name(words, database)
        if kind == "VIEW":
            self.views.pop((owner, other), None)
        elif kind == "TRIGGER":
            self.triggers.pop((owner, other), None)
        elif kind == "PROCEDURE":
            self.procedures.pop((owner, other.lower()), None)
        elif kind == "FUNCTION":
            self.functions.pop((owner, other.lower()), None)

    def _alter(self, words: Words, database: str) -> None:
        name = take_name(words, database)
        tables = self.temporary if name in self.temporary else self.tables
        table = tables.get(name)
        if table is None:
            return
        for part in words.rest().items():
            if part.accept("ENGINE"):
                part.accept("=")
                table = attrs.evolve(table, engine=engine_name(part.step()))
            elif part.accept("ADD"):
                added = part.group().items() if part.kind is WordKind.L_PAREN else [part]
                for item in added:
                    table = _with_item(table, item, database)
        tables[name] = table

    def _rename(self, words: Words, database: str) -> None:
        for part in words.rest().items():
            old = take_name(part, database)
            part.step()  # TO
            table = self.tables.pop(old, None)
            if table is not None:
                self.tables[take_name(part, database)] = table


def _body(words: Words) -> Words:
    """Step over RETURNS and the characteristics of a routine, and return its body."""
    if words.accept("RETURNS"):
        words.step()
        if words.kind is WordKind.L_PAREN:
            words.group()
        while words.upper in ("UNSIGNED", "CHARSET", "CHARACTER", "COLLATE"):
            named = words.step().upper() != "UNSIGNED"
            words.accept("SET")
            if named:
                words.step()
    while words.upper in _CHARACTERISTICS or words.upper in ("DATA", "SECURITY", "DEFINER", "INVOKER"):
        if words.step().upper() in ("COMMENT", "LANGUAGE"):
            words.step()
        words.accept("SECURITY", "DEFINER")
    return words.rest()


def engine_name(name: str) -> str:
    """Return the name of an engine in upper case; some have two."""
    upper = name.upper()
    return {"NDBCLUSTER": "NDB", "HEAP": "MEMORY", "MERGE": "MRG_MYISAM"}.get(upper, upper)


def _option(words: Words, name: str) -> str | None:
    ahead = Words(words.words, words.position)
    while ahead.kind is not None:
        if ahead.accept(name):
            ahead.accept("=")
            return engine_name(ahead.step())
        if ahead.upper in ("SELECT", "TABLE", "WITH"):
            return None
        ahead.step()
    return None


def _table_facts(columns: Words, database: str, engine: str) -> TableFacts:
    table = TableFacts(engine, auto_increment_first=False)
    for item in columns.items():
        table = _with_item(table, item, database)
    return table


def _with_item(table: TableFacts, item: Words, database: str) -> TableFacts:
    """Return a table with one more item of its definition: a column, a key or a foreign key."""
    words = [text.upper() for text, kind in item.words[item.position :] if kind is not WordKind.STRING]
    if "REFERENCES" in words:
        key = _foreign_key(item.rest(), database)
        table = attrs.evolve(table, foreign_keys=(*table.foreign_keys, key))
    if item.accept("CONSTRAINT") and item.upper not in _KEYS:
        item.step()
    if item.upper in _KEYS:
        first = _first_key_column(Words(item.words, item.position))
        return attrs.evolve(
            table,
            unique_keys=table.unique_keys + (item.upper in ("PRIMARY", "UNIQUE")),
            auto_increment_first=table.auto_increment_first or (first is not None and first == table.auto_increment),
            parser_plugin=table.parser_plugin or "PARSER" in words,
        )
    item.accept("COLUMN")
    if item.kind is None:
        return table
    name = item.step()
    is_key = "KEY" in words or "UNIQUE" in words or "PRIMARY" in words
    if "AUTO_INCREMENT" in words or "SERIAL" in words[1:2]:
        table = attrs.evolve(table, auto_increment=name, auto_increment_first=is_key)
    if is_unsafe_default(Words(item.words, item.position)):
        table = attrs.evolve(table, unsafe_defaults=(*table.unsafe_defaults, name))
    return attrs.evolve(table, columns=(*table.columns, name), unique_keys=table.unique_keys + is_key)


def _first_key_column(item: Words) -> str | None:
    while item.kind is not None and item.kind is not WordKind.L_PAREN:
        item.step()
    return item.group().word if item.kind is not None else None


def _foreign_key(item: Words, database: str) -> CatalogKey:
    while not item.accept("REFERENCES"):
        item.step()
    key = CatalogKey(take_name(item, database))
    while item.kind is not None:
        if item.accept("ON", "DELETE"):
            key = attrs.evolve(key, on_delete=_action(item))
        elif item.accept("ON", "UPDATE"):
            key = attrs.evolve(key, on_update=_action(item))
        else:
            item.step()
    return key


def _action(item: Words) -> str:
    if item.accept("CASCADE"):
        return "CASCADE"
    return "SET NULL" if item.accept("SET", "NULL") else ""


def is_unsafe_default(words: Words) -> bool:
    """Return whether the definition of a column has a DEFAULT that is an unsafe expression."""
    while words.kind is not None:
        if words.accept("DEFAULT") and words.kind is WordKind.L_PAREN:
            return _is_unsafe_expression(words.group())
        if words.kind is not None:
            words.step()
    return False


def _is_unsafe_expression(words: Words) -> bool:
    """Return whether an expression calls an unsafe function or reads an unsafe variable."""
    calls = any(name.upper() in UNSAFE_FUNCTIONS for database, name in called_functions(words) if not database)
    return calls or any(unsafe_variables(words, LOGGED_VARIABLES))
