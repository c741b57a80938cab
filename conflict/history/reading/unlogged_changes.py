"""
Rows that a cluster changed without a log: `sql_log_bin=0`, `ndb_restore`, NDB API clients that do not log.

One log shows them, whatever the functions are. It holds all changes of a row in their order, those of the cluster
itself and those of its applier. So the before image of an own change is the image that the row was given last, an own
update or delete finds a row, and an own insert finds none. Where that is not so, something changed the row in between.
A refresh sends the row as it stands: where the one operation that arrived of the row was rejected, that shows it, too.

Images are compared where they carry the same columns. Within an epoch, an own change and one of the applier have no
order: each may have been the first one.

Computes docs/result.md, "Changes without a log".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import attrs

from conflict.history.epochs import BinlogEpoch
from conflict.history.grid.columns import digest_of, other_values
from conflict.history.timeline import DefinitionChange, Origin, Position, RowChange
from conflict.history.unlogged import UnloggedChange, UnloggedKind
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import ConflictFlag, Operation

# So many changes without a log are followed. Where there are more, as after ndb_restore, no log tells what rows were.
MOST_FOLLOWED = 1000
# In place of the digest of an image: a row whose values are not known, and one that does not exist.
ANY, MISSING = 0, 1
Row = tuple[str, bytes]


@attrs.frozen
class LoggedState:
    """
    What a log says of a row at one place.

    Attributes:
        position: The own position.
        own: Whether the cluster itself changed the row, and not its applier.
        place: Order among the own changes of the epoch.
        before: Digest of the row as it was found; None if the log does not tell. One image has the digest `MISSING`
            with a probability that does not count.
        after: Digest of the row from then on.
        origin: Where an own change is logged.
        met: Of what the applier did, digest of the row as it found it; None if the log does not tell.
    """

    position: Position
    own: bool
    place: tuple[int, ...]
    before: int | None
    after: int
    origin: Origin | None = None
    met: int | None = None


def unlogged_changes(
    states_of: Mapping[Row, Sequence[LoggedState]], definitions: Sequence[DefinitionChange] = ()
) -> Iterator[UnloggedChange]:
    """
    Yield the rows that a cluster changed without a log, as far as its binlog shows it.

    Args:
        states_of: By row, all that its log says of it; epochs do not fall.
        definitions: The statements in its binlog that changed tables; what is known of their rows ends there.
    """
    breaks: dict[str, list[int]] = {}
    for each in definitions:
        for table in {*each.step.touched, *each.step.emptied}:
            breaks.setdefault(table, []).append(each.epoch)
    for (table, key), states in states_of.items():
        for shown, after, kind in unlogged_of_row(states, breaks.get(table, ())):
            yield UnloggedChange(table, key, kind, after, shown.position, shown.origin)


def is_too_many(found: Mapping[str, Sequence[UnloggedChange]]) -> bool:
    """Whether there are more changes without a log, by cluster, than are followed."""
    return sum(map(len, found.values())) > MOST_FOLLOWED


def unlogged_of_row(
    states: Sequence[LoggedState], breaks: Sequence[int] = ()
) -> Iterator[tuple[LoggedState, Position, UnloggedKind]]:
    """
    Yield where a log shows that a row was changed without it.

    Args:
        states: All that the log says of the row; epochs do not fall.
        breaks: Own epochs after which a statement changed the table, in order.

    Returns:
        Per change without a log, what shows it, the last own position before that says something of the row, and what
        the change was.
    """
    known: list[LoggedState] = []
    waiting = list(breaks)
    for epoch, found in groupby(states, key=lambda each: each.position[0]):
        while waiting and waiting[0] < epoch:
            waiting.pop(0)
            known = []
        here = list(found)
        own = sorted((each for each in here if each.own), key=lambda each: each.place)
        applied = [each for each in here if not each.own]
        if len(applied) == 1 and not own:
            yield from _shown_by(applied[0], known)
        last = known
        for each in own:
            yield from _shown_by(each, last, applied)
            last = [each]
        known = [*own[-1:], *applied[-1:]]


def _shown_by(
    shown: LoggedState, last: Sequence[LoggedState], beside: Sequence[LoggedState] = ()
) -> Iterator[tuple[LoggedState, Position, UnloggedKind]]:
    """Yield the change without a log that a state shows, given those that can have been the last one before."""
    states = [*last, *beside]
    if shown.before is None or not last or any(fits(shown.before, state.after) for state in states):
        return
    kind = UnloggedKind.CHANGED
    if shown.before == MISSING:
        kind = UnloggedKind.DELETED
    elif all(state.after == MISSING for state in states):
        kind = UnloggedKind.INSERTED
    yield shown, max(state.position for state in states), kind


def fits(before: int, state: int) -> bool:
    """Whether a row that was given an image last can be the one before a change."""
    if MISSING in (before, state):
        return before == state
    return ANY in (before, state) or not other_values(before, state)


def logged_states(
    epochs: Sequence[BinlogEpoch], others: Iterable[Sequence[BinlogEpoch]] = ()
) -> dict[Row, list[LoggedState]]:
    """
    Return what the log of a cluster says of each row with a key.

    Args:
        epochs: Its own epochs, in order.
        others: The epochs of each other cluster.
    """
    updated = {
        change.table for epoch in epochs for _, change in _own(epoch) if change.operation is Operation.UPDATE_ROW
    }
    arriving = _arriving(others)
    found = dict[Row, list[LoggedState]]()
    for epoch in epochs:
        for group, change in _own(epoch):
            before = _met(change, updated)
            origin = change.origin or Origin("", 0)
            place = (origin.position, origin.payload_position, origin.row)
            state = LoggedState((epoch.number, group), True, place, before, _after(change), change.origin)
            found.setdefault((change.table, change.key), []).append(state)
        foreign: dict[int, set[int]] = {}
        for each in epoch.applied:
            foreign.setdefault(each.group, set()).add(each.epoch)
        for group, change in epoch.consequences:
            row = change.table, change.key
            sent = sum(arriving[each, row] for each in foreign.get(group, ()))
            # Of several operations, some may have been applied before the refresh.
            tells = change.flags & ConflictFlag.REFRESH and sent == 1
            after = _after(change)
            met = None if change.flags & ConflictFlag.REFRESH else _met(change, updated)
            state = LoggedState((epoch.number, group), False, (), after if tells else None, after, met=met)
            if not change.keyless:
                found.setdefault(row, []).append(state)
    return found


def _own(epoch: BinlogEpoch) -> Iterator[tuple[int, RowChange]]:
    """Yield the own changes of rows with a key, each with its group; what was only read is no change."""
    for transaction in epoch.transactions:
        for change in transaction.changes:
            if not change.keyless and not change.flags & ConflictFlag.READ:
                yield transaction.group, change


def _arriving(others: Iterable[Sequence[BinlogEpoch]]) -> Counter[tuple[int, Row]]:
    """Return how many operations each epoch of other clusters sends of each row, refreshes among them."""
    found: Counter[tuple[int, Row]] = Counter()
    for epoch in (each for own in others for each in own):
        logged = [change for _, change in _own(epoch)] + [change for _, change in epoch.consequences]
        found.update((epoch.number, (change.table, change.key)) for change in logged)
    return found


def _met(change: RowChange, updated: Collection[str]) -> int | None:
    """Return the digest of a row before a change; None where an update may be logged as a write."""
    if change.operation is Operation.WRITE_ROW:
        return MISSING if change.table in updated else None
    return _digest(change.before)


def _after(change: RowChange) -> int:
    return MISSING if change.operation is Operation.DELETE_ROW else _digest(change.after)


def _digest(image: RowImage | None) -> int:
    return ANY if image is None else digest_of(image)
