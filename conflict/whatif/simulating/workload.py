"""
What the users of a cluster want, drawn from a description in YCSB's words.

Everything is drawn before the simulation runs, so it does not depend on what the clusters hold. What comes of a wish
does: see `Wish`.

Random numbers of a simulation: one stream per cluster and purpose, each a function of the seed alone.

The streams are numpy's Philox, a counter-based generator, so that no stream depends on how much of another was used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import Protocol

import attrs
import numpy as np

from conflict.engine.kernels.arrays import Bool, Int8, Int64, UInt64
from conflict.whatif.simulating.kernels.world import RESOLVE_BIT, Wish
from conflict.whatif.simulating.key_choice import KeyChoice, Latest, Uniform, drawn_by_weight


class Purpose(IntEnum):
    """What a stream is for."""

    TIMES = 0
    SHAPES = 1
    TABLES = 2
    KEYS = 3
    COLUMNS = 4
    LATENCY = 5
    PHASE = 6


def stream(seed: int, side: int, purpose: Purpose) -> np.random.Generator:
    """Return the stream of a cluster, by its number from 0, for a purpose."""
    return np.random.Generator(np.random.Philox(key=[seed, side << 8 | purpose]))


SECOND = 1_000_000


class InsertKeys(StrEnum):
    """Which keys inserts have."""

    OWN = "own"  # new ones, which the other cluster does not use, as with ``auto_increment_offset``
    SHARED = "shared"  # new ones, which the other cluster uses too
    ANY = "any"  # those of rows that are wanted


class Shapes(Protocol):
    """Chooses what transactions consist of."""

    def draw(self, chance: Mapping[Purpose, np.random.Generator], count: int) -> tuple[Int64, Int8, Int64]:
        """Return the size of each transaction, and kind and table of each wish."""


@attrs.frozen
class Mix:
    """
    Wishes of all kinds in given proportions.

    Attributes:
        proportions: Weight of each kind of wish.
        rows: Weight of each number of rows per transaction.
        tables: Weight of each table.
        together: Tables per transaction; its wishes take turns.
    """

    proportions: Mapping[Wish, float]
    rows: Mapping[int, float] = attrs.field(factory=lambda: {1: 1.0})
    tables: Mapping[int, float] = attrs.field(factory=lambda: {0: 1.0})
    together: int = 1

    def draw(self, chance: Mapping[Purpose, np.random.Generator], count: int) -> tuple[Int64, Int8, Int64]:
        """See `Shapes`."""
        shapes = chance[Purpose.SHAPES]
        sizes = _weighted(shapes, self.rows, count)
        kinds = _weighted(shapes, {int(kind): weight for kind, weight in self.proportions.items()}, int(sizes.sum()))
        chosen = _weighted(chance[Purpose.TABLES], self.tables, count * self.together).reshape(count, self.together)
        number = np.repeat(np.arange(count), sizes)
        within = np.arange(len(number)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return sizes, kinds.astype(np.int8), chosen[number, within % self.together]


@attrs.frozen(eq=False)
class Pairs:
    """
    Wishes for rows of tables.

    Attributes:
        pairs: Kind and table of each.
        weights: How often each occurs.
        rows: Weight of each number of rows per transaction.
        stays: Share of the wishes that are for the table of their transaction's first one, besides those by chance.
    """

    pairs: tuple[tuple[Wish, int], ...]
    weights: tuple[float, ...]
    rows: Mapping[int, float]
    stays: float = 0

    def draw(self, chance: Mapping[Purpose, np.random.Generator], count: int) -> tuple[Int64, Int8, Int64]:
        """See `Shapes`."""
        sizes = _weighted(chance[Purpose.SHAPES], self.rows, count)
        pairs = np.array(self.pairs)
        table = pairs[_weighted(chance[Purpose.TABLES], dict(enumerate(self.weights)), int(sizes.sum())), 1]
        first = np.repeat(np.cumsum(sizes) - sizes, sizes)
        table = np.where(chance[Purpose.TABLES].random(len(table)) < self.stays, table[first], table)
        kind = np.zeros(len(table), np.int8)
        for number in np.unique(table):
            mine = np.flatnonzero(table == number)
            kinds = {
                int(wish): weight
                for (wish, each), weight in zip(self.pairs, self.weights, strict=True)
                if each == number
            }
            kind[mine] = _weighted(chance[Purpose.SHAPES], kinds, len(mine))
        return sizes, kind, table.astype(np.int64)


@attrs.frozen(eq=False)
class Listed:
    """
    Transactions as they are listed.

    Attributes:
        shapes: Kind and table of each wish of a transaction.
        weights: How often each occurs.
    """

    shapes: tuple[tuple[tuple[Wish, int], ...], ...]
    weights: tuple[float, ...]

    def draw(self, chance: Mapping[Purpose, np.random.Generator], count: int) -> tuple[Int64, Int8, Int64]:
        """See `Shapes`."""
        chosen = _weighted(chance[Purpose.SHAPES], dict(enumerate(self.weights)), count)
        lengths = np.array([len(shape) for shape in self.shapes])
        flat = np.array([wish for shape in self.shapes for wish in shape]).reshape(-1, 2)
        sizes = lengths[chosen]
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        taken = flat[np.repeat((np.cumsum(lengths) - lengths)[chosen], sizes) + within]
        return sizes, taken[:, 0].astype(np.int8), taken[:, 1].astype(np.int64)


@attrs.frozen(eq=False)
class Workload:
    """
    What the users of one cluster do.

    Attributes:
        rates: Transactions per second, in time slots of equal length; they repeat.
        shapes: What a transaction consists of.
        slot: Length of a time slot, in microseconds.
        by_epochs: Whether the first slot begins with the epoch that is open when users begin, and not with them.
        keys: Which rows are wanted, by table; uniform where left out.
        columns: Data columns that an update sets; 0 is all of them, as an ORM does.
        column_sets: By table, sets of columns (bits) that updates set, with weights; in place of `columns`.
        affinity: Share of the wishes for rows of the cluster's own half of each table.
        inserts: By table, which keys inserts have; those of the cluster's own where left out.
        operations: Most wishes in all; 0 is no limit.
        think: Time between reading and committing, in microseconds.
        checks: A transaction fails if a row that it wants changed while it thought.
        retries: How often a transaction that fails is tried again.
        retry_delay: How long after it failed, in microseconds.
    """

    rates: tuple[float, ...]
    shapes: Shapes
    slot: int = SECOND
    by_epochs: bool = False
    keys: Mapping[int, KeyChoice] = attrs.field(factory=dict)
    columns: int = 0
    column_sets: Mapping[int, tuple[tuple[int, float], ...]] = attrs.field(factory=dict)
    affinity: float = 0
    inserts: Mapping[int, InsertKeys] = attrs.field(factory=dict)
    operations: int = 0
    think: int = 0
    checks: bool = False
    retries: int = 0
    retry_delay: int = 0


@attrs.frozen(eq=False)
class Drawn:
    """
    What users want, with keys that are numbers within their tables.

    Attributes:
        start: When each transaction starts. int64, shape (transactions,).
        sizes: Wishes of each. Shape (transactions,).
        kind: `Wish`. Shape (wishes,).
        table: Number of the table. Shape (wishes,).
        key: Number of the row in it. Shape (wishes,).
        writes: Columns that it sets, as a set of bits. uint64, shape (wishes,).
    """

    start: Int64
    sizes: Int64
    kind: Int8
    table: Int64
    key: Int64
    writes: UInt64


@attrs.frozen
class KeySpace:
    """
    The tables as a workload sees them.

    Attributes:
        records: Rows that each table holds at first.
        columns: Data columns of each.
        clusters: How many clusters share them.
    """

    records: Sequence[int]
    columns: Sequence[int]
    clusters: int = 2


def draw_wishes(workload: Workload, tables: KeySpace, duration: int, seed: int, side: int, opened: int = 0) -> Drawn:
    """
    Draw what the users of a cluster want.

    Args:
        workload: What they do.
        tables: The tables.
        duration: How long, in microseconds.
        seed: Of the run.
        side: Number of the cluster.
        opened: How long its epoch has been open when users begin.
    """
    chance = {purpose: stream(seed, side, purpose) for purpose in Purpose}
    start = _times(workload, duration, opened if workload.by_epochs else 0, chance[Purpose.TIMES])
    sizes, kind, table = workload.shapes.draw(chance, len(start))
    if workload.operations:
        kept = int(np.searchsorted(np.cumsum(sizes), workload.operations, "right"))
        wishes = int(sizes[:kept].sum())
        start, sizes, kind, table = start[:kept], sizes[:kept], kind[:wishes], table[:wishes]
    key = np.zeros(len(kind), np.int64)
    writes = np.zeros(len(kind), np.uint64)
    for number, records in enumerate(tables.records):
        mine = np.flatnonzero(table == number)
        choice = workload.keys.get(number, Uniform())
        inserts = workload.inserts.get(number, InsertKeys.OWN)
        ranks = choice.ranks(chance[Purpose.KEYS], len(mine), max(records, 1))
        share = (tables.clusters, side)
        own = _own_part(ranks, workload.affinity, records, share, chance[Purpose.KEYS])
        newest = isinstance(choice, Latest)
        key[mine] = (
            own if inserts is InsertKeys.ANY else _with_new(own, kind[mine], records, share, inserts, newest=newest)
        )
        writes[mine] = _column_sets(workload, number, tables.columns[number], len(mine), chance[Purpose.COLUMNS])
    return Drawn(start, sizes, kind, table, key, writes | RESOLVE_BIT)


def _weighted(chance: np.random.Generator, weights: Mapping[int, float], count: int) -> Int64:
    """Return `count` of some numbers, by weight."""
    numbers = np.array(list(weights), np.int64)
    if len(numbers) == 1:
        return np.broadcast_to(numbers, count).copy()
    return numbers[drawn_by_weight(chance, np.array(list(weights.values()), np.float64), count)]


def _times(workload: Workload, duration: int, begun: int, chance: np.random.Generator) -> Int64:
    """
    Return when transactions start: in each slot a Poisson number of them, at any time in it.

    The first slot has gone on for a time `begun`.
    """
    slots = -(-(duration + begun) // workload.slot)
    rates = np.resize(np.array(workload.rates, np.float64), slots)
    counts = chance.poisson(rates * workload.slot / SECOND)
    begins = np.repeat(np.arange(slots) * workload.slot, counts)
    times = np.sort(begins + (chance.random(len(begins)) * workload.slot).astype(np.int64)) - begun
    return times[(times >= 0) & (times < duration)]


def _with_new(
    ranks: Int64, kind: Int8, records: int, share: tuple[int, int], inserts: InsertKeys, *, newest: bool
) -> Int64:
    """
    Return the rows that wishes want: inserts take new keys; with `newest`, ranks count from the newest row back.

    `share` is how many clusters there are, and the number of this one: of new rows, every second or third is its own.
    """
    clusters, side = share
    inserted = kind == Wish.INSERT
    earlier = np.cumsum(inserted) - inserted  # inserts of this cluster before each wish
    shared = inserts is InsertKeys.SHARED
    if newest:
        last = records - 1 + (earlier if shared else np.maximum(clusters * (earlier - 1) + side + 1, 0))
        ranks = np.maximum(last - ranks, 0)
    return np.where(inserted, records + (earlier if shared else clusters * earlier + side), ranks)


def _own_part(
    ranks: Int64, affinity: float, records: int, share: tuple[int, int], chance: np.random.Generator
) -> Int64:
    """Move ranks, as often as `affinity` says, to the cluster's own part of the rows: of two clusters, every second."""
    clusters, side = share
    if not affinity or records < clusters:
        return ranks
    own: Bool = chance.random(len(ranks)) < affinity
    moved = ranks - ranks % clusters + side
    return np.where(own, np.where(moved < records, moved, side), ranks)


def _column_sets(workload: Workload, table: int, columns: int, count: int, chance: np.random.Generator) -> UInt64:
    """Return the data columns that each of some wishes sets, as sets of bits."""
    if table in workload.column_sets:
        sets = workload.column_sets[table]
        chosen = _weighted(chance, dict(enumerate(weight for _, weight in sets)), count)
        return np.array([bits for bits, _ in sets], np.uint64)[chosen]
    if not 0 < workload.columns < columns:
        return np.full(count, (1 << columns) - 1, np.uint64)
    order = np.argsort(chance.random((count, columns)), axis=1)[:, : workload.columns]
    bits: UInt64 = np.left_shift(np.uint64(1), order.astype(np.uint64)).sum(axis=1, dtype=np.uint64)
    return bits
