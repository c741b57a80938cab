"""
A run that can be resolved, and the tables of its History: their numbers and definitions, and changes as they take them.

A run is what the user wrote, and the definitions of its tables over the time of its binlogs.

An applier goes by the places of columns, not by their names. Columns that only the source has, at its end, are left
out; those that only the applier has keep their values or get their defaults. A type that may not be converted stops it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Self

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration, Links, LogPiece, Span
from conflict.config.database_names import DatabaseNames, Rename
from conflict.config.definitions import ClusterDefinitions, Moment
from conflict.history.restarts import Disconnect, Restart, Restarts
from conflict.history.scheduling.schedule import ClusterHints, HintsOf
from conflict.history.scheduling.summaries import Summary
from conflict.history.statement_places import NO_STATEMENTS, StatementPlaces
from conflict.history.timeline import DefinitionChange, RowChange
from conflict.rules.stops import Misfit
from conflict.rules.table_setup import TableSetup, is_exceptions_table
from ndb_formats.columnar.file_outline import FileOutline, outline_of
from ndb_formats.events.row_image import RowImage, converted_image
from ndb_formats.findings import LogRemark
from ndb_formats.rules.replica.conversions import conversion, is_allowed
from ndb_formats.schema.tables import Schema, Table


@attrs.frozen
class TableNumbers:
    """
    The tables of a History by number, and the resolve column of each.

    Attributes:
        tables: In the order of their numbers.
        resolve_columns: Name of the column that a conflict function compares, by table name; a table whose function
            compares no column is not in it.
    """

    tables: tuple[Table, ...]
    resolve_columns: Mapping[str, str]

    @classmethod
    def of(
        cls,
        tables: Sequence[Table],
        setups: Iterable[Mapping[str, Sequence[TableSetup]]],
        kept: Mapping[str, str] = MappingProxyType({}),
    ) -> Self:
        """
        Number tables.

        Args:
            tables: All tables, exceptions tables not among them.
            setups: Per cluster, every setup of each table, one after the other.
            kept: By table, the column that counts as its resolve column if no function compares one.
        """
        wholes, compared = {table.full_name: table for table in tables}, dict(kept)
        for own in setups:
            for name, over_time in own.items():
                for setup in over_time:
                    if setup.function is not None and setup.function.column is not None:
                        # A table of that time has the columns of the whole one, under the names of its time.
                        compared[name] = wholes[name].columns[setup.table.ordinal(setup.function.column)].name
        return cls(tuple(tables), compared)

    def number(self, name: str) -> int:
        """Return a table's number."""
        return next(number for number, table in enumerate(self.tables) if table.full_name == name)

    def resolve_ordinal(self, name: str) -> int | None:
        """Return the position of a table's resolve column; None if it has none."""
        column = self.resolve_columns.get(name)
        table = self.tables[self.number(name)]
        return None if column is None or table.find(column) is None else table.ordinal(column)


def _awaited_columns(configuration: Configuration, definitions: Mapping[str, ClusterDefinitions]) -> dict[str, str]:
    """
    Return the resolve columns of tables that a cluster does not have yet, because its log ends before their creation.

    Rows of such a table are ingested before the cluster that compares their values has it.
    """
    versions = {
        version.history: version
        for known in definitions.values()
        for moment in known.moments
        for version in moment.versions.values()
    }
    found = {}
    for cluster in configuration.clusters if definitions else ():
        for name in versions.keys() - definitions[cluster.name].setups_over_time.keys():
            version = versions[name]
            awaited = configuration.databases.own_schema(cluster.name, Schema((version.table,)))
            for setup in configuration.set_up(cluster, awaited).values():
                if setup.function is not None and setup.function.column is not None:
                    place = version.places[version.table.ordinal(setup.function.column)]
                    found[name] = version.whole.columns[place].name
    return found


def table_definitions(numbers: TableNumbers) -> dict[str, tuple[str, ...]]:
    """Return everything that decides how rows of each table are read and identified, as text."""
    return {table.full_name: tuple(_definition(table)) for table in numbers.tables}


def _definition(table: Table) -> Iterator[str]:
    for column in table.columns:
        collation = f" collate {column.collation}" if column.collation else ""
        yield f"{column.name} {column.sql_type}{collation}{' inexact key' if column.inexact_key else ''}"
    prefixes = (f"({column.key_prefix})" if column.key_prefix else "" for column in table.key_columns)
    yield f"primary key {', '.join(map(str.__add__, table.primary_key, prefixes))}"


def misfit(source: TableSetup, replica: TableSetup) -> Misfit | None:
    """Return the first column that an applier may not convert; None if there is none."""
    theirs, mine = (setup.shown[0] for setup in (source, replica))
    if theirs == mine:
        return None
    for place, (column, other) in enumerate(zip(theirs.columns, mine.columns, strict=False), start=1):
        if not is_allowed(conversion(column, other), replica.conversions):
            return Misfit(place, other.name, column.sql_type, other.sql_type)
    return None


def fitted(change: RowChange, source: TableSetup, replica: TableSetup) -> RowChange:
    """Return a change with the values where the applier has its columns, which `misfit` has checked."""
    pairs = zip(source.shown[1], replica.shown[1], strict=False)
    moved = {place: other for place, other in pairs if place != other}
    if not moved and len(source.shown[1]) <= len(replica.shown[1]):
        return change
    kept = dict(zip(source.shown[1], replica.shown[1], strict=False))
    return attrs.evolve(change, before=_moved(change.before, kept), after=_moved(change.after, kept))


def _moved(image: RowImage | None, kept: dict[int, int]) -> RowImage | None:
    if image is None:
        return None
    chosen = [(place, payload) for place, payload in zip(image.present, image.payloads, strict=True) if place in kept]
    part = RowImage(image.layout, tuple(place for place, _ in chosen), tuple(payload for _, payload in chosen))
    places = [kept.get(place, place) for place in range(len(image.layout.codecs))]
    return converted_image(part, places, image.layout)


@attrs.frozen
class Setups:
    """
    How the servers of a run set up its tables, by cluster and table.

    Attributes:
        at_start: When the binlogs start.
        at_end: When they end, or last; tables that are gone by then are refused.
        over_time: Every setup that a table had, one after the other.
    """

    at_start: Mapping[str, dict[str, TableSetup]]
    at_end: Mapping[str, dict[str, TableSetup]]
    over_time: Mapping[str, dict[str, list[TableSetup]]]

    @property
    def first(self) -> dict[str, dict[str, TableSetup]]:
        """The first of each table: at the start, or when it is created."""
        return {name: {table: own[0] for table, own in over.items()} for name, over in self.over_time.items()}

    @property
    def last_functions(self) -> dict[str, dict[str, TableSetup]]:
        """The last of each table with a conflict function, or the last one of all."""

        def last(own: Sequence[TableSetup]) -> TableSetup:
            return next((each for each in reversed(own) if each.function is not None), own[-1])

        return {name: {table: last(own) for table, own in over.items()} for name, over in self.over_time.items()}


@attrs.frozen
class KeptAlone:
    """
    The files of a log that a History has read, and that are not given any more: it alone has their rows.

    Attributes:
        files: Their paths.
        last_epoch: The last own epoch in them.
        statements: Their statements that change definitions, in order.
        in_front: Whether all of them come before the files that are given.
    """

    files: tuple[str, ...]
    last_epoch: int
    statements: tuple[DefinitionChange, ...] = attrs.field(default=(), repr=False)
    in_front: bool = True


@attrs.frozen
class Run:
    """
    One use of the program on the binlogs of some clusters, made once.

    `conflict.history.preparing.definitions_over_time` makes it. With a configuration alone, it is a run whose tables
    are those of the configuration for all time.

    Attributes:
        configuration: What the user wrote, with the names and the tables that the binlogs show.
        definitions: By cluster, its definitions over time, where they change or differ between the clusters; else
            empty.
        history_tables: The tables with every column that they ever had, and the exceptions tables, if there are
            definitions over time, or their order is that of a History; else None.
        span: Which part of the logs it reads, and what was before it.
        kept_columns: By table, the column whose values a History keeps although no function compares it.
        notes: What is to be said about the definitions.
        remarks: What the binlogs hold besides rows.
        hints_of: What is known from other sources of when epochs were applied; None if nothing is.
        pieces: By cluster, what is read as its log, where it has several SQL nodes; see
            `conflict.history.preparing.log_pieces`.
        restarts: The restarts of servers within their logs; those of a server in order.
        disconnects: Where servers lost their cluster, unless the log of another one of theirs goes on.
        compressed: The clusters whose logs hold compressed epochs.
        renames: Databases that appliers seem to rename, although no rule says so.
        outlines: What planning needs of each file of its logs that was there, by path.
        kept_alone: By cluster, the files that its History has read and that are not given any more, if there are any.
        statements: Where statements stand in its logs.
        undefined_tables: By cluster, the tables that its log changes and that no schema and no statement defines.
        logged_tables: By cluster, all tables that its log changes.
    """

    configuration: Configuration
    definitions: Mapping[str, ClusterDefinitions] = attrs.field(factory=dict, repr=False)
    history_tables: Schema | None = attrs.field(default=None, repr=False)
    span: Span = attrs.field(default=attrs.Factory(lambda self: self.configuration.span, takes_self=True))
    kept_columns: Mapping[str, str] = attrs.field(factory=dict)
    notes: tuple[str, ...] = ()
    remarks: tuple[LogRemark, ...] = ()
    hints_of: HintsOf | None = attrs.field(default=None, eq=False, repr=False)
    pieces: Mapping[str, tuple[LogPiece, ...]] = attrs.field(factory=dict, repr=False)
    restarts: tuple[Restart, ...] = ()
    disconnects: tuple[Disconnect, ...] = ()
    compressed: frozenset[str] = frozenset()
    renames: tuple[Rename, ...] = ()
    outlines: Mapping[str, FileOutline] = attrs.field(factory=dict, eq=False, repr=False)
    kept_alone: Mapping[str, KeptAlone] = attrs.field(factory=dict)
    statements: StatementPlaces = attrs.field(default=NO_STATEMENTS, repr=False)
    undefined_tables: Mapping[str, frozenset[str]] = attrs.field(factory=dict, repr=False)
    logged_tables: Mapping[str, frozenset[str]] = attrs.field(factory=dict, repr=False)

    @property
    def clusters(self) -> tuple[ClusterConfiguration, ...]:
        """The clusters."""
        return self.configuration.clusters

    def log_of(self, cluster: ClusterConfiguration) -> tuple[LogPiece, ...]:
        """Return what is read as the log of a cluster, in order."""
        if cluster.name in self.pieces:
            return self.pieces[cluster.name]
        return tuple(LogPiece(cluster.server_id, file) for file in cluster.log.files)

    def outline_of(self, file: Path) -> FileOutline:
        """Return what planning needs of a file."""
        return self.outlines.get(str(file)) or outline_of(file, with_items=False)

    @property
    def is_lossy(self) -> bool:
        """Whether changes may be missing from its logs."""
        return any(remark.lost for remark in self.remarks)

    @property
    def links(self) -> Links:
        """Which clusters replicate from which."""
        return self.configuration.links

    @property
    def schema(self) -> Schema:
        """All tables over the time of the binlogs, exceptions tables among them."""
        return self.configuration.schema if self.history_tables is None else self.history_tables

    @property
    def data_schema(self) -> Schema:
        """The tables without the exceptions tables."""
        return Schema(tuple(table for table in self.schema.tables if not is_exceptions_table(table)))

    def numbered_as(self, names: Iterable[str]) -> Self:
        """Return the run with tables in the order in which a History numbers them, and all others after them."""
        places = {name: place for place, name in enumerate(names)}
        if [each.full_name for each in self.numbers.tables[: len(places)]] == list(places):
            return self
        tables = tuple(sorted(self.schema.tables, key=lambda table: places.get(table.full_name, len(places))))
        return attrs.evolve(self, history_tables=attrs.evolve(self.schema, tables=tables))

    @cached_property
    def setups(self) -> Setups:
        """How the servers set up the tables."""
        if not self.definitions:
            declared = self.configuration.setups()
            always = {name: {table: [setup] for table, setup in own.items()} for name, own in declared.items()}
            return Setups(declared, declared, always)
        return Setups(
            {name: known.start.setups for name, known in self.definitions.items()},
            {name: known.setups for name, known in self.definitions.items()},
            {name: known.setups_over_time for name, known in self.definitions.items()},
        )

    @cached_property
    def numbers(self) -> TableNumbers:
        """The numbers of the tables, and the columns that are compared, or will be."""
        return self._numbers({**_awaited_columns(self.configuration, self.definitions), **self.kept_columns})

    @property
    def compared_columns(self) -> Mapping[str, str]:
        """By table, the column that is compared now."""
        return self._numbers(self.kept_columns).resolve_columns

    def _numbers(self, kept: Mapping[str, str]) -> TableNumbers:
        return TableNumbers.of(self.data_schema.tables, self.setups.over_time.values(), kept)

    def restarts_within(self, cluster: str) -> list[Restart]:
        """Return the restarts of a cluster's servers in the part of the logs that is read."""
        last, stop = self.span.last.get(cluster), self.span.stop_time
        return [
            each
            for each in self.restarts
            if each.cluster == cluster
            and (last is None or each.counts_from <= last)
            and (stop is None or each.second < stop)
        ]

    def restarts_of(self, cluster: ClusterConfiguration) -> Restarts:
        """Return, by server of a cluster, the own epochs from which on its counters count anew after a restart."""
        found: dict[int, tuple[int, ...]] = {}
        for each in self.restarts_within(cluster.name):
            found[each.server_id] = (*found.get(each.server_id, ()), each.counts_from)
        return found

    def disconnects_of(self, cluster: str) -> list[Disconnect]:
        """Return where servers of a cluster lost it."""
        return [each for each in self.disconnects if each.cluster == cluster]

    @property
    def databases(self) -> DatabaseNames:
        """The names of databases that appliers rename."""
        return self.configuration.databases

    def shown_on(self, cluster: str, setup: TableSetup) -> Table:
        """Return a table of a setup as the users of its cluster see it."""
        return setup.shown[0] if setup.declared is not None else self.databases.own_table(cluster, setup.table)

    def filtered(self, cluster: ClusterConfiguration) -> dict[str, frozenset[str]]:
        """Return, by source, the tables whose changes the applier of a cluster drops, exceptions tables among them."""
        tables = {table.full_name: table for table in (*self.schema.tables, *self.configuration.schema.tables)}
        return {
            source.name: frozenset(
                name for name, table in tables.items() if self._is_dropped(cluster, source.name, table)
            )
            for source in self.links.sources(cluster.name)
        }

    def _is_dropped(self, cluster: ClusterConfiguration, source: str, table: Table) -> bool:
        filters = cluster.filter_of(source)
        arriving = filters.rewritten(self.databases.own_database(source, table.database))
        return filters.drops(arriving, table.name)

    @property
    def start_is_open(self) -> bool:
        """Whether the logs have to show if tables held rows before; else they held none, or the run says so."""
        return self.span.empty is None and not self.definitions and self.links.is_pair

    @property
    def from_the_middle(self) -> Run:
        """The run if tables held rows before the logs."""
        return attrs.evolve(self, span=attrs.evolve(self.span, empty=False))

    def moment_at_start(self, cluster: ClusterConfiguration) -> Moment | None:
        """Return what is in force on a cluster where the binlogs start that are given; None without definitions."""
        if cluster.name not in self.definitions:
            return None
        before = self.kept_alone[cluster.name].statements if cluster.name in self.kept_alone else ()
        return before[-1].step.after if before else self.definitions[cluster.name].start

    def schema_at_start(self, cluster: ClusterConfiguration) -> Schema:
        """Return the tables of a cluster where the binlogs start that are given, without the exceptions tables."""
        moment = self.moment_at_start(cluster)
        if moment is None:
            return self.databases.own_schema(cluster.name, self.data_schema)
        return Schema(tuple(version.table for version in moment.versions.values()), self.schema.inexact_keys)

    def hints(self, summaries: Mapping[str, Sequence[Summary]]) -> ClusterHints:
        """
        Return what is known from other sources of when epochs were applied.

        Args:
            summaries: Per cluster, its own epochs.
        """
        return {} if self.hints_of is None else self.hints_of(summaries)
