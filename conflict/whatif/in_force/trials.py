"""
One trial: what appliers would have done under some functions, beside what the binlogs show that they did.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration
from conflict.engine.ledger.careful import CareKind
from conflict.engine.ledger.layout import ResultOptions
from conflict.errors import ConflictError
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest
from conflict.history.grid.memory_folder import MemoryFolder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.shown_effects import Effect
from conflict.history.tasks import in_threads
from conflict.results.run_document import RunDocument
from conflict.rules.functions import ConflictFunction
from conflict.rules.replication_table import ReplicationRow, Role
from conflict.runs.ingest_job import ingest
from conflict.runs.settled import EVERY_KIND, Settled, SettleOptions, settled
from ndb_formats.errors import FormatError
from ndb_formats.schema.tables import Table

_FIGURES_ALONE = ResultOptions(final_rows=False, all_outcomes=False)
_REFRESHED = (f"shown {Effect.REFRESHED.name}", f"shown {Effect.REFRESHED_ABSENT.name}")


@attrs.frozen
class Assignment:
    """
    Functions that are tried together.

    Attributes:
        functions: By table; tables that are not there have none.
        primary: The primary, if there are functions by epoch.
    """

    functions: Mapping[str, ConflictFunction] = attrs.field(factory=dict)
    primary: str | None = None

    def rows_of(self, cluster: ClusterConfiguration, rows: tuple[ReplicationRow, ...]) -> Iterator[ReplicationRow]:
        """Yield rows of ``mysql.ndb_replication`` for the servers of a cluster, with these functions."""
        for row in rows:
            function = self.functions.get(f"{row.db}.{row.table_name}")
            elsewhere = function is not None and function.spec.on_primary_alone and cluster.name != self.primary
            text = None if function is None or elsewhere else str(function)
            for server in cluster.servers:
                if row.server_id in (0, server.server_id):
                    yield attrs.evolve(row, server_id=server.server_id, conflict_fn=text)

    def role_of(self, cluster: str) -> Role:
        """Return the role of a cluster."""
        if not any(function.spec.uses_role for function in self.functions.values()):
            return Role.NONE
        return Role.PRIMARY if cluster == self.primary else Role.SECONDARY

    def set_up(self, configuration: Configuration) -> Configuration:
        """Return a configuration with these functions in place of its own."""
        clusters = (attrs.evolve(each, role=self.role_of(each.name)) for each in configuration.clusters)
        rows = (row for each in configuration.clusters for row in self.rows_of(each, configuration.replication))
        return attrs.evolve(configuration, clusters=tuple(clusters), replication=tuple(rows))


@attrs.frozen
class Trial:
    """
    What came of a trial.

    Attributes:
        assignment: What was tried.
        compared: Row changes by appliers, in the binlogs or derived.
        differing: By table, how many of these differ.
        refreshed: By cluster, tables of which its binlog shows refreshed rows that were not derived.
        stops: Whether an applier stops.
        under_way: Row changes that appliers had not reached when the logs end, by what was tried.
    """

    assignment: Assignment
    compared: int
    differing: Mapping[str, int]
    refreshed: Mapping[str, frozenset[str]]
    stops: bool
    under_way: int = 0

    @classmethod
    def of(cls, assignment: Assignment, resolved: RunDocument) -> Trial:
        """Return it, of the figures of its result."""
        summary = resolved.summary
        differing: dict[str, int] = {}
        refreshed: dict[str, frozenset[str]] = {}
        for name, tables in summary.contradictions.items():
            for table, kinds in tables.items():
                differing[table] = differing.get(table, 0) + sum(kinds.values())
            refreshed[name] = frozenset(
                table for table, kinds in tables.items() if any(each.endswith(_REFRESHED) for each in kinds)
            )
        under_way = sum(each.changes for each in resolved.under_way)
        return cls(assignment, summary.compared, differing, refreshed, bool(summary.stops), under_way)

    @property
    def wrong(self) -> int:
        """How many row changes differ."""
        return sum(self.differing.values())


class Trials:
    """
    Trials on the same logs. What is read of them is kept.

    Args:
        configuration: The logs, and how tables are logged.
        folder: Where what is read of them goes, as far as it does not fit in memory.
        by_reference: Whether the reference engine tries what the columnar one cannot, change by change.
    """

    def __init__(self, configuration: Configuration, folder: str, *, by_reference: bool = False) -> None:
        self._configuration, self._folder = configuration, folder
        self._by_reference = EVERY_KIND if by_reference else frozenset[CareKind]()
        self.untried: list[CareKind | str] = []  # why functions were not tried; a kind where the other engine can
        self._read: dict[frozenset[tuple[str, str]], tuple[Folder, Manifest]] = {}
        self.tables: tuple[Table, ...] = ()  # as the logs name them, once something was tried

    def run(self, assignment: Assignment) -> Trial | None:
        """Return what comes of functions; None if they cannot be tried on these logs, for the last of `untried`."""
        try:
            found: Settled | CareKind | str = self._settled(assignment)
        except (ConflictError, FormatError) as error:
            found = str(error)
        if isinstance(found, Settled):
            return Trial.of(assignment, found.resolved)
        self.untried.append(found)
        return None

    def _settled(self, assignment: Assignment) -> Settled | CareKind:
        """
        Resolve the logs under some functions.

        Raises:
            ConflictError: These logs contradict them, or each other.
            FormatError: The logs cannot be read.
        """
        run = make_run(assignment.set_up(self._configuration))
        self.tables = run.data_schema.tables
        columns = frozenset(
            (table, function.column) for table, function in assignment.functions.items() if function.column is not None
        )
        if columns not in self._read:
            made = MemoryFolder.at(f"{self._folder}/history-{len(self._read)}")
            self._read[columns] = made, ingest(in_threads, run, made).manifest
        history, held = self._read[columns]
        with tempfile.TemporaryDirectory(dir=self._folder) as out:
            options = SettleOptions(
                out=Folder(out),
                history=history,
                held=held,
                result=_FIGURES_ALONE,
                follow_unlogged=False,
                as_configured=True,
                by_reference=self._by_reference,
            )
            return settled(run, in_threads, options)

    @property
    def marks(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        """By cluster and table, the marks (`Mark`) of rows that its applier changed, as far as the logs were read."""
        found: dict[str, dict[str, frozenset[str]]] = {}
        for _, manifest in self._read.values():
            for name, segments in manifest.segments.items():
                own = found.setdefault(name, {})
                for table, marks in (each for segment in segments for each in segment.marks.items()):
                    own[table] = own.get(table, frozenset()) | frozenset(marks)
        return found
