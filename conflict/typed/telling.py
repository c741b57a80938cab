"""
What is told of a typed History and of its verdicts: the schedule, both clusters side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from conflict.rules.decision import Verdict
from conflict.telling.html import Html, joined, telling_html
from conflict.telling.lanes import Lane, LaneEvent, lanes_svg
from conflict.telling.shown_text import capitalized, counted
from conflict.telling.value import Entry, Listing, Table, Telling, Tone
from conflict.typed.decided import Decided, row_words
from conflict.typed.notation import literal, step_text
from conflict.typed.schedule import Schedule
from conflict.typed.steps import Apply, Restart

if TYPE_CHECKING:
    from conflict.typed.order import PlacedStep

_START, _END = "start", "end"


def tell_history(history: Schedule) -> Telling:
    """Return what is told of a History: its schedule."""
    return Telling("History", tables=[_schedule(history, "History", lambda placed: _text(history, placed))])


def _schedule(
    history: Schedule, title: str, text: Callable[[PlacedStep], str], end: Sequence[str] = (), note: str = ""
) -> Table:
    """Return a schedule: a row for the steps that depend on the rows above it, a column for each cluster."""
    rows: list[list[object]] = []
    if history.start:
        held = "; ".join(_start(history))
        rows.append([_START, held, held])
    last = max((placed.row for placed in history.placed), default=0)
    for number in range(1, last + 1):
        cells = {placed.cluster: text(placed) for placed in history.placed if placed.row == number}
        rows.append([number, *(cells.get(name, "") for name in history.names)])
    if end:
        rows.append([_END, *end])
    return Table(title, ("", *history.names), rows, note=note, even=True, texts=3)


def _start(history: Schedule) -> Iterator[str]:
    """Yield the rows that both clusters hold at first."""
    for change in history.start:
        table = history.tables.named(change.table)
        names = {table.table.columns[ordinal].name for ordinal in table.table.key_ordinals}
        row = table.row(table.new_row(change))
        values = " ".join(f"{column}={literal(value)}" for column, value in row.items() if column not in names)
        yield f"{row_words(history, change.table, change.key)}: {values}"


def _text(history: Schedule, placed: PlacedStep) -> str:
    return step_text(placed.step, first_table=history.tables.first.name)


def tell_verdicts(verdicts: Decided) -> Telling:
    """Return what is told of verdicts: the schedule with the decisions, then what moved, and what is lost."""
    history = verdicts.history
    end = ["; ".join(_rows(verdicts, name)) for name in history.names]
    schedule = _schedule(
        history, verdicts.rules.words, lambda placed: _in_cell(_told(verdicts, placed)), end, _unsettled(verdicts)
    )
    tables = [schedule, *_counters(verdicts)]
    exceptions = Listing("Exceptions tables", list(_exceptions(verdicts)))
    return Telling("Verdicts", _headline(verdicts), tuple(_lost(verdicts)), tables, listings=(exceptions,))


def _in_cell(lines: Iterator[str]) -> str:
    """Return a step, and what came of it, as one text."""
    text, rest = next(lines), "; ".join(lines)
    return f"{text}: {rest}" if rest else text


def _told(verdicts: Decided, placed: PlacedStep) -> Iterator[str]:
    """Yield a step, and what came of it."""
    place = placed.cluster, placed.number
    yield _text(verdicts.history, placed)
    yield from verdicts.notes.get(place, ())
    for each in verdicts.judged:
        if (each.applier, each.step) == place:
            yield each.words
    refreshed = verdicts.refreshed(*place)
    if refreshed:
        yield f"refreshes {' and '.join(refreshed)} on {verdicts.history.other(placed.cluster)}"
    stop = verdicts.stops.get(placed.cluster)
    if stop is not None and verdicts.stopped_step(placed.cluster) == placed.number:
        yield f"the applier stops: {stop.message}"


def _rows(verdicts: Decided, name: str) -> Iterator[str]:
    """Yield the rows of a cluster at the end, and those that only the other one has."""
    missing = {(each.table, each.key) for each in verdicts.differing if each.rows[name] is None}
    for full, table in verdicts.history.tables.by_name.items():
        for row in verdicts.rows(name, full):
            key = tuple(row.pop(column) for column in table.table.primary_key)
            values = " ".join(f"{column}={literal(value)}" for column, value in row.items())
            yield f"{row_words(verdicts.history, full, key)}: {values}"
        yield from (
            f"no {row_words(verdicts.history, full, key)}" for each, key in sorted(missing, key=str) if each == full
        )
    if not any(verdicts.rows(name, full) for full in verdicts.history.tables.by_name) and not missing:
        yield "no rows"


def _headline(verdicts: Decided) -> str:
    """Return the answer in one sentence."""
    differing = len(verdicts.differing)
    parts = [f"the clusters differ in {counted(differing, 'row')}" if differing else "the clusters hold the same rows"]
    lost = len(verdicts.lost)
    parts.append(
        f"{counted(lost, 'change')} of users {'is' if lost == 1 else 'are'} lost" if lost else "no change is lost"
    )
    parts += [f"the applier of {name} stopped" for name in verdicts.stops]
    return capitalized(f"{'; '.join(parts)}.")


def _unsettled(verdicts: Decided) -> str:
    left = [f"{counted(count, 'row operation')} of {name}" for name, count in verdicts.unsettled.items() if count]
    if not left:
        return ""
    how = "" if verdicts.stops else " History.settled() adds what is left to apply."
    return f"Not applied yet on the other cluster: {' and '.join(left)}.{how}"


def _lost(verdicts: Decided) -> Iterator[str]:
    for each in verdicts.lost:
        row = row_words(verdicts.history, each.table, each.key)
        yield f"Lost: the {each.operation} of {row} in step {each.step} of {each.cluster}: {each.why}."


def _counters(verdicts: Decided) -> Iterator[Table]:
    """Yield the counters that moved, if any did."""
    counters = [[name, counter, value] for name, own in verdicts.counters.items() for counter, value in own.items()]
    if counters:
        yield Table("Counters", ("cluster", "counter", "moved by"), counters, texts=2)


def _exceptions(verdicts: Decided) -> Iterator[Entry]:
    """Yield the rows of exceptions tables, without the columns that are NULL."""
    for name, tables in verdicts.exceptions.items():
        for table, rows in tables.items():
            for row in rows:
                values = {column.removeprefix("NDB$"): value for column, value in row.items() if value is not None}
                texts = (f"{column}={literal(value)}" for column, value in values.items())
                yield Entry(f"{table} on {name}:", ", ".join(texts))


def history_picture(history: Schedule) -> str:
    """Return a History as two lanes, in SVG."""
    start = tuple(_start(history))
    return lanes_svg([Lane(name, start) for name in history.names], list(_events(history, None)))


def verdicts_html(verdicts: Decided) -> str:
    """Return what a notebook shows of verdicts: the lanes with the decisions, then the tables."""
    start = tuple(_start(verdicts.history))
    picture = lanes_svg(
        [Lane(name, start, tuple(_rows(verdicts, name))) for name in verdicts.history.names],
        list(_events(verdicts.history, verdicts)),
    )
    told = tell_verdicts(verdicts)
    rest = attrs.evolve(told, tables=told.tables[1:])
    return joined((Html(picture), Html(telling_html(rest)))).text


def _events(history: Schedule, verdicts: Decided | None) -> Iterator[LaneEvent]:
    """Yield the steps as events; an apply comes from each step of the epochs that it applies first."""
    names = {name: place for place, name in enumerate(history.names)}
    applied = dict.fromkeys(names, 0)
    for placed in history.placed:
        causes, tone = tuple[tuple[int, int], ...](), None
        lines = [_text(history, placed)] if verdicts is None else list(_told(verdicts, placed))
        if isinstance(placed.step, Apply):
            last = placed.step.foreign_epoch or 0
            causes = tuple(
                (names[each.cluster], each.row)
                for each in history.placed
                if each.cluster != placed.cluster
                and not isinstance(each.step, Restart)
                and applied[placed.cluster] < (each.step.epoch or 0) <= last
            )
            applied[placed.cluster] = last
            causes, tone = _judged_of(verdicts, placed, causes), _tone(verdicts, placed)
        elif isinstance(placed.step, Restart):
            applied[placed.cluster] = 0 if placed.step.rewound else applied[placed.cluster]
            tone = Tone.QUIET
        yield LaneEvent(names[placed.cluster], placed.row, tuple(lines), causes, tone)


def _judged_of(
    verdicts: Decided | None, placed: PlacedStep, causes: tuple[tuple[int, int], ...]
) -> tuple[tuple[int, int], ...]:
    """Return those causes of an apply whose changes it judged; of one that judged nothing the last one."""
    if verdicts is None or not causes:
        return causes
    other = verdicts.history.other(placed.cluster)
    rows = {each.number: each.row for each in verdicts.history.placed if each.cluster == other}
    place = placed.cluster, placed.number
    judged = {rows.get(each.source_step) for each in verdicts.judged if (each.applier, each.step) == place}
    return tuple(cause for cause in causes if cause[1] in judged) or causes[-1:]


def _tone(verdicts: Decided | None, placed: PlacedStep) -> Tone:
    """Return how good it is what an apply came to: red where something was not applied."""
    if verdicts is None:
        return Tone.GOOD
    mine = [each for each in verdicts.judged if (each.applier, each.step) == (placed.cluster, placed.number)]
    if verdicts.stopped_step(placed.cluster) == placed.number or any(
        each.verdict is not Verdict.APPLIED for each in mine
    ):
        return Tone.BAD
    return Tone.GOOD if mine else Tone.QUIET
