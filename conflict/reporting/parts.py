"""
What a report says of a result, before it becomes a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, IntEnum
from typing import Any

import attrs
import pyarrow as pa

__all__ = ["Bytes", "Chart", "Column", "Form", "Headline", "LoggedRows", "Measured", "Part", "Table", "Topic", "shown"]


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

    @property
    def in_words(self) -> str:
        """What it shows, as a sentence, where not more than one number is another than 0; else nothing."""
        labels, *series = self.data.columns
        names = self.data.column_names[1:]
        found = [
            (name, label, number)
            for name, numbers in zip(names, series, strict=True)
            for label, number in zip(labels.to_pylist(), numbers.to_pylist(), strict=True)
            if number
        ]
        if len(found) > 1:
            return ""
        if not found:
            return "0 everywhere."
        ((name, label, number),) = found
        where = [*([name] if len(names) > 1 else []), f"{self.over} {shown(label)}".strip()]
        rest = "; 0 everywhere else" if len(names) * len(labels) > 1 else ""
        return f"{', '.join(where)}: {shown(number)}{rest}."


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
class LoggedRows:
    """
    How many row changes a log has, and would have under other functions.

    Attributes:
        users: Those that users made, under every function.
        configured: The functions under which the log was recorded.
        by_appliers: By functions, the rows that appliers log: applied, refreshed and reflected ones.
    """

    users: int
    configured: str
    by_appliers: Mapping[str, int]

    def scale(self, function: str) -> float | None:
        """Return how many times as many rows the log has under a function; None if that is not known."""
        if function not in self.by_appliers or self.configured not in self.by_appliers:
            return None
        now, then = (self.users + self.by_appliers[each] for each in (function, self.configured))
        return now / then if then else None


@attrs.frozen
class Bytes:
    """
    What row events take in each binlog type, before compression.

    Attributes:
        source: Where they come from.
        bounds: By binlog type, bytes at least and at most.
        lower: Binlog types that log values which the log lacks: both bounds are without these, and they take more.
        base: What the bytes of the types are related to: ``type 7``; empty if nothing is.
        base_bytes: Its bytes.
        of: What the row events are of, after “in”: ``the measured log``.
        rows: Row changes that take the bytes; 0 if not known.
        also: More sentences, about these bytes alone.
        functions: The functions that the rows have; none if that is not known.
        other_bytes: What else the log takes, in every binlog type; 0 if that is not known.
        seconds: From its first row change to its last one; 0 if that is not known.
        servers: By server, what its part of the log takes in each binlog type, other bytes included; empty if that is
            not known.
        compressed: What the whole log would take as it was recorded, with its transactions compressed; 0 if not known.
        logged: How many rows the log would have under other functions; None if that is not known.
    """

    source: Measured
    bounds: Mapping[str, tuple[int, int]]
    base: str
    base_bytes: int
    of: str
    rows: int = 0
    also: Sequence[str] = ()
    functions: Sequence[str] = ()
    other_bytes: int = 0
    seconds: int = 0
    servers: Mapping[int, Mapping[str, int]] = attrs.field(factory=dict)
    compressed: int = 0
    logged: LoggedRows | None = None
    lower: frozenset[str] = frozenset()


class Topic(IntEnum):
    """What the top of a page answers, and the columns of its table are about, in this order."""

    FUNCTION = 1
    LIMIT = 2
    BYTES = 3


@attrs.frozen
class Headline:
    """
    An answer for the top of a page.

    Attributes:
        topic: What it answers.
        question: That, as a question.
        answer: In a few words: a function, a latency, an amount; empty if it takes a sentence.
        sentences: The answer and what weakens it most, in a few sentences.
        setting: From what it is, in sentences: a log, simulations.
    """

    topic: Topic
    question: str
    answer: str
    sentences: Sequence[str]
    setting: Sequence[str] = ()


@attrs.frozen
class Column:
    """
    What a result says of each function, for the table at the top of a page.

    Attributes:
        topic: Which answer it belongs to.
        heading: What it says.
        cells: By function.
    """

    topic: Topic
    heading: str
    cells: Mapping[str, object]


@attrs.frozen(eq=False)
class Part:
    """
    What a report says of one result.

    Attributes:
        title: What the result is.
        source: The file or folder that it was read from.
        asked: What was asked: names and what they are.
        answer: What was found, in sentences, besides the headlines.
        warnings: Why that may not hold.
        matrix: The answer as a table.
        charts: The figures.
        tables: More, by table and key.
        configuration: All that determined the result, as a document.
        best: The functions that lose least, where functions are compared.
        bytes: What row events take.
        headlines: Answers for the top of the page.
        by_function: Columns for the table at the top of the page.
        basis: How simulated losses differ from recorded ones, in sentences.
        recorded: Whether it decides recorded changes, and not simulated ones.
        lost_share: The configured function without its arguments, and the share of users' changes that it loses: as
            recorded, or simulated with epochs that take as long as the recorded ones; None if that is not known.
        log: Which log it is of, or its model was learnt from: the digest and the name of each binlog file; empty if
            that is not known.
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
    headlines: Sequence[Headline] = ()
    by_function: Sequence[Column] = ()
    basis: Sequence[str] = ()
    recorded: bool = True
    lost_share: tuple[str, float] | None = None
    log: Mapping[str, str] = attrs.field(factory=dict)

    def shares_log(self, other: Part) -> bool:
        """Whether both are of one log, or of a part of it; so is what does not say of which log it is."""
        mine, theirs = set(self.log), set(other.log)
        return not mine or not theirs or mine <= theirs or theirs <= mine


def shown(value: object) -> str:
    """Return a cell as text: whole numbers with commas, others with three digits, a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}" if isinstance(value, float) else f"{value:,}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.3g}"
