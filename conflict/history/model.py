"""
A History: what each cluster did itself, and when it applied the other's epochs.

Binlogs are read into a History, and engines read it. It holds no consequences: what appliers did, rejected and
refreshed is derived from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from conflict.config.database_names import DatabaseNames
from conflict.history.timeline import EpochApply, Position, ReturnedEpoch, Timeline
from conflict.history.unlogged import Crash, UnloggedChange
from conflict.rules.replication_table import Role
from ndb_formats.events.row_image import RowLayout
from ndb_formats.schema.tables import Table

if TYPE_CHECKING:  # numpy is not loaded for the help of commands
    from conflict.history.restarts import Restarts

# A cluster and one that it replicates from.
Link = tuple[str, str]


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
        crashes: By cluster, where all its data nodes went down, and what may be gone.
    """

    clusters: tuple[Cluster, ...]
    layouts: dict[str, RowLayout] = attrs.field(repr=False)
    assumed: dict[str, int] = attrs.field(factory=dict)
    applies: dict[str, tuple[EpochApply, ...]] = attrs.field(factory=dict, repr=False)
    ends: Mapping[str, Sequence[Position]] = attrs.field(factory=dict, repr=False)
    unlogged: Mapping[str, tuple[UnloggedChange, ...]] = attrs.field(factory=dict, repr=False)
    databases: DatabaseNames = attrs.field(factory=DatabaseNames)
    crashes: Mapping[str, Sequence[Crash]] = attrs.field(factory=dict, repr=False)

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
