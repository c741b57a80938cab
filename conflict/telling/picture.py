"""
Charts as figures of matplotlib, which a notebook shows and users can change.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from conflict.telling.drawing import WIDE, drawing_settings, fill, height_of, saved
from conflict.telling.shown_text import one_line
from conflict.telling.value import Chart

_TITLE = 0.3  # inches


class Picture(Figure):
    """A figure of matplotlib that any notebook shows, whatever draws the others there; `savefig` keeps it."""

    def __init__(self, chart: Chart, **options: Any) -> None:
        super().__init__(**options)
        self._chart = chart

    def _repr_svg_(self) -> str:
        with drawing_settings(self._chart, self.get_figwidth()):
            return saved(self, "svg").decode()


def picture_of(chart: Chart) -> Picture:
    """Return a chart as a figure."""
    with drawing_settings(chart, WIDE):
        figure = Picture(chart, figsize=(WIDE, height_of(chart, WIDE) + _TITLE), layout="constrained")
        fill(figure, chart)
        figure.axes[0].set_title(one_line(chart.title), loc="left", fontsize="medium")
    return figure
