"""
What is told of a result: a headline, sentences, tables, charts.

Each kind of result makes one of these from its JSON document or its folder. `terminal` and `html` show it, the latter
in reports and in notebooks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    import pyarrow as pa


_MOST_DESCRIBED = 20  # rows


class Form(Enum):
    """How a chart shows its data."""

    STACKED = "stacked"  # a horizontal bar per row, its columns one after the other
    GROUPED = "grouped"  # a horizontal bar per row and column
    LINES = "lines"  # the first column goes to the right, a line per other column
    TIMELINE = "timeline"  # as GROUPED, upright, over moments


@attrs.frozen(eq=False)
class Chart:
    """
    A chart.

    Attributes:
        name: Its name among the files of figures: letters, digits and hyphens.
        title: What it shows.
        form: How.
        data: The first column has labels, numbers or moments; the others have numbers, NULL where there is none.
        measure: What the numbers are, with their unit.
        over: What the first column is, where it is an axis.
        note: What one must know to read it.
        spans: By series of `LINES`, between which values each number is sure to lie; none where that is not known.
        ends: What stands at the end of each bar of `STACKED`; the number where there is none.
        clusters: How many series, from the first, are of a cluster each: these have colours of their own.
    """

    name: str
    title: str
    form: Form
    data: pa.Table
    measure: str
    over: str = ""
    note: str = ""
    spans: Mapping[str, Sequence[tuple[float, float] | None]] = attrs.field(factory=dict)
    ends: Sequence[str] = ()
    clusters: int = 0

    @property
    def description(self) -> str:
        """Its first numbers in words, for who does not see it."""
        first, rest = self.data.slice(0, _MOST_DESCRIBED), self.data.num_rows - _MOST_DESCRIBED
        rows = [
            f"{shown(row.pop(self.data.column_names[0]))}: {', '.join(f'{name} {shown(row[name])}' for name in row)}"
            for row in first.to_pylist()
        ]
        rows = [f"{row} ({end})" for row, end in zip(rows, self.ends, strict=False)] or rows
        more = [f"and {rest:,} more"] if rest > 0 else []
        return f"{self.measure}{f' by {self.over}' if self.over else ''}. {'; '.join([*rows, *more])}."

    @property
    def in_words(self) -> str:
        """What it shows, as a sentence, where at most one number is not 0 and no text stands at it; else nothing."""
        labels, *series = self.data.columns
        names = self.data.column_names[1:]
        found = [
            (name, label, number)
            for name, numbers in zip(names, series, strict=True)
            for label, number in zip(labels.to_pylist(), numbers.to_pylist(), strict=True)
            if number
        ]
        if len(found) > 1 or self.ends:
            return ""
        if not found:
            return "0 everywhere."
        ((name, label, number),) = found
        where = [*([name] if len(names) > 1 else []), f"{self.over} {shown(label)}".strip()]
        rest = "; 0 everywhere else" if len(names) * len(labels) > 1 else ""
        return f"{', '.join(where)}: {shown(number)}{rest}."


class Tone(Enum):
    """How good it is what a text or a figure says."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"
    QUIET = "quiet"  # it matters little


@attrs.frozen
class Toned:
    """A cell of a table with its tone."""

    cell: object
    tone: Tone


@attrs.frozen
class Table:
    """
    A table.

    Attributes:
        title: What it shows.
        headings: Of its columns.
        rows: Its cells: texts, numbers, None where there is nothing; with a tone or without one.
        marked: The row to mark, and the column, or None for the whole row; None to mark nothing.
        note: What one must know to read it.
        even: Whether all columns but the first are as wide as each other.
        texts: How many columns, from the first, are names; the others hold figures.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[object]]
    marked: tuple[int, int | None] | None = None
    note: str = ""
    even: bool = False
    texts: int = 1

    def text(self, row: int, place: int) -> str:
        """Return a cell as text; the marked one, or the first one of the marked row, with an asterisk."""
        cell, mark = shown(self.rows[row][place]), self.marked
        return f"{cell} *" if mark is not None and (mark[0], mark[1] or 0) == (row, place) else cell


@attrs.frozen
class Entry:
    """
    One of several things that need a few sentences each.

    Attributes:
        label: What tells it from the others: a code, a place.
        head: What it is.
        lines: What is to be said about it.
        tone: Of the head.
        entries: What follows from it.
    """

    label: str
    head: str
    lines: Sequence[str] = ()
    tone: Tone | None = None
    entries: Sequence[Entry] = ()


@attrs.frozen
class Listing:
    """Entries below a title, which may be empty."""

    title: str
    entries: Sequence[Entry]


@attrs.frozen(eq=False)
class Telling:
    """
    What is told of a result, wherever it is shown.

    Attributes:
        title: What the result is.
        headline: The answer, in one sentence; empty where the first table gives it.
        sentences: What else was found, where no table says it.
        tables: The figures, the answer first.
        charts: The figures as pictures, which a terminal does not show.
        alarms: Why the result does not hold.
        warnings: What makes it doubtful, or is not known.
        listings: What no table can say, one thing after the other.
        commands: What to type for more: what it shows, and the command.
    """

    title: str
    headline: str = ""
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    alarms: Sequence[str] = ()
    warnings: Sequence[str] = ()
    listings: Sequence[Listing] = ()
    commands: Sequence[tuple[str, str]] = ()

    @property
    def said(self) -> tuple[str, ...]:
        """The headline, if there is one, and the other sentences."""
        return (*filter(None, [self.headline]), *self.sentences)


def is_number(cell: object) -> bool:
    """Whether a cell is a number, and not a text."""
    return isinstance(_bare(cell), int | float) and not isinstance(_bare(cell), bool)


def tone_of(cell: object) -> Tone | None:
    """Return the tone of a cell, if it has one."""
    return cell.tone if isinstance(cell, Toned) else None


def _bare(cell: object) -> object:
    return cell.cell if isinstance(cell, Toned) else cell


def shown(value: object) -> str:
    """Return a cell as text: whole numbers with commas, others with three digits, a dash for None."""
    value = _bare(value)
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}" if isinstance(value, float) else f"{value:,}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.3g}"
