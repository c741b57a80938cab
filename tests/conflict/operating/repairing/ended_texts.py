"""
Runs as they ended, of small Histories in the one-line language of `tests.conflict.histories`.

Their words are done in exactly their order. An own epoch of a cluster commits a
microsecond after that many seconds, by its clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import attrs
import pyarrow as pa

from conflict.engine.inference.replay import ObservedApplier
from conflict.history.timeline import DefinitionChange, EpochApply, Origin, Transaction
from conflict.operating.repairing.ended_run import EndedRun
from conflict.operating.repairing.fitting import LostChange
from conflict.operating.repairing.watched_cluster import WatchedCluster
from conflict.rules.decision import Cause, Verdict
from conflict.rules.replication_table import Role
from conflict.runs.reference_run import Replayed
from tests.conflict.histories import NO_ROLES, NONE_IGNORED, history, key, setups

SECOND = 1_000_000
PRIMARY_A = {"A": Role.PRIMARY, "B": Role.SECONDARY}


def ended_text(
    text: str,
    a: str | None = None,
    b: str | None = None,
    *,
    roles: Mapping[str, Role] = NO_ROLES,
    ahead: float = 0,
    binlog_type: int = 7,
    filtered: Mapping[str, Mapping[str, frozenset[str]]] = {},
    ignored: Mapping[str, Mapping[str, frozenset[int]]] = NONE_IGNORED,
    sources: Mapping[str, str] = {"A": "B", "B": "A"},
) -> EndedRun:
    """
    Do what a text says, and return the clusters.

    Args:
        text: Words of the language.
        a: Conflict function of the judged tables on A.
        b: The same on B.
        roles: Role of each cluster that has one.
        ahead: By how many seconds B's clock is ahead.
        binlog_type: Of all tables.
        filtered: By cluster and source, tables whose changes the applier drops.
        ignored: By cluster and source, the server ids that it does not take from there.
        sources: By cluster, those that it replicates from.
    """
    made = history(text, roles)
    clusters = tuple(
        attrs.evolve(
            each,
            timeline=_placed(each.name, each.timeline),
            filtered=filtered.get(each.name, {}),
            ignored=ignored.get(each.name, {}),
        )
        for each in made.clusters
    )
    made = attrs.evolve(made, clusters=clusters)
    found = setups(a, b, binlog_type=binlog_type)
    before: dict[Origin, Any] = {}
    origins = frozenset(change.origin for each in clusters for change in _changes(each.timeline))
    here = {
        each.name: WatchedCluster(each, found[each.name], made.layouts, watched=origins, found=before)
        for each in clusters
    }
    appliers = {name: ObservedApplier(cluster) for name, cluster in here.items()}
    timelines = {each.name: iter(each.timeline) for each in clusters}
    for word in text.split():
        item = next(timelines[word[0]])
        if isinstance(item, Transaction):
            here[word[0]].commit(item)
        else:
            assert isinstance(item, EpochApply)
            appliers[word[0]].apply_epoch(item, here[item.source])
    times = {
        each.name: {item.epoch: round((item.epoch + ahead * (each.name == "B")) * SECOND) + 1 for item in each.timeline}
        for each in clusters
    }
    tables = [setup.table for setup in found["A"].values()]
    by_name = {each.name: each for each in clusters}
    links = SimpleNamespace(sources=lambda name: [by_name[each] for each in sources.get(name, "")])
    run: Any = SimpleNamespace(schema=SimpleNamespace(tables=tables), links=links)
    return EndedRun(_result(here), Replayed(run, made, appliers, times), before)


def _placed(name: str, items: Iterable[Transaction | EpochApply | DefinitionChange]) -> tuple[Any, ...]:
    """Give each change of a user a place in a log: ``A.000001``, position own epoch times 100, plus its number."""
    made = Counter[int]()
    placed = []
    for item in items:
        if isinstance(item, Transaction):
            changes = []
            for change in item.changes:
                origin = Origin(f"/logs/{name}.000001", item.epoch * 100 + made[item.epoch])
                made[item.epoch] += 1
                changes.append(attrs.evolve(change, origin=origin))
            item = attrs.evolve(item, changes=tuple(changes))  # noqa: PLW2901  # the same, placed
        placed.append(item)
    return tuple(placed)


def _changes(items: Iterable[Any]) -> Iterable[Any]:
    return (change for item in items if isinstance(item, Transaction) for change in item.changes)


def _result(here: Mapping[str, WatchedCluster]) -> Any:
    """Return what a plan reads of a result: nothing contradicts it, and nothing is open."""
    rows = {name: dict(Counter(table for table, _ in each.store.rows)) for name, each in here.items()}
    run = {
        "contradicted_by_binlogs": 0,
        "log_remarks": [],
        "likely_causes": [],
        "other_readings": [],
        "rows": rows,
    }
    folder = SimpleNamespace(uri="result", read_table=lambda path, schema: pa.Table.from_pylist([], schema))
    return SimpleNamespace(run=run, folder=folder)


def lost_of(ended: EndedRun) -> list[LostChange]:
    """Return the changes that appliers rejected, in the order in which they were committed, as `lost` has them."""
    why = {
        each.origin: (f"rejected by {each.applier}, {each.cause.name}", each.cause is Cause.TRANS_IN_CONFLICT)
        for each in ended.replayed.outcomes
        if each.verdict is Verdict.REJECTED and each.ordinal >= 0
    }
    found = [
        LostChange(name, (item.epoch, item.group), change, *why[change.origin])
        for name in ended.clusters
        for item in ended.cluster(name).cluster.timeline
        if isinstance(item, Transaction)
        for change in item.changes
        if change.origin in why
    ]
    return sorted(found, key=lambda each: (ended.committed_at(each.cluster, each.position[0]), each.cluster))


def row(number: int, table: str = "t") -> tuple[str, bytes]:
    """Return the row of a table with that key."""
    return f"d.{table}", key(number)
