"""
The properties of a statement in a session, from what it uses.

Source: MySQL's `THD::decide_logging_format` and `LEX::is_mixed_stmt_unsafe` with `binlog_unsafe_map`.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ndb_formats.statement_logging.catalog import Catalog
from ndb_formats.statement_logging.decision import BinlogFormat, Properties, Safety, StatementSort, Tables
from ndb_formats.statement_logging.messages import UnsafeReason
from ndb_formats.statement_logging.questions import Questions
from ndb_formats.statement_logging.settings import Isolation, StorageEngine, engine_of, together
from ndb_formats.statement_logging.statement_kinds import Action, StatementFacts
from ndb_formats.statement_logging.table_use import TableUse, Use

# The question that comes up most often: a statement that matches no rows logs none.
ROWS_CHANGE = "do rows change?"


@attrs.frozen
class Situation:
    """
    What the session adds to a statement.

    Attributes:
        binlog_format: The session's ``binlog_format``.
        binary_log: ``sql_log_bin``.
        isolation: The isolation level of the transaction.
        binlog_direct: ``binlog_direct_non_transactional_updates``.
        in_transaction: Whether the statement is in a transaction of several statements.
        cache_used: Whether the transaction has logged something in the transaction cache.
        xa: Whether that is an XA transaction.
        as_rows: Whether an earlier statement of the same CALL was logged as rows under MIXED, which holds to its end.
    """

    binlog_format: BinlogFormat
    binary_log: bool = True
    isolation: Isolation = Isolation.REPEATABLE_READ
    binlog_direct: bool = False
    in_transaction: bool = False
    cache_used: bool = False
    xa: bool = False
    as_rows: bool = False

    def engine(self, table: TableUse) -> StorageEngine:
        """Return the engine of a table."""
        return self.engine_named(table.facts.engine)

    def engine_named(self, name: str) -> StorageEngine:
        """Return an engine, whose name is given in upper case."""
        return engine_of(name, self.binlog_format, self.isolation)


def change_properties(
    facts: StatementFacts, use: Use, situation: Situation, catalog: Catalog, questions: Questions
) -> tuple[Properties, frozenset[UnsafeReason]]:
    """
    Return the properties of a statement that changes rows, and why it is unsafe.

    Args:
        facts: What its words say.
        use: The tables that it uses.
        situation: The session.
        catalog: Tells the foreign keys.
        questions: Asked whether rows change, if the text does not tell.
    """
    # The server gives no warning on LOAD DATA, which it never logs as a statement under MIXED.
    load = facts.action is Action.LOAD
    reasons = frozenset(() if load else use.reasons | set(_session_reasons(use, situation)))
    replicated = [table for table in use.written if not table.local]
    logged = [table for table in replicated if not table.temporary]
    create = facts.action is Action.CREATE_TABLE
    local = len(replicated) < len(use.written)
    in_ndb = any(situation.engine(table).self_logging for table in logged)
    rows = bool(logged) and _rows_change(facts, use, logged, questions)
    temporary = any(table.temporary for table in use.tables)
    in_mixed = temporary or load or situation.as_rows
    safe = Safety.ROWS_IN_MIXED if in_mixed else Safety.SAFE
    properties = Properties(
        situation.binlog_format,
        StatementSort.CREATE_SELECT if create and logged and not in_ndb else StatementSort.CHANGE,
        situation.binary_log,
        (Tables.BOTH if replicated else Tables.LOCAL) if local else Tables.REPLICATED,
        together([situation.engine(table) for table in replicated]),
        Safety.UNSAFE if reasons else safe,
        rows,
        _ndb_cascade(facts, logged, catalog, questions),
    )
    return properties, reasons


def _rows_change(facts: StatementFacts, use: Use, logged: list[TableUse], questions: Questions) -> bool:
    if facts.rows is not None and (facts.rows or not use.routines):
        return facts.rows
    if all(table.facts.engine == "BLACKHOLE" for table in logged) and facts.action in (Action.UPDATE, Action.DELETE):
        return False  # it has no rows
    if facts.action is Action.QUERY:
        return questions.ask("do its stored functions change rows?", default=True)
    return questions.ask(ROWS_CHANGE, default=True)


def _ndb_cascade(facts: StatementFacts, logged: list[TableUse], catalog: Catalog, questions: Questions) -> bool:
    """Whether data nodes change rows of other tables through a foreign key."""
    if facts.action not in (Action.UPDATE, Action.DELETE):
        return False
    parents = [
        table
        for table in logged
        if table.facts.engine == "NDB"
        and any(key.action(facts.action.value) for _, key in catalog.children(table.name))
    ]
    return bool(parents) and questions.ask(ROWS_CHANGE, default=True) and _reaches_children(parents, questions)


def _reaches_children(parents: list[TableUse], questions: Questions) -> bool:
    names = ", ".join(table.name[1] for table in parents)
    return questions.ask(f"do rows of other tables refer to the changed rows of {names}?", default=True)


def _session_reasons(use: Use, situation: Situation) -> Iterator[UnsafeReason]:
    """Yield the reasons that a transaction or the engines together give."""
    accessed = [(table, situation.engine(table)) for table in use.tables if not (table.local and table.written)]
    if _is_mixed(accessed, situation):
        yield UnsafeReason.MIXED_STATEMENT
    elif (
        situation.in_transaction
        and situation.cache_used
        and not situation.binlog_direct
        and any(table.written and not table.temporary and not engine.transactional for table, engine in accessed)
    ):
        yield UnsafeReason.NONTRANS_AFTER_TRANS
    if len({engine.name for _, engine in accessed}) > 1 and any(engine.self_logging for _, engine in accessed):
        yield UnsafeReason.MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE
    if situation.xa and use.written:
        yield UnsafeReason.XA


# What a table is to a statement: whether it is written, temporary, transactional.
_Access = tuple[bool, bool, bool]
_READS, _WRITES = False, True


def _is_mixed(accessed: list[tuple[TableUse, StorageEngine]], situation: Situation) -> bool:
    """Whether a statement uses transactional and other tables in a way that a replica may see in another order."""
    # The server counts a written table as read, too.
    kinds = {(written, table.temporary, engine.transactional) for table, engine in accessed for written in _uses(table)}
    trans_read = (_READS, False, True) in kinds
    writes_other = bool({(_WRITES, False, False), (_WRITES, True, False)} & kinds)
    if situation.isolation.below_repeatable_read and trans_read and writes_other:
        return True
    if not situation.in_transaction:
        return False
    return any({first, second} <= kinds for first, second in _unsafe_pairs(situation))


def _uses(table: TableUse) -> tuple[bool, ...]:
    return (_READS, _WRITES) if table.written else (_READS,)


def _unsafe_pairs(situation: Situation) -> Iterator[tuple[_Access, _Access]]:
    """Yield the pairs of accesses that are unsafe in a transaction; the numbers are those of `binlog_unsafe_map`."""
    writes_trans, writes_other = (_WRITES, False, True), (_WRITES, False, False)
    writes_temp_trans, writes_temp_other = (_WRITES, True, True), (_WRITES, True, False)
    reads_trans, reads_other = (_READS, False, True), (_READS, False, False)
    reads_temp_trans, reads_temp_other = (_READS, True, True), (_READS, True, False)
    yield writes_trans, writes_other  # 1
    yield writes_trans, reads_other  # 2
    yield writes_other, writes_temp_trans  # 3
    yield writes_temp_trans, reads_other  # 4
    if situation.binlog_direct:
        yield writes_trans, writes_temp_other  # 5
        yield writes_trans, reads_temp_other  # 6
        yield writes_temp_trans, writes_temp_other  # 7
        yield writes_temp_trans, reads_temp_other  # 8
    if situation.cache_used:
        yield writes_other, reads_trans  # 9
        yield writes_other, reads_temp_trans  # 10
        if situation.binlog_direct:
            yield writes_temp_other, reads_trans  # 11
            yield writes_temp_other, reads_temp_trans  # 12
        else:
            yield writes_temp_other, reads_other  # 13
