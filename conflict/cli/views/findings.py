"""
Findings on the terminal and as JSON: those of a replica's tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import attrs
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ndb_formats.findings import Effect, Finding, Severity
from ndb_formats.rules.replica.check import ReplicaSettings
from ndb_formats.schema.full_names import full_name
from ndb_formats.schema.tables import Schema

__all__ = ["ReplicaReport", "finding_json", "print_findings", "print_replica_report", "replica_report_json"]

SEVERITY_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}
_ANSWERS = {Severity.ERROR: "not guaranteed", Severity.WARNING: "with warnings", Severity.NOTE: "guaranteed"}


@attrs.frozen
class ReplicaReport:
    """What was compared, under which settings, and what was found."""

    source: Schema
    replica: Schema
    settings: ReplicaSettings
    findings: tuple[Finding, ...]

    def answers(self) -> dict[str, Severity]:
        """Return the worst severity of each table of the source; a table without findings counts as a note."""
        order = list(Severity)
        worst = {_name(table.database, table.name): Severity.NOTE for table in self.source.tables}
        for finding in self.findings:
            if finding.table in worst:
                worst[finding.table] = min(worst[finding.table], finding.severity, key=order.index)
        return worst


def _name(database: str, name: str) -> str:
    return full_name(database, name) if database else name


def print_replica_report(console: Console, report: ReplicaReport) -> None:
    """Print the answer for each table, then each finding with reason, fix and the manual's condition."""
    table = Table(title="Tables on the replica", title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for heading in ("table", "errors", "warnings", "notes", "answer"):
        table.add_column(heading, overflow="fold", justify="left" if heading in ("table", "answer") else "right")
    for name, worst in report.answers().items():
        counts = Counter(finding.severity for finding in report.findings if finding.table == name)
        style = {Severity.NOTE: "green"}.get(worst, SEVERITY_STYLES[worst])
        cells = [str(counts[severity]) for severity in Severity]
        table.add_row(escape(name), *cells, f"[{style}]{_ANSWERS[worst]}[/{style}]")
    console.print(table)
    print_findings(console, report.findings)
    counts = Counter(report.answers().values())
    parts = [f"{_ANSWERS[severity]}: {counts[severity]}" for severity in Severity]
    console.print(f"Of {len(report.source.tables)} tables, {', '.join(parts)}.")


def print_findings(console: Console, findings: Iterable[Finding]) -> None:
    """Print each finding with what happens, why, what to do, and the condition of the manual."""
    for finding in findings:
        style = SEVERITY_STYLES[finding.severity]
        head = f"[{style}]{finding.severity}[/{style}] {finding.code} [bold]{escape(finding.place)}[/bold]"
        console.print(f"{head}: {escape(finding.rule.title)}", soft_wrap=True)
        console.print(f"  Why: {escape(finding.reason)}.", soft_wrap=True)
        if finding.rule.effect is not Effect.NOTHING:
            console.print(f"  What happens: {finding.rule.effect}.", soft_wrap=True)
        console.print(f"  Fix: {escape(finding.fix)}.", soft_wrap=True)
        console.print(f"  Condition: {escape(finding.rule.condition)} (manual, {finding.rule.page})", soft_wrap=True)


def finding_json(finding: Finding) -> dict[str, Any]:
    """Return a finding as a document."""
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "effect": finding.rule.effect.value,
        "table": finding.table,
        "column": finding.column,
        "title": finding.rule.title,
        "reason": finding.reason,
        "fix": finding.fix,
        "condition": finding.rule.condition,
        "manual_page": finding.rule.page,
    }


def replica_report_json(report: ReplicaReport) -> dict[str, Any]:
    """Return a report as a document."""
    settings = report.settings
    return {
        "binlog_row_image": settings.logging.row_image.value,
        "ndb_update_format": attrs.asdict(settings.logging.update_format),
        "replica_type_conversions": sorted(settings.conversions),
        "tables": {name: _ANSWERS[worst] for name, worst in report.answers().items()},
        "findings": [finding_json(finding) for finding in report.findings],
    }
