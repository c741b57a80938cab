"""
An audit of the columns that conflict functions compare: what `conflict.audit` returns.
"""

from __future__ import annotations

from typing import Any

import attrs

from conflict.config.arguments import StageProgress, no_progress
from conflict.config.option_values import Grid
from conflict.history.run import Run
from conflict.operating.audit.changes import column_changes
from conflict.operating.audit.findings import AuditFinding, ClockOf, findings_of
from conflict.operating.audit.telling import tell_audit
from conflict.operating.window.clocks import ClockDifference
from conflict.operating.window.window import window_of
from conflict.rules.functions import Cell, ConflictFunction
from conflict.telling.html import telling_html
from conflict.telling.terminal import telling_text


@attrs.frozen(repr=False)
class Audit:
    """
    What is wrong with the values that conflict functions compare. Printed, it says how many changes of which kind.

    Attributes:
        columns: By table, the function that compares a column of it.
        changes: By table and cluster, how many changes its users made.
        findings: What is wrong.
        clocks: The differences of clocks that were corrected.
    """

    columns: dict[str, str]
    changes: dict[tuple[str, str], int]
    findings: tuple[AuditFinding, ...]
    clocks: tuple[ClockDifference, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the same as a document."""
        return {
            "columns": self.columns,
            "changes": [
                {"table": table, "cluster": cluster, "changes": count}
                for (table, cluster), count in self.changes.items()
            ],
            "findings": [each.document() for each in self.findings],
        }

    def __repr__(self) -> str:
        return telling_text(tell_audit(self.document()))

    def _repr_html_(self) -> str:
        return telling_html(tell_audit(self.document()))


def audit_of(run: Run, progress: StageProgress = no_progress) -> Audit:
    """
    Return what is wrong with the values that the functions of a run compare; the memory is that of one table.

    Args:
        run: The run.
        progress: Called with the name of a stage, the tables that are done, and their number.
    """
    compared: dict[str, tuple[str, ConflictFunction]] = {}
    for own in run.setups.at_end.values():
        for name, setup in own.items():
            if setup.function is not None and setup.function.column:
                compared.setdefault(name, (setup.function.column, setup.function))
    clocks: tuple[ClockDifference, ...] = ()
    if compared:
        clocks = window_of(run.configuration, Grid.HOUR, progress=progress).clocks
    of_cluster = {each.second: ClockOf(each.estimate, each.bound) for each in clocks}
    definitions = {table.full_name: table for table in run.data_schema.tables}
    counts, findings = dict[tuple[str, str], int](), list[AuditFinding]()
    for done, (name, (column, function)) in enumerate(compared.items()):
        progress("auditing tables", done, len(compared))
        changes = [
            column_changes(
                cluster.name,
                server.server_id,
                server.files,
                run.databases.own_name(cluster.name, name),
                definitions[name].primary_key,
                column,
                run.configuration.schema_of(cluster),
            )
            for cluster in run.clusters
            for server in [each for each in cluster.servers if each.files][:1]  # the others log the same
        ]
        counts.update({(name, each.cluster): int(each.own.sum()) for each in changes})
        findings += findings_of(name, column, changes, of_cluster, rises=function.spec.update is not Cell.EQUAL)
    functions = {name: str(function) for name, (_, function) in compared.items()}
    return Audit(functions, counts, tuple(findings), clocks)
