"""
A History: what each cluster did itself, and when it took the other's epochs.

Everything either makes a History (binlogs, a simulation) or reads one (both engines). It holds no
consequence: what appliers did, rejected and sent again is derived from it.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from conflict.rules.roles import Role
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import Operation

__all__ = ["Cluster", "EpochApply", "History", "Origin", "RowChange", "Timeline", "Transaction"]

NO_FLAGS = ConflictFlag(0)


@attrs.frozen
class Origin:
    """Where a row change stands: file, position of its event, number of the row in the event."""

    file: str
    position: int
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
        origin: Where it stands in a binlog; None if it was made up.
    """

    table: str
    key: bytes
    operation: Operation
    before: RowImage | None
    after: RowImage | None
    transaction_id: int | None = None
    flags: ConflictFlag = NO_FLAGS
    origin: Origin | None = None


@attrs.frozen
class Transaction:
    """
    The row changes of one user transaction.

    Attributes:
        epoch: The cluster's own epoch in which it committed.
        group: Its place among the groups of that epoch, from 0.
        changes: In the order of the binlog.
    """

    epoch: int
    group: int
    changes: tuple[RowChange, ...]


@attrs.frozen
class EpochApply:
    """
    The applier took one foreign epoch.

    Attributes:
        epoch: Own epoch in which it committed; without a trace, the one that is logged next.
        group: Its place among the groups of that epoch; without a trace, that of the group it follows, or -1.
        source: Name of the cluster whose epoch it is.
        foreign_epoch: That cluster's epoch.
        traced: Whether the binlog shows it. An epoch that changed nothing but
            ``mysql.ndb_apply_status`` is not logged, and never comes back to the other side.
        restarted: Whether the applier was started since the take before. It forgets then that it was
            looking for transactions in conflict (see `conflict.reference.applier`).
        judged: The own position (epoch, group) after which the applier looked for transactions in conflict, where
            that is not right before it committed: going over an epoch more than once takes time.
        arrived: An own position before which the applier cannot have begun with it.
    """

    epoch: int
    group: int
    source: str
    foreign_epoch: int
    traced: bool = True
    restarted: bool = False
    judged: tuple[int, int] | None = None
    arrived: tuple[int, int] = (0, -1)


Timeline = tuple[Transaction | EpochApply, ...]


@attrs.frozen
class Cluster:
    """
    One cluster of a History.

    Attributes:
        name: As the user calls it.
        server_id: Of its logging and applying server.
        timeline: Transactions and takes in the order in which they happened; epochs never fall.
        role: What it is for the functions that have roles.
    """

    name: str
    server_id: int
    timeline: Timeline = attrs.field(repr=False)
    role: Role = Role.NONE


@attrs.frozen
class History:
    """
    What happened.

    Attributes:
        clusters: Two clusters that replicate to each other, or more in a ring.
        layouts: How the rows of each table are read, by ``database.table``.
        assumed: Foreign epochs without a trace whose place was assumed, by applying cluster.
    """

    clusters: tuple[Cluster, ...]
    layouts: dict[str, RowLayout] = attrs.field(repr=False)
    assumed: dict[str, int] = attrs.field(factory=dict)

    def cluster(self, name: str) -> Cluster:
        """Return the cluster of that name."""
        return next(cluster for cluster in self.clusters if cluster.name == name)

    def peer(self, name: str) -> Cluster:
        """Return the other cluster."""
        return next(cluster for cluster in self.clusters if cluster.name != name)


def changes_of(timeline: Sequence[Transaction | EpochApply]) -> list[RowChange]:
    """Return all row changes of a timeline in order."""
    return [change for item in timeline if isinstance(item, Transaction) for change in item.changes]
