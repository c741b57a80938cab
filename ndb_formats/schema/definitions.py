"""
The definitions of tables over the time of a log: how each statement in it changes them.

Source: MySQL manual, "Data Definition Statements".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import attrs

from ndb_formats.errors import SchemaError
from ndb_formats.schema.alter_clauses import take_clauses
from ndb_formats.schema.alter_table import alter_table
from ndb_formats.schema.lexer import Words
from ndb_formats.schema.row_keys import with_inexact_columns, without_serving_key
from ndb_formats.schema.session import Text
from ndb_formats.schema.statements import Statement, TableStep, with_references
from ndb_formats.schema.table_body import create_table, sequence_table, take_charset, take_name
from ndb_formats.schema.table_keys import complete, key_columns, with_key, without_key
from ndb_formats.schema.tables import Schema, Table, full_name
from ndb_formats.types.charsets import charset_of_collation

Name = tuple[str, str]  # database and table
_EXCEPTIONS = "$ex"  # the end of the names of exceptions tables, whose letters count


@attrs.frozen
class Definitions:
    """
    The tables that there are, and the character sets of databases, by name.

    Attributes:
        tables: By database and name. A table without a database stands for those of its name in every database.
        charsets: Character set and collation of each database, as far as the log tells them.
        inexact_keys: See `Schema`; it holds for the tables that statements make, too.
        unnamed_everywhere: Whether a table without a database stands for those of its name in every database; while a
            file of definitions is read it does not.
        any_case: Whether a name that no table has is that of the one that has it in other letters; see `Schema.find`.
        gone: See `Schema`.
        left: Tables by the names that they had before MariaDB renamed them. It also logs so that a temporary table is
            renamed, of which a log of rows tells nothing else: what is done to such a name later shows that its table
            has stayed.
        temporary: Connection, database and name of each temporary table: statements of that connection mean it.
    """

    tables: Mapping[Name, Table] = attrs.field(factory=dict)
    charsets: Mapping[str, Text] = attrs.field(factory=dict)
    inexact_keys: bool = False
    unnamed_everywhere: bool = True
    any_case: bool = False
    gone: frozenset[Name] = frozenset()
    left: Mapping[Name, Table] = attrs.field(factory=dict)
    temporary: frozenset[tuple[int, str, str]] = frozenset()

    @classmethod
    def of(cls, tables: Iterable[Table], *, inexact_keys: bool = False) -> Definitions:
        """Return the definitions of some tables; of several of a name, the first counts."""
        return cls({(table.database, table.name): table for table in reversed(list(tables))}, inexact_keys=inexact_keys)

    @property
    def schema(self) -> Schema:
        """The tables, as changes of rows find them."""
        return Schema((*self.tables.values(), *self.left.values()), self.inexact_keys, self.gone)

    def find(self, database: str, name: str) -> Table | None:
        """Return a table, or None; see `Schema.find`."""
        found = self.tables.get((database, name))
        if found is None and (database, name) in self.gone:
            return None
        if found is None and self.unnamed_everywhere and ("", name) in self.tables:
            return attrs.evolve(self.tables["", name], database=database)
        if found is None and self.any_case and not name.lower().endswith(_EXCEPTIONS):
            wanted = (database.lower(), name.lower())
            others = [key for key in self.tables if (key[0].lower(), key[1].lower()) == wanted]
            found = self.tables[others[0]] if len(others) == 1 else None
        return found

    def allowed(self, table: Table) -> Table:
        """Return a table with its columns allowed in keys, if all are."""
        return with_inexact_columns(table) if self.inexact_keys else table

    def taken(self, table: Table, statement: Statement) -> Table:
        """Return a table as the server takes it that carries out a statement."""
        kept = tuple(key for key in table.foreign_keys if statement.session.inline_references or not key.inline)
        return self.allowed(attrs.evolve(table, foreign_keys=kept))

    def text_in(self, database: str, statement: Statement) -> Text:
        """Return character set and collation of tables of a database that declare none."""
        session = statement.session
        default = session.charset if database == statement.database else session.server_charset
        return self.charsets.get(database, default)

    def after(self, statement: Statement) -> tuple[Definitions, tuple[TableStep, ...]]:
        """
        Return the definitions after a statement, and what it did to tables.

        A statement on a table that is not known does nothing to it, and one that creates a stored program carries
        nothing out.

        Raises:
            SchemaError: The statement cannot be followed.
        """
        words = statement.words()
        for phrase, follow in _STATEMENTS:
            if words.accept(*phrase):
                return follow(self, words, statement)
        return self, ()

    def is_temporary(self, name: Name, statement: Statement) -> bool:
        """Whether a statement means a temporary table of its connection."""
        return (statement.session.thread, *name) in self.temporary

    def with_steps(self, steps: Sequence[TableStep]) -> Definitions:
        """Return the definitions after steps that are made together."""
        kept = self.without(*(step.before for step in steps if step.before is not None))
        tables = dict(kept.tables)
        for step in steps:
            if step.after is not None:
                tables[step.after.database, step.after.name] = step.after
        left = {name: table for name, table in kept.left.items() if name not in tables}
        return attrs.evolve(kept, tables=with_references(tables, steps), left=left)

    def without(self, *gone: Table) -> Definitions:
        """Return the definitions without some tables that `find` returned."""
        names = frozenset((table.database, table.name) for table in gone)
        kept = {name: table for name, table in self.tables.items() if name not in names}
        unnamed = frozenset(name for name in names if ("", name[1]) in self.tables)
        left = {name: table for name, table in self.left.items() if name not in names}
        return attrs.evolve(self, tables=kept, gone=self.gone | unnamed, left=left)


_Followed = tuple[Definitions, tuple[TableStep, ...]]
_Follow = Callable[[Definitions, Words, Statement], _Followed]


def _carried_out(known: Definitions, statement: Statement, steps: Sequence[TableStep]) -> _Followed:
    """Return definitions after steps that a statement makes, and the steps."""
    taken = tuple(
        step if step.after is None else attrs.evolve(step, after=known.taken(step.after, statement)) for step in steps
    )
    return known.with_steps(taken), taken


def _skip_waiting(words: Words) -> None:
    """Step over how long a statement waits for its table (MariaDB)."""
    if words.accept("WAIT"):
        words.step()
    words.accept("NOWAIT")


def _create(known: Definitions, words: Words, statement: Statement, *, replaces: bool = False) -> _Followed:
    optional = words.accept("IF", "NOT", "EXISTS")
    name = take_name(words, statement.database)
    before = known.find(*name)
    if before is not None and optional:
        return known, ()
    try:
        model = _model(known, words, statement)
        if model is None:
            after = create_table(words, name, known.text_in(name[0], statement), statement.session)
        else:
            after = attrs.evolve(model, database=name[0], name=name[1], foreign_keys=())
    except SchemaError as error:
        raise error.located(table=full_name(*name)) from None
    after = known.allowed(after)
    # A schema file may hold what the log creates; then both say the same.
    if before is not None and not replaces and attrs.evolve(before, engine=after.engine) != after:
        message = (
            "the statement creates a table that is there already, with another definition; is the one in the schema "
            'file that of a later time? Leave it out, or set schema_at = "end"'
        )
        raise SchemaError(message, table=before.full_name)
    sources = tuple(range(len(after.columns))) if before and not replaces else ()
    return _carried_out(known, statement, [TableStep(before, after, sources, emptied=True)])


def _create_temporary(known: Definitions, words: Words, statement: Statement) -> _Followed:
    words.accept("IF", "NOT", "EXISTS")
    name = take_name(words, statement.database)
    return attrs.evolve(known, temporary=known.temporary | {(statement.session.thread, *name)}), ()


def _create_sequence(known: Definitions, words: Words, statement: Statement) -> _Followed:
    optional = words.accept("IF", "NOT", "EXISTS")
    name = take_name(words, statement.database)
    before = known.find(*name)
    if before is not None and optional:
        return known, ()
    return _carried_out(known, statement, [TableStep(before, sequence_table(name), emptied=True)])


def _model(known: Definitions, words: Words, statement: Statement) -> Table | None:
    """Return the table of CREATE TABLE ... LIKE; None if that is not said."""
    rest = words.rest()
    rest.accept("(")
    if not rest.accept("LIKE"):
        return None
    name = take_name(rest, statement.database)
    found = known.find(*name)
    if found is None:
        message = f"the statement makes a table like {'.'.join(filter(None, name))}, whose definition is not known"
        raise SchemaError(message)
    return found


def _drop(known: Definitions, words: Words, statement: Statement) -> _Followed:
    words.accept("IF", "EXISTS")
    steps, temporary = list[TableStep](), set(known.temporary)
    for item in words.rest().items():
        name = take_name(item, statement.database)
        found = known.find(*name)
        if known.is_temporary(name, statement):
            temporary.discard((statement.session.thread, *name))
        elif found is not None:
            steps.append(TableStep(found, None, emptied=True))
    return _carried_out(attrs.evolve(known, temporary=frozenset(temporary)), statement, steps)


def _drop_temporary(known: Definitions, words: Words, statement: Statement) -> _Followed:
    words.accept("TABLE") or words.accept("TABLES")
    words.accept("IF", "EXISTS")
    gone = {(statement.session.thread, *take_name(item, statement.database)) for item in words.rest().items()}
    return attrs.evolve(known, temporary=known.temporary - gone), ()


def _truncate(known: Definitions, words: Words, statement: Statement) -> _Followed:
    words.accept("TABLE")
    name = take_name(words, statement.database)
    found = known.find(*name)
    if found is None or known.is_temporary(name, statement):
        return known, ()
    return _carried_out(known, statement, [TableStep(found, found, tuple(range(len(found.columns))), emptied=True)])


def _rename(known: Definitions, words: Words, statement: Statement) -> _Followed:
    """Rename tables one after the other; ``a TO x, b TO a, x TO b`` swaps two."""
    current, first = known, dict[Name, Table]()
    temporary = dict.fromkeys(known.temporary)
    mariadb = statement.session.server.mariadb
    words.accept("IF", "EXISTS")
    for item in words.rest().items():
        old = take_name(item, statement.database)
        _skip_waiting(item)
        item.accept("TO")
        new = take_name(item, statement.database)
        found = current.find(*old)
        if (statement.session.thread, *old) in temporary:
            del temporary[statement.session.thread, *old]
            temporary[statement.session.thread, *new] = None
            continue
        if found is None or (mariadb and current.find(*new) is not None):  # a temporary one: the new name is in use
            continue
        origin = first.pop(old, None) or known.find(*old) or found
        renamed = attrs.evolve(found, database=new[0], name=new[1])
        first[new] = origin
        current = current.with_steps([TableStep(found, renamed)])
    steps = [
        TableStep(
            origin,
            attrs.evolve(current.tables[new], foreign_keys=origin.foreign_keys),
            tuple(range(len(origin.columns))),
        )
        for new, origin in first.items()
    ]
    after, taken = _carried_out(attrs.evolve(known, temporary=frozenset(temporary)), statement, steps)
    befores = [step.before for step in taken if mariadb and step.before is not None]
    names = {(table.database, table.name): table for table in befores}
    left = {name: table for name, table in names.items() if name not in after.tables}
    return attrs.evolve(after, left={**after.left, **left}), taken


def _alter(known: Definitions, words: Words, statement: Statement) -> _Followed:
    words.accept("IF", "EXISTS")
    name = take_name(words, statement.database)
    found = known.find(*name) or known.left.get(name)
    if known.is_temporary(name, statement):
        return _alter_temporary(known, words, statement, name), ()
    if found is None:
        return known, ()
    _skip_waiting(words)
    session = statement.session
    default = known.text_in(name[0], statement)
    collation = found.collation or default[1]
    text = charset_of_collation(collation), collation
    try:
        clauses = take_clauses(words.rest(), statement.database, session, table=text, default=default)
        made = alter_table(found, clauses, session)
    except SchemaError as error:
        raise error.located(table=found.full_name) from None
    steps = [TableStep(found, made.table, made.sources, copied=made.copied, added_only=made.added_only)]
    if clauses.detached is not None:
        detached = attrs.evolve(made.table, database=clauses.detached[0], name=clauses.detached[1], foreign_keys=())
        steps.append(TableStep(None, detached))
    attached = None if clauses.attached is None else known.find(*clauses.attached)
    if attached is not None:
        steps.append(TableStep(attached, None))
    return _carried_out(known, statement, steps)


def _alter_temporary(known: Definitions, words: Words, statement: Statement, name: Name) -> Definitions:
    """Follow the name of a temporary table."""
    _skip_waiting(words)
    for clause in words.rest().items():
        if clause.accept("RENAME") and clause.upper not in ("COLUMN", "INDEX", "KEY"):
            clause.accept_any(frozenset({"TO", "AS"}))
            thread = statement.session.thread
            new = take_name(clause, statement.database)
            return attrs.evolve(known, temporary=known.temporary - {(thread, *name)} | {(thread, *new)})
    return known


def _new_index(
    known: Definitions, words: Words, statement: Statement, *, kind: str, replaces: bool = False
) -> _Followed:
    optional = words.accept("IF", "NOT", "EXISTS")
    name = words.step()
    while not words.accept("ON"):
        words.step()
    found = _table_named(known, words, statement)
    if found is None:
        return known, ()
    before = without_serving_key(found)
    index = attrs.evolve(key_columns(words), kind=kind, name=name, optional=optional)
    after = with_key(without_key(before, name) if replaces else before, index)
    return _with_changed_key(known, statement, found, complete(after))


def _drop_index(known: Definitions, words: Words, statement: Statement) -> _Followed:
    words.accept("IF", "EXISTS")
    name = words.step()
    words.accept("ON")
    found = _table_named(known, words, statement)
    if found is None:
        return known, ()
    after = complete(without_key(without_serving_key(found), name))
    return _with_changed_key(known, statement, found, after, dropped=True)


def _table_named(known: Definitions, words: Words, statement: Statement) -> Table | None:
    name = take_name(words, statement.database)
    return None if known.is_temporary(name, statement) else known.find(*name)


def _with_changed_key(
    known: Definitions, statement: Statement, before: Table, after: Table, *, dropped: bool = False
) -> _Followed:
    """Carry out a change of keys; that of the primary key or of the one that serves makes a new table."""
    same_key = before.primary_key == after.primary_key and bool(before.serving) == bool(after.serving)
    if before == after and before.unique_names == after.unique_names:
        return attrs.evolve(known, tables={**known.tables, (after.database, after.name): after}), ()
    ordinals = tuple(range(len(before.columns)))
    step = TableStep(before, after, ordinals, copied=not same_key, added_only=same_key and not dropped)
    return _carried_out(known, statement, [step])


_DATABASE_OPTIONS = frozenset({"CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "ENCRYPTION", "READ", "COMMENT"})


def _name_database(known: Definitions, words: Words, statement: Statement, *, creates: bool) -> _Followed:
    """Follow CREATE and ALTER DATABASE; ALTER without a name means the database that it runs in."""
    words.accept("IF", "NOT", "EXISTS")
    named = creates or (bool(words.word) and words.upper not in _DATABASE_OPTIONS)
    name = words.step() if named else statement.database
    server, given = statement.session.server_charset, None
    while words.word:
        charset = take_charset(words, given, statement.session, server)
        given = charset or given
        if charset is None:
            words.step()
    if given is None and not creates:
        return known, ()
    return attrs.evolve(known, charsets={**known.charsets, name: given or server}), ()


def _drop_database(known: Definitions, words: Words, statement: Statement) -> _Followed:
    words.accept("IF", "EXISTS")
    name = words.step()
    charsets = {database: text for database, text in known.charsets.items() if database != name}
    here = (known.find(name, each.name) for each in known.tables.values() if each.database in ("", name))
    steps = [TableStep(table, None, emptied=True) for table in here if table is not None]
    return _carried_out(attrs.evolve(known, charsets=charsets), statement, steps)


def _replace_database(known: Definitions, words: Words, statement: Statement) -> _Followed:
    dropped, steps = _drop_database(known, words.rest(), statement)
    return _name_database(dropped, words, statement, creates=True)[0], steps


_TABLES: tuple[tuple[str, _Follow], ...] = (
    ("CREATE TABLE", _create),
    ("CREATE OR REPLACE TABLE", partial(_create, replaces=True)),
    ("CREATE TEMPORARY TABLE", _create_temporary),
    ("CREATE OR REPLACE TEMPORARY TABLE", _create_temporary),
    ("CREATE SEQUENCE", _create_sequence),
    ("CREATE OR REPLACE SEQUENCE", _create_sequence),
    ("DROP TABLE", _drop),
    ("DROP TABLES", _drop),
    ("DROP SEQUENCE", _drop),
    ("DROP TEMPORARY", _drop_temporary),
    ("RENAME TABLE", _rename),
    ("RENAME TABLES", _rename),
    ("TRUNCATE", _truncate),
    *((f"ALTER {how}TABLE", _alter) for how in ("", "IGNORE ", "ONLINE ", "OFFLINE ", "ONLINE IGNORE ")),
)
_INDEXES: tuple[tuple[str, _Follow], ...] = (
    *(
        (f"CREATE {how}{kind}INDEX", partial(_new_index, kind=kind.strip() if kind == "UNIQUE " else "INDEX"))
        for how in ("", "ONLINE ", "OFFLINE ")
        for kind in ("UNIQUE ", "", "FULLTEXT ", "SPATIAL ", "VECTOR ")
    ),
    *((f"DROP {how}INDEX", _drop_index) for how in ("", "ONLINE ", "OFFLINE ")),
    ("CREATE OR REPLACE UNIQUE INDEX", partial(_new_index, kind="UNIQUE", replaces=True)),
    ("CREATE OR REPLACE INDEX", partial(_new_index, kind="INDEX", replaces=True)),
)
_DATABASES: tuple[tuple[str, _Follow], ...] = tuple(
    (f"{verb} {noun}", follow)
    for noun in ("DATABASE", "SCHEMA")
    for verb, follow in (
        ("CREATE", partial(_name_database, creates=True)),
        ("CREATE OR REPLACE", _replace_database),
        ("ALTER", partial(_name_database, creates=False)),
        ("DROP", _drop_database),
    )
)
_STATEMENTS = tuple((tuple(phrase.split()), follow) for phrase, follow in (*_TABLES, *_INDEXES, *_DATABASES))
