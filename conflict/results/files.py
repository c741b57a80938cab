"""
Writes the result of the reference engine, and reads results. `conflict.results.layout` has the files and folders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.dataset as pads

from conflict.grid.folder import Folder
from conflict.history.effects import Effect
from conflict.history.model import History
from conflict.results.arrow_rows import row_schema, rows_to_arrow
from conflict.results.contradictions import CONTRADICTIONS, ContradictedRow, contradictions_path, count_kinds, texts_of
from conflict.results.layout import (
    APPLIED_EPOCHS,
    OUTCOME_PLACE,
    OUTCOMES,
    UNDECIDED,
    applied_epochs_path,
    exceptions_path,
    open_places_path,
    open_rows_path,
    outcomes_path,
    rows_path,
    undecided_path,
)
from conflict.results.model import LastWrite, Outcome, OutcomePlace, Resolution, Undecided
from conflict.results.open_places import OpenPlace, PossibleRestart, undecided_at
from conflict.results.open_rows import OpenEpoch, undecided_rows
from conflict.results.summary import RunSummary, with_copied_rows
from conflict.results.undecided import counter_ranges
from conflict.rules.decision import Cause, Verdict, decision_text
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowLayout
from ndb_formats.schema.row_keys import key_text
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import Value

__all__ = [
    "Recorded",
    "contradicted_example",
    "count_rejected",
    "outcome_places",
    "read_applied_epochs",
    "read_rows",
    "read_tracked",
    "rejected_examples",
    "summarize_resolution",
    "write_contradictions",
    "write_decided_rows",
    "write_open_places",
    "write_open_rows",
    "write_resolution",
]

Setups = Mapping[str, Mapping[str, TableSetup]]
# Per cluster, the effects of its applier as its binlog shows them: (epoch, group) -> row -> effect.
Recorded = Mapping[str, Mapping[tuple[int, int], Mapping[tuple[str, bytes], Effect]]]


def write_resolution(
    out: Folder, history: History, setups: Setups, resolution: Resolution, *, all_outcomes: bool = False
) -> None:
    """
    Write a result of the reference engine; the files are those of the resolve job, with one bucket.

    Args:
        out: Folder of the result.
        history: The History.
        setups: Per cluster, the setup of each table.
        resolution: The result.
        all_outcomes: Write an outcome for every operation, not only for operations that were not simply applied.
    """
    exceptions = {
        setup.exceptions.table.full_name: setup.exceptions.table
        for tables in setups.values()
        for setup in tables.values()
        if setup.exceptions is not None
    }
    for cluster in history.clusters:
        result = resolution.clusters[cluster.name]
        applies = [(apply.source, apply.foreign_epoch, apply.epoch, apply.group) for apply in result.applies]
        out.write_table(applied_epochs_path(cluster.name), _table(applies, APPLIED_EPOCHS))
        for name, values in result.exceptions.items():
            places = outcome_places(result.excepted.get(name, ()), history.layouts, setups[cluster.name])
            rows = rows_to_arrow(exceptions[name], values).append_column(OUTCOME_PLACE, places)
            out.write_table(exceptions_path(cluster.name, name), rows)
    write_decided_rows(out, history, setups, resolution, all_outcomes=all_outcomes)


def write_decided_rows(
    out: Folder,
    history: History,
    setups: Setups,
    resolution: Resolution,
    bucket: int = 0,
    *,
    all_outcomes: bool,
    final_rows: bool = True,
) -> None:
    """Write outcomes, open decisions and final rows, if they are wanted, as a bucket; see `write_resolution`."""
    layouts = history.layouts
    for cluster, result in resolution.clusters.items():
        outcomes = [outcome for outcome in resolution.outcomes if outcome.applier == cluster]
        if not all_outcomes:
            outcomes = [each for each in outcomes if each.verdict is not Verdict.APPLIED or each.ordinal < 0]
        if outcomes:
            if history.cluster(cluster).start is not None:
                outcomes = [_without_unheard(each, setups[cluster][each.table]) for each in outcomes]
            out.write_table(outcomes_path(cluster, bucket), _outcome_table(outcomes, cluster, layouts, setups))
        if result.undecided:
            tables = {name: setup.table for name, setup in setups[cluster].items()}
            out.write_table(undecided_path(cluster, bucket), _undecided_table(result.undecided, layouts, tables))
        for name, values in result.rows.items():
            definition, _ = setups[cluster][name].shown
            if values and final_rows:
                out.write_table(rows_path(cluster, name, bucket), rows_to_arrow(definition, values))


def _without_unheard(outcome: Outcome, setup: TableSetup) -> Outcome:
    """Return an outcome in a log that starts in the middle: that no epoch had come back is not known, and no 0."""
    by_epoch = setup.function is not None and setup.function.spec.refreshes
    return attrs.evolve(outcome, incoming=None) if by_epoch and outcome.incoming == 0 else outcome


def _outcome_table(
    outcomes: Sequence[Outcome], cluster: str, layouts: Mapping[str, RowLayout], setups: Setups
) -> pa.Table:
    rows = [
        (
            outcome.source,
            outcome.source_epoch,
            outcome.group,
            outcome.ordinal,
            outcome.epoch,
            outcome.table,
            _key_text(setups[cluster][outcome.table].table, layouts[outcome.table], outcome.key),
            outcome.operation.name,
            outcome.refresh,
            outcome.verdict.name,
            outcome.cause.name if outcome.cause else None,
            outcome.incoming,
            outcome.stored,
            outcome.origin.file if outcome.origin else None,
            outcome.origin.position if outcome.origin else None,
            outcome.origin.payload_position if outcome.origin else None,
            outcome.origin.row if outcome.origin else None,
            outcome.committed,
            outcome.transaction_id,
            outcome.own_cause.name if outcome.own_cause else None,
            *_winner(outcome.winner),
        )
        for outcome in outcomes
    ]
    return _table(rows, OUTCOMES)


def _winner(winner: LastWrite | None) -> tuple[object, ...]:
    """Return the columns `winner_...` of `OUTCOMES`."""
    if winner is None:
        return (None,) * 8
    origin = winner.origin
    where = (None,) * 4 if origin is None else attrs.astuple(origin)
    return winner.cluster, winner.epoch, winner.operation.name, winner.refresh, *where


def outcome_places(
    places: Sequence[OutcomePlace], layouts: Mapping[str, RowLayout], setups: Mapping[str, TableSetup]
) -> pa.Array:
    """Return what tells outcomes from others, as `OUTCOME_PLACE`; `setups` has the setup of each of their tables."""
    found = [
        {**attrs.asdict(place), "key": _key_text(setups[place.table].table, layouts[place.table], place.key)}
        for place in places
    ]
    return pa.array(found, OUTCOME_PLACE.type)


def _undecided_table(
    undecided: Sequence[Undecided], layouts: Mapping[str, RowLayout], tables: Mapping[str, Table]
) -> pa.Table:
    rows = [
        (
            each.source_epoch,
            each.table,
            _key_text(tables[each.table], layouts[each.table], each.key),
            each.operation.name,
            decision_text(each.decided) if each.decided else None,
            sorted({decision_text(candidate) for candidate in each.candidates}),
        )
        for each in undecided
    ]
    return _table(rows, UNDECIDED)


def write_open_places(
    out: Folder, places: Sequence[OpenPlace], layouts: Mapping[str, RowLayout], tables: Mapping[str, Table]
) -> None:
    """
    Write the decisions that hang on open places, beside those that buckets write.

    Args:
        out: Folder of the result.
        places: The places.
        layouts: How the rows of each table are read.
        tables: The tables by name.
    """
    for applier in dict.fromkeys(place.applier for place in places):
        mine = [each for place in places if place.applier == applier for each in undecided_at(place)]
        if mine:
            out.write_table(open_places_path(applier), _undecided_table(mine, layouts, tables))


def write_open_rows(
    out: Folder, epochs: Sequence[OpenEpoch], layouts: Mapping[str, RowLayout], tables: Mapping[str, Table]
) -> None:
    """Write the decisions that hang on when rows were judged; arguments as for `write_open_places`."""
    for applier, undecided in undecided_rows(epochs).items():
        if undecided:
            out.write_table(open_rows_path(applier), _undecided_table(undecided, layouts, tables))


def write_contradictions(
    out: Folder,
    applier: str,
    rows: Sequence[ContradictedRow],
    layouts: Mapping[str, RowLayout],
    tables: Mapping[str, Table],
    bucket: int = 0,
) -> None:
    """
    Write the rows of which a binlog shows another effect than was derived; nothing if there are none.

    Args:
        out: Folder of the result.
        applier: The cluster whose applier changed them.
        rows: The rows.
        layouts: How the rows of each table are read.
        tables: The tables by name.
        bucket: Number of the bucket as which they are written.
    """
    values = [
        (row.epoch, row.group, row.table, _key_text(tables[row.table], layouts[row.table], row.key), *texts_of(row))
        for row in rows
    ]
    if values:
        out.write_table(contradictions_path(applier, bucket), _table(values, CONTRADICTIONS))


def _table(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def _key_text(table: Table, layout: RowLayout, key: bytes) -> str:
    if not table.primary_key:
        return ""
    codecs = [layout.codecs[ordinal] for ordinal in table.key_ordinals]
    return key_text(table.key_columns, codecs, key)


def summarize_resolution(
    resolution: Resolution, setups: Setups, compared: Mapping[str, tuple[int, Sequence[ContradictedRow]]]
) -> RunSummary:
    """
    Return the figures of a run of the reference engine.

    Args:
        resolution: Its result.
        setups: Per cluster, the setup of each table.
        compared: Per cluster, how many rows of its applier were compared with its binlog, and those that differ.
    """
    names = list(resolution.clusters)
    known = dict.fromkeys(table for name in names for table in setups[name])
    tables: dict[str, dict[str, Counter[str]]] = {name: {table: _zero_counts() for table in known} for name in names}
    for outcome in resolution.outcomes:
        counts = tables[outcome.applier][outcome.table]
        counts[outcome.verdict.name.lower()] += 1
        if outcome.cause:
            counts[outcome.cause.name] += 1
    for name, result in resolution.clusters.items():
        for table, refreshes in result.refreshes.items():
            tables[name][table]["refreshes"] += refreshes
    summary = RunSummary(
        counters={name: result.counters for name, result in resolution.clusters.items()},
        tables={name: {table: dict(counts) for table, counts in each.items()} for name, each in tables.items()},
        rows={
            name: {table: len(result.rows.get(table, ())) for table in known}
            for name, result in resolution.clusters.items()
        },
        differing_rows={table: resolution.differing_rows.get(table, 0) for table in known},
        compared=sum(count for count, _ in compared.values()),
        contradicted=sum(len(rows) for _, rows in compared.values()),
        contradictions={
            name: count_kinds((row.table, *texts_of(row)) for row in rows)
            for name, (_, rows) in compared.items()
            if rows
        },
        unexplained={name: result.unexplained for name, result in resolution.clusters.items()},
        stops={name: result.stop for name, result in resolution.clusters.items() if result.stop is not None},
        undecided={name: len(result.undecided) for name, result in resolution.clusters.items()},
        not_known={
            name: {table: attrs.asdict(each) for table, each in sorted(result.not_known.items())}
            for name, result in resolution.clusters.items()
            if result.not_known
        },
        restarts={
            name: tuple(PossibleRestart(number, rows) for number, rows in sorted(result.further_rows.items()))
            for name, result in resolution.clusters.items()
            if result.further_rows
        },
        counter_ranges={
            name: counter_ranges(result.undecided, result.counters, setups[name])
            for name, result in resolution.clusters.items()
        },
        copied={name: result.copied for name, result in resolution.clusters.items() if result.copied},
    )
    return with_copied_rows(summary)


def _zero_counts() -> Counter[str]:
    names = [verdict.name.lower() for verdict in Verdict] + [cause.name for cause in Cause if cause] + ["refreshes"]
    return Counter(dict.fromkeys(names, 0))


def rejected_examples(out: Folder, clusters: Sequence[str], count: int) -> list[dict[str, Any]]:
    """
    Return the first rejected outcomes of each applier, at most `count`, as dictionaries.

    They are the first in the order of the log, among as many as are looked at; the files have another order.
    """
    order = ("epoch", "source_epoch", "group", "ordinal", "table", "key")
    rejected = pads.field("verdict") == Verdict.REJECTED.name
    return [each for name in clusters for each in _first(out, "outcomes", name, OUTCOMES, rejected, order, count)]


def contradicted_example(out: Folder, clusters: Sequence[str], tables: Sequence[str]) -> dict[str, Any] | None:
    """Return a row of some tables of which a binlog shows something else, the first of an applier; None without one."""
    order, chosen = ("epoch", "group", "table", "key"), pads.field("table").isin([*tables])
    found = (_first(out, "contradictions", name, CONTRADICTIONS, chosen, order, 1) for name in clusters)
    return next((rows[0] for rows in found if rows), None)


def _first(
    out: Folder, part: str, applier: str, schema: pa.Schema, chosen: pads.Expression, order: Sequence[str], count: int
) -> list[dict[str, Any]]:
    """Return the first rows of an applier's part of a result, among as many as are looked at."""
    path = f"{part}/applier={applier}"
    if not out.exists(path):
        return []
    dataset = pads.dataset(f"{out.uri}/{path}", schema=schema, format="parquet", partitioning=None)
    found = dataset.head(_MOST_LOOKED_AT, filter=chosen).sort_by([(name, "ascending") for name in order])
    return [{**each, "applier": applier} for each in found.slice(0, count).to_pylist()]


_MOST_LOOKED_AT = 10_000


def read_rows(out: Folder, path: str, table: Table) -> list[tuple[Value, ...]]:
    """Return the rows of a table, or of an exceptions table, of a result; none if `path` does not exist."""
    if not out.exists(path):
        return []
    schema = row_schema(table)
    data = pads.dataset(f"{out.uri}/{path}", schema=schema, format="parquet", partitioning=None).to_table()
    return list(zip(*(column.to_pylist() for column in data.columns), strict=True))


def read_applied_epochs(out: Folder, applier: str) -> list[dict[str, Any]]:
    """Return the foreign epochs that an applier applied, in order, as dictionaries."""
    applied: list[dict[str, Any]] = out.read_table(applied_epochs_path(applier), APPLIED_EPOCHS).to_pylist()
    return applied


def count_rejected(out: Folder, applier: str) -> Counter[tuple[int, int, str]]:
    """Return how many operations an applier rejected, by foreign epoch, own epoch, and table."""
    path = f"outcomes/applier={applier}"
    if not out.exists(path):
        return Counter()
    dataset = pads.dataset(f"{out.uri}/{path}", schema=OUTCOMES, format="parquet", partitioning=None)
    rejected = dataset.to_table(
        ["source_epoch", "epoch", "table"], filter=pads.field("verdict") == Verdict.REJECTED.name
    )
    return Counter(zip(*(column.to_pylist() for column in rejected.columns), strict=True))


def read_tracked(out: Folder, applier: str) -> list[dict[str, Any]]:
    """Return the open decisions of an applier's pass TRACK, without those that hang on open places and moments."""
    path = f"undecided/applier={applier}"
    if not out.exists(path):
        return []
    dataset = pads.dataset(f"{out.uri}/{path}", schema=UNDECIDED, format="parquet", partitioning=None)
    others = (open_places_path(applier), open_rows_path(applier))
    files = [file for file in dataset.files if not file.endswith(others)]
    kept = pads.dataset(files, schema=UNDECIDED, format="parquet", partitioning=None) if files else None
    return [] if kept is None else kept.to_table().to_pylist()
