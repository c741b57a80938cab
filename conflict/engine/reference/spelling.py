"""
Keys that are the same key in another spelling: another letter case or accent, other blanks at the end.

An applier takes an update that gives its key another spelling as two operations: it deletes the row, and writes it
anew. Each is judged by itself. Any other update leaves the key of the row as it is spelled there, whatever the event
says. A write spells the key as the event does, also over a row that is there.

Source: ``ha_ndbcluster::update_row`` of the server compares both keys byte by byte; recorded with 9.7.2.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from conflict.engine.reference.row_store import Row
from conflict.history.timeline import RowChange
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import ABSENT


def operations_of(change: RowChange, table: Table) -> Iterator[RowChange]:
    """Yield the operations as which an applier takes a change: the change, or a delete and a write."""
    before, after = change.before, change.after
    if before is None or after is None or not _is_respelled(before, after, table):
        yield change
        return
    written = {**_held(before), **_held(after)}
    present = tuple(sorted(written))
    whole = attrs.evolve(after, present=present, payloads=tuple(written[ordinal] for ordinal in present))
    yield attrs.evolve(change, operation=Operation.DELETE_ROW, after=None, unknown=frozenset())
    yield attrs.evolve(
        change,
        operation=Operation.WRITE_ROW,
        before=None,
        after=whole,
        unknown=(change.unknown | change.unknown_before).difference(present),
        unknown_before=frozenset(),
    )


def _is_respelled(before: RowImage, after: RowImage, table: Table) -> bool:
    """Whether an update gives its key other bytes."""
    pairs = ((before.raw(ordinal), after.raw(ordinal)) for ordinal in table.key_ordinals)
    return any(old is not ABSENT and new is not ABSENT and old != new for old, new in pairs)


def as_spelled_here(change: RowChange, row: Row | None, table: Table) -> RowChange:
    """Return a change that an applier makes, with the key as the row has it if it is an update."""
    if row is None or change.after is None or change.operation is not Operation.UPDATE_ROW:
        return change
    held = _held(change.after)
    kept = {ordinal: row.payloads[ordinal] for ordinal in table.key_ordinals if ordinal in row.payloads}
    spelled = {ordinal: kept.get(ordinal, payload) for ordinal, payload in held.items()}
    if spelled == held:
        return change
    return attrs.evolve(change, after=attrs.evolve(change.after, payloads=tuple(spelled.values())))


def _held(image: RowImage) -> dict[int, bytes | None]:
    return dict(zip(image.present, image.payloads, strict=True))
