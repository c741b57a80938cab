"""
What `conflict.check_replica` returns: whether a replica's tables can take what a source logs.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import attrs

from conflict.checking.findings import Finding, Severity, TablePlace
from conflict.checking.report import TONES, findings_listing
from conflict.extras import data_frame
from conflict.telling.shown import Shown
from conflict.telling.shown_text import counted
from conflict.telling.value import Table, Telling, Tone, Toned
from ndb_formats.rules.replica.check import ReplicaSettings

if TYPE_CHECKING:
    import pandas as pd

_GUARANTEES = {
    Severity.REFUSED: "not guaranteed",
    Severity.ERROR: "not guaranteed",
    Severity.WARNING: "with warnings",
    Severity.NOTE: "guaranteed",
}


@attrs.frozen(repr=False)
class ReplicaReport(Shown):
    """
    Whether a replica's tables can take what a source logs. Printed, it is the answer for each table, and the findings.

    Attributes:
        settings: How the source logs rows, and what the replica converts.
        tables: Each table of the source.
        findings: The findings, table by table; the table of each is its only place.
    """

    settings: ReplicaSettings
    tables: tuple[str, ...]
    findings: tuple[Finding, ...]

    def of(self, table: str) -> list[Finding]:
        """Return the findings on a table."""
        return [finding for finding in self.findings if finding.places == (TablePlace("", table),)]

    @property
    def worst(self) -> dict[str, Severity]:
        """The worst severity of each table of the source; a table without findings counts as a note."""
        order = list(Severity)
        return {
            name: min((finding.severity for finding in self.of(name)), key=order.index, default=Severity.NOTE)
            for name in self.tables
        }

    def document(self) -> dict[str, Any]:
        """Return the document of ``--json``."""
        return _document(self)

    def telling(self) -> Telling:
        """Return what is told of it."""
        return _told(self)

    def to_pandas(self) -> pd.DataFrame:
        """Return a finding a row: table, column, code, severity, reason."""
        return data_frame(
            {
                "table": finding.places[0].table,
                "column": finding.at,
                "code": finding.code,
                "severity": finding.severity.value,
                "reason": finding.sentence,
            }
            for finding in self.findings
        )


def _told(report: ReplicaReport) -> Telling:
    """Return the answer for each table, and each finding."""
    rows = []
    for name, worst in report.worst.items():
        counts = Counter(finding.severity for finding in report.of(name))
        tone = Tone.GOOD if worst is Severity.NOTE else TONES[worst]
        rows.append([name, Toned(_GUARANTEES[worst], tone), *(counts[severity] for severity in Severity)])
    answers = Counter(_GUARANTEES[worst] for worst in report.worst.values())
    parts = [f"{answer}: {answers[answer]}" for answer in dict.fromkeys(_GUARANTEES.values())]
    headings = ("table", "answer", "refused", "errors", "warnings", "notes")
    return Telling(
        "A replica",
        sentences=(f"Of {counted(len(report.tables), 'table')}, {', '.join(parts)}.",),
        tables=(Table("Tables on the replica", headings, rows, texts=2),),
        listings=(findings_listing(report.findings),),
    )


def _document(report: ReplicaReport) -> dict[str, Any]:
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
