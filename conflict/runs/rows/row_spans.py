"""
Which changes of a bucket's rows are read to judge some epoch applies: per row, a span of own epochs of each cluster.

Each span begins at the last change that tells the state of the row on that cluster alone (see `_last_anchor`).
It also covers what the applier of the other cluster applied since its own span begins: that changed the row there,
or came back from there. Nothing after the place of an epoch decides on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Self

import attrs
import numpy as np
import numpy.typing as npt

from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.contested import ContestedRows
from conflict.engine.inference.moments import begun_after
from conflict.engine.kernels.arrays import Bool, Int32, Int64, Presence, UInt64
from conflict.history.grid.columns import GridColumns
from conflict.history.grid.schemas import RowStep
from conflict.history.scheduling.schedule_columns import ScheduleColumns, chosen_by, narrowed
from conflict.history.shown_effects import Effect
from conflict.history.timeline import END, OVERLAPPING, EpochApply, Position
from conflict.runs.rows.row_times import FIRST, LAST, RowTimes, epochs_before, last_before, next_epoch
from ndb_formats.events.rows_event import Operation


@attrs.frozen(eq=False)
class WantedRows:
    """
    What one applier applied, as far as it decides which rows are read.

    Attributes:
        epochs: Foreign epochs that are looked at, sorted. uint64, shape (wanted,).
        arrived: Own epoch before which none of the rows of each can have been judged. uint64, shape (wanted,).
        arrived_group: The last group of it that was surely before. int64, shape (wanted,).
        until: Own epoch after which nothing decides on it. uint64, shape (wanted,).
        traced_in: Own epochs of the traced epoch applies, in order. uint64, shape (traced,).
        traced_group: Their groups. int32, or a smaller type if it holds them, shape (traced,).
        traced_foreign: Their foreign epochs. uint64, shape (traced,).
        first_later: The least foreign epoch of that epoch apply and all later ones; None where that is its own, as they
            mostly rise. uint64, shape (traced,).
        rows: Bucket, key and epoch (place in `epochs`) of the rows that are looked at. int64, shape (3, rows).
        whole: Which epochs are looked at with all of their rows. bool, shape (wanted,).
        changing: Which of them only with rows that the applying cluster had changed between `arrived` and `until`:
            others do not tell where an epoch was that was surely applied. bool, shape (wanted,).
        few: Which of them only with a few rows: those after all traces. bool, shape (wanted,).
    """

    epochs: UInt64
    arrived: UInt64
    arrived_group: Int64
    until: UInt64
    traced_in: UInt64
    traced_group: npt.NDArray[Any]
    traced_foreign: UInt64
    first_later: UInt64 | None
    rows: Int64
    whole: Bool
    changing: Bool
    few: Bool

    @classmethod
    def of_schedule(
        cls,
        schedule: ScheduleColumns,
        numbers: Int64,
        rows: Mapping[int, ContestedRows] | None = None,
        whole: AbstractSet[int] = frozenset(),
        *,
        few_tell: bool = False,
    ) -> Self:
        """
        Return it for the epoch applies of one applier, in order, and those of them that are looked at.

        Args:
            schedule: All of them.
            numbers: Of those that are looked at, in order.
            rows: By foreign epoch, the rows of it that are looked at; all of an epoch that is not there.
            whole: Foreign epochs whose rows are all looked at, whatever else is said.
            few_tell: Whether a few rows tell of the epochs after all traces whether they were applied.
        """
        given, looked_at = rows or {}, schedule.applies(numbers)
        bounds = _bounds(schedule.applies(with_those_before(numbers)), looked_at, given)
        everything, after_traces = set(whole), set[int]()
        for each in looked_at:
            if each.window is None or (not each.window.certain and not (few_tell and each.window.before == END)):
                everything.add(each.foreign_epoch)
            elif not each.window.certain:
                after_traces.add(each.foreign_epoch)
        ordered = [each for _, each in sorted(bounds.items())]
        traced = chosen_by(schedule["traced"])
        epoch, group, foreign = (schedule[name][traced] for name in ("epoch", "group", "foreign_epoch"))
        epochs = sorted(bounds)
        chosen = [
            np.stack([given[epoch].bucket, given[epoch].key, np.full(len(given[epoch]), place)])
            for place, epoch in enumerate(epochs)
            if epoch in given
        ]
        return cls(
            np.array(epochs, np.uint64),
            np.array([first[0] for first, _ in ordered], np.uint64),
            np.array([first[1] for first, _ in ordered], np.int64),
            np.array([last for _, last in ordered], np.uint64),
            epoch,
            narrowed(group),
            foreign,
            None if (foreign[1:] >= foreign[:-1]).all() else np.minimum.accumulate(foreign[::-1])[::-1],
            np.concatenate([np.zeros((3, 0), np.int64), *chosen], axis=1),
            np.array([epoch not in given for epoch in epochs], np.bool_),
            np.array([epoch not in everything and epoch not in after_traces for epoch in epochs], np.bool_),
            np.array([epoch in after_traces and epoch not in everything for epoch in epochs], np.bool_),
        )

    def applied_from(self, own: UInt64) -> UInt64:
        """Return, per own epoch, the least foreign epoch that was applied in it or later; the greatest for none."""
        later = self.traced_foreign if self.first_later is None else self.first_later
        place = np.searchsorted(self.traced_in, own)
        found = np.full(np.shape(place), LAST, np.uint64)
        found[place < len(later)] = later[place[place < len(later)]]
        return found

    def applied_at(self, own: UInt64, group: Int32) -> Int64:
        """Return which of the traced epoch applies is at each own position; -1 for none. Shape (positions,)."""
        first, stop = (np.searchsorted(self.traced_in, own, side) for side in ("left", "right"))
        low, high = first, stop
        while (searched := low < high).any():
            middle = (low + high) // 2
            after = searched & (self.traced_group[np.minimum(middle, len(self.traced_group) - 1)] > group)
            low, high = np.where(searched & ~after, middle + 1, low), np.where(after, middle, high)
        found = low > first
        found[found] = self.traced_group[low[found] - 1] == group[found]
        return np.where(found, low - 1, -1)


def with_those_before(numbers: Int64) -> Int64:
    """Return numbers of epoch applies, and those of the ones before each that can have been applied side by side."""
    return np.unique(np.maximum(numbers[:, None] - np.arange(OVERLAPPING + 1), 0))


def _bounds(
    applies: Sequence[EpochApply], looked_at: Sequence[EpochApply], given: Mapping[int, ContestedRows]
) -> dict[int, tuple[Position, int]]:
    """Return, by foreign epoch, the own position after which it was judged, and the last own epoch that decides."""
    begun = begun_after(applies)
    found: dict[int, tuple[Position, int]] = {}
    for apply in looked_at:
        first = apply.arrived
        if apply.window is None:
            # What is open of a row is asked of one worker, a contradiction is explained by parallel ones, too.
            one, parallel = begun[apply.epoch, apply.group]
            first = one if apply.foreign_epoch in given else parallel
        last = apply.epoch if apply.window is None else apply.window.before[0]
        known = found.get(apply.foreign_epoch, (first, last))
        found[apply.foreign_epoch] = min(known[0], first), max(known[1], last)
    return found


@attrs.frozen(eq=False)
class Spans:
    """
    Stretches of own epochs of one cluster in which changes of rows are read. Shape (spans,).

    Attributes:
        key: The row.
        first: The first epoch.
        last: The last epoch.
    """

    key: Int64
    first: UInt64
    last: UInt64

    def __len__(self) -> int:
        return len(self.key)

    def and_whole(self, keys: Int64) -> Spans:
        """Return these and all epochs of some rows."""
        first, last = (np.full(len(keys), end, np.uint64) for end in (FIRST, LAST))
        return joined_spans([self, Spans(keys, first, last)])


def spans_of(bucket: Bucket, wanted: Mapping[str, WantedRows], looked_at: Sequence[Int64]) -> list[Spans]:
    """
    Return, per cluster, the spans of the rows that epochs touch.

    Args:
        bucket: The bucket.
        wanted: Per cluster, what its applier applied.
        looked_at: Per applying cluster, key and epoch of the rows that are looked at; see `rows_looked_at`.
    """
    found: list[list[Spans]] = [[], []]
    for applier, name in enumerate(bucket.clusters):
        mine = wanted[name]
        key, place = looked_at[applier]
        epoch = mine.epochs[place]
        others = wanted[bucket.clusters[1 - applier]]
        sent = _last_anchor(bucket, 1 - applier, key, epoch, others)
        # What the other cluster sends back in an epoch comes from what its applier did to its rows.
        start = np.minimum(_last_anchor(bucket, applier, key, mine.arrived[place], mine), others.applied_from(sent))
        found[applier].append(Spans(key, start, mine.until[place]))
        later = mine.applied_from(start)
        last = np.where(mine.until[place] == LAST, LAST, epoch)
        found[1 - applier].append(Spans(key, np.minimum(sent, later), last))
    return [joined_spans(parts) for parts in found]


def joined_spans(parts: Sequence[Spans]) -> Spans:
    """Return all spans."""
    columns = zip(*(attrs.astuple(each, recurse=False) for each in parts), strict=True)
    return Spans(*(np.concatenate(column) for column in columns))


def rows_in_spans(columns: GridColumns, spans: Spans) -> Int64:
    """Return the rows of `columns`, which are in the order of time, that spans cover. In order."""
    if not len(columns) or not len(spans):
        return np.zeros(0, np.int64)
    key, epoch = columns.array("key"), columns.array("epoch")
    asked = np.zeros(max(int(key.max()), int(spans.key.max())) + 1, np.bool_)
    asked[spans.key] = True
    rows = np.flatnonzero(asked[key])
    rows = rows[np.argsort(key[rows], kind="stable")]
    places = RowTimes(key[rows], epoch[rows])
    covered = np.zeros(len(rows) + 1, np.int64)
    np.add.at(covered, places.of(spans.key, spans.first, "left"), 1)
    np.add.at(covered, places.of(spans.key, spans.last, "right"), -1)
    return np.sort(rows[np.cumsum(covered[:-1]) > 0])


def rows_looked_at(bucket: Bucket, applier: int, wanted: WantedRows, *, everything: bool) -> Int64:
    """
    Return the keys that are looked at, each with its epoch (place in `WantedRows.epochs`), without repetition.

    Shape (2, rows).

    Args:
        bucket: The bucket.
        applier: Number of the applying cluster.
        wanted: What it applied.
        everything: Whether the other cluster sent back all that its applier did; else refreshed rows alone.
    """
    chosen = wanted.rows[:, wanted.rows[0] == bucket.number]
    keys, places = [chosen[1]], [chosen[2]]
    for columns in (bucket.changes[1 - applier], bucket.consequences[1 - applier]):
        rows, place = _rows_of_epochs(columns, wanted)
        if columns is bucket.consequences[1 - applier] and not everything:
            sent = np.isin(columns.of_rows("effect", rows), (Effect.REFRESHED, Effect.REFRESHED_ABSENT))
            rows, place = rows[sent], place[sent]
        keys.append(columns.of_rows("key", rows).astype(np.int64))
        places.append(place)
    return np.unique(np.stack([np.concatenate(keys), np.concatenate(places)]), axis=1)


def _rows_of_epochs(columns: GridColumns, wanted: WantedRows) -> tuple[Int64, Int64]:
    """Return the rows of the epochs that are looked at with all rows, and which of the epochs each is of."""
    if not len(columns) or not wanted.whole.any():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    here = columns.array("epoch")
    place = np.minimum(np.searchsorted(wanted.epochs, here), len(wanted.epochs) - 1)
    rows = np.flatnonzero((wanted.epochs[place] == here) & wanted.whole[place])
    return rows, place[rows]


def _last_anchor(bucket: Bucket, side: int, key: Int64, before: UInt64, applied: WantedRows) -> UInt64:
    """
    Return, per key, the last own epoch before a given one whose change or effect tells the state of the row alone.

    A delete does; so does any change, if no function compares a column of the table; else a change that carries the
    column, and an effect that gave the row what such a change of the other cluster did.

    Args:
        bucket: The bucket.
        side: Number of the cluster.
        key: The rows. Shape (keys,).
        before: The epochs. Shape (keys,).
        applied: What the applier of this cluster applied.

    Returns:
        The epochs. Shape (keys,); 0 if there is none.
    """
    found = np.zeros(len(key), np.uint64)
    compared = np.array(
        [bucket.numbers.resolve_ordinal(table.full_name) is not None for table in bucket.numbers.tables], np.bool_
    )
    asked = np.zeros(len(bucket.key_table), np.bool_)
    asked[key] = True
    if len(bucket.changes[side]):
        rows = bucket.rows[side]
        carried = rows.after_presence == Presence.PRESENT
        tells = (rows.operation == Operation.DELETE_ROW) | ~compared[bucket.key_table[rows.key]] | carried
        tells = np.where(rows.operation > max(Operation), rows.operation == RowStep.EMPTIED, tells)
        chosen = np.flatnonzero(tells & asked[rows.key])
        found = np.maximum(found, epochs_before(rows.key[chosen], rows.epoch[chosen], key, before))
    columns = bucket.consequences[side]
    if len(columns):
        keys, effect = columns.array("key"), columns.array("effect")
        tells = ~compared[bucket.key_table[keys]] & (effect != Effect.REFRESHED)
        tells |= np.isin(effect, (Effect.DELETED, Effect.REFRESHED_ABSENT))
        changed = np.flatnonzero(~tells & asked[keys] & (effect == Effect.CHANGED))
        tells[changed] = _gave_last_image(bucket, side, changed, applied)
        chosen = np.flatnonzero(tells & asked[keys])
        found = np.maximum(found, epochs_before(keys[chosen], columns.array("epoch")[chosen], key, before))
    return found


def _gave_last_image(bucket: Bucket, side: int, effects: Int64, applied: WantedRows) -> Bool:
    """
    Return which effects gave a row what the last change of it in the epoch did, and that carries the compared column.

    Args:
        bucket: The bucket.
        side: Number of the cluster whose applier had these effects.
        effects: Rows of its consequences. Shape (effects,).
        applied: What that applier applied.
    """
    columns, rows = bucket.consequences[side], bucket.rows[1 - side]
    names = ("key", "epoch", "group", "after_digest")
    key, epoch, group, digest = (columns.of_rows(name, effects) for name in names)
    asked = np.zeros(len(bucket.key_table), np.bool_)
    asked[key] = True
    own = np.flatnonzero(asked[rows.key])
    if not len(own):
        return np.zeros(len(effects), np.bool_)
    apply = applied.applied_at(epoch, group)
    foreign = np.full(len(apply), LAST, np.uint64)
    foreign[apply >= 0] = applied.traced_foreign[apply[apply >= 0]]
    last = last_before(rows.key[own], rows.epoch[own], key, next_epoch(foreign))
    change = own[last]
    carried = (rows.after_presence[change] == Presence.PRESENT) & (rows.operation[change] <= max(Operation))
    given = bucket.changes[1 - side].of_rows("after_digest", change)
    found = (apply >= 0) & (last >= 0) & (rows.epoch[change] == foreign)
    return np.asarray(found & carried & (digest != 0) & (given == digest))


def last_change(bucket: Bucket, side: int, key: Int64, before: UInt64) -> UInt64:
    """Return, per key, the last own epoch before a given one in which a cluster or its applier changed it, or 0."""
    found = np.zeros(len(key), np.uint64)
    for columns in (bucket.changes[side], bucket.consequences[side]):
        if len(columns):
            found = np.maximum(found, epochs_before(columns.array("key"), columns.array("epoch"), key, before))
    return found
