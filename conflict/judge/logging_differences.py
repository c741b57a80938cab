"""
How statements are logged, against a recording: from given properties, and from SQL text alone.

`decisions.json` has, per engine and `binlog_format`, statements with what the server logged and said. Given properties
are the rows that a statement changed; the rest always comes from its text and from the tables of the recording.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ndb_formats.statement_logging.catalog import Catalog
from ndb_formats.statement_logging.decision import BinlogFormat, LoggingDecision
from ndb_formats.statement_logging.messages import ServerMessage
from ndb_formats.statement_logging.properties import ROWS_CHANGE
from ndb_formats.statement_logging.questions import Answered, Questions, explore, questions_that_matter
from ndb_formats.statement_logging.session import LoggingSession, UndecidedError
from ndb_formats.statement_logging.settings import Settings
from ndb_formats.statement_logging.sql_text import split_statements
from ndb_formats.statement_logging.statement_log import catalog_of

_NUMBERS = frozenset(int(message) for message in ServerMessage)
# These numbers have other uses, too; here they are about savepoints.
_SAVEPOINT_NUMBERS = frozenset({ServerMessage.ER_CHECK_NOT_IMPLEMENTED, ServerMessage.ER_SP_DOES_NOT_EXIST})
_NOT_ROLLED_BACK = 1196  # ER_WARNING_NOT_COMPLETE_ROLLBACK: what the failed statement changed stays
# Of a REPLACE the affected rows do not tell: one that finds an equal row counts it, and logs nothing.
_TELLING = frozenset({"INSERT", "UPDATE", "DELETE", "LOAD", "WITH", "CREATE"})
_Said = tuple[tuple[str, int, str], ...]


@attrs.frozen
class LoggingVerdict:
    """
    How one recorded case agrees.

    Attributes:
        case: Engine, format and name.
        properties: How the decision from given properties differs; empty if it agrees.
        text: How the decision from the text alone differs; empty if it agrees.
        unknown: What the text does not tell; empty if it tells how the case is logged.
    """

    case: str
    properties: str = ""
    text: str = ""
    unknown: tuple[str, ...] = ()


def judge_decisions(folder: Path) -> list[LoggingVerdict]:
    """Judge the recording in a folder."""
    return list(judge_logging(json.loads((folder / "decisions.json").read_text("utf-8"))))


def logging_differences(verdicts: Sequence[LoggingVerdict]) -> list[str]:
    """Return every difference."""
    return [
        f"{verdict.case}, {way}: {difference}"
        for verdict in verdicts
        for way, difference in (("from properties", verdict.properties), ("from the text", verdict.text))
        if difference
    ]


def logging_counts(verdicts: Sequence[LoggingVerdict]) -> str:
    """Say how many decisions agree, and how often the text alone does not tell."""
    unknown = [verdict for verdict in verdicts if verdict.unknown]
    questions = Counter(_kind_of(question) for each in unknown for question in each.unknown)
    why = "; ".join(f"{question} {times}" for question, times in questions.most_common())
    return (
        f"{len(verdicts)} decisions agree from given properties and {len(verdicts) - len(unknown)} from the text "
        f"alone; the text leaves {len(unknown)} open, and what was recorded is among their outcomes ({why})"
    )


def judge_logging(document: Mapping[str, Any]) -> Iterator[LoggingVerdict]:
    """
    Judge the cases of a recording in order: what a case creates is there for the next one of its engine and format.

    Args:
        document: Contents of `decisions.json`.
    """
    catalogs: dict[tuple[str, str], Catalog] = {}
    for case in document["cases"]:
        engine, binlog_format = case["engine"], case["binlog_format"]
        key = (engine, binlog_format)
        if key not in catalogs:
            catalogs[key] = _setup(document["setup"][engine], engine)
        session = _prepared(case, catalogs[key])
        name = f"{engine} {binlog_format} {case['name']}"
        properties, after = _from_properties(case, session.copy())
        found = _ways(case, session, {})
        text = "" if any(_agrees(case, each.outcome) for each in found) else _difference(case, found[0].outcome)
        outcomes = {each.outcome for each in found}
        unknown = questions_that_matter(found) if len(outcomes) > 1 else ()
        unknown += tuple(dict.fromkeys(each.undecided for each in outcomes if each.undecided))
        yield LoggingVerdict(name, properties, text, unknown)
        after.catalog.temporary.clear()
        catalogs[key] = after.catalog


def _kind_of(question: str) -> str:
    """Return a question without the statement that asks it and without details."""
    return (question.partition(": ")[2] or question).split(" (")[0]


@attrs.frozen
class _Outcome:
    logged: tuple[str, ...]
    said: tuple[_Said, ...]
    undecided: str = ""


def _setup(setup: Mapping[str, Any], engine: str) -> Catalog:
    failed = {failure["sql"] for failure in setup["failures"]}
    return catalog_of("\n".join(f"{sql};" for sql in setup["sql"] if sql not in failed), engine=engine.upper())


def _prepared(case: Mapping[str, Any], catalog: Catalog) -> LoggingSession:
    session = LoggingSession(Settings(BinlogFormat[case["binlog_format"]], engine=case["engine"].upper()), catalog)
    for statement in case["prepare"]:
        if "error" not in statement:
            for part in split_statements(statement["sql"]):
                session.run(part, Questions())
    session.transactions.log.clear()
    return session


def _from_properties(case: Mapping[str, Any], session: LoggingSession) -> tuple[str, LoggingSession]:
    given = {
        number: {ROWS_CHANGE: statement["affected"] > 0}
        for number, statement in enumerate(case["statements"])
        if statement.get("affected") is not None and statement["sql"].split()[0].upper() in _TELLING
    }
    # What stays open, such as a branch of a procedure, may go either way.
    found = _ways(case, session, given)
    agreeing = [each for each in found if _agrees(case, each.outcome)]
    _, after = _run(case, session, Questions((agreeing or found)[0].answers), given)
    return "" if agreeing else _difference(case, found[0].outcome), after


def _ways(
    case: Mapping[str, Any], session: LoggingSession, given: Mapping[int, Mapping[str, bool]]
) -> list[Answered[_Outcome]]:
    """Return how a case can be logged, for every answer to what is not given."""
    return list(explore(lambda questions: _run(case, session.copy(), questions, given)[0]))


def _run(
    case: Mapping[str, Any], session: LoggingSession, questions: Questions, given: Mapping[int, Mapping[str, bool]]
) -> tuple[_Outcome, LoggingSession]:
    """Follow the statements of a case; several are one transaction."""
    statements = case["statements"]
    several = len(statements) > 1
    if several:
        session.transactions.begin()
    said: list[_Said] = []
    try:
        for number, statement in enumerate(statements):
            if _fails_otherwise(statement):
                said.append(())
                continue
            own = _Own(questions, number, given.get(number, {}))
            decisions = [each for part in split_statements(statement["sql"]) for each in session.run(part, own)]
            said.append(_said(decisions))
    except UndecidedError as error:
        return _Outcome((), (), str(error)), session
    if several:
        session.commit()
    session.transactions.rollback()
    return _Outcome(_kinds(session), tuple(said)), session


class _Own(Questions):
    """The questions of one statement of several: the same question has its own answer for each."""

    def __init__(self, questions: Questions, number: int, given: Mapping[str, bool]) -> None:
        super().__init__()
        self.questions, self.number, self.given = questions, number, given

    def ask(self, question: str, *, default: bool) -> bool:
        """Return what is given, or else the answer of all questions."""
        if question in self.given:
            return self.given[question]
        return self.questions.ask(f"statement {self.number + 1}: {question}", default=default)


def _fails_otherwise(statement: Mapping[str, Any]) -> bool:
    """Return whether a statement failed for a reason that is not its logging, and left nothing."""
    kept = any(number == _NOT_ROLLED_BACK for _, number, _ in statement.get("warnings", ()))
    return "error" in statement and not _is_on_logging(*statement["error"]) and not kept


def _is_on_logging(number: int, text: str) -> bool:
    return number in _NUMBERS and (number not in _SAVEPOINT_NUMBERS or "SAVEPOINT" in text)


def _said(decisions: Sequence[LoggingDecision]) -> _Said:
    return tuple(
        (message.level.value, int(message.message), message.text)
        for decision in decisions
        for message in decision.messages
    )


def _recorded(statement: Mapping[str, Any]) -> _Said:
    if _fails_otherwise(statement):
        return ()
    return tuple(
        (level, number, text) for level, number, text in statement.get("warnings", ()) if _is_on_logging(number, text)
    )


def _kinds(session: LoggingSession) -> tuple[str, ...]:
    logged = [entry.logged.value for entry in session.transactions.log]
    kinds = tuple(each for position, each in enumerate(logged) if position == 0 or logged[position - 1] != each)
    return kinds or ("nothing",)


def _agrees(case: Mapping[str, Any], outcome: _Outcome) -> bool:
    return bool(outcome.undecided) or (
        outcome.logged == tuple(case["logged"]) and outcome.said == tuple(map(_recorded, case["statements"]))
    )


def _difference(case: Mapping[str, Any], outcome: _Outcome) -> str:
    logged = tuple(case["logged"])
    if outcome.logged != logged:
        return f"{', '.join(outcome.logged)} instead of {', '.join(logged)}"
    recorded = tuple(map(_recorded, case["statements"]))
    return f"it says {outcome.said} instead of {recorded}"
