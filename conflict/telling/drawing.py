"""
Draws charts with matplotlib: as SVG for a page, where colours follow the theme, and as SVG and PNG files.
"""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from conflict.errors import ConfigurationError
from conflict.surroundings import load_matplotlib
from conflict.telling.palette import CLUSTERS, FAINT, INK, LINE, PAPER, SERIES
from conflict.telling.shown_text import one_line
from conflict.telling.svg import accessible_svg, svg_file
from conflict.telling.value import Chart, Form, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


WIDE, NARROW = 8.0, 3.5  # inches
_DASHES = ("-", "--", ":", "-.")  # so that lines on top of each other are all seen
_NUMBER = "{x:,.10g}"
_SUFFIXES = (".png", ".svg")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_HATCHES = ("", "////", "||||", "\\\\\\\\", "xxxx", "----")  # circles would take 250 kB of SVG
_TITLE, _TITLE_LETTERS = 0.3, 11.0  # inches of a title, and its letters in an inch
_ROOM = 1.02  # above the greatest number, as a part of it
_LABEL_ROOM = 1.1  # right of the longest bar, for its number
_MARKER, _MARKER_STEP = 4.5, 2.0  # points: of the last series, and how much larger each one before it is
_SPAN = 0.9  # points: of the line from the lowest to the highest value of a span
_DECADE = 10.0
_TICK_ROOM = 0.1  # between two named values, of the width of the axes
_LETTERS = 14.0  # of a legend in an inch
_MARK_ROOM = 8  # letters that the mark of a series and the space around it take
_MOST_LABEL = 46  # characters of a label beside a bar; longer ones are cut in the middle


def check_chart_file(path: Path | None) -> None:
    """
    Make sure that a chart can be drawn into a file.

    Raises:
        ConfigurationError: Its name has another ending than those of the formats, or matplotlib is not installed.
    """
    if path is None:
        return
    if path.suffix.lower() not in _SUFFIXES:
        message = f"{path}: a chart is a file {' or '.join(f'*{suffix}' for suffix in _SUFFIXES)}"
        raise ConfigurationError(message)
    load_matplotlib()


def draw(chart: Chart, kind: str, width: float = WIDE) -> bytes:
    """
    Return a chart as a file, in the light theme.

    Args:
        chart: The chart.
        kind: ``svg`` or ``png``.
        width: Its width in inches.
    """
    drawn = _drawn(chart, kind, width, title=True)
    return svg_file(drawn, chart.title, chart.description) if kind == "svg" else drawn


def _drawn(chart: Chart, kind: str, width: float, *, title: bool = False) -> bytes:
    """Return a chart as matplotlib draws it; without a title where it stands below one."""
    load_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415  # it may have to look for all fonts first

    with drawing_settings(chart, width):
        figure = Figure(figsize=(width, height_of(chart, width, title=title)), layout="constrained")
        fill(figure, chart, title=title)
        return saved(figure, kind)


@contextmanager
def drawing_settings(chart: Chart, width: float) -> Iterator[None]:
    """Give matplotlib the settings of a chart of some inches, for as long as it is drawn."""
    import matplotlib as mpl  # noqa: PLC0415  # as in `draw`

    settings: Any = {
        "font.family": "sans-serif",
        "font.size": 9,
        "text.parse_math": False,  # names have dollar signs
        "svg.fonttype": "none",
        "svg.hashsalt": f"{chart.name}-{width}",
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
        "axes.edgecolor": LINE,
        "grid.color": FAINT,
        "hatch.linewidth": 0.8,
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a browser has other fonts
        warnings.filterwarnings("ignore", "AutoDateLocator was unable")  # of five seconds; it shows each
        yield


def fill(figure: Figure, chart: Chart, *, title: bool) -> None:
    """Draw a chart into an empty figure, below its title or without one."""
    figure.set_facecolor(PAPER)
    axes = figure.add_subplot(facecolor=PAPER)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    _FORMS[chart.form](axes, chart)
    high, left = figure.get_figheight(), figure.get_figheight()
    if title:
        letters = int(_TITLE_LETTERS * figure.get_figwidth())
        text = textwrap.shorten(one_line(chart.title), letters, placeholder=" ...")
        figure.text(0.01, 1 - _TITLE / 2 / high, text, va="center", weight="bold")
        left -= _TITLE
    if chart.data.num_columns > 2:  # several series
        columns = _legend_columns(chart, figure.get_figwidth())
        figure.legend(loc="upper left", ncols=columns, frameon=False, bbox_to_anchor=(0, 0, 1, left / high))
        left -= _legend_height(chart, figure.get_figwidth())
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, 0, 1, left / high))


def saved(figure: Figure, kind: str) -> bytes:
    """Return a figure as a file: ``svg`` or ``png``."""
    out = io.BytesIO()
    figure.savefig(out, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
    return out.getvalue()


def svg_of(chart: Chart, width: float) -> str:
    """Return a chart as an element of a page, with the colours of the page's theme; the page has its title."""
    return accessible_svg(_drawn(chart, "svg", width), chart.title, chart.description, in_page=True)


def height_of(chart: Chart, width: float, *, title: bool) -> float:
    """Return the height in inches: bars need as much as there are, lines always the same; names need their own."""
    series: int = chart.data.num_columns - 1
    above = _TITLE * title + _legend_height(chart, width)
    if chart.form not in (Form.STACKED, Form.GROUPED):
        return 2.8 + above
    rows: int = chart.data.num_rows
    bars = rows * (series if chart.form is Form.GROUPED else 1)
    return 0.6 + above + (0.16 if chart.form is Form.GROUPED else 0.27) * bars + 0.08 * rows


def _legend_height(chart: Chart, width: float) -> float:
    """Return the height of the names of the series in inches; none of one series."""
    series: int = chart.data.num_columns - 1
    return 0.12 + 0.2 * -(-series // _legend_columns(chart, width)) if series > 1 else 0.0


def _legend_columns(chart: Chart, width: float) -> int:
    """Return in how many columns the names of the series stand above a chart: all on one line, or a few, or one."""
    names = chart.data.column_names[1:]
    if sum(_MARK_ROOM + len(name) for name in names) <= _LETTERS * width:
        return max(len(names), 1)
    return max(1, int(_LETTERS * width) // (_MARK_ROOM + max(map(len, names))))


def _numbers(chart: Chart) -> list[tuple[str, np.ndarray, str]]:
    """Return name, numbers and colour of each series; NaN where there is none."""
    colours = [*CLUSTERS[: chart.clusters], *SERIES]
    return [
        (one_line(name), chart.data[name].to_numpy().astype(float), colours[number % len(colours)])
        for number, name in enumerate(chart.data.column_names[1:])
    ]


def _of_bars(place: int, colour: str) -> dict[str, Any]:
    """Return how the bars of a series look: series are told apart by hatches, too."""
    return {"color": colour, "edgecolor": PAPER, "linewidth": 0, "hatch": _HATCHES[place % len(_HATCHES)]}


def _stacked(axes: Axes, chart: Chart) -> None:
    places, left = _named_places(axes, chart), np.zeros(chart.data.num_rows)
    for place, (name, numbers, colour) in enumerate(_numbers(chart)):
        axes.barh(places, numbers, 0.7, left, label=name, **_of_bars(place, colour))
        left = left + np.nan_to_num(numbers)
    _with_totals(axes, places, left, chart.ends)
    axes.set_xlim(0, _tick_above(axes.xaxis, [left * _LABEL_ROOM]))


def _grouped(axes: Axes, chart: Chart) -> None:
    places, series = _named_places(axes, chart), _numbers(chart)
    thick = 0.8 / len(series)
    for place, (name, numbers, colour) in enumerate(series):
        at = places + (place - (len(series) - 1) / 2) * thick
        axes.barh(at, numbers, thick * 0.9, label=name, **_of_bars(place, colour))
        _with_totals(axes, at, numbers)
    axes.set_xlim(0, _tick_above(axes.xaxis, [numbers * _LABEL_ROOM for _, numbers, _ in series]))


def _with_totals(axes: Axes, places: np.ndarray, ends: np.ndarray, texts: Sequence[str] = ()) -> None:
    """Write the number, or a text, at the end of each bar that has a length."""
    axes.margins(x=0.16)
    for place, end, text in zip_longest(places, ends, texts):
        if end and not np.isnan(end):
            said = one_line(text or shown(float(end)))
            axes.annotate(said, (end, place), (3, 0), textcoords="offset points", va="center", fontsize=8)


def _named_places(axes: Axes, chart: Chart) -> np.ndarray:
    """Give each row a place from the top on, with its label; return the places."""
    labels = [_cut(one_line(str(each))) for each in chart.data.column(0).to_pylist()]
    places = np.arange(len(labels))
    axes.set_yticks(places, labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", linewidth=0.5)
    _few_ticks(axes.xaxis, chart)
    axes.set_xlabel(one_line(chart.measure))
    return places


def _cut(label: str) -> str:
    half = _MOST_LABEL // 2
    return label if len(label) <= _MOST_LABEL else f"{label[:half]}…{label[-half:]}"


def _lines(axes: Axes, chart: Chart) -> None:
    right, series = chart.data.column(0).to_numpy(), _numbers(chart)
    for place, (name, numbers, colour) in enumerate(series):
        there = ~np.isnan(numbers)
        style: Any = {"color": colour, "linestyle": _DASHES[place % len(_DASHES)], "label": name}
        style |= {"marker": _MARKERS[place % len(_MARKERS)], "clip_on": False, "zorder": 3 + place}
        size = _MARKER + _MARKER_STEP * (len(series) - 1 - place)  # markers on top of each other are all seen
        axes.plot(right[there], numbers[there], markersize=size, linewidth=1.8, **style)
        for at, span in zip(right, chart.spans.get(chart.data.column_names[place + 1], ()), strict=False):
            if span is not None:
                axes.vlines(at, *span, color=colour, linewidth=_SPAN, zorder=2)
    _upright(axes, chart)
    scale = _values_to_the_right(axes, right)
    axes.set_xlabel(one_line(chart.over) + scale)


def _values_to_the_right(axes: Axes, values: np.ndarray) -> str:
    """Make the axis logarithmic where values span more than a decade, and return words for that; name the values."""
    positive, words = values[values > 0], ""
    if len(positive) and values.min() >= 0 and positive.max() > _DECADE * positive.min():
        lowest = float(positive.min())
        scale: Any = {"value": "log"} if values.min() > 0 else {"value": "symlog", "linthresh": lowest}
        axes.set_xscale(**scale)
        words = ", logarithmic"
    axes.autoscale_view()  # now, because places of the values are asked for
    along = axes.transData.transform(np.column_stack([values, np.zeros(len(values))]))[:, 0]
    if np.diff(np.sort(along)).min(initial=np.inf) >= _TICK_ROOM * axes.bbox.width:
        axes.set_xticks(values, [_NUMBER.format(x=value) for value in values])
        axes.set_xticks([], minor=True)
    return words


def _timeline(axes: Axes, chart: Chart) -> None:
    from matplotlib import dates as mdates  # noqa: PLC0415  # as in `draw`

    moments = mdates.date2num(chart.data.column(0).to_pylist())  # type: ignore[no-untyped-call]
    step = float(np.diff(moments).min()) if len(moments) > 1 else 1 / 86400
    series = _numbers(chart)
    for place, (name, numbers, colour) in enumerate(series):
        at = moments + (place + 0.5) * step / len(series)
        axes.bar(at, numbers, 0.95 * step / len(series), label=name, **_of_bars(place, colour))
    locator = mdates.AutoDateLocator(maxticks=5)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    moment = ["%Y", "%Y-%m", "%m-%d", "%H:%M", "%H:%M", "%H:%M:%S.%f"]  # by the step: years, months, ... seconds
    date = ["", "%Y", "%Y", "%Y-%m-%d", "%Y-%m-%d", "%Y-%m-%d"]
    formatter: Any = mdates.ConciseDateFormatter(  # type: ignore[no-untyped-call]
        locator, formats=moment, zero_formats=["", *moment[:5]], offset_formats=date
    )
    axes.xaxis.set_major_formatter(formatter)
    _upright(axes, chart)
    axes.set_xlabel(one_line(chart.over))


def _upright(axes: Axes, chart: Chart) -> None:
    axes.set_ylim(bottom=0)
    axes.set_ylabel(one_line(chart.measure))
    axes.grid(axis="y", linewidth=0.5)
    _few_ticks(axes.yaxis, chart)
    highest = [span[1] for spans in chart.spans.values() for span in spans if span is not None]
    axes.set_ylim(top=_tick_above(axes.yaxis, [np.array(highest), *(numbers for _, numbers, _ in _numbers(chart))]))


def _tick_above(axis: Axis, series: Sequence[np.ndarray]) -> float:
    """Return the first tick above all numbers, with some room between."""
    top = max(float(np.nanmax(numbers, initial=0.0)) for numbers in series)
    return float(axis.get_major_locator().tick_values(0, _ROOM * top)[-1]) if top else 1.0


def _few_ticks(axis: Axis, chart: Chart) -> None:
    """Give an axis of numbers some ticks, at whole ones if all numbers are whole."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter  # noqa: PLC0415  # as in `draw`

    whole = all(bool(np.all(np.isnan(each) | (each == np.round(each)))) for _, each, _ in _numbers(chart))
    most = 4 if axis.figure.get_figwidth() > NARROW else 2  # type: ignore[union-attr]  # an axis has a figure
    axis.set_major_locator(MaxNLocator(most, integer=whole))
    axis.set_major_formatter(StrMethodFormatter(_NUMBER))


_FORMS: dict[Form, Callable[[Axes, Chart], None]] = {
    Form.STACKED: _stacked,
    Form.GROUPED: _grouped,
    Form.LINES: _lines,
    Form.TIMELINE: _timeline,
}
