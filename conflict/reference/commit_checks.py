"""
What data nodes check when an applier commits: unique keys first, then foreign keys.
"""

from __future__ import annotations

from conflict.reference.epoch_pass import EpochPass
from conflict.reference.referential_actions import keep_references
from conflict.rules.stops import ServerStop

__all__ = ["check_commit"]


def check_commit(final: EpochPass) -> None:
    """
    Check the rows that a pass changed; what the actions of foreign keys do is added to them.

    Raises:
        ApplierStopped: The pass cannot be committed. The caller rolls back.
    """
    cluster = final.cluster
    duplicate = cluster.unique_keys.update(final.changed, cluster.store)
    if duplicate is not None:
        raise final.stopped(ServerStop.DUPLICATE_VALUE, final.changed[duplicate].change)
    keep_references(final)
