"""
What appliers were found to do to a bucket's rows, against what their binlogs show.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.kernels.arrays import Int32, Int64, UInt64, each_read_only, read_only
from conflict.columnar.kernels.effects import DecidedRows, SentRows, ShownRows, compare, in_order, touched_rows
from conflict.columnar.kernels.records import packed_changes, packed_schedule
from conflict.columnar.kernels.search import open_start
from conflict.history.reconcile import MAX_CONTRADICTIONS

__all__ = ["Difference", "Differing", "compare_effects"]

# Cluster by number, own epoch and group of a take.
Place = tuple[int, int, int]


@attrs.frozen
class Difference:
    """
    A take of which the binlog shows something else.

    Attributes:
        rows: On how many rows of the bucket the two differ.
        changed_at: Where the cluster itself changed one of them while its applier may have been at work on the take,
            as (epoch, group).
    """

    rows: int = 0
    changed_at: frozenset[tuple[int, int]] = frozenset()

    def __add__(self, other: Difference) -> Difference:
        return Difference(self.rows + other.rows, self.changed_at | other.changed_at)


@attrs.frozen
class Differing:
    """
    How an applier's work compares with what its binlog shows.

    Attributes:
        compared: How many rows, per take, either holds.
        contradicted: How many of those are not the same.
        places: Where, as far as the first `MAX_CONTRADICTIONS` + 1 places of each applier: more are never explained.
    """

    compared: int
    contradicted: int
    places: Mapping[Place, Difference]


def compare_effects(result: BucketResult, *, with_places: bool) -> Differing:
    """
    Return how the binlogs and what was found agree.

    Args:
        result: A bucket, decided.
        with_places: Whether it is wanted where they differ.
    """
    compared = contradicted = 0
    places: dict[Place, Difference] = {}
    for number in range(len(result.clusters)):
        rows, epochs, groups, keys = _compare(result, number)
        compared += rows
        contradicted += len(keys)
        if with_places:
            places.update(_places(result, number, epochs, groups, keys))
    return Differing(compared, contradicted, places)


def _compare(result: BucketResult, number: int) -> tuple[int, UInt64, Int32, Int64]:
    """Return how many rows of an applier were compared, and epoch, group and key of those that differ."""
    decisions, logged, applies = result.folded.decisions, result.folded.logged, result.applies
    keys = len(result.bucket.key_table)
    mine = np.flatnonzero(logged.refresh & (logged.cluster == number))
    decided = DecidedRows(*each_read_only(*(getattr(decisions, name) for name in DecidedRows._fields)))
    sent = SentRows(*each_read_only(*(getattr(logged, name)[mine] for name in SentRows._fields)))
    apply, key, effect = touched_rows(number, read_only(applies.applier), decided, sent, keys)
    found = ShownRows(*each_read_only(applies.epoch[apply], applies.group[apply], key, effect))
    rows, epochs, groups, differing = compare(found, ShownRows(*each_read_only(*_shown(result, number))), keys)
    return rows, epochs, groups, differing


def _shown(result: BucketResult, number: int) -> list[np.ndarray]:
    """Return epoch, group, key and effect of the rows that the binlog shows that an applier touched, in order."""
    names = ("epoch", "group", "key", "effect")
    result.bucket.consequences[number].read(names)
    shown = [result.bucket.consequences[number].array(name) for name in names]
    if in_order(read_only(shown[0]), read_only(shown[1])):
        return shown
    order = np.lexsort((shown[1], shown[0]))
    return [column[order] for column in shown]


def _places(result: BucketResult, number: int, epochs: UInt64, groups: Int32, keys: Int64) -> dict[Place, Difference]:
    """Return the first places where an applier's work differs; rows of one place stand together."""
    places: dict[Place, Difference] = {}
    for epoch, group, key in zip(epochs.tolist(), groups.tolist(), keys.tolist(), strict=True):
        place = (number, epoch, group)
        if place not in places and len(places) > MAX_CONTRADICTIONS:
            break
        places[place] = places.get(place, Difference()) + Difference(1, _changed_at(result, place, key))
    return places


def _changed_at(result: BucketResult, place: Place, key: int) -> frozenset[tuple[int, int]]:
    """Return where a cluster changed a row while its applier may have been at work on the take at a place."""
    number, epoch, group = place
    applies, rows = result.applies, result.bucket.rows[number]
    here = (applies.applier == number) & (applies.epoch == epoch) & (applies.group == group) & applies.traced
    schedule, changes = packed_schedule(applies), packed_changes(result.bucket.rows)
    changed: set[tuple[int, int]] = set()
    for apply in np.flatnonzero(here).tolist():
        first = open_start(apply, schedule, changes) - changes.begin[number]
        stretch = slice(int(first), int(result.folded.own_end[apply]))
        mine = np.flatnonzero(rows.key[stretch] == key) + stretch.start
        changed.update(zip(rows.epoch[mine].tolist(), rows.group[mine].tolist(), strict=True))
    return frozenset(changed)
