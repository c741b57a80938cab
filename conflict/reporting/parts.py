"""
What a report says of a result, before it becomes a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, IntEnum
from typing import Any

import attrs
import pyarrow as pa

__all__ = ["Bytes", "Chart", "Form", "Measured", "Part", "Table", "shown"]


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
    """

    name: str
    title: str
    form: Form
    data: pa.Table
    measure: str
    over: str = ""
    note: str = ""


@attrs.frozen
class Table:
    """
    A table.

    Attributes:
        title: What it shows.
        headings: Of its columns.
        rows: Its cells: texts, numbers, None where there is nothing.
        marked: The row to mark, and the column, or None for the whole row; None to mark nothing.
        note: What one must know to read it.
        even: Whether all columns but the first are as wide as each other.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[object]]
    marked: tuple[int, int | None] | None = None
    note: str = ""
    even: bool = False


class Measured(IntEnum):
    """Where bytes come from; the greatest of a report are those that its answer is about."""

    SIMULATED = 1
    COMPARED = 2
    MEASURED = 3


@attrs.frozen
class Bytes:
    """
    What row events take in each binlog type, before compression.

    Attributes:
        source: Where they come from.
        bounds: By binlog type, bytes at least and at most.
        base: The type that the others are related to; empty if none is.
        base_bytes: Its bytes.
        base_words: What tells it, after its bytes: ``with type 7, as configured``.
        of: What the row events are of: ``the binlogs of both clusters``.
        rows: Row changes that take the bytes; 0 if not known.
        also: More sentences, about these bytes alone.
        functions: The functions that the rows have; none if that is not known.
    """

    source: Measured
    bounds: Mapping[str, tuple[int, int]]
    base: str
    base_bytes: int
    base_words: str
    of: str
    rows: int = 0
    also: Sequence[str] = ()
    functions: Sequence[str] = ()


@attrs.frozen(eq=False)
class Part:
    """
    What a report says of one result.

    Attributes:
        title: What the result is.
        source: The file or folder that it was read from.
        asked: What was asked: names and what they are.
        answer: The answer, in about three sentences.
        warnings: Why the answer may not hold.
        matrix: The answer as a table.
        charts: The figures.
        tables: More, by table and key.
        configuration: All that determined the result, as a document.
        best: The functions that lose least, where functions are compared.
        bytes: What row events take.
        basis: What its losses rest on, after “the figures”; empty if it has none.
        recorded: Whether it decides recorded changes, and not simulated ones.
    """

    title: str
    source: str
    asked: Mapping[str, str]
    answer: Sequence[str]
    warnings: Sequence[str]
    matrix: Table
    charts: Sequence[Chart]
    tables: Sequence[Table]
    configuration: Any
    best: Sequence[str] = ()
    bytes: Bytes | None = None
    basis: str = ""
    recorded: bool = True


def shown(value: object) -> str:
    """Return a cell as text: whole numbers with commas, others with three digits, a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}" if isinstance(value, float) else f"{value:,}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.3g}"
