"""
What is told of the events of a story: an entry for each, with what was compared, where it stands, and what follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from conflict.explaining.events import EventKind, StoryEvent, event_words, place_words, rejections_of, row_words, verb
from conflict.telling.shown_text import counted
from conflict.telling.value import Entry, Tone

_TONES = {
    "APPLIED": Tone.GOOD,
    "MERGED": Tone.GOOD,
    **dict.fromkeys(("REJECTED", "DISCARDED", "SKIPPED", "CANNOT_TELL"), Tone.BAD),
}


@attrs.frozen
class EventEntries:
    """
    What is told of the events of a story.

    Attributes:
        events: All events of the story.
        of_row: Whether it is the story of one row; else entries name their rows, and do not follow them.
        marked: Number of the event that was asked for; None if none was.
        key_columns: By table, the columns of its primary key.
        file_names: Of the binlogs, by path: what tells each from the others.
    """

    events: Sequence[StoryEvent]
    of_row: bool
    marked: int | None
    key_columns: Mapping[str, Sequence[str]]
    file_names: Mapping[str, str]

    def of(self, events: Sequence[StoryEvent], *, brief: bool) -> Iterator[Entry]:
        """
        Yield the entries of some events, with a mark where others are left out between them.

        Args:
            events: The events.
            brief: Whether it does not matter what follows from each.
        """
        followers = _followers(events)
        for before, event in zip((None, *events), events, strict=False):
            left = 0 if before is None else event.number - before.number - 1
            if left and self.of_row:
                yield Entry("", f"… {counted(left, 'other event')} …")
            mark = "> " if event.number == self.marked else ""
            time = f"{event.time:%H:%M:%S.%f}"[:-3] + "  " if event.time is not None else ""
            lines = tuple(self._details(event, None if brief else followers.get(event.number, ())))
            title = f"{mark}{event.number} {time}{event.cluster}"
            yield Entry(title, _headline(event), lines, _TONES.get(event.verdict or ""))

    def _details(self, event: StoryEvent, followers: Sequence[int] | None) -> Iterator[str]:
        """Yield the lines below the headline of an event; fewer if it does not matter what follows from it (None)."""
        is_source = event.kind in (EventKind.COMMITTED, EventKind.REFRESHED, EventKind.LOGGED)
        if not self.of_row and is_source:
            yield f"row: {event.table} {event.key}"
        if event.kind not in (EventKind.COMMITTED, EventKind.REFRESHED):
            yield f"{event.sentence}."
        if is_source and event.operation is not None:
            yield from _images(event, self.key_columns.get(event.table, ()))
        changed = event.verdict in ("APPLIED", "MERGED") or event.kind in (
            EventKind.COMMITTED,
            EventKind.LOGGED,
            EventKind.DEFINED,
        )
        if self.of_row and changed and (event.kind is not EventKind.COMMITTED or event.row != event.after):
            yield f"row on {event.cluster} then: {row_words(event.row) if event.row_known else 'not known'}"
        elif self.of_row and event.kind is EventKind.JUDGED:
            yield f"row on {event.cluster} stays: {row_words(event.row) if event.row_known else 'not known'}"
        yield from self._places(event, brief=followers is None)
        rejected = rejections_of(event, self.events)[::-1]
        if len(rejected) > 1:
            yield f"one refresh for the rejections of events {', '.join(map(str, rejected[:-1]))} and {rejected[-1]}"
        late = self._late(event)
        if late:
            yield late
        if followers:
            yield f"leads to {'event' if len(followers) == 1 else 'events'} {', '.join(map(str, followers))}"

    def _places(self, event: StoryEvent, *, brief: bool) -> Iterator[str]:
        """Yield where an event stands in the binlogs; briefly, not where the event stands that it follows from."""
        known = event.kind is EventKind.COMMITTED and event.transaction_id is not None
        whose = f"transaction {event.transaction_id}, " if known else ""
        if event.kind in (EventKind.COMMITTED, EventKind.REFRESHED, EventKind.LOGGED) and event.place is not None:
            yield f"{whose}{place_words(event.place, self.file_names)}"
        elif event.kind is EventKind.DEFINED and event.place is not None:
            yield event_words(event.place, self.file_names)
        elif event.logged is not None:
            yield f"{event.cluster} logged it: {place_words(event.logged, self.file_names)}"
        elif event.kind is EventKind.JUDGED and event.place is not None and not (brief and event.cause_number):
            yield f"the operation: {place_words(event.place, self.file_names)}"

    def _late(self, event: StoryEvent) -> str:
        """Return how long an operation travelled."""
        if event.kind is not EventKind.JUDGED or event.cause_number is None or event.time is None:
            return ""
        start = next((each.time for each in self.events if each.number == event.cause_number), None)
        return "" if start is None else f"{(event.time - start).total_seconds():.3f} s after {event.source}'s commit"


def _followers(events: Sequence[StoryEvent]) -> dict[int, list[int]]:
    """Return, by number of an event, those of some events that follow from it."""
    found: dict[int, list[int]] = {}
    for event in events:
        if event.cause_number is not None:
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
    done = {
        "APPLIED": "applies",
        "MERGED": "merges",
        "REJECTED": "rejects",
        "IGNORED": "ignores",
        "DISCARDED": "discards",
    }
    said = done.get(event.verdict or "", "cannot judge" if event.verdict == "CANNOT_TELL" else "leaves out")
    return f"{said} {whose} in epoch {event.epoch}"


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _images(event: StoryEvent, key: Sequence[str]) -> Iterator[str]:
    says = set(event.before or ()).difference(key)
    if event.before is not None and event.operation != "WRITE_ROW" and (says or event.after is None):
        yield f"before: {row_words(event.before)}"
    if event.after is not None:
        yield f"after: {row_words(event.after)}"
