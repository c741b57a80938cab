"""
Compares what appliers do to a bucket's rows with what their binlogs show, and finds the rows that are contested.

Those are rows that their own cluster changed while its applier may have been judging an epoch. Where such a row stayed
as it was, or was refreshed, it may have been judged before the change (see `conflict.engine.inference.moments`, which
looks at the epochs that are found here).

Computes docs/concepts.md, "What binlogs leave open", and `compared_with_binlogs` and `contradicted_by_binlogs` of
docs/result.md, "run.json".
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import attrs
import numpy as np

from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.columnar.setups import rules_of
from conflict.engine.kernels.apply_order import open_starts
from conflict.engine.kernels.arrays import Bool, BucketRows, Int8, Int32, Int64, UInt64
from conflict.engine.kernels.effects import (
    DecidedRows,
    SentRows,
    ShownRows,
    compare_with_binlog,
    effects_on_rows,
    is_in_order,
)
from conflict.engine.kernels.open_moments import JudgedRows, moments_differ
from conflict.engine.kernels.records import packed_changes, packed_schedule
from conflict.history.grid.columns import GridColumns
from conflict.history.scheduling.placing import MAX_CONTRADICTIONS
from conflict.rules.decision import Verdict
from ndb_formats.columnar.kernel import each_read_only, read_only
from ndb_formats.events.rows_event import Operation

# Number of the applier, own epoch and group of an epoch apply.
Applied = tuple[int, int, int]


@attrs.frozen(eq=False)
class DifferingRows:
    """
    Rows for which a binlog shows another effect, or other values, than were derived. All arrays have shape (rows,).

    Attributes:
        epoch: Own epoch of the epoch apply.
        group: Group of that epoch.
        key: The row.
        derived: The effect that was derived, bit n for effect n; 0 for none. int8.
        shown: The effects in the binlog, bit n for effect n; 0 for none. int8.
    """

    epoch: UInt64
    group: Int32
    key: Int64
    derived: Int8
    shown: Int8

    def __len__(self) -> int:
        return len(self.key)

    def of_kinds(self) -> DifferingRows:
        """Return those that differ in their effect, not in values alone."""
        kept = self.derived != self.shown
        return DifferingRows(*(each[kept] for each in attrs.astuple(self, recurse=False)))


@attrs.frozen(eq=False)
class Differing:
    """
    How the effects of both appliers compare with what their binlogs show.

    Attributes:
        compared: Number of rows, per epoch apply, that either has, per applier.
        rows: Those that differ, per applier.
        applies: The epoch applies that differ, the first `MAX_CONTRADICTIONS` + 1 of each applier: with more, nothing
            is explained.
    """

    compared: tuple[int, ...]
    rows: tuple[DifferingRows, ...]
    applies: AbstractSet[Applied]


NOTHING_DIFFERS = Differing((), (), frozenset())


def compare_effects(result: FoldedBucket, *, with_applies: bool) -> Differing:
    """
    Compare the effects of both appliers with what their binlogs show.

    Args:
        result: A decided bucket.
        with_applies: Return which epoch applies differ too.
    """
    compared, differing = zip(*(_compare(result, number) for number in range(len(result.clusters))), strict=True)
    applies: set[Applied] = set()
    for number, rows in enumerate(differing if with_applies else ()):
        applies |= _differing_applies(number, rows.of_kinds())
    return Differing(compared, differing, applies)


def _compare(result: FoldedBucket, number: int) -> tuple[int, DifferingRows]:
    """Return the number of an applier's rows that were compared, and those that differ."""
    decisions, logged, applies = result.folded.decisions, result.folded.logged, result.applies
    keys = len(result.bucket.key_table)
    mine = np.flatnonzero(logged.refresh & (logged.cluster == number))
    decided = DecidedRows(*each_read_only(*(getattr(decisions, name) for name in DecidedRows._fields)))
    sent = SentRows(*each_read_only(*(getattr(logged, name)[mine] for name in SentRows._fields)))
    given = result.bucket.changes[1 - number].array("after_digest")
    apply, key, effect, digest = effects_on_rows(
        number, read_only(applies.applier), decided, sent, read_only(given), keys
    )
    if result.told is not None:
        told = result.told[apply]
        apply, key, effect, digest = apply[told], key[told], effect[told], digest[told]
    found = ShownRows(*each_read_only(applies.epoch[apply], applies.group[apply], key, effect, digest))
    certain = None if result.older is None else ~result.older.left_open
    shown = shown_rows(result.bucket.consequences[number], certain)
    count, *differing = compare_with_binlog(found, apply, shown, keys)
    return count, DifferingRows(*differing)


def shown_rows(consequences: GridColumns, certain: Bool | None = None) -> ShownRows:
    """
    Return what a binlog shows of its applier's work, in order.

    Args:
        consequences: Of the cluster in a bucket.
        certain: Which rows count; None for all. Shape (keys,).
    """
    names = ("epoch", "group", "key", "effect", "after_digest")
    consequences.read(names)
    shown = [consequences.array(name) for name in names]
    if certain is not None:
        counts = certain[shown[2]]
        shown = [column[counts] for column in shown]
    if not is_in_order(read_only(shown[0]), read_only(shown[1])):
        order = np.lexsort((shown[1], shown[0]))
        shown = [column[order] for column in shown]
    return ShownRows(*each_read_only(*shown))


def _differing_applies(number: int, rows: DifferingRows) -> set[Applied]:
    """Return the first epoch applies of an applier that differ, given the differing rows."""
    found: set[Applied] = set()
    for epoch, group in zip(rows.epoch.tolist(), rows.group.tolist(), strict=True):
        found.add((number, epoch, group))
        if len(found) > MAX_CONTRADICTIONS:
            break
    return found


@attrs.frozen(eq=False)
class ContestedRows:
    """
    Such rows, each with the epoch apply that may have judged it earlier. int64, shape (rows,).

    Attributes:
        bucket: Number of the bucket.
        apply: Number of the epoch apply.
        key: Number of the row in the bucket.
    """

    bucket: Int64 = attrs.field(factory=lambda: np.zeros(0, np.int64))
    apply: Int64 = attrs.field(factory=lambda: np.zeros(0, np.int64))
    key: Int64 = attrs.field(factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.key)

    def chosen(self, chosen: Bool | Int64 | slice) -> ContestedRows:
        """Return some of them."""
        return ContestedRows(self.bucket[chosen], self.apply[chosen], self.key[chosen])

    @classmethod
    def joined(cls, parts: Sequence[ContestedRows]) -> ContestedRows:
        """Return those of several buckets, in the order of the epoch applies."""
        columns = zip(*(attrs.astuple(each, recurse=False) for each in parts), strict=True)
        joined = cls(*(np.concatenate(column) for column in columns))
        return joined.chosen(np.argsort(joined.apply, kind="stable"))


def contested_rows(
    result: FoldedBucket, differing: Sequence[DifferingRows] = (), *, every: bool = False
) -> ContestedRows:
    """
    Return such rows of functions that judge row by row, without those that every moment decides alike.

    Of rows on which the binlogs contradict the result, and of those for which a moment was found, all are returned:
    what the search assumes of them is not what was decided.

    Args:
        result: A decided bucket.
        differing: The rows on which the binlogs contradict it.
        every: Return all such rows; for rows that are older than the log, or are not decided by the kernels.
    """
    number = result.bucket.number
    found = np.concatenate([_contested(result, side) for side in range(len(result.clusters))], axis=1)
    rows = ContestedRows(np.full(found.shape[1], number), *found)
    if not len(rows) or every:
        return rows
    moments = result.applies.moments.of_bucket(number)
    known = np.ones(len(result.bucket.key_table), np.bool_)
    known[moments.key] = False
    for each in differing:
        known[each.key] = False
    kept = ~known[rows.key]
    if not kept.all():
        kept[~kept] = _open(result, rows.chosen(~kept))
    return rows.chosen(kept)


def _open(result: FoldedBucket, rows: ContestedRows) -> Bool:
    """Return which rows another moment may have decided otherwise. Shape (rows,)."""
    keys, places = np.unique(rows.key, return_inverse=True)
    chosen = [_of_keys(each, keys) for each in result.bucket.rows]
    order = np.lexsort((places, rows.apply))
    pairs = JudgedRows.of(rows.apply[order], places[order], len(result.applies))
    found = np.empty(len(rows), np.bool_)
    standing, rules = result.bucket.standing, rules_of(result.clusters)
    states = None if standing is None else standing.states[keys]
    found[order] = moments_differ(
        result.applies, chosen, rules, result.conflicts, result.bucket.key_table[keys], pairs, states
    )
    return found


def _of_keys(rows: BucketRows, keys: Int64) -> BucketRows:
    """Return the changes of some keys, which are numbered anew; `keys` are sorted."""
    place = np.minimum(np.searchsorted(keys, rows.key), len(keys) - 1)
    chosen = np.flatnonzero(keys[place] == rows.key)
    columns = {field.name: getattr(rows, field.name)[chosen] for field in attrs.fields(BucketRows)}
    return BucketRows(**{**columns, "key": place[chosen].astype(np.int32)})


def _contested(result: FoldedBucket, number: int) -> Int64:
    """Return epoch apply and key of those of one applier. Shape (2, rows)."""
    apply, key = _not_simply_applied(result, number)
    own = result.bucket.rows[number]
    asked = np.zeros(len(result.bucket.key_table), np.bool_)
    asked[key] = True
    changes = np.flatnonzero(asked[own.key])  # in order of time
    changes = changes[np.argsort(own.key[changes], kind="stable")]
    # Key and place of a change in one number, so that those of a key between two places are a stretch.
    width = len(own) + 1
    places = own.key[changes].astype(np.int64) * width + changes
    begins, ends = _windows(result, number, apply)
    first = np.searchsorted(places, key.astype(np.int64) * width + begins)
    last = np.searchsorted(places, key.astype(np.int64) * width + ends)
    return np.unique(np.stack([apply, key])[:, first < last], axis=1)


def _not_simply_applied(result: FoldedBucket, number: int) -> tuple[Int64, Int64]:
    """Return epoch apply and key of the operations without effect, and of deletes, which can undo a write."""
    decisions, applies = result.folded.decisions, result.applies
    judged = np.array(
        [
            setup.function is not None and not setup.function.spec.transactional
            for setup in result.clusters[number].setups
        ],
        np.bool_,
    )
    chosen = (decisions.verdict != Verdict.APPLIED) | (decisions.operation == Operation.DELETE_ROW)
    rows = np.flatnonzero(chosen)
    rows = result.told_of(rows, decisions.apply[rows])
    rows = rows[(applies.applier[decisions.apply[rows]] == number) & applies.traced[decisions.apply[rows]]]
    rows = rows[_judged_keys(result, judged)[decisions.key[rows]]]
    return decisions.apply[rows].astype(np.int64), decisions.key[rows].astype(np.int64)


def _judged_keys(result: FoldedBucket, judged: Bool) -> Bool:
    """Return which keys are of some tables. Shape (keys,)."""
    return judged[result.bucket.key_table]


def _windows(result: FoldedBucket, number: int, apply: Int64) -> tuple[Int64, Int32]:
    """Return the first own change after an applier began with each epoch apply, and the first one after its commit."""
    schedule, changes = packed_schedule(result.applies), packed_changes(result.bucket.rows)
    distinct, place = np.unique(apply, return_inverse=True)
    begins = open_starts(read_only(distinct), schedule, changes) - changes.begin[number]
    return begins[place], result.folded.own_end[distinct][place]
