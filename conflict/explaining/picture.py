"""
A story as a picture: a lane of time per cluster, with an arrow for every operation that travels.

Time runs downwards, one line per event; it is not to scale, so that what happens in one epoch can be read.
"""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from conflict.explaining.events import EventKind, StoryEvent, plain_value, verb
from conflict.explaining.story import Story, StoryEnd
from conflict.rules.decision import came_back_words
from conflict.surroundings import load_matplotlib
from conflict.telling.palette import BAD, CLUSTERS, GOOD, INK, PAPER, QUIET, REFRESHED, SERIES
from conflict.telling.svg import accessible_svg, svg_file
from ndb_formats.types.values import Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_HEAD, _FOOT = 0.75, 0.95  # inches above and below the lanes
_GAP = 0.18  # inches from a lane to its text
# Shape, colour and meaning; a ring is hollow.
_MARKS = {
    "user": ("s", INK, "committed by a user"),
    "applied": ("o", GOOD, "applied"),
    "rejected": ("X", BAD, "not applied"),
    "refreshed": ("D", REFRESHED, "refreshed"),
    "quiet": ("o", QUIET, "own epochs came back"),
}
_LINE, _STEP, _MOST_EVENTS = 0.17, 0.155, 60  # inches of a line of text and its space, and of the line


@attrs.frozen
class _Form:
    """
    How much room there is.

    Attributes:
        width: Inches of the picture.
        lanes: Where the first lane is, and how far the last one from it, as parts of the width.
        columns: Characters of a line of text.
        subtitle: Characters of the line below the title.
        lines: Of an event, at most.
        legend_columns: Of the legend.
        beside: Whether the text of the first lane stands to its left; else all text is to the right, with its cluster.
    """

    width: float
    lanes: tuple[float, float]
    columns: int
    subtitle: int
    lines: int
    legend_columns: int
    beside: bool


_WIDE = _Form(8.0, (0.4, 0.2), 44, 130, 3, 5, True)
_NARROW = _Form(3.6, (0.04, 0.14), 40, 52, 4, 2, False)


@attrs.frozen
class _Side:
    """Where the text of a lane stands, and its alignment."""

    place: float
    align: str

    @classmethod
    def of(cls, name: str, lanes: Mapping[str, float], form: _Form) -> _Side:
        """Return the side of a lane."""
        if not form.beside:
            return cls(max(lanes.values()) + _GAP / form.width, "left")
        left = name == next(iter(lanes))
        return cls(
            lanes[name] - _GAP / form.width if left else lanes[name] + _GAP / form.width, "right" if left else "left"
        )


def draw_story(story: Story, path: Path) -> None:
    """
    Draw a story; the file appears whole.

    Of more than 60 events, those that answer what was asked are drawn, or the last 60.

    Args:
        story: The story.
        path: The file, ``*.png`` or ``*.svg``.
    """
    kind = path.suffix[1:].lower()
    drawn = _drawn(story, kind, _WIDE)
    draft = path.with_name(f".{path.name}.part")
    draft.write_bytes(svg_file(drawn, _svg_title(story), _described(story)) if kind == "svg" else drawn)
    draft.replace(path)


def story_svg(story: Story, *, narrow: bool) -> str:
    """Return a story as an element of a page, with the colours of its theme; narrow for a telephone."""
    drawn = _drawn(story, "svg", _NARROW if narrow else _WIDE)
    return accessible_svg(drawn, _svg_title(story), _described(story), in_page=True)


def _drawn(story: Story, kind: str, form: _Form) -> bytes:
    load_matplotlib()
    import matplotlib as mpl  # noqa: PLC0415  # only for a picture
    from matplotlib.figure import Figure  # noqa: PLC0415  # only for a picture

    settings: Any = {"font.family": "sans-serif", "font.size": 8, "svg.fonttype": "none", "text.color": INK}
    settings |= {"svg.hashsalt": f"story-{form.width}", "text.parse_math": False}
    events = _events(story)
    texts = {event.number: _text(event, story, form) for event in events}
    heights = [max(len(texts[event.number].splitlines()), 2) * _LINE + 0.12 for event in events]
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a browser has other fonts
        foot = _FOOT + 4 * _LINE * (not form.beside)
        tall = sum(heights) + _HEAD + foot
        figure = Figure(figsize=(form.width, tall), facecolor=PAPER)
        axes = figure.add_axes((0.02, 0, 0.96, 1 - _HEAD / tall))
        places, depth = dict[int, float](), 0.0
        for event, height in zip(events, heights, strict=True):
            places[event.number] = depth + height / 2
            depth += height
        axes.set_ylim(depth + foot, -0.35)
        _draw(axes, story, places, texts, depth, form)
        figure.text(0.02, 1 - 0.22 / tall, _title(story), size=11, weight="bold", va="center")
        subtitle = textwrap.shorten(_subtitle(story, len(events)), form.subtitle, placeholder=" ...")
        figure.text(0.02, 1 - 0.46 / tall, subtitle, size=8, color=QUIET, va="center")
        _legend(axes, form)
        out = io.BytesIO()
        figure.savefig(out, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return out.getvalue()


def _events(story: Story) -> Sequence[StoryEvent]:
    """Return the events that are drawn."""
    if len(story.events) <= _MOST_EVENTS:
        return story.events
    return tuple(event for event in story.events if event.number in story.chosen) or story.events[-_MOST_EVENTS:]


def _draw(
    axes: Axes, story: Story, places: Mapping[int, float], texts: Mapping[int, str], depth: float, form: _Form
) -> None:
    names = list(dict.fromkeys(event.cluster for event in story.events))
    names = [name for name in story.ends if name in names] or names
    first, between = form.lanes
    lanes = {name: first + between * place / max(len(names) - 1, 1) for place, name in enumerate(names)}
    axes.set_xlim(0, 1)
    axes.axis("off")
    for number, (name, lane) in enumerate(lanes.items()):
        colour = (*CLUSTERS, *SERIES)[number % (len(CLUSTERS) + len(SERIES))]
        axes.plot([lane, lane], [0, depth], color=colour, linewidth=2, zorder=1)
        axes.text(lane, -0.2, _shown(name), ha="center", va="center", size=11, weight="bold", color=colour)
    sides = {name: _Side.of(name, lanes, form) for name in lanes}
    ends = {name: _end(story.ends[name], form) for name in lanes if name in story.ends}
    if form.beside:
        for name, lines in ends.items():
            _write(axes, sides[name], depth + 0.15, ["at the end", *lines], weight="bold")
    else:
        lines = [line for name, own in ends.items() for line in (f"{_shown(name)} at the end", *own)]
        _write(axes, sides[names[0]], depth + 0.15, lines, weight="bold")
    for event in story.events:
        if event.number in places:
            _draw_event(axes, event, lanes, places, texts[event.number], sides[event.cluster])
    if story.marked is not None and story.marked in places:
        lane = lanes[story.event(story.marked).cluster]
        axes.plot([lane], [places[story.marked]], "o", color=INK, markersize=13, fillstyle="none", zorder=3)


def _end(end: StoryEnd, form: _Form) -> list[str]:
    return _wrapped(_row(end.row) or "no row", form) if end.known else ["not known"]


def _draw_event(
    axes: Axes,
    event: StoryEvent,
    lanes: Mapping[str, float],
    places: Mapping[int, float],
    text: str,
    side: _Side,
) -> None:
    lane, place, kind = lanes[event.cluster], places[event.number], _kind(event)
    marker, color, _ = _MARKS[kind]
    start = event.cause_number
    travels = event.kind in (EventKind.JUDGED, EventKind.NOT_APPLIED) and event.source in lanes
    if travels and start is not None and start in places:
        # A refresh or a reflected operation starts from the event at which it was logged.
        style = {"arrowstyle": "-|>", "color": color, "linewidth": 1.2, "shrinkA": 4, "shrinkB": 5}
        if kind == "rejected":
            style["linestyle"] = ":" if event.kind is EventKind.NOT_APPLIED else "--"
        axes.annotate("", (lane, place), (lanes[event.source], places[start]), arrowprops=style, zorder=2)
    inside = PAPER if event.kind is EventKind.HEARD else color
    axes.plot([lane], [place], marker, color=color, markersize=7, zorder=3, markerfacecolor=inside)
    lines = text.splitlines()
    shade = color if kind in ("quiet", "rejected") else INK
    _write(axes, side, place - (len(lines) - 1) * _STEP / 2, lines, color=shade, zorder=4)


def _write(axes: Axes, side: _Side, first: float, lines: Sequence[str], **style: Any) -> None:
    """Write lines below each other, each aligned by whatever shows it: its fonts are others than those here."""
    for number, line in enumerate(lines):
        axes.text(side.place, first + number * _STEP, line, ha=side.align, va="center", **style)


def _legend(axes: Axes, form: _Form) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415  # only for a picture

    handles = [
        Line2D([], [], marker=mark, color=color, linestyle="", label=label, markerfacecolor=PAPER if quiet else color)
        for mark, color, label, quiet in ((*each, name == "quiet") for name, each in _MARKS.items())
    ]
    columns = form.legend_columns
    axes.legend(handles=handles, loc="lower center", ncols=columns, frameon=False, handletextpad=0.1, fontsize=8)


def _kind(event: StoryEvent) -> str:
    """Return which of the marks an event has."""
    if event.kind in (EventKind.HEARD, EventKind.DEFINED):
        return "quiet"
    if event.kind is EventKind.REFRESHED:
        return "refreshed"
    if event.kind is EventKind.COMMITTED:
        return "user"
    return "applied" if event.verdict in ("APPLIED", "MERGED") or event.kind is EventKind.LOGGED else "rejected"


def _svg_title(story: Story) -> str:
    return f"What happened to {story.title}" if story.table else story.title


def _described(story: Story) -> str:
    """Return the picture in words: each event that is drawn, and how the row ends."""
    told = (f"{_text(event, story, _WIDE)} on {event.cluster}" for event in _events(story))
    return "; ".join(" ".join(each.split()) for each in (*told, *story.ending))


def _text(event: StoryEvent, story: Story, form: _Form) -> str:
    """Return what is written beside an event."""
    time = f"{event.time:%H:%M:%S.%f}"[:-3] if event.time is not None else ""
    what = "refresh" if event.refresh else verb(event.operation)
    asked = "asked for: " if event.number == story.marked else ""
    where = "" if form.beside else f"{_shown(event.cluster)}  "
    lines = [f"{event.number}  {where}{time}  {asked}{_headline(event, what)}{_won(event)}"]
    if event.kind is EventKind.DEFINED:
        lines += _wrapped(event.sentence, form)
    elif event.kind is EventKind.HEARD:
        lines.append(f"up to {event.source_epoch}")
    elif event.kind is EventKind.COMMITTED:
        lines += _wrapped(_row(event.before if event.after is None else event.after), form)
    elif event.kind is EventKind.JUDGED and event.verdict != "APPLIED":
        lines += _wrapped(_short(event, story), form)
    if story.parted_by == event.number:
        lines.append("this parted the clusters")
    return "\n".join(lines[: form.lines])


def _headline(event: StoryEvent, what: str) -> str:
    heads = {
        EventKind.COMMITTED: f"{what}, committed",
        EventKind.REFRESHED: "the row is refreshed",
        EventKind.HEARD: "own epochs came back",
        EventKind.LOGGED: f"{what} by the applier",
        EventKind.DEFINED: "the definition changes",
        EventKind.NOT_APPLIED: f"{what} of {event.cause_number}: not applied yet",
    }
    if event.kind in heads:
        return heads[event.kind]
    of = "" if event.cause_number is None else f" of {event.cause_number}"
    return f"{what}{of}: {(event.verdict or '').lower().replace('_', ' ')}"


def _won(event: StoryEvent) -> str:
    """Return which event won over a rejected one, if it is in the story."""
    return f", {event.cites[0]} won" if event.cites and event.kind is EventKind.JUDGED else ""


def _short(event: StoryEvent, story: Story) -> str:
    """Return in few words what was compared."""
    cause = (event.own_cause or event.cause or "").lower().replace("_", " ")
    if event.cause == "TRANS_IN_CONFLICT":
        return "its transaction is in conflict" + (f": {cause}" if event.own_cause else "")
    if event.stored is None:
        return cause
    if (story.functions.get((event.cluster, event.table)) or "").startswith("NDB$EPOCH"):
        return f"the row is of epoch {event.stored}, and {came_back_words(event.incoming)}"
    return f"{cause}: {event.incoming} against the row's {event.stored}"


def _wrapped(text: str, form: _Form) -> list[str]:
    return textwrap.wrap(text, form.columns, max_lines=form.lines - 1, placeholder=" ...")


def _row(row: Mapping[str, Value] | None) -> str:
    return "" if row is None else ", ".join(f"{name}={_value(value)}" for name, value in row.items())


def _value(value: Value) -> str:
    text = "NULL" if value is None else str(plain_value(value))
    return "".join(each if each.isprintable() else "?" for each in text[:24])


def _title(story: Story) -> str:
    return _shown(story.title if story.transaction else f"{story.table}  {story.key}")


def _subtitle(story: Story, drawn: int) -> str:
    functions = ", ".join(f"{name}: {text or 'no function'}" for (name, _), text in story.functions.items())
    days = sorted({f"{event.time:%Y-%m-%d}" for event in story.events if event.time is not None})
    when = "" if not days else f"; {days[0]} UTC"
    more = f"; {drawn} of {len(story.events)} events" if drawn < len(story.events) else ""
    return _shown(f"{functions}{when}{more}")


def _shown(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)
