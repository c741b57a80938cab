"""
A story as the terminal shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs
from rich.console import Console
from rich.text import Text
from rich.tree import Tree as TreeView

from conflict.cli.views.doubts import print_doubts
from conflict.explaining.events import EventKind, LogPlace, StoryEvent, row_words
from conflict.explaining.sentences import event_words, place_words, verb
from conflict.explaining.story import Story, Tree, rejections_of
from conflict.results.doubts import Doubt
from conflict.shown_text import counted

__all__ = ["differences_json", "print_differences", "print_story"]

_COLORS = ("cyan", "magenta", "yellow", "blue")  # of clusters
_INDENT = 5
_MOST_SENTENCES = 5  # of a transaction in a tree
_MOST_EVENTS, _LAST_EVENTS = 40, 20  # of a row with more events, the last ones are printed
_LEAST_WIDTH = 20
_BAD = {"REJECTED", "DISCARDED", "SKIPPED", "CANNOT_TELL"}


def print_story(
    console: Console, story: Story, *, since: datetime | None = None, last: int | None = None, run: str
) -> None:
    """
    Print a story: of an exceptions row the events that say what became of it, of a row with many events its end.

    Args:
        console: Where to print.
        story: The story.
        since: Print the events from this moment on.
        last: Print so many events at the end.
        run: The result, as it was given.
    """
    shown = _shown(story, since, last)
    look = _Look.of(story)
    print_doubts(console, story.doubts)
    console.print(Text(story.title, style="bold"))
    if story.exceptions_row:
        _print_inside(console, story.exceptions_row)
    for line in _functions(story):
        console.print(Text(line))
    console.print(Text(_times(story)))
    if story.marked is not None:
        console.print(Text(f"> marks the operation that was asked for: event {story.marked}."))
    elif not story.table:
        console.print("Events have their numbers among all events of its rows.")
    elif len(shown) < len(story.events):
        console.print(f"{len(shown):,} of {len(story.events):,} events are shown.")
    brief = story.marked is not None and len(shown) == len(story.chosen)
    _print_events(console, shown, look, brief=brief)
    if not brief:
        _print_trees(console, story)
    console.print()
    for line in story.ending:
        console.print(Text(line))
    for note in (*story.notes, *dict.fromkeys(_open_notes(shown))):
        console.print(Text(note, style="yellow"))
    if story.table and len(shown) < len(story.events):
        _print_what_else(console, story, run)


def print_differences(
    console: Console,
    stories: Sequence[Story],
    doubts: Sequence[Doubt],
    without_key: Mapping[str, int],
    not_known: Sequence[str],
    *,
    table: str | None,
    top: int,
    run: str,
) -> None:
    """
    Print what parted the rows that end different.

    Args:
        console: Where to print.
        stories: Their stories.
        doubts: What makes the result doubtful.
        without_key: How many rows differ of each table without a primary key.
        not_known: The tables of which more rows may differ.
        table: The table that was asked for, if one was.
        top: How many to print.
        run: The result, as it was given.
    """
    print_doubts(console, doubts)
    for name, count in without_key.items():
        text = (
            f"{name} has no primary key, so nothing tells which changes are of one row; {counted(count, 'row')} of it"
        )
        console.print(f"{text} {'differs' if count == 1 else 'differ'}.", highlight=False, markup=False)
    if not_known:
        text = f"Not all rows at the end are known of {', '.join(not_known)}; more may end different there."
        console.print(text, highlight=False, markup=False)
    if not stories:
        rows = "rows with a primary key" if table is None else f"rows of {table}"
        console.print(f"{'No known' if not_known else 'All'} {rows} end {'different' if not_known else 'the same'}.")
        return
    ends = "ends" if len(stories) == 1 else "end"
    console.print(f"{counted(len(stories), 'row')} with a primary key {ends} different.")
    for story in stories[:top]:
        console.print()
        console.print(Text(f"{story.table} {story.key}", style="bold"))
        for name, end in story.ends.items():
            _print_inside(console, f"{name}: {row_words(end.row) if end.known else 'not known'}")
        _print_inside(console, story.parting)
        _print_events(console, [story.event(number) for number in story.chosen], _Look.of(story), brief=True)
    if len(stories) > top:
        console.print(f"\nand {counted(len(stories) - top, 'row')} more; --top shows more of them, --json FILE all.")
    first = stories[0]
    console.print("\nThe whole story of a row:")
    console.print(Text(f"ndb-conflict explain {run} --table {first.table} --key '{first.key}'"), soft_wrap=True)


def _print_what_else(console: Console, story: Story, run: str) -> None:
    """Print the commands that show more than is shown."""
    every = len(story.events)
    command = f"ndb-conflict explain {run} --table {story.table} --key '{story.key}'"
    console.print(f"\nAll {every:,} events of the row; --since DATETIME and --last N print a part of them:")
    console.print(Text(command if every <= _MOST_EVENTS else f"{command} --last {every}"), soft_wrap=True)
    if story.because and story.because[0].transaction_id is not None:
        console.print("Why its transaction is in conflict, and what is in conflict because of it:")
        name = f"{story.because[0].source}:{story.because[0].transaction_id}"
        console.print(Text(f"ndb-conflict explain {run} --transaction {name}"), soft_wrap=True)


def _open_notes(events: Iterable[StoryEvent]) -> Iterator[str]:
    """Yield what some events could have been, where the binlogs leave it open."""
    for event in events:
        if event.candidates:
            what = f"{event.cluster} decided on the {verb(event.operation)} of epoch {event.source_epoch}"
            yield f"The binlogs leave open what {what}: {' or '.join(event.candidates)}."


def _shown(story: Story, since: datetime | None, last: int | None) -> Sequence[StoryEvent]:
    """Return the events to print; one without a time stands with those before it."""
    events = story.events
    if since is None and last is None:
        if story.marked is None and (not story.table or len(events) <= _MOST_EVENTS):
            return events
        ending = {each.number for each in events[-_LAST_EVENTS:]} if story.marked is None else set[int]()
        return [each for each in events if each.number in ending.union(story.chosen)]
    if since is not None:
        first = next((each.number for each in events if each.time is not None and each.time >= since), len(events))
        events = tuple(each for each in events if (each.number > first if each.time is None else each.time >= since))
    return events if last is None else events[-last:]


def _print_events(console: Console, events: Sequence[StoryEvent], look: _Look, *, brief: bool) -> None:
    """Print events, with a mark where some are left out between them."""
    followers = _followers(look.story, {event.number for event in events})
    for before, event in zip((None, *events), events, strict=False):
        left = 0 if before is None else event.number - before.number - 1
        if left and look.story.table:
            _print_inside(console, f"… {counted(left, 'other event')} …")
        if not brief:
            console.print()
        _print_event(console, event, look, None if brief else followers.get(event.number, ()))


def differences_json(stories: Sequence[Story], doubts: Sequence[Doubt], not_known: Sequence[str]) -> dict[str, Any]:
    """Return the stories of rows that end different as a document."""
    said = [str(each) for each in doubts]
    return {
        "rows": len(stories),
        "doubts": said,
        "not_known": list(not_known),
        "differences": [story.to_json() for story in stories],
    }


def _functions(story: Story) -> Iterator[str]:
    """Yield who judges by what."""
    for (cluster, table), text in story.functions.items():
        what = "" if story.table else f" of {table}"
        yield (
            f"{cluster} judges what arrives{what} by {text}."
            if text
            else f"{cluster} has no conflict function{what}: it judges nothing."
        )


def _times(story: Story) -> str:
    days = {event.time.date().isoformat() for event in story.events if event.time is not None}
    if not days:
        return "The binlogs tell no times."
    return f"Times are UTC, {min(days)}." if len(days) == 1 else f"Times are UTC, {min(days)} to {max(days)}."


def _followers(story: Story, shown: Collection[int]) -> dict[int, list[int]]:
    """Return, by number of an event, those of some events that follow from it."""
    found: dict[int, list[int]] = {}
    for event in story.events:
        if event.cause_number is not None and event.number in shown:
            found.setdefault(event.cause_number, []).append(event.number)
    return found


def _colors(story: Story) -> dict[str, str]:
    names = list(dict.fromkeys(cluster for cluster, _ in story.functions))
    return {name: _COLORS[place % len(_COLORS)] for place, name in enumerate(names)}


def _headline(event: StoryEvent) -> str:
    """Return what an event is, in few words."""
    what = "refresh" if event.refresh else verb(event.operation)
    whose = f"{event.source}'s {what}"
    if event.cause_number is not None:
        whose += f" (event {event.cause_number})"
    if event.kind is EventKind.DEFINED:
        return f"takes the statement of event {event.cause_number}" if event.cause_number else "runs a statement"
    if event.kind is EventKind.COMMITTED:
        return f"commits {_article(what)} in epoch {event.epoch}"
    if event.kind is EventKind.REFRESHED:
        return f"refreshes the row in epoch {event.epoch}"
    if event.kind is EventKind.HEARD:
        return f"hears from the other side in epoch {event.epoch}"
    if event.kind is EventKind.NOT_APPLIED:
        return f"does not come to {whose}"
    if event.kind is EventKind.LOGGED:
        return f"logs {_article(what)} of its applier in epoch {event.epoch}"
    done = {"APPLIED": "applies", "REJECTED": "rejects", "IGNORED": "ignores", "DISCARDED": "discards"}
    said = done.get(event.verdict or "", "cannot judge" if event.verdict == "CANNOT_TELL" else "leaves out")
    return f"{said} {whose} in epoch {event.epoch}"


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


@attrs.frozen
class _Look:
    """
    How a story looks.

    Attributes:
        story: The story.
        colors: Of the clusters.
    """

    story: Story
    colors: Mapping[str, str]

    @classmethod
    def of(cls, story: Story) -> _Look:
        return cls(story, _colors(story))

    def place(self, place: LogPlace) -> str:
        """Return where a row stands."""
        return place_words(place, self.story.file_names)

    def statement_place(self, place: LogPlace) -> str:
        """Return where a statement stands."""
        return event_words(place, self.story.file_names)


def _print_event(console: Console, event: StoryEvent, look: _Look, followers: Sequence[int] | None) -> None:
    mark = ">" if event.number == look.story.marked else " "
    head = Text(f"{mark}{event.number:>3} ", style="bold")
    head.append(f"{event.time:%H:%M:%S.%f}"[:-3] + "  " if event.time is not None else "")
    head.append(event.cluster, style=f"bold {look.colors.get(event.cluster, 'white')}")
    head.append(" ")
    style = "red" if event.verdict in _BAD else "green" if event.verdict == "APPLIED" else ""
    head.append(_headline(event), style=style)
    console.print(head)
    for line in _details(event, look, followers):
        _print_inside(console, line)


def _print_inside(console: Console, text: str) -> None:
    """Print a text, and indent every line that it takes."""
    for line in Text(text).wrap(console, max(console.width - _INDENT, _LEAST_WIDTH)):
        line.rstrip()
        console.print(Text(" " * _INDENT).append(line))


def _details(event: StoryEvent, look: _Look, followers: Sequence[int] | None) -> Iterator[str]:
    """Yield the lines below the headline of an event; fewer if it does not matter what follows from it (None)."""
    story = look.story
    is_source = event.kind in (EventKind.COMMITTED, EventKind.REFRESHED, EventKind.LOGGED)
    if not story.table and is_source:
        yield f"row: {event.table} {event.key}"
    if event.kind not in (EventKind.COMMITTED, EventKind.REFRESHED):
        yield f"{event.sentence}."
    if is_source and event.operation is not None:
        yield from _images(event, story.key_columns.get(event.table, ()))
    changed = event.verdict == "APPLIED" or event.kind in (EventKind.COMMITTED, EventKind.LOGGED, EventKind.DEFINED)
    if story.table and changed and (event.kind is not EventKind.COMMITTED or event.row != event.after):
        yield f"row on {event.cluster} then: {row_words(event.row)}"
    elif story.table and event.kind is EventKind.JUDGED:
        yield f"row on {event.cluster} stays: {row_words(event.row)}"
    yield from _places(event, look, brief=followers is None)
    rejected = rejections_of(event, story.events)[::-1]
    if len(rejected) > 1:
        yield f"one refresh for the rejections of events {', '.join(map(str, rejected[:-1]))} and {rejected[-1]}"
    late = _late(event, story)
    if late:
        yield late
    if followers:
        yield f"leads to {'event' if len(followers) == 1 else 'events'} {', '.join(map(str, followers))}"


def _images(event: StoryEvent, key: Sequence[str]) -> Iterator[str]:
    says = set(event.before or ()).difference(key)
    if event.before is not None and event.operation != "WRITE_ROW" and (says or event.after is None):
        yield f"before: {row_words(event.before)}"
    if event.after is not None:
        yield f"after: {row_words(event.after)}"


def _places(event: StoryEvent, look: _Look, *, brief: bool) -> Iterator[str]:
    """Yield where an event stands in the binlogs; briefly, not where the event stands that it follows from."""
    known = event.kind is EventKind.COMMITTED and event.transaction_id is not None
    whose = f"transaction {event.transaction_id}, " if known else ""
    if event.kind in (EventKind.COMMITTED, EventKind.REFRESHED, EventKind.LOGGED) and event.place is not None:
        yield f"{whose}{look.place(event.place)}"
    elif event.kind is EventKind.DEFINED and event.place is not None:
        yield look.statement_place(event.place)
    elif event.logged is not None:
        yield f"{event.cluster} logged it: {look.place(event.logged)}"
    elif event.kind is EventKind.JUDGED and event.place is not None and not (brief and event.cause_number):
        yield f"the operation: {look.place(event.place)}"


def _late(event: StoryEvent, story: Story) -> str:
    """Return how long an operation travelled."""
    if event.kind is not EventKind.JUDGED or event.cause_number is None or event.time is None:
        return ""
    start = next((each.time for each in story.events if each.number == event.cause_number), None)
    return "" if start is None else f"{(event.time - start).total_seconds():.3f} s after {event.source}'s commit"


def _print_trees(console: Console, story: Story) -> None:
    for title, trees in (
        ("Why the transaction is in conflict:", story.because),
        ("What is in conflict because of it:", story.follows),
    ):
        if trees:
            console.print()
            console.print(Text(title, style="bold"))
        for tree in trees:
            console.print(_tree_view(tree))


def _tree_view(tree: Tree) -> TreeView:
    view = TreeView(_label(tree), guide_style="dim")
    _grow(view, tree.branches)
    return view


def _grow(view: TreeView, branches: Iterable[Tree]) -> None:
    for branch in branches:
        _grow(view.add(_label(branch)), branch.branches)


def _label(tree: Tree) -> Text:
    name = f"transaction {tree.transaction_id}" if tree.transaction_id is not None else f"group {tree.group}"
    label = Text(f"{name} of {tree.source}, epoch {tree.source_epoch}")
    if tree.through is not None:
        label.append(f", through {tree.through[0]} {tree.through[1]}")
    for sentence in tree.sentences[:_MOST_SENTENCES]:
        label.append(f"\n{sentence}")
    if len(tree.sentences) > _MOST_SENTENCES:
        label.append(f"\nand {counted(len(tree.sentences) - _MOST_SENTENCES, 'operation')} more")
    if not tree.sentences and tree.through is None:
        label.append("\nno operation of it is in conflict itself")
    return label
