"""
Answers of `conflict.compatibility.requirements`, on the terminal and as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conflict.compatibility.arriving_changes import ArrivingChange
from conflict.compatibility.deployment import Policy, TableLogging
from conflict.compatibility.reasons import Reason
from conflict.compatibility.requirements import Answer, Status
from conflict.compatibility.requirements_table import MARKS, mark
from conflict.shown_text import capitalized
from ndb_formats.schema.tables import Table as Definition

__all__ = [
    "STATUS_STYLES",
    "STATUS_WORDS",
    "answer_json",
    "print_answer",
    "print_notes",
    "print_table",
    "print_types",
    "reason_text",
]

STATUS_STYLES = {Status.USABLE: "green", Status.USABLE_BUT: "yellow", Status.REFUSED: "red"}
STATUS_WORDS = {Status.USABLE: "ok", Status.USABLE_BUT: "but", Status.REFUSED: "refused"}


def print_table(console: Console, answers: Mapping[str, Sequence[Answer]], policy: Policy) -> None:
    """
    Print a table of functions and binlog types, and a legend of its marks.

    Args:
        console: Where to print.
        answers: Per function, its answers for the same types in the same order.
        policy: The policy of all answers.
    """
    loggings = [answer.deployment.source for answer in next(iter(answers.values()))]
    # No lines, so that all types fit on a terminal of 80 columns.
    table = Table(
        title=f"Functions and binlog types, policy {policy}",
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 1, 0, 0),
    )
    for heading in ("function", *(str(logging.binlog_type) for logging in loggings)):
        table.add_column(heading, no_wrap=True)
    for name, row in answers.items():
        table.add_row(escape(name), *(_cell(answer) for answer in row))
    console.print(table)
    cells = [mark(answer) for row in answers.values() for answer in row]
    for word, meaning in MARKS.items():
        if any(word in cell.split() for cell in cells):
            console.print(f"  [bold]{word}[/bold]: {meaning}", soft_wrap=True)
    print_types(console, loggings)


def print_types(console: Console, loggings: Iterable[TableLogging]) -> None:
    """Print each binlog type by its name, once."""
    for text in dict.fromkeys(str(logging) for logging in loggings):
        console.print(f"  {escape(text)}", soft_wrap=True)


def _cell(answer: Answer) -> str:
    """Return a status, and below it the marks of the changes that cannot be judged."""
    style = STATUS_STYLES[answer.status]
    text = f"but\n{mark(answer)}" if answer.status is Status.USABLE_BUT else STATUS_WORDS[answer.status]
    return f"[{style}]{text}[/{style}]"


def print_answer(console: Console, answer: Answer) -> None:
    """Print one answer: status, reasons, changes as they arrive, settings that would work, notes."""
    style = STATUS_STYLES[answer.status]
    question = escape(f"{answer.deployment} (policy {answer.policy})")
    end = ":" if answer.reasons else "."
    console.print(f"{question} is [{style}]{answer.status.value}[/{style}]{end}", soft_wrap=True)
    _print_lines(console, map(reason_text, answer.reasons))
    if answer.changes:
        console.print("What arrives:")
    _print_lines(console, (_change_text(change, answer.deployment.table) for change in answer.changes))
    if answer.nearest:
        console.print("What would work, the smallest change first:")
    elif answer.reasons:
        console.print("No other setting helps.")
    _print_lines(console, map(str, answer.nearest))
    print_notes(console, answer.notes)


def print_notes(console: Console, notes: Sequence[str]) -> None:
    """Print notes under a heading; nothing if there are none."""
    if notes:
        console.print("Notes:")
    _print_lines(console, notes)


def _print_lines(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(f"  {escape(line)}", soft_wrap=True)


def reason_text(reason: Reason) -> str:
    """Return a reason in one line: message, error, advice, column or option at fault, the server's words."""
    error = "" if reason.error is None else f" (error {reason.error})"
    at = "" if reason.at is None else f" At fault: {reason.at}."
    server = "" if reason.server is None else f' The server says: "{reason.server}"'
    advice = "" if reason.advice is None else f" {reason.advice}."
    return f"{reason.message}{error}.{advice}{at}{server}"


def _change_text(change: ArrivingChange, table: Definition) -> str:
    name = capitalized(change.name)
    images = {
        image: ", ".join(columns) or "empty" for image, columns in _images(change, table).items() if columns is not None
    }
    event = "no event"
    if change.event is not None:
        parts = [f"{image} image {columns}" for image, columns in images.items()]
        event = f"{change.event.operation.name} with {' and '.join(parts)}"
    return f"{name}: {event}; {change.handling.value}."


def _images(change: ArrivingChange, table: Definition) -> dict[str, list[str] | None]:
    """Return the columns in the images of a change's event; None for an image that its operation does not have."""
    if change.event is None:
        return {}
    images = {"before": change.event.before, "after": change.event.after}
    return {
        image: None if places is None else [table.columns[place].name for place in places]
        for image, places in images.items()
    }


def answer_json(answer: Answer) -> dict[str, Any]:
    """Return an answer as a document."""
    deployment = answer.deployment
    return {
        "function": str(deployment.function),
        "binlog_type": deployment.source.binlog_type,
        "logged": str(deployment.source),
        "table": deployment.table.full_name.removeprefix("."),
        "policy": answer.policy.value,
        "status": STATUS_WORDS[answer.status],
        "mark": mark(answer),
        "reasons": [
            {
                "kind": reason.kind.name,
                "refuses": reason.kind.refuses,
                "message": reason.message,
                "advice": reason.advice,
                "error": reason.error,
                "at": reason.at,
                "server": reason.server,
            }
            for reason in answer.reasons
        ],
        "changes": [
            {
                "change": change.name,
                "event": None if change.event is None else change.event.operation.name,
                **_images(change, deployment.table),
                "needs": change.needed,
                "handling": change.handling.name,
            }
            for change in answer.changes
        ],
        "nearest": [list(setting.changes) for setting in answer.nearest],
        "notes": list(answer.notes),
    }
