"""
A result at a glance: the figures of `run.json` that answer what happened, as text and for notebooks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

import attrs

from conflict.results.doubts import Doubt, doubts_of
from conflict.results.small_tables import html_table, text_lines
from conflict.rules.decision import Verdict
from conflict.shown_text import printable

__all__ = ["ResultSummary", "TableSummary", "summary_of"]

_VERDICTS = [verdict.name.lower() for verdict in Verdict]
_HEADINGS = ("applier", "table", "received", "applied", "conflicts", "refreshed", "rows differing")


@attrs.frozen
class TableSummary:
    """
    What one cluster's applier did to one table.

    Attributes:
        applier: The cluster.
        table: ``database.table``.
        received: Operations that it received.
        applied: How many it applied as they stood.
        conflicts: How many it rejected.
        refreshed: Rows that it refreshed.
        differing: Rows of the table that end different on the two clusters; None if not known.
    """

    applier: str
    table: str
    received: int
    applied: int
    conflicts: int
    refreshed: int
    differing: int | None


@attrs.frozen(repr=False)
class ResultSummary:
    """
    A result in a few figures.

    Attributes:
        changes: Row changes that the clusters made themselves.
        converged: Whether all tables end equal; None if not known.
        compared: Row changes of appliers in the binlogs that the result was compared with.
        contradicted: How many of them the binlogs show otherwise; if any, the result is not what happened.
        stops: Appliers that stopped.
        doubts: What makes the result doubtful.
        tables: What happened to each table on each cluster.
    """

    changes: int
    converged: bool | None
    compared: int
    contradicted: int
    stops: tuple[str, ...]
    doubts: tuple[Doubt, ...]
    tables: tuple[TableSummary, ...]

    @property
    def conflicts(self) -> int:
        """Operations that were rejected, on all clusters."""
        return sum(table.conflicts for table in self.tables)

    def __repr__(self) -> str:
        return "\n".join((*self._sentences(), *text_lines(_HEADINGS, self._rows(), 2)))

    def _repr_html_(self) -> str:
        sentences = "".join(f"<p>{escape(printable(sentence))}</p>" for sentence in self._sentences())
        return sentences + html_table(_HEADINGS, self._rows())

    def _rows(self) -> list[tuple[object, ...]]:
        return [attrs.astuple(table) for table in self.tables]

    def _sentences(self) -> Iterator[str]:
        yield from (str(doubt) for doubt in self.doubts if doubt.alarm)
        answer = {True: "converged", False: "did not converge", None: "may or may not have converged"}[self.converged]
        if self.changes or self.converged is False:
            yield f"{self.changes:,} row changes, {self.conflicts:,} conflicts; the clusters {answer}."
        else:
            yield "The binlogs hold no row change of the clusters' own, of tables that are known."
        if self.compared and not self.contradicted:
            yield f"All {self.compared:,} row changes by appliers in the binlogs agree."
        yield from (str(doubt) for doubt in self.doubts if not doubt.alarm)
        for name in self.stops:
            yield f"The applier of {name} stopped."


def summary_of(run: Mapping[str, Any]) -> ResultSummary:
    """
    Return a document `run.json` in a few figures.

    Args:
        run: The document.
    """
    tables = tuple(
        TableSummary(
            applier,
            table,
            sum(tally.get(name, 0) for name in _VERDICTS),
            tally.get("applied", 0),
            tally.get("rejected", 0),
            tally.get("refreshes", 0),
            run["differing_rows"].get(table),
        )
        for applier, tallies in run["tables"].items()
        for table, tally in tallies.items()
    )
    return ResultSummary(
        run["changes"],
        run["converged"],
        run["compared_with_binlogs"],
        run["contradicted_by_binlogs"],
        tuple(run["stops"]),
        doubts_of(run),
        tables,
    )
