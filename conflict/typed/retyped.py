"""
A run as a typed History: what users did, and which epochs were applied, from its binlogs.

A binlog holds row events, and no statements. A write is an insert, or an update that is logged as a write, if the row
was there. An update that is logged with all columns sets those that changed. Epochs and transaction ids are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import attrs

from conflict.engine.inference.observed import ObservedCluster
from conflict.engine.inference.rows import NOT_KNOWN
from conflict.engine.reference.row_store import Row, RowKey
from conflict.errors import ConfigurationError
from conflict.history import model, timeline
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.scheduling.hints import hints_of_steps
from conflict.history.scheduling.placing import interleave
from conflict.judge.case import ConflictCase, RecordingKind
from conflict.runs.reference_run import Replayed, replay_in_memory
from conflict.typed.schedule import Schedule
from conflict.typed.steps import Apply, Change, Restart, Step, Transaction, epoch_text
from conflict.typed.tables import Tables, TypedTable
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.schema.default_values import implied_value

_Item = timeline.Transaction | timeline.EpochApply | timeline.DefinitionChange
Wanted = frozenset[RowKey] | None


@attrs.define
class NotingCluster(ObservedCluster):
    """
    A cluster that notes the rows which its users' changes met.

    Attributes:
        met: By own epoch and group, the row that each change met; None for none.
    """

    found: dict[timeline.Position, list[Row | None]] = attrs.field(factory=dict)

    def make(self, change: timeline.RowChange, transaction: timeline.Transaction) -> None:
        """Make a change of an own transaction."""
        row = self.store.get((change.table, change.key))
        self.found.setdefault((transaction.epoch, transaction.group), []).append(row)
        ObservedCluster.make(self, change, transaction)


def retyped(replayed: Replayed, tables: Tables, wanted: Wanted = None) -> Schedule:
    """
    Return a run as a typed History.

    Args:
        replayed: The run as it ended; its clusters are `NotingCluster`.
        tables: The tables of the History.
        wanted: The rows; None for all of these tables.

    Raises:
        ConfigurationError: It has something that cannot be typed: other than two clusters, definitions that change,
            rows that were judged before their epoch was committed.
        HistoryError: Binlogs, schedule and configuration contradict each other.
    """
    return _Retyping.of(replayed, tables, wanted).history()


@attrs.frozen
class _Retyping:
    """
    A run that is put into steps.

    Attributes:
        replayed: The run as it ended.
        tables: The tables of the History.
        wanted: The rows; None for all.
    """

    replayed: Replayed
    tables: Tables
    wanted: Wanted

    @classmethod
    def of(cls, replayed: Replayed, tables: Tables, wanted: Wanted) -> _Retyping:
        """Return a run that can be put into steps."""
        names = [cluster.name for cluster in replayed.history.clusters]
        if len(names) != 2:  # a History has two
            message = f"the run has clusters {', '.join(names)}, and a History has two"
            raise ConfigurationError(message)
        for own in replayed.run.setups.at_start.values():
            for name, setup in own.items():
                if setup.declared is not None and name in tables.by_name:
                    message = f"table {name} is not the same on both clusters, or changes, which cannot be typed"
                    raise ConfigurationError(message)
        return cls(replayed, tables, wanted)

    def history(self) -> Schedule:
        """Return the History."""
        lanes = {cluster.name: list(self._steps(cluster)) for cluster in self.replayed.history.clusters}
        changing = {cluster.name: self._changing(cluster) for cluster in self.replayed.history.clusters}
        first, second = lanes
        for name, other in ((first, second), (second, first)):
            known = changing[other] | _telling(lanes[other], changing[name])
            lanes[name] = [step for step in lanes[name] if not isinstance(step, Apply) or step.foreign_epoch in known]
        lanes = {name: list(_merged(iter(steps))) for name, steps in lanes.items()}
        return Schedule(tables=self.tables, start=tuple(self._start()), **lanes)

    def _changing(self, cluster: model.Cluster) -> set[int]:
        """Return the epochs of a cluster that change wanted rows: by its users, or by its applier."""
        effects = self.replayed.appliers[cluster.name].here.result.effects
        found = {epoch for (epoch, _), rows in effects.items() if any(map(self._is_wanted, rows))}
        transactions = (item for item in cluster.timeline if isinstance(item, timeline.Transaction))
        wanted = (each for each in transactions if any(self._is_wanted((row.table, row.key)) for row in each.changes))
        return found | {each.epoch for each in wanted}

    def _steps(self, cluster: model.Cluster) -> Iterator[Step]:
        """Yield the steps of a cluster; an apply for each epoch."""
        period, last = 0, 0
        for place, item in enumerate(cluster.timeline):
            _refuse(cluster.name, item)
            if isinstance(item, timeline.Transaction):
                step = self._transaction(cluster.name, item)
                last = item.epoch
                yield from [] if step is None else [step]
                continue
            assert isinstance(item, timeline.EpochApply)
            if item.restarted or item.period != period:
                yield Restart(rewound=item.period != period)
            period = item.period
            own = item.epoch if item.traced else self._untraced(cluster.timeline[place + 1 :], last)
            last = own
            yield Apply(item.foreign_epoch, own, self._logged(cluster.name, item, own))

    def _untraced(self, rest: timeline.Timeline, last: int) -> int:
        """Return the own epoch of an epoch apply without a trace: the one after the last one, if it is not logged."""
        logged = (each.epoch for each in rest if _is_logged(each))
        return min(last + 1, next(logged, last + 1))

    def _logged(self, name: str, item: timeline.EpochApply, own: int) -> bool | None:
        """Return whether an apply is logged, if the steps alone do not tell; `own` is its epoch here."""
        if not item.traced:
            return False if own == item.epoch else None
        here = self.replayed.appliers[name].here
        mine = (row for row, _ in here.result.effects.get((item.epoch, item.group), {}).items())
        return None if any(self._is_wanted(row) for row in mine) else True

    def _transaction(self, name: str, item: timeline.Transaction) -> Transaction | None:
        here = self.replayed.appliers[name].here
        assert isinstance(here, NotingCluster)
        met = here.found[item.epoch, item.group]
        found = [
            self._change(change, row)
            for change, row in zip(item.changes, met, strict=True)
            if self._is_wanted((change.table, change.key))
        ]
        return Transaction(tuple(found), item.epoch, item.changes[0].transaction_id) if found else None

    def _is_wanted(self, row: RowKey) -> bool:
        return row in self.wanted if self.wanted is not None else row[0] in self.tables.by_name

    def _change(self, change: timeline.RowChange, met: Row | None) -> Change:
        table, image = self.tables.by_name[change.table], change.after or change.before
        assert image is not None
        payloads = dict(zip(image.present, image.payloads, strict=True))
        if change.before is not None:  # a minimal after image has no key
            payloads = {**dict(zip(change.before.present, change.before.payloads, strict=True)), **payloads}
        key = tuple(table.value(ordinal, payloads[ordinal]) for ordinal in table.table.key_ordinals)
        if change.flags & ConflictFlag.READ:
            return Change(Operation.UPDATE_ROW, key, (), change.table)
        if change.after is None:
            return Change(Operation.DELETE_ROW, key, (), change.table)
        written = dict(zip(change.after.present, change.after.payloads, strict=True))
        there = met is not None
        if change.operation is Operation.WRITE_ROW and not there:
            return Change(Operation.WRITE_ROW, key, _values(table, written), change.table)
        before = {} if met is None or met is NOT_KNOWN else met.payloads
        changed = {ordinal: each for ordinal, each in written.items() if before.get(ordinal, b"") != each}
        values = changed if changed and len(written) == len(table.table.columns) else written
        spelled = [ordinal for ordinal in table.table.key_ordinals if ordinal in changed and ordinal in before]
        return Change(Operation.UPDATE_ROW, key, _values(table, values, spelled), change.table)

    def _start(self) -> Iterator[Change]:
        """Yield the rows that are older than the logs, as the first change of each shows them."""
        if all(cluster.start is None for cluster in self.replayed.history.clusters):
            return
        seen = set[RowKey]()
        for cluster, item in interleave(self.replayed.history):
            if not isinstance(item, timeline.Transaction):
                continue
            here = self.replayed.appliers[cluster.name].here
            assert isinstance(here, NotingCluster)
            for change, met in zip(item.changes, here.found[item.epoch, item.group], strict=True):
                row = change.table, change.key
                if self._is_wanted(row) and row not in seen and met is not None:
                    yield self._older(change, {} if met is NOT_KNOWN else met.payloads)
                seen.add(row)

    def _older(self, change: timeline.RowChange, known: Mapping[int, bytes | None]) -> Change:
        """Return the insert of a row as it was before a change; columns that nothing shows have their defaults."""
        table, payloads = self.tables.by_name[change.table], dict(known)
        for image in (change.after, change.before):
            if image is not None:
                payloads |= dict(zip(image.present, image.payloads, strict=True))
        key = tuple(table.value(ordinal, payloads[ordinal]) for ordinal in table.table.key_ordinals)
        lacking = {
            column.name: implied_value(column)
            for ordinal, column in enumerate(table.table.columns)
            if ordinal not in payloads and column.must_be_given
        }
        return Change(Operation.WRITE_ROW, key, (*_values(table, payloads), *lacking.items()), change.table)


def _values(
    table: TypedTable, payloads: Mapping[int, bytes | None], spelled: Sequence[int] = ()
) -> tuple[tuple[str, object], ...]:
    """Return the values of columns, of the key those that are `spelled` anew; not what the server computes."""
    columns = table.table.columns
    return tuple(
        (columns[ordinal].name, table.value(ordinal, each))
        for ordinal, each in payloads.items()
        if (ordinal in spelled or ordinal not in table.table.key_ordinals) and not columns[ordinal].generated
    )


def _refuse(name: str, item: _Item) -> None:
    """
    Refuse what no step says.

    Raises:
        ConfigurationError: The item is such.
    """
    what = ""
    if isinstance(item, timeline.DefinitionChange):
        what = "a definition changes in the middle"
    elif isinstance(item, timeline.Transaction):
        if item.changes[0].transaction_id is None:
            what = "no transaction ids are logged (ndb_log_transaction_id), so nobody knows what each did"
    elif item.moments:
        what = f"rows of epoch {epoch_text(item.foreign_epoch)} were judged before its commit"
    elif item.role is not None:
        what = "its role changes"
    elif not item.reported:
        what = "ndb_log_apply_status is off"
    if what:
        message = f"what happened on {name} cannot be typed: {what}"
        raise ConfigurationError(message)


def _is_logged(item: _Item) -> bool:
    return isinstance(item, timeline.Transaction) or (isinstance(item, timeline.EpochApply) and item.traced)


def _telling(steps: Sequence[Step], changing: set[int]) -> set[int]:
    """Return the epochs that tell the other cluster which of its epochs that change rows arrived."""
    return {step.epoch or 0 for step in steps if isinstance(step, Apply) and step.foreign_epoch in changing}


def _merged(steps: Iterator[Step]) -> Iterator[Step]:
    """Yield steps, with applies of one own epoch that follow each other as one."""
    waiting: Apply | None = None
    for step in steps:
        if isinstance(step, Apply):
            if waiting is not None and (waiting.epoch, waiting.logged) != (step.epoch, step.logged):
                yield waiting
            waiting = step
            continue
        if waiting is not None:
            yield waiting
            waiting = None
        yield step
    if waiting is not None:
        yield waiting


def of_recording(folder: Path) -> Schedule:
    """
    Return the History of a recording: its binlogs, with the steps of its scenario, which say when appliers ran.

    Raises:
        ConfigurationError: As of `retyped`; or the folder holds no recording of two clusters with the same tables.
    """
    if not (folder / RecordingKind.CONFLICT.value).exists():
        message = f"{folder} holds no {RecordingKind.CONFLICT.value}; give the folder of a recording of two clusters"
        raise ConfigurationError(message)
    scenario = json.loads((folder / RecordingKind.CONFLICT.value).read_text("utf-8"))
    case = ConflictCase(folder, scenario, {})
    texts = [text for table in scenario["tables"] for text in (table["create"], table["ex"]) if text]
    sql = "".join(f"{text};\n" for text in [f"USE {scenario['database']}", *texts])
    run = make_run(case.configuration(), partial(hints_of_steps, case.steps))
    replayed = replay_in_memory(run, made_of=NotingCluster)
    return retyped(replayed, Tables.of_schema(case.configuration().schema, sql))
