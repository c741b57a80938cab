"""
Which transactions of an epoch were rejected, as far as the applier's binlog shows.

Every row of a rejected transaction is refreshed.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from conflict.engine.inference.observed import ObservedCluster, OtherConflictsError
from conflict.engine.reference.cluster import LoggedChange
from conflict.engine.reference.row_store import RowKey
from conflict.history.model import EpochApply
from conflict.history.shown_effects import Effect

__all__ = ["REFRESHES", "judged_transactions", "judges_transactions"]

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
    doubtful = _doubtful_groups(cluster, entries, passed | given.passed, not_known, given.told)
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
    told: frozenset[int] = frozenset(),
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
        told: Transactions that were rejected, as other rows show.
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
    rejected = set(told)
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
