"""
A History: what each cluster did itself, and when it applied the other's epochs.

Binlogs are read into a History, and engines read it. It holds no consequences: what appliers did, rejected and
refreshed is derived from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

import attrs

from conflict.config.database_names import DatabaseNames
from conflict.config.definitions import DefinitionStep
from conflict.rules.replication_table import Role
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.schema.tables import Table

if TYPE_CHECKING:
    from conflict.history.restarts import Restarts

__all__ = [
    "END",
    "LAST_GROUP",
    "START",
    "Cluster",
    "DefinitionChange",
    "EpochApply",
    "History",
    "Link",
    "Origin",
    "Payloads",
    "Position",
    "ReturnedEpoch",
    "RowChange",
    "RowMoment",
    "Start",
    "Timeline",
    "Transaction",
    "UnloggedChange",
    "UnloggedKind",
    "Window",
    "timeline_of",
    "whole_start",
]

NO_FLAGS = ConflictFlag(0)

# A cluster and one that it replicates from.
Link = tuple[str, str]
# (own epoch, group): after that group of that epoch. Nothing comes before START.
Position = tuple[int, int]
START: Position = (0, -1)
END: Position = (2**64 - 1, 0)
LAST_GROUP = 2**31 - 1  # greater than the groups of any epoch


@attrs.frozen
class Origin:
    """
    Where a row change is logged.

    Attributes:
        file: The binlog file.
        position: Position of its event, or of the compressed transaction that holds the event.
        payload_position: Where the event starts among the uncompressed ones of that; 0 outside of one.
        row: Number of the row in the event.
    """

    file: str
    position: int
    payload_position: int = 0
    row: int = 0


@attrs.frozen
class RowChange:
    """
    One row operation that a cluster did itself.

    Attributes:
        table: ``database.table``.
        key: Identity of the row (see `ndb_formats.schema.row_keys`).
        operation: Write, update or delete.
        before: Before image; None for a write.
        after: After image; None for a delete.
        transaction_id: Unsigned 64-bit id of its transaction; None if not logged.
        flags: Conflict flags; only READ occurs in what a cluster did itself.
        origin: Where it is logged; None if it comes from no binlog.
        unknown: Columns that it writes with values that are not known. Only an applier's changes of a row that is older
            than the log have any.
        unknown_before: Columns of its before image whose values are not known, for the same reason.
        doubtful: Whether it may be a write or an update: an applier made it, and it is not known whether the row
            existed before.
        moved_to: In a table without a primary key, the identity of the row after an update; None if there is none.
        keyless: Whether its table has no primary key, so that several rows can have its identity.
    """

    table: str
    key: bytes
    operation: Operation
    before: RowImage | None
    after: RowImage | None
    transaction_id: int | None = None
    flags: ConflictFlag = NO_FLAGS
    origin: Origin | None = None
    unknown: frozenset[int] = frozenset()
    moved_to: bytes | None = None
    unknown_before: frozenset[int] = frozenset()
    doubtful: bool = False
    keyless: bool = False

    @property
    def written(self) -> frozenset[int]:
        """The columns that it writes, also those with values that are not known."""
        return self.unknown if self.after is None else self.unknown.union(self.after.present)

    @property
    def identities(self) -> tuple[bytes, ...]:
        """The identity of the row; those before and after for an update in a table without a primary key."""
        return (self.key,) if self.moved_to is None else (self.key, self.moved_to)


@attrs.frozen
class Transaction:
    """
    The row changes of one user transaction.

    Attributes:
        epoch: The cluster's own epoch in which it committed.
        group: Its number among the groups of that epoch, from 0.
        changes: In the order of the binlog.
    """

    epoch: int
    group: int
    changes: tuple[RowChange, ...]


@attrs.frozen
class Window:
    """
    What bounds the place of an epoch apply without a trace, besides `EpochApply.arrived`.

    Attributes:
        before: It was applied before the group at this position; END if nothing bounds it.
        certain: Whether it was applied at all; the binlog after it shows that only if a later epoch left a trace.
    """

    before: Position = END
    certain: bool = True


@attrs.frozen
class RowMoment:
    """
    When an applier judged a row of an epoch, if its cluster changed the row between that and the commit.

    Attributes:
        table: ``database.table``.
        key: Identity of the row.
        after: The own position after which it was judged.
    """

    table: str
    key: bytes
    after: Position


@attrs.frozen
class EpochApply:
    """
    The applying of one foreign epoch by an applier.

    Attributes:
        epoch: Own epoch in which it committed; if untraced, the one that is logged next.
        group: Its number among the groups of that epoch; if untraced, that of the group before it, or -1.
        source: Name of the cluster that made the foreign epoch.
        foreign_epoch: The foreign epoch.
        traced: Whether the applier's binlog shows it. An epoch that changed nothing but ``mysql.ndb_apply_status`` is
            not logged, and never comes back to the other cluster.
        restarted: Whether the applier is known to have been restarted since the epoch apply before. Then it has
            forgotten that it was looking for transactions in conflict (see `conflict.engine.reference.applier`).
        moments: Rows that it judged some time before the commit. All others were judged as they stood at the commit.
        arrived: An own position before which the applier cannot have begun to apply it.
        window: What else bounds its place, if it left no trace and its place is not given.
        applied: Whether it counts as applied; False for one that may have been.
        period: How often the replica had been set back before.
        reported: Whether its binlog has the `ndb_apply_status` row, which goes back to the other cluster.
        role: The role of its cluster then; None if it is the role of `Cluster`.
        committed: Microsecond since 1970 at which the foreign epoch committed on its cluster; None if not known.
        server: Server id of the SQL node that applied it; 0 for that of the cluster, where it has one.
        source_server: Server id of the SQL node from whose binlog it was applied; 0 likewise.
    """

    epoch: int
    group: int
    source: str
    foreign_epoch: int
    traced: bool = True
    restarted: bool = False
    moments: tuple[RowMoment, ...] = ()
    arrived: Position = START
    window: Window | None = None
    applied: bool = True
    period: int = 0
    reported: bool = True
    role: Role | None = None
    committed: int | None = attrs.field(default=None, eq=False)
    server: int = 0
    source_server: int = 0


@attrs.frozen(eq=False)
class DefinitionChange:
    """
    A statement that changed definitions on a cluster.

    Attributes:
        epoch: Own epoch after which it was carried out.
        step: The statement.
        group: After all groups of that epoch.
        follows: The last epoch of the other cluster that was applied before, if the statement came from there; else -1.
    """

    epoch: int
    step: DefinitionStep
    group: int = LAST_GROUP
    follows: int = -1


Timeline = tuple[Transaction | EpochApply | DefinitionChange, ...]


@attrs.frozen
class Start:
    """
    The start of a log whose tables were not empty before.

    Attributes:
        epoch: First own epoch of the log. Rows that are older were last changed before it.
        rows: Rows as they were then, by table and key, as bytes per column position; None is NULL.
        tables: Tables whose rows are all among these. What other rows of other tables were is not known.
        returned: Own epoch that had come back before the applier applied the first epoch that the other log holds; 0 if
            the logs show all that came back.
        whole: Whether the log does not start in the middle after all: only rows are not known that their cluster
            changed without a log.
    """

    epoch: int
    rows: Mapping[tuple[str, bytes], Mapping[int, bytes | None]] = attrs.field(factory=dict, repr=False)
    tables: frozenset[str] = frozenset()
    returned: int = 0
    whole: bool = False


def whole_start(tables: Iterable[Table]) -> Start:
    """Return the start of a log that does not start in the middle, some of whose rows are not known all the same."""
    return Start(1, tables=frozenset(table.full_name for table in tables), whole=True)


class UnloggedKind(Enum):
    """What a change without a log did to a row."""

    CHANGED = "changed"
    INSERTED = "inserted"
    DELETED = "deleted"


@attrs.frozen
class UnloggedChange:
    """
    A row that a cluster changed without a log (see `conflict.history.unlogged_changes`).

    Attributes:
        table: ``database.table``.
        key: Identity of the row.
        kind: What happened to it.
        after: Own position of the last change of the row that the log holds before.
        shown: Own position of the change that shows it.
        origin: Where that change is logged; None for a refresh.
    """

    table: str
    key: bytes
    kind: UnloggedKind
    after: Position
    shown: Position
    origin: Origin | None = None


@attrs.frozen
class ReturnedEpoch:
    """
    The row of `ndb_apply_status` that brings an own epoch back, in the compressed transaction of a later own one.

    Attributes:
        group: The group of the later epoch that holds it.
        epoch: The epoch that comes back.
        server: Id of the SQL node whose epoch it is and whose log it stands in.
        origin: Where it is logged.
    """

    group: int
    epoch: int
    server: int
    origin: Origin | None = None


@attrs.frozen
class Payloads:
    """
    What a cluster logged in compressed transactions. A replica takes all of one, also what it made itself.

    An event within a Transaction_payload event is applied whatever server id it bears: an applier that reads the log
    tells by the id of the Transaction_payload event, which is that of the logging server.

    Attributes:
        epochs: Own epochs that are compressed.
        returned: By such an epoch, the first row of `ndb_apply_status` in it that brings an older own one back.
        transactions: Ids of the NDB transactions of the cluster's applier in such epochs, by own position.
        relays: Whether the log holds what the cluster's applier applied (`log_replica_updates`).
    """

    epochs: frozenset[int] = frozenset()
    returned: Mapping[int, ReturnedEpoch] = attrs.field(factory=dict)
    transactions: Mapping[Position, int] = attrs.field(factory=dict)
    relays: bool = True


@attrs.frozen
class Cluster:
    """
    One cluster of a History.

    Attributes:
        name: The user's name for it.
        server_id: Server id of its logging and applying server.
        timeline: Transactions, epoch applies and changes of definitions in the order in which they happened; epochs
            never fall.
        role: Its role at first, for the functions that have roles.
        start: Where its log starts in the middle; None if its tables were empty before.
        ignored: Per source, servers other than its own whose changes it does not take from there.
        filtered: Per source, tables whose changes its applier drops (`replicate_*`), ``database.table``.
        restarts: By server of its, the own epochs from which on its counters count anew after a restart, in order.
        unlogged: Rows that it changed without a log, and that are followed.
        payloads: What it logged in compressed transactions.
        applies_singly: Whether its applier sends the operations of an epoch one by one (`replica_allow_batching=OFF`),
            so that its own transactions can change a row between two of them.
    """

    name: str
    server_id: int
    timeline: Timeline = attrs.field(repr=False)
    role: Role = Role.NONE
    start: Start | None = None
    ignored: Mapping[str, frozenset[int]] = attrs.field(factory=dict)
    filtered: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    restarts: Restarts = attrs.field(factory=dict)
    unlogged: tuple[UnloggedChange, ...] = attrs.field(default=(), repr=False)
    payloads: Payloads = attrs.field(default=Payloads(), repr=False)
    applies_singly: bool = False

    @property
    def unlogged_rows(self) -> frozenset[tuple[str, bytes]]:
        """The rows that it changed without a log."""
        return frozenset((each.table, each.key) for each in self.unlogged)

    def shows_later(self, apply: EpochApply) -> bool:
        """Whether its log shows an epoch apply or a later one of the same source, so that nothing stopped it there."""
        return any(
            isinstance(item, EpochApply)
            and item.traced
            and item.source == apply.source
            and item.foreign_epoch >= apply.foreign_epoch
            for item in reversed(self.timeline)
        )

    def drops(self, table: str, source: str) -> bool:
        """Whether its applier drops the changes of a table from a source."""
        return table in self.filtered.get(source, ())

    def takes(self, server_id: int, source: str) -> bool:
        """Whether its applier takes changes of a server from a source: not its own, nor those that are ignored."""
        return server_id != self.server_id and server_id not in self.ignored.get(source, ())


@attrs.frozen
class History:
    """
    What happened.

    Attributes:
        clusters: Two clusters that replicate to each other, or any number that replicate from one another.
        layouts: How the rows of each table are read, by ``database.table``.
        assumed: By applying cluster, how many untraced epoch applies stand at an assumed place.
        applies: By applying cluster, its epoch applies, those among them that may have been; those of one source in
            order. Empty if all places are given.
        ends: By cluster, the last group of each own epoch; empty if all places are given.
        unlogged: By cluster, the rows that it changed without a log; `Cluster` has those that are followed.
        databases: The names that clusters use for databases which appliers rename.
    """

    clusters: tuple[Cluster, ...]
    layouts: dict[str, RowLayout] = attrs.field(repr=False)
    assumed: dict[str, int] = attrs.field(factory=dict)
    applies: dict[str, tuple[EpochApply, ...]] = attrs.field(factory=dict, repr=False)
    ends: Mapping[str, Sequence[Position]] = attrs.field(factory=dict, repr=False)
    unlogged: Mapping[str, tuple[UnloggedChange, ...]] = attrs.field(factory=dict, repr=False)
    databases: DatabaseNames = attrs.field(factory=DatabaseNames)

    def cluster(self, name: str) -> Cluster:
        """Return the cluster of that name."""
        return next(cluster for cluster in self.clusters if cluster.name == name)

    @property
    def relays(self) -> bool:
        """Whether clusters log what they applied for a third one. With two, that would only go back to its origin."""
        return len(self.clusters) > 2

    @property
    def links(self) -> dict[Link, tuple[EpochApply, ...]]:
        """The epoch applies by link, in order."""
        found: dict[Link, list[EpochApply]] = {}
        for name, applies in self.applies.items():
            for apply in applies:
                found.setdefault((name, apply.source), []).append(apply)
        return {link: tuple(each) for link, each in found.items()}


def changes_of(timeline: Timeline) -> list[RowChange]:
    """Return all row changes of a timeline in order."""
    return [change for item in timeline if isinstance(item, Transaction) for change in item.changes]


_Order = tuple[int, int, int, int, int]  # epoch, group, after groups of that number, and two places among equals


def timeline_of(
    transactions: Sequence[Transaction], applies: Sequence[EpochApply], changes: Sequence[DefinitionChange] = ()
) -> Timeline:
    """Merge a cluster's transactions, epoch applies and changes of definitions, in the order in which they happened."""
    keys = [((item.epoch, item.group, 0, 0, 0), item) for item in transactions]
    items: list[tuple[_Order, Transaction | EpochApply | DefinitionChange]] = [*keys]
    taken = [
        ((item.epoch, item.group, 0 if item.traced else 1, order, 0), item)
        for order, item in enumerate(applies)
        if item.applied
    ]
    items += taken
    for order, change in enumerate(changes):
        before = [key for key, item in taken if item.period == 0 and item.foreign_epoch <= change.follows]
        place = (change.epoch, change.group, 1, -1, 0)
        last = max([place, *before])
        items.append(((*last[:4], order + 1), change))
    return tuple(item for _, item in sorted(items, key=lambda entry: entry[0]))
