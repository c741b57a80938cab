"""
The careful rows that no bucket resolves: rows without a primary key, and rows on which a foreign key acts.

The reference engine resolves them in parts of their own. Rows that have nothing to do with each other can be in
different parts. They take part in the rounds, as they can put transactions in conflict, and in the search for the
operation at which an applier stops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from conflict.engine.columnar.applier_stops import NO_FILE, Phase, StoppingOperation
from conflict.engine.columnar.bucket import TOGETHER
from conflict.engine.columnar.bucket_round import Findings
from conflict.engine.columnar.shown_transactions import ShownTransactions
from conflict.engine.columnar.writing.exceptions_numbering import TrackedRows
from conflict.engine.inference.observed import OtherConflictsError
from conflict.engine.kernels.arrays import Conflicts, EpochApplies, Int64
from conflict.engine.ledger.careful import CareKind
from conflict.engine.ledger.summary import BucketSummary
from conflict.history.model import History
from conflict.history.timeline import Transaction
from conflict.runs.resolving.rows_by_reference import (
    Decided,
    decide_by_reference,
    order_in_epoch,
    ordinals_by_side,
    places_of,
    write_decided,
)
from conflict.runs.rows.keyless_rows import keyless_images, read_keyless, transactions_of_equal_rows
from conflict.runs.rows.task_inputs import Part, PartKind, TaskInputs
from conflict.runs.rows.touched_rows import TouchedRows, rows_of_keys


@attrs.frozen(eq=False)
class CarefulPart:
    """
    What the driver receives of the rows that the reference engine resolves beside the buckets.

    Attributes:
        summary: What they add to the figures.
        tracked: The exceptions rows that pass TRACK made.
        stopping: Per cluster, the operation that stops its applier.
        contradicted: Numbers of the epoch applies for which the binlogs show other effects on them. Shape (applies,).
    """

    summary: BucketSummary
    tracked: TrackedRows
    stopping: dict[str, StoppingOperation]
    contradicted: Int64


def read_careful(run: TaskInputs, parts: Sequence[TouchedRows]) -> TouchedRows:
    """Return all rows that the reference engine resolves; `parts` are those that the buckets hold."""
    keyless = [read_keyless(run)] if run.manifest.has_rows_without_key else []
    return TouchedRows.joined([*parts, *keyless])


@attrs.frozen
class CarefulTask:
    """A bucket whose careful rows are read."""

    run: TaskInputs
    bucket: int

    def read(self) -> dict[int, TouchedRows]:
        """Return all that the bucket holds of them, by the bucket with whose rows they are resolved."""
        bucket = self.run.load_bucket(self.bucket)
        careful, homes = self.run.careful_keys(bucket), self.run.careful_homes(bucket)
        return {home: rows_of_keys(bucket, careful & (homes == home)) for home in np.unique(homes[careful]).tolist()}


def careful_parts(
    run: TaskInputs, read: Sequence[Mapping[int, TouchedRows]], epochs: int | None
) -> dict[Part, TouchedRows]:
    """
    Return the careful rows in parts.

    Args:
        run: The run.
        read: What `CarefulTask.read` returned for the buckets.
        epochs: How many epoch applies there are. Each part goes through all of them, so it has as many changes. None
            for all rows in one part.
    """
    homes: dict[int, list[TouchedRows]] = {TOGETHER: [read_keyless(run)]} if run.manifest.has_rows_without_key else {}
    for each in read:
        for home, rows in each.items():
            homes.setdefault(home, []).append(rows)
    parts, waiting, count = dict[Part, TouchedRows](), list[TouchedRows](), 0
    for home in sorted(homes):
        waiting += homes[home]
        count += sum(len(changes) for rows in homes[home] for changes in rows.changes.values())
        if home == max(homes) or (epochs is not None and count >= epochs):
            parts[Part(PartKind.CAREFUL, home)] = TouchedRows.joined(waiting)
            waiting, count = [], 0
    return parts


def resolve_careful(
    run: TaskInputs, part: Part, rows: TouchedRows, applies: EpochApplies, conflicts: Conflicts
) -> CarefulPart | None:
    """Resolve rows, and write their part of the result; None if transactions are in conflict because of them."""
    try:
        found = decide_by_reference(run, rows, applies, conflicts, ShownTransactions())
    except OtherConflictsError:
        return None
    images = keyless_images(run) if part.bucket == TOGETHER else {}
    summary, tracked, compared = write_decided(run, found, applies, part, images)
    summary.careful.update(_counted(run, rows, found.history))
    places = places_of(applies)
    contradicted = {
        places[side, row.epoch, row.group]
        for side, cluster in enumerate(run.clusters)
        for row in compared[cluster.name][1]
        if (side, row.epoch, row.group) in places
    }
    return CarefulPart(summary, tracked, _stopping(run, found, applies), np.array(sorted(contradicted), np.int64))


def _counted(run: TaskInputs, rows: TouchedRows, history: History) -> dict[str, int]:
    """Return how many of these rows there are of each kind."""
    keyless = {
        (change.table, change.key)
        for cluster in history.clusters
        for item in cluster.timeline
        if isinstance(item, Transaction)
        for change in item.changes
        if change.keyless
    }
    unlogged = frozenset[tuple[str, bytes]]().union(*(cluster.unlogged_rows for cluster in history.clusters))
    followed = len(unlogged & rows.located.keys())
    respelled = _respelled(run, rows, unlogged)
    numbers = {
        CareKind.NO_KEY: len(keyless),
        CareKind.FOREIGN_KEY: len(rows.located) - followed - respelled,
        CareKind.RESPELLED: respelled,
        CareKind.UNLOGGED: followed,
    }
    return {kind.value.name: number for kind, number in numbers.items() if number}


def _respelled(run: TaskInputs, rows: TouchedRows, unlogged: frozenset[tuple[str, bytes]]) -> int:
    """Return how many of these rows have keys that are spelled in several ways, and are of no other kind."""
    if run.respelled is None:
        return 0
    keys = {bucket: frozenset(own.tolist()) for bucket, own in run.respelled.keys.items()}
    return sum(key in keys.get(bucket, ()) and row not in unlogged for row, (bucket, key) in rows.located.items())


def careful_findings(run: TaskInputs, rows: TouchedRows, applies: EpochApplies, conflicts: Conflicts) -> Findings:
    """
    Return what these rows tell in a round of the transactions in conflict (see `conflict.engine.columnar`).

    Of tables without a primary key, no row is in conflict; they only make transactions depend on each other.
    """
    no_conflicts = np.zeros((0, 3), np.int32)
    if run.careful is None:
        return Findings(None, no_conflicts, transactions_of_equal_rows(run, rows, applies), {}, 0)
    found = decide_by_reference(run, rows, applies, conflicts, ShownTransactions())
    conflicting, dependent = list[tuple[int, int, int]](), list[tuple[int, int, int, int]]()
    for side, cluster in enumerate(run.clusters):
        mine, result = np.flatnonzero(applies.applier == side).tolist(), found.resolution.clusters[cluster.name]
        conflicting += [(0, mine[apply], group) for apply, own in result.conflicting.items() for group in own]
        dependent += [(0, mine[apply], *pair) for apply, own in result.dependent.items() for pair in own]
    return Findings(
        None,
        np.array(conflicting, np.int32).reshape(-1, 3),
        np.array(dependent, np.int32).reshape(-1, 4),
        _stopping(run, found, applies),
        sum(map(len, rows.changes.values())),
    )


def careful_stops(
    run: TaskInputs, rows: TouchedRows, applies: EpochApplies, conflicts: Conflicts
) -> dict[str, StoppingOperation]:
    """Return, per cluster, the first operation on these rows that stops its applier, if the conflicts are known."""
    try:
        found = decide_by_reference(run, rows, applies, conflicts, ShownTransactions())
    except OtherConflictsError:
        return {}  # `resolve_careful` says so
    return _stopping(run, found, applies)


def _stopping(run: TaskInputs, found: Decided, applies: EpochApplies) -> dict[str, StoppingOperation]:
    """Return the operations that stop appliers, as the kernels find them."""
    stopping, numbers, ordinals = {}, run.numbers, ordinals_by_side(found.resolution, found.ordinals)
    of_applier = [np.flatnonzero(applies.applier == side) for side in (0, 1)]
    for side, cluster in enumerate(run.clusters):
        result = found.resolution.clusters[cluster.name]
        stop, place = result.stop, result.stop_place
        if stop is None:
            continue
        apply = int(of_applier[side][len(result.applies)])
        steps = () if place is None else place.steps
        phase = Phase.COMMIT if place is None else Phase.REJECT if place.rejecting else Phase.JUDGE
        stopping[cluster.name] = StoppingOperation(
            len(result.applies),
            phase,
            tuple(order_in_epoch(steps, apply, applies, of_applier, ordinals)),
            numbers.number(stop.table),
            int(stop.operation),
            stop.foreign_epoch,
            NO_FILE,
            0,
            0,
            0,
            kind=stop.kind,
            stop=stop,
        )
    return stopping
