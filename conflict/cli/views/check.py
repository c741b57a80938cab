"""
The tables of a checked run, on the terminal and as JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conflict.cli.views.requirements import (
    STATUS_STYLES,
    STATUS_WORDS,
    answer_json,
    print_notes,
    print_types,
    reason_text,
)
from conflict.compatibility.check import CheckedTable
from conflict.compatibility.requirements import Status

__all__ = ["checked_json", "print_check"]


def print_check(console: Console, checked: Sequence[CheckedTable], notes: Sequence[str] = ()) -> None:
    """Print, for every table of a run, how it is logged and judged, and its faults; then notes on the run."""
    table = Table(title="Tables and conflict functions", title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for heading in ("cluster", "table", "logged", "function", "exceptions table", "answer"):
        table.add_column(heading, overflow="fold")
    for each in checked:
        style = STATUS_STYLES[each.status]
        cells = (
            each.cluster,
            each.setup.table.full_name,
            str(each.logging.binlog_type),
            _function_of(each) or "none",
            _exceptions_table_of(each) or "none",
        )
        table.add_row(*map(escape, cells), f"[{style}]{STATUS_WORDS[each.status]}[/{style}]")
    console.print(table)
    print_types(console, [each.logging for each in checked])
    for each in checked:
        _print_faults(console, each)
    answers = [each.answer for each in checked if each.answer is not None]
    print_notes(console, list(dict.fromkeys(note for answer in answers for note in answer.notes)))
    for note in notes:
        console.print(f"[yellow]Note:[/yellow] {escape(note)}.", soft_wrap=True)
    counts = Counter(each.status for each in checked)
    if counts[Status.REFUSED]:
        console.print(f"[red]Refused: {counts[Status.REFUSED]} of {len(checked)}.[/red]")
    elif counts[Status.USABLE_BUT]:
        console.print(
            f"[yellow]Nothing is refused, but {counts[Status.USABLE_BUT]} of {len(checked)} have limits.[/yellow]"
        )
    else:
        console.print("[green]Every conflict function can judge every change that arrives.[/green]")


def _function_of(each: CheckedTable) -> str | None:
    return None if each.answer is None else str(each.answer.deployment.function)


def _exceptions_table_of(each: CheckedTable) -> str | None:
    return None if each.setup.exceptions is None else each.setup.exceptions.table.full_name


def _print_faults(console: Console, each: CheckedTable) -> None:
    where = escape(f"{each.cluster}, {each.setup.table.full_name}:")
    style = STATUS_STYLES[each.status]
    lines = [("yellow", warning) for warning in each.setup.warnings]
    if each.answer is not None:
        lines += [(style, reason_text(reason)) for reason in each.answer.reasons]
    elif each.setup.refusal is not None:
        lines.append(("red", each.setup.refusal.message))
    for color, text in lines:
        console.print(f"[{color}]{where}[/{color}] {escape(text)}", soft_wrap=True)
    if each.answer is not None and each.answer.nearest:
        settings = "; or ".join(map(str, each.answer.nearest))
        console.print(f"  What would work: {escape(settings)}.", soft_wrap=True)


def checked_json(checked: Sequence[CheckedTable]) -> list[dict[str, Any]]:
    """Return the tables of a run as a document."""
    return [
        {
            "cluster": each.cluster,
            "table": each.setup.table.full_name,
            "logged": str(each.logging),
            "function": _function_of(each),
            "exceptions_table": _exceptions_table_of(each),
            "create_table": None if each.setup.refusal is None else each.setup.refusal.message,
            "warnings": list(each.setup.warnings),
            "status": STATUS_WORDS[each.status],
            "answer": None if each.answer is None else answer_json(each.answer),
        }
        for each in checked
    ]
