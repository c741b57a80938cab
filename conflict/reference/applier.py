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

from conflict.history.model import EpochApply
from conflict.reference.cluster import OtherConflictsError, ReplayedCluster
from conflict.reference.commit_checks import check_commit
from conflict.reference.doubtful_transactions import REFRESHES
from conflict.reference.epoch_commit import commit_pass
from conflict.reference.epoch_pass import ApplierStopped, EpochPass
from conflict.reference.not_known import (
    Settled,
    doubt_contradicted,
    is_before_start,
    settle,
    take_contradicted,
)
from conflict.reference.open_decisions import open_decisions
from conflict.reference.row_store import NOT_KNOWN
from conflict.reference.taken_effects import take_shown, take_untold
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
    _settled: Settled = attrs.field(factory=Settled)
    _may_have_forgotten: bool = False

    def apply_epoch(self, apply: EpochApply, source: ReplayedCluster) -> None:
        """Apply one epoch of another cluster and commit it; an epoch that stops the applier is undone."""
        if self.cluster.result.stop is not None:
            return
        self.cluster.act_as(apply.role)
        if is_before_start(apply, source):
            self._track_as_shown(apply)
            take_shown(self.cluster, apply)
            self.cluster.applied(apply, source)
            return
        if not source.log.get(apply.foreign_epoch) and not source.untold.get(apply.foreign_epoch):
            self._tracking = False
            self.cluster.result.effects.setdefault((apply.epoch, apply.group), {})
            self.cluster.applied(apply, source)
            return
        self._begin(apply)
        self._settled = settle(self.cluster, source, apply)
        try:
            final = self._final_pass(apply, source)
            check_commit(final)
        except ApplierStopped as stopped:
            undone = self.cluster.store.roll_back()
            self.cluster.foreign_keys.update(undone, self.cluster.store)
            self._settled.forget(self.cluster, apply)
            self.cluster.result.stop = stopped.stop
            return
        if final.track is not None:
            self._note_track(final.track)
        wrong = doubt_contradicted(final, self._settled, source)
        commit_pass(final, source)
        self._settled.forget(self.cluster, apply, final)
        take_untold(self.cluster, source, apply)
        take_contradicted(self.cluster, apply, wrong, self._settled)

    def _track_as_shown(self, apply: EpochApply) -> None:
        """Note whether an epoch that is older than the log had a transaction in conflict; its rows were refreshed."""
        if self.cluster.shown:
            shown = self.cluster.shown.get((apply.epoch, apply.group), {}) if apply.traced else {}
            self._tracking = not REFRESHES.isdisjoint(shown.values())

    def _begin(self, apply: EpochApply) -> None:
        """Forget pass TRACK if the applier was restarted; note whether it may have been, though nothing says so."""
        if apply.restarted:
            self._tracking = False
        self._may_have_forgotten = self._tracking

    def _final_pass(self, apply: EpochApply, source: ReplayedCluster) -> EpochPass:
        """Make passes until one can be committed, and return it."""
        tracked = self._find_conflicts(apply, source)
        given = self.cluster.known_transactions
        rejected = tracked.tracker.in_conflict() if given is None else given.in_conflict
        if not tracked.tracker.conflicting <= rejected:
            raise OtherConflictsError
        if not rejected:
            return tracked
        self.cluster.store.roll_back()
        return self._apply_without_conflicts(tracked, source, rejected)

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

    def _apply_without_conflicts(
        self, tracked: EpochPass, source: ReplayedCluster, rejected: frozenset[int]
    ) -> EpochPass:
        """Make pass APPLY, with the counters of the pass that found the conflicts added."""
        changes = self.cluster.arriving(source, tracked.apply.foreign_epoch)
        undecided = open_decisions(tracked, rejected, changes)
        final = self._pass(tracked.apply, source, rejected)
        final.undecided += undecided
        final.track = tracked
        final.counters.update(tracked.counters)
        final.counters.update(transaction_counters(1, len(rejected)))
        self._tracking = True
        return final

    def _note_track(self, track: EpochPass) -> None:
        """Note what pass TRACK found in an epoch that is committed; one that stops the applier leaves nothing."""
        result, number = self.cluster.result, len(self.cluster.result.applies)
        rows = Counter(exceptions.table.full_name for exceptions, _ in track.exceptions)
        if track.tracker.conflicting:
            result.conflicting[number] = frozenset(track.tracker.conflicting)
        result.tracked_rows.update({(table, number): count for table, count in rows.items()})
        if self._may_have_forgotten and rows:
            result.further_rows[number] = dict(rows)

    def _pass(self, apply: EpochApply, source: ReplayedCluster, rejected: frozenset[int] = frozenset()) -> EpochPass:
        early = {
            key: row
            for key, row in self.cluster.rows_at(apply.moments).items()
            if row is not NOT_KNOWN and key not in self._settled.rows
        }
        current = EpochPass(self.cluster, source.cluster, apply, rejected, early, open=self._settled.open)
        current.run(self.cluster.arriving(source, apply.foreign_epoch))
        return current
