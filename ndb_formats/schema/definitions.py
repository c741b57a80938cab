"""
The definitions of tables over the time of a log: how each statement in it changes them.

Source: MySQL manual, "Data Definition Statements".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs
from sqlglot.tokenizer_core import TokenType

from ndb_formats.errors import FormatError, SchemaError
from ndb_formats.schema.alter_table import alter_table, without_index
from ndb_formats.schema.create_table import complete, key_columns, options_charset, take_name, take_table
from ndb_formats.schema.exact_keys import with_inexact_columns
from ndb_formats.schema.full_names import full_name
from ndb_formats.schema.serving_key import without_serving_key
from ndb_formats.schema.sql_words import Words, statements
from ndb_formats.schema.tables import ForeignKey, Schema, Table

__all__ = ["Definitions", "Statement", "TableStep", "defines_tables"]

Text = tuple[str, str]  # character set and collation
Name = tuple[str, str]  # database and table
_MOST_SHOWN = 200  # characters of a statement in a message


@attrs.frozen
class Statement:
    """
    A statement in a log.

    Attributes:
        text: The statement.
        database: The database that it ran in.
        charset: Character set and collation of tables and databases that declare none.
        ansi_quotes: Whether double quotes stand around names, not around text.
        inline_references: Whether REFERENCES in the definition of a column is a foreign key, as since MySQL 9.0.
    """

    text: str
    database: str
    charset: Text = ("utf8mb4", "utf8mb4_0900_ai_ci")
    ansi_quotes: bool = False
    inline_references: bool = True

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


@attrs.frozen
class Definitions:
    """
    The tables that there are, and the character sets of databases, by name.

    Attributes:
        tables: By database and name. A table without a database stands for those of its name in every database.
        charsets: Character set and collation of each database, as far as the log tells them.
        inexact_keys: See `Schema`; it holds for the tables that statements make, too.
    """

    tables: Mapping[tuple[str, str], Table] = attrs.field(factory=dict)
    charsets: Mapping[str, Text] = attrs.field(factory=dict)
    inexact_keys: bool = False

    @classmethod
    def of(cls, tables: Iterable[Table], *, inexact_keys: bool = False) -> Definitions:
        """Return the definitions of some tables; of several of a name, the first counts."""
        return cls({(table.database, table.name): table for table in reversed(list(tables))}, inexact_keys=inexact_keys)

    @property
    def schema(self) -> Schema:
        """The tables."""
        return Schema(tuple(self.tables.values()), self.inexact_keys)

    def find(self, database: str, name: str) -> Table | None:
        """Return a table, or None; see `Schema.find`."""
        found = self.tables.get((database, name))
        if found is None and ("", name) in self.tables:
            return attrs.evolve(self.tables["", name], database=database)
        return found

    def allowed(self, table: Table) -> Table:
        """Return a table with its columns allowed in keys, if all are."""
        return with_inexact_columns(table) if self.inexact_keys else table

    def taken(self, table: Table, statement: Statement) -> Table:
        """Return a table as the server takes it that carries out a statement."""
        kept = tuple(key for key in table.foreign_keys if statement.inline_references or not key.inline)
        return self.allowed(attrs.evolve(table, foreign_keys=kept))

    def after(self, statement: Statement) -> tuple[Definitions, tuple[TableStep, ...]]:
        """
        Return the definitions after a statement, and what it did to tables.

        A statement on a table that is not known does nothing to it.

        Raises:
            SchemaError: The statement cannot be followed.
        """
        current, steps = self, list[TableStep]()
        for words in statements(statement.text, ansi_quotes=statement.ansi_quotes):
            for phrase, follow in _STATEMENTS:
                if words.accept(*phrase):
                    made = [
                        step if step.after is None else attrs.evolve(step, after=current.taken(step.after, statement))
                        for step in follow(current, words, statement)
                    ]
                    current, steps = current.with_steps(made), steps + made
                    current = _with_database(current, phrase, words, statement)
                    break
        return current, tuple(steps)

    def with_steps(self, steps: Sequence[TableStep]) -> Definitions:
        """Return the definitions after steps that are made together."""
        tables = dict(self.tables)
        for step in steps:
            if step.before is not None:
                tables.pop((step.before.database, step.before.name), None)
        for step in steps:
            if step.after is not None:
                tables[step.after.database, step.after.name] = step.after
        return attrs.evolve(self, tables=_with_references(tables, steps))


def _with_references(tables: dict[Name, Table], steps: Sequence[TableStep]) -> dict[Name, Table]:
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


def defines_tables(text: str) -> bool:
    """Whether a statement may change definitions, by its first word: quick, for statements that mostly do not."""
    head = text.lstrip(" \t\r\n(")
    if head.startswith(("/", "-", "#")):
        return True
    return head[:8].upper().startswith(("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"))


def _with_database(known: Definitions, phrase: tuple[str, ...], words: Words, statement: Statement) -> Definitions:
    if phrase[-1] not in ("DATABASE", "SCHEMA"):
        return known
    charsets = dict(known.charsets)
    name = words.words[words.position - 1][0] if words.position else statement.database
    if phrase[0] == "DROP":
        charsets.pop(name, None)
        return attrs.evolve(known, charsets=charsets)
    given = None
    while words.word:
        found = options_charset(words, given)
        given = found or given
        if found is None:
            words.step()
    if given is not None or phrase[0] == "CREATE":
        charsets[name] = given or statement.charset
    return attrs.evolve(known, charsets=charsets)


def _create(known: Definitions, words: Words, statement: Statement) -> list[TableStep]:
    name = take_name(Words(_without_condition(words).words), statement.database)
    before = known.find(*name)
    if before is not None and words.upper == "IF":
        return []
    text = known.charsets.get(name[0], statement.charset)
    try:
        like = _model(known, words, statement)
        after = take_table(words, statement.database, text) if like is None else like
    except SchemaError as error:
        raise error.located(table=full_name(*name)) from None
    if like is not None:
        after = attrs.evolve(like, database=name[0], name=name[1], foreign_keys=())
    after = known.allowed(after)
    # A schema file may hold what the log creates; then both say the same.
    if before is not None and attrs.evolve(before, engine=after.engine) != after:
        message = (
            "the statement creates a table that is there already, with another definition; is the one in the schema "
            'file that of a later time? Leave it out, or set schema_at = "end"'
        )
        raise SchemaError(message, table=before.full_name)
    return [TableStep(before, after, tuple(range(len(after.columns))) if before else (), emptied=True)]


def _without_condition(words: Words) -> Words:
    rest = words.rest()
    rest.accept("IF", "NOT", "EXISTS")
    return rest.rest()


def _model(known: Definitions, words: Words, statement: Statement) -> Table | None:
    """Return the table of CREATE TABLE ... LIKE; None if that is not said."""
    rest = _without_condition(words)
    take_name(rest, statement.database)
    rest = rest.group() if rest.kind is TokenType.L_PAREN else rest
    if not rest.accept("LIKE"):
        return None
    name = take_name(rest, statement.database)
    found = known.find(*name)
    if found is None:
        message = f"the statement makes a table like {'.'.join(name)}, whose definition is not known"
        raise SchemaError(message)
    return found


def _drop(known: Definitions, words: Words, statement: Statement) -> list[TableStep]:
    words.accept("IF", "EXISTS")
    steps = []
    for item in words.rest().items():
        found = known.find(*take_name(item, statement.database))
        if found is not None:
            steps.append(TableStep(found, None, emptied=True))
    return steps


def _truncate(known: Definitions, words: Words, statement: Statement) -> list[TableStep]:
    words.accept("TABLE")
    found = known.find(*take_name(words, statement.database))
    return [] if found is None else [TableStep(found, found, tuple(range(len(found.columns))), emptied=True)]


def _rename(known: Definitions, words: Words, statement: Statement) -> list[TableStep]:
    """Rename tables one after the other; ``a TO x, b TO a, x TO b`` swaps two."""
    current, first = known, dict[tuple[str, str], Table]()
    for item in words.rest().items():
        old = take_name(item, statement.database)
        item.accept("TO")
        new = take_name(item, statement.database)
        found = current.find(*old)
        if found is None:
            continue
        origin = first.pop(old, None) or known.find(*old) or found
        renamed = attrs.evolve(found, database=new[0], name=new[1])
        first[new] = origin
        current = current.with_steps([TableStep(found, renamed)])
    return [
        TableStep(
            origin,
            attrs.evolve(current.tables[new], foreign_keys=origin.foreign_keys),
            tuple(range(len(origin.columns))),
        )
        for new, origin in first.items()
    ]


def _alter(known: Definitions, words: Words, statement: Statement) -> list[TableStep]:
    words.accept("IF", "EXISTS")
    found = known.find(*take_name(words, statement.database))
    if found is None:
        return []
    made = alter_table(found, words.rest(), statement.database)
    return [TableStep(found, made.table, made.sources, copied=made.copied, added_only=made.added_only)]


def _create_unique_index(known: Definitions, words: Words, statement: Statement) -> list[TableStep]:
    name = words.step()
    while not words.accept("ON"):
        words.step()
    found = known.find(*take_name(words, statement.database))
    if found is None:
        return []
    after = complete(without_serving_key(found).with_unique_key(name, key_columns(words)[0]))
    same_key = bool(found.serving) == bool(after.serving)
    return [TableStep(found, after, tuple(range(len(found.columns))), copied=not same_key, added_only=same_key)]


def _drop_index(known: Definitions, words: Words, statement: Statement) -> list[TableStep]:
    name = words.step()
    words.accept("ON")
    found = known.find(*take_name(words, statement.database))
    if found is None:
        return []
    if name.upper() == "PRIMARY":
        after = attrs.evolve(found, primary_key=(), primary_key_prefixes=())
        return [TableStep(found, after, tuple(range(len(found.columns))), copied=True)]
    after = complete(without_index(without_serving_key(found), name))
    same_key = bool(found.serving) == bool(after.serving)
    return [TableStep(found, after, tuple(range(len(found.columns))), copied=not same_key)]


def _name_database(_: Definitions, words: Words, __: Statement) -> list[TableStep]:
    words.accept("IF", "NOT", "EXISTS")
    if words.upper not in ("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "ENCRYPTION", "READ"):
        words.step()
    return []


def _drop_database(known: Definitions, words: Words, _: Statement) -> list[TableStep]:
    words.accept("IF", "EXISTS")
    name = words.step()
    return [TableStep(table, None, emptied=True) for table in known.tables.values() if table.database == name]


_Follow = Callable[[Definitions, Words, Statement], list[TableStep]]
_STATEMENTS: tuple[tuple[tuple[str, ...], _Follow], ...] = (
    (("CREATE", "TABLE"), _create),
    (("DROP", "TABLE"), _drop),
    (("DROP", "TABLES"), _drop),
    (("RENAME", "TABLE"), _rename),
    (("RENAME", "TABLES"), _rename),
    (("TRUNCATE",), _truncate),
    (("ALTER", "TABLE"), _alter),
    (("ALTER", "IGNORE", "TABLE"), _alter),
    (("ALTER", "ONLINE", "TABLE"), _alter),
    (("ALTER", "OFFLINE", "TABLE"), _alter),
    (("CREATE", "UNIQUE", "INDEX"), _create_unique_index),
    (("CREATE", "ONLINE", "UNIQUE", "INDEX"), _create_unique_index),
    (("CREATE", "OFFLINE", "UNIQUE", "INDEX"), _create_unique_index),
    (("DROP", "INDEX"), _drop_index),
    (("DROP", "ONLINE", "INDEX"), _drop_index),
    (("DROP", "OFFLINE", "INDEX"), _drop_index),
    (("CREATE", "DATABASE"), _name_database),
    (("CREATE", "SCHEMA"), _name_database),
    (("ALTER", "DATABASE"), _name_database),
    (("ALTER", "SCHEMA"), _name_database),
    (("DROP", "DATABASE"), _drop_database),
    (("DROP", "SCHEMA"), _drop_database),
)
