"""
The terminal: where commands print to. Nothing that was read reaches it but as text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from conflict.shown_text import printable

__all__ = ["PlainConsole"]


class PlainConsole(Console):
    """A console that escapes control characters in whatever it prints, and makes no pictures of ``:names:``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)

    def on_broken_pipe(self) -> None:
        """
        Leave it to the command how it ends: rich would end the program with 1.

        Raises:
            BrokenPipeError: Always.
        """
        raise BrokenPipeError

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the segments of something, without control characters in their texts."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else printable(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)
