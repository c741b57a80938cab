"""
Charts as figures of matplotlib, which a notebook shows and users can change.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from conflict.telling.drawing import WIDE, drawing_settings, fill, height_of, saved
from conflict.telling.svg import accessible_svg, svg_file
from conflict.telling.value import Chart


class Picture(Figure):
    """A figure of matplotlib that any notebook shows, whatever draws the others there; `savefig` keeps it."""

    def __init__(self, chart: Chart, **options: Any) -> None:
        super().__init__(**options)
        self._chart = chart

    def _repr_svg_(self) -> str:
        with drawing_settings(self._chart, self.get_figwidth()):
            return accessible_svg(saved(self, "svg"), self._chart.title, self._chart.description)

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save the figure, as matplotlib does; SVG gets a title and a description, if it is a file of that name."""
        super().savefig(fname, **options)
        if isinstance(fname, str | PathLike) and Path(fname).suffix.lower() == ".svg":
            drawn = Path(fname).read_bytes()
            Path(fname).write_bytes(svg_file(drawn, self._chart.title, self._chart.description))


def picture_of(chart: Chart) -> Picture:
    """Return a chart as a figure."""
    with drawing_settings(chart, WIDE):
        figure = Picture(chart, figsize=(WIDE, height_of(chart, WIDE, title=True)), layout="constrained")
        fill(figure, chart, title=True)
    return figure
