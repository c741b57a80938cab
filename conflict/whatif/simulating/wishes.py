"""
What the users of a cluster wanted, from what its binlog shows that they did.

An insert of a row that was there failed, with its whole transaction, and an update of a row that was not there did
nothing: no binlog shows them. So how often users wanted what follows from how often they got it and how often rows
were there. Nothing tells what transactions were tried again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from conflict.history.epochs import BinlogEpoch
from conflict.history.timeline import Transaction
from conflict.whatif.simulating.clocks import EpochClock
from ndb_formats.events.rows_event import Operation

Shares = npt.NDArray[np.float64]
MOST_SLOTS = 2000  # in which rates are counted
ROUNDS, RARELY = 5, 0.02
INSERT, UPDATE, DELETE = "insert", "update", "delete"
_WISHES = {Operation.WRITE_ROW: INSERT, Operation.UPDATE_ROW: UPDATE, Operation.DELETE_ROW: DELETE}
SECOND = 1_000_000


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


def learnt_workload(
    epochs: Sequence[BinlogEpoch],
    clock: EpochClock,
    users: Sequence[Transaction],
    numbers: Mapping[str, Numbers],
    begin: int,
    seconds: float,
) -> dict[str, Any]:
    """
    Return what the users of a cluster wanted: how often, how much at a time, in which tables and rows.

    Args:
        epochs: Its binlog.
        clock: When its epochs were.
        users: The transactions of its users.
        numbers: The tables.
        begin: When the epoch began in which they began, by its clock.
        seconds: How long they worked.
    """
    there = _existence(epochs, clock, numbers, begin)
    done, wanted, sizes = _counts(users, numbers)
    # Slots are epochs, because users wait when their cluster does; in long logs, several.
    slot = clock.epoch * math.ceil(seconds * SECOND / MOST_SLOTS / clock.epoch)
    slot_seconds = slot / SECOND
    slots = np.zeros(math.ceil(seconds / slot_seconds) + 1)
    for transaction in users:
        number = (clock.time(transaction.epoch) - begin) // slot
        slots[min(max(number, 0), len(slots) - 1)] += 1
    wishes, weights, present = _wishes(done, wanted, there, numbers)
    fits, fails = _chances(wishes, present, numbers)
    tried = _sizes(sizes, fits, fails)
    scale = sum(tried.values()) / max(sum(sizes.values()), 1)
    return {
        "transactions_per_second": [round(float(count) / slot_seconds * scale, 3) for count in slots],
        "slot_seconds": slot_seconds,
        "slots": "epochs",
        "rowspertransaction": {str(size): round(float(weight), 3) for size, weight in tried.items() if weight},
        **_listed_wishes(wishes, _stays(users, numbers)),
        "insertkeys": {short_name(name): "own" if each.grows else "any" for name, each in numbers.items()},
        "columnsperupdate": "all",
        "keyweights": {short_name(name): [round(float(each), 4) for each in weights[name]] for name in numbers},
    }


def _listed_wishes(wishes: Mapping[tuple[str, str], float], stays: float) -> dict[str, Any]:
    """Return the entries of a workload that list wishes; none if users did nothing."""
    listed = [[wish, short_name(table), round(weight, 3)] for (table, wish), weight in sorted(wishes.items())]
    return {"wishes": listed, "sametable": round(stays, 3)} if listed else {}


def _existence(
    epochs: Sequence[BinlogEpoch], clock: EpochClock, numbers: Mapping[str, Numbers], begin: int
) -> dict[str, Shares]:
    """
    Return, per table, for which share of the time since users began each row was there on a cluster.

    By its own changes and those of its applier. Shape (rows,).
    """
    there = {name: np.arange(len(each.row)) < each.records for name, each in numbers.items()}
    since = {name: np.full(len(each.row), begin) for name, each in numbers.items()}
    total = {name: np.zeros(len(each.row)) for name, each in numbers.items()}
    end = begin + 1
    for epoch in epochs:
        moment = max(clock.time(epoch.number), begin)
        end = max(end, moment)
        own = (change for each in epoch.transactions for change in each.changes)
        for change in (*own, *(change for _, change in epoch.consequences)):
            number = numbers[change.table].row.get(change.key) if change.table in numbers else None
            if number is not None:
                total[change.table][number] += there[change.table][number] * (moment - since[change.table][number])
                since[change.table][number] = moment
                there[change.table][number] = change.operation is not Operation.DELETE_ROW
    return {name: (total[name] + there[name] * (end - since[name])) / (end - begin) for name in numbers}


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


def done_by(users: Sequence[Transaction], numbers: Mapping[str, Numbers]) -> dict[tuple[str, str], int]:
    """Return how often users did what, by the name of the table without its database."""
    return {(short_name(table), wish): count for (table, wish), count in _counts(users, numbers)[0].items()}


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


def short_name(table: str) -> str:
    """Return the name of a table without its database."""
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
    Where nothing committed, users are taken to try one change at a time.
    """
    if not any(sizes):
        return {1: 1.0}
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
