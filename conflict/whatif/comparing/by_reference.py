"""
The figures of a pair whose function is a rule in Python: the reference engine decides, change by change.

The History is that of the run as it is configured: epochs at their places, rows judged when they were. Computes the
same as `conflict.whatif.comparing.compare_job`: docs/compare.md, "Figures".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import attrs

from conflict.engine.inference.replay import ObservedApplier, observed_appliers
from conflict.engine.ledger.layout import ResultOptions
from conflict.engine.ledger.ledger import table_figures
from conflict.engine.ledger.resolution import Resolution
from conflict.engine.ledger.resolution_ledger import ReferenceLedger
from conflict.engine.reference.applier import Applier, effects_of
from conflict.engine.reference.cluster import LoggedChange, ReplayedCluster
from conflict.engine.reference.epoch_pass import EpochPass
from conflict.engine.reference.replay import replay
from conflict.history.model import History
from conflict.history.timeline import RowChange, Transaction
from conflict.rules.decision import Verdict
from conflict.rules.lost_updates import loses
from conflict.runs.rows.task_inputs import TaskInputs
from conflict.whatif.comparing.figures import Figures
from conflict.whatif.comparing.trials import Trial
from ndb_formats.events.rows_event import ConflictFlag, Operation

# A change of a user: its cluster, its epoch, and its number among the cluster's changes of that epoch.
Made = tuple[str, int, int]
# A transaction: its cluster, its epoch, and its group in it.
OfTransaction = tuple[str, int, int]


def why_not_by_reference(run: TaskInputs, trial: Trial) -> str | None:
    """Return why the reference engine does not decide a pair; None if it does."""
    reasons = {
        "the logs start in the middle": run.part.starts_in_the_middle,
        "some rows are not compared": run.careful is not None,
        "definitions change in the binlogs": any(cluster.versions for cluster in trial.clusters),
        "it is tried in the format of the log alone": trial.pair.binlog_type is not None,
    }
    why = next((reason for reason, holds in reasons.items() if holds), None)
    return None if why is None else f"a rule in Python is called by the reference engine, and {why}"


def figures_by_reference(history: History, trial: Trial) -> Figures:
    """
    Return the figures of a pair.

    Args:
        history: The run as it is configured.
        trial: What the pair makes of the clusters.
    """
    roles = {cluster.name: cluster.role for cluster in trial.clusters}
    clusters = tuple(attrs.evolve(each, role=roles[each.name]) for each in history.clusters)
    history = attrs.evolve(history, clusters=clusters)
    setups = {each.name: {setup.table.full_name: setup for setup in each.setups} for each in trial.clusters}
    skip = any(cluster.skip_missing for cluster in trial.clusters)
    observed = observed_appliers(history, setups, skip_missing=skip)
    appliers = {name: _CountingApplier(each.here) for name, each in observed.items()}
    resolution = replay(history, appliers)
    ledger = ReferenceLedger(history, setups, resolution, options=ResultOptions(all_outcomes=False))
    return _figures(ledger, appliers)


@attrs.define
class _CountingApplier(ObservedApplier):
    """
    An applier that counts by epoch apply: two of them can be in one own epoch, and be of one epoch of the source.

    Attributes:
        logged: Rows that it logged.
        rejections: Transactions with rejected changes, each time that they were applied, and how many these are.
    """

    logged: int = 0
    rejections: list[tuple[OfTransaction, int]] = attrs.field(factory=list)

    def commit(self, final: EpochPass, source: ReplayedCluster) -> None:
        """Count, and commit."""
        self.logged += len(effects_of(final))
        groups = Counter(
            each.entry.group
            for each in final.decided
            if each.entry.ordinal >= 0 and each.decision.verdict is Verdict.REJECTED
        )
        apply = final.apply
        self.rejections += [((apply.source, apply.foreign_epoch, group), count) for group, count in groups.items()]
        super().commit(final, source)


def _figures(ledger: ReferenceLedger, appliers: Mapping[str, _CountingApplier]) -> Figures:
    history, tables, resolution = ledger.history, ledger.tables, ledger.resolution
    changes = dict(_changes(history))
    lost = _lost(resolution, changes)
    either = {name: own | over for name, (own, over) in lost.items()}
    rejected, partly = _rejected_transactions(history, appliers.values())
    made = Counter(dict.fromkeys(appliers, 0)) + Counter(name for name, _, _ in changes)
    rows = _by_table(tables, (table for table, _ in {(each.table, each.key) for each in changes.values()}))
    results = resolution.clusters
    return Figures(
        counters={name: each.counters for name, each in results.items()},
        tables={each.name: table_figures(tables, each.counts, each.refreshes) for each in ledger.part().clusters},
        rejected_transactions=rejected,
        partly_rejected_transactions=partly,
        lost={name: (len(own), len(over), len(either[name])) for name, (own, over) in lost.items()},
        lost_by_table=_by_table(tables, (changes[each].table for own in either.values() for each in own)),
        made={name: made[name] for name in appliers},
        compared={name: made[name] for name in appliers},
        differing={table: resolution.differing_rows.get(table, 0) for table in tables},
        rows=rows,
        known_rows=rows,
        reflected={name: _reflected(each) for name, each in appliers.items()},
        logged={name: each.logged for name, each in appliers.items()},
        rowless={name: each.unexplained for name, each in results.items()},
        stops={name: each.stop for name, each in results.items() if each.stop is not None},
    )


def _changes(history: History) -> Iterator[tuple[Made, RowChange]]:
    """Yield the changes of users."""
    for cluster in history.clusters:
        numbers = Counter[int]()
        for item in cluster.timeline:
            for change in item.changes if isinstance(item, Transaction) else ():
                yield (cluster.name, item.epoch, numbers[item.epoch]), change
                numbers[item.epoch] += 1


def _lost(resolution: Resolution, changes: Mapping[Made, RowChange]) -> dict[str, tuple[set[Made], set[Made]]]:
    """Return, per cluster, those of its changes that were rejected, and those that were overwritten."""
    places = {id(change): made for made, change in changes.items()}
    rejected = {
        (each.source, each.source_epoch, each.ordinal)
        for each in resolution.outcomes
        if each.ordinal >= 0 and loses(each.verdict, each.operation, each.cause, each.own_cause)
    }
    return {
        name: ({each for each in rejected if each[0] == name}, {places[id(each.change)] for each in result.overwritten})
        for name, result in resolution.clusters.items()
    }


def _rejected_transactions(history: History, appliers: Iterable[_CountingApplier]) -> tuple[int, int]:
    """Return how many transactions had a change rejected, and how many of these had others that were not."""
    made = {
        (cluster.name, item.epoch, item.group): sum(map(_writes_something, item.changes))
        for cluster in history.clusters
        for item in cluster.timeline
        if isinstance(item, Transaction)
    }
    rejected = [each for applier in appliers for each in applier.rejections]
    return len(rejected), sum(made[transaction] > count for transaction, count in rejected)


def _writes_something(change: RowChange) -> bool:
    return change.operation is not Operation.UPDATE_ROW or bool(change.written)


def _reflected(applier: Applier) -> int:
    """Return how many rows an applier reflected."""
    logged = (entry for entries in applier.cluster.log.values() for entry in entries)
    return sum(isinstance(each, LoggedChange) and ConflictFlag.REFLECTED in each.change.flags for each in logged)


def _by_table(tables: Iterable[str], found: Iterable[str]) -> dict[str, int]:
    """Return how often each table is among some."""
    counted = Counter(found)
    return {table: counted[table] for table in tables}
