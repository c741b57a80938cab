"""
A story as a picture: a lane of time per cluster, with an arrow for every operation that travels.

Time runs downwards, one line per event; it is not to scale, so that what happens in one epoch can be read.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conflict.explaining.events import EventKind, StoryEvent, plain_value, verb
from conflict.explaining.story import Story
from conflict.rules.decision import came_back_words
from conflict.surroundings import load_matplotlib
from ndb_formats.types.values import Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_APPLIED, _REJECTED, _REFRESHED, _QUIET = "#2f6f4f", "#c8553d", "#4c78a8", "#8a8f98"
_COLUMNS = 44  # characters of a line of text
_HEAD, _FOOT = 0.75, 0.95  # inches above and below the lanes
_MOST_LINES, _LINE, _MOST_EVENTS = 3, 0.17, 60  # lines of an event, inches of a line


def draw_story(story: Story, path: Path) -> None:
    """
    Draw a story; the file appears whole.

    Of more than 60 events, those that answer what was asked are drawn, or the last 60.

    Args:
        story: The story.
        path: The file, ``*.png`` or ``*.svg``.
    """
    load_matplotlib()
    import matplotlib as mpl  # noqa: PLC0415  # only for a picture
    from matplotlib.figure import Figure  # noqa: PLC0415  # only for a picture

    settings: Any = {"font.family": "sans-serif", "font.size": 8, "svg.fonttype": "none", "svg.hashsalt": "story"}
    events = story.events
    if len(events) > _MOST_EVENTS:
        events = tuple(event for event in events if event.number in story.chosen) or events[-_MOST_EVENTS:]
    texts = {event.number: _text(event, story) for event in events}
    heights = [max(len(texts[event.number].splitlines()), 2) * _LINE + 0.12 for event in events]
    with mpl.rc_context(settings):
        tall = sum(heights) + _HEAD + _FOOT
        figure = Figure(figsize=(9.5, tall))
        axes = figure.add_axes((0.02, 0, 0.96, 1 - _HEAD / tall))
        places, depth = dict[int, float](), 0.0
        for event, height in zip(events, heights, strict=True):
            places[event.number] = depth + height / 2
            depth += height
        _draw(axes, story, places, texts, depth)
        figure.text(0.02, 1 - 0.22 / tall, _title(story), size=11, weight="bold", va="center")
        figure.text(
            0.02, 1 - 0.46 / tall, _subtitle(story, len(events)), size=8, color="#444444", va="center", parse_math=False
        )
        _legend(axes)
        draft = path.with_name(f".{path.name}.part")
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
        figure.savefig(draft, format=path.suffix[1:].lower(), dpi=150, metadata=metadata)
    draft.replace(path)


def _draw(axes: Axes, story: Story, places: Mapping[int, float], texts: Mapping[int, str], depth: float) -> None:
    names = list(dict.fromkeys(event.cluster for event in story.events))
    names = [name for name in story.ends if name in names] or names
    lanes = {name: 0.38 + 0.24 * place / max(len(names) - 1, 1) for place, name in enumerate(names)}
    axes.set_xlim(0, 1)
    axes.set_ylim(depth + _FOOT, -0.35)
    axes.axis("off")
    for name, lane in lanes.items():
        axes.plot([lane, lane], [0, depth], color="#c5c9d0", linewidth=2, zorder=1)
        axes.text(lane, -0.2, name, ha="center", va="center", size=11, weight="bold")
        end = story.ends.get(name)
        if end is not None:
            ends = _wrapped(_row(end.row) or "no row") if end.known else ["not known"]
            side = "right" if name == names[0] else "left"
            place = lane - 0.02 if side == "right" else lane + 0.02
            text = "\n".join(["at the end", *ends])
            axes.text(place, depth + 0.1, text, ha=side, va="top", weight="bold", parse_math=False)
    for event in story.events:
        if event.number in places:
            _draw_event(axes, event, lanes, places, texts[event.number], first=names[0])
    if story.marked is not None and story.marked in places:
        lane = lanes[story.event(story.marked).cluster]
        axes.plot([lane], [places[story.marked]], "o", color="#222222", markersize=13, fillstyle="none", zorder=3)


def _draw_event(
    axes: Axes,
    event: StoryEvent,
    lanes: Mapping[str, float],
    places: Mapping[int, float],
    text: str,
    *,
    first: str,
) -> None:
    lane, place, color = lanes[event.cluster], places[event.number], _color(event)
    start = event.cause_number
    travels = event.kind in (EventKind.JUDGED, EventKind.NOT_APPLIED) and event.source in lanes
    if travels and start is not None and start in places:
        # A refresh or a reflected operation starts from the event at which it was logged.
        style = {"arrowstyle": "-|>", "color": color, "linewidth": 1.2, "shrinkA": 4, "shrinkB": 5}
        if event.kind is EventKind.NOT_APPLIED:
            style["linestyle"] = ":"
        axes.annotate("", (lane, place), (lanes[event.source], places[start]), arrowprops=style, zorder=2)
    marker = "X" if color == _REJECTED else "o"
    hollow = event.kind is EventKind.HEARD
    axes.plot(
        [lane], [place], marker, color=color, markersize=7, zorder=3, markerfacecolor="white" if hollow else color
    )
    left = event.cluster == first
    axes.text(
        lane - 0.02 if left else lane + 0.02,
        place,
        text,
        ha="right" if left else "left",
        va="center",
        color={_QUIET: "#666666", _REJECTED: _REJECTED}.get(color, "#222222"),
        linespacing=1.15,
        parse_math=False,
        zorder=4,
    )


def _legend(axes: Axes) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415  # only for a picture

    marks = (
        ("o", "#222222", "committed by a user"),
        ("o", _APPLIED, "applied"),
        ("X", _REJECTED, "not applied"),
        ("o", _REFRESHED, "refreshed"),
    )
    handles = [Line2D([], [], marker=mark, color=color, linestyle="", label=label) for mark, color, label in marks]
    heard = Line2D(
        [], [], marker="o", color=_QUIET, markerfacecolor="white", linestyle="", label="own epochs came back"
    )
    axes.legend(handles=[*handles, heard], loc="lower center", ncols=5, frameon=False, handletextpad=0.1, fontsize=8)


def _color(event: StoryEvent) -> str:
    if event.kind in (EventKind.HEARD, EventKind.DEFINED):
        return _QUIET
    if event.kind is EventKind.REFRESHED:
        return _REFRESHED
    if event.kind is EventKind.COMMITTED:
        return "#222222"
    return _APPLIED if event.verdict in ("APPLIED", "MERGED") or event.kind is EventKind.LOGGED else _REJECTED


def _text(event: StoryEvent, story: Story) -> str:
    """Return what is written beside an event."""
    time = f"{event.time:%H:%M:%S.%f}"[:-3] if event.time is not None else ""
    what = "refresh" if event.refresh else verb(event.operation)
    asked = "asked for: " if event.number == story.marked else ""
    lines = [f"{event.number}  {time}  {asked}{_headline(event, what)}{_won(event)}"]
    if event.kind is EventKind.DEFINED:
        lines += _wrapped(event.sentence)
    elif event.kind is EventKind.HEARD:
        lines.append(f"up to {event.source_epoch}")
    elif event.kind is EventKind.COMMITTED:
        lines += _wrapped(_row(event.before if event.after is None else event.after))
    elif event.kind is EventKind.JUDGED and event.verdict != "APPLIED":
        lines += _wrapped(_short(event, story))
    if story.parted_by == event.number:
        lines.append("this parted the clusters")
    return "\n".join(lines[:_MOST_LINES])


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


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _COLUMNS, max_lines=_MOST_LINES - 1, placeholder=" ...")


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
    when = "" if not days else f"   {days[0]} UTC"
    more = f"   {drawn} of {len(story.events)} events" if drawn < len(story.events) else ""
    return _shown(f"{functions}{when}{more}")


def _shown(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)
