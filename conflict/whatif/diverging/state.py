"""
The state of both clusters between two steps, from which their replay goes on.

An epoch is open until its cluster logs the next one or the other cluster takes it. Epochs have numbers of their own
global checkpoint (``number << 32``), so that a row tells every two of them apart, however many extra GCI bits it has.

States as bytes, for workers in other processes.

The layout of the table holds functions, which do not pickle; every worker has it from the scope.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import attrs

from conflict.engine.reference.cluster import LoggedChange, ReplayedCluster
from conflict.engine.reference.row_store import Row, RowKey
from conflict.rules.own_rule import Read
from conflict.whatif.diverging.scope import DATA_BYTES, DATABASE, TABLE, Scope
from ndb_formats.events.row_image import RowImage, RowLayout

_LAYOUT = "layout"


def packed_state(value: object) -> bytes:
    """Return something with states as bytes."""
    out = io.BytesIO()
    _Packer(out, pickle.HIGHEST_PROTOCOL).dump(value)
    return out.getvalue()


def unpacked_state(data: bytes, scope: Scope) -> Any:
    """Return what was packed in a scope."""
    return _Unpacker(data, scope.layout).load()


class _Packer(pickle.Pickler):
    def persistent_id(self, value: object) -> str | None:
        return _LAYOUT if isinstance(value, RowLayout) else None


class _Unpacker(pickle.Unpickler):
    def __init__(self, data: bytes, layout: RowLayout) -> None:
        super().__init__(io.BytesIO(data))
        self._layout = layout

    def persistent_load(self, _: object) -> RowLayout:
        return self._layout


NAME = f"{DATABASE}.{TABLE}"
EPOCH = 1 << 32  # from one epoch of a cluster to the next
ABSENT, NULL = -2, -1

# A row change as numbers: group, row, operation, flags, the columns that decide in both images, and what else a rule of
# one's own reads of it.
Change = tuple[int, int, int, int, tuple[int, ...] | None, tuple[int, ...] | None, tuple[int, ...]]


@attrs.frozen(eq=False)
class CommittedEntry:
    """A row operation in a log, and the same as numbers, for comparing states."""

    logged: LoggedChange
    change: Change

    @classmethod
    def of(cls, logged: LoggedChange, scope: Scope) -> CommittedEntry:
        """Return an entry without what only reports look at."""
        change = logged.change
        before = cells(change.before, scope)
        transactional = scope.parsed is not None and scope.parsed.spec.transactional
        numbers = (
            logged.group if transactional else 0,
            scope.keys.index(change.key),
            int(change.operation),
            int(change.flags),
            # Of a before image, no function of the server reads another column than the one that it compares.
            before if before is None or Read.VALUES in scope.reads else before[: scope.first_data_column - 1],
            cells(change.after, scope),
            seen_of(scope, logged.server_id, logged.committed),
        )
        kept = LoggedChange(change, logged.group, logged.ordinal, logged.server_id, committed=logged.committed)
        return cls(kept, numbers)


def seen_of(scope: Scope, site: int | None, committed: int | None) -> tuple[int, ...]:
    """Return what a rule of one's own reads of who made a change, and when."""
    if not scope.reads:
        return ()
    return (site or 0) * (Read.SITES in scope.reads), (committed or 0) * (Read.TIMES in scope.reads)


def cells(image: RowImage | Row | None, scope: Scope) -> tuple[int, ...] | None:
    """Return the columns of an image or row after the key, as numbers; None for no image or row."""
    if image is None:
        return None
    if isinstance(image, Row):
        payloads: Mapping[int, bytes | None] = image.payloads
    else:
        payloads = dict(zip(image.present, image.payloads, strict=True))
    return tuple(
        _number(payloads[column]) if column in payloads else ABSENT
        for column in range(1, scope.first_data_column + scope.columns)
    )


def _number(payload: bytes | None) -> int:
    return NULL if payload is None else int.from_bytes(payload, "little")


@attrs.frozen(eq=False)
class LoggedEpoch:
    """
    One epoch of a cluster's log.

    Attributes:
        number: The epoch.
        entries: Its row operations, in order.
        relayed: The highest epoch of the other cluster that its applier took in it; 0 for none.
        content: Whether it is written to the binlog: the rows of an epoch changed, or were refreshed.
        groups: How many transactions and applied epochs it holds.
        own: Whether users committed in it.
    """

    number: int
    entries: tuple[CommittedEntry, ...] = ()
    relayed: int = 0
    content: bool = False
    groups: int = 0
    own: bool = False


@attrs.frozen(eq=False)
class ClusterState:
    """
    One cluster.

    Attributes:
        rows: Its rows.
        log: Its closed epochs that the other cluster has still to take, or can be set back to.
        taken: How many of these the other cluster has taken.
        now: Its open epoch.
        known: Max replicated epoch.
        stopped: Whether its applier stopped.
        epochs: In how many epochs its users committed.
        reached: The highest epoch of the other cluster that it took.
        authors: Of each row, the transaction that wrote each part of it last; see `conflict.rules.lost_updates`.
        inserted: Of each row that its users inserted, the epoch in which they did so last.
    """

    rows: Mapping[RowKey, Row]
    log: tuple[LoggedEpoch, ...] = ()
    taken: int = 0
    now: LoggedEpoch = LoggedEpoch(EPOCH)
    known: int = 0
    stopped: bool = False
    epochs: int = 0
    reached: int = 0
    authors: Mapping[bytes, Mapping[int, int]] = attrs.field(factory=dict)
    inserted: Mapping[bytes, int] = attrs.field(factory=dict)


@attrs.frozen
class TransactionAuthor:
    """
    Who committed a transaction.

    Attributes:
        side: The cluster.
        epoch: Its epoch.
        seen: The highest epoch of the other cluster that it had applied by then.
    """

    side: int
    epoch: int
    seen: int


@attrs.frozen(eq=False)
class BothStates:
    """
    Both clusters.

    Attributes:
        sides: The clusters.
        made: The transactions of users, in the order in which they committed; the first one loaded the table.
        outages: How often an applier was set back.
        lost: Whether a change of a user was lost.
        counted: Whether a counter of conflicts moved.
        gone: The rows that a user deleted after having seen every insert of them.
    """

    sides: tuple[ClusterState, ClusterState]
    made: tuple[TransactionAuthor, ...] = ()
    outages: int = 0
    lost: bool = False
    counted: bool = False
    gone: frozenset[bytes] = frozenset()

    def with_side(self, number: int, side: ClusterState) -> BothStates:
        """Return the state with one cluster in another state."""
        sides = (side, self.sides[1]) if number == 0 else (self.sides[0], side)
        return BothStates(sides, self.made, self.outages, self.lost, self.counted, self.gone)

    def waits(self, number: int, scope: Scope) -> bool:
        """Whether the other cluster has logged anything that a cluster has still to take."""
        other = self.sides[1 - number]
        pending = other.log[other.taken :]
        if scope.learns[number]:
            return bool(pending) or other.now.content
        return bool(other.now.entries) or any(each.entries for each in pending)

    def unsettled(self, number: int) -> int:
        """Return how many logged row operations of a cluster the other one has still to take."""
        side = self.sides[number]
        return sum(len(epoch.entries) for epoch in (*side.log[side.taken :], side.now))

    def is_quiet(self, scope: Scope) -> bool:
        """Whether both clusters have applied everything."""
        return not self.waits(0, scope) and not self.waits(1, scope)

    def has_returned(self) -> bool:
        """Whether a cluster has a row that a user deleted, and that nobody inserted since."""
        return any((NAME, key) in side.rows for side in self.sides for key in self.gone)

    def stopped(self) -> bool:
        """Whether an applier stopped."""
        return self.sides[0].stopped or self.sides[1].stopped

    def differs(self, scope: Scope) -> bool:
        """Whether a row is different on the two clusters; a column that was never written is NULL."""
        mine, theirs = (
            {key: [max(each, NULL) for each in cells(row, scope) or ()] for key, row in side.rows.items()}
            for side in self.sides
        )
        return mine != theirs


def replayed(state: BothStates, number: int, scope: Scope) -> ReplayedCluster:
    """Return a cluster as the reference engine replays it, from here on."""
    side = state.sides[number]
    made = ReplayedCluster(scope.clusters[number], scope.setups[number], {NAME: scope.layout})
    made.store.rows = dict(side.rows)
    made.max_replicated_epoch = side.known
    other = scope.clusters[1 - number].name
    for epoch in (*side.log[side.taken :], side.now):
        made.log[epoch.number] = [entry.logged for entry in epoch.entries]
        if epoch.relayed:
            made.relayed[epoch.number] = {other: epoch.relayed}
    return made


def source_of(number: int, epoch: LoggedEpoch, scope: Scope) -> ReplayedCluster:
    """Return a cluster as the applier of the other one sees it: what it logged in an epoch. It is used once."""
    made = _source(scope, number)
    made.log = {epoch.number: [entry.logged for entry in epoch.entries]}
    made.relayed = {epoch.number: {scope.clusters[1 - number].name: epoch.relayed}} if epoch.relayed else {}
    return made


@lru_cache(maxsize=4)  # an applier changes nothing of its source, so one serves all states
def _source(scope: Scope, number: int) -> ReplayedCluster:
    return ReplayedCluster(scope.clusters[number], scope.setups[number], {NAME: scope.layout})


def data(value: int) -> bytes:
    """Return the bytes of a data column."""
    return value.to_bytes(DATA_BYTES, "little")
