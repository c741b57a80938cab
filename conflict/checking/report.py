"""
The report of `check`: what each table will do, and the findings; as rows that a DataFrame takes.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs

from conflict.checking.findings import Finding, Severity
from conflict.checking.subject import PlacedTable, Subject
from conflict.compatibility.arriving_changes import Handling
from conflict.compatibility.deployment import Policy
from conflict.compatibility.requirements_table import marks

__all__ = ["Report", "TableReport", "table_rows"]


@attrs.frozen
class TableReport:
    """
    What one cluster does with one table.

    Attributes:
        cluster: The cluster.
        table: ``database.table``.
        binlog_type: ``binlog_type`` of its row of ``mysql.ndb_replication``; 0 without one.
        logged: The effective format in words, such as ``binlog_type 7 FULL_USE_UPDATE``.
        function: Its conflict function; None without one.
        exceptions_table: Its exceptions table; None if it has none that the server uses.
        created: Whether the server creates it.
        unjudged: The kinds of changes that arrive and that its function cannot judge.
        marks: The same as marks of `conflict.compatibility.requirements_table.MARKS`.
    """

    cluster: str
    table: str
    binlog_type: int
    logged: str
    function: str | None
    exceptions_table: str | None
    created: bool
    unjudged: tuple[str, ...]
    marks: tuple[str, ...]


@attrs.frozen(repr=False)
class Report:
    """
    What a configuration will do.

    Attributes:
        policy: Whether what the manual advises against is a finding.
        tables: What each table will do, cluster by cluster.
        findings: The findings, the worst first; those that say the same are one.
    """

    policy: Policy
    tables: tuple[TableReport, ...]
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding; None without findings."""
        return self.findings[0].severity if self.findings else None

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """Return the findings of a severity."""
        return tuple(finding for finding in self.findings if finding.severity is severity)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each finding and place, for ``pandas.DataFrame`` or ``pyarrow.Table.from_pylist``."""
        return [
            {
                "code": finding.code,
                "severity": finding.severity.value,
                "cluster": place.cluster or None,
                "table": place.table or None,
                "title": finding.kind.title,
                "error": finding.kind.error,
                "sentence": finding.sentence,
                "fix": str(finding.fix),
                "server": finding.server,
            }
            for finding in self.findings
            for place in finding.places
        ]

    @property
    def table_rows(self) -> list[dict[str, Any]]:
        """One row for each table on each cluster, for the same."""
        return [
            {**attrs.asdict(table), "unjudged": list(table.unjudged), "marks": list(table.marks)}
            for table in self.tables
        ]

    def __repr__(self) -> str:
        lines = [
            f"{finding.severity} {finding.code} {'; '.join(map(str, finding.places))}: {finding.sentence}"
            for finding in self.findings
        ]
        return "\n".join((*lines, self.summary))

    @property
    def summary(self) -> str:
        """How many findings there are, in a sentence."""
        counts = Counter(finding.severity for finding in self.findings)
        refused, warnings, notes = (counts[severity] for severity in Severity)
        parts = [f"{refused} refused", _many(warnings, "warning"), _many(notes, "note")]
        return f"{', '.join(parts)}." if self.findings else "Nothing was found."


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def table_rows(subject: Subject) -> tuple[TableReport, ...]:
    """Return what each table on each cluster will do."""
    return tuple(_row(subject, placed) for placed in subject.tables)


def _row(subject: Subject, placed: PlacedTable) -> TableReport:
    changes = tuple(
        change
        for arrival in subject.arrivals
        if arrival.here is placed and placed.setup.refusal is None
        for change in arrival.changes
    )
    unjudged = (change.name for change in changes if change.handling is not Handling.JUDGED)
    exceptions = placed.setup.exceptions
    return TableReport(
        placed.place.cluster,
        placed.place.table,
        placed.logging.binlog_type,
        str(placed.logging),
        None if placed.function is None else str(placed.function),
        None if exceptions is None else exceptions.table.full_name.removeprefix("."),
        placed.setup.refusal is None,
        tuple(dict.fromkeys(unjudged)),
        tuple(marks(changes)),
    )
