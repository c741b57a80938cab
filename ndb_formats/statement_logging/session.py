"""A session: follows statements one after the other and says how each is logged."""

from __future__ import annotations

import attrs

from ndb_formats.errors import SchemaError
from ndb_formats.schema.lexer import WordKind, Words
from ndb_formats.schema.table_body import take_name
from ndb_formats.statement_logging.catalog import Catalog, Routine, is_unsafe_default
from ndb_formats.statement_logging.decision import (
    BinlogFormat,
    LoggedAs,
    LoggingDecision,
    Properties,
    Safety,
    StatementSort,
    decide,
)
from ndb_formats.statement_logging.messages import Level, LoggingMessage, ServerMessage
from ndb_formats.statement_logging.properties import Situation, change_properties
from ndb_formats.statement_logging.questions import Questions
from ndb_formats.statement_logging.settings import Settings, StorageEngine
from ndb_formats.statement_logging.sql_text import SqlStatement, split_statements
from ndb_formats.statement_logging.statement_facts import statement_facts
from ndb_formats.statement_logging.statement_kinds import Action, StatementFacts
from ndb_formats.statement_logging.table_use import Use, use_of
from ndb_formats.statement_logging.transaction import TransactionEntry, TransactionLog

_INNODB_DETAIL = (
    " InnoDB is limited to row-logging when transaction isolation level is READ COMMITTED or READ UNCOMMITTED."
)
_MAX_CALLS = 16  # depth of CALL in CALL; deeper is recursion
_CHANGES = frozenset({Action.INSERT, Action.REPLACE, Action.UPDATE, Action.DELETE, Action.LOAD, Action.QUERY})


class UndecidedError(Exception):
    """The text does not tell what a statement does; the message says what is missing."""


@attrs.define
class LoggingSession:
    """
    A session of the server.

    Attributes:
        settings: Its variables.
        catalog: What the server knows.
        database: The default database.
        prepared: Text of prepared statements by name; None if it is not known.
        transactions: The log and the open transaction.
        source: Number of the current statement, from 0.
        as_rows: Whether the current CALL has logged rows under MIXED.
    """

    settings: Settings
    catalog: Catalog = attrs.field(factory=Catalog)
    database: str = ""
    prepared: dict[str, str | None] = attrs.field(factory=dict)
    transactions: TransactionLog = attrs.field(factory=TransactionLog)
    source: int = -1
    as_rows: bool = False

    def copy(self) -> LoggingSession:
        """Return a copy that changes by itself."""
        return attrs.evolve(
            self,
            settings=self.settings.copy(),
            catalog=self.catalog.copy(),
            prepared=dict(self.prepared),
            transactions=self.transactions.copy(),
        )

    def run(self, statement: SqlStatement, questions: Questions) -> list[LoggingDecision]:
        """
        Follow a statement and return how it is logged, for CALL how each of its statements is.

        Raises:
            UndecidedError: The text does not tell what it does.
        """
        self.source += 1
        self.as_rows = False
        before = self.settings.next_isolation
        decisions = self._run(statement, questions, 0)
        if not self._in_transaction:
            self.commit()
            if before is not None and self.settings.next_isolation is before:
                self.settings.next_isolation = None
        return decisions

    def _run(self, statement: SqlStatement, questions: Questions, depth: int) -> list[LoggingDecision]:
        facts = statement_facts(statement)
        try:
            if facts.action is Action.CONTROL:
                return self._control(statement.words(), facts, questions, depth)
            if facts.action is Action.CALL:
                return self._call(statement.words(), questions, depth)
        except SchemaError:
            facts = attrs.evolve(facts, action=Action.UNKNOWN)
        if facts.action is Action.UNKNOWN:
            message = "the statement cannot be read"
            raise UndecidedError(message)
        if facts.action is Action.BINLOG:
            return [decide(Properties(self.settings.binlog_format, safety=Safety.ROW_INJECTION))]
        if facts.action in _CHANGES or (facts.action is Action.CREATE_TABLE and "SELECT" in facts.marks):
            return [self._change(statement, facts, questions)]
        kind = self._definition_kind(statement, facts)
        if kind is not StatementSort.NOT_LOGGED and kind is not StatementSort.TEMPORARY_DEFINITION:
            self.commit()  # an implicit commit
        decision = decide(Properties(self.settings.binlog_format, kind, self.settings.binary_log))
        if not decision.refused:
            self.catalog.define(statement, self.database, self.settings.engine, self.settings.temporary_engine)
            if decision.logged:
                temporary = kind is StatementSort.TEMPORARY_DEFINITION and self._in_transaction
                self._write(LoggedAs.STATEMENT, cached=temporary and self._waits(facts), keeps=temporary)
        return [decision]

    @property
    def _in_transaction(self) -> bool:
        return self.transactions.open or not self.settings.autocommit

    @property
    def _situation(self) -> Situation:
        cached = bool(self.transactions.cache)
        isolation = self.settings.next_isolation or self.settings.isolation
        return Situation(
            *(self.settings.binlog_format, self.settings.binary_log, isolation, self.settings.binlog_direct),
            *(self._in_transaction, cached, self.transactions.xa, self.as_rows),
        )

    def _write(self, logged: LoggedAs, *, cached: bool, keeps: bool = False) -> None:
        self.transactions.write(TransactionEntry(logged, self.source), cached=cached, keeps=keeps)

    def commit(self) -> None:
        """End the transaction."""
        if self.transactions.open:
            self.settings.next_isolation = None
        self.transactions.commit()

    def _waits(self, facts: StatementFacts) -> bool:
        """Whether the definition of a temporary table waits for the end of the transaction."""
        if facts.action is not Action.CREATE_TABLE or self.transactions.cache:
            return True
        target = facts.targets[0]
        table = self.catalog.temporary[target.database or self.database, target.name]
        return self._situation.engine_named(table.engine).transactional

    def _change(self, statement: SqlStatement, facts: StatementFacts, questions: Questions) -> LoggingDecision:
        """Decide a statement that changes rows, and a query, which does so if a stored function does."""
        create = facts.action is Action.CREATE_TABLE
        temporary = "TEMPORARY" in facts.marks
        if create:
            if not temporary:
                self.commit()
            target = facts.targets[0]
            name = (target.database or self.database, target.name)
            if "IF NOT EXISTS" in facts.marks and name in self.catalog.tables and not temporary:
                return decide(Properties(self.settings.binlog_format, StatementSort.NOT_LOGGED))
            self.catalog.define(statement, self.database, self.settings.engine, self.settings.temporary_engine)
        use = use_of(facts, self.database, self.catalog, questions, self.settings.engine)
        ndb = any(table.facts.engine == "NDB" for table in use.tables)
        self.transactions.uses_ndb |= ndb and self._in_transaction
        if not use.written or (facts.rows is False and not use.routines):
            return decide(Properties(self.settings.binlog_format, StatementSort.NOT_LOGGED))
        situation = self._situation
        properties, reasons = change_properties(facts, use, situation, self.catalog, questions)
        engines = [situation.engine(table) for table in use.written]
        innodb = any(engine.name == "INNODB" and not engine.statements for engine in engines)
        decision = decide(properties, reasons, _INNODB_DETAIL if innodb else "")
        if decision.refused and create:
            self.catalog.forget(name, temporary=temporary)
        self._log_change(decision, use, situation, temporary=create and temporary)
        as_rows = decision.logged != (LoggedAs.STATEMENT,)
        self.as_rows |= self.settings.binlog_format is BinlogFormat.MIXED and as_rows and not decision.refused
        return decision

    def _log_change(self, decision: LoggingDecision, use: Use, situation: Situation, *, temporary: bool) -> None:
        engines = [situation.engine(table) for table in use.written]
        permanent = [situation.engine(table) for table in use.written if not table.temporary and not table.local]
        transactional = any(engine.transactional for engine in engines)
        other = any(not engine.transactional for engine in engines)
        for logged in decision.logged:
            if logged is LoggedAs.STATEMENT:
                cached = transactional or (bool(self.transactions.cache) and not self.settings.binlog_direct)
                self._write(logged, cached=cached, keeps=other or temporary)
            else:
                self._log_rows(permanent)

    def _log_rows(self, engines: list[StorageEngine]) -> None:
        if any(not engine.transactional for engine in engines):
            self._write(LoggedAs.ROW, cached=False)
        if any(engine.transactional and engine.name != "NDB" for engine in engines):
            self._write(LoggedAs.ROW, cached=True)
        if any(engine.name == "NDB" for engine in engines):
            self.transactions.ndb_rows.append(TransactionEntry(LoggedAs.ROW, self.source))

    def _definition_kind(self, statement: SqlStatement, facts: StatementFacts) -> StatementSort:
        if facts.action is Action.OTHER:
            return StatementSort.NOT_LOGGED
        names = [(target.database or self.database, target.name) for target in facts.targets]
        temporary = [name in self.catalog.temporary for name in names]
        if facts.action is Action.CREATE_TABLE:
            return StatementSort.TEMPORARY_DEFINITION if "TEMPORARY" in facts.marks else StatementSort.DEFINITION
        if facts.action is Action.TABLE_DEFINITION:
            if "TEMPORARY" in facts.marks and not any(temporary):
                return StatementSort.NOT_LOGGED  # DROP TEMPORARY TABLE IF EXISTS of none
            if "TEMPORARY" in facts.marks or all(temporary):
                return StatementSort.TEMPORARY_DEFINITION
            if "ALTER" in facts.marks and _adds_unsafe_default(statement.words()):
                return StatementSort.UNSAFE_DEFINITION
        return StatementSort.DEFINITION

    def _call(self, words: Words, questions: Questions, depth: int) -> list[LoggingDecision]:
        words.step()
        name = take_name(words, self.database)
        routine = self.catalog.procedures.get((name[0], name[1].lower()))
        if routine is None or depth > _MAX_CALLS:
            shown = ".".join(part for part in name if part)
            why = "calls itself too deeply" if routine else "is not in the schema"
            message = f"the procedure {shown} {why}"
            raise UndecidedError(message)
        database, self.database = self.database, name[0]
        try:
            return self._body(routine, questions, depth + 1)
        finally:
            self.database = database

    def _body(self, routine: Routine, questions: Questions, depth: int) -> list[LoggingDecision]:
        decisions = []
        for number, each in enumerate(routine.body, 1):
            question = f"does statement {number} of the body run? ({each.statement.text[:40]})"
            if each.certain or questions.ask(question, default=True):
                decisions += self._run(each.statement, questions, depth)
                if not self._in_transaction:
                    self.commit()
                if any(decision.refused for decision in decisions):
                    break
        return decisions

    def _control(self, words: Words, facts: StatementFacts, questions: Questions, depth: int) -> list[LoggingDecision]:
        """Follow a statement that controls the session or a transaction."""
        verb = words.step().upper()
        nothing = decide(Properties(self.settings.binlog_format, StatementSort.NOT_LOGGED))
        if verb == "SET":
            before = self.settings.autocommit
            self.settings.set(words)
            if self.settings.autocommit and not before:
                self.commit()
            return [self._change(SqlStatement("", ()), attrs.evolve(facts, action=Action.QUERY), questions)]
        if verb == "USE":
            self.database = words.step()
        elif verb == "BEGIN" or (verb == "START" and words.accept("TRANSACTION")):
            self.commit()
            self.transactions.begin()
        elif verb == "COMMIT" or (verb == "LOCK" and words.upper in ("TABLES", "TABLE")):
            self.commit()
        elif verb == "ROLLBACK":
            return [self._rollback(words, nothing)]
        elif verb == "SAVEPOINT":
            return [self._savepoint(words.step(), nothing)]
        elif verb == "XA":
            self._xa(words)
        elif verb == "PREPARE":
            name = words.step()
            words.step()  # FROM
            self.prepared[name] = self._text(words)
        elif verb == "EXECUTE":
            return self._execute(words.step(), questions, depth)
        return [nothing]

    def _text(self, words: Words) -> str | None:
        """Return the value of a string or of a user variable, if it is known."""
        if words.kind is WordKind.STRING:
            return words.step()
        if words.kind is WordKind.PARAMETER:
            words.step()
            return self.settings.texts.get(words.step().lower())
        return None

    def _execute(self, name: str, questions: Questions, depth: int) -> list[LoggingDecision]:
        text = self.prepared.get(name)
        if text is None:
            message = f"the text of the prepared statement {name} is not known"
            raise UndecidedError(message)
        return [each for part in split_statements(text) for each in self._run(part, questions, depth)]

    def _rollback(self, words: Words, nothing: LoggingDecision) -> LoggingDecision:
        words.accept("WORK")
        if not words.accept("TO"):
            self.transactions.rollback()
            self.settings.next_isolation = None
            return nothing
        words.accept("SAVEPOINT")
        name = words.step()
        if self.transactions.rollback_to(name, self.source):
            return nothing
        return _refused(nothing, ServerMessage.ER_SP_DOES_NOT_EXIST, name)

    def _savepoint(self, name: str, nothing: LoggingDecision) -> LoggingDecision:
        if self.transactions.savepoint(name, self.source):
            return nothing
        return _refused(nothing, ServerMessage.ER_CHECK_NOT_IMPLEMENTED, "SAVEPOINT")

    def _xa(self, words: Words) -> None:
        verb = words.step().upper()
        if verb in ("START", "BEGIN"):
            self.transactions.begin(xa=True)
        elif verb in ("PREPARE", "COMMIT"):
            self.commit()
        elif verb == "ROLLBACK":
            self.transactions.rollback()


def _adds_unsafe_default(words: Words) -> bool:
    """Return whether ALTER TABLE adds a column with an unsafe DEFAULT; changing one is no matter."""
    for part in words.items():
        while part.kind is not None and not part.accept("ADD"):
            part.step()
        if is_unsafe_default(part.group() if part.kind is WordKind.L_PAREN else part):
            return True
    return False


def _refused(nothing: LoggingDecision, message: ServerMessage, detail: str) -> LoggingDecision:
    return attrs.evolve(nothing, messages=(LoggingMessage(Level.ERROR, message, message.text.format(detail)),))
