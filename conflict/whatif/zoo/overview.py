"""
The zoo at a glance, as a picture: each function and anomaly of one format, with the steps that it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from conflict.telling.palette import BAD, GOOD, INK, PAPER, QUIET
from conflict.telling.svg import accessible_svg
from conflict.whatif.diverging.scope import Goal
from conflict.whatif.zoo.cell import Cell
from conflict.whatif.zoo.pairs import ANOMALIES
from conflict.whatif.zoo.zoo import Zoo

_SHOWN_FIRST = 7
_NAMES, _WIDTH, _HEIGHT, _TOP, _GAP = 200, 118, 32, 64, 4
_FONT = "font-family='system-ui, sans-serif' font-size='13'"


def overview_of(zoo: Zoo) -> str:
    """
    Return the picture as SVG: of binlog type 7, or of the first format without it.

    Of a function that was searched with several values, the shortest schedule counts.
    """
    formats = list(dict.fromkeys(cell.binlog_type for cell in zoo))
    chosen = _SHOWN_FIRST if _SHOWN_FIRST in formats else formats[0]
    cells = [cell for cell in zoo if cell.binlog_type == chosen]
    goals = list(dict.fromkeys(cell.anomaly for cell in cells))
    functions = list(dict.fromkeys(cell.function for cell in cells))
    rows = [[_shortest(cells, function, goal) for goal in goals] for function in functions]
    width, height = _NAMES + len(goals) * _WIDTH, _TOP + len(rows) * _HEIGHT + 28
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}'>",
        f"<rect width='{width}' height='{height}' fill='{PAPER}'/>",
        *_headings(goals),
        *(line for number, row in enumerate(rows) for line in _row(functions[number], row, number)),
        _text(width / 2, height - 10, f"Steps after the load, {zoo.bounds.words}, binlog type {chosen}", QUIET),
        "</svg>",
    ]
    told = "; ".join(f"{name}: {', '.join(map(_words, row))}" for name, row in zip(functions, rows, strict=True))
    heads = ", ".join(ANOMALIES[goal][0] for goal in goals)
    return accessible_svg("".join(parts), "The fewest steps in which each function fails", f"{heads}. {told}.") + "\n"


def _shortest(cells: Sequence[Cell], function: str, goal: Goal) -> Cell:
    mine = [cell for cell in cells if (cell.function, cell.anomaly) == (function, goal)]
    return min(mine, key=lambda cell: (cell.answer != "found", cell.length or 0))


def _words(cell: Cell) -> str:
    return {"found": f"{cell.length} steps", "none": "none found", "refused": "refused"}[cell.answer]


def _headings(goals: Sequence[Goal]) -> Iterator[str]:
    for number, goal in enumerate(goals):
        middle, words = _NAMES + (number + 0.5) * _WIDTH, ANOMALIES[goal][0].split(" ")
        lines = [" ".join(words[:2]), " ".join(words[2:])]
        yield _text(middle, _TOP - 30, lines[0], INK)
        yield _text(middle, _TOP - 12, lines[1], INK)


def _row(function: str, row: Sequence[Cell], number: int) -> Iterator[str]:
    top = _TOP + number * _HEIGHT
    yield f"<text x='8' y='{top + 20}' {_FONT} fill='{INK}'>{escape(function)}</text>"
    for place, cell in enumerate(row):
        left = _NAMES + place * _WIDTH
        colour = {"found": BAD, "none": GOOD, "refused": QUIET}[cell.answer]
        # The fewer steps, the stronger.
        strength = 0.08 if cell.length is None else max(0.12, 0.62 - 0.11 * cell.length)
        yield (
            f"<rect x='{left + _GAP / 2}' y='{top}' width='{_WIDTH - _GAP}' height='{_HEIGHT - _GAP}' rx='4' "
            f"fill='{colour}' fill-opacity='{strength:.2f}'/>"
        )
        yield _text(left + _WIDTH / 2, top + 19, _words(cell), INK)


def _text(x: float, y: float, text: str, colour: str) -> str:
    return f"<text x='{x}' y='{y}' {_FONT} fill='{colour}' text-anchor='middle'>{escape(text)}</text>"
