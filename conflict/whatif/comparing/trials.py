"""
A pair on a History: the clusters that it makes, or why the tables and the log do not allow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from conflict.engine.columnar.bucket_view import BucketView, CommitTimes, Relogging
from conflict.engine.columnar.setups import ClusterSetup
from conflict.history.grid.manifest import Manifest
from conflict.history.run import TableNumbers
from conflict.history.shown_effects import columns_of_text
from conflict.rules.table_setup import RefusalKind, TableSetup, refusal_of
from conflict.whatif.comparing.pairs import Pair, Policy, function_on, role_on
from ndb_formats.rules.update_format import BINLOG_TYPES, UpdateFormat, effective_format


@attrs.frozen
class TrialSubject:
    """
    What all trials have in common.

    Attributes:
        manifest: What the History holds.
        numbers: Its tables.
        clusters: Both clusters, as they are configured.
        times: Per cluster, its commit times.
    """

    manifest: Manifest
    numbers: TableNumbers
    clusters: tuple[ClusterSetup, ...]
    times: tuple[CommitTimes, CommitTimes]

    def trial(self, pair: Pair) -> Trial:
        """Return what a pair makes of the clusters, or why it cannot be tried."""
        fault = self._fault_of_policy(pair.policy) or self._fault_of_format(pair.binlog_type)
        if fault is not None:
            return Trial(pair, fault=fault)
        wanted = None if pair.binlog_type is None else effective_format(pair.binlog_type)
        clusters = tuple(self._tried(cluster, pair.policy, wanted) for cluster in self.clusters)
        refused = next(_refusals(pair, clusters, judged_tables(self.clusters)), None)
        if refused is not None:
            return Trial(pair, fault=refused)
        relogging = {} if pair.binlog_type is None else self._relogging(pair.binlog_type)
        changed = {number: each for number, each in relogging.items() if each.logged != each.wanted}
        return Trial(pair, clusters, BucketView(changed, self.times if pair.policy.by_commit_time else None))

    def _tried(self, cluster: ClusterSetup, policy: Policy, wanted: UpdateFormat | None) -> ClusterSetup:
        judged = judged_tables(self.clusters)

        def tried(table: int, setup: TableSetup) -> TableSetup:
            setup = attrs.evolve(setup, format=wanted or setup.format)
            if policy.configured:
                return setup
            function = (
                function_on(cluster.name, policy, self.numbers.tables[table].full_name) if table in judged else None
            )
            return attrs.evolve(setup, function=function, refusal=setup.refusal if _is_missing(setup) else None)

        return attrs.evolve(
            cluster,
            setups=tuple(tried(table, setup) for table, setup in enumerate(cluster.setups)),
            versions={table: tuple(tried(table, each) for each in own) for table, own in cluster.versions.items()},
            first={table: tried(table, setup) for table, setup in cluster.first.items()},
            role=cluster.role if policy.configured else role_on(cluster.name, policy),
        )

    def _fault_of_policy(self, policy: Policy) -> str | None:
        if policy.by_commit_time and not all(map(self._is_timed, self.clusters, self.times)):
            return "the log does not say when transactions committed"
        for table in judged_tables(self.clusters):
            definition = self.numbers.tables[table]
            if policy.by_table and policy.function_of(definition.full_name) is None:
                return f"it names no function for table {definition.full_name}"
            column, held = (
                policy.column_of(definition.full_name),
                self.manifest.resolve_columns.get(definition.full_name),
            )
            if column is None:
                continue
            if definition.find(column) is None:
                return f"table {definition.full_name} has no column {column}"
            if held != column and not policy.in_python:
                kept = f"column {held}" if held else "no column"
                return f"the History keeps {kept} of {definition.full_name}"
        return None

    def _is_timed(self, cluster: ClusterSetup, times: CommitTimes) -> bool:
        changes = sum(segment.changes for segment in self.manifest.segments[cluster.name])
        return not changes or bool(len(times.value) and times.value.min() > 1)

    def _fault_of_format(self, binlog_type: int | None) -> str | None:
        if binlog_type is None:
            return None
        if any(cluster.versions for cluster in self.clusters):
            return (
                "definitions change in the binlogs, and a change does not say with which one it would be logged again; "
                "compare binlogs from before the change, or from after it"
            )
        shapes: dict[str, set[str]] = {}
        for segments in self.manifest.segments.values():
            for segment in segments:
                for table, texts in segment.images.items():
                    shapes.setdefault(table, set()).update(texts)
        for number, relogging in self._relogging(binlog_type).items():
            own = shapes.get(self.numbers.tables[number].full_name, ())
            fault = relogging.fault(map(columns_of_text, sorted(own)))
            if fault is None and len({each.setups[number].format for each in self.clusters}) > 1:
                fault = "the clusters log it differently"
            if own and fault is not None:
                return f"table {self.numbers.tables[number].full_name}: {fault}"
        return None

    def _relogging(self, binlog_type: int) -> dict[int, Relogging]:
        wanted = effective_format(binlog_type)
        return {
            number: Relogging(setup.table, setup.format, wanted) for number, setup in enumerate(self.clusters[0].setups)
        }


@attrs.frozen
class Trial:
    """
    A pair, and what it makes of the clusters.

    Attributes:
        pair: The pair.
        clusters: Both clusters; none if it cannot be tried.
        view: What it makes of the logged changes.
        fault: Why it cannot be tried; None if it can.
    """

    pair: Pair
    clusters: tuple[ClusterSetup, ...] = ()
    view: BucketView = attrs.field(factory=BucketView)
    fault: str | None = None

    @property
    def in_python(self) -> bool:
        """Whether a rule in Python decides, which only the reference engine calls."""
        setups = (setup for cluster in self.clusters for setup in cluster.setups)
        return any(setup.function is not None and setup.function.spec.own is not None for setup in setups)


def judged_tables(clusters: Sequence[ClusterSetup]) -> tuple[int, ...]:
    """Return the tables that a policy is tried on: those with a conflict function; if none has one, all."""
    every = range(len(clusters[0].setups))
    judged = tuple(
        table
        for table in every
        if any(
            setup.function is not None or (setup.refusal is not None and not _is_missing(setup))
            for cluster in clusters
            for setup in cluster.over_time(table)
        )
    )
    return judged or tuple(every)


def _is_missing(setup: TableSetup) -> bool:
    return setup.refusal is not None and setup.refusal.kind is RefusalKind.DROPPED


def _refusals(pair: Pair, clusters: Sequence[ClusterSetup], judged: Iterable[int]) -> Iterator[str]:
    """Yield why a server would not create a table under a pair; one that is as the run is has been judged with it."""
    own = pair.policy.configured
    if pair.policy.by_commit_time or (pair.binlog_type is None if own else not pair.policy.specs):
        return
    for table in judged:
        for cluster in clusters:
            setup = cluster.setups[table]
            refusal = None if setup.function is None else refusal_of(setup.table, setup.function, setup.format)
            if refusal is not None:
                yield f"table {setup.table.full_name} cannot be created: {refusal.message}"


def binlog_types_of(by_cluster: Mapping[str, Mapping[str, TableSetup]]) -> str:
    """Return the binlog types that tables are logged in, by number."""
    numbers = {row.format: row.number for row in reversed(BINLOG_TYPES) if row.number in range(2, 10) and row.format}
    formats = {setup.format for tables in by_cluster.values() for setup in tables.values()}
    return ", ".join(sorted(str(numbers.get(each, "?")) for each in formats if each.logged))
