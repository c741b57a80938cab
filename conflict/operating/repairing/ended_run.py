"""
A run as it ended: what each cluster holds of a row, who wrote it last, and what makes that doubtful.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from typing import Any

import attrs
import pyarrow as pa

from conflict.config.arguments import StageProgress, no_progress
from conflict.engine.inference.observed import ObservedCluster
from conflict.engine.inference.rows import NOT_KNOWN
from conflict.engine.ledger.layout import UNDECIDED, open_places_path, open_rows_path
from conflict.engine.ledger.resolution import Outcome
from conflict.engine.ledger.resolution_ledger import KeyTexts
from conflict.engine.reference.replay import columns_not_known, differing_rows
from conflict.engine.reference.row_store import Row, RowKey
from conflict.errors import ConfigurationError, HistoryError
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import read_manifest
from conflict.history.grid.schemas import PLACE
from conflict.history.grid.stored_folder import folder_of
from conflict.history.run import Run
from conflict.history.timeline import Origin, RowChange, Transaction
from conflict.operating.repairing.statements import RowTable
from conflict.operating.repairing.watched_cluster import UserChange, WatchedCluster
from conflict.results.doubts import is_contradicted, not_what_happened
from conflict.results.result import Result
from conflict.rules.decision import Verdict
from conflict.runs.chosen_rows import Choice, replay_chosen
from conflict.runs.pipeline import from_holes, run_after_missing_files
from conflict.runs.reference_run import Replayed, replay_in_memory
from conflict.runs.run_inputs import refuse_later_part, run_of_result
from conflict.telling.shown_text import listed
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Table, split_full_name


def ended_run(result: Result, lost: pa.Table, progress: StageProgress = no_progress) -> EndedRun:
    """
    Let the run of a result end once more, with the reference engine.

    Of a result of the kernels, only rows are replayed that end different, that are not known in full, or that lost a
    change; and all rows of tables of these that have unique keys, or take part in foreign keys.

    Args:
        result: The result; its binlogs are read.
        lost: Changes of users of which `EndedRun.before` is to tell what their rows were, as `LOST`.
        progress: Called with the name of the stage, what is done, and what there is to do.

    Raises:
        ConfigurationError: The result is of more than two clusters.
        HistoryError: A binlog is missing or has changed since, or the rows are others than those of the result; or a
            History alone has rows, and has grown since, or only the reference engine can replay the run.
    """
    refuse_later_part(result.run, result.folder.uri)
    run = run_of_result(result.run, result.folder.uri)
    first = {**run.span.first, **result.run["starts_in_the_middle"]}
    run = attrs.evolve(run, span=attrs.evolve(run.span, first=first))
    return ended_as(result, run, lost, progress, _history_alone(result) if run.kept_alone else None)


def _history_alone(result: Result) -> Folder:
    """
    Return the History that alone has some of the rows of a result.

    Raises:
        HistoryError: It has grown since.
    """
    document = result.run["inputs"]["history"]
    history = folder_of(document["folder"])
    if read_manifest(history).last_epochs != document["last_epochs"]:
        message = (
            f"the History in {history.uri} has grown since the result in {result.folder.uri} was made of it; resolve "
            "it again, and repair that"
        )
        raise HistoryError(message)
    return history


def ended_as(
    result: Result, run: Run, lost: pa.Table, progress: StageProgress = no_progress, history: Folder | None = None
) -> EndedRun:
    """Do as `ended_run` with a run that the result was made of, and the History that is read in place of binlogs."""
    if len(result.clusters) != 2:
        message = f"{result.folder.uri} is of {len(result.clusters)} clusters; a repair is made between two"
        raise ConfigurationError(message)
    run = run_after_missing_files(run)
    before: dict[Origin, Row | None] = {}
    watching = partial(WatchedCluster, watched=_origins_of(lost), found=before)
    replayed = None
    if result.run["engine"] != "reference":
        choice = _choice(result, lost)
        replayed = from_holes(
            run, lambda each: replay_chosen(each, choice, progress, watching, history), can_have_holes=True
        )
    if replayed is None:
        if history is not None:
            files = listed([file for each in run.kept_alone.values() for file in each.files])
            message = (
                f"only the reference engine can replay the rows of {result.folder.uri}. It reads binlogs, and {files} "
                f"are in the History in {history.uri} alone; give these files, too, and resolve again"
            )
            raise HistoryError(message)
        before.clear()
        replayed = from_holes(run, lambda each: replay_in_memory(each, progress, watching), can_have_holes=True)
    ended = EndedRun(result, replayed, before)
    told = {table: count for table, count in result.run["differing_rows"].items() if count}
    if Counter(table for table, _ in ended.differing) != told or not ended.is_of_result:
        message = (
            f"the rows of {result.folder.uri} are not those that the reference engine derives from its "
            "binlogs; a result with --function or --on-missing skip cannot be repaired"
        )
        raise HistoryError(message)
    return ended


def _choice(result: Result, lost: pa.Table) -> Choice:
    """Return the rows that can be repaired or reviewed."""
    differing = {table for table, count in result.run["differing_rows"].items() if count != 0}
    unknown = {
        table for own in result.run["not_known"].values() for table, counts in own.items() if any(counts.values())
    }
    unlogged = {table for own in result.run["unlogged_changes"].values() for table in own}
    keys: dict[str, set[bytes]] = {}
    for table, key in zip(lost["table"].to_pylist(), lost["identity"].to_pylist(), strict=True):
        keys.setdefault(table, set()).add(key)
    return Choice(frozenset(differing | unknown | unlogged), {table: frozenset(own) for table, own in keys.items()})


def _origins_of(lost: pa.Table) -> frozenset[Origin]:
    """Return the places of lost changes."""
    return frozenset(origin_of(row) for row in lost.select(list(PLACE)).to_pylist())


def origin_of(row: Mapping[str, Any]) -> Origin:
    """Return the place of a row with the columns of `PLACE`."""
    return Origin(*(row[name] for name in PLACE))


@attrs.frozen(eq=False)
class EndedRun:
    """
    Two clusters after all that their binlogs hold.

    Attributes:
        result: The result.
        replayed: The clusters.
        before: By place of a change of a user that was watched, its row before it; None if it was missing.
    """

    result: Result
    replayed: Replayed
    before: Mapping[Origin, Row | None] = attrs.field(factory=dict)
    _made: dict[str, frozenset[RowKey]] = attrs.field(factory=dict, init=False)

    @property
    def is_of_result(self) -> bool:
        """Whether it has as many rows as the result says, or, if it holds some of them, the same counters."""
        run, counters = self.result.run, self.replayed.counters
        if counters is not None:
            told = self.result.counters
            return {name: +Counter(own) for name, own in counters.items()} == {
                n: +Counter(own) for n, own in told.items()
            }
        rows: dict[str, dict[str, int]] = {
            name: {table: n for table, n in own.items() if n} for name, own in run["rows"].items()
        }
        return {name: self._known_rows(name) for name in self.clusters} == rows

    def _known_rows(self, cluster: str) -> Counter[str]:
        """Return, by table, how many rows of a cluster are known in full."""
        found = Counter[str]()
        for row, state in self.cluster(cluster).store.rows.items():
            setup = self.cluster(cluster).setups.get(row[0])
            if setup is not None and setup.refusal is None and not columns_not_known(state, setup):
                found[row[0]] += state.copies
        return found

    @property
    def clusters(self) -> tuple[str, str]:
        """Names of the clusters."""
        first, second = self.replayed.appliers
        return first, second

    def other(self, cluster: str) -> str:
        """Return the name of the other cluster."""
        return next(name for name in self.clusters if name != cluster)

    def cluster(self, name: str) -> ObservedCluster:
        """Return a cluster as it ended."""
        return self.replayed.appliers[name].here

    @cached_property
    def _tables(self) -> dict[tuple[str, str], RowTable]:
        databases = self.replayed.history.databases
        found = {}
        for cluster in self.clusters:
            here = self.cluster(cluster)
            for name, setup in here.setups.items():
                if setup.refusal is None and name in here.layouts:
                    database = databases.own_database(cluster, split_full_name(name)[0])
                    found[cluster, name] = RowTable(cluster, database, setup, here.layouts[name])
        return found

    def table(self, cluster: str, name: str) -> RowTable | None:
        """Return a table of a cluster; None if it does not exist there."""
        return self._tables.get((cluster, name))

    @cached_property
    def definitions(self) -> dict[str, Table]:
        """All tables by name."""
        return {table.full_name: table for table in self.replayed.run.schema.tables}

    @cached_property
    def differing(self) -> list[RowKey]:
        """The rows that are known to differ, in the order of their tables and keys."""
        return sorted(differing_rows(*(self.cluster(name) for name in self.clusters)))

    @cached_property
    def _differing(self) -> frozenset[RowKey]:
        return frozenset(self.differing)

    def differs(self, row: RowKey) -> bool:
        """Whether a row is known to differ."""
        return row in self._differing

    @cached_property
    def may_differ(self) -> list[RowKey]:
        """Rows that changed in the logs, are not known to differ, and of which something is not known, in order."""
        found = set()
        for name in self.clusters:
            here = self.cluster(name)
            found |= {row for row in here.met if here.store.get(row) is NOT_KNOWN}
            found |= {row for row in here.store.rows if self._lacks_columns(name, row)}
            found |= {(each.table, each.key) for each in self.replayed.history.unlogged.get(name, ())}
        return sorted(row for row in found - self._differing if self.doubt(row) is not None)

    def state(self, cluster: str, row: RowKey) -> Row | None:
        """Return a row as a cluster holds it; None if it is missing."""
        return self.cluster(cluster).store.get(row)

    def key_text(self, row: RowKey) -> str:
        """Return the key of a row as text."""
        texts = KeyTexts(self.replayed.history.layouts, self.definitions)
        text: str = texts.of([RowChange(*row, Operation.DELETE_ROW, None, None)])[0].as_py()
        return text

    def doubt(self, row: RowKey) -> str | None:
        """Return why a row is not to be repaired without being looked at; None if nothing speaks against it."""
        return next(self._doubts(row), None)

    def _doubts(self, row: RowKey) -> Iterator[str]:
        yield from self._general_doubts
        missing = [name for name in self.clusters if self.table(name, row[0]) is None]
        if missing:
            yield f"the table does not exist on {' and '.join(missing)} when the logs end"
            return
        if not self.definitions[row[0]].primary_key:
            yield "the table has no primary key"
            return
        yield from self._kept_apart(row)
        for name in self.clusters:
            if self.state(name, row) is NOT_KNOWN:
                yield f"whether the row exists on {name} is not known"
            elif self._lacks_columns(name, row):
                yield f"not all columns of the row are known on {name}"
        if row in self._unlogged:
            yield self._unlogged[row]
        if row in self._under_way:
            yield f"{self._under_way[row]} had not applied a change of the row when the logs end"
        if row in self._open:
            yield "the binlogs leave open whether an applier applied a change of the row"

    def _kept_apart(self, row: RowKey) -> Iterator[str]:
        """Yield why changes of a row do not reach a cluster, as its applier is set up."""
        for name in self.clusters:
            here, source = self.cluster(name).cluster, self.other(name)
            if here.drops(row[0], source):
                yield f"a replication filter of {name} drops changes of the table: it may differ on purpose"
            elif not self._takes(name) and row in self._made_on(source):
                yield f"a user of {source} changed the row, and {name} does not replicate from {source}"

    def _takes(self, cluster: str) -> bool:
        """Whether a cluster applies the changes of users of the other one."""
        source = self.other(cluster)
        given = (each.name for each in self.replayed.run.links.sources(cluster))
        return source in given and self.cluster(cluster).cluster.takes(self.cluster(source).server_id, source)

    def _made_on(self, cluster: str) -> frozenset[RowKey]:
        """Return the rows that users of a cluster changed."""
        if cluster not in self._made:
            timeline = self.cluster(cluster).cluster.timeline
            changes = (each for item in timeline if isinstance(item, Transaction) for each in item.changes)
            self._made[cluster] = frozenset((each.table, each.key) for each in changes)
        return self._made[cluster]

    @cached_property
    def _general_doubts(self) -> tuple[str, ...]:
        run = self.result.run
        found = []
        if is_contradicted(run) or not_what_happened(run):
            found.append("the binlogs contradict the result")
        if run["other_readings"]:
            found.append("there are several readings of the binlogs")
        return tuple(found)

    def _lacks_columns(self, cluster: str, row: RowKey) -> bool:
        state, table = self.state(cluster, row), self.table(cluster, row[0])
        return state is not None and table is not None and bool(columns_not_known(state, table.setup))

    @cached_property
    def _unlogged(self) -> dict[RowKey, str]:
        """The rows that a log does not show in full, and why."""
        return {
            (each.table, each.key): f"the data nodes of {name} went down, and changes of the row may be gone"
            if each.kind.by_crash
            else f"{name} changed the row without a log"
            for name, found in self.replayed.history.unlogged.items()
            for each in found
        }

    @cached_property
    def _under_way(self) -> dict[RowKey, str]:
        """The rows of changes that an applier had not reached when the logs end, and its cluster."""
        found = {}
        for name in self.clusters:
            here, source = self.cluster(name), self.cluster(self.other(name))
            last = max((each.foreign_epoch for each in here.result.applies), default=0)
            for epoch in (each for each in source.log if each > last):
                found.update(dict.fromkeys((entry.row for entry in here.arriving(source, epoch)), name))
        return found

    @cached_property
    def _open(self) -> set[RowKey]:
        """
        The rows of which it is open whether an applier applied a change.

        Other decisions that are open are rejections for one cause or another, which leave the row as it is.
        """
        outcomes = self.replayed.outcomes
        found = {(each.table, each.key) for each in outcomes if each.verdict is Verdict.CANNOT_TELL}
        for name in self.clusters:
            for path in (open_places_path(name), open_rows_path(name)):
                rows = self.result.folder.read_table(path, UNDECIDED).to_pylist()
                found |= {(row["table"], row["identity"]) for row in rows if Verdict.APPLIED.name in row["candidates"]}
        return found

    @cached_property
    def refused(self) -> Mapping[RowKey, Outcome]:
        """By row, the last operation of a user that an applier did not apply."""
        outcomes = self.replayed.outcomes
        return {
            (each.table, each.key): each for each in outcomes if not each.verdict.writes_row and each.origin is not None
        }

    def last_change(self, cluster: str, row: RowKey) -> UserChange | None:
        """Return the change of a user that a row has on a cluster, or that removed it; None if it is not known."""
        return self.watched(cluster).last_changes.get(row)

    def watched(self, cluster: str) -> WatchedCluster:
        """Return a cluster as it ended, with what was noted of its changes."""
        here = self.cluster(cluster)
        assert isinstance(here, WatchedCluster)
        return here

    def committed_at(self, cluster: str, epoch: int) -> int:
        """Return the microsecond since 1970 at which an epoch of a cluster committed; 0 if the log does not tell."""
        return self.replayed.times[cluster].get(epoch, 0)
