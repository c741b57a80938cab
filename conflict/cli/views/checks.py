"""
What `requirements`, `check` and `check-replica` answer, on the terminal and as JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from textwrap import wrap
from typing import Any

import attrs
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conflict.checking.check import Report, TableReport
from conflict.checking.deployment import ArrivingChange, DeploymentPolicy
from conflict.checking.findings import Finding, Severity, TablePlace
from conflict.checking.reasons import rules_out
from conflict.checking.requirements import MARKS, Answer, Status, mark
from conflict.checking.rules.replicas import ReplicaReport
from conflict.shown_text import capitalized
from conflict.telling.terminal import table_of
from ndb_formats.findings import ReplicaEffect
from ndb_formats.schema.tables import Table as Definition

__all__ = [
    "answer_json",
    "print_answer",
    "print_answers",
    "print_replica_report",
    "print_report",
    "replica_report_json",
    "report_json",
]

_STATEMENTS = 2  # of a fix that are printed
_STYLES = {Severity.REFUSED: "red", Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}
_STATUSES = {Status.USABLE: ("ok", "green"), Status.USABLE_BUT: ("but", "yellow"), Status.REFUSED: ("refused", "red")}
_GUARANTEES = {
    Severity.REFUSED: "not guaranteed",
    Severity.ERROR: "not guaranteed",
    Severity.WARNING: "with warnings",
    Severity.NOTE: "guaranteed",
}


# -----------------------------------------------------------------------------------------------------------
# Findings
# -----------------------------------------------------------------------------------------------------------


def _print_findings(console: Console, findings: Iterable[tuple[Finding, Severity]]) -> None:
    """Print findings, each as something that matters so much."""
    for finding, severity in findings:
        console.print()
        _print_finding(console, finding, severity)
    console.print()


def _print_finding(console: Console, finding: Finding, severity: Severity) -> None:
    """Print a finding: its places and what is at fault, what happens and why, what to do, and the manual."""
    rule = finding.kind.rule
    console.print(Text.assemble((severity.value, _STYLES[severity]), f" {finding.code} ", (finding.kind.title, "bold")))
    at = "" if finding.at is None else f"({finding.at})"
    lines = [f"{_places_text(finding.places)} {at}".strip(), finding.sentence]
    if rule is not None and rule.effect is not ReplicaEffect.NOTHING:
        lines.append(f"What happens: {rule.effect}.")
    if finding.server is not None:
        lines.append(f'The server says: "{finding.server}"')
    if str(finding.fix):
        lines.append(f"Fix: {finding.fix.shortened(_STATEMENTS)}")
    if rule is not None:
        lines.append(f"Condition: {rule.condition} (manual, {rule.page})")
    _print_lines(console, filter(None, lines))


def _print_lines(console: Console, lines: Iterable[str]) -> None:
    """Print indented paragraphs without blanks at the ends of their lines, so that statements can be copied."""
    for text in lines:
        wrapped = wrap(text, console.width - 2, break_long_words=False, break_on_hyphens=False)
        console.print(Text("\n".join(f"  {line}" for line in wrapped)), soft_wrap=True)


def _places_text(places: Sequence[TablePlace]) -> str:
    """Return places in a line: the tables by cluster, and clusters with the same tables together."""
    clusters: dict[str, list[str]] = {}
    for place in places:
        clusters.setdefault(place.cluster, []).append(place.table)
    parts = []
    for tables, same in groupby(clusters.items(), key=lambda item: item[1]):
        names = ", ".join(cluster for cluster, _ in same if cluster)
        listed = ", ".join(filter(None, tables))
        parts.append(f"{names}: {listed}" if names and listed else names or listed)
    return "; ".join(parts)


def _print_marks(console: Console, marks: Iterable[str]) -> None:
    """Print what each mark means, once."""
    found = set(marks)
    _print_lines(console, (f"{name}: {meaning}" for name, meaning in MARKS.items() if name in found))


# -----------------------------------------------------------------------------------------------------------
# A configuration
# -----------------------------------------------------------------------------------------------------------


def print_report(console: Console, report: Report) -> None:
    """Print what each table will do, then each finding, then the counts."""
    shared: dict[TableReport, list[str]] = {}  # clusters that do the same with a table share a line
    for table in report.tables:
        shared.setdefault(attrs.evolve(table, cluster=""), []).append(table.cluster)
    rows = [_cells(table, clusters) for table, clusters in sorted(shared.items(), key=lambda item: item[0].table)]
    headings = ["table", "on", "type", "function", "not judged", "$EX"]
    console.print(table_of("What each table will do", headings, [], rows))
    _print_lines(console, dict.fromkeys(table.logged for table in report.tables))
    _print_marks(console, (mark for table in report.tables for mark in table.marks))
    _print_findings(console, ((each, each.severity) for each in report.findings))
    console.print(report.summary)


def _cells(table: TableReport, clusters: Sequence[str]) -> list[str | Text]:
    judged: str | Text = " ".join(table.marks) or ("nothing" if table.function else "")
    if not table.created:
        judged = Text("not created", style=_STYLES[Severity.REFUSED])
    exceptions = "none" if table.exceptions_table is None else "yes"
    return [table.table, ", ".join(clusters), str(table.binlog_type), table.function or "none", judged, exceptions]


def report_json(report: Report) -> dict[str, Any]:
    """Return a report as a document."""
    return {
        "policy": report.policy.value,
        "worst": None if report.worst is None else report.worst.value,
        "tables": report.table_rows,
        "findings": [
            {
                **finding.document,
                "places": [
                    {"cluster": place.cluster or None, "table": place.table or None} for place in finding.places
                ],
            }
            for finding in report.findings
        ],
    }


# -----------------------------------------------------------------------------------------------------------
# A replica
# -----------------------------------------------------------------------------------------------------------


def print_replica_report(console: Console, report: ReplicaReport) -> None:
    """Print the answer for each table, then each finding, then how many tables have which answer."""
    rows = []
    for name, worst in report.worst.items():
        counts = Counter(finding.severity for finding in report.of(name))
        answer = Text(_GUARANTEES[worst], style="green" if worst is Severity.NOTE else _STYLES[worst])
        rows.append([name, answer, *(counts[severity] for severity in Severity)])
    figures = ["refused", "errors", "warnings", "notes"]
    console.print(table_of("Tables on the replica", ["table", "answer"], figures, rows))
    _print_findings(console, ((each, each.severity) for each in report.findings))
    answers = Counter(_GUARANTEES[worst] for worst in report.worst.values())
    parts = [f"{answer}: {answers[answer]}" for answer in dict.fromkeys(_GUARANTEES.values())]
    console.print(f"Of {len(report.tables)} tables, {', '.join(parts)}.")


def replica_report_json(report: ReplicaReport) -> dict[str, Any]:
    """Return a report as a document."""
    settings = report.settings
    return {
        "binlog_row_image": settings.logging.row_image.value,
        "ndb_update_format": attrs.asdict(settings.logging.update_format),
        "replica_type_conversions": sorted(settings.conversions),
        "tables": {name: _GUARANTEES[worst] for name, worst in report.worst.items()},
        "findings": [
            {**each.document, "table": each.places[0].table, "column": each.at, "reason": each.sentence}
            for each in report.findings
        ],
    }


# -----------------------------------------------------------------------------------------------------------
# A function and a binlog type
# -----------------------------------------------------------------------------------------------------------


def print_answers(console: Console, answers: Mapping[str, Sequence[Answer]], policy: DeploymentPolicy) -> None:
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
        table.add_row(Text(name), *map(_cell, row))
    console.print(table)
    _print_marks(console, (word for row in answers.values() for answer in row for word in mark(answer).split()))
    _print_lines(console, dict.fromkeys(map(str, loggings)))


def _cell(answer: Answer) -> Text:
    """Return a status, and below it the marks of the changes that cannot be judged."""
    word, style = _STATUSES[answer.status]
    return Text(f"{word}\n{mark(answer)}" if answer.status is Status.USABLE_BUT else word, style=style)


def print_answer(console: Console, answer: Answer) -> None:
    """Print one answer: status, reasons, changes as they arrive, settings that would work, notes."""
    status = (answer.status.value, _STATUSES[answer.status][1])
    end = ":" if answer.reasons else "."
    console.print(Text.assemble(f"{answer.deployment} (policy {answer.policy}) is ", status, end), soft_wrap=True)
    reasons = ((each, Severity.REFUSED if rules_out(each) else each.severity) for each in answer.reasons)
    _print_findings(console, reasons)
    changes = [_change_text(change, answer.deployment.table) for change in answer.changes]
    _print_section(console, "What arrives:", changes)
    if answer.reasons and not answer.nearest:
        console.print("No other setting helps.")
    _print_section(console, "What would work, the smallest change first:", list(map(str, answer.nearest)))
    _print_section(console, "Notes:", answer.notes)


def _print_section(console: Console, heading: str, lines: Sequence[str]) -> None:
    if lines:
        console.print(heading)
    _print_lines(console, lines)


def _change_text(change: ArrivingChange, table: Definition) -> str:
    event = "no event"
    if change.event is not None:
        images = [
            f"{image} image {', '.join(columns) or 'empty'}"
            for image, columns in _images(change, table).items()
            if columns is not None
        ]
        event = f"{change.event.operation.name} with {' and '.join(images)}"
    return f"{capitalized(change.name)}: {event}; {change.handling.value}."


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
        "status": _STATUSES[answer.status][0],
        "mark": mark(answer),
        "reasons": [
            {"kind": reason.kind.name, "refuses": rules_out(reason), **reason.document} for reason in answer.reasons
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
