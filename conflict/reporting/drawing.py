"""
Draws charts with matplotlib: as SVG for a page, where colours follow the theme, and as SVG and PNG files.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET  # only of SVG that matplotlib wrote here

import numpy as np
import pyarrow as pa

from conflict.reporting.html import Html
from conflict.reporting.parts import Chart, Form, shown
from conflict.shown_text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["INK", "NARROW", "PAPER", "SERIES", "THEME", "WIDE", "draw", "inline_svg"]

INK, FAINT, PAPER = "#24292f", "#d0d7de", "#ffffff"
# Colours that people who do not see all of them tell apart, and that stay apart in grey.
SERIES = ("#0b66b3", "#e08a00", "#2a9d66", "#c0457a", "#7a5cc0", "#7d8590")
# What each colour is called in the style sheet of a page.
THEME = {INK: "--ink", FAINT: "--faint", PAPER: "--paper", **{each: f"--series-{n}" for n, each in enumerate(SERIES)}}
WIDE, NARROW = 8.0, 4.1  # inches
_COLOUR = re.compile("#[0-9a-f]{6}")
_REFERENCE = re.compile(r"#([\w.-]+)")
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_DASHES = ("-", "--", ":", "-.")  # so that lines on top of each other are all seen
_MOST_LABEL = 34  # characters of a label beside a bar; longer ones are cut in the middle


def draw(chart: Chart, kind: str, width: float = WIDE) -> bytes:
    """
    Return a chart as a file, in the light theme.

    Args:
        chart: The chart.
        kind: ``svg`` or ``png``.
        width: Its width in inches.
    """
    import matplotlib as mpl  # noqa: PLC0415  # it may have to look for all fonts first
    from matplotlib.figure import Figure  # noqa: PLC0415  # as above

    settings: Any = {
        "font.family": "sans-serif",
        "font.size": 9,
        "text.parse_math": False,  # names have dollar signs
        "svg.fonttype": "none",
        "svg.hashsalt": f"{chart.name}-{width}",
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
        "axes.edgecolor": FAINT,
        "grid.color": FAINT,
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a browser has other fonts
        figure = Figure(figsize=(width, _height(chart, width)), layout="constrained", facecolor=PAPER)
        axes = figure.add_subplot(facecolor=PAPER)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        _FORMS[chart.form](axes, chart)
        series = chart.data.num_columns - 1
        if series > 1:
            figure.legend(loc="outside upper left", ncols=min(series, _legend_columns(width)), frameon=False)
        out = io.BytesIO()
        figure.savefig(out, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
    return out.getvalue()


def inline_svg(chart: Chart, width: float) -> Html:
    """Return a chart as an element of a page, with the colours of the page's theme."""
    for prefix, space in (("", _SVG), ("xlink", _XLINK)):
        ET.register_namespace(prefix, space)
    root = ET.fromstring(draw(chart, "svg", width))  # noqa: S314  # written above
    for metadata in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(metadata)
    used = {name for each in root.iter() for value in each.attrib.values() for name in _REFERENCE.findall(value)}
    for each in root.iter():
        if each.get("id") not in used:
            each.attrib.pop("id", None)
        for name in ("style", "fill", "stroke"):
            if name in each.attrib:
                each.set(name, _COLOUR.sub(_themed, each.attrib[name]))
    root.attrib.pop("height", None)
    root.attrib.update({"width": "100%", "role": "img", "aria-label": one_line(chart.title)})
    return Html(ET.tostring(root, "unicode"))


def _themed(found: re.Match[str]) -> str:
    name = THEME.get(found[0])
    return f"var({name})" if name else found[0]


def _height(chart: Chart, width: float) -> float:
    """Return the height in inches: bars need as much as there are, lines always the same; a legend needs its own."""
    series: int = chart.data.num_columns - 1
    legend = 0.2 * -(-series // _legend_columns(width)) if series > 1 else 0.0
    if chart.form not in (Form.STACKED, Form.GROUPED):
        return 2.8 + legend
    rows: int = chart.data.num_rows
    bars = rows * (series if chart.form is Form.GROUPED else 1)
    return 0.6 + legend + (0.16 if chart.form is Form.GROUPED else 0.27) * bars + 0.08 * rows


def _legend_columns(width: float) -> int:
    return 3 if width > NARROW else 1


def _numbers(chart: Chart) -> list[tuple[str, np.ndarray, str]]:
    """Return name, numbers and colour of each series; NaN where there is none."""
    return [
        (one_line(name), chart.data[name].to_numpy().astype(float), SERIES[number % len(SERIES)])
        for number, name in enumerate(chart.data.column_names[1:])
    ]


def _stacked(axes: Axes, chart: Chart) -> None:
    places, left = _named_places(axes, chart), np.zeros(chart.data.num_rows)
    for name, numbers, colour in _numbers(chart):
        axes.barh(places, numbers, 0.7, left, color=colour, label=name)
        left = left + np.nan_to_num(numbers)
    _with_totals(axes, places, left)


def _grouped(axes: Axes, chart: Chart) -> None:
    places, series = _named_places(axes, chart), _numbers(chart)
    thick = 0.8 / len(series)
    for place, (name, numbers, colour) in enumerate(series):
        at = places + (place - (len(series) - 1) / 2) * thick
        axes.barh(at, numbers, thick * 0.9, color=colour, label=name)
        _with_totals(axes, at, numbers)


def _with_totals(axes: Axes, places: np.ndarray, ends: np.ndarray) -> None:
    """Write the number at the end of each bar that has a length."""
    axes.margins(x=0.16)
    for place, end in zip(places, ends, strict=True):
        if end and not np.isnan(end):
            axes.annotate(shown(float(end)), (end, place), (3, 0), textcoords="offset points", va="center", fontsize=8)


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
    right = chart.data.column(0).to_numpy()
    for place, (name, numbers, colour) in enumerate(_numbers(chart)):
        there = ~np.isnan(numbers)
        style: Any = {"color": colour, "linestyle": _DASHES[place % len(_DASHES)], "label": name}
        axes.plot(right[there], numbers[there], marker="o", markersize=3.5, linewidth=1.8, **style)
    _upright(axes, chart)
    axes.set_xlabel(one_line(chart.over))


def _timeline(axes: Axes, chart: Chart) -> None:
    from matplotlib import dates as mdates  # noqa: PLC0415  # as in `draw`

    moments = mdates.date2num(chart.data.column(0).to_pylist())  # type: ignore[no-untyped-call]
    step = float(np.diff(moments).min()) if len(moments) > 1 else 1 / 86400
    series = _numbers(chart)
    for place, (name, numbers, colour) in enumerate(series):
        at = moments + (place + 0.5) * step / len(series)
        axes.bar(at, numbers, 0.95 * step / len(series), color=colour, label=name)
    locator = mdates.AutoDateLocator(maxticks=5)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    _upright(axes, chart)
    axes.set_xlabel(one_line(chart.over))


def _upright(axes: Axes, chart: Chart) -> None:
    axes.set_ylim(bottom=0)
    axes.set_ylabel(one_line(chart.measure))
    axes.grid(axis="y", linewidth=0.5)
    _few_ticks(axes.yaxis, chart)


def _few_ticks(axis: Axis, chart: Chart) -> None:
    """Give an axis of numbers some ticks, at whole ones if all numbers are whole."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter  # noqa: PLC0415  # as in `draw`

    whole = all(pa.types.is_integer(field.type) for field in list(chart.data.schema)[1:])
    axis.set_major_locator(MaxNLocator(4, integer=whole))
    axis.set_major_formatter(StrMethodFormatter("{x:,g}"))


_FORMS: dict[Form, Callable[[Axes, Chart], None]] = {
    Form.STACKED: _stacked,
    Form.GROUPED: _grouped,
    Form.LINES: _lines,
    Form.TIMELINE: _timeline,
}
