"""
How statements are logged, on the terminal and as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ndb_formats.statement_logging.decision import BinlogFormat
from ndb_formats.statement_logging.messages import Level, LoggingMessage
from ndb_formats.statement_logging.statement_log import LoggedStatement, StatementOutcome

_STYLES = {Level.NOTE: "yellow", Level.WARNING: "yellow", Level.ERROR: "red"}


def print_logging(console: Console, logged: Mapping[BinlogFormat, Sequence[LoggedStatement]]) -> None:
    """Print a row per statement with a column per format, and below it what the server says and what is not known."""
    table = Table(title="How the statements are logged", title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("", justify="right")
    table.add_column("statement", overflow="fold")
    for each in logged:
        table.add_column(each.value)
    for number, columns in enumerate(zip(*logged.values(), strict=True), 1):
        cells = [_cell(statement) for statement in columns]
        table.add_row(str(number), escape(" ".join(columns[0].text.split())), *cells)
    console.print(table)
    _print_notes(console, logged)


def _cell(statement: LoggedStatement) -> str:
    if not statement.outcomes:
        return "[yellow]unknown[/yellow]"
    words = list(dict.fromkeys(_words(outcome) for outcome in statement.outcomes))
    text = " or ".join(words)
    if statement.rolled_back:
        return f"nothing (rolled back: {text})"
    return text if len(words) == 1 else f"[yellow]unknown:[/yellow] {text}"


def _words(outcome: StatementOutcome) -> str:
    if any(message.level is Level.ERROR for message in outcome.messages) and not outcome.logged:
        return "[red]refused[/red]"
    return " + ".join(each.value for each in outcome.logged) or "nothing"


def _print_notes(console: Console, logged: Mapping[BinlogFormat, Sequence[LoggedStatement]]) -> None:
    """Print each warning, error and open question once, with the statements and formats that it is about."""
    places: dict[str, list[str]] = {}
    for binlog_format, statements in logged.items():
        for number, statement in enumerate(statements, 1):
            for note in _notes(statement):
                places.setdefault(note, []).append(f"{number} {binlog_format.value}")
    for note, where in places.items():
        console.print(f"{', '.join(where)}: {note}", soft_wrap=True)


def _notes(statement: LoggedStatement) -> list[str]:
    messages = dict.fromkeys(message for outcome in statement.outcomes for message in outcome.messages)
    always = [all(message in outcome.messages for outcome in statement.outcomes) for message in messages]
    notes = [_message(message, certain) for message, certain in zip(messages, always, strict=True)]
    return notes + [f"not known: {escape(question)}" for question in statement.unknown]


def _message(message: LoggingMessage, certain: bool) -> str:
    style = _STYLES[message.level]
    kind = f"{message.level.value} {int(message.message)}"
    name = message.message.name if message.reason is None else f"{message.message.name}, {message.reason.name}"
    perhaps = "" if certain else "perhaps "
    return f"{perhaps}[{style}]{kind}[/{style}] {name}: {escape(message.text)}"


def logging_json(logged: Mapping[BinlogFormat, Sequence[LoggedStatement]]) -> dict[str, Any]:
    """Return how statements are logged as a document."""
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
