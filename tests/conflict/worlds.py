"""
Clusters that commit and apply each other's epochs in any possible order; in a ring, or as their sources say.

Unlike a `random_histories` one, a world only does what clusters can do: it inserts rows that are absent, updates and
deletes rows that are there, with the before images that they have, and one change per row and transaction.
In a ring, which two clusters are too, each applies the epochs of the one before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from random import Random
from typing import Literal

import attrs
from hypothesis import strategies as st

from conflict.engine.inference.observed import ObservedCluster, ObservedPass
from conflict.engine.inference.replay import ObservedApplier
from conflict.engine.ledger.resolution import Outcome
from conflict.engine.reference.cluster import LoggedChange
from conflict.engine.reference.row_store import Row
from conflict.history.model import Cluster
from conflict.history.timeline import EpochApply, RowChange, RowMoment, Transaction
from conflict.rules.replication_table import Role
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from tests.conflict.histories import CLUSTERS, NO_ROLES, TABLES, Setups, image, key, layouts, setups

# An own change: key, whether to delete the row if it is there, how much to add to the value, table.
Wish = tuple[int, bool, int, str]
Step = tuple[Literal["commit", "close", "apply"], int, Sequence[Wish]]
Allowed = Callable[[int, int, Operation], bool]
NONE_IGNORED: Mapping[tuple[int, int], frozenset[int]] = {}


@attrs.frozen
class Made:
    """
    One own change of a cluster.

    Attributes:
        cluster: Which.
        key: Of its row.
        operation: What it was.
        value: x afterwards; None for a delete.
        place: Own epoch, and group in it.
        seen: Last epoch of its first source that it had applied by then.
    """

    cluster: int
    key: int
    operation: Operation
    value: int | None
    place: tuple[int, int]
    seen: int


@attrs.define
class World:
    """
    Some clusters.

    Attributes:
        replayed: The clusters.
        clocks: Per cluster, its current epoch.
        groups: Per cluster, the next group of that epoch.
        closed: Per cluster, its epochs that are logged, in order.
        sources: Per cluster, those whose epochs it applies.
        applied: Per cluster and source, how many epochs it has applied.
        empty_epochs: ``ndb_log_empty_epochs``: log an epoch also where the applier changed nothing but its status.
        rising: Every own change holds a value greater than all that were held before it, as a clock would give.
        allowed: Whether a cluster may do something to a row; what it may not do is left out.
        early: Before how many of its cluster's own changes each row of an epoch is judged, if that can be, in turn.
        made: All own changes.
        places: Where each cluster applied each epoch of its sources, as (own epoch, group); by cluster, source, epoch.
        cut: Links over which nothing is applied any more.
    """

    replayed: list[ObservedCluster]
    clocks: list[int]
    groups: list[int]
    closed: list[list[int]]
    sources: list[tuple[int, ...]]
    empty_epochs: bool = False
    rising: bool = False
    allowed: Allowed = lambda cluster, number, operation: True
    early: Sequence[int] = ()
    made: list[Made] = attrs.field(factory=list)
    places: dict[tuple[int, int, int], tuple[int, int]] = attrs.field(factory=dict)
    cut: set[tuple[int, int]] = attrs.field(factory=set)
    on_apply: Callable[[World, int, list[LoggedChange], dict[int, Row | None]], None] | None = None
    applied: Counter[tuple[int, int]] = attrs.field(factory=Counter)
    _appliers: list[ObservedApplier] = attrs.field(init=False)
    _content: list[bool] = attrs.field(factory=list)
    _closed_at: dict[tuple[int, int], tuple[int, int]] = attrs.field(factory=dict)
    _greatest: int = 0
    _transactions: int = 0

    def __attrs_post_init__(self) -> None:
        self._appliers = [ObservedApplier(each) for each in self.replayed]

    def x(self, cluster: int, number: int, table: str = "t") -> int | None:
        """Return the value of a row; None if it is not there."""
        row = self.replayed[cluster].store.get((f"d.{table}", key(number)))
        return None if row is None else int.from_bytes(row.payloads[1] or b"", "little")

    def contents(self, cluster: int, table: str = "t") -> dict[int, tuple[bytes | None, ...]]:
        """Return the rows of a table, by key."""
        return {
            int.from_bytes(row.payloads[0] or b"", "little"): tuple(row.payloads[place] for place in (1, 2))
            for (name, _), row in self.replayed[cluster].store.rows.items()
            if name == f"d.{table}"
        }

    def run(self, steps: Sequence[Step]) -> None:
        """Do some steps; one that cannot be done is passed over."""
        for kind, number, wishes in steps:
            cluster = number % len(self.replayed)
            if kind == "commit":
                self.commit(cluster, wishes)
            elif kind == "close":
                self.close(cluster)
            else:
                self.apply(cluster)

    def commit(self, cluster: int, wishes: Sequence[Wish]) -> None:
        """Let a cluster change rows in one transaction."""
        self._transactions += 1
        changes: dict[tuple[str, int], RowChange] = {}
        for number, delete, more, table in wishes:
            if (table, number) not in changes:
                change = self._change(cluster, number, table, delete=delete, more=more)
                if change is not None:
                    changes[table, number] = change
        if changes:
            made = Transaction(self.clocks[cluster], self.groups[cluster], tuple(changes.values()))
            self.replayed[cluster].commit(made)
            self._content[cluster] = True
            self.groups[cluster] += 1

    def _change(self, cluster: int, number: int, table: str, *, delete: bool, more: int) -> RowChange | None:
        row = self.replayed[cluster].store.get((f"d.{table}", key(number)))
        operation = Operation.DELETE_ROW if delete else Operation.UPDATE_ROW
        if row is None:
            operation = Operation.WRITE_ROW
        if (row is None and delete) or not self.allowed(cluster, number, operation):
            return None
        before = None if row is None else self._image(row, table)
        after, value = None, None
        if operation is not Operation.DELETE_ROW:
            value = max(self._greatest if self.rising else 0, self.x(cluster, number, table) or 0) + more
            self._greatest = max(self._greatest, value)
            after = image(table, {0: number, 1: value, 2: len(self.made) + 1})
        source = next(iter(self.sources[cluster]), cluster)
        done = self.applied[cluster, source]
        seen = self.closed[source][done - 1] if done else -1
        self.made.append(Made(cluster, number, operation, value, (self.clocks[cluster], self.groups[cluster]), seen))
        identity = cluster << 32 | self._transactions
        return RowChange(f"d.{table}", key(number), operation, before, after, identity)

    @staticmethod
    def _image(row: Row, table: str) -> RowImage:
        present = tuple(sorted(row.payloads))
        return RowImage(layouts()[f"d.{table}"], present, tuple(row.payloads[place] for place in present))

    def close(self, cluster: int) -> None:
        """Begin a new epoch; one that holds nothing is not logged."""
        epoch = self.clocks[cluster]
        if self.groups[cluster]:
            if self._content[cluster] or self.empty_epochs:
                self.closed[cluster].append(epoch)
            else:
                self.replayed[cluster].relayed.pop(epoch, None)
        for other, (clock, group) in enumerate(zip(self.clocks, self.groups, strict=True)):
            self._closed_at[other, epoch] = clock, group
        self.clocks[cluster] += 1
        self.groups[cluster], self._content[cluster] = 0, False

    def waiting(self, cluster: int) -> list[int]:
        """Return the sources that have epochs for a cluster, the one least applied first."""
        found = [
            source
            for source in self.sources[cluster]
            if self.applied[cluster, source] < len(self.closed[source]) and (cluster, source) not in self.cut
        ]
        return sorted(found, key=lambda source: self.applied[cluster, source])

    def apply(self, cluster: int) -> None:
        """Let a cluster apply the next epoch of a source, if there is one."""
        if not self.waiting(cluster):
            return
        number = self.waiting(cluster)[0]
        applying, source = self.replayed[cluster], self.replayed[number]
        epoch = self.closed[number][self.applied[cluster, number]]
        self.applied[cluster, number] += 1
        place = self.places[cluster, number, epoch] = self.clocks[cluster], self.groups[cluster]
        entries = [entry for entry in source.log.get(epoch, []) if isinstance(entry, LoggedChange)]
        rows = {number: applying.store.get(("d.t", key(number))) for number in range(10)}
        apply = EpochApply(*place, source.cluster.name, epoch)
        moments = self._moments(cluster, number, apply, entries)
        self._appliers[cluster].apply_epoch(attrs.evolve(apply, moments=moments), source)
        assert applying.result.stop is None, applying.result.stop
        self.groups[cluster] += 1
        self._content[cluster] |= bool(applying.result.effects[place])
        if self.on_apply is not None:
            self.on_apply(self, cluster, entries, rows)

    def _moments(
        self, cluster: int, origin: int, apply: EpochApply, entries: list[LoggedChange]
    ) -> tuple[RowMoment, ...]:
        """Return when the rows of an epoch are judged: those that the applier locks, at the commit."""
        applying, source = self.replayed[cluster], self.replayed[origin]
        arrived = max(self._closed_at[cluster, apply.foreign_epoch], applying.last_applied)
        moments = []
        for number, row in enumerate(dict.fromkeys(entry.row for entry in entries) if self.early else ()):
            changed = [at for at, _ in applying.earlier.get(row, ()) if at > arrived]
            back = self.early[(number + apply.epoch) % len(self.early)]
            if changed and back:
                own, group = changed[-min(back, len(changed))]
                moments.append(RowMoment(*row, (own, group - 1)))
        trial = ObservedPass(applying, source.cluster, apply, early=applying.rows_at(moments))
        trial.run(applying.arriving(source, apply.foreign_epoch))
        applying.store.roll_back()
        return tuple(each for each in moments if (each.table, each.key) not in trial.locked)

    def find_fixed_point(self) -> None:
        """Let all clusters apply everything, until nothing is left."""
        for _ in range(100):
            moved = False
            for cluster in range(len(self.replayed)):
                while self.waiting(cluster):
                    self.apply(cluster)
                moved |= self._content[cluster]
                self.close(cluster)
            if not moved:
                return
        message = "they reach no fixed point"
        raise AssertionError(message)

    def outcomes(self, cluster: int) -> Iterator[list[Outcome]]:
        """Yield the outcomes of each transaction that a cluster received."""
        found: dict[tuple[int, int], list[Outcome]] = {}
        for outcome in self.replayed[cluster].outcomes:
            found.setdefault((outcome.source_epoch, outcome.group), []).append(outcome)
        yield from found.values()


@cache
def _setups(first: str | None, second: str | None, binlog_type: int, others: str) -> Setups:
    return setups(first, second, tables=TABLES, binlog_type=binlog_type, others=others)


def world(
    function: str | None,
    *,
    clusters: int = 2,
    only_first: bool = False,
    roles: Mapping[str, Role] = NO_ROLES,
    binlog_type: int = 7,
    empty_epochs: bool = False,
    shows_applied: bool = False,
    sources: Sequence[tuple[int, ...]] | None = None,
    ignored: Mapping[tuple[int, int], frozenset[int]] = NONE_IGNORED,
) -> World:
    """
    Return clusters that all hold rows 1 to 3 of table t, and of table n, with x = 10.

    Args:
        function: Conflict function of table t.
        clusters: How many.
        only_first: Only the first cluster has the function.
        roles: As in `histories.history`.
        binlog_type: As in `histories.setups`.
        empty_epochs: See `World`.
        shows_applied: Whether also two clusters log what their appliers changed (`log_replica_updates`).
        sources: See `World`; by default a ring.
        ignored: Per cluster and source, the server ids that it does not take from there.
    """
    names = CLUSTERS[:clusters]
    second = None if only_first else function
    tables = _setups(function, second, binlog_type, names[2:])
    left_out: list[dict[str, frozenset[int]]] = [{} for _ in names]
    for (cluster, source), ids in ignored.items():
        left_out[cluster][names[source]] = ids
    replayed = [
        ObservedCluster(
            Cluster(name, place, (), roles.get(name, Role.NONE), ignored=left_out[place - 1]),
            tables[name],
            layouts(),
            relays=clusters > 2 or shows_applied,
        )
        for place, name in enumerate(names, start=1)
    ]
    ring = [((cluster or clusters) - 1,) for cluster in range(clusters)]
    made = World(
        replayed, [1] * clusters, [0] * clusters, [[] for _ in names], list(sources or ring), empty_epochs=empty_epochs
    )
    made._content = [False] * clusters
    made.commit(0, [(number, False, 10, table) for table in "tn" for number in (1, 2, 3)])
    made.find_fixed_point()
    made.find_fixed_point()  # what came back is known
    made.made.clear()
    for cluster in replayed:
        cluster.outcomes.clear()
    return made


def steps(tables: str = "t") -> st.SearchStrategy[list[Step]]:
    """Return lists of steps."""
    wish = st.tuples(st.integers(1, 6), st.booleans(), st.integers(1, 3), st.sampled_from(tables))
    commit = st.tuples(st.just("commit"), st.integers(0, 3), st.lists(wish, min_size=1, max_size=3))
    other = st.tuples(st.sampled_from(["close", "apply"]), st.integers(0, 3), st.just(()))
    return st.lists(st.one_of(commit, other, other), max_size=30)  # type: ignore[arg-type]


def random_steps(seed: int, count: int, tables: str = "t") -> list[Step]:
    """Return so many steps from a seeded source of chance; far more of them meet than in `steps`."""
    chance, found = Random(seed), list[Step]()
    keys = chance.choice((2, 4, 6))
    for _ in range(count):
        kind = chance.choice(("commit", "close", "close", "apply", "apply"))
        wishes = [
            (chance.randint(1, keys), chance.random() < 0.3, chance.randint(1, 3), chance.choice(tables))
            for _ in range(chance.randint(1, 3) if kind == "commit" else 0)
        ]
        found.append((kind, chance.randrange(12), wishes))  # type: ignore[arg-type]
    return found
