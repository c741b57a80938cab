"""
The result of the reference engine as a ledger, and on disk. `conflict.engine.ledger.layout` has the files and folders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.engine.ledger.arrow_rows import rows_to_arrow, with_unknown
from conflict.engine.ledger.contradictions import ContradictedRow
from conflict.engine.ledger.layout import (
    APPLIED_EPOCHS,
    DEFAULT_OPTIONS,
    MERGED,
    OUTCOME_PLACE,
    OUTCOMES,
    OVERWRITTEN,
    ROW_KEY,
    SKIPPED,
    UNLOGGED,
    ResultOptions,
    applied_epochs_path,
    exceptions_path,
    open_places_path,
    open_rows_path,
    skipped_path,
    unlogged_path,
)
from conflict.engine.ledger.ledger import (
    CONTRADICTED,
    OPEN_DECISIONS,
    ClusterLedger,
    FinalTable,
    LedgerColumn,
    LedgerPart,
    has_a_line,
    outcome_places,
    outcome_table,
    undecided_table,
    write_part,
)
from conflict.engine.ledger.open_places import (
    OpenEpoch,
    OpenSchedule,
    SkippedChange,
    possible_restarts,
    undecided_by_applier,
)
from conflict.engine.ledger.resolution import (
    ClusterResult,
    Outcome,
    OutcomePlace,
    OverwrittenChange,
    Resolution,
    Undecided,
)
from conflict.engine.ledger.summary import RunSummary, add_summaries
from conflict.engine.ledger.table_keys import TableKey
from conflict.history.grid.folder import Folder
from conflict.history.grid.schemas import PLACE
from conflict.history.model import Cluster, History
from conflict.history.restarts import Stretch, stretches_of
from conflict.history.roles import Mark
from conflict.history.shown_effects import Effect
from conflict.history.timeline import END, RowChange
from conflict.history.unlogged import UnloggedChange
from conflict.rules.decision import Cause, Verdict, outcome_bit
from conflict.rules.functions import FunctionSpec
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowLayout
from ndb_formats.schema.tables import Table
from ndb_formats.schema.value_conversions import KnownValue, NotKnown

_OF_ORIGINS = [OUTCOMES.field(name) for name in PLACE]
_OF_OUTCOMES = [OUTCOMES.field(name) for name in ("source", "refresh", "incoming", "stored", "transaction_id")]
_OF_OVERWRITTEN = [OVERWRITTEN.field(name) for name in ("epoch", "group", "applied_epoch")]
_OF_WINNERS = [pa.field(name, OUTCOMES.field(f"winner_{name}").type) for name in ("cluster", "epoch", "refresh")]
Setups = Mapping[str, Mapping[str, TableSetup]]
# Per cluster, the effects of its applier as its binlog shows them: (epoch, group) -> row -> effect.
Recorded = Mapping[str, Mapping[tuple[int, int], Mapping[tuple[str, bytes], Effect]]]
# Per cluster, how many rows of its applier were compared with its binlog, and those that differ.
Compared = Mapping[str, tuple[int, Sequence[ContradictedRow]]]


@attrs.frozen
class KeyTexts:
    """
    Makes texts of the identities of rows, and the columns that tell rows from others.

    Attributes:
        layouts: How the rows of each table are read.
        tables: The tables by name.
    """

    layouts: Mapping[str, RowLayout]
    tables: Mapping[str, Table]

    def of(
        self,
        rows: Iterable[
            Outcome | OutcomePlace | Undecided | ContradictedRow | SkippedChange | RowChange | UnloggedChange
        ],
    ) -> pa.Array:
        """Return the text of each row's key; that of a row without one is empty."""
        return pa.array([self._text(row.table, row.key) for row in rows], pa.string())

    def columns(self, rows: Sequence[Outcome | OutcomePlace | RowChange]) -> dict[str, LedgerColumn]:
        """Return the columns `ROW_KEY` of some rows."""
        return {"key": self.of(rows), "identity": pa.array([row.key for row in rows], pa.binary())}

    def _text(self, name: str, key: bytes) -> str:
        table = self.tables[name]
        return TableKey.of(table, self.layouts[name]).text(key) if table.primary_key else ""


@attrs.frozen
class ReferenceLedger:
    """
    A result of the reference engine, as the input of a ledger.

    Attributes:
        history: The History.
        setups: Per cluster, the setup of each table.
        resolution: The result.
        compared: How it compares with the binlogs; without a cluster whose rows were not compared.
        options: What the result holds.
        exceptions: Per cluster and exceptions table, the rows that still get their numbers.
    """

    history: History
    setups: Setups
    resolution: Resolution
    compared: Compared = attrs.field(factory=dict)
    options: ResultOptions = DEFAULT_OPTIONS
    exceptions: Mapping[str, Mapping[str, pa.Table]] = attrs.field(factory=dict)

    @property
    def tables(self) -> list[str]:
        """Names of the tables."""
        return list(dict.fromkeys(table for own in self.setups.values() for table in own))

    def keys(self, name: str) -> KeyTexts:
        """Return what makes texts of the keys of a cluster's rows."""
        return KeyTexts(self.history.layouts, {table: setup.table for table, setup in self.setups[name].items()})

    def part(self, number: int = 0) -> LedgerPart:
        """Return it as a part of a run; `number` is the bucket as which it is written."""
        clusters, final = map(self._cluster, self.history.clusters), map(self._final, self.tables)
        return LedgerPart(number, self.tables, clusters, final, self.history.databases, self.options.epoch_range)

    def _cluster(self, cluster: Cluster) -> ClusterLedger:
        """Return what the applier of a cluster did."""
        name, setups = cluster.name, self.setups[cluster.name]
        result, keys, tables = self.resolution.clusters[name], self.keys(name), self.tables
        compared, contradicted = self.compared.get(name, (0, ()))
        decided = [outcome for outcome in self.resolution.outcomes if outcome.applier == name]
        table, verdict, cause = (
            _table_numbers(decided, tables),
            *(_numbers(decided, name) for name in ("verdict", "cause")),
        )
        every = self.options.all_outcomes
        chosen = [decided[place] for place in has_a_line(verdict, _numbers(decided, "ordinal") < 0, every=every)]
        if cluster.start is not None:
            chosen = [_without_unheard(each, setups[each.table]) for each in chosen]
        counts = np.zeros((len(tables), len(Verdict), len(Cause)), np.int64)
        np.add.at(counts, (table, verdict, cause), 1)
        return ClusterLedger(
            name=name,
            functions=[_function(setups.get(table)) for table in tables],
            counts=counts,
            refreshes=np.array([result.refreshes.get(table, 0) for table in tables], np.int64),
            counters=result.counters,
            stretches=_stretches(cluster, result),
            outcomes=_outcomes(chosen, keys) if chosen else None,
            overwritten=_overwritten(result.overwritten, keys),
            undecided=_open_decisions(result.undecided, keys, tables),
            compared=compared,
            contradicted=_contradicted(contradicted, keys, tables),
            rows={table: len(result.rows.get(table, ())) for table in tables},
            not_known=dict(sorted(result.not_known.items())),
            unexplained=result.unexplained,
            copied=result.copied or None,
            exceptions=self.exceptions.get(name, {}),
            merged=_merged(decided, keys),
        )

    def _final(self, table: str) -> FinalTable:
        """Return the final rows of a table."""
        wanted = self.resolution.clusters.items() if self.options.final_rows else ()
        rows = {
            name: rows_to_arrow(self.setups[name][table].stored[0], result.rows[table])
            for name, result in wanted
            if result.rows.get(table)
        }
        in_part = {
            name: _in_part(self.setups[name][table].stored[0], result.rows_in_part[table])
            for name, result in wanted
            if result.rows_in_part.get(table)
        }
        return FinalTable(table, rows, self.resolution.differing_rows.get(table, 0), in_part)


def _in_part(table: Table, rows: Sequence[Sequence[KnownValue]]) -> pa.Table:
    """Return rows that are known in part as Arrow."""
    plain = [[None if isinstance(value, NotKnown) else value for value in row] for row in rows]
    unknown = np.array([[isinstance(value, NotKnown) for value in row] for row in rows], np.bool_)
    return with_unknown(rows_to_arrow(table, plain), unknown)


def _stretches(cluster: Cluster, result: ClusterResult) -> dict[Stretch, Counter[str]]:
    """Return what an applier counted by the counters of an SQL node to which it belongs."""
    servers = np.array([each.server or cluster.server_id for each in result.applies], np.uint64)
    epochs = np.array([each.epoch for each in result.applies], np.uint64)
    traced = np.array([each.traced for each in result.applies], np.bool_)
    of, stretches = stretches_of(servers, epochs, traced, cluster.restarts)
    found = {each: Counter[str]() for each in stretches}
    for number, counters in result.counted.items():
        found[stretches[of[number]]].update(counters)
    return found


def write_resolution(out: Folder, ledger: ReferenceLedger) -> RunSummary:
    """Write a result of the reference engine with the files of the resolve job, as one bucket; return its figures."""
    exceptions = exceptions_tables(setup for own in ledger.setups.values() for setup in own.values())
    results = ledger.resolution.clusters.items()
    for cluster, result in results:
        applies = [(each.source, each.foreign_epoch, each.epoch, each.group) for each in result.applies]
        out.write_table(applied_epochs_path(cluster), _of_tuples(applies, APPLIED_EPOCHS))
        for name, values in result.exceptions.items():
            places = outcome_places(place_columns(result.excepted.get(name, ()), ledger.keys(cluster)))
            rows = rows_to_arrow(exceptions[name], values).append_column(OUTCOME_PLACE, places)
            out.write_table(exceptions_path(cluster, ledger.history.databases.own_name(cluster, name)), rows)
    stops = {name: result.stop for name, result in results if result.stop is not None}
    restarts = possible_restarts({name: result.further_rows for name, result in results})
    return attrs.evolve(add_summaries([write_part(ledger.part(), out)], stops), restarts=restarts)


def exceptions_tables(setups: Iterable[TableSetup]) -> dict[str, Table]:
    """Return the exceptions tables of some tables by their names."""
    return {each.exceptions.table.full_name: each.exceptions.table for each in setups if each.exceptions is not None}


def _without_unheard(outcome: Outcome, setup: TableSetup) -> Outcome:
    """Return an outcome in a log that starts in the middle: that no epoch had come back is not known, and no 0."""
    by_epoch = setup.function is not None and setup.function.spec.by_epoch
    return attrs.evolve(outcome, incoming=None) if by_epoch and outcome.incoming == 0 else outcome


def _function(setup: TableSetup | None) -> FunctionSpec | None:
    return None if setup is None or setup.function is None else setup.function.spec


def _of_tuples(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)], schema=schema)


def _numbers(rows: Sequence[object], name: str) -> npt.NDArray[np.int64]:
    """Return an attribute of some rows, a small number that is always known."""
    return np.array([getattr(row, name) for row in rows], np.int64)


def _table_numbers(
    rows: Sequence[Outcome | Undecided | ContradictedRow], tables: Sequence[str]
) -> npt.NDArray[np.int16]:
    number = {name: place for place, name in enumerate(tables)}
    return np.array([number[row.table] for row in rows], np.int16)


def _columns(rows: Sequence[object], fields: Iterable[pa.Field], prefix: str = "") -> dict[str, LedgerColumn]:
    """Return attributes of some rows, by prefix and name; NULL where there is no row, or one is not known."""
    return {
        prefix + field.name: pa.array([getattr(row, field.name, None) for row in rows], field.type) for field in fields
    }


def place_columns(rows: Sequence[Outcome | OutcomePlace], keys: KeyTexts) -> dict[str, LedgerColumn]:
    """Return what tells outcomes from others, the columns of `OUTCOME_PLACE`."""
    others = (field for field in OUTCOME_PLACE.type if field not in ROW_KEY)
    return {**_columns(rows, others), **keys.columns(rows)}


def _outcomes(outcomes: Sequence[Outcome], keys: KeyTexts) -> pa.Table:
    """Return outcomes as `OUTCOMES`."""
    origins, winners = [each.origin for each in outcomes], [each.winner for each in outcomes]
    return outcome_table(
        {
            **place_columns(outcomes, keys),
            **_columns(outcomes, _OF_OUTCOMES),
            **_columns(origins, _OF_ORIGINS),
            **_columns(winners, _OF_WINNERS, "winner_"),
            **_columns([each and each.origin for each in winners], _OF_ORIGINS, "winner_"),
            **{name: _numbers(outcomes, name) for name in ("operation", "verdict", "cause", "own_cause")},
            "winner_operation": np.array([each.operation if each else 0 for each in winners], np.int64),
            "time": pa.array([each.committed for each in outcomes], OUTCOMES.field("time").type),
        }
    )


def _merged(outcomes: Sequence[Outcome], keys: KeyTexts) -> pa.Table | None:
    """Return what was written in place of operations that were merged, as `MERGED`; None without any."""
    merged = [(each, image) for each in outcomes if (image := each.merged) is not None]
    if not merged:
        return None
    columns = [
        [
            {"name": name, "value": None if value is None else str(value), "payload": payload}
            for (name, value), payload in zip(image.by_name().items(), image.payloads, strict=True)
            if name not in keys.tables[each.table].primary_key
        ]
        for each, image in merged
    ]
    places = place_columns([each for each, _ in merged], keys)
    arrays = [columns if name == "columns" else places[name] for name in MERGED.names]
    return pa.table(arrays, schema=MERGED)


def _overwritten(changes: Sequence[OverwrittenChange], keys: KeyTexts) -> pa.Table | None:
    """Return changes as `OVERWRITTEN`; None without any."""
    if not changes:
        return None
    made, winners = [each.change for each in changes], [each.winner for each in changes]
    return outcome_table(
        {
            **_columns(changes, _OF_OVERWRITTEN),
            **_columns(made, [OVERWRITTEN.field(name) for name in ("table", "transaction_id")]),
            **keys.columns(made),
            "operation": _numbers(made, "operation"),
            **_columns([each.origin for each in made], _OF_ORIGINS),
            "time": pa.array([each.committed for each in changes], OVERWRITTEN.field("time").type),
            **_columns(winners, _OF_WINNERS[:2], "winner_"),
            "winner_operation": _numbers(winners, "operation"),
            **_columns([each.origin for each in winners], _OF_ORIGINS, "winner_"),
        },
        OVERWRITTEN,
    )


def _open_decisions(undecided: Sequence[Undecided], keys: KeyTexts, tables: Sequence[str]) -> pa.Table:
    """Return open decisions as `OPEN_DECISIONS`."""
    rows = [
        (
            each.source_epoch,
            key,
            each.key,
            table,
            each.operation,
            *((-1, 0) if each.decided is None else (each.decided.verdict, each.decided.cause)),
            sum({outcome_bit(candidate.verdict, candidate.cause) for candidate in each.candidates}),
        )
        for each, key, table in zip(
            undecided, keys.of(undecided).to_pylist(), _table_numbers(undecided, tables), strict=True
        )
    ]
    return _of_tuples(rows, OPEN_DECISIONS)


def _contradicted(found: Sequence[ContradictedRow], keys: KeyTexts, tables: Sequence[str]) -> pa.Table:
    """Return contradicted rows as `CONTRADICTED`."""
    rows = [
        (
            each.epoch,
            each.group,
            key,
            each.key,
            table,
            *(0 if effect is None else 1 << effect for effect in (each.derived, each.shown)),
            0 if each.mark is None else 1 + list(Mark).index(each.mark),
        )
        for each, key, table in zip(found, keys.of(found).to_pylist(), _table_numbers(found, tables), strict=True)
    ]
    return _of_tuples(rows, CONTRADICTED)


def write_open(out: Folder, schedule: OpenSchedule, epochs: Sequence[OpenEpoch], keys: KeyTexts) -> None:
    """
    Write the decisions that depend on open places and on when rows were judged, beside those that parts write.

    The rows of epochs that were never applied are written, too.
    """
    tables = list(keys.tables)
    for applier in dict.fromkeys(each.applier for each in schedule.skipped):
        out.write_table(skipped_path(applier), _skipped(schedule, applier, keys))
    for path, opened in ((open_places_path, schedule.places), (open_rows_path, epochs)):
        for applier, undecided in undecided_by_applier(opened).items():
            if undecided:
                out.write_table(path(applier), undecided_table(_open_decisions(undecided, keys, tables), tables))


def write_unlogged(out: Folder, unlogged: Mapping[str, Sequence[UnloggedChange]], keys: KeyTexts) -> None:
    """Write the rows that clusters changed without a log."""
    for cluster, changes in unlogged.items():
        rows = [
            (
                each.table,
                key,
                each.key,
                each.kind.value,
                each.after[0],
                0 if each.shown == END else each.shown[0],
                each.origin.file if each.origin else "",
                each.origin.position if each.origin else 0,
            )
            for each, key in zip(changes, keys.of(changes).to_pylist(), strict=True)
        ]
        out.write_table(unlogged_path(cluster), _of_tuples(rows, UNLOGGED))


def _skipped(schedule: OpenSchedule, applier: str, keys: KeyTexts) -> pa.Table:
    """Return the rows of the epochs that an applier never applied, as `SKIPPED`."""
    mine = [(epoch, change) for epoch in schedule.skipped if epoch.applier == applier for change in epoch.changes]
    texts = keys.of(change for _, change in mine).to_pylist()
    rows = [
        (epoch.source, epoch.foreign_epoch, change.table, change.operation.name, key, change.key)
        for (epoch, change), key in zip(mine, texts, strict=True)
    ]
    return _of_tuples(rows, SKIPPED)
