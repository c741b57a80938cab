"""
What happens on two clusters, as a picture: a lane each, time downwards, arrows from one to the other.

It is SVG on paper of its own, so that it can be read in a notebook or a page of any theme.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import attrs

from conflict.telling.html import Html, element
from conflict.telling.palette import BAD, CLUSTERS, DOUBTFUL, GOOD, INK, PAPER, QUIET
from conflict.telling.svg import accessible_svg
from conflict.telling.value import Tone

_WIDE, _BETWEEN = 880, 130  # of the picture, and from one lane to the other
_LINE, _GAP, _HEAD = 15, 14, 34  # height of a line, space between two rows, and above the first one
_LETTERS = 50  # of a line
_BESIDE = 14  # from a lane to its text
_MARK = 5
_COLOURS = {Tone.GOOD: GOOD, Tone.BAD: BAD, Tone.DOUBTFUL: DOUBTFUL, Tone.QUIET: QUIET, None: INK}


@attrs.frozen
class Lane:
    """
    A lane.

    Attributes:
        name: Its name.
        start: What stands above its events, line by line.
        end: What stands below them.
    """

    name: str
    start: tuple[str, ...] = ()
    end: tuple[str, ...] = ()


@attrs.frozen
class LaneEvent:
    """
    Something that happens on a lane.

    Attributes:
        lane: Number of the lane, 0 or 1.
        row: Its row, from 1; no two events of a lane are in one row.
        lines: What happens, line by line; long lines are folded.
        causes: Lane and row of the events that arrows come from.
        tone: How good it is; None for what a user does.
    """

    lane: int
    row: int
    lines: tuple[str, ...]
    causes: tuple[tuple[int, int], ...] = ()
    tone: Tone | None = None


def lanes_svg(lanes: Sequence[Lane], events: Sequence[LaneEvent], title: str = "") -> str:
    """
    Return two lanes as SVG.

    Args:
        lanes: The lanes, from left to right.
        events: What happens, in any order.
        title: What the picture shows; by default, that something happens on these lanes.
    """
    folded = {(each.lane, each.row): _folded(each.lines) for each in events}
    rows = max((each.row for each in events), default=0)
    heights = [
        _GAP + _LINE * max((len(folded[lane, row]) for lane in (0, 1) if (lane, row) in folded), default=1)
        for row in range(1, rows + 1)
    ]
    head = [_folded(lane.start) for lane in lanes]
    tops = list(accumulate(heights, initial=_HEAD + _LINE * max(map(len, head))))
    middles = {row: (tops[row - 1] + tops[row]) / 2 for row in range(1, rows + 1)}
    foot = [_folded(lane.end) for lane in lanes]
    height = tops[-1] + _GAP + _LINE * max(map(len, foot))
    shapes = [
        *_lines(lanes, tops[-1]),
        *_ends(head, _HEAD),
        *_ends(foot, tops[-1] + _GAP),
        *(shape for each in events for shape in _arrows(each, middles)),
        *(shape for each in events for shape in _event(each, middles[each.row], folded[each.lane, each.row])),
    ]
    drawn = element(
        "svg",
        element("defs", *map(_head, filter(None, _COLOURS))),
        element("rect", width=str(_WIDE), height=f"{height:g}", fill=PAPER),
        *shapes,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDE} {height:g}",
        width="100%",
        style=f"max-width: {_WIDE}px; font: 12px sans-serif",
        fill=INK,
    )
    title = title or f"What happens on {' and '.join(lane.name for lane in lanes)}"
    return accessible_svg(drawn.text, title, _described(lanes, events))


def _described(lanes: Sequence[Lane], events: Sequence[LaneEvent]) -> str:
    """Return the picture in words."""
    started = [f"{lane.name} at first: {', '.join(lane.start)}" for lane in lanes if lane.start]
    ended = [f"{lane.name} at the end: {', '.join(lane.end)}" for lane in lanes if lane.end]
    steps = [
        f"{each.row}, {lanes[each.lane].name}: {', '.join(each.lines)}"
        for each in sorted(events, key=lambda each: (each.row, each.lane))
    ]
    return "; ".join([*started, *steps, *ended]) or "Nothing."


def _x(lane: int) -> float:
    return _WIDE / 2 + (lane - 0.5) * _BETWEEN


def _lines(lanes: Sequence[Lane], bottom: float) -> Iterator[Html]:
    """Yield the lanes, with their names above."""
    for place, lane in enumerate(lanes):
        x = f"{_x(place):g}"
        yield element(
            "line", x1=x, y1=f"{_HEAD - 12}", x2=x, y2=f"{bottom:g}", stroke=CLUSTERS[place % 2], stroke_width="2"
        )
        colour = CLUSTERS[place % 2]
        yield element(
            "text", lane.name, x=x, y="16", text_anchor="middle", font_weight="bold", font_size="14", fill=colour
        )


def _ends(ends: Sequence[Sequence[str]], top: float) -> Iterator[Html]:
    """Yield what stands at the ends of lanes."""
    for lane, lines in enumerate(ends):
        yield from _text(lane, top + _LINE * len(lines) / 2, lines, font_weight="bold")


def _event(event: LaneEvent, y: float, lines: Sequence[str]) -> Iterator[Html]:
    """Yield the mark and the text: a square for what a user does, a cross for what is bad, a ring for what is quiet."""
    x, colour = _x(event.lane), _COLOURS[event.tone]
    if event.tone is Tone.BAD:
        path = f"M{x - _MARK:g} {y - _MARK:g}l{2 * _MARK} {2 * _MARK}m0 {-2 * _MARK}l{-2 * _MARK} {2 * _MARK}"
        yield element("path", d=path, stroke=colour, stroke_width="2.5", fill="none")
    elif event.tone is None:
        side = str(2 * _MARK - 1)
        yield element("rect", x=f"{x - _MARK + 0.5:g}", y=f"{y - _MARK + 0.5:g}", width=side, height=side, fill=colour)
    else:
        inside = PAPER if event.tone is Tone.QUIET else colour
        yield element("circle", cx=f"{x:g}", cy=f"{y:g}", r=str(_MARK), fill=inside, stroke=colour, stroke_width="1.5")
    yield from _text(event.lane, y, lines)


def _text(lane: int, y: float, lines: Sequence[str], **style: str) -> Iterator[Html]:
    """Yield lines of text around a height, outside of their lane."""
    x = _x(lane) + (_BESIDE if lane else -_BESIDE)
    first = y - _LINE * (len(lines) - 1) / 2 + 4
    for place, line in enumerate(lines):
        anchor = "start" if lane else "end"
        yield element("text", line, x=f"{x:g}", y=f"{first + place * _LINE:g}", text_anchor=anchor, **style)


def _arrows(event: LaneEvent, middles: Mapping[int, float]) -> Iterator[Html]:
    """Yield the arrows that end at an event."""
    colour, head = _COLOURS[event.tone], f"url(#{_head_name(event.tone)})"
    for lane, row in event.causes:
        way = 1 if event.lane > lane else -1
        yield element(
            "line",
            x1=f"{_x(lane) + way * _MARK:g}",
            y1=f"{middles[row]:g}",
            x2=f"{_x(event.lane) - way * 2 * _MARK:g}",
            y2=f"{middles[event.row]:g}",
            stroke=colour,
            marker_end=head,
            **({"stroke_dasharray": "5 3"} if event.tone is Tone.BAD else {}),
        )


def _head_name(tone: Tone | None) -> str:
    return f"lane-{(tone or Tone.QUIET).value}"


def _head(tone: Tone) -> Html:
    """Return the head of the arrows of a tone."""
    path = element("path", d="M0 0L8 4L0 8z", fill=_COLOURS[tone])
    return Html(
        element("marker", path, id=_head_name(tone), viewBox="0 0 8 8", refX="7", refY="4", orient="auto").text.replace(
            "<marker ", '<marker markerWidth="8" markerHeight="8" ', 1
        )
    )


def _folded(lines: Sequence[str]) -> list[str]:
    return [part for line in lines for part in textwrap.wrap(line, _LETTERS) or [""]]
