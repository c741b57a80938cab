"""
A comparison on the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape

from conflict.cli.views.tables import counted, table_of
from conflict.comparing.figures import Figures, Row
from conflict.comparison import TAKEN_AS_RECORDED, Comparison
from conflict.rules.decision import Cause

__all__ = ["print_comparison"]

_LOSSES = ("lost updates", "rejected", "over- written", "rows differ", "rows sent", "MB logged")
_CAUSES = {
    Cause.ROW_DOES_NOT_EXIST: "no row",
    Cause.ROW_ALREADY_EXISTS: "row exists",
    Cause.ROW_IN_CONFLICT: "row in conflict",
    Cause.TRANS_IN_CONFLICT: "with trans- action",
}
_MEGABYTE = 1_000_000


def print_comparison(console: Console, found: Comparison) -> None:
    """Print the pairs, best first, then their conflicts by cause, and what could not be tried."""
    tried = [(row, row.figures) for row in found.rows if row.figures is not None]
    best = f"{counted(found.changes, 'change')} under {counted(len(tried), 'pair')}, best first by " + ", ".join(
        found.prefer
    )
    console.print(table_of(best, ("function", "type"), _LOSSES, (_losses(*each) for each in tried)))
    causes = (*_CAUSES.values(), "trans- actions rejected")
    console.print(table_of("Conflicts by cause", ("function", "type"), causes, (_causes(*each) for each in tried)))
    for line in _notes(found):
        console.print(escape(line), highlight=False)


def _losses(row: Row, figures: Figures) -> list[object]:
    cells = row.cells()
    least, most = (round(each / _MEGABYTE, 1) for each in row.bytes or (0, 0))
    return [
        *_named(row),
        cells["lost_updates"],
        cells["lost_rejected"],
        cells["lost_overwritten"],
        cells["differing_rows"],
        figures.traffic,
        f"{least}" if least == most else f"{least} to {most}",
    ]


def _causes(row: Row, figures: Figures) -> list[object]:
    causes = [figures.causes[cause.name.lower()] for cause in _CAUSES]
    return [*_named(row), *causes, figures.rejected_transactions]


def _named(row: Row) -> tuple[str, str]:
    stops = row.figures is not None and row.figures.stops
    return f"{row.function}{' *' if row.used else ''}{' (stops)' if stops else ''}", row.binlog_type


def _notes(found: Comparison) -> Iterator[str]:
    """Yield what the tables do not say."""
    if any(row.used for row in found.rows):
        yield "* the functions and the format of the run."
    for row in found.rows:
        pair = f"{row.function}, type {row.binlog_type}"
        if row.error is not None:
            yield f"{pair}: not tried. {row.error[:1].upper()}{row.error[1:]}."
        elif row.figures is not None:
            for name, stop in row.figures.stops.items():
                yield f"{pair}: the applier of {name} stops, error {stop.error}. {stop.message}."
    yield TAKEN_AS_RECORDED
