"""
The proof of a plan: the reference engine carries its statements out where the logs end.

The clusters are those of the result, as they ended. Each transaction of a file is a user's transaction on its cluster.
The other cluster applies its epoch; what that logs goes back, until nothing is under way. Nobody else changes rows
meanwhile. Computes docs/repair.md, "The proof".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import attrs

from conflict.engine.reference.applier import Applier
from conflict.engine.reference.cluster import ReplayedCluster
from conflict.engine.reference.keys import KeySide
from conflict.engine.reference.replay import differing_rows
from conflict.engine.reference.row_store import Row, RowKey, RowStore
from conflict.history.timeline import EpochApply, Transaction
from conflict.operating.repairing.ended_run import EndedRun
from conflict.operating.repairing.statements import RepairedRow
from conflict.rules.decision import Cause, Verdict
from ndb_formats.events.rows_event import Operation

_GCI = 1 << 32  # an epoch has its number in the upper half
_MOST_ROUNDS = 8  # in which what an epoch brings back has to come to an end

# In the order of the files: a cluster, and the transactions of its file.
File = tuple[str, Sequence[Sequence[RepairedRow]]]


@attrs.frozen
class Judged:
    """
    What an applier does with operations of a repair.

    Attributes:
        applier: Its cluster.
        table: Name of the table.
        operation: What they are.
        verdict: What it decides.
        cause: Why it rejects them.
    """

    applier: str
    table: str
    operation: Operation
    verdict: Verdict
    cause: Cause


@attrs.frozen
class RowCounts:
    """
    Rows of a table.

    Attributes:
        before: By cluster, those that are known in full when the logs end.
        after: By cluster, after the repair.
        differing_before: Rows that differ when the logs end.
        differing_after: Rows that differ after the repair.
        may_differ: Rows of which something is not known, so that they may differ.
    """

    before: Mapping[str, int]
    after: Mapping[str, int]
    differing_before: int
    differing_after: int
    may_differ: int


@attrs.frozen(eq=False)
class Proof:
    """
    What comes out of a plan.

    Attributes:
        failed: Rows that do not come out as planned, with why.
        changed_besides: Rows that are in no statement and changed all the same.
        judged: How many operations of the repair each applier decided how.
        refreshed: By table, rows that appliers refreshed.
        tables: By table, its rows.
        differing: Rows that differ afterwards.
    """

    failed: Mapping[RowKey, str]
    changed_besides: Sequence[RowKey]
    judged: Mapping[Judged, int]
    refreshed: Mapping[str, int]
    tables: Mapping[str, RowCounts]
    differing: frozenset[RowKey]

    @property
    def holds(self) -> bool:
        """Whether the plan comes out."""
        return not self.failed and not self.changed_besides


def prove(ended: EndedRun, files: Sequence[File]) -> Proof:
    """
    Carry a plan out.

    Args:
        ended: The clusters as they ended; they are left as they are.
        files: What runs on each cluster, in order.
    """
    return Trial.of(ended).carry_out(files)


@attrs.define
class Trial:
    """
    Copies of the clusters, on which a plan is carried out.

    Attributes:
        ended: The clusters as they ended.
        clusters: Their copies, by name.
        appliers: The appliers of these.
        epoch: The last epoch of any of them.
        failed: Rows that do not come out as planned, with why.
    """

    ended: EndedRun
    clusters: dict[str, ReplayedCluster]
    appliers: dict[str, Applier]
    epoch: int
    failed: dict[RowKey, str] = attrs.field(factory=dict)

    @classmethod
    def of(cls, ended: EndedRun) -> Trial:
        """Copy the clusters of a run that ended."""
        clusters = {name: _copy(ended.cluster(name)) for name in ended.clusters}
        last = max((epoch for times in ended.replayed.times.values() for epoch in times), default=0)
        return cls(ended, clusters, {name: Applier(each) for name, each in clusters.items()}, last)

    def carry_out(self, files: Sequence[File]) -> Proof:
        """Carry a plan out, once."""
        planned: dict[RowKey, RepairedRow] = {}
        for cluster, transactions in files:
            for number, rows in enumerate(transactions, start=1):
                planned.update((each.row, each) for each in rows)
                self._transaction(cluster, rows, number)
        first, second = (self.clusters[name] for name in self.ended.clusters)
        differing = differing_rows(first, second)
        for row, each in planned.items():
            if row in self.failed:
                continue
            if row in differing:
                self.failed[row] = "the clusters would still differ"
            elif each.table.stored(self.clusters[each.table.cluster].store.get(row)) != each.after:
                self.failed[row] = "the row would not hold what the plan says"
        besides = [row for row in self._changed() if row not in planned]
        return Proof(
            self.failed, besides, self._judged(), self._refreshed(), self._counts(differing), frozenset(differing)
        )

    def _transaction(self, cluster: str, rows: Sequence[RepairedRow], number: int) -> None:
        """Make the changes of a transaction, and let them reach the other cluster, and what follows come back."""
        here = self.clusters[cluster]
        self.epoch += _GCI
        made = []
        for each in rows:
            problem = self._problem(here, each)
            if problem is not None:
                self.failed[each.row] = problem
                continue
            change = each.change(number)
            here.make(change, Transaction(self.epoch, 0, (change,)))
            broken = self._broken_key(here, each.row)
            if broken is not None:
                self.failed[each.row] = broken
            made.append(change)
        here.log_changes(Transaction(self.epoch, 0, tuple(made)))
        here.store.commit()
        self._settle(cluster, rows)

    def _problem(self, here: ReplayedCluster, each: RepairedRow) -> str | None:
        """Return why a statement would leave its row alone, or do nothing; None if it does what it is for."""
        now = each.table.stored(here.store.get(each.row))
        if now != each.before:
            return "the row would have changed before its statement comes"
        return "the statement would change nothing" if each.before == each.after else None

    def _broken_key(self, here: ReplayedCluster, row: RowKey) -> str | None:
        """Return which key a change broke; None if none."""
        if here.unique_keys.update({row}, here.store) is not None:
            return "another row has the same value in a unique key"
        had = here.foreign_keys.update([row], here.store).get(row, frozenset())
        has = here.foreign_keys.values_of(row, here.store.get(row))
        if any(each.side is KeySide.CHILD and here.foreign_keys.lacks_parent(each, here.store) for each in has - had):
            return "the row that it refers to by a foreign key is missing"
        if any(each.side is KeySide.PARENT and here.foreign_keys.children(each, here.store) for each in had - has):
            return "other rows refer to it by a foreign key"
        return None

    def _settle(self, cluster: str, rows: Sequence[RepairedRow]) -> None:
        """Let appliers apply in turn until nothing is under way."""
        source, target = cluster, self.ended.other(cluster)
        for _ in range(_MOST_ROUNDS):
            sent = self.epoch
            if not self.clusters[target].arriving(self.clusters[source], sent):
                return
            self.epoch += _GCI
            here = self.clusters[target]
            stopped = here.result.stop
            self.appliers[target].apply_epoch(EpochApply(self.epoch, 0, source, sent), self.clusters[source])
            stop = here.result.stop
            if stop is not None and stop is not stopped:
                here.result.stop = None
                names = {stop.table}.intersection(each.name for each in rows)
                for each in rows:
                    if not names or each.name in names:
                        self.failed[each.row] = f"the applier of {target} would stop: {stop.message}"
                return
            source, target = target, source
        self.failed.update((each.row, "the functions of the two clusters refresh it without end") for each in rows)

    def _changed(self) -> Iterator[RowKey]:
        """Yield the rows that hold something else than when the logs ended."""
        for name, here in self.clusters.items():
            before, now = self.ended.cluster(name).store.rows, here.store.rows
            for row in before.keys() | now.keys():
                was, became = before.get(row), now.get(row)
                if was is not became and _payloads(was) != _payloads(became):
                    yield row

    def _judged(self) -> Counter[Judged]:
        return Counter(
            Judged(each.applier, each.table, each.operation, each.verdict, each.cause)
            for here in self.clusters.values()
            for each in here.outcomes
            if each.ordinal >= 0
        )

    def _refreshed(self) -> Counter[str]:
        found = Counter[str]()
        for here in self.clusters.values():
            found.update(here.result.refreshes)
        return found

    def _counts(self, differing: set[RowKey]) -> dict[str, RowCounts]:
        before: Mapping[str, Mapping[str, int]] = self.ended.result.run["rows"]
        more = {name: _more_rows(self.ended.cluster(name), here) for name, here in self.clusters.items()}
        was, now, unknown = (
            Counter(row[0] for row in rows) for rows in (self.ended.differing, differing, self.ended.may_differ)
        )
        return {
            table: RowCounts(
                {name: before[name].get(table, 0) for name in before},
                {name: before[name].get(table, 0) + more[name][table] for name in before},
                was[table],
                now[table],
                unknown[table],
            )
            for table in sorted({*was, *unknown, *(table for own in before.values() for table, n in own.items() if n)})
        }


def _more_rows(ended: ReplayedCluster, here: ReplayedCluster) -> Counter[str]:
    """Return, by table, how many more rows a cluster has than when the logs ended."""
    more = Counter(table for table, _ in here.store.rows.keys() - ended.store.rows.keys())
    more.subtract(table for table, _ in ended.store.rows.keys() - here.store.rows.keys())
    return more


def _payloads(row: Row | None) -> Mapping[int, bytes | None] | None:
    return None if row is None else row.payloads


def _copy(ended: ReplayedCluster) -> ReplayedCluster:
    """Return a cluster as another one ended: its rows, what it knows of its epochs, whether its applier stands."""
    copy = ReplayedCluster(ended.cluster, ended.setups, ended.layouts, ended.relays, ended.skip_missing)
    copy.role, copy.max_replicated_epoch = ended.role, ended.max_replicated_epoch
    copy.store = RowStore(dict(ended.store.rows))
    copy.result.stop = ended.result.stop
    rows = [row for row in copy.store.rows if row[0] in copy.setups]
    copy.unique_keys.update(rows, copy.store)
    copy.foreign_keys.update(rows, copy.store)
    return copy
