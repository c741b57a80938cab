"""
What makes a result doubtful, on the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from conflict.results.doubts import Doubt
from conflict.shown_text import one_line

__all__ = ["print_doubts"]


def print_doubts(console: Console, doubts: Iterable[Doubt]) -> None:
    """Print each doubt with its label in colour."""
    for each in doubts:
        style = "red" if each.serious else "yellow"
        label, text = (escape(one_line(part)) for part in (each.label, each.text))
        console.print(f"[{style}]{label}:[/{style}] {text}", highlight=False)
