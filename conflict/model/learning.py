"""
A simulation learnt from recorded binlogs of two clusters: tables, what users want, rates over time, how epochs travel.

The result is the document of a file that `conflict.model.model_file` reads. docs/model.md says what is assumed.

Binlogs show what users did, not what they wanted: an insert of a row that was there failed with its whole transaction,
and an update of a row that was not there did nothing. So wishes are found by how often rows were there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from conflict.config.configuration import Configuration
from conflict.errors import HistoryError
from conflict.history.epochs import BinlogEpoch
from conflict.history.following import follow_definitions
from conflict.history.model import RowChange, Transaction
from conflict.history.reading import read_cluster
from conflict.model.clocks import EpochClock, journeys
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import Operation

__all__ = ["Log", "learn", "read_logs"]

Shares = npt.NDArray[np.float64]
MOST_SLOTS = 2000  # in which rates are counted
ROUNDS, RARELY = 5, 0.02
INSERT, UPDATE, DELETE = "insert", "update", "delete"
_WISHES = {Operation.WRITE_ROW: INSERT, Operation.UPDATE_ROW: UPDATE, Operation.DELETE_ROW: DELETE}
SECOND = 1_000_000


@attrs.define
class Log:
    """
    What is learnt from of one cluster.

    Attributes:
        name: Its name.
        server_id: Its server id.
        role: Its role.
        epochs: All epochs.
        setups: Its tables, those alone that have a primary key.
        clock: When its epochs were.
    """

    name: str
    server_id: int
    role: str
    epochs: Sequence[BinlogEpoch] = attrs.field(repr=False)
    setups: Mapping[str, TableSetup] = attrs.field(repr=False)
    clock: EpochClock

    def transactions(self) -> Iterator[Transaction]:
        """Yield the transactions of its users."""
        for epoch in self.epochs:
            yield from epoch.transactions


def read_logs(configuration: Configuration) -> tuple[Log, Log]:
    """
    Read the binlogs of both clusters.

    Raises:
        HistoryError: A cluster has no transaction of its own.
    """
    run = follow_definitions(configuration)
    setups, found = run.setups(), []
    for cluster in run.clusters:
        epochs = read_cluster(cluster, run).epochs
        keyed = {name: setup for name, setup in setups[cluster.name].items() if setup.table.primary_key}
        if not any(epoch.transactions for epoch in epochs):
            message = (
                f"the binlogs of cluster {cluster.name} hold no transaction of its own, so there is nothing to learn"
            )
            raise HistoryError(message)
        clock = EpochClock.of([epoch.number for epoch in epochs])
        found.append(Log(cluster.name, cluster.server_id, cluster.role.value, epochs, keyed, clock))
    first, second = found
    return first, second


def learn(logs: tuple[Log, Log]) -> dict[str, Any]:
    """Return the document of a simulation that does what the users of both clusters did."""
    loaded = [_loading(log) for log in logs]
    tables = _tables_of(logs)
    numbers = _row_numbers(logs, loaded, tables)
    travel = journeys(*((log.clock, log.epochs, log.server_id) for log in logs))
    begins = [_begin(log, count) for log, count in zip(logs, loaded, strict=True)]
    # The second cluster's times, in those of the first one.
    shift = [0, travel.shift]
    begin = min(moment + by for moment, by in zip(begins, shift, strict=True))
    end = max(log.clock.time(log.epochs[-1].number) + by for log, by in zip(logs, shift, strict=True))
    seconds = max((end - begin) / SECOND, 1.0)
    clusters = {}
    for side, log in enumerate(logs):
        start = begin - shift[side]
        users = list(log.transactions())[loaded[side] :]
        clusters[log.name] = {
            "server_id": log.server_id,
            "role": log.role,
            "epoch_ms": log.clock.epoch / 1000,
            "checkpoint_ms": log.clock.checkpoint / 1000,
            "workload": _workload(log, users, start, seconds, _existence(log, numbers, start), numbers),
            "link": {"trace_ms": travel.trace(side, begin)},
            "applier": {"epoch_ms": 0, "row_us": 0},
        }
    return {
        "seconds": round(seconds, 3),
        "tables": [_table(logs, name, numbers[name]) for name in tables],
        "clusters": clusters,
    }


# -----------------------------------------------------------------------------------------------------------
# Tables and rows
# -----------------------------------------------------------------------------------------------------------


@attrs.frozen
class Numbers:
    """
    The rows of a table, numbered: those that were there when users began come first.

    Attributes:
        row: Number of each row.
        records: How many were there.
        grows: Whether users insert rows with keys that were not used before.
    """

    row: Mapping[bytes, int] = attrs.field(repr=False)
    records: int
    grows: bool


def _tables_of(logs: Sequence[Log]) -> list[str]:
    """Return the tables that users changed."""
    changed = {change.table for log in logs for each in log.transactions() for change in each.changes}
    return [name for name in logs[0].setups if name in changed and all(name in log.setups for log in logs)]


def _loading(log: Log) -> int:
    """Return how many transactions loaded the tables: those at the beginning that only insert."""
    return sum(1 for _ in takewhile(_only_inserts, log.transactions()))


def _only_inserts(transaction: Transaction) -> bool:
    return all(change.operation is Operation.WRITE_ROW for change in transaction.changes)


def _begin(log: Log, loaded: int) -> int:
    """Return when the users of a cluster began, by its own clock; its last epoch if they did nothing more."""
    users = [each.epoch for each in log.transactions()][loaded:]
    return log.clock.time(users[0] if users else log.epochs[-1].number)


def _row_numbers(logs: Sequence[Log], loaded: Sequence[int], tables: Sequence[str]) -> dict[str, Numbers]:
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


def _table(logs: Sequence[Log], name: str, numbers: Numbers) -> dict[str, Any]:
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


def _stamp(logs: Sequence[Log], name: str, setups: Sequence[TableSetup]) -> str:
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


# -----------------------------------------------------------------------------------------------------------
# What users wanted
# -----------------------------------------------------------------------------------------------------------


def _existence(log: Log, numbers: Mapping[str, Numbers], begin: int) -> dict[str, Shares]:
    """
    Return, per table, for which share of the time since users began each row was there on a cluster.

    By its own changes and those of its applier. Shape (rows,).
    """
    there = {name: np.arange(len(each.row)) < each.records for name, each in numbers.items()}
    since = {name: np.full(len(each.row), begin) for name, each in numbers.items()}
    total = {name: np.zeros(len(each.row)) for name, each in numbers.items()}
    end = begin + 1
    for epoch in log.epochs:
        moment = max(log.clock.time(epoch.number), begin)
        end = max(end, moment)
        own = (change for each in epoch.transactions for change in each.changes)
        for change in (*own, *(change for _, change in epoch.consequences)):
            number = numbers[change.table].row.get(change.key) if change.table in numbers else None
            if number is not None:
                total[change.table][number] += there[change.table][number] * (moment - since[change.table][number])
                since[change.table][number] = moment
                there[change.table][number] = change.operation is not Operation.DELETE_ROW
    return {name: (total[name] + there[name] * (end - since[name])) / (end - begin) for name in numbers}


def _workload(
    log: Log,
    users: Sequence[Transaction],
    begin: int,
    seconds: float,
    there: Mapping[str, Shares],
    numbers: Mapping[str, Numbers],
) -> dict[str, Any]:
    """Return what the users of a cluster wanted: how often, how much at a time, of which tables and rows."""
    done, wanted, sizes = _counts(users, numbers)
    # Slots as short as an epoch, because users wait when their cluster does.
    slot_seconds = max(log.clock.epoch / SECOND, seconds / MOST_SLOTS)
    slots = np.zeros(math.ceil(seconds / slot_seconds))
    for transaction in users:
        slot = int((log.clock.time(transaction.epoch) - begin) / SECOND / slot_seconds)
        slots[min(max(slot, 0), len(slots) - 1)] += 1
    wishes, weights, present = _wishes(done, wanted, there, numbers)
    fits, fails = _chances(wishes, present, numbers)
    tried = _sizes(sizes, fits, fails)
    scale = sum(tried.values()) / max(sum(sizes.values()), 1)
    return {
        "transactions_per_second": [round(float(count) / slot_seconds * scale, 3) for count in slots],
        "slot_seconds": slot_seconds,
        "rowspertransaction": {str(size): round(float(weight), 3) for size, weight in tried.items() if weight},
        "sametable": round(_stays(users, numbers), 3),
        "wishes": [[wish, _short(table), round(weight, 3)] for (table, wish), weight in sorted(wishes.items())],
        "insertkeys": {_short(name): "own" if each.grows else "any" for name, each in numbers.items()},
        "columnsperupdate": "all",
        "keyweights": {_short(name): [round(float(each), 4) for each in weights[name]] for name in numbers},
    }


def _counts(
    users: Sequence[Transaction], numbers: Mapping[str, Numbers]
) -> tuple[Counter[tuple[str, str]], dict[str, Shares], Counter[int]]:
    """Return how often users did what, how often they changed each row, and transactions by number of changes."""
    done: Counter[tuple[str, str]] = Counter()
    wanted = {name: np.zeros(len(each.row)) for name, each in numbers.items()}
    sizes: Counter[int] = Counter()
    for transaction in users:
        changes = [change for change in transaction.changes if change.table in numbers]
        sizes[len(changes)] += 1
        for change in changes:
            done[change.table, _WISHES[change.operation]] += 1
            wanted[change.table][numbers[change.table].row[change.key]] += 1
    return done, wanted, sizes


def _stays(users: Sequence[Transaction], numbers: Mapping[str, Numbers]) -> float:
    """Return the share of changes in the table of their transaction's first one, besides those by chance."""
    tables: Counter[str] = Counter()
    same = others = 0
    for transaction in users:
        names = [change.table for change in transaction.changes if change.table in numbers]
        tables.update(names)
        same += sum(name == names[0] for name in names[1:])
        others += max(len(names) - 1, 0)
    total = sum(tables.values())
    by_chance = sum((count / total) ** 2 for count in tables.values()) if total else 1.0
    if not others or by_chance == 1:
        return 0.0
    return max((same / others - by_chance) / (1 - by_chance), 0.0)


def _short(table: str) -> str:
    return table.partition(".")[2]


def _wishes(
    done: Mapping[tuple[str, str], int],
    wanted: Mapping[str, Shares],
    there: Mapping[str, Shares],
    numbers: Mapping[str, Numbers],
) -> tuple[dict[tuple[str, str], float], dict[str, Shares], dict[str, float]]:
    """
    Return how often users wanted what, how much they wanted each row, and the share of wishes whose row was there.

    Each of the three follows from the others; a few rounds settle them.

    Args:
        done: How often they did what, by table and wish.
        wanted: How often they changed each row.
        there: For which share of the time each row was there.
        numbers: The tables.
    """
    weights = {name: np.ones(len(counts)) if _are_alike(counts) else counts for name, counts in wanted.items()}
    uneven = [name for name, counts in wanted.items() if not (_are_alike(counts) or numbers[name].grows)]
    wishes: dict[tuple[str, str], float] = {}
    present: dict[str, float] = {}
    for _ in range(ROUNDS):
        present = {name: _average(there[name], each) for name, each in weights.items()}
        wishes = {
            (table, wish): count / _chance(wish, present[table], grows=numbers[table].grows)
            for (table, wish), count in done.items()
        }
        for name in uneven:
            inserts = wishes.get((name, INSERT), 0.0)
            total = max(inserts + sum(wishes.get((name, each), 0.0) for each in (UPDATE, DELETE)), 1.0)
            fits = ((1 - there[name]) * inserts + there[name] * (total - inserts)) / total
            weights[name] = wanted[name] / np.maximum(fits, RARELY)
    return wishes, weights, present


def _average(shares: Shares, weights: Shares) -> float:
    return float(np.clip(np.average(shares, weights=weights), RARELY, 1 - RARELY)) if weights.sum() else 0.5


def _chance(wish: str, share: float, *, grows: bool) -> float:
    """Return how likely a wish fits its row. In a table that grows, users know which rows there are."""
    if grows:
        return 1.0
    return 1 - share if wish == INSERT else share


def _chances(
    wishes: Mapping[tuple[str, str], float], present: Mapping[str, float], numbers: Mapping[str, Numbers]
) -> tuple[float, float]:
    """Return how likely a wish does something, and how likely it makes its transaction fail."""
    total = sum(wishes.values())
    fits = fails = 0.0
    for (table, wish), weight in wishes.items():
        chance = _chance(wish, present[table], grows=numbers[table].grows)
        fits += weight * chance / total
        fails += weight * (1 - chance) / total if wish == INSERT else 0.0
    return fits, fails


def _sizes(sizes: Mapping[int, int], fits: float, fails: float) -> dict[int, float]:
    """
    Return how many transactions of each size users tried, from those that committed with each number of changes.

    Of the wishes of a transaction that does not fail, a share does something: binomial, solved from the largest size.
    """
    does = fits / (1 - fails)
    largest = max(sizes, default=1)
    left = np.array([float(sizes.get(size, 0)) for size in range(largest + 1)])
    tried: dict[int, float] = {}
    for size in range(largest, 0, -1):
        committed = max(left[size], 0) / does**size
        tried[size] = committed / (1 - fails) ** size
        for made in range(size + 1):
            left[made] -= committed * math.comb(size, made) * does**made * (1 - does) ** (size - made)
    return dict(sorted(tried.items()))


def _are_alike(counts: Shares) -> bool:
    """Whether rows are wanted alike: the counts spread no more than chance has it."""
    mean = counts.mean() if len(counts) else 0.0
    return bool(not mean or counts.var() <= mean * (1 + 4 * np.sqrt(2 / len(counts))))
