"""How the statements of a text are logged, one after the other."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

import attrs

from ndb_formats.errors import SchemaError
from ndb_formats.schema.lexer import Words
from ndb_formats.statement_logging.catalog import Catalog
from ndb_formats.statement_logging.decision import LoggedAs, LoggingDecision
from ndb_formats.statement_logging.messages import LoggingMessage
from ndb_formats.statement_logging.questions import Questions, explore, questions_that_matter
from ndb_formats.statement_logging.session import LoggingSession, UndecidedError
from ndb_formats.statement_logging.sql_text import SqlStatement, split_statements


@attrs.frozen
class StatementOutcome:
    """
    One way in which a statement can be logged.

    Attributes:
        logged: What is logged, in order, without repetitions; empty if nothing is.
        messages: Warnings and errors.
        rows: Numbers of the rows of the table that decided, from 1; several for CALL.
    """

    logged: tuple[LoggedAs, ...]
    messages: tuple[LoggingMessage, ...]
    rows: tuple[int, ...]


@attrs.frozen
class LoggedStatement:
    """
    How one statement is logged.

    Attributes:
        text: The statement.
        outcomes: Every way in which it can be logged, the most likely first; none if the text does not tell what it
            does.
        unknown: What the text and the schema do not tell, and what it depends on.
        rolled_back: Whether nothing of it stays in the log, because its transaction is rolled back.
    """

    text: str
    outcomes: tuple[StatementOutcome, ...]
    unknown: tuple[str, ...] = ()
    rolled_back: bool = False

    @property
    def known(self) -> bool:
        """Whether it can be logged in one way only."""
        return len(self.outcomes) == 1


def catalog_of(sql: str, *, engine: str = "INNODB") -> Catalog:
    """
    Return what statements create: tables, views, triggers and routines; USE sets the database.

    Args:
        sql: The statements; those that create nothing are ignored.
        engine: Engine of tables that name none.

    Raises:
        SchemaError: The text cannot be tokenized, or the definition of a table cannot be read.
    """
    catalog, database = Catalog(), ""
    for statement in split_statements(sql):
        words = statement.words()
        if words.accept("USE"):
            database = words.step()
        follow = catalog.follow if _creates_table(statement.words()) else catalog.define
        try:
            follow(statement, database, engine, "INNODB")
        except SchemaError as error:
            shown = textwrap.shorten(statement.text, 60, placeholder=" ...")
            message = f"{shown}: {error}"
            raise SchemaError(message) from error
    return catalog


def _creates_table(words: Words) -> bool:
    return words.accept("CREATE", "TABLE") or words.accept("CREATE", "TEMPORARY", "TABLE")


def log_statements(statements: Iterable[SqlStatement], session: LoggingSession) -> list[LoggedStatement]:
    """
    Follow statements in a session and return how each is logged.

    What the text does not tell is tried both ways for its own statement; those after it see the more likely one. A
    transaction that is open at the end is rolled back, as the server does.
    """
    found = []
    for statement in statements:
        before = session.copy()
        try:
            questions = Questions()
            first = _outcome(session.run(statement, questions))
        except UndecidedError as error:
            found.append(LoggedStatement(statement.text, (), (str(error),)))
            continue
        except RecursionError:
            found.append(LoggedStatement(statement.text, (), ("it is nested too deeply to be read",)))
            continue
        if questions.asked:
            found.append(_explored(statement, before))
        else:
            found.append(LoggedStatement(statement.text, (first,)))
    session.transactions.rollback()
    first_source = session.source - len(found) + 1
    return [
        attrs.evolve(each, rolled_back=first_source + number in session.transactions.dropped)
        for number, each in enumerate(found)
    ]


def _explored(statement: SqlStatement, before: LoggingSession) -> LoggedStatement:
    answered = list(explore(lambda questions: _outcome(before.copy().run(statement, questions))))
    outcomes = tuple(dict.fromkeys(each.outcome for each in answered))
    return LoggedStatement(statement.text, _shown(outcomes), questions_that_matter(answered))


def _shown(outcomes: tuple[StatementOutcome, ...]) -> tuple[StatementOutcome, ...]:
    """Return outcomes that differ in what is logged or said; the row of the table alone makes no difference."""
    return tuple({(each.logged, each.messages): each for each in reversed(outcomes)}.values())[::-1]


def _outcome(decisions: list[LoggingDecision]) -> StatementOutcome:
    logged = [each for decision in decisions for each in decision.logged]
    collapsed = tuple(each for position, each in enumerate(logged) if position == 0 or logged[position - 1] != each)
    messages = tuple(message for decision in decisions for message in decision.messages)
    return StatementOutcome(collapsed, messages, tuple(dict.fromkeys(decision.row for decision in decisions)))
