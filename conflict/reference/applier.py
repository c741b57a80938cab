"""
The applier of a cluster: how many passes it makes over a foreign epoch.

An applier applies a foreign epoch as one NDB transaction. A function that judges transactions makes it go over the
epoch more than once:

    NORMAL   decides row by row; a transaction in conflict rolls the pass back, and TRACK follows
    TRACK    the same, and tracks dependencies; a transaction in conflict rolls the pass back, and APPLY follows
    APPLY    rejects the transactions in conflict and those that depend on them, and refreshes their rows

The applier stays in TRACK until an epoch had no transaction in conflict.

Source: MySQL manual, "NDB$EPOCH_TRANS", and the state diagram in the server's `ndb_applier.cc`.
"""

from __future__ import annotations

from collections import Counter

import attrs

from conflict.history.model import Cluster, EpochApply
from conflict.reference.cluster import ReplayedCluster
from conflict.reference.commit_checks import check_commit
from conflict.reference.epoch_commit import commit_pass
from conflict.reference.epoch_pass import ApplierStopped, EpochPass
from conflict.rules.counters import transaction_counters

__all__ = ["Applier"]


@attrs.define
class Applier:
    """
    The applier of one cluster. Once it stopped it does nothing more.

    Attributes:
        cluster: The cluster.
    """

    cluster: ReplayedCluster
    _tracking: bool = False

    def apply_epoch(self, apply: EpochApply, source: ReplayedCluster) -> None:
        """Apply one epoch of another cluster and commit it; an epoch that stops the applier is undone."""
        if self.cluster.result.stop is not None:
            return
        self.cluster.act_as(apply.role)
        if apply.restarted:
            self._tracking = False
        try:
            final = self._final_pass(apply, source)
            check_commit(final)
        except ApplierStopped as stopped:
            undone = self.cluster.store.roll_back()
            self.cluster.foreign_keys.update(undone, self.cluster.store)
            self.cluster.result.stop, self.cluster.result.stop_place = stopped.stop, stopped.place
            return
        if final.track is not None:
            self.note_track(final.track)
        self.commit(final, source)

    def commit(self, final: EpochPass, source: ReplayedCluster) -> None:
        """Commit a pass."""
        commit_pass(final, source)

    def _final_pass(self, apply: EpochApply, source: ReplayedCluster) -> EpochPass:
        """Make passes until one can be committed, and return it."""
        tracked = self._find_conflicts(apply, source)
        rejected = self.rejected(tracked)
        if not rejected:
            return tracked
        self.cluster.store.roll_back()
        return self.apply_without(rejected, tracked, source)

    def _find_conflicts(self, apply: EpochApply, source: ReplayedCluster) -> EpochPass:
        """Make pass NORMAL, pass TRACK or both; without a transaction in conflict the last one can be committed."""
        if not self._tracking:
            normal = self._pass(apply, source)
            if not normal.tracker.conflicting:
                return normal
            self.cluster.store.roll_back()
        tracked = self._pass(apply, source)
        self._tracking = bool(tracked.tracker.conflicting)
        return tracked

    def rejected(self, tracked: EpochPass) -> frozenset[int]:
        """Return the transactions that a pass found in conflict, and those that depend on them."""
        return tracked.tracker.in_conflict()

    def apply_without(self, rejected: frozenset[int], tracked: EpochPass, source: ReplayedCluster) -> EpochPass:
        """Make pass APPLY, with the counters of the pass that found the conflicts added."""
        final = self._pass(tracked.apply, source, rejected)
        final.track = tracked
        final.counters.update(tracked.counters)
        final.counters.update(transaction_counters(1, len(rejected)))
        self._tracking = True
        return final

    def note_track(self, track: EpochPass) -> None:
        """Note what pass TRACK found in an epoch that is committed; one that stops the applier leaves nothing."""
        result, number = self.cluster.result, len(self.cluster.result.applies)
        rows = Counter(exceptions.table.full_name for exceptions, _ in track.exceptions)
        if track.tracker.conflicting:
            result.conflicting[number] = frozenset(track.tracker.conflicting)
        result.tracked_rows.update({(table, number): count for table, count in rows.items()})

    def _pass(self, apply: EpochApply, source: ReplayedCluster, rejected: frozenset[int] = frozenset()) -> EpochPass:
        current = self.new_pass(apply, source.cluster, rejected)
        current.run(self.cluster.arriving(source, apply.foreign_epoch))
        return current

    def new_pass(self, apply: EpochApply, source: Cluster, rejected: frozenset[int]) -> EpochPass:
        """Return a pass that has not begun."""
        return EpochPass(self.cluster, source, apply, rejected)
