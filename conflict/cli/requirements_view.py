"""
Answers of `conflict.compatibility.requirements` on the terminal, and as JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conflict.compatibility.arriving_changes import JudgedChange
from conflict.compatibility.pairing import Policy, TableLogging
from conflict.compatibility.reasons import Reason
from conflict.compatibility.requirements import MARKS, Answer, Status, mark
from conflict.compatibility.whole_run import CheckedTable
from ndb_formats.schema.tables import Table as Definition

__all__ = ["answer_json", "checked_json", "print_answer", "print_check", "print_table"]

_STYLES = {Status.USABLE: "green", Status.USABLE_BUT: "yellow", Status.REFUSED: "red"}
_SHORT = {Status.USABLE: "ok", Status.USABLE_BUT: "but", Status.REFUSED: "refused"}


def print_table(console: Console, answers: Mapping[str, Sequence[Answer]], policy: Policy) -> None:
    """Print a table of functions and binlog types, and what its marks mean; a function's answers are one row."""
    first = next(iter(answers.values()))
    # Without lines, so that all types stand beside each other on a terminal of 80 columns.
    table = Table(
        title=f"Functions and binlog types, policy {policy}",
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 1, 0, 0),
    )
    table.add_column("function", no_wrap=True)
    for answer in first:
        table.add_column(str(answer.pairing.source.binlog_type), no_wrap=True)
    for name, row in answers.items():
        table.add_row(name, *(_cell(answer) for answer in row))
    console.print(table)
    shown = {word for row in answers.values() for answer in row for word in _words(answer)}
    for word, meaning in MARKS.items():
        if word in shown:
            console.print(f"  [bold]{word}[/bold]: {meaning}", soft_wrap=True)
    _print_types(console, [answer.pairing.source for answer in first])


def _print_types(console: Console, loggings: Iterable[TableLogging]) -> None:
    for text in dict.fromkeys(str(logging) for logging in loggings):
        console.print(f"  {escape(text)}", soft_wrap=True)


def _words(answer: Answer) -> list[str]:
    found = mark(answer)
    return [found] if found in MARKS else found.split()


def _cell(answer: Answer) -> str:
    """Return a verdict, and below it the marks of what cannot be judged."""
    style = _STYLES[answer.status]
    text = f"but\n{mark(answer)}" if answer.status is Status.USABLE_BUT else _SHORT[answer.status]
    return f"[{style}]{text}[/{style}]"


def print_answer(console: Console, answer: Answer) -> None:
    """Print one answer: the verdict, why, what arrives of each change, what would work."""
    verdict = f"[{_STYLES[answer.status]}]{answer.status.value}[/{_STYLES[answer.status]}]"
    console.print(
        f"{escape(str(answer.pairing))} (policy {answer.policy}) is {verdict}{':' if answer.reasons else '.'}",
        soft_wrap=True,
    )
    for reason in answer.reasons:
        console.print(f"  {escape(_reason_text(reason))}", soft_wrap=True)
    if answer.changes:
        console.print("What arrives:")
        for change in answer.changes:
            console.print(f"  {escape(_change_text(change, answer.pairing.table))}", soft_wrap=True)
    if answer.nearest:
        console.print("What would work, the smallest change first:")
        for setting in answer.nearest:
            console.print(f"  {escape(str(setting))}", soft_wrap=True)
    elif answer.reasons:
        console.print("No other setting mends this.")
    _print_notes(console, answer.notes)


def _print_notes(console: Console, notes: Sequence[str]) -> None:
    if notes:
        console.print("Good to know:")
    for note in notes:
        console.print(f"  {escape(note)}", soft_wrap=True)


def _reason_text(reason: Reason) -> str:
    error = "" if reason.error is None else f" (error {reason.error})"
    at = "" if reason.at is None else f" At fault: {reason.at}."
    server = "" if reason.server is None else f' The server says: "{reason.server}"'
    return f"{reason.message}{error}.{at}{server}"


def _change_text(change: JudgedChange, table: Definition) -> str:
    name = change.name[0].upper() + change.name[1:]
    return f"{name}: {_event_text(change, table)}; {change.fate.value}."


def _event_text(change: JudgedChange, table: Definition) -> str:
    if change.event is None:
        return "no event"
    images = (("before", change.event.before), ("after", change.event.after))
    parts = [
        f"{label} image {', '.join(table.columns[place].name for place in places) or 'empty'}"
        for label, places in images
        if places is not None
    ]
    return f"{change.event.operation.name} with {' and '.join(parts)}"


# -----------------------------------------------------------------------------------------------------------
# A run
# -----------------------------------------------------------------------------------------------------------


def print_check(console: Console, checked: Sequence[CheckedTable]) -> None:
    """Print how every table of a run is logged and judged, and what is wrong with it."""
    table = Table(title="Tables and conflict functions", title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for heading in ("cluster", "table", "logged", "function", "exceptions table", "answer"):
        table.add_column(heading, overflow="fold")
    for each in checked:
        style = _STYLES[each.status]
        table.add_row(*(escape(text) for text in _check_row(each)), f"[{style}]{_SHORT[each.status]}[/{style}]")
    console.print(table)
    _print_types(console, [each.logging for each in checked])
    for each in checked:
        _print_checked(console, each)
    answers = [each.answer for each in checked if each.answer is not None]
    _print_notes(console, list(dict.fromkeys(note for answer in answers for note in answer.notes)))
    counts = Counter(each.status for each in checked)
    if counts[Status.REFUSED]:
        console.print(f"[red]Refused: {counts[Status.REFUSED]} of {len(checked)}.[/red]")
    elif counts[Status.USABLE_BUT]:
        console.print(
            f"[yellow]Nothing is refused, but {counts[Status.USABLE_BUT]} of {len(checked)} have limits.[/yellow]"
        )
    else:
        console.print("[green]Every conflict function can judge every change that arrives.[/green]")


def _check_row(each: CheckedTable) -> list[str]:
    exceptions = each.setup.exceptions
    return [
        each.cluster,
        each.setup.table.full_name,
        str(each.logging.binlog_type),
        _function_of(each) or "none",
        "none" if exceptions is None else exceptions.table.full_name,
    ]


def _function_of(each: CheckedTable) -> str | None:
    return None if each.answer is None else str(each.answer.pairing.function)


def _print_checked(console: Console, each: CheckedTable) -> None:
    where = f"{each.cluster}, {each.setup.table.full_name}"
    for warning in each.setup.warnings:
        console.print(f"[yellow]{escape(where)}:[/yellow] {escape(warning)}", soft_wrap=True)
    if each.answer is None:
        if each.setup.refusal is not None:
            console.print(f"[red]{escape(where)}:[/red] {escape(each.setup.refusal.message)}", soft_wrap=True)
        return
    style = _STYLES[each.status]
    for reason in each.answer.reasons:
        console.print(f"[{style}]{escape(where)}:[/{style}] {escape(_reason_text(reason))}", soft_wrap=True)
    if each.answer.nearest:
        settings = "; or ".join(map(str, each.answer.nearest))
        console.print(f"  What would work: {escape(settings)}.", soft_wrap=True)


# -----------------------------------------------------------------------------------------------------------
# JSON
# -----------------------------------------------------------------------------------------------------------


def answer_json(answer: Answer) -> dict[str, Any]:
    """Return an answer as a document."""
    table = answer.pairing.table
    return {
        "function": str(answer.pairing.function),
        "binlog_type": answer.pairing.source.binlog_type,
        "logged": str(answer.pairing.source),
        "table": table.full_name.removeprefix("."),
        "policy": answer.policy.value,
        "status": _SHORT[answer.status],
        "mark": mark(answer),
        "reasons": [
            {
                "concern": reason.concern.name,
                "refuses": reason.concern.refuses,
                "message": reason.message,
                "error": reason.error,
                "at": reason.at,
                "server": reason.server,
            }
            for reason in answer.reasons
        ],
        "changes": [_change_json(change, table) for change in answer.changes],
        "nearest": [list(setting.changes) for setting in answer.nearest],
        "notes": list(answer.notes),
    }


def _change_json(change: JudgedChange, table: Definition) -> dict[str, Any]:
    event = change.event
    images = {} if event is None else {"before": event.before, "after": event.after}
    return {
        "change": change.name,
        "event": None if event is None else event.operation.name,
        **{
            name: None if places is None else [table.columns[place].name for place in places]
            for name, places in images.items()
        },
        "needs": None if change.needed is None else change.needed.value,
        "fate": change.fate.name,
    }


def checked_json(checked: Sequence[CheckedTable]) -> list[dict[str, Any]]:
    """Return the tables of a run as a document."""
    return [
        {
            "cluster": each.cluster,
            "table": each.setup.table.full_name,
            "logged": str(each.logging),
            "function": _function_of(each),
            "exceptions_table": None if each.setup.exceptions is None else each.setup.exceptions.table.full_name,
            "create_table": None if each.setup.refusal is None else each.setup.refusal.message,
            "warnings": list(each.setup.warnings),
            "status": _SHORT[each.status],
            "answer": None if each.answer is None else answer_json(each.answer),
        }
        for each in checked
    ]
