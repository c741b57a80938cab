"""
The stages of the resolve job: each runs one task per bucket. `conflict.runs.resolving.resolve_job` says in which order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, TypeVar

import attrs
import numpy as np

from conflict.config.arguments import StageProgress
from conflict.engine.columnar.applier_stops import Phase, StoppingOperation
from conflict.engine.columnar.boundary import Boundary
from conflict.engine.columnar.bucket import CarefulRows
from conflict.engine.columnar.bucket_round import Findings
from conflict.engine.columnar.contested import Applied, ContestedRows
from conflict.engine.columnar.fixed_point import FixedPoint, Round, find_fixed_point, without_rounds
from conflict.engine.columnar.keys.foreign_keys import rows_of_broken_links
from conflict.engine.columnar.keys.unique_keys import find_duplicates, has_unique_keys
from conflict.engine.columnar.older_rows import older_applies
from conflict.engine.columnar.order import ApplierEpochs, order_applies
from conflict.engine.columnar.shown_transactions import shown_transactions
from conflict.engine.columnar.writing.exceptions_numbering import Numbered, OlderEpochs, number_exceptions
from conflict.engine.kernels.arrays import Conflicts, EpochApplies, Int64
from conflict.engine.ledger.careful import CareKind
from conflict.engine.ledger.layout import BUCKET_PARTS
from conflict.engine.ledger.summary import BucketSummary
from conflict.history.scheduling.schedule_columns import among
from conflict.history.tasks import Runner, Shared, in_threads
from conflict.history.timeline import Position
from conflict.runs.resolving.bucket_tasks import (
    BucketReport,
    BucketTask,
    find_careful_stops,
    find_linked_states,
    find_touched_transactions,
    find_unique_states,
    resolve_bucket,
    run_round,
)
from conflict.runs.resolving.careful_rows import CarefulTask, careful_parts
from conflict.runs.rows.task_inputs import Part, PartKind, TaskInputs
from conflict.runs.rows.touched_rows import TouchedRows

LINK_ACTS = "a foreign key refuses a change or makes one of its own"
Task = TypeVar("Task")
Result = TypeVar("Result")
# The driver itself runs a round about so few transactions over so few buckets: handing out the tasks takes longer.
_FEW_TRANSACTIONS, _FEW_BUCKETS = 2_000, 32


@attrs.frozen(eq=False)
class WrittenBuckets:
    """
    A result that was written.

    Attributes:
        found: What the appliers applied, and the transactions in conflict.
        summaries: What each bucket adds to the figures.
        contested: Rows that may have been judged earlier, in the order of the epoch applies.
        differing: Epoch applies for which the binlogs show other effects.
        left_out: Numbers of epoch applies that the binlogs contradict on rows left to the reference engine, sorted.
        names: The clusters.
    """

    found: FixedPoint
    summaries: list[BucketSummary]
    contested: ContestedRows
    differing: AbstractSet[Applied]
    left_out: Int64
    names: Sequence[str]

    def differing_at(self) -> dict[str, set[Position]]:
        """Return, per applier, the own positions of epoch applies for which the binlogs show other effects."""
        return {
            name: {(epoch, group) for applier, epoch, group in self.differing if applier == side}
            for side, name in enumerate(self.names)
        }

    def rows_at(self, rows: ContestedRows) -> dict[str, dict[Position, ContestedRows]]:
        """Return rows by applier and own position of the epoch apply."""
        found: dict[str, dict[Position, ContestedRows]] = {name: {} for name in self.names}
        applies, starts = np.unique(rows.apply, return_index=True)
        for number, start, stop in zip(applies.tolist(), starts, np.append(starts, len(rows))[1:], strict=True):
            name, place = self._place(number)
            found[name][place] = rows.chosen(slice(start, stop))
        return found

    def positions(self, applies: Int64) -> dict[str, set[Position]]:
        """Return, per applier, the own positions of epoch applies, given by number."""
        wanted: dict[str, set[Position]] = {name: set() for name in self.names}
        for number in applies.tolist():
            name, place = self._place(number)
            wanted[name].add(place)
        return wanted

    def numbers(self, positions: Mapping[str, AbstractSet[Position]]) -> Int64:
        """Return the numbers of epoch applies, given per applier by own position, sorted."""
        applies, found = self.found.applies, list[int]()
        for side, name in enumerate(self.names):
            epochs = np.array(sorted({epoch for epoch, _ in positions[name]}), np.uint64)
            there = np.flatnonzero((applies.applier == side) & among(applies.epoch, epochs))
            found += [number for number in there.tolist() if self._place(number)[1] in positions[name]]
        return np.array(sorted(found), np.int64)

    def _place(self, number: int) -> tuple[str, Position]:
        """Return the applier of an epoch apply, and its own position."""
        applies = self.found.applies
        return self.names[applies.applier[number]], (int(applies.epoch[number]), int(applies.group[number]))


@attrs.define
class ResolveJob:
    """
    The stages of the job; each runs one task per bucket.

    Attributes:
        runner: Runs the tasks.
        run: What all tasks have in common.
        progress: Called with the name of the stage, tasks done, and their number.
        numbered: What `number_exceptions` returned last.
    """

    runner: Runner
    run: TaskInputs
    progress: StageProgress
    numbered: Numbered = attrs.field(factory=Numbered)
    _careful: Mapping[Part, Shared[TouchedRows]] | None = None
    _apart: bool = True
    _shared: dict[type, Shared[Any]] = attrs.field(factory=dict)

    def resolve(self, applied: Sequence[ApplierEpochs]) -> WrittenBuckets | CareKind:
        """
        Write the result; again where that shows what stops an applier, or rows on which a foreign key acts.

        Returns:
            What was written; or why only the reference engine can resolve the logs, which start in the middle.
        """
        stops: Mapping[str, StoppingOperation] = {}
        while True:
            found = without_rounds(applied, self._names, stops, self._order) if stops else self.find(applied)
            if self._take_together(found):
                continue
            if self._stops_in_the_middle(found):
                return CareKind.MIDDLE_STOP
            buckets = self._resolve_buckets(found)
            if buckets is None:
                return CareKind.MIDDLE_REJECTED
            stops = {} if stops else earliest_stops([each.stopping for each in buckets])
            if stops and self.run.part.starts_in_the_middle:
                return CareKind.MIDDLE_STOP
            if not stops:
                acted_on = self._rows_of_broken_links(found)
                if acted_on is None:
                    return self._numbered(found, buckets)
                self._take_care_of(acted_on)
            self.clear()

    def _stops_in_the_middle(self, found: FixedPoint) -> bool:
        """Whether the logs start in the middle, and what was found or a unique key stops an applier."""
        if not self.run.part.starts_in_the_middle:
            return False
        looks = self.run.checks_unique_keys and not self.run.needs_rounds  # else the rounds looked
        return bool(found.stopping or (looks and self._check_unique_keys(found.applies, found.conflicts)))

    def _numbered(self, found: FixedPoint, buckets: Sequence[BucketReport]) -> WrittenBuckets:
        """Number the rows of the exceptions tables, and return the result that the buckets wrote."""
        tracked = {number: rows for each in buckets for number, rows in each.tracked.items()}
        older = self._older_epochs(found, buckets)
        run = self.run
        counted = None if run.window is None else run.window.boundary.counted
        self.numbered = number_exceptions(
            run.out, run.clusters, found.applies, found.conflicts, tracked, older, run.databases, counted
        )
        contested = ContestedRows.joined([each.contested for each in buckets])
        differing = frozenset[Applied]().union(*(each.differing for each in buckets))
        left_out = np.unique(np.concatenate([each.left_out for each in buckets]))
        summaries = [summary for each in buckets for summary in each.summaries]
        return WrittenBuckets(found, summaries, contested, differing, left_out, self._names)

    def _older_epochs(self, found: FixedPoint, resolved: Sequence[BucketReport]) -> OlderEpochs:
        """Return what the binlogs show of the epochs that are older than the log."""
        older = OlderEpochs.none(len(found.applies))
        if self.run.part.starts_in_the_middle:
            silent = np.array([name not in self.run.part.shows for name in self._names])
            older.unknown[:] = older_applies(found.applies, self.run.first_epochs) & silent[found.applies.applier]
            older.refreshed[np.concatenate([each.refreshing for each in resolved])] = True
        return older

    def clear(self) -> None:
        """Remove the parts of the result that buckets wrote."""
        for part in BUCKET_PARTS:
            self.run.out.delete(part)

    def breaks_links(self, found: FixedPoint) -> bool:
        """Whether a foreign key refuses or changes something."""
        return self._rows_of_broken_links(found) is not None

    def _rows_of_broken_links(self, found: FixedPoint) -> CarefulRows | None:
        """Return the rows that a foreign key acts on and that the kernels resolved; None if there are none."""
        if not self.run.linked.tables.any() or self.run.part.starts_in_the_middle:
            return None  # from the middle, all linked rows are left to the reference engine
        keyless = np.array([not table.primary_key for table in self.run.numbers.tables])
        if self.run.careful is None and (self.run.linked.tables & keyless).any():
            return CarefulRows(self.run.linked.tables)  # its rows are in no bucket, where they could be looked at
        states = self.stage(
            "checking foreign keys", find_linked_states, self.bucket_tasks(found.applies, found.conflicts)
        )
        return rows_of_broken_links(states, self.run.linked, has_unique_keys(self.run.clusters))

    def _take_care_of(self, rows: CarefulRows) -> None:
        """Leave rows to the reference engine."""
        self.run = self.run.with_careful(rows)
        self._careful = None

    def _careful_parts(self, epochs: int) -> Mapping[Part, Shared[TouchedRows]]:
        """Return the rows that the reference engine resolves beside the buckets; there are so many epoch applies."""
        if self._careful is None:
            run, stage, read = self.run, "reading rows on which a foreign key acts", list[dict[int, TouchedRows]]()
            if run.careful is not None:
                read = self.stage(stage, CarefulTask.read, [CarefulTask(run, each) for each in self._buckets])
            parts = careful_parts(run, read, epochs if self._apart else None) if run.has_careful_rows else {}
            self._careful = {part: Shared(run.shared, rows) for part, rows in parts.items()}
        return self._careful

    def _take_together(self, found: FixedPoint) -> bool:
        """
        Resolve all careful rows in one part if only that tells which of them stops an applier; return whether it does.

        A commit can fail for several rows. The one that it fails for is the first in an order over all of them.
        """
        several = self._careful is not None and len(self._careful) > 1
        if not several or not any(each.phase is Phase.COMMIT and each.stop for each in found.stopping.values()):
            return False
        self._apart, self._careful = False, None
        return True

    @property
    def _buckets(self) -> range:
        return range(self.run.manifest.buckets)

    @property
    def _names(self) -> list[str]:
        return [cluster.name for cluster in self.run.clusters]

    def find_conflicts(self, applied: Sequence[ApplierEpochs]) -> FixedPoint:
        """Return the epochs that appliers apply and the transactions in conflict, without a look at unique keys."""
        parts = self._part_count(applied)
        return find_fixed_point(applied, self._names, parts, self._run_round, decided=self._boundary, order=self._order)

    def _part_count(self, applied: Sequence[ApplierEpochs]) -> int:
        """Return how many parts the rows have."""
        return len(self._buckets) + len(self._careful_parts(sum(map(len, applied))))

    def find(self, applied: Sequence[ApplierEpochs]) -> FixedPoint:
        """Return the epochs that appliers apply and the transactions in conflict, as far as rounds are needed."""
        if not self.run.needs_rounds:
            return without_rounds(applied, self._names, {}, self._order)
        keyless = self.run.manifest.has_rows_without_key and self.run.careful is None
        checks = self.run.checks_unique_keys or keyless
        check = self._check_commits if checks else None
        parts = self._part_count(applied)
        return find_fixed_point(applied, self._names, parts, self._run_round, check, self._boundary, self._order)

    @property
    def _boundary(self) -> Boundary | None:
        """Up to where the run has been decided before."""
        return None if self.run.window is None else self.run.window.boundary

    def _run_round(self, this: Round) -> Sequence[Findings]:
        changed = None if this.changed is None else self._share(this.changed)
        few = this.changed is not None and len(this.changed) <= _FEW_TRANSACTIONS
        tasks = [
            attrs.evolve(task, round=this.number, changed=changed, whole=whole)
            for task, whole in zip(self._all_tasks(this.applies, this.conflicts), this.whole, strict=True)
        ]
        runner = in_threads if few and len(tasks) <= _FEW_BUCKETS else self.runner
        return self.stage(this.name, run_round, tasks, runner)

    def _check_commits(self, applies: EpochApplies, conflicts: Conflicts) -> Mapping[int, StoppingOperation]:
        """Return, per cluster number, the first operation that stops its applier once the conflicts are known."""
        found = self._check_unique_keys(applies, conflicts) if self.run.checks_unique_keys else {}
        if not self.run.manifest.has_rows_without_key or self.run.careful is not None:
            return found  # the rounds found the stops of careful rows
        tasks = self._all_tasks(applies, conflicts)[len(self._buckets) :]
        stops = earliest_stops(self.stage("checking rows without a key", find_careful_stops, tasks))
        for side, name in enumerate(self._names):
            both = [each for each in (found.get(side), stops.get(name)) if each is not None]
            if both:
                found = {**found, side: min(both)}
        return found

    def _check_unique_keys(self, applies: EpochApplies, conflicts: Conflicts) -> Mapping[int, StoppingOperation]:
        return find_duplicates(
            self.stage("checking unique keys", find_unique_states, self.bucket_tasks(applies, conflicts))
        )

    def _resolve_buckets(self, found: FixedPoint) -> list[BucketReport] | None:
        """Return what the buckets wrote; None if one cannot tell which transactions were rejected."""
        resolved = self.stage("resolving", resolve_bucket, self.tasks_at_end(found))
        known = [each for each in resolved if each is not None]
        return known if len(known) == len(resolved) else None

    def tasks_at_end(self, found: FixedPoint) -> list[BucketTask]:
        """Return a task for each part of the rows, given what appliers apply and which transactions are in conflict."""
        tasks = self._all_tasks(found.applies, found.conflicts)
        if self.run.part.starts_in_the_middle and len(found.conflicts.groups):
            touched = self.stage("telling transactions apart", find_touched_transactions, tasks[: len(self._buckets)])
            transactions = self._share(shown_transactions(touched))
            tasks = [attrs.evolve(task, transactions=transactions) for task in tasks]
        return tasks

    def bucket_tasks(self, applies: EpochApplies, conflicts: Conflicts) -> list[BucketTask]:
        """Return a task for each bucket."""
        given = self._share(applies), self._share(conflicts)
        return [BucketTask(self.run, Part(PartKind.BUCKET, bucket), *given) for bucket in self._buckets]

    def _all_tasks(self, applies: EpochApplies, conflicts: Conflicts) -> list[BucketTask]:
        """Return a task for each part, the buckets first."""
        tasks, careful = self.bucket_tasks(applies, conflicts), self._careful_parts(len(applies))
        return [*tasks, *(attrs.evolve(tasks[0], part=part, careful=rows) for part, rows in careful.items())]

    def _order(self, applied: Sequence[ApplierEpochs], names: Sequence[str]) -> EpochApplies:
        """Order the epoch applies, which there can be very many of: tasks elsewhere and this process map one file."""
        self._shared.pop(EpochApplies, None)
        ordered = Shared.large(self.run.shared, order_applies(applied, names), self.runner)
        self._shared[EpochApplies] = ordered
        return ordered.load()

    def _share(self, value: Result) -> Shared[Result]:
        """Return a value as all tasks can have it, the same for the last one of its type."""
        known = self._shared.get(type(value))
        if known is None or known.load() is not value:
            known = self._shared[type(value)] = Shared(self.run.shared, value)
        return known

    def stage(
        self,
        name: str,
        function: Callable[[Task], Result],
        tasks: Sequence[Task],
        runner: Runner | None = None,
    ) -> list[Result]:
        """Run a function on tasks, which tell the progress of a stage by its name."""
        return (runner or self.runner)(function, tasks, partial(self.progress, name))


def earliest_stops(found: Sequence[Mapping[str, StoppingOperation]]) -> dict[str, StoppingOperation]:
    """Return, per cluster, the first stopping operation of all buckets."""
    first: dict[str, StoppingOperation] = {}
    for part in found:
        for name, stopping in part.items():
            first[name] = min(first.get(name, stopping), stopping)
    return first
