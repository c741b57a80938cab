"""
Operations that stop an applier: it rolls back the epoch, and applies no later one. Computes docs/functions.md, "Stops".

Most follow from the rows alone (`first_stopping`). An operation that the other applier logged can stop an applier too,
and so can a rejected transaction that touches blobs; finding these takes a fold (`stopping_decisions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

import attrs
import numpy as np
import pyarrow.compute as pc

from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.order import NO_CAUSE, OWN, operation_orders
from conflict.engine.columnar.setups import ClusterSetup
from conflict.engine.columnar.stop_rules import Numbers, StopRules, stop_rules
from conflict.engine.kernels.arrays import (
    Bool,
    EpochApplies,
    Int8,
    Int16,
    Int64,
    Logged,
)
from conflict.engine.kernels.column_scans import STOPS, CheckedRows, stopping_rows
from conflict.engine.kernels.fold import Folded
from conflict.engine.ledger.resolution import Stop, StoppedAt
from conflict.history.timeline import Origin
from conflict.rules.decision import Cause
from conflict.rules.stops import ServerStop
from ndb_formats.columnar.kernel import each_read_only, read_only
from ndb_formats.events.rows_event import Operation

NO_FILE = -1


class Phase(IntEnum):
    """When an operation stops its applier, in the order of an epoch apply."""

    JUDGE = 0
    REJECT = 1
    COMMIT = 2


@attrs.frozen(order=True)
class StoppingOperation:
    """
    An operation that stops its applier. They compare by when they do.

    Attributes:
        apply: Number of the epoch apply among those of the applier.
        phase: When it stops the applier: all operations are judged before transactions are rejected.
        order: Its order in the foreign epoch (see `conflict.engine.columnar.order`).
        table: Number of its table.
        operation: `Operation`.
        foreign_epoch: The epoch that is not applied.
        file: Number of its binlog file; `NO_FILE` for an operation that an applier logged, or that is in no binlog.
        position: Position of its event.
        payload_position: Position of that inside a compressed transaction; 0 outside of one.
        row: Number of the row in the event.
        kind: Why it stops.
        version: Number of the setup of its table that was in force (see `ClusterSetup.over_time`).
        stop: The stop itself, where the reference engine found it.
    """

    apply: int
    phase: Phase
    order: tuple[int, ...]
    table: int
    operation: int
    foreign_epoch: int
    file: int
    position: int
    payload_position: int
    row: int
    kind: ServerStop = attrs.field(order=False)
    version: int = 0
    stop: Stop | None = attrs.field(default=None, order=False)


def can_log_stopping(clusters: Sequence[ClusterSetup]) -> bool:
    """Whether an operation that one applier logs can stop the other applier."""
    for logging, applying in ((clusters[0], clusters[1]), (clusters[1], clusters[0])):
        rules = stop_rules(applying)
        all_tables = any(setup.function is not None and setup.function.spec.transactional for setup in logging.setups)
        logs = np.array([all_tables or _refreshes(logging, table) for table in range(len(logging.setups))], np.bool_)
        logs |= logging.reflects
        if np.any(logs & np.logical_or.reduceat(rules.stopping, rules.first)):
            return True
    return False


def hangs_on_rows(stopping: Mapping[str, StoppingOperation]) -> bool:
    """Whether a stop follows from what an applier decided on rows: no change of a user stops it by itself."""
    return any(
        each.file == NO_FILE or each.phase is not Phase.JUDGE or each.stop is not None for each in stopping.values()
    )


def can_stop_by_rows(clusters: Sequence[ClusterSetup]) -> bool:
    """Whether what an applier decides on rows can stop it or the other one."""
    tables = [setup.table for setup in clusters[0].setups]
    return any(table.unique_keys or table.foreign_keys for table in tables) or can_stop_in_a_pass(clusters)


def can_stop_in_a_pass(clusters: Sequence[ClusterSetup]) -> bool:
    """Whether that can stop it before the commit: what the other one logged, or a rejected transaction with blobs."""
    return can_log_stopping(clusters) or any(stop_rules(each).blobs.any() for each in clusters)


def _refreshes(cluster: ClusterSetup, table: int) -> bool:
    return any(cluster.setups[table].deployed(role).refreshes for _, role in cluster.roles)


def _stopping_rows(bucket: Bucket, applier: int, rules: StopRules) -> Int64:
    """Return the numbers of the source's rows that stop an applier under a setup of their table. Shape (stopping,)."""
    if not rules.kinds.any():
        return np.zeros(0, np.int64)
    rows = bucket.rows[1 - applier]
    unidentified = _unidentified(bucket, applier, rules)
    columns = (bucket.key_table, rows.key, rows.operation, rows.before_presence, rows.after_presence, unidentified)
    kinds = np.maximum.reduceat(rules.kinds, rules.first)
    return np.asarray(stopping_rows(CheckedRows(*each_read_only(*columns)), read_only(kinds)))


def stopping_changes(bucket: Bucket, clusters: Sequence[ClusterSetup], applier: int) -> Int64:
    """Return the numbers of the other cluster's own changes that stop an applier under a setup of their table."""
    return _stopping_rows(bucket, applier, stop_rules(clusters[applier]))


def _unidentified(bucket: Bucket, applier: int, rules: StopRules) -> Bool:
    """Return which of the source's rows lack a transaction id, if that matters. Shape (rows,)."""
    changes = bucket.changes[1 - applier]
    if rules.identified.any() and changes.may_be_null("transaction_id"):
        return np.asarray(pc.is_null(changes.column("transaction_id")).to_numpy())
    return np.zeros(len(bucket.rows[1 - applier]), np.bool_)


def _stop_then(bucket: Bucket, applier: int, rules: StopRules, rows: Numbers, apply: Numbers) -> Bool:
    """Return which of some rows of the source stop the applier at their epoch applies. Shape (rows,)."""
    if not rules.change or not len(rows):
        return np.ones(len(rows), np.bool_)
    source = bucket.rows[1 - applier]
    rule = rules.at(bucket.key_table[source.key[rows]], apply)
    presences = source.before_presence[rows], source.after_presence[rows]
    kind = rules.kinds[rule, source.operation[rows], *presences]
    return np.asarray(kind + _unidentified(bucket, applier, rules)[rows] >= STOPS)


def _stopping_entries(logged: Logged, entries: Numbers, rule: Int64, rules: StopRules) -> Bool:
    """Return which of some operations that appliers logged would stop an applier. Shape (entries,)."""
    presences = _presences(logged, entries, rule, rules)
    return np.asarray(rules.kinds[rule, logged.operation[entries], *presences] == STOPS)


def _presences(logged: Logged, entries: Numbers, rule: Int64, rules: StopRules) -> tuple[Int8, Int8]:
    """Return whether operations that appliers logged carry the resolve column: `Presence` of both images."""
    return rules.column_in_key[rule].astype(np.int8), logged.given[entries].astype(np.int8)


def first_stopping(
    bucket: Bucket, clusters: Sequence[ClusterSetup], applies: EpochApplies
) -> dict[str, StoppingOperation]:
    """
    Return, per cluster, the first own change of the other cluster that stops its applier.

    Args:
        bucket: A bucket; its images are not read.
        clusters: Both clusters.
        applies: All epoch applies.
    """
    found = {}
    for number, cluster in enumerate(clusters):
        rows, rules = bucket.rows[1 - number], stop_rules(cluster, applies)
        stopping = _stopping_rows(bucket, number, rules)
        if len(stopping):
            mine = np.flatnonzero(applies.applier == number)
            epochs, first = np.unique(applies.foreign_epoch[mine], return_index=True)
            stopping = stopping[np.isin(rows.epoch[stopping], epochs)]
        if len(stopping):
            apply = first[np.searchsorted(epochs, rows.epoch[stopping])]
            then = _stop_then(bucket, number, rules, stopping, mine[apply])
            stopping, apply = stopping[then], apply[then]
        if len(stopping):
            earliest = apply == apply.min()
            at = int(mine[apply.min()])
            found[cluster.name] = min(
                _stopping_row(bucket, number, rules, int(row), (int(apply.min()), at))
                for row in stopping[earliest].tolist()
            )
    return found


def _stopping_row(
    bucket: Bucket, applier: int, rules: StopRules, row: int, place: tuple[int, int], phase: Phase = Phase.JUDGE
) -> StoppingOperation:
    """
    Return an own change of the source as an operation that stops the applier.

    Args:
        bucket: A bucket.
        applier: Number of the applying cluster.
        rules: What stops it.
        row: Number of the change.
        place: Number of the epoch apply among those of the applier, and among all.
        phase: When it stops the applier.
    """
    number, apply = place
    change, rows = bucket.changes[1 - applier].row(row), bucket.rows[1 - applier]
    version = _version(rules, change["table"], apply)
    presences = int(rows.before_presence[row]), int(rows.after_presence[row])
    identified, rejected = change["transaction_id"] is not None, phase is Phase.REJECT
    rule = rules.rule(change["table"], apply)
    stop = rule.stop(change["operation"], *presences, identified=identified, rejected=rejected)
    assert stop is not None
    return StoppingOperation(
        number,
        phase=phase,
        order=(change["group"], OWN, change["ordinal"], NO_CAUSE),
        table=change["table"],
        operation=change["operation"],
        foreign_epoch=change["epoch"],
        file=change["file"],
        position=change["position"],
        payload_position=change["payload_position"],
        row=change["row"],
        kind=stop,
        version=version,
    )


def _version(rules: StopRules, table: int, apply: int) -> int:
    """Return which setup of a table is in force at an epoch apply."""
    steps = rules.steps.get(table)
    return 0 if steps is None else int(steps[apply])


def stopping_decisions(
    bucket: Bucket, clusters: Sequence[ClusterSetup], applies: EpochApplies, folded: Folded
) -> dict[str, StoppingOperation]:
    """Return, per cluster, the first operation that stops its applier, given the transactions in conflict."""
    found = {}
    for number, cluster in enumerate(clusters):
        rules = stop_rules(cluster, applies)
        judged = np.concatenate(
            [
                _on_rows(bucket, number, rules, applies, folded),
                _on_entries(number, rules, applies, folded, bucket.key_table),
            ]
        )
        rejected = _on_blobs(number, rules, applies, folded, bucket.key_table)
        candidates = [
            (int(folded.decisions.apply[stopping.min()]), phase, int(stopping.min()))
            for phase, stopping in ((Phase.JUDGE, judged), (Phase.REJECT, rejected))
            if len(stopping)
        ]
        if candidates:
            _, phase, decision = min(candidates)
            found[cluster.name] = _stopping_decision(bucket, rules, applies, folded, decision, phase)
    return found


def transactions_stop(
    clusters: Sequence[ClusterSetup], applies: EpochApplies, folded: Folded, key_table: Int16
) -> bool:
    """
    Whether an applier stops because of the transactions in conflict.

    Own changes that stop an applier do so whatever the transactions in conflict are; these are not considered.
    """
    for number, cluster in enumerate(clusters):
        rules = stop_rules(cluster, applies)
        if len(_on_entries(number, rules, applies, folded, key_table)):
            return True
        if len(_on_blobs(number, rules, applies, folded, key_table)):
            return True
    return False


def _on_rows(bucket: Bucket, number: int, rules: StopRules, applies: EpochApplies, folded: Folded) -> Int64:
    """Return the decisions on own changes of the source that stop an applier."""
    rows = _stopping_rows(bucket, number, rules)
    if not len(rows):
        return rows
    decisions = folded.decisions
    applied = np.flatnonzero((applies.applier[decisions.apply] == number) & (decisions.source >= 0))
    applied = applied[np.isin(decisions.source[applied], rows)]
    return applied[_stop_then(bucket, number, rules, decisions.source[applied], decisions.apply[applied])]


def _on_entries(number: int, rules: StopRules, applies: EpochApplies, folded: Folded, key_table: Int16) -> Int64:
    """Return the decisions on operations that the other applier logged and that stop an applier."""
    if not rules.stopping.any():
        return np.zeros(0, np.int64)
    decisions, logged = folded.decisions, folded.logged
    applied = np.flatnonzero((applies.applier[decisions.apply] == number) & (decisions.source < 0))
    entries = -1 - decisions.source[applied]
    rule = rules.at(key_table[logged.key[entries]], decisions.apply[applied])
    return applied[_stopping_entries(logged, entries, rule, rules)]


def _on_blobs(number: int, rules: StopRules, applies: EpochApplies, folded: Folded, key_table: Int16) -> Int64:
    """Return the decisions that reject a row of a table with blobs together with its transaction."""
    if not rules.blobs.any():
        return np.zeros(0, np.int64)
    decisions = folded.decisions
    rejected = np.flatnonzero(decisions.cause == Cause.TRANS_IN_CONFLICT)
    mine = rejected[applies.applier[decisions.apply[rejected]] == number]
    return np.asarray(mine[rules.blobs[rules.at(key_table[decisions.key[mine]], decisions.apply[mine])]])


def _stopping_decision(
    bucket: Bucket, rules: StopRules, applies: EpochApplies, folded: Folded, decision: int, phase: Phase
) -> StoppingOperation:
    """Return the operation of a decision as the one that stops its applier."""
    decisions = folded.decisions
    apply, source = int(decisions.apply[decision]), int(decisions.source[decision])
    number = int(applies.number[apply])
    if source >= 0:
        return _stopping_row(bucket, int(applies.applier[apply]), rules, source, (number, apply), phase)
    entry = np.array([-1 - source])
    table, operation = int(bucket.key_table[decisions.key[decision]]), int(decisions.operation[decision])
    version = _version(rules, table, apply)
    presences = _presences(folded.logged, entry, rules.at(np.array([table]), np.array([apply])), rules)
    rule = rules.rule(table, apply)
    stop = rule.stop(operation, *(int(each[0]) for each in presences), rejected=phase is Phase.REJECT)
    assert stop is not None
    return StoppingOperation(
        number,
        phase=phase,
        order=tuple(operation_orders(np.array([decision]), decisions, folded.logged, applies, bucket.rows)[0].as_py()),
        table=table,
        operation=operation,
        foreign_epoch=int(applies.foreign_epoch[apply]),
        file=NO_FILE,
        position=0,
        payload_position=0,
        row=0,
        kind=stop,
        version=version,
    )


def stop_of(stopping: StoppingOperation, cluster: ClusterSetup, files: Sequence[str]) -> Stop:
    """
    Return the stop that an operation causes.

    Args:
        stopping: The operation.
        cluster: The cluster whose applier stops.
        files: Binlog files of the other cluster by number.
    """
    if stopping.stop is not None:
        return stopping.stop
    place = (stopping.position, stopping.payload_position, stopping.row)
    at = StoppedAt(
        cluster.name,
        cluster.tables[stopping.table].full_name,
        Operation(stopping.operation),
        stopping.foreign_epoch,
        Origin(files[stopping.file], *place) if stopping.file >= 0 else None,
        function=cluster.over_time(stopping.table)[stopping.version].function,
        misfit=cluster.misfits.get(stopping.table),
    )
    return at.stop(stopping.kind)
