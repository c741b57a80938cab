"""
Answers as Python users get them: printed, what is told of them; in a notebook, as HTML; and their charts as pictures.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from conflict.errors import ConfigurationError
from conflict.surroundings import load_matplotlib
from conflict.telling.html import telling_html
from conflict.telling.terminal import telling_text
from ndb_formats.errors import did_you_mean

if TYPE_CHECKING:
    from conflict.telling.picture import Picture
    from conflict.telling.value import Telling


class Shown(ABC):
    """What is shown as what is told of it."""

    @abstractmethod
    def telling(self) -> Telling:
        """Return what is told of it."""

    def __repr__(self) -> str:
        return telling_text(self.telling())

    def _repr_html_(self) -> str:
        return telling_html(self.telling())


class Drawn(Shown):
    """What has charts besides."""

    @property
    def charts(self) -> tuple[str, ...]:
        """The names of its charts."""
        return tuple(chart.name for chart in self.telling().charts)

    def plot(self, chart: str | None = None) -> Picture:
        """
        Return a chart as a figure of matplotlib, which a notebook shows.

        Args:
            chart: One of `charts`; the first one by default.

        Raises:
            ConfigurationError: There is no such chart.
        """
        load_matplotlib()
        from conflict.telling.picture import picture_of  # noqa: PLC0415  # matplotlib may have to look for fonts first

        drawn = {each.name: each for each in self.telling().charts}
        name = next(iter(drawn)) if chart is None else chart
        if name not in drawn:
            message = f"there is no chart {name}{did_you_mean(name, drawn)}; there are {', '.join(drawn)}"
            raise ConfigurationError(message)
        return picture_of(drawn[name])
