"""
The zoo, told: a table for every anomaly, or one of all of them if there is one format.
"""

from __future__ import annotations

from collections.abc import Sequence

from conflict.telling.shown_text import counted
from conflict.telling.value import Table, Telling, Tone, Toned
from conflict.whatif.diverging.scope import Goal
from conflict.whatif.zoo.cell import Cell
from conflict.whatif.zoo.pairs import ANOMALIES, Bounds

RECORDED, CONTRADICTED = "✓", "✗"


def tell_cells(cells: Sequence[Cell], bounds: Bounds, states: int) -> Telling:
    """
    Return what is told of a zoo.

    Args:
        cells: Its cells.
        bounds: How much was searched.
        states: How many states were seen.
    """
    found = [cell for cell in cells if cell.answer == "found"]
    refused = sum(cell.answer == "refused" for cell in cells)
    none = len(cells) - len(found) - refused
    marks = {mark: sum(cell.mark == mark for cell in found) for mark in ("recorded", "contradicted")}
    answers = f"{len(found)} have a schedule, {none} have none within {bounds.words}, {refused} are refused"
    sentences = [f"{counted(len(cells), 'cell')}: {answers}.", f"The searches saw {counted(states, 'state')}."]
    if any(marks.values()):
        sentences.append(
            f"{counted(marks['recorded'], 'schedule')} ended the same on real clusters ({RECORDED}), "
            f"{marks['contradicted']} otherwise ({CONTRADICTED})."
        )
    return Telling("The zoo", sentences=tuple(sentences), tables=tuple(_tables(cells)))


def _tables(cells: Sequence[Cell]) -> list[Table]:
    note = "Steps of the shortest schedule; a dash: none within the bounds."
    formats = list(dict.fromkeys(cell.binlog_type for cell in cells))
    goals = list(dict.fromkeys(cell.anomaly for cell in cells))
    if len(formats) == 1:
        names = [ANOMALIES[goal][0] for goal in goals]
        rows = _by_row(cells, [(goal, formats[0]) for goal in goals])
        return [Table(f"Binlog type {formats[0]}", ("function", *names), rows, note=note)]
    headings = ("function", *(f"type {number}" for number in formats))
    return [
        Table(ANOMALIES[goal][1].rstrip("."), headings, _by_row(cells, [(goal, each) for each in formats]), note=note)
        for goal in goals
    ]


def _by_row(cells: Sequence[Cell], columns: Sequence[tuple[Goal, int]]) -> list[list[object]]:
    """Return the rows of a table whose columns are anomalies and formats."""
    found = {(cell.row, cell.anomaly, cell.binlog_type): cell for cell in cells}
    rows = dict.fromkeys(cell.row for cell in cells)
    return [[row, *(_shown(found[row, goal, number]) for goal, number in columns)] for row in rows]


def _shown(cell: Cell) -> object:
    if cell.answer == "refused":
        return Toned("refused", Tone.QUIET)
    if cell.length is None:
        return Toned("-", Tone.GOOD)
    mark = {"recorded": f" {RECORDED}", "contradicted": f" {CONTRADICTED}"}.get(cell.mark, "")
    return f"{cell.length}{mark}"
