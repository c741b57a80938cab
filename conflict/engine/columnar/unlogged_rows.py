"""
Whether a bucket holds rows that a cluster changed without a log. Computes docs/result.md, "Changes without a log".

A kernel finds the few rows of which that may be so; `conflict.history.unlogged_changes` tells of each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs
import numpy as np

from conflict.engine.columnar.bucket import Bucket
from conflict.engine.kernels.arrays import Bool, Int64, UInt64
from conflict.engine.kernels.unlogged import BREAK, UNTOLD, RowStates, suspected_rows
from conflict.history.grid.columns import GridColumns
from conflict.history.grid.schemas import PLACE, RowStep
from conflict.history.grid.writer import IDENTITY_PREFIX
from conflict.history.model import UnloggedChange
from conflict.history.shown_effects import Effect
from conflict.history.timeline import Origin, Position
from conflict.history.unlogged_changes import MISSING, LoggedState, is_too_many, unlogged_of_row
from ndb_formats.columnar.kernel import each_read_only
from ndb_formats.events.rows_event import ConflictFlag, Operation

__all__ = ["NO_UNLOGGED", "UnloggedRows", "find_unlogged_rows"]

# By own position of an epoch apply, the foreign epochs; per cluster, its binlog files.
ForeignEpochs = Mapping[Position, list[int]]
Files = Mapping[str, Sequence[str]]
_AT_ONCE = 500  # suspected rows that are looked at together


@attrs.frozen
class UnloggedRows:
    """
    Rows that clusters changed without a log.

    Attributes:
        changes: Per cluster, the changes; only the first ones where there are more than are followed.
        keys: Numbers of the rows by bucket.
        follow: Whether they are to be followed, if they are not too many.
    """

    changes: Mapping[str, tuple[UnloggedChange, ...]] = attrs.field(factory=dict)
    keys: Mapping[int, Int64] = attrs.field(factory=dict)
    follow: bool = True

    @property
    def are_followed(self) -> bool:
        """Whether there are some, and not too many to follow."""
        return self.follow and bool(self.changes) and not is_too_many(self.changes)

    @classmethod
    def joined(cls, parts: Sequence[UnloggedRows]) -> UnloggedRows:
        """Return those of several buckets as one."""
        found: dict[str, tuple[UnloggedChange, ...]] = {}
        for part in parts:
            for name, changes in part.changes.items():
                found[name] = found.get(name, ()) + changes
        return cls(found, {number: rows for part in parts for number, rows in part.keys.items()})


NO_UNLOGGED = UnloggedRows()


def find_unlogged_rows(
    bucket: Bucket, updated: tuple[Bool, Bool], foreign_epochs: Callable[[int], ForeignEpochs], files: Files
) -> UnloggedRows:
    """
    Return the rows of a bucket that a log shows to have been changed without it.

    Args:
        bucket: The bucket.
        updated: Per cluster, the tables whose updates are logged as updates. Shape of each (tables,).
        foreign_epochs: Returns, of a cluster given by its number, the foreign epochs of each epoch apply.
        files: The binlog files of each cluster.
    """
    found: dict[str, list[UnloggedChange]] = {}
    keys: set[int] = set()
    for side, name in enumerate(bucket.clusters):
        own, applied = _own(bucket.changes[side], updated[side]), _applied(bucket.consequences[side])
        suspects = np.flatnonzero(suspected_rows(own, applied, len(bucket.key_table)))
        for start in range(0, len(suspects), _AT_ONCE):
            chosen = np.zeros(len(bucket.key_table), np.bool_)
            chosen[suspects[start : start + _AT_ONCE]] = True
            for key, change in _told(bucket.of_keys(chosen), side, updated[side], foreign_epochs(side), files[name]):
                found.setdefault(name, []).append(change)
                keys.add(key)
            if is_too_many(found):
                break
    changes = {name: tuple(own) for name, own in found.items()}
    rows = {bucket.number: np.array(sorted(keys), np.int64)} if keys else {}
    return UnloggedRows(changes, rows)


def _own(changes: GridColumns, updated: Bool) -> RowStates:
    """Return what the own changes of a cluster say of rows."""
    changes.read(("key", "table", "operation", "flags", "epoch", "before_digest", "after_digest"))
    operation = changes.array("operation")
    before: UInt64 = changes.array("before_digest")
    after: UInt64 = np.where(operation == Operation.DELETE_ROW, np.uint64(MISSING), changes.array("after_digest"))
    wrote = operation == Operation.WRITE_ROW
    if wrote.any():
        tells = updated[changes.array("table")]
        before = np.where(wrote, np.where(tells, np.uint64(MISSING), UNTOLD), before)
    steps = operation > max(Operation)
    if steps.any():
        after = np.where(steps, BREAK, after)
    changed = changes.array("flags") & int(ConflictFlag.READ) == 0
    own = changes.array("key"), changes.array("epoch"), before, after
    return RowStates(*each_read_only(*(own if changed.all() else (each[changed] for each in own))))


def _applied(consequences: GridColumns) -> RowStates:
    """Return what the consequences in the log of a cluster say of rows."""
    effect = consequences.array("effect")
    gone = (effect == Effect.DELETED) | (effect == Effect.REFRESHED_ABSENT)
    after: UInt64 = np.where(gone, np.uint64(MISSING), consequences.array("after_digest"))
    before: UInt64 = np.where(effect >= Effect.REFRESHED, after, UNTOLD)
    return RowStates(*each_read_only(consequences.array("key"), consequences.array("epoch"), before, after))


def _told(
    bucket: Bucket, side: int, updated: Bool, foreign_epochs: ForeignEpochs, files: Sequence[str]
) -> Iterator[tuple[int, UnloggedChange]]:
    """Yield the changes without a log that the log of a cluster shows, each with its row."""
    arriving = _arriving(bucket, 1 - side)
    states: dict[int, list[LoggedState]] = {}
    breaks: dict[int, list[int]] = {}
    for key, state in _own_states(bucket.changes[side], updated, files):
        if state.after == BREAK:
            breaks.setdefault(key, []).append(state.position[0])
        else:
            states.setdefault(key, []).append(state)
    names = ("effect", "after_digest", "epoch", "group")
    for key, effect, digest, epoch, group in _columns(bucket.consequences[side], names):
        place = (epoch, group)
        sent = sum(arriving.get((each, key), 0) for each in foreign_epochs.get(place, ()))
        after = MISSING if effect in (Effect.DELETED, Effect.REFRESHED_ABSENT) else digest
        before = after if effect >= Effect.REFRESHED and sent == 1 else None
        states.setdefault(key, []).append(LoggedState(place, False, (), before, after))
    for key, each in sorted(states.items()):
        ordered = sorted(each, key=lambda state: state.position[0])
        for shown, after_position, kind in unlogged_of_row(ordered, breaks.get(key, ())):
            table = bucket.numbers.tables[int(bucket.key_table[key])].full_name
            identity = bucket.keys.column("identity")[key].as_py()[IDENTITY_PREFIX:]
            yield key, UnloggedChange(table, identity, kind, after_position, shown.position, shown.origin)


def _own_states(changes: GridColumns, updated: Bool, files: Sequence[str]) -> Iterator[tuple[int, LoggedState]]:
    """Yield what own changes say of rows, each with the row; what was only read says nothing."""
    names = ("table", "operation", "flags", "before_digest", "after_digest", "epoch", "group", *PLACE)
    for key, table, operation, flags, before, digest, epoch, group, *place in _columns(changes, names):
        if flags & ConflictFlag.READ:
            continue
        file, position, payload_position, row = place
        origin = Origin(files[file], position, payload_position, row) if file >= 0 else None
        after = digest
        found: int | None = before
        if operation in set(RowStep):
            after = int(BREAK)
        elif operation == Operation.DELETE_ROW:
            after = MISSING
        elif operation == Operation.WRITE_ROW:
            found = MISSING if updated[table] else None
        yield key, LoggedState((epoch, group), True, (position, payload_position, row), found, after, origin)


def _arriving(bucket: Bucket, side: int) -> dict[tuple[int, int], int]:
    """Return how many operations each epoch of a cluster sends of each row."""
    found: dict[tuple[int, int], int] = {}
    sent = [
        (epoch, key)
        for key, operation, flags, epoch in _columns(bucket.changes[side], ("operation", "flags", "epoch"))
        if operation <= max(Operation) and not flags & ConflictFlag.READ
    ]
    sent += [(epoch, key) for key, epoch in _columns(bucket.consequences[side], ("epoch",))]
    for place in sent:
        found[place] = found.get(place, 0) + 1
    return found


def _columns(rows: GridColumns, names: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the row of each event, and some of its columns."""
    rows.read(("key", *names))
    return zip(*(rows.column(name).to_pylist() for name in ("key", *names)), strict=True)
