"""
A result at a glance: the figures of `run.json` that answer what happened, as text and for notebooks.

Names come from logs and can be anything: characters that cannot be printed are shown as escapes, and in HTML no name is
markup.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from conflict.results.doubts import Doubt, doubts_of
from conflict.results.telling import RARE, tell_result
from conflict.results.told_warnings import VERDICTS
from conflict.telling.html import telling_html
from conflict.telling.terminal import telling_text
from conflict.telling.value import Telling


@attrs.frozen
class _TableSummary:
    """
    What one cluster's applier did to one table.

    Attributes:
        applier: The cluster.
        table: ``database.table``.
        received: Operations that it received.
        applied: How many it applied as they stood.
        conflicts: How many it rejected.
        refreshed: Rows that it refreshed.
        differing: Rows of the table that end different on the two clusters; None as for `ResultSummary.converged`.
        ignored: Operations without effect; `conflict.rules.decision.Verdict` has what each of these is.
        discarded: Reflected operations that it discarded.
        skipped: Operations that lack the value to compare.
        cannot_tell: Operations that depend on rows older than the log.
        merged: Operations that a resolver of one's own applied with other values.
    """

    applier: str
    table: str
    received: int
    applied: int
    conflicts: int
    refreshed: int
    differing: int | None
    ignored: int = 0
    discarded: int = 0
    skipped: int = 0
    cannot_tell: int = 0
    merged: int = 0


@attrs.frozen(repr=False)
class ResultSummary:
    """
    A result in a few figures.

    Attributes:
        changes: Row changes that the clusters made themselves.
        converged: Whether all tables end equal; None if not known, or the binlogs do not belong together.
        compared: Row changes of appliers in the binlogs that the result was compared with.
        contradicted: How many of them the binlogs show otherwise; if any, the result is not what happened.
        stops: Appliers that stopped.
        doubts: What makes the result doubtful.
        tables: What happened to each table on each cluster.
        unrelated: Whether the binlogs do not belong together; what they hold then says nothing of convergence.
        under_way: Whether changes were still under way when the logs end.
        telling: What is told of all this.
    """

    changes: int
    converged: bool | None
    compared: int
    contradicted: int
    stops: tuple[str, ...]
    doubts: tuple[Doubt, ...]
    tables: tuple[_TableSummary, ...]
    unrelated: bool = False
    under_way: bool = False
    telling: Telling = attrs.field(default=Telling(""), eq=False)

    @property
    def conflicts(self) -> int:
        """Operations that were rejected, on all clusters."""
        return sum(table.conflicts for table in self.tables)

    def __repr__(self) -> str:
        return telling_text(self.telling)

    def _repr_html_(self) -> str:
        return telling_html(self.telling)


def summary_of(run: Mapping[str, Any]) -> ResultSummary:
    """
    Return a document `run.json` in a few figures.

    Args:
        run: The document.
    """
    unrelated = bool(run.get("unrelated_binlogs"))
    tables = tuple(
        _TableSummary(
            applier,
            table,
            sum(tally.get(name, 0) for name in VERDICTS),
            tally.get("applied", 0),
            tally.get("rejected", 0),
            tally.get("refreshes", 0),
            None if unrelated else run["differing_rows"].get(table),
            **{name: tally.get(name, 0) for name in ("ignored", *RARE)},
        )
        for applier, tallies in run["tables"].items()
        for table, tally in tallies.items()
    )
    return ResultSummary(
        run["changes"],
        None if unrelated else run["converged"],
        run["compared_with_binlogs"],
        run["contradicted_by_binlogs"],
        tuple(run["stops"]),
        doubts_of(run),
        tables,
        unrelated,
        bool(run.get("changes_under_way")),
        tell_result(run),
    )
