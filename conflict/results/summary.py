"""
The figures of a run, added up over its buckets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from conflict.history.reconcile import Inference
from conflict.results.model import Stop
from conflict.rules.counters import add_counters

__all__ = ["BucketSummary", "RoundFigures", "RunSummary", "add_summaries"]

Counts = dict[str, dict[str, dict[str, int]]]


@attrs.frozen
class RoundFigures:
    """
    The size of a round.

    Attributes:
        rows: Row changes that were folded.
        in_conflict: Transactions in conflict that were found.
        changed: How many of them were not known before, or are not in conflict after all.
    """

    rows: int
    in_conflict: int
    changed: int


@attrs.define
class BucketSummary:
    """
    What a bucket adds to the whole; small enough to go back to the driver.

    Attributes:
        counters: Per cluster, its status counters.
        tables: Per cluster and table, how often each thing happened (see `TableSummary`).
        rows: Per cluster and table, how many rows there are at the end.
        differing_rows: Per table, how many keys differ between the clusters at the end; None where that is not known.
        compared: Rows per epoch that an applier is known, or was found, to have touched.
        contradicted: How many of those the engine and the binlog see differently.
        unexplained: Per cluster, own changes of rows that should not be there.
        undecided: Per cluster, how many decisions of its applier the binlogs leave open.
        less: Per cluster, by how much each counter may be less than it is.
        more: Per cluster, by how much it may be more.
    """

    counters: dict[str, dict[str, int]] = attrs.field(factory=dict)
    tables: dict[str, dict[str, dict[str, int]]] = attrs.field(factory=dict)
    rows: dict[str, dict[str, int]] = attrs.field(factory=dict)
    differing_rows: dict[str, int | None] = attrs.field(factory=dict)
    compared: int = 0
    contradicted: int = 0
    unexplained: dict[str, int] = attrs.field(factory=dict)
    undecided: dict[str, int] = attrs.field(factory=dict)
    less: dict[str, dict[str, int]] = attrs.field(factory=dict)
    more: dict[str, dict[str, int]] = attrs.field(factory=dict)


@attrs.frozen
class RunSummary:
    """
    What a run came to.

    Attributes:
        counters: Per cluster, its status counters.
        tables: Per applying cluster and table, how many operations were applied, ignored and
            rejected (also by cause), and how many rows were refreshed.
        rows: Per cluster and table, how many rows there are at the end.
        differing_rows: Per table, how many rows differ between the clusters at the end; None where that is not known,
            as without the values of the rows.
        compared: Rows that the binlogs show, or the engine found, appliers to have touched, per epoch.
        contradicted: How many of those the two see differently.
        unexplained: Per cluster, own changes of rows that should not be there.
        stops: Per cluster, why its applier stopped.
        undecided: Per cluster, how many decisions of its applier the binlogs leave open.
        counter_ranges: Per cluster, least and greatest value of each counter that depends on those.
        rounds: Rounds of folding until it was known which transactions are in conflict; the Spark job's alone.
        settled: Questions that the binlogs leave open, as answered by what they show; the Spark job's alone.
    """

    counters: dict[str, dict[str, int]]
    tables: Counts
    rows: dict[str, dict[str, int]]
    differing_rows: Mapping[str, int | None]
    compared: int
    contradicted: int
    unexplained: dict[str, int]
    stops: dict[str, Stop]
    undecided: dict[str, int] = attrs.field(factory=dict)
    counter_ranges: dict[str, dict[str, tuple[int, int]]] = attrs.field(factory=dict)
    settled: tuple[Inference, ...] = ()
    rounds: tuple[RoundFigures, ...] = ()

    @property
    def converged(self) -> bool | None:
        """Whether both clusters end with the same rows; None if that is not known."""
        differing = self.differing_rows.values()
        return False if any(differing) else None if None in differing else True

    def to_json(self) -> dict[str, Any]:
        """Return the figures as a document."""
        return {
            "converged": self.converged,
            "tables": self.tables,
            "rows": self.rows,
            "differing_rows": self.differing_rows,
            "compared_with_binlogs": self.compared,
            "contradicted_by_binlogs": self.contradicted,
            "unexplained_changes": self.unexplained,
            "undecided": self.undecided,
            "counter_ranges": self.counter_ranges,
            "stops": {name: stop_to_json(stop) for name, stop in self.stops.items()},
        }


def stop_to_json(stop: Stop) -> dict[str, Any]:
    """Return a stop as a document."""
    document = attrs.asdict(stop)
    return {**document, "operation": stop.operation.name}


def _add(total: dict[str, Any], part: Mapping[str, Any]) -> None:
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
    less, more = total.pop("less"), total.pop("more")
    total["counter_ranges"] = {
        name: {
            counter: (counters[counter] - less.get(name, {}).get(counter, 0), counters[counter] + slack)
            for counter, slack in sorted(more.get(name, {}).items())
        }
        for name, counters in total["counters"].items()
    }
    return RunSummary(**total, stops=dict(stops))
