"""
Replays clusters beside their binlogs: finds out what is not known, and says what stays open.

The applier is that of `conflict.engine.reference.applier`. Before an epoch it puts rows in place of those that are not
known (see `conflict.engine.inference.not_known`); it judges rows when they were judged (see
`conflict.engine.inference.moments`); and after the epoch it goes on with what the binlog shows.

What stays open are decisions on rows that the applying cluster changed while its applier worked on an epoch, and on
rows that are older than the log. Pass TRACK can have run at any time between the applier's last commit and this one.
The binlog shows which transactions the applier rejected. It does not show which of their operations were in conflict
themselves, and counted, where the cluster changed the row in that time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import attrs

from conflict.engine.inference.hypotheses import Tried, try_state
from conflict.engine.inference.not_known import Settled, doubt_contradicted, is_before_start, settle, take_contradicted
from conflict.engine.inference.observed import Effects, KnownTransactions, ObservedCluster, ObservedPass
from conflict.engine.inference.rows import NOT_KNOWN, is_dated
from conflict.engine.inference.taken_effects import REFRESHES, take_shown, take_unclear
from conflict.engine.ledger.resolution import Outcome, Resolution, Undecided
from conflict.engine.reference.applier import Applier
from conflict.engine.reference.cluster import LoggedChange, ReplayedCluster
from conflict.engine.reference.epoch_pass import REJECTED_WITH_TRANSACTION, DecidedOperation, EpochPass
from conflict.engine.reference.replay import columns_not_known, replay
from conflict.engine.reference.row_store import Row, RowKey
from conflict.history.model import Cluster, History
from conflict.history.timeline import EpochApply
from conflict.rules.counters import counts_differ
from conflict.rules.decision import Cause, Decision, Verdict
from conflict.rules.table_setup import TableSetup

# By the identity of an entry, the decisions that are possible.
Candidates = Mapping[int, frozenset[Decision]]


def _open_decisions(
    cluster: ObservedCluster,
    tracked: EpochPass,
    candidates_of: Candidates,
    rejected: frozenset[int],
    changes: Sequence[LoggedChange],
) -> list[Undecided]:
    """
    Return the operations of rejected transactions that may or may not have been in conflict themselves.

    Args:
        cluster: The applying cluster.
        tracked: The pass that found the conflicts, rolled back.
        candidates_of: What the operations on rows that are not known may be decided as, by the identity of entries.
        rejected: Transactions in conflict.
        changes: The operations of the foreign epoch.
    """
    found = []
    # What an applier logged has no number of its own, so operations are distinguished as objects. The pass decides on
    # all in their order, and may have fitted them to its own table.
    decided = {id(entry): each.decision for entry, each in zip(changes, tracked.decided, strict=False)}
    earlier = _earlier_states(cluster, tracked, changes)
    not_known = {entry.row for entry in changes if id(entry) in candidates_of}
    for key in dict.fromkeys(entry.row for entry in changes):
        states = earlier.get(key, [])
        if not states and key not in not_known:
            continue
        entries = [entry for entry in changes if entry.row == key]
        if not any(entry.group in rejected for entry in entries):
            continue
        # Of a row that is not known, `settle` tries the states; the one between its changes counts as missing.
        known = [None if state is NOT_KNOWN else state for state in states]
        trial = partial(try_state, cluster, tracked.source, tracked.apply)
        found_of = _decisions_of(known, entries, trial, singly=cluster.cluster.applies_singly)
        for number, entry in enumerate(entries):
            now = decided.get(id(entry))
            candidates = found_of[number] | ({now} if now else set())
            candidates |= candidates_of.get(id(entry), frozenset())
            if REJECTED_WITH_TRANSACTION in candidates:
                continue  # see `_unclear_decisions`
            function = cluster.setups[entry.change.table].function
            if function is None or entry.group not in rejected:
                continue
            if counts_differ(function.spec, entry.change.operation, candidates):
                found.append(_undecided(tracked, entry, now, candidates))
    return found


def _decisions_of(
    states: Sequence[Row | None],
    entries: Sequence[LoggedChange],
    trial: Callable[[Sequence[LoggedChange], Row | None], Tried],
    *,
    singly: bool,
) -> list[set[Decision]]:
    """
    Return what each of the operations on a row may be decided as.

    Args:
        states: What the row may have been, in order.
        entries: The operations.
        trial: Tries operations on a state.
        singly: Whether each was judged by itself, so that one that is not applied leaves a later state to the next.
    """
    found: list[set[Decision]] = [set() for _ in entries]
    earliest = 0
    for place in range(len(entries)):
        tried = [trial(entries[place:], state) for state in states[earliest:]]
        for each in tried:
            for own, decision in zip(found[place:], each.decisions, strict=False):
                own.add(decision)
        if not singly:
            break
        alone = [trial(entries[place : place + 1], state) for state in states[earliest:]]
        left = [at for at, each in enumerate(alone, start=earliest) if each.decisions and each.effect is None]
        if not left:
            break
        earliest = left[0]
    return found


def _unclear_decisions(final: EpochPass, candidates_of: Candidates) -> list[Undecided]:
    """Return the operations whose outcome depends on what is not known."""
    return [
        _undecided(final, each.entry, each.decision, set(candidates_of[id(each.entry)]))
        for each in final.decided
        if _is_open(each, candidates_of)
    ]


def _left_open(final: EpochPass, candidates_of: Candidates, outcomes: Sequence[Outcome]) -> Iterator[Outcome]:
    """Yield the outcomes of a pass without the decisions that depend on what is not known."""
    for each, outcome in zip(final.decided, outcomes, strict=True):
        if not _is_open(each, candidates_of):
            yield outcome
        else:
            cannot_tell, none = Verdict.CANNOT_TELL, Cause.NONE
            yield attrs.evolve(
                outcome, verdict=cannot_tell, cause=none, own_cause=none, incoming=None, stored=None, winner=None
            )


def _is_open(decided: DecidedOperation, candidates_of: Candidates) -> bool:
    """Whether the decision on an operation depends on what is not known; not if its transaction was rejected anyway."""
    candidates = candidates_of.get(id(decided.entry), frozenset())
    rejected = decided.decision.cause is Cause.TRANS_IN_CONFLICT
    return len(candidates) > 1 and (not rejected or REJECTED_WITH_TRANSACTION in candidates)


def _earlier_states(
    cluster: ObservedCluster, tracked: EpochPass, changes: Sequence[LoggedChange]
) -> dict[RowKey, list[Row | None]]:
    """Return the states of rows that the cluster changed since the epoch arrived, the present state last."""
    found = dict[RowKey, list[Row | None]]()
    begun = max(tracked.apply.arrived, cluster.last_applied)
    for key in dict.fromkeys(entry.row for entry in changes):
        states = [state for position, state in cluster.earlier.get(key, ()) if position > begun]
        if states:
            found[key] = [*states, cluster.store.get(key)]
    return found


def _undecided(tracked: EpochPass, entry: LoggedChange, now: Decision | None, candidates: set[Decision]) -> Undecided:
    change = entry.change
    return Undecided(
        applier=tracked.cluster.name,
        source_epoch=tracked.apply.foreign_epoch,
        table=change.table,
        key=change.key,
        operation=change.operation,
        decided=now,
        candidates=tuple(sorted(candidates, key=lambda each: (each.verdict, each.cause, each.stored or 0))),
        origin=change.origin,
    )


@attrs.define
class ObservedApplier(Applier):
    """The applier of one `ObservedCluster`; the clusters whose epochs it applies are such, too."""

    _settled: Settled = attrs.field(factory=Settled)
    _undecided: list[Undecided] = attrs.field(factory=list)
    _may_have_forgotten: bool = False

    @property
    def here(self) -> ObservedCluster:
        """Its cluster."""
        assert isinstance(self.cluster, ObservedCluster)
        return self.cluster

    def apply_epoch(self, apply: EpochApply, source: ReplayedCluster) -> None:
        """Apply one epoch of another cluster and commit it; of one before the log, take what the binlog shows."""
        assert isinstance(source, ObservedCluster)
        here = self.here
        if here.result.stop is not None:
            return
        here.act_as(apply.role)
        if is_before_start(apply, source):
            self._track_as_shown(apply)
            take_shown(here, apply)
            here.applied(apply, source)
            here.forget_unlogged((apply.epoch, apply.group))
            return
        self._settled, self._undecided = settle(here, source, apply), []
        self._may_have_forgotten = self._tracking and not apply.restarted
        super().apply_epoch(apply, source)
        if here.result.stop is not None:
            self._settled.forget(here, apply)

    def _track_as_shown(self, apply: EpochApply) -> None:
        """Note whether an epoch that is older than the log had a transaction in conflict; its rows were refreshed."""
        if self.here.shown:
            self._tracking = not REFRESHES.isdisjoint(self.here.shown_by(apply).values())

    def new_pass(self, apply: EpochApply, source: Cluster, rejected: frozenset[int]) -> EpochPass:
        """Return a pass that judges rows when they were judged."""
        early = {
            key: row
            for key, row in self.here.rows_at(apply.moments).items()
            if row is not NOT_KNOWN and key not in self._settled.rows
        }
        return ObservedPass(self.cluster, source, apply, rejected, early=early)

    def rejected(self, tracked: EpochPass) -> frozenset[int]:
        """Return the transactions that are rejected: those that a pass found, and those that are given."""
        given, found, result = self.here.known_transactions, super().rejected(tracked), self.here.result
        if given is not None and (found or given.in_conflict):
            result.conflicting[len(result.applies)] = frozenset(tracked.tracker.conflicting)
            result.dependent[len(result.applies)] = tracked.tracker.pairs
            return found | given.in_conflict
        return found

    def apply_without(self, rejected: frozenset[int], tracked: EpochPass, source: ReplayedCluster) -> EpochPass:
        """Make pass APPLY; note which decisions of the pass that found the conflicts no binlog shows."""
        changes = self.cluster.arriving(source, tracked.apply.foreign_epoch)
        self._undecided = _open_decisions(self.here, tracked, self._settled.open, rejected, changes)
        return super().apply_without(rejected, tracked, source)

    def note_track(self, track: EpochPass) -> None:
        """Note what pass TRACK found; the applier may have been restarted before it, though nothing shows that."""
        super().note_track(track)
        rows = Counter(exceptions.table.full_name for exceptions, _ in track.exceptions)
        if self._may_have_forgotten and rows:
            self.here.result.further_rows[len(self.here.result.applies)] = dict(rows)

    def commit(self, final: EpochPass, source: ReplayedCluster) -> None:
        """Commit a pass, and go on with what the binlog shows where that is not known."""
        assert isinstance(source, ObservedCluster)
        here, apply, settled = self.here, final.apply, self._settled
        wrong = doubt_contradicted(here, final, settled, source)
        for key in final.changed.keys() | final.refreshes.keys():
            before = final.changed[key].before if key in final.changed else here.store.get(key)
            here.overwrite(key, (apply.epoch, apply.group), before)
        super().commit(final, source)
        here.result.undecided += [*self._undecided, *_unclear_decisions(final, settled.open)]
        first = len(here.outcomes) - len(final.decided)
        if settled.open:
            here.outcomes[first:] = _left_open(final, settled.open, here.outcomes[first:])
        settled.forget(here, apply, final)
        take_unclear(here, source, apply)
        take_contradicted(here, apply, wrong, settled)
        images = here.result.images.get((apply.epoch, apply.group), {})
        for each in here.outcomes[first:]:
            if each.verdict is Verdict.CANNOT_TELL:  # nor can it be told with what the row was left
                images.pop((each.table, each.key), None)
        if apply.traced:
            here.forget_unlogged((apply.epoch, apply.group))


def resolve(
    history: History,
    setups: Mapping[str, dict[str, TableSetup]],
    progress: Callable[[int], None] = lambda done: None,
    *,
    skip_missing: bool = False,
    shown: Mapping[str, Effects] | None = None,
    given: Mapping[str, Sequence[KnownTransactions]] | None = None,
) -> Resolution:
    """
    Resolve a History change by change, and say what the binlogs leave open.

    Args:
        history: What happened.
        setups: Per cluster, how its server set up each table.
        progress: Called with the number of timeline items done so far.
        skip_missing: Skip operations that lack a value to compare, instead of stopping their applier.
        shown: Per cluster, what its binlog shows of its applier's work; only for a log that starts in the middle.
        given: Per cluster and epoch apply, what is known of its transactions; None if the rows of the History show all.

    Raises:
        HistoryError: The schedule is circular.
        OtherConflictsError: Rows that are older than the log may lead to other transactions in conflict than are given.
    """
    appliers = observed_appliers(history, setups, skip_missing=skip_missing, shown=shown, given=given)
    resolution = replay(history, appliers, progress)
    for applier in appliers.values():
        _count_not_known(applier.here)
    return resolution


def observed_appliers(
    history: History,
    setups: Mapping[str, dict[str, TableSetup]],
    *,
    skip_missing: bool = False,
    shown: Mapping[str, Effects] | None = None,
    given: Mapping[str, Sequence[KnownTransactions]] | None = None,
    made_of: Callable[..., ObservedCluster] = ObservedCluster,
) -> dict[str, ObservedApplier]:
    """
    Return the appliers of a History, by cluster, before anything happened.

    Args:
        history: As for `resolve`.
        setups: As for `resolve`.
        skip_missing: As for `resolve`.
        shown: As for `resolve`.
        given: As for `resolve`.
        made_of: What makes a cluster.
    """
    return {
        each.name: ObservedApplier(
            made_of(
                each,
                setups[each.name],
                history.layouts,
                history.relays,
                skip_missing,
                shown=(shown or {}).get(each.name, {}),
                given=None if given is None else given[each.name],
            )
        )
        for each in history.clusters
    }


def _count_not_known(cluster: ObservedCluster) -> None:
    """Count the rows that nothing showed, those that are known in part, and the columns that they lack."""
    result, rows = cluster.result, cluster.store.rows
    for key in cluster.met:
        if cluster.store.get(key) is NOT_KNOWN:
            result.unknown_of(key[0]).rows += 1
    for key, row in rows.items():
        setup = cluster.setups.get(key[0])
        columns = 0 if setup is None else columns_not_known(row, setup)
        if columns:
            result.unknown_of(key[0]).rows_in_part += 1
            result.unknown_of(key[0]).columns += columns
    result.versions = {key: version for key, version in result.versions.items() if is_dated(rows[key])}
