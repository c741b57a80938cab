"""
Operations that an applier cannot handle: its epoch is undone, and it takes no more.

Most can be told from the rows alone (`first_stopping`). What the other applier logs can be unusable too, and so can
a transaction in conflict that touches blobs; that takes a fold (`stopping_decisions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import attrs
import numpy as np
import pyarrow.compute as pc

from conflict.columnar.bucket import Bucket
from conflict.columnar.cluster_setup import ClusterSetup, judging_function
from conflict.columnar.kernels.arrays import Bool, EpochApplies, Int8, Int16, Int64, Logged, Presence, each_read_only
from conflict.columnar.kernels.event_masks import reflects
from conflict.columnar.kernels.fold import Folded
from conflict.columnar.kernels.operations import place_of, stopping_rows
from conflict.rules.decision import Cause
from conflict.rules.functions import Image
from conflict.rules.roles import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import Operation

__all__ = [
    "Phase",
    "StoppingOperation",
    "can_log_stopping",
    "first_stopping",
    "stopping_decision",
    "stopping_decisions",
    "stops_now",
]

BEFORE, AFTER = 0, 1


class Phase(IntEnum):
    """When an operation stops its applier."""

    JUDGE = 0
    REJECT = 1
    COMMIT = 2


@attrs.frozen(order=True)
class StoppingOperation:
    """
    An operation that stops an applier; the earliest comes first.

    Attributes:
        apply: Number of the take among those of the applier.
        phase: When it does: all operations are judged before transactions are rejected.
        place: Its place in the foreign epoch (see `place_of`).
        table: Number of its table.
        operation: `Operation`.
        foreign_epoch: The epoch.
        file: Number of its binlog file; -1 for what an applier logged, or what was made up.
        position: Position of its event.
        row: Number of the row in the event.
    """

    apply: int
    phase: Phase
    place: tuple[int, ...]
    table: int
    operation: int
    foreign_epoch: int
    file: int
    position: int
    row: int


@attrs.frozen
class _Rules:
    """
    What stops one applier, by table.

    Attributes:
        refused: It does not have the table. Shape (tables,).
        no_role: The function needs a role. Shape (tables,).
        identified: The function needs transaction ids. Shape (tables,).
        needs: The image must hold the resolve column. Shape (tables, operations, images).
        column_in_key: The resolve column is part of the primary key, which every image holds. Shape (tables,).
        blobs: The table has blobs. Shape (tables,).
    """

    refused: Bool
    no_role: Bool
    identified: Bool
    needs: Bool
    column_in_key: Bool
    blobs: Bool

    @property
    def any_row(self) -> bool:
        """Whether there are rows that it could not handle at all."""
        return bool((self.refused | self.no_role | self.identified).any() or self.needs.any())

    def stopping_kinds(self) -> Int8:
        """
        Return which kinds of rows it could not handle: 2 if never, 1 if they are unidentified.

        Shape (tables, operations, presences, presences): those of the resolve column in the before and after image.
        """
        absent = np.array([each is not Presence.PRESENT for each in Presence])
        needs_before, needs_after = (self.needs[:, :, image, None, None] for image in (BEFORE, AFTER))
        lacking = (needs_before & absent[:, None]) | (needs_after & absent)
        never = lacking | self.no_role[:, None, None, None]
        kinds = np.where(never, 2, self.identified[:, None, None, None]).astype(np.int8)
        kinds[:, Operation.UPDATE_ROW, :, Presence.NO_COLUMNS] = 0  # has no effect whatever
        kinds[self.refused] = 2
        return kinds


def _rules(cluster: ClusterSetup) -> _Rules:
    count = len(cluster.setups)
    flags = np.zeros((5, count), np.bool_)
    rules = _Rules(flags[0], flags[1], flags[2], np.zeros((count, 4, 2), np.bool_), flags[3], flags[4])
    for number, setup in enumerate(cluster.setups):
        rules.refused[number] = setup.refusal is not None
        rules.blobs[number] = any(column.is_blob for column in setup.table.columns)
        function = judging_function(setup, cluster.role)
        if function is None:
            continue
        spec, column = function.spec, function.column
        rules.no_role[number] = spec.uses_role and cluster.role is Role.NONE
        rules.identified[number] = spec.transactional
        rules.column_in_key[number] = column is not None and column in setup.table.primary_key
        for operation, image in () if cluster.skip_missing else spec.needs.items():
            rules.needs[number, operation, BEFORE if image is Image.BEFORE else AFTER] = True
    return rules


def can_log_stopping(clusters: Sequence[ClusterSetup]) -> bool:
    """Whether what an applier logs could stop the other one."""
    for logging, taking in ((clusters[0], clusters[1]), (clusters[1], clusters[0])):
        rules = _rules(taking)
        every = any(setup.function is not None and setup.function.spec.transactional for setup in logging.setups)
        logs = np.array([every or _logs(setup, logging.role) for setup in logging.setups], np.bool_)
        if np.any(logs & (rules.refused | rules.no_role | rules.needs.any(axis=(1, 2)))):
            return True
    return False


def _logs(setup: TableSetup, role: Role) -> bool:
    return setup.function is not None and (setup.function.spec.refreshes or reflects(setup, role))


def _stopping_rows(bucket: Bucket, applier: int, rules: _Rules) -> Int64:
    """Return the numbers of those of the source's rows that an applier cannot handle."""
    if not rules.any_row:
        return np.zeros(0, np.int64)
    rows, changes = bucket.rows[1 - applier], bucket.changes[1 - applier]
    if rules.identified.any() and changes.may_be_null("transaction_id"):
        unidentified = np.asarray(pc.is_null(changes.column("transaction_id")).to_numpy())
    else:
        unidentified = np.zeros(len(rows), np.bool_)
    arguments = [
        *each_read_only(bucket.key_table, rows.key, rows.operation, rows.before_presence, rows.after_presence),
        *each_read_only(unidentified, rules.stopping_kinds()),
    ]
    return np.asarray(stopping_rows(*arguments))


def _stopping_entries(logged: Logged, table: np.ndarray, rules: _Rules) -> Bool:
    """Return which entries of the appliers' logs an applier could not handle. Shape (entries,)."""
    needs = rules.needs[table, logged.operation]
    lacks_before = needs[:, BEFORE] & ~rules.column_in_key[table]
    lacking = lacks_before | (needs[:, AFTER] & ~logged.given)
    return np.asarray(rules.refused[table] | rules.no_role[table] | lacking)


def first_stopping(
    bucket: Bucket, clusters: Sequence[ClusterSetup], applies: EpochApplies
) -> dict[str, StoppingOperation]:
    """
    Return, per applying site, the first row operation of the other one that stops it.

    Args:
        bucket: A bucket; its images are not needed.
        clusters: Both sites.
        applies: All takes.
    """
    found = {}
    for number, cluster in enumerate(clusters):
        rows = bucket.rows[1 - number]
        bad = _stopping_rows(bucket, number, _rules(cluster))
        if len(bad):
            epochs, first = np.unique(applies.foreign_epoch[applies.applier == number], return_index=True)
            bad = bad[np.isin(rows.epoch[bad], epochs)]
        if len(bad):
            apply = first[np.searchsorted(epochs, rows.epoch[bad])]
            earliest = apply == apply.min()
            found[cluster.name] = min(
                _stopping_row(bucket, number, int(row), int(apply.min())) for row in bad[earliest].tolist()
            )
    return found


def _stopping_row(bucket: Bucket, applier: int, row: int, apply: int) -> StoppingOperation:
    change = bucket.changes[1 - applier].row(row)
    return StoppingOperation(
        apply,
        phase=Phase.JUDGE,
        place=(change["group"], 0, change["ordinal"]),
        table=change["table"],
        operation=change["operation"],
        foreign_epoch=change["epoch"],
        file=change["file"],
        position=change["position"],
        row=change["row"],
    )


def stopping_decisions(
    bucket: Bucket, clusters: Sequence[ClusterSetup], applies: EpochApplies, folded: Folded
) -> dict[str, StoppingOperation]:
    """Return, per applying site, the first operation that stops it, if the transactions in conflict are right."""
    found = {}
    for number, cluster in enumerate(clusters):
        rules = _rules(cluster)
        judged = np.concatenate(
            [
                _on_rows(bucket, number, rules, applies, folded),
                _on_entries(number, rules, applies, folded, bucket.key_table),
            ]
        )
        rejected = _on_blobs(number, rules, applies, folded, bucket.key_table)
        candidates = [
            (int(folded.decisions.apply[places.min()]), phase, int(places.min()))
            for phase, places in ((Phase.JUDGE, judged), (Phase.REJECT, rejected))
            if len(places)
        ]
        if candidates:
            _, phase, decision = min(candidates)
            found[cluster.name] = stopping_decision(bucket, applies, folded, decision, phase)
    return found


def stops_now(clusters: Sequence[ClusterSetup], applies: EpochApplies, folded: Folded, key_table: Int16) -> bool:
    """
    Return whether an operation stops an applier that the transactions in conflict alone could make unusable.

    Rows that could not be handled anyway are not looked for: they do not depend on transactions.
    """
    for number, cluster in enumerate(clusters):
        rules = _rules(cluster)
        if len(_on_entries(number, rules, applies, folded, key_table)):
            return True
        if len(_on_blobs(number, rules, applies, folded, key_table)):
            return True
    return False


def _on_rows(bucket: Bucket, number: int, rules: _Rules, applies: EpochApplies, folded: Folded) -> Int64:
    """Return the decisions on rows that an applier cannot handle."""
    rows = _stopping_rows(bucket, number, rules)
    if not len(rows):
        return rows
    applied = np.flatnonzero((applies.applier[folded.decisions.apply] == number) & (folded.decisions.source >= 0))
    return applied[np.isin(folded.decisions.source[applied], rows)]


def _on_entries(number: int, rules: _Rules, applies: EpochApplies, folded: Folded, key_table: Int16) -> Int64:
    """Return the decisions on what the other applier logged that an applier cannot handle."""
    stopping = _stopping_entries(folded.logged, key_table[folded.logged.key], rules)
    if not stopping.any():
        return np.zeros(0, np.int64)
    applied = np.flatnonzero((applies.applier[folded.decisions.apply] == number) & (folded.decisions.source < 0))
    return applied[stopping[-1 - folded.decisions.source[applied]]]


def _on_blobs(number: int, rules: _Rules, applies: EpochApplies, folded: Folded, key_table: Int16) -> Int64:
    """Return the decisions that reject rows with blobs together with their transaction."""
    if not rules.blobs.any():
        return np.zeros(0, np.int64)
    decisions = folded.decisions
    rejected = np.flatnonzero(decisions.cause == Cause.TRANS_IN_CONFLICT)
    mine = rejected[applies.applier[decisions.apply[rejected]] == number]
    return np.asarray(mine[rules.blobs[key_table[decisions.key[mine]]]])


def stopping_decision(
    bucket: Bucket, applies: EpochApplies, folded: Folded, decision: int, phase: Phase
) -> StoppingOperation:
    """Return a decision as the one that stops its applier."""
    decisions = folded.decisions
    apply, source = int(decisions.apply[decision]), int(decisions.source[decision])
    number = int(applies.number[apply])
    if source >= 0:
        found = _stopping_row(bucket, int(applies.applier[apply]), source, number)
        return attrs.evolve(found, phase=phase)
    return StoppingOperation(
        number,
        phase=phase,
        place=place_of(decision, decisions, folded.logged, applies, bucket.rows),
        table=int(bucket.key_table[decisions.key[decision]]),
        operation=int(decisions.operation[decision]),
        foreign_epoch=int(applies.foreign_epoch[apply]),
        file=-1,
        position=0,
        row=0,
    )
