"""
What is told of a result, on a terminal; tables as all commands print them.

A table fits any width: names fold over several lines, headings break between words, extremes go below their median, and
figures are never cut. Its title takes the width of the terminal, however narrow the table is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from conflict.shown_text import one_line
from conflict.telling import value
from conflict.telling.value import Telling

__all__ = ["print_labelled", "print_table", "print_telling", "table_of"]

_LEAST_NAME = 8  # a name folds to no fewer characters than these
# Between a median and its extremes, and after the hyphen of a range.
_EXTREMES = re.compile(r" (?=\([^()]* to [^()]*\)$)|(?<=[\dkMG%]-)(?=\d)")
_LABEL = re.compile(r"([^:]{1,40}:) (.*)", re.DOTALL)


class _Titled(Table):
    """A table below its title, which wraps where the terminal ends."""

    def __init__(self, heading: str, **options: Any) -> None:
        super().__init__(**options)
        self.heading = heading

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.from_markup(self.heading, style="bold")
        yield from super().__rich_console__(console, options)


def print_telling(console: Console, telling: Telling) -> None:
    """Print why a result may not hold, the headline, the tables, and what they do not say."""
    print_labelled(console, telling.alarms, "red")
    print_labelled(console, telling.warnings, "yellow")
    if telling.headline:
        console.print(Text(telling.headline))
    for table in telling.tables:
        print_table(console, table)
    for each in telling.sentences:
        console.print(Text(each))


def print_labelled(console: Console, texts: Iterable[str], style: str) -> None:
    """Print texts in a colour; of one that begins with a label, the label."""
    for each in texts:
        text, found = one_line(each), _LABEL.fullmatch(one_line(each))
        label, rest = found.groups() if found else (text, "")
        console.print(f"[{style}]{escape(label)}[/{style}] {escape(rest)}".rstrip(), highlight=False)


def print_table(console: Console, table: value.Table) -> None:
    """Print a table with its note below."""
    rows = [[table.text(row, place) for place in range(len(cells))] for row, cells in enumerate(table.rows)]
    headings = table.headings[: table.texts], table.headings[table.texts :]
    made = table_of(escape(table.title), *headings, rows)
    if _widest(made, console) > console.width:
        rows = [[*row[: table.texts], *(_EXTREMES.sub("\n", cell) for cell in row[table.texts :])] for row in rows]
        made = table_of(escape(table.title), *headings, rows)
    console.print(made)
    if table.note:
        console.print(Text(table.note))


def _widest(made: Table, console: Console) -> int:
    """Return the width of a table in which nothing folds."""
    return int(made.__rich_measure__(console, console.options.update(max_width=10_000)).maximum)


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
