"""
What is told of a result, on a terminal; tables as all commands print them.

A table fits any width: names fold over several lines, headings break between words, extremes go below their median, and
figures are never cut. Its title takes the width of the terminal, however narrow the table is. Where even that is too
wide, each row is printed as lines.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from conflict.telling import value
from conflict.telling.shown_text import one_line, printable
from conflict.telling.value import Entry, Listing, Telling, Tone, tone_of

_LEAST_NAME = 8  # a name folds to no fewer characters than these
# Between a median and its extremes, and after the hyphen of a range.
_EXTREMES = re.compile(r" (?=\([^()]* to [^()]*\)$)|(?<=[\dkMG%]-)(?=\d)")
_STYLES = {Tone.GOOD: "green", Tone.DOUBTFUL: "yellow", Tone.BAD: "red", Tone.QUIET: "dim", None: ""}
_INDENT = "  "
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
    """Print why a result does not hold, the headline, the figures, what they do not say, and what makes it doubtful."""
    _print_labelled(console, telling.alarms, "red")
    if telling.headline:
        console.print(Text(telling.headline, style="bold"))
    for table in telling.tables:
        print_table(console, table)
    after_blank = False
    for listing in telling.listings:
        after_blank = _print_listing(console, listing, after_blank=after_blank)
    for each in telling.sentences:
        console.print(Text(each))
    _print_labelled(console, telling.warnings, "yellow")
    for what, command in telling.commands:
        console.print(Text(f"\n{what}"))
        console.print(Text(command), soft_wrap=True)


def telling_text(telling: Telling) -> str:
    """Return what a terminal of 80 columns shows of a result, without colours."""
    out = io.StringIO()
    print_telling(Console(file=out, width=80, emoji=False, color_system=None, force_jupyter=False), telling)
    return "\n".join(line.rstrip() for line in printable(out.getvalue()).split("\n")).rstrip("\n")


def _print_listing(console: Console, listing: Listing, *, after_blank: bool) -> bool:
    """Print entries, those of several lines between blank ones, and return whether one is at the end."""
    apart = any(len(entry.lines) > 1 for entry in listing.entries)
    if apart and not after_blank:
        console.print()
    if listing.title and listing.entries:
        console.print(Text(listing.title, style="bold"))
    for place, entry in enumerate(listing.entries):
        if apart and place:
            console.print()
        _print_entry(console, entry, "")
    if apart:
        console.print()
    return apart


def _print_entry(console: Console, entry: Entry, indent: str) -> None:
    """Print an entry; lines below it have no blanks at their ends, so that statements can be copied."""
    label = (f"{indent}{one_line(entry.label)} " if entry.label else indent, "bold")
    console.print(Text.assemble(label, (one_line(entry.head), _STYLES[entry.tone])))
    inner = indent + _INDENT
    for text in entry.lines:
        lines = wrap(one_line(text), console.width - len(inner), break_long_words=False, break_on_hyphens=False)
        console.print(Text("\n".join(inner + line for line in lines)), soft_wrap=True)
    for each in entry.entries:
        _print_entry(console, each, inner)


def _print_labelled(console: Console, texts: Iterable[str], style: str) -> None:
    """Print texts in a colour; of one that begins with a label, the label."""
    for each in texts:
        text, found = one_line(each), _LABEL.fullmatch(one_line(each))
        label, rest = found.groups() if found else (text, "")
        console.print(f"[{style}]{escape(label)}[/{style}] {escape(rest)}".rstrip(), highlight=False)


def print_table(console: Console, table: value.Table) -> None:
    """Print a table with its note below; one that is too wide with lines in headings and extremes, then closer."""
    rows = [[_cell_of(table, row, place) for place in range(len(cells))] for row, cells in enumerate(table.rows)]
    folded = [[*row[: table.texts], *map(_folded, row[table.texts :])] for row in rows]
    broken = [_lines(heading, [row[place] for row in folded]) for place, heading in enumerate(table.headings)]
    for names, cells, gap in ((table.headings, rows, 1), (broken, folded, 1), (broken, folded, 0)):
        made = table_of(escape(table.title), table.headings[: table.texts], names[table.texts :], cells, gap)
        if table.even or _width(made, console).maximum <= console.width:
            break
    if table.even:
        made.expand = True
        for column in made.columns[1:]:
            column.ratio = 1
    if table.even or _width(made, console).minimum <= console.width:
        console.print(made)
    else:
        _print_rows(console, table, rows)
    if table.note:
        console.print(Text(table.note))


def _folded(cell: Text) -> Text:
    return Text(_EXTREMES.sub("\n", cell.plain), style=cell.style)


def _lines(heading: str, cells: Sequence[Text]) -> str:
    """Return a heading on lines that are no wider than the cells below, or its longest word."""
    widths = [*map(len, heading.split()), *(line.cell_len for cell in cells for line in cell.split()), 1]
    return "\n".join(wrap(heading, max(widths), break_on_hyphens=False))


def _width(made: Table, console: Console) -> Measurement:
    """Return the width of a table in which all that can fold does, and of one in which nothing folds."""
    return made.__rich_measure__(console, console.options.update(max_width=10_000))


def _print_rows(console: Console, table: value.Table, rows: Iterable[Sequence[Text]]) -> None:
    """Print a table that cannot be as narrow as the terminal: each row as lines, one for each of its cells."""
    console.print(Text(table.title, style="bold"))
    for row in rows:
        console.print()
        for place, (heading, cell) in enumerate(zip(table.headings, row, strict=True)):
            console.print(Text.assemble(_INDENT * (place > 0), f"{heading}: " if heading else "", cell))
    console.print()


def _cell_of(table: value.Table, row: int, place: int) -> Text:
    return Text(one_line(table.text(row, place)), style=_STYLES[tone_of(table.rows[row][place])])


def table_of(
    title: str, texts: Sequence[str], figures: Sequence[str], rows: Iterable[Sequence[object]], gap: int = 1
) -> Table:
    """
    Return a table.

    Args:
        title: What it shows.
        texts: Headings of the first columns, which hold texts.
        figures: Headings of the other columns, which hold numbers, to the right.
        rows: The cells of each row. Integers get separators; strings are shown as they are, without markup; a rich
            `Text` keeps its style.
        gap: Characters between two columns, besides one.
    """
    table = _Titled(title, box=SIMPLE_HEAD, padding=(0, gap, 0, 0), pad_edge=False)
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
