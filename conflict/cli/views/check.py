"""
The report of `check` on the terminal and as JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from textwrap import wrap
from typing import Any

import attrs
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conflict.checking.findings import Finding, Place, Severity
from conflict.checking.report import Report, TableReport
from conflict.cli.views.tables import table_of
from conflict.compatibility.requirements_table import MARKS

__all__ = ["print_report", "report_json"]

_STATEMENTS = 2  # of a fix that are printed
_STYLES = {Severity.REFUSED: "red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


def print_report(console: Console, report: Report) -> None:
    """Print what each table will do, then each finding with its places, its reason and what to do, then the counts."""
    console.print(_tables(report.tables))
    for text in dict.fromkeys(table.logged for table in report.tables):
        _print_indented(console, text)
    found = {mark for table in report.tables for mark in table.marks}
    for mark, meaning in MARKS.items():
        if mark in found:
            _print_indented(console, f"{mark}: {meaning}")
    for finding in report.findings:
        console.print()
        _print_finding(console, finding)
    console.print()
    console.print(report.summary)


def _tables(tables: Sequence[TableReport]) -> Table:
    """Return what each table does; clusters that do the same with it share a line."""
    shared: dict[TableReport, list[str]] = {}
    for table in tables:
        shared.setdefault(attrs.evolve(table, cluster=""), []).append(table.cluster)
    rows = [_cells(table, clusters) for table, clusters in sorted(shared.items(), key=lambda item: item[0].table)]
    return table_of("What each table will do", ["table", "on", "type", "function", "not judged", "$EX"], [], rows)


def _cells(table: TableReport, clusters: Sequence[str]) -> list[str | Text]:
    judged: str | Text = " ".join(table.marks) or ("nothing" if table.function else "")
    if not table.created:
        judged = Text("not created", style=_STYLES[Severity.REFUSED])
    exceptions = "none" if table.exceptions_table is None else "yes"
    return [table.table, ", ".join(clusters), str(table.binlog_type), table.function or "none", judged, exceptions]


def _print_finding(console: Console, finding: Finding) -> None:
    style = _STYLES[finding.severity]
    head = Text.assemble((finding.severity.value, style), f" {finding.code} ", (finding.kind.title, "bold"))
    console.print(head)
    lines = [places_text(finding.places), finding.sentence, f"Fix: {finding.fix.shortened(_STATEMENTS)}"]
    if finding.server is not None:
        lines.insert(2, f'The server says: "{finding.server}"')
    for line in lines:
        _print_indented(console, line)


def _print_indented(console: Console, text: str) -> None:
    """Print a paragraph without blanks at the ends of its lines, so that statements can be copied."""
    lines = wrap(text, console.width - 2, break_long_words=False, break_on_hyphens=False)
    console.print(Text("\n".join(f"  {line}" for line in lines)), soft_wrap=True)


def places_text(places: Sequence[Place]) -> str:
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


def report_json(report: Report) -> dict[str, Any]:
    """Return a report as a document."""
    return {
        "policy": report.policy.value,
        "worst": None if report.worst is None else report.worst.value,
        "tables": report.table_rows,
        "findings": [
            {
                "code": finding.code,
                "severity": finding.severity.value,
                "title": finding.kind.title,
                "error": finding.kind.error,
                "places": [
                    {"cluster": place.cluster or None, "table": place.table or None} for place in finding.places
                ],
                "sentence": finding.sentence,
                "fix": str(finding.fix),
                "server": finding.server,
            }
            for finding in report.findings
        ],
    }
