"""
What `conflict.logging` returns: how statements are logged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from conflict.extras import data_frame
from conflict.telling.shown import Shown
from conflict.telling.value import Entry, Listing, Table, Telling, Tone, Toned
from ndb_formats.statement_logging.decision import BinlogFormat
from ndb_formats.statement_logging.messages import Level, LoggingMessage
from ndb_formats.statement_logging.statement_log import LoggedStatement, StatementOutcome

if TYPE_CHECKING:
    import pandas as pd

_REFUSED = "refused"


@attrs.frozen(repr=False, eq=False)
class LoggedStatements(Shown):
    """
    How statements are logged. Printed, it is a table with a row per statement and a column per ``binlog_format``.

    Attributes:
        by_format: By ``binlog_format`` at the start, the statements with their possible outcomes.
    """

    by_format: Mapping[BinlogFormat, Sequence[LoggedStatement]]

    def document(self) -> dict[str, Any]:
        """Return the document of ``--json``."""
        return _document(self.by_format)

    def telling(self) -> Telling:
        """Return what is told of it."""
        rows = [
            [str(number), " ".join(columns[0].text.split()), *map(_cell, columns)]
            for number, columns in enumerate(zip(*self.by_format.values(), strict=True), 1)
        ]
        headings = ("", "statement", *(each.value for each in self.by_format))
        table = Table("How the statements are logged", headings, rows, texts=len(headings))
        return Telling("Statements", tables=(table,), listings=(Listing("", [*_notes(self.by_format)]),))

    def to_pandas(self) -> pd.DataFrame:
        """Return a possible outcome a row: statement (its number), text, format, logged, rolled_back, messages."""
        return data_frame(
            {
                "statement": number,
                "text": statement.text,
                "format": binlog_format.value,
                "logged": [each.value for each in outcome.logged],
                "rolled_back": statement.rolled_back,
                "messages": [int(message.message) for message in outcome.messages],
            }
            for binlog_format, statements in self.by_format.items()
            for number, statement in enumerate(statements, 1)
            for outcome in statement.outcomes
        )


def _cell(statement: LoggedStatement) -> str | Toned:
    if not statement.outcomes:
        return Toned("unknown", Tone.DOUBTFUL)
    words = list(dict.fromkeys(_words(outcome) for outcome in statement.outcomes))
    text = " or ".join(words)
    if statement.rolled_back:
        return f"nothing (rolled back: {text})"
    if len(words) > 1:
        return Toned(f"unknown: {text}", Tone.DOUBTFUL)
    return Toned(text, Tone.BAD) if text == _REFUSED else text


def _words(outcome: StatementOutcome) -> str:
    if any(message.level is Level.ERROR for message in outcome.messages) and not outcome.logged:
        return _REFUSED
    return " + ".join(each.value for each in outcome.logged) or "nothing"


def _notes(logged: Mapping[BinlogFormat, Sequence[LoggedStatement]]) -> Iterator[Entry]:
    """Yield each warning, error and open question once, with the statements and formats that it is about."""
    places: dict[str, list[str]] = {}
    for binlog_format, statements in logged.items():
        for number, statement in enumerate(statements, 1):
            for note in _notes_on(statement):
                places.setdefault(note, []).append(f"{number} {binlog_format.value}")
    for note, where in places.items():
        yield Entry(f"{', '.join(where)}:", note)


def _notes_on(statement: LoggedStatement) -> list[str]:
    messages = dict.fromkeys(message for outcome in statement.outcomes for message in outcome.messages)
    always = [all(message in outcome.messages for outcome in statement.outcomes) for message in messages]
    notes = [_message(message, certain) for message, certain in zip(messages, always, strict=True)]
    return notes + [f"not known: {question}" for question in statement.unknown]


def _message(message: LoggingMessage, certain: bool) -> str:
    kind = f"{message.level.value} {int(message.message)}"
    name = message.message.name if message.reason is None else f"{message.message.name}, {message.reason.name}"
    return f"{'' if certain else 'perhaps '}{kind} {name}: {message.text}"


def _document(logged: Mapping[BinlogFormat, Sequence[LoggedStatement]]) -> dict[str, Any]:
    return {
        "statements": [
            {
                "statement": columns[0].text,
                "formats": {each.value: _statement_json(column) for each, column in zip(logged, columns, strict=True)},
            }
            for columns in zip(*logged.values(), strict=True)
        ]
    }


def _statement_json(statement: LoggedStatement) -> dict[str, Any]:
    return {
        "known": statement.known,
        "rolled_back": statement.rolled_back,
        "unknown": list(statement.unknown),
        "outcomes": [
            {
                "logged": [each.value for each in outcome.logged],
                "rows_of_the_table": list(outcome.rows),
                "messages": [_message_json(message) for message in outcome.messages],
            }
            for outcome in statement.outcomes
        ],
    }


def _message_json(message: LoggingMessage) -> dict[str, Any]:
    return {
        "level": message.level.value,
        "number": int(message.message),
        "name": message.message.name,
        "reason": None if message.reason is None else message.reason.name,
        "text": message.text,
    }
