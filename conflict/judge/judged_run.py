"""
A run's result as the judge reads it back, and how it compares with a recording.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self

import attrs

from conflict.engine.ledger.layout import exceptions_path, rows_folder, rows_in_part_folder
from conflict.engine.ledger.resolution import ClusterResult
from conflict.history.grid.folder import Folder
from conflict.history.reading.readings import read_cluster
from conflict.history.run import Run
from conflict.history.timeline import START, Position
from conflict.judge.case import ConflictCase
from conflict.judge.joint_candidates import OpenSide, agreeing_results
from conflict.judge.open_epochs import RecordedEpoch, TrackedOperation
from conflict.judge.result_differences import result_differences, setup_differences
from conflict.results.cause_kinds import CauseKind
from conflict.results.files import count_rejected, read_applied_epochs, read_rows, read_rows_in_part, read_tracked
from conflict.results.run_document import RunDocument, reading_path
from conflict.results.server_counters import ServerCounters, server_counters
from conflict.rules.counters import COUNTED_AGAIN, moved_counters
from conflict.rules.decision import Decision, Verdict, decision_of
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import Operation


@attrs.frozen
class JudgedComparison:
    """
    How a result compares with a recording.

    Attributes:
        differences: All differences.
        undecided: How many decisions the binlogs leave open.
        by_candidates: Whether the result agrees only with other candidates of these than those that were chosen.
    """

    differences: list[str]
    undecided: int = 0
    by_candidates: bool = False


@attrs.frozen
class JudgedRun:
    """
    A result, read back from its files.

    Attributes:
        run: The run.
        databases: The database of the case on each side, as the run names it.
        resolved: The result of the run.
        results: The result per side.
        applied: Per side, the epochs that its applier applied, each after its own position, in order.
        tracked: Per side, the decisions of pass TRACK that are open.
        servers: What each SQL node counted.
    """

    run: Run
    databases: Mapping[str, str]
    resolved: RunDocument = attrs.field(repr=False)
    results: dict[str, ClusterResult] = attrs.field(repr=False)
    applied: dict[str, list[tuple[Position, RecordedEpoch]]] = attrs.field(repr=False)
    tracked: dict[str, list[TrackedOperation]] = attrs.field(repr=False)
    servers: Sequence[ServerCounters] = attrs.field(default=(), repr=False)

    @classmethod
    def read(cls, case: ConflictCase, out: Folder, resolved: RunDocument) -> Self:
        """Read the result of a case."""
        run, setups = resolved.run, resolved.run.setups.at_end
        servers = server_counters(run, resolved.summary.stretches)
        return cls(
            run,
            {side: run.databases.run_database(side, database) for side, database in case.databases.items()},
            resolved,
            _read_results(run, out, resolved, servers),
            {name: list(_applied(out, name, own)) for name, own in setups.items()},
            {name: list(_tracked(out, name, own)) for name, own in setups.items()},
            servers,
        )

    def compare(self, expected: Mapping[str, Any], undecided: int = 0) -> JudgedComparison:
        """Compare with the contents of an `expected.json`; `undecided` is how many decisions are open."""
        counted, copied = self._with_copied_rows(expected)
        counted, moved = counted._with_open_restarts(expected)  # noqa: SLF001  # another of this class
        found = counted.compare_as_is(expected, undecided)
        return attrs.evolve(found, by_candidates=not found.differences and (copied or moved or found.by_candidates))

    def compare_as_is(self, expected: Mapping[str, Any], undecided: int) -> JudgedComparison:
        """Compare, with copied rows counted as they are."""
        setups, over_time = self.run.setups.at_end, self.run.setups.over_time
        fixed = [
            *self.resolved.errors.values(),
            *self._server_differences(expected),
            *(
                line
                for side, want in expected.items()
                if "error_log" in want
                for line in setup_differences(side, want, self._as_named(side, _all(over_time[side])))
            ),
        ]
        alarms = self._alarms()  # the last, as they have no values
        differences = list(result_differences(expected, self.databases, self.results, setups))
        if not differences:
            return JudgedComparison(fixed + alarms, undecided)
        agreeing = self._agreeing(expected)
        if agreeing is None:
            return JudgedComparison(fixed + differences + alarms, undecided)
        left = list(result_differences(expected, self.databases, agreeing, setups))
        return JudgedComparison(fixed + left + alarms, undecided, by_candidates=not left)

    def _as_named(self, side: str, setups: Iterable[TableSetup]) -> list[TableSetup]:
        """Return setups under the names that a side uses."""
        return [setup.named(partial(self.run.databases.own_table, side)) for setup in setups]

    def _alarms(self) -> list[str]:
        """Return what the self-check says; not where it names an option that hides much, or a role that changed."""
        options = {CauseKind.TRANSACTION_IDS, CauseKind.APPLY_STATUS, CauseKind.ROLE_CHANGE}
        if not self.resolved.contradicted or options.intersection(cause.kind for cause in self.resolved.likely_causes):
            return []
        return ["the self-check says that the binlogs contradict the result"]

    def _with_copied_rows(self, expected: Mapping[str, Any]) -> tuple[JudgedRun, bool]:
        """Return the result with copied rows counted as recorded, where all may have been, and whether any was."""
        results, changed = dict(self.results), False
        for name, rows in self.resolved.summary.copied.items():
            recorded, counters = expected[name]["status_difference"], dict(results[name].counters)
            for counter in COUNTED_AGAIN:
                if counters.get(counter, 0) and recorded.get(counter) == counters[counter] + rows:
                    counters[counter], changed = recorded[counter], True
            results[name] = attrs.evolve(results[name], counters=counters)
        return attrs.evolve(self, results=results), changed

    def _with_open_restarts(self, expected: Mapping[str, Any]) -> tuple[JudgedRun, bool]:
        """
        Return the result with what SQL nodes counted since a restart as recorded, and whether anything was moved.

        Epochs that may have been applied before or after it leave a range.
        """
        results, servers, changed = dict(self.results), list[ServerCounters](), False
        for each in self.servers:
            recorded = expected.get(each.cluster, {}).get("servers", {}).get(each.server, {})
            since, counters = dict(each.at_end), dict(results[each.cluster].counters)
            for counter, value in recorded.items():
                mine = since.get(counter, 0)
                if mine != value and each.at_least.get(counter, 0) <= value <= each.at_most.get(counter, 0):
                    counters[counter] = counters.get(counter, 0) + value - mine
                    since[counter], changed = value, True
            results[each.cluster] = attrs.evolve(results[each.cluster], counters=counters)
            servers.append(attrs.evolve(each, since=since) if each.restart is not None else each)
        return attrs.evolve(self, results=results, servers=servers), changed

    def _server_differences(self, expected: Mapping[str, Any]) -> Iterator[str]:
        """Yield what SQL nodes counted otherwise than recorded, where those of their cluster together agree."""
        found = {(each.cluster, each.server): each.at_end for each in self.servers}
        for name, want in expected.items():
            together, recorded = self.results[name].counters, want.get("status_difference", {})
            for server, counters in want.get("servers", {}).items():
                for counter, value in counters.items():
                    mine = found.get((name, server), {}).get(counter, 0)
                    if mine != value and together.get(counter, 0) == recorded[counter]:
                        yield f"{name}: server {server}: {counter} is {mine}, recorded: {value}"

    def _agreeing(self, expected: Mapping[str, Any]) -> dict[str, ClusterResult] | None:
        summary = self.resolved.summary
        applied = {name: self._with_disturbed(name, each) for name, each in self.applied.items()}
        sides = [
            OpenSide(
                cluster.name,
                [server.server_id for server in cluster.servers],
                self.results[cluster.name],
                applied[cluster.name],
                [place for place in summary.schedule.places if place.applier == cluster.name],
                summary.restarts.get(cluster.name, ()),
                {
                    (epoch.foreign_epoch, epoch.position): epoch
                    for epoch in summary.open_epochs
                    if epoch.applier == cluster.name
                },
                self.tracked[cluster.name],
                expected[cluster.name],
                self.databases[cluster.name],
            )
            for cluster in self.run.clusters
        ]
        return agreeing_results(sides, summary.schedule) if any(side.is_open for side in sides) else None

    def _with_disturbed(self, name: str, applied: Sequence[tuple[Position, RecordedEpoch]]) -> list[RecordedEpoch]:
        """
        Return the applied epochs; before which of them the cluster itself changed anything is read anew.

        An applier that sends operations one by one holds locks for long, also against transactions that were undone.
        """
        cluster = next(each for each in self.run.clusters if each.name == name)
        epochs = read_cluster(cluster, self.run).epochs
        own = [(each.epoch, each.group) for epoch in epochs for each in epoch.transactions]
        found, before = [], START
        for position, each in applied:
            disturbed = cluster.applies_singly or bisect.bisect_right(own, before) < bisect.bisect_left(own, position)
            found.append(attrs.evolve(each, disturbed=disturbed))
            before = position
        return found


def read_readings(case: ConflictCase, out: Folder, resolved: RunDocument) -> list[JudgedRun]:
    """Read the result of a case, and those of other readings of its binlogs (see `conflict.results.run_document`)."""
    others = enumerate(resolved.other_readings, start=2)
    return [
        JudgedRun.read(case, out, resolved),
        *(JudgedRun.read(case, out.below(reading_path(number)), other) for number, other in others),
    ]


def compare_readings(
    readings: Sequence[JudgedRun], expected: Mapping[str, Any], undecided: int = 0
) -> JudgedComparison:
    """Compare with a recording: it agrees with the reading that was chosen, or by candidates with another one."""
    first = readings[0].compare(expected, undecided)
    if not first.differences:
        return first
    others = (each.compare(expected, undecided) for each in readings[1:])
    agreeing = next((each for each in others if not each.differences), None)
    return first if agreeing is None else attrs.evolve(agreeing, by_candidates=True)


def _all(setups: Mapping[str, Sequence[TableSetup]]) -> list[TableSetup]:
    return [setup for each in setups.values() for setup in each]


def _read_results(
    run: Run, out: Folder, resolved: RunDocument, servers: Sequence[ServerCounters]
) -> dict[str, ClusterResult]:
    """Read the result of each cluster; a server that was restarted counts anew from there on."""
    results, own_name = {}, run.databases.own_name
    for name, setups in run.setups.at_end.items():
        counters = Counter(resolved.summary.counters[name])
        for each in servers:
            if each.cluster == name:
                counters.subtract(each.counters)
                counters.update(each.at_end)
        stop = resolved.summary.stops.get(name)
        stop = None if stop is None else attrs.evolve(stop, table=own_name(name, stop.table))
        result = ClusterResult(counters=counters, stop=stop)
        for table, setup in setups.items():
            if setup.refusal is None:
                shown = run.shown_on(name, setup)
                columns = tuple(column for column in shown.columns if column.generated != "virtual")
                stored = attrs.evolve(shown, columns=columns)
                named, own = run.databases.run_table(name, shown).full_name, own_name(name, table)
                result.rows[named] = read_rows(out, rows_folder(name, own), stored)
                result.rows_in_part[named] = read_rows_in_part(out, rows_in_part_folder(name, own), stored)
        for definition in run.schema.tables:
            # An exceptions table that no function writes to stays empty, whatever is wrong with its definition.
            if definition.full_name not in setups:
                path = exceptions_path(name, own_name(name, definition.full_name))
                result.exceptions[definition.full_name] = read_rows(out, path, definition)
        results[name] = result
    return results


def _applied(out: Folder, name: str, setups: Mapping[str, TableSetup]) -> Iterator[tuple[Position, RecordedEpoch]]:
    """Yield the epochs that an applier applied, with the rows that each added to exceptions tables."""
    rejected = count_rejected(out, name)
    for apply in read_applied_epochs(out, name):
        rows: Counter[str] = Counter()
        for table, setup in setups.items():
            if setup.exceptions is not None:
                # Applied twice within an own epoch, the operations are those of the first time.
                rows[setup.exceptions.table.full_name] += rejected.pop(
                    (apply["source_epoch"], apply["epoch"], table), 0
                )
        position = apply["epoch"], apply["group"]
        yield position, RecordedEpoch(apply["source_epoch"], rows, position)


def _tracked(out: Folder, name: str, setups: Mapping[str, TableSetup]) -> Iterator[TrackedOperation]:
    """Yield the decisions of pass TRACK that are open, with what their candidates would move."""
    for row in read_tracked(out, name):
        setup, operation = setups[row["table"]], Operation[row["operation"]]
        decided = None if row["decided"] is None else decision_of(row["decided"])
        candidates = [decision_of(text) for text in row["candidates"]]
        moves = [_moved(setup, operation, decided, candidate) for candidate in candidates]
        rows = [_rejects(candidate) - _rejects(decided) for candidate in candidates]
        exceptions = None if setup.exceptions is None else setup.exceptions.table.full_name
        yield TrackedOperation(row["source_epoch"], tuple(moves), exceptions, tuple(rows))


def _rejects(decision: Decision | None) -> int:
    return int(decision is not None and decision.verdict is Verdict.REJECTED)


def _moved(
    setup: TableSetup, operation: Operation, decided: Decision | None, candidate: Decision
) -> tuple[tuple[str, int], ...]:
    if setup.function is None:
        return ()
    total = moved_counters(setup.function.spec, operation, candidate)
    total.subtract(moved_counters(setup.function.spec, operation, decided))
    return tuple(sorted((name, by) for name, by in total.items() if by))
