"""
What the applier's own binlog shows of rows whose operations, or states, are not known, and of rejected transactions.

Every row of a rejected transaction is refreshed.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import attrs

from conflict.engine.inference.observed import ObservedCluster, OtherConflictsError, compares_unknown
from conflict.engine.inference.rows import NOT_KNOWN, OlderRow
from conflict.engine.reference.cluster import LoggedChange
from conflict.engine.reference.row_store import RowKey
from conflict.history.shown_effects import Effect
from conflict.history.timeline import EpochApply

REFRESHES = {Effect.REFRESHED, Effect.REFRESHED_ABSENT}
Entries = Mapping[RowKey, Sequence[LoggedChange]]


def judged_transactions(
    cluster: ObservedCluster, apply: EpochApply, entries: Entries, not_known: Container[RowKey]
) -> tuple[frozenset[int] | None, set[int]]:
    """
    Return the transactions that were not rejected, and those that may have been.

    Args:
        cluster: The applying cluster.
        apply: The epoch apply.
        entries: The operations by row.
        not_known: Rows that can have been in several states.

    Returns:
        None and none if no transaction can be rejected, or the binlog shows nothing.

    Raises:
        OtherConflictsError: One may have been that also touched rows that are not here.
    """
    passed, given = _passed_groups(cluster, apply, entries), cluster.known_transactions
    if passed is None:
        return None, set()
    if given is None:
        return passed, _doubtful_groups(cluster, entries, passed, not_known)
    doubtful = _doubtful_groups(cluster, entries, passed | given.passed, not_known, given.last_touching)
    if not doubtful <= given.alone:
        raise OtherConflictsError
    return passed | given.passed, doubtful


def _passed_groups(
    cluster: ObservedCluster, apply: EpochApply, entries: Mapping[RowKey, Sequence[LoggedChange]]
) -> frozenset[int] | None:
    """
    Return the transactions that were not rejected; None if no transaction can be, or the binlog shows nothing.

    Every row of a rejected transaction is refreshed.
    """
    if not judges_transactions(cluster) or not cluster.shown or not apply.traced:
        return None
    shown = cluster.shown_by(apply)
    return frozenset(entry.group for key, mine in entries.items() if shown.get(key) not in REFRESHES for entry in mine)


def judges_transactions(cluster: ObservedCluster) -> bool:
    """Whether a table has a function that rejects whole transactions."""
    return any(setup.function and setup.function.spec.transactional for setup in cluster.setups.values())


def _doubtful_groups(
    cluster: ObservedCluster,
    entries: Mapping[RowKey, Sequence[LoggedChange]],
    passed: frozenset[int],
    not_known: Container[RowKey],
    rejected_elsewhere: frozenset[int] = frozenset(),
) -> set[int]:
    """
    Return the transactions that may have been rejected: the binlog does not show it.

    The last transaction that touched a refreshed row was rejected, unless a function refreshes single rows. One before
    it was or was not, if it is not known what the row was.

    Args:
        cluster: The applying cluster.
        entries: The operations by row.
        passed: See `_passed_groups`.
        not_known: Rows that can have been in several states.
        rejected_elsewhere: Transactions that were rejected, as other rows show.
    """
    refreshed = {
        key: groups
        for key, mine in entries.items()
        if (groups := [group for group in dict.fromkeys(entry.group for entry in mine) if group not in passed])
    }
    refreshes_rows = any(
        setup.function and setup.function.spec.refreshes and not setup.function.spec.transactional
        for setup in cluster.setups.values()
    )
    rejected = set(rejected_elsewhere)
    if not refreshes_rows:
        rejected.update(groups[-1] for groups in refreshed.values())
    doubtful = set[int]()
    for key, groups in refreshed.items():
        if key in not_known:
            doubtful.update(group for group in groups if group not in rejected)
    while True:
        after = {
            group
            for groups in refreshed.values()
            for place, group in enumerate(groups)
            if group not in rejected and doubtful.intersection(groups[:place])
        }
        if after <= doubtful:
            return doubtful
        doubtful |= after


def take_shown(cluster: ObservedCluster, apply: EpochApply) -> None:
    """Take what an epoch did whose operations are not known from the applier's own binlog."""
    take_effects(cluster, apply, cluster.shown_by(apply))


def take_unclear(cluster: ObservedCluster, source: ObservedCluster, apply: EpochApply) -> None:
    """Take what an epoch did to rows whose operations are not all known from the applier's own binlog."""
    unclear = set() if cluster.cluster.start is None else unclear_rows(cluster, source, apply)
    if not unclear:
        return
    shown = cluster.shown_by(apply)
    arrived = {entry.row for entry in cluster.arriving(source, apply.foreign_epoch)}
    for key in unclear & arrived:
        replace_effect(cluster, apply, key)
        if key not in shown:
            cluster.store.put(key, NOT_KNOWN)
    take_effects(cluster, apply, {key: effect for key, effect in shown.items() if key in unclear})


def take_effects(cluster: ObservedCluster, apply: EpochApply, effects: Mapping[RowKey, Effect]) -> None:
    """Make effects that the binlog shows, whatever the operations were."""
    for key, effect in effects.items():
        row = None
        if effect in {Effect.CHANGED, Effect.REFRESHED}:
            row = OlderRow({}, local=effect is Effect.REFRESHED, epoch=apply.epoch)
        cluster.store.put(key, row)
        setup = cluster.setups.get(key[0])
        if effect in REFRESHES or (setup is not None and setup.deployed(cluster.role).marks_reflected):
            cluster.leave_unclear(apply.epoch, key)
    cluster.store.commit()
    if effects:
        cluster.result.effects.setdefault((apply.epoch, apply.group), {}).update(effects)


def leave_unclear(cluster: ObservedCluster, apply: EpochApply, key: RowKey) -> None:
    """Note that it is not known what an epoch sent on of a row; nothing is, where the binlog does not show it so."""
    cluster.leave_unclear(apply.epoch, key)
    place = apply.epoch, apply.group
    derived = cluster.result.effects.get(place, {}).get(key)
    shown = cluster.shown_by(apply).get(key)
    if cluster.shown and derived is not shown:
        log = cluster.log.get(apply.epoch, [])
        log[:] = [each for each in log if not (isinstance(each, LoggedChange) and each.is_sent_on_by(apply, key))]


def doubt_operation(cluster: ObservedCluster, apply: EpochApply, key: RowKey) -> None:
    """Note that what an epoch sent on of a row may be a write or an update: it is not known whether the row existed."""
    log = cluster.log.get(apply.epoch, [])
    log[:] = [
        attrs.evolve(each, change=attrs.evolve(each.change, doubtful=True))
        if isinstance(each, LoggedChange) and each.is_sent_on_by(apply, key)
        else each
        for each in log
    ]


def replace_effect(cluster: ObservedCluster, apply: EpochApply, key: RowKey) -> None:
    """Let the effect on a row be the one that the binlog shows: what was derived comes from an assumed state."""
    place = apply.epoch, apply.group
    effects = cluster.result.effects.setdefault(place, {})
    effects.pop(key, None)
    cluster.result.images.get(place, {}).pop(key, None)
    shown = cluster.shown_by(apply).get(key)
    if shown is not None:
        effects[key] = shown


def unclear_rows(cluster: ObservedCluster, source: ObservedCluster, apply: EpochApply) -> set[RowKey]:
    """Return the rows of an epoch whose operations are not all known, or a value that is compared is not."""
    brought = {entry.row for entry in cluster.arriving(source, apply.foreign_epoch) if brings_unknown(cluster, entry)}
    return source.unclear.get(apply.foreign_epoch, set()) | brought


def brings_unknown(cluster: ObservedCluster, entry: LoggedChange) -> bool:
    """Whether the function of a table compares a value that an operation brings, but that is not known."""
    setup = cluster.setups.get(entry.change.table)
    return (
        setup is not None and setup.function is not None and compares_unknown(entry.change, setup.function, setup.table)
    )
