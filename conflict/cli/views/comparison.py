"""
A comparison on the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape

from conflict.cli.views.doubts import print_doubts
from conflict.rules.decision import Cause
from conflict.shown_text import counted
from conflict.telling.terminal import table_of
from conflict.whatif.comparing.comparison import Comparison
from conflict.whatif.comparing.figures import ComparedPair, Figures

__all__ = ["print_comparison"]

_LOSSES = ("lost\nupdates", "=\nrejected", "+ over-\nwritten", "rows\ndiffer", "rows\nsent")
_LOST = (
    "Lost updates are users' changes that were rejected, plus others that a change overwrote which had not seen them. "
    "A rejected delete of a row that was gone already is a conflict, and loses nothing."
)
_CRITERIA = {"lost-updates": "lost updates", "divergence": "rows that differ", "traffic": "rows sent"}
_CAUSES = {
    Cause.ROW_DOES_NOT_EXIST: "no\nrow",
    Cause.ROW_ALREADY_EXISTS: "row\nexists",
    Cause.ROW_IN_CONFLICT: "row in\nconflict",
    Cause.TRANS_IN_CONFLICT: "with its\ntransaction",
}
_TRANSACTIONS = "trans-\nactions\nrejected\n(in part)"
_MEGABYTE = 1_000_000


def print_comparison(console: Console, found: Comparison) -> None:
    """Print what makes it doubtful; the pairs, best first; their conflicts by cause; and what could not be tried."""
    print_doubts(console, found.doubts)
    tried = [(row, row.figures) for row in found.rows if row.figures is not None]
    types = sorted({row.binlog_type for row, _ in tried})
    of_type = f" of binlog type {types[0]}" if len(types) == 1 else ""
    shown = f"{counted(found.changes, 'change')}{of_type} under {counted(len(tried), 'pair')}"
    title = f"{shown}, best first by {', '.join(found.prefer)}"
    names = ["function", "type"][: 1 if of_type else 2]
    losses = [[*_named(row, names), *_losses(row, figures)] for row, figures in tried]
    headings: tuple[str, ...] = _LOSSES
    if not of_type:  # else all pairs log the same bytes
        headings = (*_LOSSES, "log,\nMB")
        losses = [[*cells, _megabytes(row)] for cells, (row, _) in zip(losses, tried, strict=True)]
    console.print(table_of(title, names, headings, losses))
    console.print(f"{_order(found)} {_LOST}" if len(tried) > 1 else _LOST, highlight=False)
    causes = ([*_named(row, names), *_causes(figures)] for row, figures in tried)
    console.print(table_of("Conflicts by cause", names, (*_CAUSES.values(), _TRANSACTIONS), causes))
    for line in _notes(found):
        console.print(escape(line), highlight=False)


def _order(found: Comparison) -> str:
    """Return how the pairs are ordered, as a sentence."""
    order = [f"Best first: fewest {', then '.join(_CRITERIA[name] for name in found.prefer)}"]
    tried = [row for row in found.rows if row.figures is not None]
    marks = dict.fromkeys(row.mark.strip() for row in tried if row.mark and not _stops(row))
    order += [f"pairs with {' or '.join(sorted(marks))} after the others"] if marks else []
    order += ["pairs that stop an applier last, with the figures up to there"] if any(map(_stops, tried)) else []
    return f"{'; '.join(order)}."


def _losses(row: ComparedPair, figures: Figures) -> list[object]:
    """Return the cells of a pair; a change that was rejected and overwritten counts as rejected here."""
    lost, rejected = figures.lost_updates, row.cells()["lost_rejected"]
    return [lost, rejected, lost - rejected, figures.differing_rows, figures.traffic]


def _megabytes(row: ComparedPair) -> str:
    least, most = (f"{each / _MEGABYTE:,.1f}" for each in row.bytes or (0, 0))
    return least if least == most else f"{least} to {most}"


def _causes(figures: Figures) -> list[object]:
    causes, rejected = figures.causes, figures.rejected_transactions
    transactions = "?" if rejected is None else f"{rejected:,} ({figures.partly_rejected_transactions:,})"
    return [*(causes[cause.name.lower()] for cause in _CAUSES), transactions]


def _named(row: ComparedPair, names: Sequence[str]) -> Sequence[object]:
    function = f"{row.function}{' *' * row.used}{row.mark}{' (stops)' * _stops(row)}"
    return (function, row.binlog_type)[: len(names)]


def _stops(row: ComparedPair) -> bool:
    return row.figures is not None and bool(row.figures.stops)


def _notes(found: Comparison) -> Iterator[str]:
    """Yield what the tables do not say."""
    if any(row.used for row in found.rows):
        contradicted = ", which the binlogs contradict" if found.run.contradicted else ""
        yield f"* the functions and the format of the run{contradicted}."
    yield from (*found.caveats, *found.meanings, *found.reasons, *found.notes)
    if found.best is not None:
        yield found.best
