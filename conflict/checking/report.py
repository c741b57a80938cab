"""
What `requirements` and `check` answer: the report, what is told of it, and as JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import attrs

from conflict.checking.deployment import ArrivingChange
from conflict.checking.findings import Finding, Severity, TablePlace
from conflict.checking.reasons import rules_out, weight_of
from conflict.checking.requirements import MARKS, Answer, Status, mark
from conflict.config.arguments import DeploymentPolicy
from conflict.telling.html import telling_html
from conflict.telling.shown_text import counted
from conflict.telling.terminal import telling_text
from conflict.telling.value import Entry, Listing, Table, Telling, Tone, Toned
from ndb_formats.findings import ReplicaEffect
from ndb_formats.schema.tables import Table as Definition


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
        marks: The same as marks of `conflict.checking.requirements.MARKS`.
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

    policy: DeploymentPolicy
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
            {"cluster": place.cluster or None, "table": place.table or None, **finding.document}
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
        return telling_text(tell_report(self))

    def _repr_html_(self) -> str:
        return telling_html(tell_report(self))

    @property
    def summary(self) -> str:
        """How many findings there are, in a sentence."""
        counts = Counter(finding.severity for finding in self.findings)
        errors = [counted(counts[Severity.ERROR], "error")] if counts[Severity.ERROR] else []
        others = [counted(counts[severity], severity) for severity in (Severity.WARNING, Severity.NOTE)]
        parts = [f"{counts[Severity.REFUSED]} refused", *errors, *others]
        return f"{', '.join(parts)}." if self.findings else "Nothing was found."


_STATEMENTS = 2  # of a fix that are told
TONES = {
    Severity.REFUSED: Tone.BAD,
    Severity.ERROR: Tone.BAD,
    Severity.WARNING: Tone.DOUBTFUL,
    Severity.NOTE: Tone.QUIET,
}
_STATUSES = {
    Status.USABLE: ("ok", Tone.GOOD),
    Status.USABLE_BUT: ("but", Tone.DOUBTFUL),
    Status.REFUSED: ("refused", Tone.BAD),
}


# -----------------------------------------------------------------------------------------------------------
# Findings
# -----------------------------------------------------------------------------------------------------------


def _finding(finding: Finding, severity: Severity) -> Entry:
    """Return a finding: its places and what is at fault, what happens and why, what to do, and the manual."""
    rule = finding.kind.rule
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
    elif finding.page is not None:
        lines.append(f"Manual: {finding.page}")
    return Entry(f"{severity} {finding.code}", finding.kind.title, [*filter(None, lines)], TONES[severity])


def findings_listing(findings: Iterable[Finding]) -> Listing:
    """Return findings one after the other: what each is, where, why, and what to do."""
    return Listing("", [_finding(each, each.severity) for each in findings])


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


def _meanings(marks: Iterable[str], types: Iterable[object]) -> Listing:
    """Return what marks and binlog types of a table mean, each once."""
    found = set(marks)
    entries = [Entry(f"{name}:", meaning) for name, meaning in MARKS.items() if name in found]
    return Listing("", [*entries, *(Entry("", text) for text in dict.fromkeys(map(str, types)))])


# -----------------------------------------------------------------------------------------------------------
# A configuration
# -----------------------------------------------------------------------------------------------------------


def tell_report(report: Report) -> Telling:
    """Return what each table will do, and each finding."""
    shared: dict[TableReport, list[str]] = {}  # clusters that do the same with a table share a line
    for table in report.tables:
        shared.setdefault(attrs.evolve(table, cluster=""), []).append(table.cluster)
    rows = [_row(table, clusters) for table, clusters in sorted(shared.items(), key=lambda item: item[0].table)]
    headings = ("table", "on", "type", "function", "not judged", "$EX")
    meanings = _meanings((each for table in report.tables for each in table.marks), (t.logged for t in report.tables))
    return Telling(
        "A configuration",
        sentences=(report.summary,),
        tables=(Table("What each table will do", headings, rows, texts=len(headings)),),
        listings=(meanings, findings_listing(report.findings)),
    )


def _row(table: TableReport, clusters: Sequence[str]) -> list[object]:
    judged: object = " ".join(table.marks) or ("nothing" if table.function else "")
    if not table.created:
        judged = Toned("not created", Tone.BAD)
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
# A function and a binlog type
# -----------------------------------------------------------------------------------------------------------


def tell_answers(answers: Mapping[str, Sequence[Answer]], policy: DeploymentPolicy) -> Telling:
    """
    Return a table of functions and binlog types, and what its marks mean.

    Args:
        answers: Per function, its answers for the same types in the same order.
        policy: The policy of all answers.
    """
    types = [answer.deployment.source for answer in next(iter(answers.values()))]
    title, headings = f"Functions and binlog types, policy {policy}", ["function", *(str(t.binlog_type) for t in types)]
    table = Table(
        title,
        headings,
        [[name, *(Toned(mark(each), _STATUSES[each.status][1]) for each in row)] for name, row in answers.items()],
        texts=len(headings),
    )
    meanings = _meanings((word for row in answers.values() for each in row for word in mark(each).split()), types)
    return Telling("Requirements", tables=(table,), listings=(meanings,))


def tell_answer(answer: Answer) -> Telling:
    """Return one answer: status, changes as they arrive, reasons, settings that would work, notes."""
    end = " see the findings" if answer.status is Status.USABLE_BUT else ""
    helps = [] if answer.nearest or not answer.reasons else ["No other setting helps."]
    return Telling(
        "Requirements",
        f"{answer.deployment} (policy {answer.policy}) is {answer.status.value}{end}.",
        (*answer.notes, *helps),
        (_arriving(answer),),
        listings=tuple(_reasons(answer)),
    )


def _arriving(answer: Answer) -> Table:
    headings = ("change", "arrives as", "before image", "after image", "what becomes of it")
    rows = [
        (
            change.name,
            "no event" if change.event is None else change.event.operation.name,
            *(_columns(images.get(image)) for image in ("before", "after")),
            change.handling.value,
        )
        for change in answer.changes
        for images in [_images(change, answer.deployment.table)]
    ]
    return Table("What arrives", headings, rows, texts=len(headings))


def _columns(image: Sequence[str] | None) -> str | None:
    return None if image is None else ", ".join(image) or "empty"


def _reasons(answer: Answer) -> Iterator[Listing]:
    yield Listing("", [_finding(each, weight_of(each)) for each in answer.reasons])
    yield Listing("What would work, the smallest change first", [Entry("", str(each)) for each in answer.nearest])


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
