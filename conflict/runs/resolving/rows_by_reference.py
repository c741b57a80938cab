"""
Rows that the reference engine decides in a run whose other rows the kernels decide: its input, the call, its result.

They are rows of a bucket that are older than the log, where the kernels cannot tell what they were
(`resolve_left_open`); and those of `conflict.runs.resolving.careful_rows`. Their part of the result is written like
that of another bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

import attrs
import numpy as np
import pyarrow as pa

from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.columnar.order import LOGGED, NO_CAUSE, ORDER, OWN, schedule_of
from conflict.engine.columnar.setups import transactional_tables
from conflict.engine.columnar.shown_transactions import ShownTransactions
from conflict.engine.columnar.writing.exceptions_numbering import TrackedRows
from conflict.engine.inference.observed import KnownTransactions, OtherConflictsError
from conflict.engine.inference.replay import resolve
from conflict.engine.kernels.arrays import Conflicts, EpochApplies, Int64
from conflict.engine.ledger.arrow_rows import rows_to_arrow
from conflict.engine.ledger.careful import CareKind
from conflict.engine.ledger.contradictions import Images, ShownImages, contradicted_rows
from conflict.engine.ledger.ledger import outcome_places, staged_exceptions, write_part
from conflict.engine.ledger.resolution import OperationStep, Outcome, OutcomePlace, Resolution
from conflict.engine.ledger.resolution_ledger import (
    Compared,
    KeyTexts,
    Recorded,
    ReferenceLedger,
    exceptions_tables,
    place_columns,
)
from conflict.engine.ledger.summary import BucketSummary
from conflict.history.model import History
from conflict.history.shown_effects import Effect
from conflict.history.timeline import EpochApply, Position, RowMoment, timeline_of
from conflict.rules.counters import transaction_counters
from conflict.rules.table_setup import TableSetup
from conflict.runs.rows.task_inputs import Part, PartKind, TaskInputs
from conflict.runs.rows.touched_rows import NOWHERE, TouchedRows, rows_of_keys, touched_history
from ndb_formats.events.row_image import RowImage

Setups = dict[str, dict[str, TableSetup]]
AnyOutcome = TypeVar("AnyOutcome", Outcome, OutcomePlace)
# These count transactions, not rows; the driver does.
_OF_TRANSACTIONS = transaction_counters(0, 0)
# By applier, own epoch and group, the epoch apply.
Places = Mapping[tuple[int, int, int], int]
# By cluster and own epoch, numbers of changes.
Ordinals = Mapping[tuple[str, int], Sequence[int]]


def resolve_left_open(
    run: TaskInputs, result: FoldedBucket, assumed: AbstractSet[tuple[int, int]], transactions: ShownTransactions
) -> tuple[BucketSummary, TrackedRows] | None:
    """
    Resolve some rows of a bucket with the reference engine, and write their part of the result.

    Args:
        run: The run.
        result: The rest of the bucket, decided.
        assumed: Epoch apply and group of the transactions that the kernels found in conflict because of these rows, in
            the states that they assumed.
        transactions: What the binlogs show of transactions.

    Returns:
        What they add to the figures, and the exceptions rows that pass TRACK made of them; None if one of them stops an
        applier, or changes which transactions are in conflict.
    """
    bucket, applies = result.bucket, result.applies
    assert result.older is not None
    rows = rows_of_keys(bucket, result.older.left_open)
    try:
        found = decide_by_reference(run, rows, applies, result.conflicts, transactions)
    except OtherConflictsError:
        return None
    stopped = any(each.stop is not None for each in found.resolution.clusters.values())
    if stopped or _conflicting(run, found.resolution, applies) != assumed:
        return None
    summary, tracked, _ = write_decided(run, found, applies, Part(PartKind.OLDER, bucket.number), {})
    summary.careful[CareKind.OLDER.value.name] = len(rows.located)
    return summary, tracked


@attrs.frozen(eq=False)
class Decided:
    """Rows that the reference engine decided: their History, what the binlogs show of them, and the result."""

    rows: TouchedRows
    history: History
    recorded: Recorded
    setups: Setups
    resolution: Resolution

    @property
    def ordinals(self) -> Ordinals:
        """Numbers of their changes among all of an epoch."""
        return _ordinals(self.rows)


@attrs.frozen(eq=False)
class PosedRows:
    """
    Rows as the reference engine is asked about them.

    Attributes:
        history: Their History.
        recorded: What the binlogs show of them.
        setups: Per cluster, how its server set up each table.
        shown: What of it tells of rows that are not known; None if nothing does.
        given: What is known of transactions; None if none can be in conflict.
    """

    history: History
    recorded: Recorded
    setups: Setups
    shown: Recorded | None
    given: dict[str, list[KnownTransactions]] | None


def posed_rows(
    run: TaskInputs, rows: TouchedRows, applies: EpochApplies, conflicts: Conflicts, transactions: ShownTransactions
) -> PosedRows:
    """Return rows as the reference engine is asked about them, given the transactions in conflict."""
    history, recorded = _history(run, rows, applies)
    setups: Setups = {
        cluster.name: {setup.table.full_name: setup for setup in cluster.setups} for cluster in run.clusters
    }
    shown = recorded if run.looks_at_effects or run.manifest.has_rows_without_key else None
    return PosedRows(history, recorded, setups, shown, _known_transactions(run, applies, conflicts, transactions))


def decide_by_reference(
    run: TaskInputs, rows: TouchedRows, applies: EpochApplies, conflicts: Conflicts, transactions: ShownTransactions
) -> Decided:
    """
    Resolve rows, given the transactions in conflict.

    Raises:
        OtherConflictsError: They lead to other transactions in conflict.
    """
    posed = posed_rows(run, rows, applies, conflicts, transactions)
    skip = run.clusters[0].skip_missing
    resolution = resolve(posed.history, posed.setups, skip_missing=skip, shown=posed.shown, given=posed.given)
    return Decided(rows, posed.history, posed.recorded, posed.setups, resolution)


def write_decided(
    run: TaskInputs, found: Decided, applies: EpochApplies, part: Part, images: Mapping[str, Images]
) -> tuple[BucketSummary, TrackedRows, Compared]:
    """Write the part of the result; return its figures, rows of pass TRACK, and how it compares with the binlogs."""
    outcomes = [_numbered(outcome, outcome.source, found.ordinals) for outcome in found.resolution.outcomes]
    resolution, compared = attrs.evolve(found.resolution, outcomes=outcomes), {}
    for name, each in resolution.clusters.items():
        shown = _shown_images(found.rows, name, images.get(name, {}))
        compared[name] = contradicted_rows((each.effects, each.images), (found.recorded[name], shown))
    exceptions = _exceptions(run, found, applies)
    ledger = ReferenceLedger(found.history, found.setups, resolution, compared, run.options, exceptions)
    summary = write_part(ledger.part(part.number(run)), run.out)
    summary.counters = {name: {**counters, **_OF_TRANSACTIONS} for name, counters in summary.counters.items()}
    summary.stretches = {
        name: {each: {**counters, **_OF_TRANSACTIONS} for each, counters in own.items()}
        for name, own in summary.stretches.items()
    }
    return summary, _tracked(run, resolution, applies), compared


def _shown_images(rows: TouchedRows, name: str, images: Images) -> ShownImages:
    """Return what a cluster's binlog shows that its applier gave rows: images of those without a key, else digests."""
    found: dict[Position, dict[tuple[str, bytes], RowImage | int]] = {}
    for epoch, group, table, key, _, digest in rows.effects[name]:
        if digest:
            found.setdefault((epoch, group), {})[table, key] = digest
    for place, each in images.items():
        found.setdefault(place, {}).update(each)
    return found


def _known_transactions(
    run: TaskInputs, applies: EpochApplies, conflicts: Conflicts, transactions: ShownTransactions
) -> dict[str, list[KnownTransactions]] | None:
    """Return what is known of transactions per cluster and epoch apply; None if none can be in conflict."""
    if not run.needs_rounds or not transactional_tables(run.clusters).any():
        return None
    groups, offsets = conflicts.groups.tolist(), conflicts.offsets.tolist()
    passed, last, alone = (
        _by_apply(each) for each in (transactions.passed, transactions.last_touching, transactions.alone)
    )
    return {
        cluster.name: [
            KnownTransactions(
                frozenset(groups[offsets[apply] : offsets[apply + 1]]),
                frozenset(passed.get(apply, ())),
                frozenset(last.get(apply, ())),
                frozenset(alone.get(apply, ())),
            )
            for apply in np.flatnonzero(applies.applier == side).tolist()
        ]
        for side, cluster in enumerate(run.clusters)
    }


def _by_apply(transactions: Iterable[tuple[int, int]]) -> dict[int, set[int]]:
    """Return transactions by epoch apply."""
    found: dict[int, set[int]] = {}
    for apply, group in transactions:
        found.setdefault(apply, set()).add(group)
    return found


def _conflicting(run: TaskInputs, resolution: Resolution, applies: EpochApplies) -> set[tuple[int, int]]:
    """Return epoch apply and group of the transactions with an operation in conflict."""
    found = set[tuple[int, int]]()
    for side, cluster in enumerate(run.clusters):
        mine = np.flatnonzero(applies.applier == side)
        for apply, groups in resolution.clusters[cluster.name].conflicting.items():
            found.update((int(mine[apply]), group) for group in groups)
    return found


def _tracked(run: TaskInputs, resolution: Resolution, applies: EpochApplies) -> TrackedRows:
    """Return the exceptions rows that pass TRACK made."""
    found = {}
    for side, cluster in enumerate(run.clusters):
        mine = np.flatnonzero(applies.applier == side)
        counts: dict[str, list[tuple[int, int]]] = {}
        for (name, apply), count in sorted(resolution.clusters[cluster.name].tracked_rows.items()):
            counts.setdefault(name, []).append((int(mine[apply]), count))
        for name, rows in counts.items():
            found[cluster.name, name] = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    return found


def _history(
    run: TaskInputs, rows: TouchedRows, applies: EpochApplies
) -> tuple[History, dict[str, dict[Position, dict[tuple[str, bytes], Effect]]]]:
    """Return the History of some rows, and what the binlogs show of them."""
    names = [cluster.name for cluster in run.clusters]
    key_of = {place: row for row, place in rows.located.items()}
    clusters, recorded = [], {}
    for side, cluster in enumerate(run.clusters):
        transactions, recorded[cluster.name] = touched_history([rows], cluster.name, run)
        if cluster.name in run.part.shows:
            recorded[cluster.name].setdefault(NOWHERE, {})
        own = _applies_of(applies, side, names[1 - side], key_of)
        timeline = timeline_of(transactions, own)
        clusters.append(run.cluster_with(cluster, timeline))
    layouts = {layout.table: layout for layout in run.manifest.layouts(run.numbers) if layout is not None}
    return History(tuple(clusters), layouts, databases=run.databases), recorded


def _ordinals(rows: TouchedRows) -> Ordinals:
    """Return, per cluster and own epoch, the numbers of the changes of some rows among all of the epoch, in order."""
    found: dict[tuple[str, int], list[int]] = {}
    for name, changes in rows.changes.items():
        for row in changes:
            found.setdefault((name, row["epoch"]), []).append(row["ordinal"])
    return {place: sorted(each) for place, each in found.items()}


def _numbered(outcome: AnyOutcome, source: str, ordinals: Ordinals) -> AnyOutcome:
    """Return an outcome, or its place, with its number among all changes of its epoch."""
    if outcome.ordinal < 0:
        return outcome
    return attrs.evolve(outcome, ordinal=ordinals[source, outcome.source_epoch][outcome.ordinal])


def _applies_of(
    applies: EpochApplies, side: int, source: str, key_of: Mapping[tuple[int, int], tuple[str, bytes]]
) -> list[EpochApply]:
    """Return the epoch applies of one applier, with the moments of some rows."""
    moments: dict[int, list[RowMoment]] = {}
    seen = [getattr(applies.moments, field.name).tolist() for field in attrs.fields(type(applies.moments))]
    for apply, bucket, key, epoch, group in zip(*seen, strict=True):
        if (bucket, key) in key_of:
            moments.setdefault(apply, []).append(RowMoment(*key_of[bucket, key], (epoch, group)))
    mine, own = np.flatnonzero(applies.applier == side).tolist(), schedule_of(applies, side, source).applies()
    return [
        attrs.evolve(each, moments=tuple(moments[number])) if number in moments else each
        for number, each in zip(mine, own, strict=True)
    ]


def _exceptions(run: TaskInputs, found: Decided, applies: EpochApplies) -> dict[str, dict[str, pa.Table]]:
    """Return, per cluster and exceptions table, the rows without their numbers, with the columns of `STAGED`."""
    ordinals_of = ordinals_by_side(found.resolution, found.ordinals)
    of_applier = [np.flatnonzero(applies.applier == side) for side in (0, 1)]
    rows: dict[str, dict[str, pa.Table]] = {cluster.name: {} for cluster in run.clusters}
    for side, cluster in enumerate(run.clusters):
        definitions = exceptions_tables(cluster.setups)
        keys = KeyTexts(found.history.layouts, {each.table.full_name: each.table for each in cluster.setups})
        result, source = found.resolution.clusters[cluster.name], run.clusters[1 - side].name
        for name, rejected in result.rejected.items():
            numbers = [int(of_applier[side][place.apply]) for place, _ in rejected]
            orders = [
                order_in_epoch(place.steps, apply, applies, of_applier, ordinals_of)
                for (place, _), apply in zip(rejected, numbers, strict=True)
            ]
            stood_for = [
                _numbered(each, source, found.ordinals)
                for each in result.excepted[name]
                if each.applier == cluster.name
            ]
            rows[cluster.name][name] = staged_exceptions(
                rows_to_arrow(definitions[name], [row for _, row in rejected]),
                np.array(numbers, np.int64),
                np.array([place.own_cause for place, _ in rejected], np.bool_),
                pa.array(orders, ORDER),
                outcome_places(place_columns(stood_for, keys)),
            )
    return rows


def ordinals_by_side(resolution: Resolution, ordinals: Ordinals) -> dict[tuple[int, int], Sequence[int]]:
    """Return ordinals by the number of their cluster."""
    return {
        (side, epoch): each
        for side, name in enumerate(resolution.clusters)
        for (own, epoch), each in ordinals.items()
        if own == name
    }


def places_of(applies: EpochApplies) -> Places:
    """Return the number of each epoch apply by its place; a traced one counts where others have the same."""
    places = list(zip(applies.applier.tolist(), applies.epoch.tolist(), applies.group.tolist(), strict=True))
    return {place: apply for apply, place in sorted(enumerate(places), key=lambda each: bool(applies.traced[each[0]]))}


def order_in_epoch(
    steps: Sequence[OperationStep],
    apply: int,
    applies: EpochApplies,
    of_applier: Sequence[Int64],
    ordinals: Mapping[tuple[int, int], Sequence[int]],
) -> list[int]:
    """
    Return the order of an operation in its epoch; see `conflict.engine.columnar.order`.

    Args:
        steps: The operation, and what caused it.
        apply: Number of the epoch apply with which it came.
        applies: All epoch applies.
        of_applier: Per cluster, the numbers of its epoch applies.
        ordinals: See `ordinals_by_side`.
    """
    order: list[int] = []
    for step in steps:
        source = 1 - int(applies.applier[apply])
        if step.ordinal >= 0:
            number = ordinals[source, int(applies.foreign_epoch[apply])][step.ordinal]
            return [*order, step.group, OWN, number, NO_CAUSE]
        apply = int(of_applier[source][step.apply])
        order += [step.group, LOGGED, apply, int(step.refreshes)]
    return order
