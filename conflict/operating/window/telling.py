"""
What is told of the window of conflicts over time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from conflict.operating.window.pictures import charts_of, name_of
from conflict.telling.part import Part
from conflict.telling.shown_text import counted, listed, one_line
from conflict.telling.value import Table, Telling

Document = Mapping[str, Any]

_FIRST_ROWS, _REPORT_ROWS = 12, 40  # of the table by time
_MOST_STOPS = 5
_SECOND = 1000.0  # ms
_CLOSE = 3  # digits of a figure
_SHARES = ("p50", "p99", "max")
_NO_YEAR, _NO_SECONDS = 5, 16  # where these begin and end in a moment
_UNITS = {"epoch": "epoch", "minute": "minute (UTC)", "hour": "hour (UTC)"}


def tell_window(found: Document, rows: int = _FIRST_ROWS) -> Telling:
    """
    Return what is told of a document of `conflict.operating.window.window.Window`.

    Args:
        found: The document.
        rows: Most rows of the table by time.
    """
    return Telling(
        "The window of conflicts over time",
        " ".join([_lags(found["channels"]), *_left(found["channels"]), *_beginning(found)]),
        tuple(map(_clock_words, found["clocks"])),
        tuple(_tables(found, rows)),
        tuple(charts_of(found)),
        alarms=[f"The log of {name} cannot be read to its end." for name, each in _cut(found)],
        warnings=tuple(_warnings(found)),
    )


def window_part(found: Document, source: str) -> Part:
    """Return the part of a report on the document, read from `source`."""
    names = listed([f"{each['source']} → {each['applier']}" for each in found["channels"]] or ["none"])
    asked = {"question": "How long did changes take to the other cluster, and could conflict there?", "channels": names}
    return Part(tell_window(found, _REPORT_ROWS), source, asked, {})


def _lags(channels: Sequence[Document]) -> str:
    """Return which side lags, in a sentence."""
    timed = [each for each in channels if each["applied_shown"]]
    if not timed:
        return "No log shows an epoch of another cluster as applied, so that nothing tells how long they took."
    by_median = sorted(timed, key=lambda each: each["applied_ms"]["p50"])
    fast, slow = by_median[0], by_median[-1]
    took = f"half of the epochs of {slow['source']} took {_time(slow['applied_ms']['p50'])} or less, 99 % "
    took += f"{_time(slow['applied_ms']['p99'])}"
    if len(timed) == 1:
        return f"{slow['applier']} applies epochs of {slow['source']}: {took}; nothing is known of the other direction."
    other = f"those of {fast['source']} to {fast['applier']} {_time(fast['applied_ms']['p50'])} and "
    other += _time(fast["applied_ms"]["p99"])
    bounds = [each["applied_within_ms"] for each in (fast, slow)]
    apart = slow["applied_ms"]["p50"] - fast["applied_ms"]["p50"]
    if None in bounds or apart <= sum(bounds):
        return f"Which side lags is not certain, as far as clocks tell: to {slow['applier']}, {took}; {other}."
    return f"{slow['applier']} lags: {took}; {other}."


def _left(channels: Sequence[Document]) -> Iterator[str]:
    """Yield what waits when the logs end, and since when."""
    for each in channels:
        still = next((stop for stop in each["stops"] if stop["end"] is None), None)
        if still is not None:
            yield (
                f"{each['applier']} is not shown to have applied anything from {each['source']} since "
                f"{_moment(still['begin'])}, for {still['seconds']:,.1f} s until its log ends; "
                f"{counted(each['left'], 'epoch waits', 'epochs wait')}."
            )


def _beginning(found: Document) -> Iterator[str]:
    """Yield when the clusters began to diverge."""
    told = found["beginning"]
    if told is None:
        yield "When clusters began to diverge is known of a result only; resolve the binlogs, and give that."
        return
    first, differing = told["first"], told["differing_rows"]
    if differing == 0:
        yield "The clusters end with the same rows."
    elif first is None:
        rows = "Rows may" if differing is None else f"{counted(differing, 'row')} {'ends' if differing == 1 else 'end'}"
        yield (
            f"{rows} end different; the result does not tell when this began."
            if differing is None
            else (f"{rows} different; the result does not tell when this began.")
        )
    else:
        when = _moment(first["time"]) if first["certain"] else f"at the latest {_moment(first['time'])}"
        row = one_line(f"{first['table']} {first['key']}")
        some = "" if told["looked_at"] == differing else f", of the {counted(told['looked_at'], 'row')} looked at"
        yield (
            f"The clusters began to diverge {when} (clock of {first['cluster']}){some}: the row {row} ends different, "
            f"and has been since {first['cluster']}'s epoch {first['epoch']}: {one_line(first['sentence'])}."
        )


def _clock_words(clocks: Document) -> str:
    first, second = clocks["first"], clocks["second"]
    if clocks["least_ms"] is None or clocks["most_ms"] is None:
        return (
            f"Nothing bounds the difference between the clocks of {first} and {second} from both sides: times between "
            "them are not corrected, and hold it. Conflict windows do not."
        )
    ahead = clocks["corrected_ms"]
    which = (
        f"that of {second} is taken to be {_time(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} that of {first}"
    )
    if clocks["moved"]:
        return f"The clocks of {first} and {second} moved against each other; {which}, on average."
    return (
        f"Clocks: {which} (between {_time(clocks['least_ms'])} and {_time(clocks['most_ms'])}). Times are by the clock "
        f"of {first}; those from one cluster to the other hold within {_time(clocks['within_ms'])}, conflict windows "
        "exactly."
    )


def _warnings(found: Document) -> Iterator[str]:
    for each in found["silent"]:
        yield f"The log of {each['applier']} shows no epoch of {each['source']} as applied."
    for each in found["clocks"]:
        if each["moved"]:
            yield f"No difference of the clocks of {each['first']} and {each['second']} fits all epochs."


def _cut(found: Document) -> list[tuple[str, Document]]:
    return [(name, each) for name, each in found["clusters"].items() if not each["whole"]]


def _tables(found: Document, rows: int) -> Iterator[Table]:
    channels = found["channels"]
    if channels:
        judged = channels[0]["conflicts"] is not None
        yield Table(
            "From one cluster to the other",
            ("channel", "applied p50", "p99", "longest", "window p50", "p99", "longest", "waiting", *_heading(judged)),
            [
                (
                    name_of(each),
                    *(_cell(each["applied_ms"][share]) for share in _SHARES),
                    *(_cell(each["window_ms"][share]) for share in _SHARES),
                    each["backlog"],
                    *([each["conflicts"]] if judged else []),
                )
                for each in channels
            ],
            note=_shown_words(channels),
        )
    yield Table(
        "Sizes of epochs",
        ("cluster", "epochs", "bytes p50", "p99", "largest", "rows p50", "p99", "largest", "largest epoch"),
        [
            (
                name,
                each["epochs"],
                *(each["bytes"][share] for share in _SHARES),
                *(each["rows"][share] for share in _SHARES),
                str(each["largest_epoch"]),
            )
            for name, each in found["clusters"].items()
        ],
        note="ndb_log_cache_size must hold the largest, or the server writes it to a temporary file first.",
    )
    yield from _stops(channels)
    if found["times"]:
        yield _by_time(found, rows)


def _shown_words(channels: Sequence[Document]) -> str:
    shown = (
        f"{name_of(each)}: {each['applied_shown']:,} applied, {each['window_shown']:,} come back" for each in channels
    )
    return f"Epochs that logs show ({'; '.join(shown)}); the others left no trace."


def _stops(channels: Sequence[Document]) -> Iterator[Table]:
    stops = [(each, stop) for each in channels for stop in each["stops"]]
    if stops:
        longest = sorted(stops, key=lambda pair: -pair[1]["seconds"])[:_MOST_STOPS]
        left = len(stops) - len(longest)
        yield Table(
            "Longest stops: nothing applied, although an epoch waited",
            ("channel", "from", "seconds", "after epoch"),
            [
                (name_of(each), _moment(stop["begin"]), round(stop["seconds"], _CLOSE), str(stop["after_epoch"] or "-"))
                for each, stop in longest
            ],
            note=f"and {left:,} more, in --json" if left else "",
            texts=2,
        )


def _by_time(found: Document, most: int) -> Table:
    """Return the table by time; of a long one the rows with the longest waits, in their order."""
    times, by = found["times"], found["window_by"]
    longest = sorted(range(len(times)), key=lambda place: (-_longest(times[place]), place))[:most]
    shown = [times[place] for place in sorted(longest)]
    left = len(times) - len(shown)
    judged = times[0]["conflicts"] is not None
    return Table(
        f"By {by}",
        (_UNITS[by], "channel", "rows", "applied p99", "longest", "window longest", "waiting", *_heading(judged)),
        [
            (
                str(each["epoch"]) if by == "epoch" else _moment(each["time"])[_NO_YEAR:_NO_SECONDS],
                name_of(each),
                each["rows"],
                *(_cell(each[name]) for name in ("applied_ms_p99", "applied_ms_max", "window_ms_max")),
                each["backlog"],
                *([each["conflicts"]] if judged else []),
            )
            for each in shown
        ],
        note=f"those with the longest waits; {left:,} more in --json" if left else "",
        texts=2,
    )


def _heading(judged: bool) -> Sequence[str]:
    return ("conflicts",) if judged else ()


def _longest(row: Document) -> float:
    return max(row["applied_ms_max"] or 0.0, row["window_ms_max"] or 0.0)


def _moment(text: str) -> str:
    return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M:%S")


def _time(ms: float) -> str:
    """Return a time of some milliseconds as people read it."""
    if abs(ms) >= 100 * _SECOND:
        return f"{ms / _SECOND:,.0f} s"
    return f"{ms / _SECOND:,.2f} s" if abs(ms) >= _SECOND else f"{ms:.1f} ms"


def _cell(ms: float | None) -> str | None:
    """Return a cell with a time; None without one."""
    return None if ms is None else _time(ms)
