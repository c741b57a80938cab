"""
A simulation learnt from recorded binlogs of two clusters: tables, what users want, rates over time, how epochs travel.

The result is the document of a file that `conflict.whatif.simulating.model_file` reads. docs/model.md says what is
assumed.

Binlogs show what users did, not what they wanted: an insert of a row that was there failed with its whole transaction,
and an update of a row that was not there did nothing. So wishes are found by how often rows were there.

Makes a learnt simulation do as much as its recording shows, by trying it.

How often wishes do nothing follows from how often rows are there, which wishes of both clusters and conflicts decide
together. So the wishes that `conflict.whatif.simulating.wishes` works out are tried, and each is wanted more or less
often until users change as much as they did. Nothing else is fitted: no conflict is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Any

import attrs
import numpy as np

from conflict.config.configuration import Configuration
from conflict.errors import ConfigurationError, HistoryError
from conflict.history.epochs import BinlogEpoch
from conflict.history.ingestion.plan import files_document
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.reading.readings import read_clusters
from conflict.history.run import Run
from conflict.history.scheduling.start import changes_older_rows, starts_in_the_middle
from conflict.history.scheduling.summaries import summarize
from conflict.history.timeline import RowChange, Transaction
from conflict.rules.table_setup import TableSetup
from conflict.whatif.simulating.clocks import EpochClock, journeys, never_arrived
from conflict.whatif.simulating.model_file import parse_model
from conflict.whatif.simulating.run import Simulated, simulate
from conflict.whatif.simulating.wishes import Numbers, done_by, learnt_workload
from ndb_formats.events.rows_event import Operation

# By cluster: how often its users inserted, updated or deleted rows of each table, by the table's name without database.
Done = Mapping[str, Mapping[tuple[str, str], int]]
TRIES, RUNS, CHANGES = 4, 4, 100_000
FIRST_SEED = 2**31
MOST = 1.5  # a wish is wanted at most so many times as often as before
_WISH_NAMES = {Operation.WRITE_ROW: "insert", Operation.UPDATE_ROW: "update", Operation.DELETE_ROW: "delete"}


def _fitted(document: dict[str, Any], done: Done, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """
    Return a document whose users change as much as was recorded.

    Args:
        document: A learnt simulation; see `conflict.whatif.simulating.learning.learn`.
        done: What users did.
        progress: Called with the runs that were made, and how many will be.
    """
    changes = sum(sum(each.values()) for each in done.values())
    runs = max(min(RUNS, CHANGES // max(changes, 1)), 1)
    for number in range(TRIES):
        model = parse_model(document)
        tried = []
        for again in range(number * runs, (number + 1) * runs):
            tried.append(simulate(model, FIRST_SEED + again))
            progress(again + 1, TRIES * runs)
        clusters = {}
        for side, (name, cluster) in enumerate(document["clusters"].items()):
            simulated: Counter[tuple[str, str]] = Counter()
            for run in tried:
                simulated.update(_done(run, side))
            work = _wanted_otherwise(cluster["workload"], done[name], simulated, runs, number)
            clusters[name] = {**cluster, "workload": work}
        document = {**document, "clusters": clusters}
    return document


def _done(run: Simulated, side: int) -> Counter[tuple[str, str]]:
    """Return what the users of a cluster did in a run."""
    rows = run.world.changes.rows[run.own_changes(side)]
    pairs = np.stack([run.world.key_table[rows["key"]], rows["operation"]], axis=1)
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    return Counter(
        {
            (run.model.tables[int(table)].name, _WISH_NAMES[Operation(int(operation))]): int(count)
            for (table, operation), count in zip(found, counts, strict=True)
        }
    )


def _wanted_otherwise(
    work: dict[str, Any],
    done: Mapping[tuple[str, str], int],
    simulated: Mapping[tuple[str, str], int],
    runs: int,
    number: int,
) -> dict[str, Any]:
    """
    Return a workload in which each wish is wanted more often if it did less than it should, and the other way.

    Later rounds change less, so that chance evens out between them (Robbins and Monro).
    """
    if "wishes" not in work:
        return work
    wishes = []
    for wish, table, weight in work["wishes"]:
        recorded, found = done.get((table, wish), 0), simulated.get((table, wish), 0) / runs
        ratio = min(max((recorded + 1) / (found + 1), 1 / MOST), MOST) ** (1 / (number + 1))
        wishes.append([wish, table, round(weight * ratio, 3)])
    before, after = (sum(weight for *_, weight in each) for each in (work["wishes"], wishes))
    rates = [round(rate * after / before, 3) for rate in work["transactions_per_second"]]
    return {**work, "wishes": wishes, "transactions_per_second": rates}


SECOND = 1_000_000


@attrs.define
class _Log:
    """
    What is learnt from of one cluster.

    Attributes:
        name: Its name.
        server_id: Its server id.
        role: Its role.
        epochs: All epochs.
        setups: Its tables, those alone that have a primary key.
        clock: When its epochs were.
        start: The first epoch of a log that starts in the middle; None if its tables were empty before.
    """

    name: str
    server_id: int
    role: str
    epochs: Sequence[BinlogEpoch] = attrs.field(repr=False)
    setups: Mapping[str, TableSetup] = attrs.field(repr=False)
    clock: EpochClock
    start: int | None = None

    def transactions(self) -> Iterator[Transaction]:
        """Yield the transactions of its users."""
        for epoch in self.epochs:
            yield from epoch.transactions


def read_logs(configuration: Configuration) -> tuple[_Log, _Log]:
    """
    Read the binlogs of both clusters.

    Raises:
        ConfigurationError: It is not about two clusters that replicate to each other.
        HistoryError: A cluster has no transaction of its own, or no table has a primary key.
    """
    if not configuration.links.is_pair:
        names = ", ".join(cluster.name for cluster in configuration.clusters)
        message = f"a workload is learnt from two clusters that replicate to each other; this run has {names}"
        raise ConfigurationError(message)
    run = make_run(configuration)
    setups, readings, found = run.setups.at_end, read_clusters(run), []
    for cluster in run.clusters:
        epochs = readings[cluster.name].epochs
        keyed = {name: setup for name, setup in setups[cluster.name].items() if setup.table.primary_key}
        if not any(epoch.transactions for epoch in epochs):
            message = (
                f"the binlogs of cluster {cluster.name} hold no transaction of its own, so there is nothing to learn"
            )
            raise HistoryError(message)
        if not keyed:
            message = f"no table of cluster {cluster.name} has a primary key, and without one nothing tells rows apart"
            raise HistoryError(message)
        clock = EpochClock.of_log(epochs)
        found.append(_Log(cluster.name, cluster.server_id, cluster.role.value, epochs, keyed, clock))
    first, second = found
    return (_from_the_middle(first), _from_the_middle(second)) if _starts_in_the_middle(run, found) else (first, second)


def _starts_in_the_middle(run: Run, logs: Sequence[_Log]) -> bool:
    """Whether tables held rows before the logs start, as `resolve` finds it."""
    summaries = {log.name: [summarize(epoch) for epoch in log.epochs] for log in logs}
    if starts_in_the_middle(run.span, run.links, summaries):
        return True
    return run.start_is_open and any(changes_older_rows(log.epochs) for log in logs)


def _from_the_middle(log: _Log) -> _Log:
    return attrs.evolve(log, start=log.epochs[0].number)


def learnt_model(
    configuration: Configuration,
    scale: float = 1.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """
    Return the document of a simulation that is learnt from the binlogs of two clusters, and says which these are.

    Args:
        configuration: The run.
        scale: Factor for the rates of transactions.
        progress: See `learn`.

    Raises:
        ConfigurationError: It is not about two clusters that replicate to each other.
        HistoryError: A cluster has no transaction of its own, no table has a primary key, or logs that start in the
            middle have no time in common.
    """
    logs = read_logs(configuration)
    found = {**scaled(learn(logs, progress), scale), "learnt_from": files_document(configuration.files)}
    sides = [(log.clock, log.epochs, log.server_id) for log in logs]
    starts = {log.name: log.start for log in logs if log.start is not None}
    found |= {"starts_in_the_middle": starts} if starts else {}
    late = {log.name: never_arrived(sides[side], sides[1 - side]) for side, log in enumerate(logs)}
    return {**found, "not_arrived": late} if any(late.values()) else found


def learn(logs: tuple[_Log, _Log], progress: Callable[[int, int], None] = lambda done, total: None) -> dict[str, Any]:
    """
    Return the document of a simulation that does what the users of both clusters did.

    Of logs that start in the middle, what users did while both were written.

    Args:
        logs: The logs of both clusters.
        progress: Called with the simulations that were tried, and how many will be.

    Raises:
        HistoryError: Logs that start in the middle have no time in common in which users changed anything.
    """
    travel = journeys(*((log.clock, log.epochs, log.server_id) for log in logs))
    logs = _together(logs, travel.shift)
    loaded = [_loading(log) for log in logs]
    tables = _tables_of(logs)
    numbers = _row_numbers(logs, loaded, tables)
    begins = [_begin(log, count) for log, count in zip(logs, loaded, strict=True)]
    # The second cluster's times, in those of the first one.
    shift = [0, travel.shift]
    begin = min(moment + by for moment, by in zip(begins, shift, strict=True))
    end = max(log.clock.time(log.epochs[-1].number) + log.clock.epoch + by for log, by in zip(logs, shift, strict=True))
    seconds = max((end - begin) / SECOND, 1.0)
    clusters, done = {}, {}
    for side, log in enumerate(logs):
        start = (begin - shift[side]) // log.clock.epoch * log.clock.epoch
        users = list(log.transactions())[loaded[side] :]
        done[log.name] = done_by(users, numbers)
        clusters[log.name] = {
            "server_id": log.server_id,
            "role": log.role,
            "epoch_ms": log.clock.epoch / 1000,
            "checkpoint_ms": log.clock.checkpoint / 1000,
            "workload": learnt_workload(log.epochs, log.clock, users, numbers, start, seconds),
            "link": {"trace_ms": travel.trace(side, start)},
            "applier": {"epoch_ms": 0, "row_us": 0},
        }
    document = {
        "seconds": round(seconds, 3),
        "tables": [_table(logs, name, numbers[name]) for name in tables],
        "clusters": clusters,
    }
    return _fitted(document, done, progress)


def scaled(document: dict[str, Any], factor: float) -> dict[str, Any]:
    """Return a document with so many times as many transactions."""
    clusters = {}
    for name, cluster in document["clusters"].items():
        work = cluster["workload"]
        rates = [round(rate * factor, 3) for rate in work["transactions_per_second"]]
        clusters[name] = {**cluster, "workload": {**work, "transactions_per_second": rates}}
    return {**document, "clusters": clusters}


# -----------------------------------------------------------------------------------------------------------
# Tables and rows
# -----------------------------------------------------------------------------------------------------------


def _together(logs: tuple[_Log, _Log], shift: int) -> tuple[_Log, _Log]:
    """Return the logs from where both are there, if they start in the middle; `shift`: to the first one's clock."""
    if all(log.start is None for log in logs):
        return logs
    shifts = 0, shift
    begin = max(log.clock.time(log.epochs[0].number) + by for log, by in zip(logs, shifts, strict=True))
    first, second = (
        attrs.evolve(log, epochs=[each for each in log.epochs if log.clock.time(each.number) + by >= begin])
        for log, by in zip(logs, shifts, strict=True)
    )
    if not any(epoch.transactions for log in (first, second) for epoch in log.epochs) or not _tables_of(
        (first, second)
    ):
        message = (
            "the logs start in the middle, and while both were written users changed no row of a table with a primary "
            "key; give logs of one time"
        )
        raise HistoryError(message)
    return first, second


def _tables_of(logs: Sequence[_Log]) -> list[str]:
    """Return the tables that users changed."""
    changed = {change.table for log in logs for each in log.transactions() for change in each.changes}
    return [name for name in logs[0].setups if name in changed and all(name in log.setups for log in logs)]


def _loading(log: _Log) -> int:
    """Return how many transactions loaded the tables: those at the beginning that only insert; from the middle none."""
    if log.start is not None:
        return 0
    return sum(1 for _ in takewhile(_only_inserts, log.transactions()))


def _only_inserts(transaction: Transaction) -> bool:
    return all(change.operation is Operation.WRITE_ROW for change in transaction.changes)


def _begin(log: _Log, loaded: int) -> int:
    """Return when the users of a cluster began, by its own clock; its last epoch if they did nothing more."""
    users = [each.epoch for each in log.transactions()][loaded:]
    return log.clock.time(users[0] if users else log.epochs[-1].number)


def _row_numbers(logs: Sequence[_Log], loaded: Sequence[int], tables: Sequence[str]) -> dict[str, Numbers]:
    """Number the rows of each table."""
    there: dict[str, dict[bytes, int]] = {name: {} for name in tables}
    met: dict[str, dict[bytes, bool]] = {name: {} for name in tables}  # whether it was there when users first met it
    again: Counter[str] = Counter()  # inserts of rows that were met before
    inserts: Counter[str] = Counter()
    for log, count in zip(logs, loaded, strict=True):
        for number, transaction in enumerate(log.transactions()):
            for change in (each for each in transaction.changes if each.table in met):
                rows, known = there[change.table], met[change.table]
                if number < count:
                    rows.setdefault(change.key, len(rows))
                    continue
                inserted = change.operation is Operation.WRITE_ROW
                inserts[change.table] += inserted
                again[change.table] += inserted and (change.key in known or change.key in rows)
                known.setdefault(change.key, not inserted)
    found = {}
    for name in tables:
        rows = there[name]
        for key, was_there in met[name].items():
            if was_there:
                rows.setdefault(key, len(rows))
        records = len(rows)
        for key in met[name]:
            rows.setdefault(key, len(rows))
        found[name] = Numbers(rows, records, grows=inserts[name] > 0 and again[name] < inserts[name] / 10)
    return found


def _table(logs: Sequence[_Log], name: str, numbers: Numbers) -> dict[str, Any]:
    setups = [log.setups[name] for log in logs]
    columns = len(setups[0].table.columns) - len(setups[0].table.key_ordinals)
    by_column = any(setup.function is not None and setup.function.column for setup in setups)
    # The resolve column is the model's own.
    data = max(columns - by_column, 1)
    found: dict[str, Any] = {"name": name.partition(".")[2], "recordcount": numbers.records, "columns": min(data, 62)}
    found["function"] = {
        log.name: _function_text(setup) for log, setup in zip(logs, setups, strict=True) if setup.function is not None
    }
    found["binlog_type"] = _binlog_type(setups[0])
    if by_column:
        found["x"] = _stamp(logs, name, setups)
    return found


def _function_text(setup: TableSetup) -> str:
    function = setup.function
    assert function is not None
    return f"{function.spec.name}(x)" if function.column else str(function)


def _binlog_type(setup: TableSetup) -> int:
    """Return the binlog type with the format that a table has."""
    made = setup.format
    if made.as_write:
        return 2 if made.updated_only else 3
    return {(True, False): 6, (False, False): 7, (True, True): 8, (False, True): 9}[made.updated_only, made.minimal]


def _stamp(logs: Sequence[_Log], name: str, setups: Sequence[TableSetup]) -> str:
    """Return what changes set the resolve column to: a clock if its values mostly rise from change to change."""
    rising = total = 0
    for log, setup in zip(logs, setups, strict=True):
        column = next(each.function.column for each in setups if each.function is not None and each.function.column)
        ordinal = setup.table.ordinal(column)
        values = [
            _value(change, ordinal) for each in log.transactions() for change in each.changes if change.table == name
        ]
        known = [value for value in values if value is not None]
        rising += sum(later > earlier for earlier, later in pairwise(known))
        total += max(len(known) - 1, 0)
    return "clock" if rising > 0.75 * total else "version"


def _value(change: RowChange, ordinal: int) -> int | None:
    value = None if change.after is None else change.after.value(ordinal)
    return value if isinstance(value, int) else None
