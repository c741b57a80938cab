"""
The story of a row or of a transaction: what happened to it on each cluster, in an order of causes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import attrs
import pyarrow as pa

from conflict.history.grid.schemas import PLACE
from conflict.results.doubts import Doubt
from conflict.results.layout import OUTCOMES
from conflict.rules.decision import Verdict
from conflict.shown_text import printable
from ndb_formats.row_records import value_text
from ndb_formats.types.values import Value

__all__ = [
    "EVENTS",
    "End",
    "Kind",
    "Place",
    "Story",
    "StoryEvent",
    "Tree",
    "Winner",
    "events_table",
    "plain_value",
    "rejections_of",
    "row_words",
]

_LONGEST = 40  # characters of a value
_MOST_LINES = 40  # of a story as text

Row = Mapping[str, Value]


class Kind(StrEnum):
    """What an event of a story is."""

    COMMITTED = "committed"  # a user's change on its own cluster
    JUDGED = "judged"  # what an applier decided on an operation of another cluster
    REFRESHED = "refreshed"  # an applier sent the row again, after a conflict
    HEARD = "heard"  # a cluster learned that its own change has been applied by the other one
    LOGGED = "logged"  # an applier changed the row, and the result has no operation that explains it
    DEFINED = "defined"  # a statement changed the definition of the table
    NOT_APPLIED = "not applied"  # an operation that the other cluster's applier did not come to


@attrs.frozen
class Place:
    """Where something stands in a binlog; the attributes are those of `conflict.history.model.Origin`."""

    file: str
    position: int
    payload_position: int
    row: int

    def is_same(self, other: Place | None) -> bool:
        """Whether it is another place of the same cluster; files may have been moved to another folder."""
        if other is None or self.file.rpartition("/")[2] != other.file.rpartition("/")[2]:
            return False
        return attrs.astuple(self)[1:] == attrs.astuple(other)[1:]


@attrs.frozen
class Winner:
    """
    The operation that last wrote the row that another one was rejected for.

    Attributes:
        cluster: Cluster that logged it.
        epoch: Its epoch there.
        operation: ``WRITE_ROW``, ``UPDATE_ROW`` or ``DELETE_ROW``.
        refresh: Whether it is a refresh.
        place: Where it stands; None for what an applier logged.
    """

    cluster: str
    epoch: int
    operation: str
    refresh: bool
    place: Place | None


@attrs.frozen
class StoryEvent:
    """
    One event of a story.

    Attributes:
        number: From 1, in the order of the story; no event comes before its cause.
        cluster: Where it happened.
        kind: What it is.
        epoch: Epoch of that cluster; for an epoch without a trace, the one that is logged next. None if not applied.
        time: When that epoch committed; None if not known.
        source: Cluster that made the operation.
        source_epoch: Its epoch there; of what was heard, the last own epoch that has come back.
        table: ``database.table``.
        key: Primary key as text, as it compares.
        operation: ``WRITE_ROW``, ``UPDATE_ROW`` or ``DELETE_ROW``; None for what was heard, and for a statement.
        refresh: Whether the operation is a refresh.
        transaction_id: Id of its transaction; None if not known.
        group: Group of the source epoch to which it belongs.
        ordinal: Its number among the source's own changes of that epoch, -1 if an applier logged it; None if it has no
            outcome.
        verdict: What the applier decided; only of judged operations.
        cause: Why it was rejected.
        own_cause: For ``TRANS_IN_CONFLICT``: why the operation put its transaction in conflict itself.
        incoming: What was compared: the operation's value, or the highest own epoch that had come back.
        stored: What it was compared with: the row's value, or the epoch of its last change.
        candidates: What can have been decided, if the binlogs leave it open, by the names of the exceptions table.
        winner: The operation that won over a rejected one.
        before: Columns of the operation's before image.
        after: Columns of its after image.
        place: Where the operation stands in a binlog of the cluster that logged it.
        logged: Where the cluster itself logged what its applier did.
        cause_number: Number of the event that it follows from.
        row: The row on that cluster afterwards, as far as it is known; None if it does not exist, or was not followed.
        sentence: What happened, in words.
        cites: Numbers of the events that the sentence names.
    """

    number: int
    cluster: str
    kind: Kind
    epoch: int | None
    time: datetime | None
    source: str
    source_epoch: int
    table: str
    key: str
    operation: str | None = None
    refresh: bool = False
    transaction_id: int | None = None
    group: int | None = None
    ordinal: int | None = None
    verdict: str | None = None
    cause: str | None = None
    own_cause: str | None = None
    incoming: int | None = None
    stored: int | None = None
    candidates: tuple[str, ...] = ()
    winner: Winner | None = None
    before: Row | None = None
    after: Row | None = None
    place: Place | None = None
    logged: Place | None = None
    cause_number: int | None = None
    row: Row | None = None
    sentence: str = ""
    cites: tuple[int, ...] = ()


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
class End:
    """
    How a row ends on a cluster.

    Attributes:
        row: Its columns; None if it does not exist, or is not known.
        known: Whether the result says so.
    """

    row: Row | None
    known: bool = True

    def differs_from(self, other: End) -> bool:
        """Whether the row ends different on another cluster; columns that one of them lacks do not count."""
        return (self.row is None) != (other.row is None) or bool(self.differing_columns(other))

    def differing_columns(self, other: End) -> list[str]:
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
    """

    table: str
    key: str
    functions: Mapping[tuple[str, str], str | None]
    events: tuple[StoryEvent, ...]
    ends: Mapping[str, End] = attrs.field(factory=dict)
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

    @property
    def title(self) -> str:
        """The row, or the transaction and when it committed."""
        if not self.transaction:
            return f"{self.table} {self.key}"
        cluster, _, number = self.transaction.rpartition(":")
        its = (each for each in self.events if (each.source, str(each.transaction_id)) == (cluster, number))
        epochs = sorted({each.source_epoch for each in its})
        return f"Transaction {number} of {cluster}, committed in epoch {' and in epoch '.join(map(str, epochs))}"

    @property
    def differs(self) -> bool:
        """Whether the row does not end the same on all clusters that are known."""
        known = [end for end in self.ends.values() if end.known]
        return any(end.differs_from(known[0]) for end in known)

    def __str__(self) -> str:
        """Return the story as text: what it is of, a line per event, how the row ends; of many events the end."""
        ending = set[int]() if self.marked else {event.number for event in self.events[-_MOST_LINES:]}
        shown = [each for each in self.events if each.number in ending.union(self.chosen)]
        lines = [*map(str, self.doubts), self.title, *filter(None, [self.exceptions_row])]
        if len(shown) < len(self.events):
            lines.append(f"{len(shown):,} of {len(self.events):,} events are shown.")
        lines += (
            f"{'>' if each.number == self.marked else ' '}{each.number:>3} "
            f"{'' if each.time is None else f'{each.time:%Y-%m-%d %H:%M:%S.%f}'[:-3] + ' UTC '}{each.cluster}"
            f"{'' if self.table else f', {each.table} {each.key}'}: {each.sentence}."
            for each in shown
        )
        return "\n".join(map(printable, [*lines, *self.ending, *self.notes]))

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
            "transaction": self.transaction or None,
            "functions": {
                cluster if self.table else f"{cluster}, {table}": text
                for (cluster, table), text in self.functions.items()
            },
            "events": [event_document(event) for event in self.events],
            "ends": {
                name: {"known": end.known, "row": None if end.row is None else _plain_row(end.row)}
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
        return self.to_arrow().to_pandas(maps_as_pydicts="strict")


def rejections_of(refresh: StoryEvent, events: Sequence[StoryEvent]) -> list[int]:
    """Return the numbers of the rejections that a refresh answers, latest first; none of another kind of event."""
    found: list[int] = []
    if refresh.kind is not Kind.REFRESHED:
        return found
    for event in reversed(events):
        same = (event.cluster, event.table, event.key) == (refresh.cluster, refresh.table, refresh.key)
        if event.number < refresh.number and same:
            if event.kind is Kind.REFRESHED or event.epoch != refresh.epoch:
                break
            if event.verdict == Verdict.REJECTED.name:
                found.append(event.number)
    return found


_IMAGE = pa.map_(pa.string(), pa.string())
_PLACE = pa.struct([OUTCOMES.field(name) for name in PLACE])
EVENTS = pa.schema(
    [
        ("number", pa.int32()),
        ("cluster", pa.string()),
        ("kind", pa.string()),
        ("epoch", pa.uint64()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("source", pa.string()),
        ("source_epoch", pa.uint64()),
        ("table", pa.string()),
        ("key", pa.string()),
        ("operation", pa.string()),
        ("refresh", pa.bool_()),
        ("transaction_id", pa.uint64()),
        ("group", pa.int32()),
        ("ordinal", pa.int32()),
        ("verdict", pa.string()),
        ("cause", pa.string()),
        ("own_cause", pa.string()),
        ("incoming", pa.uint64()),
        ("stored", pa.uint64()),
        ("before", _IMAGE),
        ("after", _IMAGE),
        ("place", _PLACE),
        ("logged", _PLACE),
        ("cause_number", pa.int32()),
        ("row", _IMAGE),
        ("sentence", pa.string()),
    ]
)


def events_table(stories: Iterable[Story]) -> pa.Table:
    """Return the events of some stories as `EVENTS`, story by story; docs/explain.md says what each column is."""
    return pa.Table.from_pylist([_record(event) for story in stories for event in story.events], schema=EVENTS)


def _record(event: StoryEvent) -> dict[str, Any]:
    record = {field.name: getattr(event, field.name) for field in EVENTS}
    for name in ("before", "after", "row"):
        image = record[name]
        record[name] = None if image is None else [(column, value_text(value)) for column, value in image.items()]
    for name in ("place", "logged"):
        record[name] = None if record[name] is None else attrs.asdict(record[name])
    return {**record, "kind": event.kind.value}


def event_document(event: StoryEvent) -> dict[str, Any]:
    """Return an event as a document."""
    document = attrs.asdict(event, recurse=False)
    for name in ("before", "after", "row"):
        document[name] = None if document[name] is None else _plain_row(document[name])
    for name in ("place", "logged", "winner"):
        document[name] = None if document[name] is None else attrs.asdict(document[name])
    document["time"] = None if event.time is None else event.time.isoformat()
    return {**document, "kind": event.kind.value}


def _plain_row(row: Row) -> dict[str, object]:
    return {name: plain_value(value) for name, value in row.items()}


def plain_value(value: object) -> object:
    """Return a value as JSON has it: numbers, NULL and texts as they are, all others as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value_text(value)  # type: ignore[arg-type]  # a value of a column


def moment_of(microseconds: int | None) -> datetime | None:
    """Return a microsecond since 1970 as a moment; None for 0, which is not known."""
    if not microseconds:
        return None
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).replace(microsecond=microseconds % 1_000_000)


def row_words(row: Mapping[str, Value] | None) -> str:
    """Return a row in words; long values are cut."""
    if row is None:
        return "no row"
    return ", ".join(f"{name}={_value(value)}" for name, value in row.items()) or "no columns"


def _value(value: Value) -> str:
    if value is None:
        return "NULL"
    plain = plain_value(value)
    text = f"'{plain}'" if isinstance(value, str) else str(plain)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


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
