"""
One cluster of a simulation of more than two: its rows and its applier, what it logs, and what its users are about.

Data columns hold numbers that name the change that wrote them, so two rows are equal exactly if their columns are.
Times are whole microseconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import attrs

from conflict.columnar.kernels.records import Records
from conflict.history.model import RowChange
from conflict.model.configuration import Site
from conflict.model.kernels.users import epoch_number
from conflict.model.kernels.world import NEVER, Intentions, Intervals
from conflict.model.logged_groups import LoggedGroup
from conflict.model.table_layouts import KEY_BYTES
from conflict.reference.applier import Applier
from conflict.reference.cluster import ReplayedCluster
from conflict.reference.row_store import RowKey
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import Table

__all__ = ["Change", "Epoch", "Keys", "Made", "Station", "Totals"]

Change = tuple[int, int]  # of users: number of the cluster, number among its changes
# A row operation in the log of a cluster: epoch and ordinal of a user's, or epoch, group and row of an applier's.
LoggedPlace = tuple[int, int] | tuple[int, int, RowKey]


@attrs.frozen(eq=False)
class Keys:
    """
    The rows of all tables by number.

    Attributes:
        tables: Their definitions.
        offsets: First number of each table, and the number of all.
    """

    tables: Sequence[Table]
    offsets: Sequence[int]

    def table(self, number: int) -> int:
        """Return the number of the table of a row."""
        return next(table for table, stop in enumerate(self.offsets[1:]) if number < stop)

    def payload(self, number: int) -> bytes:
        """Return the bytes of the key column of a row."""
        return (number - self.offsets[self.table(number)]).to_bytes(KEY_BYTES, "little")

    def row(self, number: int) -> RowKey:
        """Return the identity of a row."""
        table = self.tables[self.table(number)]
        return table.full_name, key_of(table.columns[:1], [self.payload(number)])


@attrs.define(eq=False)
class Epoch:
    """
    One own epoch of a cluster, open or logged.

    Attributes:
        number: Its number.
        groups: What each transaction logged in it, users' and the applier's.
        carries: Epochs of other clusters that its applier applied in it.
        bytes: How long it is, for the bandwidth of the link.
        closed: When it ended.
        arrived: When it arrived where it is replicated to.
        came: By number of the cluster, when what it brings was applied there, by way of others too. At its own
            cluster: when it came back.
        begun: By number of the cluster, when the appliers next to it began.
    """

    number: int
    groups: list[LoggedGroup] = attrs.field(factory=list)
    carries: list[Epoch] = attrs.field(factory=list)
    bytes: int = 0
    closed: int = int(NEVER)
    arrived: int = int(NEVER)
    came: dict[int, int] = attrs.field(factory=dict)
    begun: dict[int, int] = attrs.field(factory=dict)

    def arrive(self, side: int, now: int) -> None:
        """Note that it was applied on a cluster, and with it what it carries."""
        if self.came.setdefault(side, now) == now:
            for each in self.carries:
                each.arrive(side, now)


@attrs.frozen(eq=False)
class Made:
    """
    A change of a user.

    Attributes:
        at: When it committed.
        epoch: In which epoch.
        transaction: Number of its transaction.
        table: Number of its table.
        change: How it was logged.
        columns: The columns that it set, without the key.
    """

    at: int
    epoch: Epoch
    transaction: int
    table: int
    change: RowChange
    columns: frozenset[int]

    @property
    def carried(self) -> frozenset[int]:
        """The columns of its after image, without the key."""
        after = self.change.after
        return frozenset() if after is None else frozenset(after.present) - {0}


@attrs.define
class Totals:
    """What the users of a cluster got; see `conflict.model.kernels.world.TOTALS`."""

    committed: int = 0
    failed: int = 0
    again: int = 0
    missed: int = 0
    reads: int = 0
    stale_reads: int = 0


@attrs.define(eq=False)
class Station:
    """
    A cluster.

    Attributes:
        side: Its number.
        site: What it is now; while tables are loaded, nothing takes time.
        settings: Its clock. `SETTINGS`.
        replayed: Its rows and log in the reference engine.
        applier: Its applier there.
        source: The cluster that it replicates from.
        intentions: What its users want.
        latency: Of the link from it, per tick of its epochs.
        outages: When this link is down.
        stops: When its applier is stopped.
        tick: Number of its open epoch.
        open: Its open epoch.
        group: The next group of it.
        epochs: What it logged.
        applies: What its applier applied: own epoch, foreign epoch, and whether its log shows that.
        next_foreign: The next epoch of its source.
        begun: When its applier began that, if it did.
        apply_at: When it will be applied.
        free_at: When its applier was done with the one before.
        sent_at: When the last epoch had left.
        arrived: When it arrived.
        stopped_at: When its applier began the epoch that stopped it; None if it runs.
        next_start: Its next transaction.
        thinking: Transactions that think, and until when.
        retrying: Transactions that wait to be tried again, and until when.
        tries: How often each was tried again.
        versions: How often each row changed on it.
        read: The version of each row that a transaction read, where transactions check that.
        made: The changes of its users.
        origins: Of operations that it logged, the changes of users that they come from.
        authors: Of each row, who wrote which part of it last; see `conflict.rules.lost_updates`.
        refused: Its changes that an applier rejected.
        rejected: Of these, those that are lost.
        overwritten: Its changes that a change overwrote whose cluster had not applied them.
        loaded: How many of its changes loaded the tables.
        decided: How many operations its applier had decided then.
        totals: What its users got.
    """

    side: int
    site: Site
    settings: Records
    replayed: ReplayedCluster
    applier: Applier
    intentions: Intentions
    outages: Intervals
    stops: Intervals
    source: Station | None = None
    latency: Sequence[int] = ()
    tick: int = 0
    open: Epoch = attrs.field(init=False)
    group: int = 0
    epochs: list[Epoch] = attrs.field(factory=list)
    applies: list[tuple[int, int, bool]] = attrs.field(factory=list)
    next_foreign: int = 0
    begun: int = 0
    apply_at: int = int(NEVER)
    free_at: int = 0
    sent_at: int = 0
    arrived: int = 0
    stopped_at: int | None = None
    next_start: int = 0
    thinking: deque[tuple[int, int]] = attrs.field(factory=deque)
    retrying: deque[tuple[int, int]] = attrs.field(factory=deque)
    tries: dict[int, int] = attrs.field(factory=dict)
    versions: dict[RowKey, int] = attrs.field(factory=dict)
    read: dict[int, Mapping[int, int]] = attrs.field(factory=dict)
    made: list[Made] = attrs.field(factory=list)
    origins: dict[LoggedPlace, tuple[Change, ...]] = attrs.field(factory=dict)
    authors: dict[RowKey, dict[int, Change]] = attrs.field(factory=dict)
    refused: set[int] = attrs.field(factory=set)
    rejected: set[int] = attrs.field(factory=set)
    overwritten: set[int] = attrs.field(factory=set)
    loaded: int = 0
    decided: int = 0
    totals: Totals = attrs.field(factory=Totals)

    def __attrs_post_init__(self) -> None:
        self.open = Epoch(self.number)

    @property
    def number(self) -> int:
        """Number of its open epoch."""
        return int(epoch_number(self.settings, self.tick))

    @property
    def closes(self) -> int:
        """When its open epoch ends."""
        return int(self.settings["phase"]) + (self.tick + 1) * self.site.epoch

    @property
    def serves(self) -> int:
        """When a user does something next."""
        starts = self.intentions.start
        times = [int(starts[self.next_start])] if self.next_start < len(starts) else []
        times += [queue[0][1] for queue in (self.thinking, self.retrying) if queue]
        return min(times, default=int(NEVER))

    @property
    def waits(self) -> bool:
        """Whether there is something for its applier."""
        return self.source is not None and self.stopped_at is None and self.next_foreign < len(self.source.epochs)
