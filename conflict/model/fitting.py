"""
Makes a learnt simulation do as much as its recording shows, by trying it.

How often wishes do nothing follows from how often rows are there, which wishes of both clusters and conflicts decide
together. So the wishes that `conflict.model.wishes` works out are tried, and each is wanted more or less often until
users change as much as they did. Nothing else is fitted: no conflict is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from conflict.model.model_file import parse_model
from conflict.model.run import Simulated, simulate
from ndb_formats.events.rows_event import Operation

__all__ = ["Done", "fitted"]

# By cluster: how often its users inserted, updated or deleted rows of each table, by the table's name without database.
Done = Mapping[str, Mapping[tuple[str, str], int]]
TRIES, RUNS, CHANGES = 4, 4, 100_000
FIRST_SEED = 2**31
MOST = 1.5  # a wish is wanted at most so many times as often as before
_WISH_NAMES = {Operation.WRITE_ROW: "insert", Operation.UPDATE_ROW: "update", Operation.DELETE_ROW: "delete"}


def fitted(document: dict[str, Any], done: Done, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """
    Return a document whose users change as much as was recorded.

    Args:
        document: A learnt simulation; see `conflict.model.learning.learn`.
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
