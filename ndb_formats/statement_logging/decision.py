"""
The decision how a statement is logged: one table, from which `docs/logging.md` is printed.

Source: MySQL's `THD::decide_logging_format`, "Decision table for logging format"; the manual, "Mixed Binary Logging
Format" and "Determination of Safe and Unsafe Statements in Binary Logging". Rows on NDB and on DDL are recorded.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from enum import Enum

import attrs

from ndb_formats.statement_logging.messages import Level, LoggingMessage, ServerMessage, UnsafeReason


class BinlogFormat(Enum):
    """The session's ``binlog_format``."""

    STATEMENT = "STATEMENT"
    ROW = "ROW"
    MIXED = "MIXED"


class StatementSort(Enum):
    """What a statement does."""

    NOT_LOGGED = "logs nothing"  # it reads, or sets variables
    DEFINITION = "definition"  # DDL, accounts, maintenance of tables
    TEMPORARY_DEFINITION = "definition of a temporary table"
    UNSAFE_DEFINITION = "ALTER TABLE that adds an unsafe DEFAULT"
    CREATE_SELECT = "CREATE TABLE ... SELECT"  # into NDB, and of a temporary table, it is a change
    CHANGE = "change"


class Tables(Enum):
    """Which tables a statement writes to: the server never logs its local ones, such as performance_schema."""

    REPLICATED = "replicated"
    LOCAL = "local"
    BOTH = "replicated and local"


class Capability(Enum):
    """What all engines written to can log together."""

    BOTH = "both"
    ROW = "rows only"
    STATEMENT = "statements only"
    NEITHER = "neither"


class Safety(Enum):
    """Whether a statement does the same on the replica."""

    SAFE = "safe"
    ROWS_IN_MIXED = "safe (rows in MIXED)"  # LOAD DATA, and every access to a temporary table
    UNSAFE = "unsafe"
    ROW_INJECTION = "row event"  # BINLOG '...', or a row event that the replica applies


class LoggedAs(Enum):
    """What stands in the binary log."""

    STATEMENT = "statement"
    ROW = "row"


@attrs.frozen
class Properties:
    """
    What decides how a statement is logged.

    Attributes:
        binlog_format: The session's ``binlog_format``.
        kind: What the statement does.
        binary_log: Whether the session logs (``sql_log_bin``).
        tables: Which tables it writes to.
        capability: What the engines of these tables can log.
        safety: Whether it does the same on the replica.
        rows: Whether it changes rows that are replicated; rows of temporary tables are not.
        ndb_cascade: Whether NDB changes rows through a foreign key, too; they come as row events in every format.
    """

    binlog_format: BinlogFormat
    kind: StatementSort = StatementSort.CHANGE
    binary_log: bool = True
    tables: Tables = Tables.REPLICATED
    capability: Capability = Capability.BOTH
    safety: Safety = Safety.SAFE
    rows: bool = True
    ndb_cascade: bool = False


@attrs.frozen
class DecisionRow:
    """
    One row of the decision: what holds, and what follows.

    Attributes:
        when: The values that a property may have, by its name; a property that is not named may have any.
        logged: What is logged, in order.
        message: The warning or error; None if there is none.
        level: The level of the message.
    """

    when: dict[str, tuple[object, ...]]
    logged: tuple[LoggedAs, ...] = ()
    message: ServerMessage | None = None
    level: Level = Level.ERROR

    def holds(self, properties: Properties) -> bool:
        """Return whether every condition holds."""
        return all(getattr(properties, name) in values for name, values in self.when.items())


_Conditions = dict[str, tuple[object, ...]]


def _when(*base: _Conditions, **conditions: object) -> _Conditions:
    """Return conditions: those of `base`, and a value or a tuple of values for each other property."""
    found: _Conditions = {"binary_log": (True,)}
    for each in base:
        found |= each
    return found | {name: value if isinstance(value, tuple) else (value,) for name, value in conditions.items()}


_STATEMENT, _ROW, _MIXED = BinlogFormat.STATEMENT, BinlogFormat.ROW, BinlogFormat.MIXED
_NOT_STATEMENT = (_ROW, _MIXED)
_SAFE = (Safety.SAFE, Safety.ROWS_IN_MIXED)
_NORMAL = (*_SAFE, Safety.UNSAFE)
_CAN_LOG_STATEMENTS = (Capability.BOTH, Capability.STATEMENT)
_CAN_LOG_ROWS = (Capability.BOTH, Capability.ROW)
_CHANGES = _when(kind=(StatementSort.CHANGE, StatementSort.CREATE_SELECT))
_LOGGED = _when(_CHANGES, tables=(Tables.REPLICATED, Tables.BOTH))
_LOGGED_OR_NOT_STATEMENT = _when(_LOGGED, binlog_format=_NOT_STATEMENT)
# BINLOG_FORMAT = STATEMENT refuses to write to replicated and local tables at once, so these rows have no others.
_IN_STATEMENT = _when(_CHANGES, tables=Tables.REPLICATED, binlog_format=_STATEMENT)


def _as_statement(safety: tuple[Safety, ...], message: ServerMessage | None) -> tuple[DecisionRow, ...]:
    """Return the rows for what BINLOG_FORMAT = STATEMENT logs."""
    when = _when(_IN_STATEMENT, capability=_CAN_LOG_STATEMENTS, safety=safety)
    return (
        DecisionRow(_when(when, ndb_cascade=False), (LoggedAs.STATEMENT,), message, Level.NOTE),
        DecisionRow(_when(when, ndb_cascade=True), (LoggedAs.STATEMENT, LoggedAs.ROW), message, Level.NOTE),
    )


def _as_rows(**conditions: object) -> tuple[DecisionRow, ...]:
    """Return the rows for what is logged as rows."""
    when = _when(_LOGGED, **conditions)
    return (
        DecisionRow(_when(when, kind=StatementSort.CHANGE, rows=True), (LoggedAs.ROW,)),
        DecisionRow(_when(when, kind=StatementSort.CHANGE, rows=False)),
        DecisionRow(_when(when, kind=StatementSort.CREATE_SELECT, rows=True), (LoggedAs.STATEMENT, LoggedAs.ROW)),
        DecisionRow(_when(when, kind=StatementSort.CREATE_SELECT, rows=False), (LoggedAs.STATEMENT,)),
    )


def _error(message: ServerMessage, *base: _Conditions, **conditions: object) -> DecisionRow:
    return DecisionRow(_when(*base, **conditions), (), message)


DECISIONS: tuple[DecisionRow, ...] = (
    DecisionRow(_when(binary_log=False)),
    DecisionRow(_when(kind=StatementSort.NOT_LOGGED)),
    DecisionRow(_when(kind=StatementSort.DEFINITION), (LoggedAs.STATEMENT,)),
    DecisionRow(_when(kind=StatementSort.TEMPORARY_DEFINITION, binlog_format=_STATEMENT), (LoggedAs.STATEMENT,)),
    DecisionRow(_when(kind=StatementSort.TEMPORARY_DEFINITION, binlog_format=_NOT_STATEMENT)),
    DecisionRow(
        _when(kind=StatementSort.UNSAFE_DEFINITION, binlog_format=_STATEMENT),
        (LoggedAs.STATEMENT,),
        ServerMessage.ER_BINLOG_UNSAFE_SYSTEM_FUNCTION,
        Level.WARNING,
    ),
    _error(
        ServerMessage.ER_BINLOG_UNSAFE_SYSTEM_FUNCTION,
        kind=StatementSort.UNSAFE_DEFINITION,
        binlog_format=_NOT_STATEMENT,
    ),
    # Changes: first what cannot be logged.
    DecisionRow(_when(_CHANGES, tables=Tables.LOCAL)),
    _error(
        ServerMessage.ER_BINLOG_STMT_MODE_AND_NO_REPL_TABLES,
        _CHANGES,
        tables=Tables.BOTH,
        binlog_format=_STATEMENT,
    ),
    *(
        _error(ServerMessage.ER_BINLOG_ROW_ENGINE_AND_STMT_ENGINE, when, capability=Capability.NEITHER)
        for when in (_IN_STATEMENT, _LOGGED_OR_NOT_STATEMENT)
    ),
    *(
        _error(
            ServerMessage.ER_BINLOG_ROW_INJECTION_AND_STMT_ENGINE,
            when,
            capability=Capability.STATEMENT,
            safety=Safety.ROW_INJECTION,
        )
        for when in (_IN_STATEMENT, _LOGGED_OR_NOT_STATEMENT)
    ),
    _error(
        ServerMessage.ER_BINLOG_ROW_INJECTION_AND_STMT_MODE,
        _IN_STATEMENT,
        capability=_CAN_LOG_ROWS,
        safety=Safety.ROW_INJECTION,
    ),
    _error(ServerMessage.ER_BINLOG_STMT_MODE_AND_ROW_ENGINE, _IN_STATEMENT, capability=Capability.ROW, safety=_NORMAL),
    _error(
        ServerMessage.ER_BINLOG_ROW_MODE_AND_STMT_ENGINE,
        _LOGGED,
        capability=Capability.STATEMENT,
        safety=_NORMAL,
        binlog_format=_ROW,
    ),
    _error(
        ServerMessage.ER_BINLOG_UNSAFE_AND_STMT_ENGINE,
        _LOGGED,
        capability=Capability.STATEMENT,
        safety=Safety.UNSAFE,
        binlog_format=_MIXED,
    ),
    # BINLOG_FORMAT = STATEMENT.
    *_as_statement(_SAFE, None),
    *_as_statement((Safety.UNSAFE,), ServerMessage.ER_BINLOG_UNSAFE_STATEMENT),
    # BINLOG_FORMAT = MIXED logs the statement where it is known to be right.
    DecisionRow(
        _when(_LOGGED, capability=Capability.BOTH, safety=Safety.SAFE, binlog_format=_MIXED), (LoggedAs.STATEMENT,)
    ),
    DecisionRow(
        _when(_LOGGED, capability=Capability.STATEMENT, safety=_SAFE, binlog_format=_MIXED), (LoggedAs.STATEMENT,)
    ),
    *_as_rows(
        binlog_format=_MIXED,
        capability=Capability.BOTH,
        safety=(Safety.ROWS_IN_MIXED, Safety.UNSAFE, Safety.ROW_INJECTION),
    ),
    *_as_rows(binlog_format=_MIXED, capability=Capability.ROW),
    *_as_rows(binlog_format=_ROW, capability=_CAN_LOG_ROWS),
)


@attrs.frozen
class LoggingDecision:
    """
    How a statement is logged.

    Attributes:
        logged: What is logged, in order; empty if nothing is.
        messages: The warnings and errors on its logging, in the server's order.
        row: Number of the row of the table that decided, from 1.
    """

    logged: tuple[LoggedAs, ...]
    messages: tuple[LoggingMessage, ...]
    row: int

    @property
    def refused(self) -> bool:
        """Whether the server refuses the statement."""
        return any(message.level is Level.ERROR for message in self.messages)


def matching_rows(properties: Properties) -> list[int]:
    """Return the numbers of the rows of the table that hold, from 1; for every combination there is exactly one."""
    return [number for number, row in enumerate(DECISIONS, 1) if row.holds(properties)]


def decide(properties: Properties, reasons: Iterable[UnsafeReason] = (), detail: str = "") -> LoggingDecision:
    """
    Decide how a statement is logged.

    Args:
        properties: What decides.
        reasons: Why the statement is unsafe; each makes its own message.
        detail: What the server appends to the text of an error, such as the reason of an engine.
    """
    number = matching_rows(properties)[0]
    row = DECISIONS[number - 1]
    return LoggingDecision(row.logged, tuple(_messages(row, tuple(reasons), detail)), number)


def _messages(row: DecisionRow, reasons: tuple[UnsafeReason, ...], detail: str) -> Iterable[LoggingMessage]:
    message = row.message
    if message is None:
        return
    if message in (ServerMessage.ER_BINLOG_UNSAFE_STATEMENT, ServerMessage.ER_BINLOG_UNSAFE_AND_STMT_ENGINE):
        for reason in UnsafeReason:
            if reason in reasons:
                yield LoggingMessage(row.level, message, message.text.format(reason.text), reason)
        return
    yield LoggingMessage(row.level, message, message.text.format(detail))


# What the page says of a property with two values, for False and True.
_WORDS = {
    "binary_log": ("`sql_log_bin` is OFF", ""),
    "rows": ("no rows change", "rows change"),
    "ndb_cascade": ("no cascade of NDB", "a cascade of NDB"),
}
_PREFIXES = {"tables": "tables: ", "capability": "engines: "}
_VALUES: dict[str, tuple[object, ...]] = {
    "kind": tuple(StatementSort),
    "binlog_format": tuple(BinlogFormat),
    "tables": tuple(Tables),
    "capability": tuple(Capability),
    "safety": tuple(Safety),
    "rows": (False, True),
    "ndb_cascade": (False, True),
    "binary_log": (False, True),
}


def _needed_conditions() -> Iterator[_Conditions]:
    """Yield the conditions of each row without those that the rows before it imply."""
    left = [
        Properties(**dict(zip(_VALUES, values, strict=True)))  # type: ignore[arg-type]
        for values in itertools.product(*_VALUES.values())
    ]
    for row in DECISIONS:
        needed = row.when
        for name in row.when:
            fewer = {each: values for each, values in needed.items() if each != name}
            if all(row.holds(each) == DecisionRow(fewer).holds(each) for each in left):
                needed = fewer
        yield needed
        left = [each for each in left if not row.holds(each)]


def _condition(name: str, values: tuple[object, ...]) -> str:
    words = (str(value.value) if isinstance(value, Enum) else _WORDS[name][bool(value)] for value in values)
    return _PREFIXES.get(name, "") + " or ".join(words)


def _message(row: DecisionRow) -> str:
    if row.message is None:
        return ""
    return f"{row.level.value.lower()} {int(row.message)} `{row.message.name}`"


def decision_markdown() -> str:
    """Return the decision as a table of a page, in which the first row decides whose conditions hold."""
    lines = ["| row | if | logged | message |", f"|{'---|' * 4}"]
    for number, (row, needed) in enumerate(zip(DECISIONS, _needed_conditions(), strict=True), 1):
        conditions = "; ".join(_condition(name, needed[name]) for name in _VALUES if name in needed)
        logged = ", then ".join(each.value for each in row.logged) or "nothing"
        lines.append(f"| {number} | {conditions} | {logged} | {_message(row)} |")
    return "\n".join(lines)


def reasons_markdown() -> str:
    """Return the reasons for which a statement is unsafe as a list of a page."""
    return ", ".join(f"{int(reason)} `{reason.name}`" for reason in UnsafeReason)
