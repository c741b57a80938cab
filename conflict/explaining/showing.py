"""
What is told of a story, and of all rows that end different.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from conflict.explaining.events import EventKind, StoryEvent, event_words, place_words, rejections_of, row_words, verb
from conflict.results.doubts import Doubt, alarms_of, warnings_of
from conflict.telling.shown_text import counted
from conflict.telling.value import Entry, Listing, Telling, Tone

if TYPE_CHECKING:
    from conflict.explaining.story import Story, Tree


_MOST_SENTENCES = 5  # of a transaction in a tree
_MOST_EVENTS, _LAST_EVENTS = 40, 20  # of a row with more events, the last ones are told
_TONES = {"APPLIED": Tone.GOOD, **dict.fromkeys(("REJECTED", "DISCARDED", "SKIPPED", "CANNOT_TELL"), Tone.BAD)}


def tell_story(story: Story, run: str = "", since: datetime | None = None, last: int | None = None) -> Telling:
    """
    Return what is told of a story: of an exceptions row the events that say what became of it, of a long one its end.

    Args:
        story: The story.
        run: The result, as it was given, for commands; none are told without it.
        since: Tell the events from this moment on.
        last: Tell so many events at the end.
    """
    shown = _shown(story, since, last)
    brief = story.marked is not None and len(shown) == len(story.chosen)
    trees = () if brief else (story.because, story.follows)
    titles = ("Why the transaction is in conflict", "What is in conflict because of it")
    return Telling(
        "A story",
        sentences=story.ending,
        alarms=alarms_of(story.doubts),
        warnings=(
            *warnings_of(story.doubts),
            *story.notes,
            *dict.fromkeys(_open_notes(shown)),
        ),
        listings=(
            Listing(story.title, [Entry("", line) for line in _setting(story, len(shown))]),
            Listing("", tuple(_events(story, shown, brief=brief))),
            *(Listing(title, [_of_tree(tree) for tree in each]) for title, each in zip(titles, trees, strict=False)),
        ),
        commands=tuple(_what_else(story, run)) if run and story.table and len(shown) < len(story.events) else (),
    )


def tell_differences(
    stories: Sequence[Story],
    doubts: Sequence[Doubt],
    without_key: Mapping[str, int],
    not_known: Sequence[str],
    *,
    table: str | None,
    top: int,
    run: str,
) -> Telling:
    """
    Return what parted the rows that end different.

    Args:
        stories: Their stories.
        doubts: What makes the result doubtful.
        without_key: How many rows differ of each table without a primary key.
        not_known: The tables of which more rows may differ.
        table: The table that was asked for, if one was.
        top: How many to tell.
        run: The result, as it was given.
    """
    rows = "rows with a primary key" if table is None else f"rows of {table}"
    headline = f"{'No known' if not_known else 'All'} {rows} end {'different' if not_known else 'the same'}."
    if stories:
        ends = "ends" if len(stories) == 1 else "end"
        headline = f"{counted(len(stories), 'row')} with a primary key {ends} different."
    left = len(stories) - top
    no_key = "has no primary key, so nothing tells which changes are of one row; rows that differ:"
    return Telling(
        "Rows that end different",
        headline,
        [f"and {counted(left, 'row')} more; --top shows more of them, --json FILE all."] if left > 0 else [],
        alarms=alarms_of(doubts),
        warnings=(
            *warnings_of(doubts),
            *(f"{name} {no_key} {count:,}." for name, count in without_key.items()),
            *(
                [f"Not all rows at the end are known of {', '.join(not_known)}; more may end different there."]
                if not_known
                else []
            ),
        ),
        listings=tuple(Listing(f"{each.table} {each.key}", tuple(_parted(each))) for each in stories[:top]),
        commands=[("The whole story of a row:", _command(stories[0], run))] if stories else [],
    )


def _parted(story: Story) -> Iterator[Entry]:
    ends = [f"{name}: {row_words(end.row) if end.known else 'not known'}" for name, end in story.ends.items()]
    yield Entry("", "At the end:", [*ends, story.parting])
    yield from _events(story, [story.event(number) for number in story.chosen], brief=True)


def differences_json(stories: Sequence[Story], doubts: Sequence[Doubt], not_known: Sequence[str]) -> dict[str, Any]:
    """Return the stories of rows that end different as a document."""
    said = [str(each) for each in doubts]
    return {
        "rows": len(stories),
        "doubts": said,
        "not_known": list(not_known),
        "differences": [story.to_json() for story in stories],
    }


def _setting(story: Story, shown: int) -> Iterator[str]:
    """Yield what was asked for, who judges by what, and which events are told."""
    if story.exceptions_row:
        yield story.exceptions_row
    yield from _functions(story)
    yield _times(story)
    if story.marked is not None:
        yield f"> marks the operation that was asked for: event {story.marked}."
    elif not story.table:
        yield "Events have their numbers among all events of its rows."
    elif shown < len(story.events):
        yield f"{shown:,} of {len(story.events):,} events are shown."


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


def _what_else(story: Story, run: str) -> Iterator[tuple[str, str]]:
    """Yield the commands that show more than is told."""
    every, command = len(story.events), _command(story, run)
    all_of_them = command if every <= _MOST_EVENTS else f"{command} --last {every}"
    yield f"All {every:,} events of the row; --since DATETIME and --last N print a part of them:", all_of_them
    if story.because and story.because[0].transaction_id is not None:
        name = f"{story.because[0].source}:{story.because[0].transaction_id}"
        yield (
            "Why its transaction is in conflict, and what is in conflict because of it:",
            shlex.join(["ndb-conflict", "explain", run, "--transaction", name]),
        )


def _command(story: Story, run: str) -> str:
    return shlex.join(["ndb-conflict", "explain", run, "--table", story.table, "--key", story.given])


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


# -----------------------------------------------------------------------------------------------------------
# Events
# -----------------------------------------------------------------------------------------------------------


def _events(story: Story, events: Sequence[StoryEvent], *, brief: bool) -> Iterator[Entry]:
    """Yield events, with a mark where some are left out between them."""
    followers = _followers(story, {event.number for event in events})
    for before, event in zip((None, *events), events, strict=False):
        left = 0 if before is None else event.number - before.number - 1
        if left and story.table:
            yield Entry("", f"… {counted(left, 'other event')} …")
        mark = "> " if event.number == story.marked else ""
        time = f"{event.time:%H:%M:%S.%f}"[:-3] + "  " if event.time is not None else ""
        lines = tuple(_details(event, story, None if brief else followers.get(event.number, ())))
        yield Entry(
            f"{mark}{event.number} {time}{event.cluster}", _headline(event), lines, _TONES.get(event.verdict or "")
        )


def _followers(story: Story, shown: Collection[int]) -> dict[int, list[int]]:
    """Return, by number of an event, those of some events that follow from it."""
    found: dict[int, list[int]] = {}
    for event in story.events:
        if event.cause_number is not None and event.number in shown:
            found.setdefault(event.cause_number, []).append(event.number)
    return found


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


def _details(event: StoryEvent, story: Story, followers: Sequence[int] | None) -> Iterator[str]:
    """Yield the lines below the headline of an event; fewer if it does not matter what follows from it (None)."""
    is_source = event.kind in (EventKind.COMMITTED, EventKind.REFRESHED, EventKind.LOGGED)
    if not story.table and is_source:
        yield f"row: {event.table} {event.key}"
    if event.kind not in (EventKind.COMMITTED, EventKind.REFRESHED):
        yield f"{event.sentence}."
    if is_source and event.operation is not None:
        yield from _images(event, story.key_columns.get(event.table, ()))
    changed = event.verdict == "APPLIED" or event.kind in (EventKind.COMMITTED, EventKind.LOGGED, EventKind.DEFINED)
    if story.table and changed and (event.kind is not EventKind.COMMITTED or event.row != event.after):
        yield f"row on {event.cluster} then: {row_words(event.row) if event.row_known else 'not known'}"
    elif story.table and event.kind is EventKind.JUDGED:
        yield f"row on {event.cluster} stays: {row_words(event.row) if event.row_known else 'not known'}"
    yield from _places(event, story, brief=followers is None)
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


def _places(event: StoryEvent, story: Story, *, brief: bool) -> Iterator[str]:
    """Yield where an event stands in the binlogs; briefly, not where the event stands that it follows from."""
    known = event.kind is EventKind.COMMITTED and event.transaction_id is not None
    whose = f"transaction {event.transaction_id}, " if known else ""
    if event.kind in (EventKind.COMMITTED, EventKind.REFRESHED, EventKind.LOGGED) and event.place is not None:
        yield f"{whose}{place_words(event.place, story.file_names)}"
    elif event.kind is EventKind.DEFINED and event.place is not None:
        yield event_words(event.place, story.file_names)
    elif event.logged is not None:
        yield f"{event.cluster} logged it: {place_words(event.logged, story.file_names)}"
    elif event.kind is EventKind.JUDGED and event.place is not None and not (brief and event.cause_number):
        yield f"the operation: {place_words(event.place, story.file_names)}"


def _late(event: StoryEvent, story: Story) -> str:
    """Return how long an operation travelled."""
    if event.kind is not EventKind.JUDGED or event.cause_number is None or event.time is None:
        return ""
    start = next((each.time for each in story.events if each.number == event.cause_number), None)
    return "" if start is None else f"{(event.time - start).total_seconds():.3f} s after {event.source}'s commit"


def _of_tree(tree: Tree) -> Entry:
    name = f"transaction {tree.transaction_id}" if tree.transaction_id is not None else f"group {tree.group}"
    through = "" if tree.through is None else f", through {tree.through[0]} {tree.through[1]}"
    left = len(tree.sentences) - _MOST_SENTENCES
    lines = [*tree.sentences[:_MOST_SENTENCES], *([f"and {counted(left, 'operation')} more"] if left > 0 else [])]
    if not lines and tree.through is None:
        lines = ["no operation of it is in conflict itself"]
    below = tuple(map(_of_tree, tree.branches))
    return Entry("", f"{name} of {tree.source}, epoch {tree.source_epoch}{through}", lines, entries=below)
