"""
The figures of a simulation as attributes: numbers of one run, or estimates over several.

Names that end with ``_ms`` are milliseconds, with ``_seconds`` seconds; shares are parts of 1, ``_bytes`` are bytes,
``_per_second`` a rate; all others are counts. docs/model.md says what each figure is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import attrs

from conflict.whatif.simulating.totals import totals_of

Figure = TypeVar("Figure")


@attrs.frozen(kw_only=True)
class Times(Generic[Figure]):
    """
    How long something took, in ms; of a name that ends with ``_ms``.

    Attributes:
        p50: Half of them took as long or less.
        p90: 90 % of them.
        p99: 99 % of them.
        max: All of them.
    """

    p50: Figure
    p90: Figure
    p99: Figure
    max: Figure


@attrs.frozen(kw_only=True)
class Window(Times[Figure]):
    """
    How long changes of a cluster took to the next one, in ms: the conflict window.

    Attributes:
        epoch: Until their epoch ended, on average.
        link: On the link, on average.
        queue: Behind other epochs, on average.
        apply: Until they were applied, on average.
        mean: All of it, on average.
        back: Until they were known to have arrived, on average: the window of functions by epoch.
    """

    epoch: Figure
    link: Figure
    queue: Figure
    apply: Figure
    mean: Figure
    back: Figure


@attrs.frozen(kw_only=True)
class Epochs(Generic[Figure]):
    """
    The epochs that a cluster logged.

    Attributes:
        logged: How many.
        logged_bytes: Their bytes.
        applied_without_trace: Epochs of its source that its applier applied without a trace in its log.
        never_applied: Its epochs that an applier had not applied at the end.
        behind_ms: How long after their end its epochs were applied.
    """

    logged: Figure
    logged_bytes: Figure
    applied_without_trace: Figure
    never_applied: Figure
    behind_ms: Times[Figure]


@attrs.frozen(kw_only=True)
class Applier(Generic[Figure]):
    """
    What the applier of a cluster did with the changes of its source.

    Attributes:
        received: Changes of users that it got.
        applied: Those that it applied, as they were or merged.
        ignored: Operations on rows that were not there, where no function judges them.
        discarded: Reflected rows that it discarded.
        conflicts: Operations that it rejected.
        conflicts_by_table: The same by table.
        row_does_not_exist: Rejected because the row was not there.
        row_already_exists: Rejected because the row was there.
        row_in_conflict: Rejected by the function.
        trans_in_conflict: Rejected with its transaction.
        delete_delete: Rejected deletes of rows that were deleted here, too.
        conflicts_per_second: Conflicts by the seconds in which users worked.
        share_in_conflict: Conflicts by what was received.
        refreshes: Rows that it sent back as they are here.
        reflected: Changes that it sent back.
        stopped_at_ms: When it stopped, after users began; None if it did not.
    """

    received: Figure
    applied: Figure
    ignored: Figure
    discarded: Figure
    conflicts: Figure
    conflicts_by_table: Mapping[str, Figure]
    row_does_not_exist: Figure
    row_already_exists: Figure
    row_in_conflict: Figure
    trans_in_conflict: Figure
    delete_delete: Figure
    conflicts_per_second: Figure
    share_in_conflict: Figure
    refreshes: Figure
    reflected: Figure
    stopped_at_ms: Figure | None


@attrs.frozen(kw_only=True)
class ClusterFigures(Generic[Figure]):
    """
    What users of a cluster did, what they lost, and what its servers did.

    Attributes:
        transactions: Transactions that committed.
        failed: Transactions that failed for good.
        tried_again: Transactions that were tried again.
        changes: Row changes of users.
        changes_by_table: The same by table.
        found_no_row: Updates and deletes of rows that were not there.
        reads: Rows that were read.
        stale_reads: Those that differed between the clusters then.
        unsettled: Changes that were not applied or rejected everywhere at the end.
        rejected: Changes that were lost: an applier rejected them.
        overwritten: Changes that were lost: one that had not seen them took their place.
        rejected_transactions: Transactions with a rejected change.
        partly_rejected_transactions: Those with others that were not rejected.
        applier: Its applier.
        epochs: Its log.
        row_event_bytes: By binlog type, what its row events would take; empty of more than two clusters.
        window_ms: How long its changes took to the next cluster.
        everywhere_ms: How long they took to all; None of two clusters.
        counters: Its status counters, by the server's names, without those that are 0.
    """

    transactions: Figure
    failed: Figure
    tried_again: Figure
    changes: Figure
    changes_by_table: Mapping[str, Figure]
    found_no_row: Figure
    reads: Figure
    stale_reads: Figure
    unsettled: Figure
    rejected: Figure
    overwritten: Figure
    rejected_transactions: Figure
    partly_rejected_transactions: Figure
    applier: Applier[Figure]
    epochs: Epochs[Figure]
    row_event_bytes: Mapping[str, Figure] = attrs.field(factory=dict)
    window_ms: Window[Figure]
    everywhere_ms: Times[Figure] | None = None
    counters: Mapping[str, Figure]


@attrs.frozen(kw_only=True)
class RunFigures(Generic[Figure]):
    """
    The figures of simulated clusters: of all together, and of each.

    Attributes:
        changes: Row changes of users.
        transactions: Transactions that committed.
        conflicts: Operations that appliers rejected.
        lost_updates: Changes of users that were rejected or overwritten; at least, where `unsettled_changes` is not 0.
        lost_share: The same by `changes`.
        lost_updates_at_most: The greatest number that may be lost, where changes were not settled.
        lost_share_at_most: The same by `changes`.
        unsettled_changes: Changes that were not applied or rejected everywhere at the end.
        refreshes: Rows that appliers sent back.
        logged_bytes: What all clusters logged.
        stopped_appliers: Appliers that stopped.
        simulated_seconds: How long the run was, until all was applied.
        quiet_at_the_end: 1 if everything was applied at the end, else 0.
        rows_that_end_different: Rows that were not the same everywhere at the end.
        different_by_table: The same by table.
        stale_ms: How long rows differed between the clusters.
        share_of_time_different: In which part of the time any row differed.
        rows_different_on_average: How many rows differed at a time.
        clusters: The figures of each cluster, by its name.
    """

    changes: Figure
    transactions: Figure
    conflicts: Figure
    lost_updates: Figure
    lost_share: Figure
    lost_updates_at_most: Figure
    lost_share_at_most: Figure
    unsettled_changes: Figure
    refreshes: Figure
    logged_bytes: Figure
    stopped_appliers: Figure
    simulated_seconds: Figure
    quiet_at_the_end: Figure
    rows_that_end_different: Figure
    different_by_table: Mapping[str, Figure]
    stale_ms: Times[Figure]
    share_of_time_different: Figure
    rows_different_on_average: Figure
    clusters: Mapping[str, ClusterFigures[Figure]]

    def figures(self) -> Iterator[tuple[str | None, str, Figure]]:
        """Yield cluster, name and value of every figure that there is; no cluster of those of all together."""
        for field in attrs.fields(RunFigures):
            if field.name != "clusters":
                yield from ((None, *each) for each in _named(field.name, getattr(self, field.name)))
        for name, cluster in self.clusters.items():
            yield from ((name, *each) for each in _named("", cluster))


@attrs.frozen(kw_only=True)
class Run(RunFigures[float]):
    """
    One run of a simulation.

    Attributes:
        seed: Its seed.
        point: What was tried, by axis of a sweep; nothing in a simulation alone.
    """

    seed: int
    point: Mapping[str, Any] = attrs.field(factory=dict)


def run_of(figures: Mapping[str, Any], seed: int, point: Mapping[str, Any] | None = None) -> Run:
    """Return the figures of a run, as `conflict.whatif.simulating.report.figures_of` returns them, as attributes."""
    return Run(**attributes_of({**totals_of(figures), **figures}), seed=seed, point=point or {})


def attributes_of(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `RunFigures` is made of, from figures of all clusters and of each as a document."""
    clusters = {name: _cluster_of(each) for name, each in figures["clusters"].items()}
    return {**figures, "stale_ms": Times(**figures["stale_ms"]), "clusters": clusters}


def _cluster_of(figures: Mapping[str, Any]) -> ClusterFigures[Any]:
    epochs, everywhere = figures["epochs"], figures.get("everywhere_ms")
    made = {
        "applier": Applier(**figures["applier"]),
        "epochs": Epochs(**{**epochs, "behind_ms": Times(**epochs["behind_ms"])}),
        "window_ms": Window(**figures["window_ms"]),
        "everywhere_ms": None if everywhere is None else Times(**everywhere),
    }
    return ClusterFigures(**{**figures, **made})


def unit_of(name: str) -> str:
    """Return the unit of a figure by its name: ``ms``, ``s``, ``bytes``, ``share``, ``1/s`` or ``count``."""
    parts = name.split(".")
    if any(part.endswith("_ms") for part in parts):
        return "ms"
    if any(part.endswith("bytes") for part in parts):
        return "bytes"
    ends = {"_per_second": "1/s", "_seconds": "s"}
    return next(
        (unit for end, unit in ends.items() if parts[0].endswith(end) or parts[-1].endswith(end)),
        "share" if "share" in parts[-1].split("_") else "count",
    )


def _named(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and values within a figure, with dots between; nothing of what there is not."""
    if attrs.has(type(value)) and isinstance(value, ClusterFigures | Applier | Epochs | Times):
        inside: Mapping[str, Any] = {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
    elif isinstance(value, Mapping):
        inside = value
    else:
        if value is not None:
            yield name, value
        return
    for each, inner in inside.items():
        yield from _named(f"{name}.{each}" if name else each, inner)
