"""
The events of a story as data: what each is, where it stands, what was compared; as documents and as a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import attrs
import pyarrow as pa

from conflict.engine.ledger.layout import OUTCOMES, ROW_KEY
from conflict.history.grid.schemas import PLACE
from conflict.history.timeline import Origin
from conflict.rules.decision import Verdict
from ndb_formats.columnar.value_texts import value_text
from ndb_formats.types.values import Value

_LONGEST = 40  # characters of a value
_VERBS = {"WRITE_ROW": "write", "UPDATE_ROW": "update", "DELETE_ROW": "delete"}

Row = Mapping[str, Value]


class EventKind(StrEnum):
    """What an event of a story is."""

    COMMITTED = "committed"  # a user's change on its own cluster
    JUDGED = "judged"  # what an applier decided on an operation of another cluster
    REFRESHED = "refreshed"  # an applier sent the row again, after a conflict
    HEARD = "heard"  # a cluster learned that its own change has been applied by the other one
    LOGGED = "logged"  # an applier changed the row, and the result has no operation that explains it
    DEFINED = "defined"  # a statement changed the definition of the table
    NOT_APPLIED = "not applied"  # an operation that the other cluster's applier did not come to


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
    place: Origin | None


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
        row_known: Whether it is known if the row exists there afterwards.
        sentence: What happened, in words.
        cites: Numbers of the events that the sentence names.
        identity: What tells its row from others of the table; see `ndb_formats.schema.row_keys.key_of`.
    """

    number: int
    cluster: str
    kind: EventKind
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
    place: Origin | None = None
    logged: Origin | None = None
    cause_number: int | None = None
    row: Row | None = None
    row_known: bool = True
    sentence: str = ""
    cites: tuple[int, ...] = ()
    identity: bytes = b""


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
        *ROW_KEY,
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
        ("row_known", pa.bool_()),
        ("sentence", pa.string()),
    ]
)


def events_to_arrow(events: Iterable[StoryEvent]) -> pa.Table:
    """Return events as `EVENTS`."""
    return pa.Table.from_pylist([_record(event) for event in events], schema=EVENTS)


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
        document[name] = None if document[name] is None else plain_row(document[name])
    for name in ("place", "logged", "winner"):
        document[name] = None if document[name] is None else attrs.asdict(document[name])
    document["identity"] = event.identity.hex()
    document["time"] = None if event.time is None else event.time.isoformat()
    return {**document, "kind": event.kind.value}


def plain_row(row: Row) -> dict[str, object]:
    """Return a row as JSON has it."""
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


def rejections_of(refresh: StoryEvent, events: Sequence[StoryEvent]) -> list[int]:
    """Return the numbers of the rejections that a refresh answers, latest first; none of another kind of event."""
    found: list[int] = []
    if refresh.kind is not EventKind.REFRESHED:
        return found
    for event in reversed(events):
        same = (event.cluster, event.table, event.identity) == (refresh.cluster, refresh.table, refresh.identity)
        if event.number < refresh.number and same:
            if event.kind is EventKind.REFRESHED or event.epoch != refresh.epoch:
                break
            if event.verdict == Verdict.REJECTED.name:
                found.append(event.number)
    return found


def verb(operation: str | None) -> str:
    """Return an operation as a word."""
    return _VERBS.get(operation or "", "change")


def is_same_place(place: Origin, other: Origin | None) -> bool:
    """Whether two places in binlogs are the same, though files may have been moved to another folder."""
    if other is None or place.file.rpartition("/")[2] != other.file.rpartition("/")[2]:
        return False
    return attrs.astuple(place)[1:] == attrs.astuple(other)[1:]


def place_words(place: Origin, names: Mapping[str, str]) -> str:
    """Return where a row stands in a binlog in words; `names` has the name of each file, by its path."""
    return f"{event_words(place, names)}, row {place.row}"


def event_words(place: Origin, names: Mapping[str, str]) -> str:
    """Return where the event of a place stands."""
    inside = f" (payload position {place.payload_position})" if place.payload_position else ""
    return f"{names.get(place.file, place.file)}, position {place.position}{inside}"
