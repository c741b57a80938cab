"""
The tables that a statement writes and reads, and why it is unsafe.

Those of its views, triggers and stored functions are among them.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ndb_formats.statement_logging.catalog import Catalog, Routine, TableFacts
from ndb_formats.statement_logging.messages import UnsafeReason
from ndb_formats.statement_logging.questions import Questions
from ndb_formats.statement_logging.references import (
    ACL_TABLES,
    BUILT_IN_FUNCTIONS,
    LOCAL_DATABASES,
    LOCAL_TABLES,
    UNSAFE_FUNCTIONS,
    Reference,
)
from ndb_formats.statement_logging.statement_facts import statement_facts
from ndb_formats.statement_logging.statement_kinds import Action, StatementFacts

_SYSTEM_DATABASES = frozenset({"information_schema", "mysql", "performance_schema", "sys"})
_EVENTS = {
    Action.INSERT: frozenset({"INSERT"}),
    Action.LOAD: frozenset({"INSERT"}),
    Action.REPLACE: frozenset({"INSERT", "DELETE"}),
    Action.UPDATE: frozenset({"UPDATE"}),
    Action.DELETE: frozenset({"DELETE"}),
}
_MARK_REASONS = {
    "LIMIT": UnsafeReason.LIMIT,
    "SKIP LOCKED": UnsafeReason.SKIP_LOCKED,
    "NOWAIT": UnsafeReason.NOWAIT,
}


@attrs.frozen
class TableUse:
    """
    A table as a statement uses it.

    Attributes:
        name: Its database and name.
        facts: Its definition, or what is assumed of it.
        written: Whether the statement writes it.
        temporary: Whether it is a temporary table.
        nested: Whether a trigger or a stored function uses it.
        known: Whether its definition is known.
    """

    name: tuple[str, str]
    facts: TableFacts
    written: bool
    temporary: bool = False
    nested: bool = False
    known: bool = True

    @property
    def local(self) -> bool:
        """Whether it belongs to one server and is never logged."""
        return self.name[0].lower() in LOCAL_DATABASES or ".".join(self.name).lower() in LOCAL_TABLES


@attrs.define
class Use:
    """
    All that a statement uses.

    Attributes:
        tables: The tables.
        reasons: Why the statement is unsafe, as far as the session does not matter.
        routines: The triggers and stored functions that were looked into.
    """

    tables: list[TableUse] = attrs.field(factory=list)
    reasons: set[UnsafeReason] = attrs.field(factory=set)
    routines: list[Routine] = attrs.field(factory=list)

    @property
    def written(self) -> list[TableUse]:
        """The tables that it writes."""
        return [each for each in self.tables if each.written]

    @property
    def read(self) -> list[TableUse]:
        """The tables that it only reads."""
        return [each for each in self.tables if not each.written]


def use_of(facts: StatementFacts, database: str, catalog: Catalog, questions: Questions, engine: str) -> Use:
    """
    Return all that a statement uses.

    Args:
        facts: What its words say.
        database: The default database.
        catalog: What the server knows.
        questions: Asked what is in no definition.
        engine: Engine of a table that CREATE TABLE ... SELECT creates.
    """
    use = Use()
    collector = _Collector(catalog, questions, use)
    collector.collect(facts, database, nested=False)
    if facts.action is Action.CREATE_TABLE:
        use.tables[:0] = [
            TableUse(name, catalog.tables.get(name, TableFacts(engine)), True, "TEMPORARY" in facts.marks)
            for name in [_named(target, database) for target in facts.targets]
        ]
    use.reasons |= set(_statement_reasons(facts)) | set(_table_reasons(facts, use, questions))
    return use


def _named(reference: Reference, database: str) -> tuple[str, str]:
    return reference.database or database, reference.name


@attrs.frozen
class _Collector:
    catalog: Catalog
    questions: Questions
    use: Use
    cascaded: set[tuple[tuple[str, str], frozenset[str]]] = attrs.field(factory=set)

    def collect(self, facts: StatementFacts, database: str, *, nested: bool) -> None:
        """Add what a statement uses, with views, triggers and functions."""
        self.use.reasons |= {reason for mark, reason in _MARK_REASONS.items() if mark in facts.marks}
        if facts.variables:
            self.use.reasons.add(UnsafeReason.SYSTEM_VARIABLE)
        events = _EVENTS.get(facts.action, frozenset())
        if "ON DUPLICATE KEY UPDATE" in facts.marks:
            events |= {"UPDATE"}
        written = [] if facts.action is Action.CREATE_TABLE else list(self._written(facts, database))
        for target in facts.targets if facts.action in _EVENTS else ():
            self._add(_named(target, database), nested, events if target in written else None)
            name = _named(target, database)
            if target in written and not nested and name not in self.catalog.views:
                self._defaults(facts, self._table(name, nested, written=True))
        for reference in facts.reads:
            self._add(_named(reference, database), nested, None)
        for function_database, function in facts.functions:
            self._function(function_database, function, database)

    def _written(self, facts: StatementFacts, database: str) -> Iterator[Reference]:
        """Yield the targets that are written: of several tables in an UPDATE, those with a column that is set."""
        if facts.action is not Action.UPDATE or len(facts.targets) == 1:
            yield from facts.targets
            return
        for target in facts.targets:
            table = self._table(_named(target, database), nested=False, written=True)
            names = {column.lower() for column in table.facts.columns}
            for alias, column in facts.assigned:
                unqualified = not alias and (
                    column.lower() in names
                    if table.known
                    else self.questions.ask(f"does {target.name} have the column {column}?", default=True)
                )
                if alias.lower() == target.alias.lower() or unqualified:
                    yield target
                    break

    def _add(self, name: tuple[str, str], nested: bool, events: frozenset[str] | None) -> None:
        """Add a table; `events` are those of the change that is made to it, None for a table that is read."""
        view = self.catalog.views.get(name) if name not in self.catalog.temporary else None
        if view is not None:
            facts = statement_facts(view.query)
            base = facts.reads[:1] if events is not None else ()
            for reference in base:
                self._add(_named(reference, view.database), nested, events)
            self.collect(attrs.evolve(facts, reads=facts.reads[len(base) :]), view.database, nested=nested)
            return
        table = self._table(name, nested, written=events is not None)
        self.use.tables.append(table)
        if events is None:
            return
        for routine in self.catalog.fired(name, events):
            self._routine(routine)
        if table.facts.engine == "INNODB" and (name, events) not in self.cascaded:
            self.cascaded.add((name, events))
            self._foreign_keys(table, events)

    def _foreign_keys(self, table: TableUse, events: frozenset[str]) -> None:
        """Add the tables that the server opens for foreign keys (InnoDB, since MySQL 9.6)."""
        if not events.isdisjoint({"INSERT", "UPDATE"}):
            for key in table.facts.foreign_keys:
                if key.parent != table.name:
                    self._add(key.parent, True, None)
        for child, key in self.catalog.children(table.name):
            for event in sorted(events - {"INSERT"}):
                action = key.action(event)
                changed = frozenset({event if action == "CASCADE" else "UPDATE"})
                self._add(child, True, changed if action else None)

    def _table(self, name: tuple[str, str], nested: bool, *, written: bool) -> TableUse:
        if name in self.catalog.temporary:
            return TableUse(name, self.catalog.temporary[name], written, True, nested)
        if name in self.catalog.tables:
            return TableUse(name, self.catalog.tables[name], written, False, nested)
        sys_view = name[0].lower() == "sys" and name[1] != "sys_config"
        if sys_view and self.questions.ask(f"does sys.{name[1]} call an unsafe function?", default=False):
            self.use.reasons.add(UnsafeReason.SYSTEM_FUNCTION)
        if name[0].lower() in _SYSTEM_DATABASES:
            return TableUse(name, TableFacts("INNODB"), written, False, nested)
        if self.catalog.assumed_engine is not None:
            return TableUse(name, TableFacts(self.catalog.assumed_engine), written, False, nested, known=False)
        shown = ".".join(part for part in name if part)
        ndb = self.questions.ask(f"is {shown} an NDB table? (its definition is not given)", default=False)
        return TableUse(name, TableFacts("NDB" if ndb else "INNODB"), written, False, nested, known=False)

    def _defaults(self, facts: StatementFacts, table: TableUse) -> None:
        """A column with an unsafe DEFAULT expression that is not given makes the statement unsafe."""
        unsafe = {column.lower() for column in table.facts.unsafe_defaults}
        default = "DEFAULT" in facts.marks
        if facts.action is Action.UPDATE:
            used = default and not unsafe.isdisjoint(column.lower() for _, column in facts.assigned)
        else:
            given = unsafe if facts.columns is None else {column.lower() for column in facts.columns}
            used = facts.action is not Action.DELETE and (default or not unsafe <= given)
        if unsafe and used:
            self.use.reasons.add(UnsafeReason.SYSTEM_FUNCTION)

    def _function(self, function_database: str, name: str, database: str) -> None:
        if not function_database and name.upper() in BUILT_IN_FUNCTIONS:
            if name.upper() in UNSAFE_FUNCTIONS:
                self.use.reasons.add(UnsafeReason.SYSTEM_FUNCTION)
            return
        routine = self.catalog.functions.get((function_database or database, name.lower()))
        if routine is not None:
            self._routine(routine)
        else:
            question = f"is {name} a loadable function? (it is not built in, and no stored function of the schema)"
            if self.questions.ask(question, default=True):
                self.use.reasons.add(UnsafeReason.UDF)

    def _routine(self, routine: Routine) -> None:
        if routine in self.use.routines:
            return
        self.use.routines.append(routine)
        for each in routine.body:
            facts = statement_facts(each.statement)
            self.collect(facts, routine.database, nested=True)
            self.use.reasons |= set(_statement_reasons(facts))


def _statement_reasons(facts: StatementFacts) -> Iterator[UnsafeReason]:
    """Yield the reasons that the form of a statement gives."""
    marks, query = facts.marks, "SELECT" in facts.marks
    if facts.action is Action.INSERT and query and "IGNORE" in marks:
        yield UnsafeReason.INSERT_IGNORE_SELECT
    if facts.action is Action.INSERT and query and "ON DUPLICATE KEY UPDATE" in marks:
        yield UnsafeReason.INSERT_SELECT_UPDATE
    if facts.action is Action.REPLACE and query:
        yield UnsafeReason.REPLACE_SELECT
    if facts.action is Action.UPDATE and "IGNORE" in marks and len(facts.targets) == 1:
        yield UnsafeReason.UPDATE_IGNORE
    if facts.action is Action.CREATE_TABLE and query:
        if "IGNORE" in marks:
            yield UnsafeReason.CREATE_IGNORE_SELECT
        if "REPLACE" in marks:
            yield UnsafeReason.CREATE_REPLACE_SELECT


def _table_reasons(facts: StatementFacts, use: Use, questions: Questions) -> Iterator[UnsafeReason]:
    """Yield the reasons that the tables give."""
    written, read = use.written, use.read
    auto = [table for table in written if _has_auto_increment(table, bool(read), questions)]
    if read and auto:
        yield UnsafeReason.WRITE_AUTOINC_SELECT
    if any(table.nested for table in auto):
        yield UnsafeReason.AUTOINC_COLUMNS
    if any(not table.facts.auto_increment_first for table in auto):
        yield UnsafeReason.AUTOINC_NOT_FIRST
    if facts.action is Action.CREATE_TABLE and "SELECT" in facts.marks and auto:
        yield UnsafeReason.CREATE_SELECT_AUTOINC
    if any(table.nested and table.facts.unsafe_defaults for table in written):
        yield UnsafeReason.DEFAULT_EXPRESSION_IN_SUBSTATEMENT
    updates = "ON DUPLICATE KEY UPDATE" in facts.marks and "SELECT" not in facts.marks
    if facts.action is Action.INSERT and updates and any(_has_two_keys(table, questions) for table in written):
        yield UnsafeReason.INSERT_TWO_KEYS
    if any(table.facts.parser_plugin for table in (use.tables if "MATCH" in facts.marks else written)):
        yield UnsafeReason.FULLTEXT_PLUGIN
    if any(table.local for table in use.tables):
        yield UnsafeReason.SYSTEM_TABLE
    if any(".".join(table.name).lower() in ACL_TABLES for table in read):
        yield UnsafeReason.ACL_TABLE_READ_IN_DML_DDL


def _has_auto_increment(table: TableUse, matters: bool, questions: Questions) -> bool:
    if table.known or not (matters or table.nested):
        return table.facts.auto_increment is not None
    return questions.ask(f"does {table.name[1]} have an AUTO_INCREMENT column?", default=False)


def _has_two_keys(table: TableUse, questions: Questions) -> bool:
    if table.known:
        return table.facts.unique_keys > 1
    return questions.ask(f"does {table.name[1]} have more than one unique key?", default=False)
