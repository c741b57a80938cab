"""
Unique keys besides the primary key: which take makes two rows hold one value, and so stops its applier.

Rows with the same value can be in any two buckets. So buckets tell every state of the rows of tables that have
such keys, and the driver keeps who holds which value. See `conflict.engine.unique_keys` for the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import attrs
import numpy as np

from conflict.bucket import Bucket
from conflict.bucket_fold import fold_bucket
from conflict.bucket_result import BucketResult
from conflict.kernels.arrays import Bool, Conflicts, TakeArrays
from conflict.kernels.operations import place_of
from conflict.kernels.provenance import ABSENT_IMAGE
from conflict.sites import Site
from conflict.unusable import Phase, Unusable, unusable_decision
from ndb_formats.collation import key_of
from ndb_formats.row_image import RowImage

__all__ = ["UniqueState", "find_duplicates", "has_unique_keys", "unique_states"]

# (table, number of the key, value)
_Entry = tuple[int, int, bytes]
# Own epoch, group, whether it is a take that follows that group without a trace, number of the take.
_Moment = tuple[int, int, bool, int]


@attrs.frozen
class UniqueState:
    """
    The unique values of one row after a transaction.

    Attributes:
        cluster: Number of the cluster.
        moment: When; states of one transaction have the same one.
        place: Place of the operation that touched the row first; orders the rows of a take.
        row: Identity of the row.
        entries: Its values; none if it is not there.
        unusable: The operation that stops the applier if one of them is held by another row; None for own changes.
    """

    cluster: int
    moment: _Moment
    place: tuple[int, ...]
    row: bytes
    entries: tuple[_Entry, ...]
    unusable: Unusable | None


def has_unique_keys(sites: Sequence[Site]) -> Bool:
    """Return which tables have unique keys besides the primary key. Shape (tables,)."""
    return np.array([bool(setup.table.unique_keys) for setup in sites[0].setups], np.bool_)


def unique_states(bucket: Bucket, sites: Sequence[Site], takes: TakeArrays, conflicts: Conflicts) -> list[UniqueState]:
    """
    Return every state of the rows of a bucket that have unique values.

    Args:
        bucket: The bucket.
        sites: Both sites.
        takes: All takes in order.
        conflicts: The transactions in conflict.
    """
    folded = fold_bucket(bucket.rows, len(bucket.keys), sites, takes, conflicts)
    result = BucketResult(bucket, tuple(sites), takes, conflicts, folded, watched=has_unique_keys(sites))
    identities = bucket.keys.column("identity").to_pylist()
    found: dict[tuple[int, _Moment, int], UniqueState] = {}
    watched = result.final.watched
    for number in range(len(watched)):
        cluster, key, decision = (int(array[number]) for array in (watched.cluster, watched.key, watched.decision))
        moment, place, unusable = _occasion(result, cluster, int(watched.row[number]), decision)
        entries = tuple(_entries(result, key, watched.images[number])) if watched.exists[number] else ()
        state = UniqueState(cluster, moment, place, identities[key], entries, unusable)
        first = found.get((cluster, moment, key), state)
        # The first operation tells the order, the last one what the transaction made of the row.
        found[cluster, moment, key] = attrs.evolve(state, place=first.place)
    return list(found.values())


def _occasion(
    result: BucketResult, cluster: int, row: int, decision: int
) -> tuple[_Moment, tuple[int, ...], Unusable | None]:
    takes = result.takes
    if decision < 0:
        rows = result.bucket.rows[cluster]
        return (int(rows.epoch[row]), int(rows.group[row]), False, 0), (int(rows.ordinal[row]),), None
    decisions = result.folded.decisions
    take = int(decisions.take[decision])
    moment = (int(takes.epoch[take]), int(takes.group[take]), not takes.traced[take], int(takes.number[take]))
    place = place_of(decision, decisions, result.folded.logged, takes, result.bucket.rows)
    unusable = unusable_decision(result.bucket, takes, result.folded, result.operations, decision, Phase.COMMIT)
    return moment, place, unusable


def _entries(result: BucketResult, key: int, images: np.ndarray) -> Iterator[_Entry]:
    """Yield the unique values of a row; one with a NULL in it is equal to none."""
    number = int(result.bucket.key_table[key])
    table = result.bucket.numbers.tables[number]
    payloads = _payloads(result, key, images)
    for index, names in enumerate(table.unique_keys):
        places = [table.ordinal(name) for name in names]
        values = [payloads.get(place) for place in places]
        if None not in values:
            yield number, index, key_of([table.columns[place] for place in places], values)


def _payloads(result: BucketResult, key: int, images: np.ndarray) -> dict[int, bytes | None]:
    """Return the column bytes that image numbers stand for."""
    width = int(result.bucket.slots[key + 1] - result.bucket.slots[key])
    found: dict[int, bytes | None] = {}
    cache: dict[int, RowImage] = {}
    for place in range(width):
        number = int(images[place])
        if number == ABSENT_IMAGE:
            continue
        image = cache.get(number) or cache.setdefault(number, result.bucket.image(number))
        found[place] = image.payloads[image.present.index(place)]
    return found


def find_duplicates(states: Iterable[UniqueState]) -> dict[int, Unusable]:
    """Return, per cluster, the operation by which its applier first makes two rows hold one value."""
    found: dict[int, Unusable] = {}
    ordered = sorted(states, key=lambda state: (state.cluster, state.moment, state.place))
    for cluster, own in groupby(ordered, key=lambda state: state.cluster):
        holders: dict[_Entry, bytes] = {}
        held: dict[bytes, tuple[_Entry, ...]] = {}
        for _, group in groupby(own, key=lambda state: state.moment):
            rows = list(group)
            duplicate = _duplicate(rows, holders)
            if duplicate is None:
                _take_over(rows, holders, held)
            elif duplicate.unusable is not None:
                found[cluster] = duplicate.unusable
                break
    return found


def _duplicate(rows: Sequence[UniqueState], holders: dict[_Entry, bytes]) -> UniqueState | None:
    moved = {state.row for state in rows}
    wanted: set[_Entry] = set()
    for state in rows:
        for entry in state.entries:
            holder = holders.get(entry)
            if entry in wanted or (holder is not None and holder not in moved):
                return state
            wanted.add(entry)
    return None


def _take_over(
    rows: Sequence[UniqueState], holders: dict[_Entry, bytes], held: dict[bytes, tuple[_Entry, ...]]
) -> None:
    for state in rows:
        for entry in held.pop(state.row, ()):
            if holders.get(entry) == state.row:
                del holders[entry]
    for state in rows:
        held[state.row] = state.entries
        holders.update(dict.fromkeys(state.entries, state.row))
