"""
Tables and figures as all commands print them.

A table fits any width: names fold over several lines, headings break between words, and figures are never cut.
Its title takes the width of the terminal, however narrow the table is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from conflict.shown_text import counted

__all__ = ["counted", "table_of"]

_LEAST_NAME = 8  # a name folds to no fewer characters than these


class _Titled(Table):
    """A table below its title, which wraps where the terminal ends."""

    def __init__(self, heading: str, **options: Any) -> None:
        super().__init__(**options)
        self.heading = heading

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.from_markup(self.heading, style="bold")
        yield from super().__rich_console__(console, options)


def table_of(title: str, texts: Sequence[str], figures: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """
    Return a table.

    Args:
        title: What it shows.
        texts: Headings of the first columns, which hold texts.
        figures: Headings of the other columns, which hold numbers, to the right.
        rows: The cells of each row. Integers get separators; strings are shown as they are, without markup; a rich
            `Text` keeps its style.
    """
    table = _Titled(title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    cells = [[_cell(cell) for cell in row] for row in rows]
    for place, heading in enumerate((*texts, *figures)):
        is_text = place < len(texts)
        widest = max((line.cell_len for row in cells for line in row[place].split()), default=0)
        longest_word = max(map(len, heading.split()), default=0)
        table.add_column(
            escape(heading),
            justify="left" if is_text else "right",
            overflow="fold",
            min_width=max(longest_word, min(widest, _LEAST_NAME) if is_text else widest),
        )
    for row in cells:
        table.add_row(*row)
    return table


def _cell(cell: object) -> Text:
    if isinstance(cell, Text):
        return cell
    return Text(f"{cell:,}" if isinstance(cell, int) else str(cell))
