"""
Small tables of figures, as plain text and for notebooks.

Names come from logs and can be anything: characters that cannot be printed are shown as escapes, and in HTML no name is
markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from conflict.shown_text import one_line

__all__ = ["html_table", "text_lines"]


def text_lines(headings: Sequence[str], rows: Sequence[Sequence[object]], names: int) -> list[str]:
    """
    Return a table as lines.

    Args:
        headings: Of its columns.
        rows: Their cells; None is not known.
        names: How many columns, from the first, are names and not figures.
    """
    lines = [tuple(headings), *(tuple(map(_cell, row)) for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(headings))]
    return [
        "  ".join(
            cell.ljust(width) if place < names else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def html_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table as HTML; arguments as for `text_lines`."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "?" if value is None else one_line(str(value))
