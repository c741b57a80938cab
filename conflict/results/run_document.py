"""
The result of a run, and the document `run.json` that says so.

Several readings of binlogs that do not say which epochs an applier took. Computes docs/result.md, "Readings".
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import distributions
from itertools import islice
from typing import Any

import attrs
import numpy as np

from conflict.config.configuration import ClusterConfiguration, Links
from conflict.engine.ledger.layout import RESULT_FORMAT, outcomes_note
from conflict.engine.ledger.resolution import Outcome, Resolution
from conflict.engine.ledger.summary import RunSummary
from conflict.history.model import Link
from conflict.history.run import Run
from conflict.history.scheduling.placing import Inference
from conflict.history.scheduling.summaries import EpochSizes
from conflict.history.unlogged import Crash, UnloggedChange, UnloggedKind
from conflict.results.cause_kinds import CauseKind, LikelyCause
from conflict.results.cutovers import ChannelMoves
from conflict.results.doubts import is_contradicted
from conflict.results.server_counters import ServerCounters, server_counters
from conflict.rules.decision import Verdict
from conflict.rules.table_setup import TableSetup
from ndb_formats.findings import LogRemark
from ndb_formats.schema.tables import Schema


def reading_path(number: int) -> str:
    """Return the folder of a further reading below the result; the first is the result itself."""
    return f"readings/{number}"


def is_same_result(first: Resolution, second: Resolution) -> bool:
    """Whether two results have the same rows, exceptions rows, counters and stops."""
    return all(
        (mine.rows, mine.exceptions, mine.counters, mine.stop)
        == (theirs.rows, theirs.exceptions, theirs.counters, theirs.stop)
        for mine, theirs in ((first.clusters[name], second.clusters[name]) for name in first.clusters)
    )


def with_readings(summary: RunSummary, first: Resolution, others: Sequence[Resolution]) -> RunSummary:
    """Return the figures of a reading with what other ones leave open: more open decisions, wider ranges."""
    ranges = {name: dict(each) for name, each in summary.counter_ranges.items()}
    undecided = dict(summary.undecided)
    for name, result in first.clusters.items():
        for counter, value in result.counters.items():
            values = [each.clusters[name].counters[counter] for each in others]
            least, most = ranges.get(name, {}).get(counter, (value, value))
            if min(values, default=value) < least or max(values, default=value) > most:
                ranges.setdefault(name, {})[counter] = (min(least, *values), max(most, *values))
        mine = dict(_decisions(first, name))
        theirs = [dict(_decisions(each, name)) for each in others]
        open_here = sum(any(each.get(place) != decision for each in theirs) for place, decision in mine.items())
        if open_here:
            undecided[name] = undecided.get(name, 0) + open_here
    return attrs.evolve(summary, counter_ranges=ranges, undecided=undecided)


def _decisions(resolution: Resolution, applier: str) -> Iterator[tuple[object, object]]:
    """Yield the place of each operation that a source itself made, and its decision."""
    outcomes: Sequence[Outcome] = resolution.outcomes
    for each in outcomes:
        if each.applier == applier and each.ordinal >= 0:
            yield (each.source, each.source_epoch, each.ordinal), (each.verdict, each.cause)


_HIDING = {CauseKind.APPLY_STATUS, CauseKind.REPLICA_UPDATES}


@attrs.frozen
class UnderWay:
    """
    The last changes of a cluster, which another one had not applied when the logs end.

    Attributes:
        applier: The cluster whose applier had not reached them.
        source: The cluster that made them.
        epochs: Number of epochs of the source that have changes of its own, after the last one that was applied.
        changes: Number of these row changes.
    """

    applier: str
    source: str
    epochs: int
    changes: int


def changes_under_way(
    links: Links, applied: Mapping[Link, int], sizes: Mapping[str, EpochSizes]
) -> tuple[UnderWay, ...]:
    """
    Return the changes that were still under way when the logs end; a link without any has no entry.

    Args:
        links: Which clusters replicate from which.
        applied: Per link, the last epoch that was applied; a link without one may lack.
        sizes: Per cluster, the own epochs that count, with their row changes.
    """
    found = []
    for applier, source in links.channels():
        newest, own = applied.get((applier.name, source.name)), sizes[source.name]
        left = own.changes if newest is None else own.changes[own.numbers > np.uint64(newest)]
        if left.any():
            found.append(UnderWay(applier.name, source.name, int(np.count_nonzero(left)), int(left.sum())))
    return tuple(found)


@attrs.frozen
class After:
    """
    Where a result begins that goes on from an earlier one.

    Attributes:
        result: Folder of the earlier one.
        source_epochs: Per applier, the last epoch of the other cluster that it had applied; 0 for none. Of what it
            applied later, the result tells.
        counters: Per cluster, its status counters until then.
    """

    result: str
    source_epochs: dict[str, int]
    counters: dict[str, dict[str, int]]


@attrs.frozen
class RunDocument:
    """
    The result of a run.

    Attributes:
        run: What was resolved.
        summary: Its figures.
        changes: Row changes that both clusters made themselves.
        errors: Per cluster, why its binlogs could not be read to the end.
        left_out: Per cluster, row operations read of an epoch that was cut off.
        assumed: Per applying cluster, foreign epochs whose place was assumed.
        epochs_left_out: Per cluster, own epochs that build on epochs of the other one that are not there.
        settled: Questions that the binlogs leave open, with the answers that agree with what they show.
        likely_causes: Why the binlogs may contradict the result.
        notes: What is to be said about the definitions of tables and their functions.
        functions_open: Whether other conflict functions than those that were found by trial may have been in force.
        remarks: What the binlogs hold besides rows.
        starts: Per cluster, the first own epoch of its log, if its tables were not empty before.
        engine: The engine that resolved the run, if it was left open, or another one than was asked for.
        engine_reason: Why it did, as the end of a sentence.
        other_readings: The results of other readings of the same binlogs (see `conflict.results.run_document`).
        under_way: What appliers had not reached when the logs end.
        moves: Channels that moved, and epochs that were applied again.
        unlogged: Per cluster, the rows that it changed without a log, or that a crash may have set back.
        unlogged_followed: Whether the decisions on these rows are open where they depend on what a row was.
        crashes: Per cluster, where all its data nodes went down and changes may be gone.
        after: Where it begins, if it goes on from an earlier result.
    """

    run: Run = attrs.field(repr=False)
    summary: RunSummary
    changes: int
    errors: dict[str, str]
    left_out: dict[str, int]
    assumed: dict[str, int]
    epochs_left_out: dict[str, int]
    settled: tuple[Inference, ...] = ()
    likely_causes: tuple[LikelyCause, ...] = ()
    notes: tuple[str, ...] = ()
    remarks: tuple[LogRemark, ...] = ()
    starts: dict[str, int] = attrs.field(factory=dict)
    engine: str = ""
    engine_reason: str = ""
    other_readings: tuple[RunDocument, ...] = attrs.field(default=(), repr=False)
    under_way: tuple[UnderWay, ...] = ()
    moves: ChannelMoves = attrs.field(factory=ChannelMoves)
    unlogged: Mapping[str, Sequence[UnloggedChange]] = attrs.field(factory=dict)
    unlogged_followed: bool = False
    functions_open: bool = False
    crashes: Mapping[str, Sequence[Crash]] = attrs.field(factory=dict)
    after: After | None = None

    @property
    def _summary(self) -> RunSummary:
        """The figures, with stops in the names that their clusters use."""
        tables, names = [table.full_name for table in self.run.data_schema.tables], self.run.databases
        stops = {
            cluster: stop.named(partial(names.own_name, cluster), tables) if names else stop
            for cluster, stop in self.summary.stops.items()
        }
        return attrs.evolve(self.summary, stops=stops)

    def _named(self, cause: LikelyCause) -> list[str]:
        """Return the tables of a likely cause as its cluster names them."""
        return [self.run.databases.own_name(cause.cluster, table) for table in cause.tables]

    @property
    def contradicted(self) -> bool:
        """Whether the binlogs contradict the result or what the run file declares, or lack what a result needs."""
        return is_contradicted(self.checks())

    @property
    def unrelated(self) -> bool:
        """Whether the binlogs show changes by appliers, but none of an epoch that the other cluster's binlogs hold."""
        summary = self.summary
        # Of a log that starts in the middle, changes of epochs before the other one are compared and left open.
        open_ones = bool(summary.compared) and not summary.judged and not summary.contradicted
        left_out = not summary.compared and any(self.epochs_left_out.values())
        return (
            (open_ones or left_out)
            and not summary.stops
            and not self.errors
            and not any(cause.kind in _HIDING for cause in self.likely_causes)
        )

    @property
    def _may_differ_unseen(self) -> bool:
        """Whether rows that are equal by the logs may differ: these lack changes, or a change without a log shows."""
        lossy = self.run.is_lossy or any(each.lost for each in self.remarks)
        return self.unrelated or lossy or (bool(self.unlogged) and self.summary.converged is not False)

    @property
    def passed_over(self) -> bool:
        """Whether an applier went on where no row of a table without a primary key had the values of an operation."""
        keyless = {table.full_name for table in self.run.schema.tables if not table.primary_key}
        tallies = [tally for own in self.summary.tables.values() for table, tally in own.items() if table in keyless]
        return any(tally.get(Verdict.IGNORED.name.lower()) for tally in tallies)

    @property
    def counted_apart(self) -> list[ServerCounters]:
        """What SQL nodes counted, of clusters where several applied or one was restarted."""
        found = server_counters(self.run, self.summary.stretches)
        times = Counter(each.cluster for each in found)
        apart = {each.cluster for each in found if times[each.cluster] > 1 or each.restart is not None}
        return [each for each in found if each.cluster in apart]

    def to_json(self, engine: str, *, all_outcomes: bool = False, final_rows: bool = True) -> dict[str, Any]:
        """Return the document `run.json`, of a result that holds all outcomes and final rows, or does not."""
        by_server: dict[str, list[dict[str, Any]]] = {}
        for each in self.counted_apart:
            by_server.setdefault(each.cluster, []).append(each.to_json())
        return {
            "format": RESULT_FORMAT,
            "readme": outcomes_note(all_outcomes=all_outcomes),
            "final_rows": final_rows,
            "engine": self.engine or engine,
            "configuration": configuration_json(self.run),
            "versions": versions(),
            "changes": self.changes,
            "starts_in_the_middle": self.starts,
            "after": None if self.after is None else attrs.asdict(self.after),
            "other_readings": [
                {"folder": reading_path(number), "counters": each.summary.counters}
                for number, each in enumerate(self.other_readings, start=2)
            ],
            "careful_rows": self.summary.careful,
            "rounds": [attrs.asdict(each) for each in self.summary.rounds],
            **self._summary.to_json(),
            "server_counters": by_server,
            **self.moves.to_json(
                [(each.applier, each.source, each.foreign_epoch) for each in self.summary.schedule.skipped]
            ),
            **({"converged": None} if self._may_differ_unseen else {}),
            **self.checks(),
        }

    def checks(self) -> dict[str, Any]:
        """Return the part of `run.json` that says how far the rest can be relied on."""
        return {
            "binlog_errors": self.errors,
            "row_operations_left_out": self.left_out,
            "epochs_left_out": self.epochs_left_out,
            "unrelated_binlogs": self.unrelated,
            "changes_under_way": [attrs.asdict(each) for each in self.under_way],
            "unlogged_followed": self.unlogged_followed,
            "unlogged_changes": {
                name: dict(Counter(each.table for each in changes)) for name, changes in self.unlogged.items()
            },
            "crashes": {
                name: [_crash_json(each, self.unlogged[name]) for each in own] for name, own in self.crashes.items()
            },
            "epochs_with_assumed_place": self.assumed,
            "definition_notes": list(self.notes),
            "log_remarks": [attrs.asdict(each) for each in self.remarks],
            "likely_causes": [
                {**attrs.asdict(each), "tables": self._named(each), "sentence": each.sentence}
                for each in self.likely_causes
            ],
            "cannot_tell": [attrs.asdict(each) for each in self.settled],
            **self.summary.checks(),
        }


def _crash_json(crash: Crash, rows: Sequence[UnloggedChange]) -> dict[str, Any]:
    mine = [each for each in rows if each.kind.by_crash and each.origin == crash.origin]
    return {
        "file": crash.disconnect.file,
        "position": crash.disconnect.position,
        "from_epoch": (crash.durable + 1) << 32,
        "to_epoch": crash.last,
        "next_epoch": crash.first,
        "certain": crash.latest == crash.durable,
        "tables": dict(Counter(each.table for each in mine)),
        "known_rows": sum(each.kind is UnloggedKind.GONE for each in mine),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that decide what a result is, if they are installed."""
    names = ("ndb-conflict", "pyspark", "pyarrow", "numpy", "numba")
    found = {name: each.version for name in names for each in islice(distributions(name=name), 1)}
    return {"python": platform.python_version(), **found}


def columns_of_tables(schema: Schema) -> dict[str, dict[str, str]]:
    """Return the types of the columns of tables that NDB stores, by the names of both."""
    return {
        table.full_name: {each.name: each.sql_type for each in table.columns if each.generated != "virtual"}
        for table in schema.tables
    }


def configuration_json(run: Run) -> dict[str, Any]:
    """Return the entry `configuration` of `run.json`."""
    names = run.databases
    return {
        "clusters": {
            cluster.name: {
                "server_id": cluster.server_id,
                "role": cluster.role,
                "binlogs": [str(file) for file in cluster.files],
                **_own_rows(cluster),
            }
            for cluster in run.clusters
        },
        "tables": columns_of_tables(run.schema),
        "primary_keys": {table.full_name: list(table.primary_key) for table in run.schema.tables},
        "databases": names.own,
        "ndb_replication": [attrs.asdict(row) for row in run.configuration.replication],
        "functions": {
            name: {table: _setup_json(setup.named(partial(names.own_table, name))) for table, setup in setups.items()}
            for name, setups in run.setups.at_end.items()
        },
        "earlier_functions": {
            name: {table: found for table, over_time in setups.items() if (found := _earlier_functions(over_time))}
            for name, setups in run.setups.over_time.items()
        },
    }


def _earlier_functions(setups: Sequence[TableSetup]) -> list[str]:
    """Return the functions of a table that statements in the binlogs took away or replaced."""
    texts = dict.fromkeys(str(each.function) for each in setups if each.function is not None)
    return [text for text in texts if text != str(setups[-1].function)]


def _own_rows(cluster: ClusterConfiguration) -> dict[str, Any]:
    rows = cluster.replication
    return {} if rows is None else {"ndb_replication": [attrs.asdict(row) for row in rows]}


def _setup_json(setup: TableSetup) -> dict[str, Any]:
    bits = () if setup.exceptions is None else setup.exceptions.bits
    return {
        "function": None if setup.function is None else str(setup.function),
        "exceptions_table": None if setup.exceptions is None else setup.exceptions.table.full_name,
        "refused": None if setup.refusal is None else setup.refusal.message,
        "warnings": list(setup.warnings),
        **({"bits_in_exceptions": list(bits)} if bits else {}),
    }
