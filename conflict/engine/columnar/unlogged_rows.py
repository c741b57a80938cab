"""
Whether a bucket holds rows that a cluster changed without a log. Computes docs/result.md, "Changes without a log".

A kernel finds the few rows that may be such; `conflict.history.reading.unlogged_changes` decides each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import attrs
import numpy as np

from conflict.engine.columnar.bucket import Bucket
from conflict.engine.kernels.arrays import Bool, Int64, UInt64
from conflict.engine.kernels.unlogged import BREAK, UNTOLD, RowStates, suspected_rows
from conflict.history.grid.columns import GridColumns
from conflict.history.grid.schemas import PLACE, RowStep
from conflict.history.grid.writer import IDENTITY_PREFIX
from conflict.history.reading.crashes import States, crashes_in_rows, not_by_crash
from conflict.history.reading.unlogged_changes import MISSING, LoggedState, is_too_many, unlogged_of_row
from conflict.history.shown_effects import Effect
from conflict.history.timeline import Origin, Position
from conflict.history.unlogged import Crash, UnloggedChange
from ndb_formats.columnar.kernel import each_read_only
from ndb_formats.events.rows_event import ConflictFlag, Operation

# By own position of an epoch apply, the foreign epochs; per cluster, its binlog files.
ForeignEpochs = Mapping[Position, list[int]]
Files = Mapping[str, Sequence[str]]
NO_CRASHES: Mapping[str, Sequence[Crash]] = MappingProxyType({})
_AT_ONCE = 500  # suspected rows that are looked at together


@attrs.frozen
class UnloggedRows:
    """
    Rows that clusters changed without a log.

    Attributes:
        changes: Per cluster, the changes; only the first ones where there are more than are followed.
        keys: Numbers of the rows by bucket.
        follow: Whether they are to be followed, if they are not too many.
        crashes: Per cluster, its crashes that may have taken changes.
        states: Per cluster, what its log says of the rows that may be among these.
        places: Bucket and number of these rows.
    """

    changes: Mapping[str, tuple[UnloggedChange, ...]] = attrs.field(factory=dict)
    keys: Mapping[int, Int64] = attrs.field(factory=dict)
    follow: bool = True
    crashes: Mapping[str, Sequence[Crash]] = attrs.field(factory=dict)
    states: Mapping[str, States] = attrs.field(factory=dict, repr=False)
    places: Mapping[tuple[str, bytes], tuple[int, int]] = attrs.field(factory=dict, repr=False)

    @property
    def are_followed(self) -> bool:
        """Whether there are some, and not too many to follow."""
        return self.follow and bool(self.changes) and not is_too_many(self.changes)

    @classmethod
    def joined(cls, parts: Sequence[UnloggedRows]) -> UnloggedRows:
        """Return those of several buckets as one."""
        found: dict[str, tuple[UnloggedChange, ...]] = {}
        states: dict[str, dict[tuple[str, bytes], Sequence[LoggedState]]] = {}
        for part in parts:
            for name, changes in part.changes.items():
                found[name] = found.get(name, ()) + changes
            for name, rows in part.states.items():
                states.setdefault(name, {}).update(rows)
        keys = {number: rows for part in parts for number, rows in part.keys.items()}
        places = {row: place for part in parts for row, place in part.places.items()}
        return cls(found, keys, states=states, places=places)

    def with_crashes(self, crashes: Mapping[str, Sequence[Crash]]) -> UnloggedRows:
        """Return these rows with those that crashes may have set back; `crashes` are those that clocks show."""
        changes, kept, keys = dict(self.changes), dict[str, Sequence[Crash]](), {}
        for number, own in self.keys.items():
            keys[number] = set(own.tolist())
        for name, each in crashes.items():
            mine, lost = crashes_in_rows(each, self.states.get(name, {}))
            if mine:
                kept[name] = mine
                changes[name] = (*lost, *not_by_crash(self.changes.get(name, ()), lost))
            for change in lost:
                bucket, key = self.places[change.table, change.key]
                keys.setdefault(bucket, set()).add(key)
        rows = {number: np.array(sorted(own), np.int64) for number, own in keys.items()}
        return attrs.evolve(self, changes=changes, keys=rows, crashes=kept, states={}, places={})


NO_UNLOGGED = UnloggedRows()


def find_unlogged_rows(
    bucket: Bucket,
    updated: tuple[Bool, Bool],
    foreign_epochs: Callable[[int], ForeignEpochs],
    files: Files,
    crashes: Mapping[str, Sequence[Crash]] = NO_CRASHES,
) -> UnloggedRows:
    """
    Return the rows of a bucket that a log shows to have been changed without it, and those before crashes.

    Args:
        bucket: The bucket.
        updated: Per cluster, the tables whose updates are logged as updates. Shape of each (tables,).
        foreign_epochs: Returns, of a cluster given by its number, the foreign epochs of each epoch apply.
        files: The binlog files of each cluster.
        crashes: The crashes of each cluster.
    """
    found: dict[str, list[UnloggedChange]] = {}
    keys: set[int] = set()
    states: dict[str, dict[tuple[str, bytes], Sequence[LoggedState]]] = {}
    places: dict[tuple[str, bytes], tuple[int, int]] = {}
    for side, name in enumerate(bucket.clusters):
        if name in crashes:
            chosen = _changed_before(bucket, side, crashes[name])
            rows, _ = _states(bucket.of_keys(chosen), side, updated[side], foreign_epochs(side), files[name])
            states[name] = {_row(bucket, key): each for key, each in rows.items()}
            places.update({_row(bucket, key): (bucket.number, key) for key in rows})
        own, applied = own_states(bucket.changes[side], updated[side]), applied_states(bucket.consequences[side])
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
    numbers = {bucket.number: np.array(sorted(keys), np.int64)} if keys else {}
    return UnloggedRows(changes, numbers, states=states, places=places)


def _changed_before(bucket: Bucket, side: int, crashes: Sequence[Crash]) -> Bool:
    """Return the rows that may have lost a change in a crash of a cluster. Shape (keys,)."""
    chosen = np.zeros(len(bucket.key_table), np.bool_)
    for columns in (bucket.changes[side], bucket.consequences[side]):
        epoch: UInt64 = columns.array("epoch")
        for each in crashes:
            first, last = np.uint64(each.durable + 1 << 32), np.uint64(each.last)
            chosen[columns.array("key")[(epoch >= first) & (epoch <= last)]] = True
    return chosen


def own_states(changes: GridColumns, updated: Bool) -> RowStates:
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


def applied_states(consequences: GridColumns) -> RowStates:
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
    states, breaks = _states(bucket, side, updated, foreign_epochs, files)
    for key, each in states.items():
        for shown, after_position, kind in unlogged_of_row(each, breaks.get(key, ())):
            yield key, UnloggedChange(*_row(bucket, key), kind, after_position, shown.position, shown.origin)


def _row(bucket: Bucket, key: int) -> tuple[str, bytes]:
    """Return a row, given by its number, as table and identity."""
    identity = bucket.keys.column("identity")[key].as_py()[IDENTITY_PREFIX:]
    return bucket.numbers.tables[int(bucket.key_table[key])].full_name, identity


def _states(
    bucket: Bucket, side: int, updated: Bool, foreign_epochs: ForeignEpochs, files: Sequence[str]
) -> tuple[dict[int, list[LoggedState]], dict[int, list[int]]]:
    """Return all that the log of a cluster says of rows, and the epochs after which a statement changed their table."""
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
    return {key: sorted(each, key=lambda state: state.position[0]) for key, each in sorted(states.items())}, breaks


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
