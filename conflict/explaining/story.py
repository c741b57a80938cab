"""
The story of a row or of a transaction: what happened to it on each cluster, in an order of causes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs
import pyarrow as pa

from conflict.explaining.event_entries import EventEntries
from conflict.explaining.events import (
    Row,
    StoryEvent,
    event_document,
    events_to_arrow,
    plain_row,
    plain_value,
    row_words,
    verb,
)
from conflict.extras import imported
from conflict.results.doubts import Doubt, alarms_of, warnings_of
from conflict.telling.html import telling_html
from conflict.telling.shown_text import counted
from conflict.telling.terminal import telling_text
from conflict.telling.value import Entry, Listing, Telling

_MOST_SENTENCES = 5  # of a transaction in a tree
_MOST_EVENTS, _LAST_EVENTS = 40, 20  # of a row with more events, the last ones are told


@attrs.frozen
class Tree:
    """
    A transaction in conflict, and the transactions that it depends on, or that depend on it.

    Attributes:
        source: Cluster that made it.
        source_epoch: Its epoch there.
        group: Its number in that epoch.
        transaction_id: Its id.
        sentences: Why it is in conflict itself; empty if only through others.
        through: The row that it shares with the transaction above it, as table and key; None at the top.
        branches: The transactions below.
    """

    source: str
    source_epoch: int
    group: int
    transaction_id: int | None
    sentences: tuple[str, ...] = ()
    through: tuple[str, str] | None = None
    branches: tuple[Tree, ...] = ()


@attrs.frozen
class StoryEnd:
    """
    How a row ends on a cluster.

    Attributes:
        row: Its columns; None if it does not exist, or is not known.
        known: Whether the result says so.
    """

    row: Row | None
    known: bool = True

    def differs_from(self, other: StoryEnd) -> bool:
        """Whether the row ends different on another cluster; columns that one of them lacks do not count."""
        return (self.row is None) != (other.row is None) or bool(self.differing_columns(other))

    def differing_columns(self, other: StoryEnd) -> list[str]:
        """Return the columns that end different, of those that both clusters have; none if either has no row."""
        if self.row is None or other.row is None:
            return []
        return [
            name
            for name, value in self.row.items()
            if name in other.row and plain_value(value) != plain_value(other.row[name])
        ]


@attrs.frozen
class Story:
    """
    Why a row ended as it did, or what became of a transaction.

    Attributes:
        table: ``database.table``; empty for a transaction.
        key: Primary key as text; empty for a transaction.
        functions: Per cluster and table, the conflict function that its applier judges by, as text; None for none.
        events: What happened, in an order of causes.
        ends: Per cluster, how the row ends.
        parting: Why it ends different; empty if it does not.
        parted_by: Number of the event whose decision parted the clusters; None if they did not part.
        transaction: The transaction, ``cluster:id``; empty for a row.
        marked: Number of the event that was asked for.
        because: For a transaction in conflict, why: it, and what it depends on.
        follows: For a transaction in conflict, what follows: the transactions that depend on it.
        chosen: Numbers of the events that answer what was asked, in order: what became of an exceptions row's
            operation, or what decides how a row ends that ends different; empty if all do.
        exceptions_row: The exceptions row that was asked for, in words; empty if none was.
        doubts: What makes the result doubtful that the story is told from.
        notes: What else is to be said.
        file_names: Of the binlogs, by path: what tells each from the others.
        key_columns: By table, the columns of its primary key.
        identity: What tells the row from others of the table, see `ndb_formats.schema.row_keys.key_of`; empty for a
            transaction.
        given: The key as `explain` understands it: the text, or JSON where that could be another row's, too.
    """

    table: str
    key: str
    functions: Mapping[tuple[str, str], str | None]
    events: tuple[StoryEvent, ...]
    ends: Mapping[str, StoryEnd] = attrs.field(factory=dict)
    parting: str = ""
    parted_by: int | None = None
    transaction: str = ""
    marked: int | None = None
    because: tuple[Tree, ...] = ()
    follows: tuple[Tree, ...] = ()
    chosen: tuple[int, ...] = ()
    exceptions_row: str = ""
    doubts: tuple[Doubt, ...] = ()
    notes: tuple[str, ...] = ()
    file_names: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    key_columns: Mapping[str, Sequence[str]] = attrs.field(factory=dict, repr=False)
    identity: bytes = b""
    given: str = ""

    @property
    def title(self) -> str:
        """The row, or the transaction and when it committed."""
        if not self.transaction:
            return f"{self.table} {self.key}"
        its = [each for each in self.events if f"{each.source}:{each.transaction_id}" == self.transaction]
        epochs = " and in epoch ".join(map(str, sorted({each.source_epoch for each in its})))
        return f"Transaction {its[0].transaction_id} of {its[0].source}, committed in epoch {epochs}"

    @property
    def differs(self) -> bool:
        """Whether the row does not end the same on all clusters that are known."""
        known = [end for end in self.ends.values() if end.known]
        return any(end.differs_from(known[0]) for end in known)

    def __str__(self) -> str:
        return telling_text(self.telling())

    def _repr_html_(self) -> str:
        return telling_html(self.telling())

    def telling(self, run: str = "", since: datetime | None = None, last: int | None = None) -> Telling:
        """
        Return what is told of it: of an exceptions row the events that say what became of it, of a long one its end.

        Args:
            run: The result, as it was given, for commands; none are told without it.
            since: Tell the events from this moment on.
            last: Tell so many events at the end.
        """
        shown = _shown(self, since, last)
        brief = self.marked is not None and len(shown) == len(self.chosen)
        trees = () if brief else (self.because, self.follows)
        titles = ("Why the transaction is in conflict", "What is in conflict because of it")
        return Telling(
            "A story",
            sentences=self.ending,
            alarms=alarms_of(self.doubts),
            warnings=(
                *warnings_of(self.doubts),
                *self.notes,
                *dict.fromkeys(_open_notes(shown)),
            ),
            listings=(
                Listing(self.title, [Entry("", line) for line in _setting(self, len(shown))]),
                Listing("", tuple(self.entries(shown, brief=brief))),
                *(
                    Listing(title, [_of_tree(tree) for tree in each])
                    for title, each in zip(titles, trees, strict=False)
                ),
            ),
            commands=tuple(_what_else(self, run)) if run and self.table and len(shown) < len(self.events) else (),
        )

    def entries(self, events: Sequence[StoryEvent], *, brief: bool) -> Iterator[Entry]:
        """Return what is told of some of its events; see `conflict.explaining.event_entries`."""
        told = EventEntries(self.events, bool(self.table), self.marked, self.key_columns, self.file_names)
        return told.of(events, brief=brief)

    def command(self, run: str) -> str:
        """Return the command that tells the story of the row; `run` is the result, as it was given."""
        return shlex.join(["ndb-conflict", "explain", run, "--table", self.table, "--key", self.given])

    @property
    def ending(self) -> tuple[str, ...]:
        """How the row ends, in sentences; of a transaction none."""
        return tuple(_ending(self))

    def event(self, number: int) -> StoryEvent:
        """Return the event of that number; the story of a transaction leaves out those of others."""
        return next(event for event in self.events if event.number == number)

    def to_json(self) -> dict[str, Any]:
        """Return the story as a document; moments are texts as in ISO 8601, images have the columns that they carry."""
        return {
            "table": self.table,
            "key": self.key,
            "identity": self.identity.hex(),
            "transaction": self.transaction or None,
            "functions": {
                cluster if self.table else f"{cluster}, {table}": text
                for (cluster, table), text in self.functions.items()
            },
            "events": [event_document(event) for event in self.events],
            "ends": {
                name: {"known": end.known, "row": None if end.row is None else plain_row(end.row)}
                for name, end in self.ends.items()
            },
            "differs": self.differs,
            "parting": self.parting or None,
            "parted_by": self.parted_by,
            "marked": self.marked,
            "because": [attrs.asdict(tree) for tree in self.because],
            "follows": [attrs.asdict(tree) for tree in self.follows],
            "chosen": list(self.chosen),
            "exceptions_row": self.exceptions_row or None,
            "doubts": [str(each) for each in self.doubts],
            "notes": list(self.notes),
        }

    def to_arrow(self) -> pa.Table:
        """Return the events as a table of Arrow, one row each; images are maps from column name to text."""
        return events_table([self])

    def to_pandas(self) -> Any:
        """Return the events as a DataFrame of pandas."""
        imported("pandas")
        return self.to_arrow().to_pandas(maps_as_pydicts="strict")


def events_table(stories: Iterable[Story]) -> pa.Table:
    """Return the events of some stories as `EVENTS`, story by story; docs/explain.md says what each column is."""
    return events_to_arrow(event for story in stories for event in story.events)


def _ending(story: Story) -> Iterator[str]:
    """Yield how the row ends."""
    if not story.table:
        return
    known = {name: end for name, end in story.ends.items() if end.known}
    if not known:
        yield "How the row ends is not in the result."
        return
    if not story.differs and len(known) == len(story.ends):
        yield f"At the end the row is the same on {' and '.join(known)}: {row_words(next(iter(known.values())).row)}"
        return
    for name, end in story.ends.items():
        yield f"At the end on {name}: {row_words(end.row) if end.known else 'not known'}"
    if story.parting:
        yield f"The row ends different{'; --differences says why.' if story.marked else f'. {story.parting}'}"


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
    every, command = len(story.events), story.command(run)
    all_of_them = command if every <= _MOST_EVENTS else f"{command} --last {every}"
    yield f"All {every:,} events of the row; --since DATETIME and --last N print a part of them:", all_of_them
    if story.because and story.because[0].transaction_id is not None:
        name = f"{story.because[0].source}:{story.because[0].transaction_id}"
        yield (
            "Why its transaction is in conflict, and what is in conflict because of it:",
            shlex.join(["ndb-conflict", "explain", run, "--transaction", name]),
        )


def _open_notes(events: Iterable[StoryEvent]) -> Iterator[str]:
    """Yield what some events could have been, where the binlogs leave it open."""
    for event in events:
        if event.candidates:
            what = f"{event.cluster} decided on the {verb(event.operation)} of epoch {event.source_epoch}"
            yield f"The binlogs leave open what {what}: {' or '.join(event.candidates)}."


def _of_tree(tree: Tree) -> Entry:
    name = f"transaction {tree.transaction_id}" if tree.transaction_id is not None else f"group {tree.group}"
    through = "" if tree.through is None else f", through {tree.through[0]} {tree.through[1]}"
    left = len(tree.sentences) - _MOST_SENTENCES
    lines = [*tree.sentences[:_MOST_SENTENCES], *([f"and {counted(left, 'operation')} more"] if left > 0 else [])]
    if not lines and tree.through is None:
        lines = ["no operation of it is in conflict itself"]
    below = tuple(map(_of_tree, tree.branches))
    return Entry("", f"{name} of {tree.source}, epoch {tree.source_epoch}{through}", lines, entries=below)
