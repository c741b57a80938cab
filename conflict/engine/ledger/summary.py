"""
The figures of a run, added up over its buckets. Computes docs/result.md, "run.json".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs

from conflict.engine.ledger.open_places import (
    OpenEpoch,
    OpenPlace,
    OpenSchedule,
    PossibleRestart,
    undecided_by_applier,
    widened_ranges,
)
from conflict.engine.ledger.resolution import Stop
from conflict.history.restarts import Stretch
from conflict.history.scheduling.placing import Inference
from conflict.rules.counters import COUNTED_AGAIN, add_counters
from conflict.rules.decision import Verdict

Counts = dict[str, dict[str, dict[str, int]]]


@attrs.frozen
class RoundFigures:
    """
    The size of a round.

    Attributes:
        rows: Number of row changes that were folded.
        in_conflict: Number of transactions in conflict after it; without those that an earlier result had decided.
        changed: Number of transactions that it added to these or removed.
    """

    rows: int
    in_conflict: int
    changed: int


@attrs.define
class BucketSummary:
    """
    What a bucket adds to the figures of a run; a task returns it to the driver.

    The attributes that it shares with `RunSummary` mean the same, for the bucket.

    Attributes:
        counters: Per cluster, its status counters.
        stretches: Per cluster, the same by the counters of an SQL node to which they belong.
        tables: Per cluster and table, operations by verdict and cause, and refreshed rows.
        rows: Per cluster and table, final rows.
        differing_rows: Per table, final rows that differ.
        compared: Rows per epoch apply that were compared with the binlogs.
        contradicted: How many of those differ.
        contradictions: Per applying cluster and table, how many of each kind (see `engine.ledger.contradictions`).
        unexplained: Per cluster, own changes that do not fit their row.
        undecided: Per cluster, open decisions of its applier.
        less: Per cluster, by how much each counter may be lower.
        more: Per cluster, by how much each counter may be higher.
        copied: Per cluster, rows that its applier copied for changes of definitions.
        overwritten: Per cluster, its own changes that its applier overwrote with changes that had not seen them.
        not_known: Per cluster and table, what was never known of its rows.
        careful: By the name of a `CareKind`, how many rows the reference engine resolved.
    """

    counters: dict[str, dict[str, int]] = attrs.field(factory=dict)
    stretches: dict[str, dict[Stretch, dict[str, int]]] = attrs.field(factory=dict)
    tables: dict[str, dict[str, dict[str, int]]] = attrs.field(factory=dict)
    rows: dict[str, dict[str, int]] = attrs.field(factory=dict)
    differing_rows: dict[str, int | None] = attrs.field(factory=dict)
    compared: int = 0
    contradicted: int = 0
    contradictions: Counts = attrs.field(factory=dict)
    unexplained: dict[str, int] = attrs.field(factory=dict)
    undecided: dict[str, int] = attrs.field(factory=dict)
    less: dict[str, dict[str, int]] = attrs.field(factory=dict)
    more: dict[str, dict[str, int]] = attrs.field(factory=dict)
    copied: dict[str, int] = attrs.field(factory=dict)
    overwritten: dict[str, int] = attrs.field(factory=dict)
    not_known: Counts = attrs.field(factory=dict)
    careful: dict[str, int] = attrs.field(factory=dict)


@attrs.frozen
class RunSummary:
    """
    The figures of a run.

    Attributes:
        counters: Per cluster, its status counters.
        stretches: Per cluster, the same by the counters of an SQL node to which they belong (see
            `conflict.history.restarts`).
        tables: Per applying cluster and table, the number of operations by verdict, those rejected also by cause, and
            the number of refreshed rows.
        rows: Per cluster and table, the number of final rows.
        differing_rows: Per table, the number of final rows that differ between the clusters; None if only values can
            tell, and they were not read.
        compared: Number of rows, per epoch apply, that an applier changed in the binlogs or in the result.
        contradicted: How many of those differ.
        contradictions: Per applying cluster and table, how many of each kind (see `engine.ledger.contradictions`).
        unexplained: Per cluster, updates and deletes of its own that found no row.
        stops: Per cluster, why its applier stopped.
        undecided: Per cluster, the number of open decisions of its applier.
        not_known: Per cluster and table, what was never known of its rows (see `NotKnown`).
        counter_ranges: Per cluster, lowest and highest value of each counter that depends on open decisions.
        schedule: What the schedule leaves open.
        open_epochs: Epoch applies with rows for which the binlogs do not show when they were judged.
        copied: Per cluster, rows that its applier copied for changes of definitions.
        overwritten: Per cluster, its own changes that its applier overwrote with changes that had not seen them.
        restarts: Per cluster, where a restart of its applier would have used up numbers of exceptions tables.
        rounds: Sizes of the rounds (see `conflict.engine.columnar`); of the resolve job alone.
        settled: Questions that the order of the binlogs leaves open, with the answers that agree with their changes; of
            the resolve job alone.
        not_examined: Epoch applies that may leave open when a row was judged, and are too many to look at; of the
            resolve job alone.
        careful: By the name of a `CareKind`, how many rows the reference engine resolved beside the kernels; of the
            resolve job alone.
    """

    counters: dict[str, dict[str, int]]
    tables: Counts
    rows: dict[str, dict[str, int]]
    differing_rows: Mapping[str, int | None]
    compared: int
    contradicted: int
    unexplained: dict[str, int]
    stops: dict[str, Stop]
    contradictions: Counts = attrs.field(factory=dict)
    stretches: dict[str, dict[Stretch, dict[str, int]]] = attrs.field(factory=dict)
    undecided: dict[str, int] = attrs.field(factory=dict)
    not_known: Counts = attrs.field(factory=dict)
    counter_ranges: dict[str, dict[str, tuple[int, int]]] = attrs.field(factory=dict)
    schedule: OpenSchedule = attrs.field(factory=OpenSchedule)
    open_epochs: tuple[OpenEpoch, ...] = ()
    copied: dict[str, int] = attrs.field(factory=dict)
    overwritten: dict[str, int] = attrs.field(factory=dict)
    restarts: dict[str, tuple[PossibleRestart, ...]] = attrs.field(factory=dict)
    settled: tuple[Inference, ...] = ()
    rounds: tuple[RoundFigures, ...] = ()
    not_examined: int = 0
    careful: dict[str, int] = attrs.field(factory=dict)

    @property
    def judged(self) -> bool:
        """Whether an applier judged any operation of another cluster."""
        tallies = [tally for tables in self.tables.values() for tally in tables.values()]
        return any(tally.get(verdict.name.lower()) for tally in tallies for verdict in Verdict)

    @property
    def converged(self) -> bool | None:
        """Whether both clusters end with the same rows; None if this is not known, or the binlogs contradict it."""
        if self.contradicted:
            return None
        differing = self.differing_rows.values()
        not_known = None in differing or any(self.not_known.values())
        return False if any(differing) else None if not_known else True

    @property
    def ndb_count_more(self) -> dict[str, dict[str, int]]:
        """Per cluster and exceptions table, by how much its last ``NDB$count`` is higher after restarts."""
        found: dict[str, Counter[str]] = {}
        for name, restarts in self.restarts.items():
            for restart in restarts:
                found.setdefault(name, Counter()).update(restart.rows)
        return {name: dict(sorted(each.items())) for name, each in found.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the figures as a document."""
        return {
            "converged": self.converged,
            "tables": self.tables,
            "rows": self.rows,
            "differing_rows": self.differing_rows,
            "overwritten": self.overwritten,
            **self.checks(),
            "not_known": self.not_known,
            "skipped_epochs": [
                {
                    "applier": each.applier,
                    "source": each.source,
                    "source_epoch": each.foreign_epoch,
                    "changes": dict(Counter(change.table for change in each.changes)),
                }
                for each in self.schedule.skipped
            ],
            "open_places": dict(Counter(each.applier for each in self.schedule.places)),
            "ndb_count_more": self.ndb_count_more,
            "stops": {name: stop_to_json(stop) for name, stop in self.stops.items()},
        }

    def checks(self) -> dict[str, Any]:
        """Return the part of the document that says how far the rest can be relied on."""
        return {
            "compared_with_binlogs": self.compared,
            "contradicted_by_binlogs": self.contradicted,
            "contradictions": self.contradictions,
            "unexplained_changes": self.unexplained,
            "undecided": self.undecided,
            "epochs_not_examined": self.not_examined,
            # What is derived is not what happened where the binlogs contradict it.
            "counter_ranges": None if self.contradicted else self.counter_ranges,
        }


def stop_to_json(stop: Stop) -> dict[str, Any]:
    """Return a stop as a document."""
    document = {**attrs.asdict(stop), "operation": stop.operation.name, "server": stop.server}
    del document["kind"], document["words"]
    return {"error": stop.error, **document}


def _add(total: dict[Any, Any], part: Mapping[Any, Any]) -> None:
    """Add the numbers of nested mappings to `total`; None, which is not known, stays None."""
    for name, value in part.items():
        if isinstance(value, Mapping):
            _add(total.setdefault(name, {}), value)
        else:
            before = total.get(name, 0)
            total[name] = None if before is None or value is None else before + value


def add_summaries(parts: Iterable[BucketSummary], stops: Mapping[str, Stop]) -> RunSummary:
    """Add up the summaries of all buckets."""
    parts = list(parts)
    names = [field.name for field in attrs.fields(BucketSummary)]
    total: dict[str, Any] = {}
    for part in parts:
        _add(total, {name: getattr(part, name) for name in names})
    clusters = {name for part in parts for name in part.counters}
    total["counters"] = {name: add_counters(part.counters[name] for part in parts) for name in sorted(clusters)}
    total["stretches"] = {
        name: {each: {counter: value for counter, value in sorted(own.items()) if value} for each, own in apart.items()}
        for name, apart in sorted(total.get("stretches", {}).items())
    }
    less, more = total.pop("less"), total.pop("more")
    total["counter_ranges"] = {
        name: {
            counter: (counters[counter] - less.get(name, {}).get(counter, 0), counters[counter] + slack)
            for counter, slack in sorted(more.get(name, {}).items())
        }
        for name, counters in total["counters"].items()
    }
    return with_copied_rows(RunSummary(**total, stops=dict(stops)))


def with_tables(summary: RunSummary, tables: Collection[str]) -> RunSummary:
    """Return the figures of a run without those of tables that no cluster had in the part of the logs that counts."""
    counts = {
        name: {table: each for table, each in own.items() if table in tables} for name, own in summary.tables.items()
    }
    rows = {
        name: {table: count for table, count in own.items() if table in tables} for name, own in summary.rows.items()
    }
    differing = {table: count for table, count in summary.differing_rows.items() if table in tables}
    return attrs.evolve(summary, tables=counts, rows=rows, differing_rows=differing)


def with_copied_rows(summary: RunSummary) -> RunSummary:
    """
    Return the figures of a run with what copied rows leave open.

    A server that copies a table for a statement of the other cluster may count the rows like the operation that it
    applied last, if that was a refresh or a reflected one (docs/definitions.md, "Counters").
    """
    ranges = {name: dict(each) for name, each in summary.counter_ranges.items()}
    for name, rows in summary.copied.items():
        for counter in COUNTED_AGAIN:
            value = summary.counters[name].get(counter, 0)
            if rows and value:
                least, most = ranges.setdefault(name, {}).get(counter, (value, value))
                ranges[name][counter] = (least, most + rows)
    return attrs.evolve(summary, counter_ranges=ranges)


def with_open_schedule(summary: RunSummary, schedule: OpenSchedule) -> RunSummary:
    """Return the figures of a run with what its schedule leaves open."""
    return attrs.evolve(_with_open(summary, schedule.places), schedule=schedule)


def with_open_rows(summary: RunSummary, epochs: Sequence[OpenEpoch]) -> RunSummary:
    """Return the figures of a run with the rows whose moments are open."""
    return attrs.evolve(_with_open(summary, epochs), open_epochs=tuple(epochs))


def _with_open(summary: RunSummary, opened: Sequence[OpenPlace | OpenEpoch]) -> RunSummary:
    """Return the figures of a run with what is open: more open decisions, wider ranges."""
    undecided = Counter(summary.undecided)
    undecided.update({name: len(each) for name, each in undecided_by_applier(opened).items()})
    ranges = widened_ranges(summary.counter_ranges, summary.counters, opened)
    return attrs.evolve(summary, undecided=dict(undecided), counter_ranges=ranges)
