"""
The timeline of a cluster: its transactions, its applier's epoch applies, and statements that change definitions.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from conflict.config.definitions import DefinitionStep
from conflict.rules.replication_table import Role
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import ConflictFlag, Operation

NO_FLAGS = ConflictFlag(0)

# (own epoch, group): after that group of that epoch. Nothing comes before START.
Position = tuple[int, int]
START: Position = (0, -1)
END: Position = (2**64 - 1, 0)
LAST_GROUP = 2**31 - 1  # greater than the groups of any epoch
OVERLAPPING = 4  # parallel workers may judge an epoch before so many epochs in front of it are committed


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
        committed: Microsecond since 1970 at which its epoch committed; None if not known.
    """

    epoch: int
    group: int
    changes: tuple[RowChange, ...]
    committed: int | None = attrs.field(default=None, eq=False)


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
        epoch: Own epoch after which it was carried out; once it has its place, that of `statement_positions`.
        step: The statement.
        group: After all groups of that epoch; likewise.
        follows: The last epoch of the other cluster that was applied before, if the statement came from there; else -1.
    """

    epoch: int
    step: DefinitionStep
    group: int = LAST_GROUP
    follows: int = -1


Timeline = tuple[Transaction | EpochApply | DefinitionChange, ...]


def statement_positions(before: Sequence[int], following: Sequence[int | None]) -> list[Position]:
    """
    Return the own positions of the statements of a log, each between two epochs and what the applier did there.

    Between two statements with the same epochs around them, an epoch apply has room.

    Args:
        before: Per statement, the own epoch before it; 0 for none.
        following: Per statement, the own epoch after it; None for none.
    """
    found = list[Position]()
    for number, (epoch, after) in enumerate(zip(before, following, strict=True)):
        earlier, later = before[:number].count(epoch), before[number + 1 :].count(epoch)
        found.append((epoch + 1, 2 * earlier if after != epoch + 1 else -1 - 2 * later))
    return found


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
