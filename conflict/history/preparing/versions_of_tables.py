"""
The versions of each table over the time of the binlogs, and the History table that holds the rows of all of them.

Computes docs/definitions.md. A statement begins a version; the rows of its table go on, unless it makes the table anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration
from conflict.config.database_names import DatabaseNames
from conflict.config.definitions import AlteredColumn, ClusterDefinitions, DefinitionStep, Moment, TableVersion
from conflict.history.preparing.definitions_in_log import ClusterLog
from conflict.history.preparing.history_tables import HistoryColumn, HistoryTable, layout_of_history, view_of
from conflict.history.run import Run
from conflict.rules.functions import Argument
from conflict.rules.table_setup import TableSetup, is_exceptions_table
from ndb_formats.columnar.log_scan import ScannedStatement
from ndb_formats.errors import FormatError
from ndb_formats.schema.altered_values import keeps_values
from ndb_formats.schema.definitions import Definitions
from ndb_formats.schema.session import SqlMode
from ndb_formats.schema.statements import TableStep
from ndb_formats.schema.tables import Column, Schema, Table, full_name

Name = tuple[str, str]


@attrs.define
class _Lineage:
    """
    The tables of one cluster while versions are collected: the History table of each, and where its columns are.

    `databases` has the run's names of those that the cluster calls otherwise.
    """

    names: dict[Name, str] = attrs.field(factory=dict)
    columns: dict[str, list[HistoryColumn]] = attrs.field(factory=dict)
    seen: dict[str, list[str]] = attrs.field(factory=dict)
    without_author: set[str] = attrs.field(factory=set)
    databases: Mapping[str, str] = attrs.field(factory=dict)

    def name_of(self, table: Table) -> str:
        """Return the full name that the run gives a table of the cluster."""
        return full_name(self.databases.get(table.database, table.database), table.name)


@attrs.define
class _Version:
    history: str
    table: Table
    columns: list[HistoryColumn]


@attrs.define
class _Moment:
    """What is in force from a statement on, before History tables are complete."""

    versions: dict[Name, _Version]
    definitions: Definitions
    without_author: frozenset[str]
    logged: ScannedStatement | None = None
    emptied: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    renewed: tuple[str, ...] = ()
    altered: dict[str, list[_Altered]] = attrs.field(factory=dict)


@attrs.define
class _Altered:
    """A column that a statement fills in every row, before History tables are complete."""

    column: HistoryColumn
    after: Column
    source: HistoryColumn | None
    before: Column | None
    mode: SqlMode


def with_history_tables(configuration: Configuration, logs: Sequence[ClusterLog]) -> Run:
    """Return the run of a configuration whose clusters' logs were followed: a History table for each table."""
    tables: dict[str, HistoryTable] = {}
    databases = configuration.databases
    moments = {log.cluster.name: _moments(log, tables, databases.of(log.cluster.name)) for log in logs}
    last = _last_versions(moments, databases)
    whole = {name: tables[name].table(last[name], name) for name in tables}
    exceptions: dict[str, Table] = {}
    for cluster, own in moments.items():
        for moment in own:
            named = (databases.run_table(cluster, table) for table in moment.definitions.tables.values())
            exceptions |= {table.full_name: table for table in named if is_exceptions_table(table)}
    definitions = {
        log.cluster.name: _definitions(configuration, log, moments[log.cluster.name], tables, whole) for log in logs
    }
    schema = Schema((*whole.values(), *exceptions.values()))
    return Run(configuration, definitions, schema)


def _last_versions(moments: Mapping[str, Sequence[_Moment]], databases: DatabaseNames) -> dict[str, Table]:
    """Return the last version of each History table; where the clusters' differ, the first cluster's."""
    last: dict[str, Table] = {}
    for cluster, own in moments.items():
        mine: dict[str, Table] = {}
        for moment in own:
            mine |= {each.history: databases.run_table(cluster, each.table) for each in moment.versions.values()}
        last = {**mine, **last}
    return last


def _moments(log: ClusterLog, tables: dict[str, HistoryTable], databases: Mapping[str, str]) -> list[_Moment]:
    """Collect the versions of one cluster's tables; a change that cannot be followed ends the log."""
    lineage = _Lineage(databases=databases)
    for table in log.start.tables.values():
        if not is_exceptions_table(table):
            _begin(lineage, tables, table, lineage.name_of(table))
    found = [_moment(lineage, log.start)]
    for number, step in enumerate(log.steps):
        try:
            mode, altered = step.logged.statement.session.sql_mode, dict[str, list[_Altered]]()
            taken = [(each, _take(lineage, tables, each, mode, altered)) for each in step.tables]
        except FormatError as error:
            statement = step.logged
            log.error = statement.statement.shown_in(error).located(
                file=statement.file, position=statement.position, event="QUERY_EVENT"
            )
            del log.steps[number:]
            break
        emptied = tuple(name for each, name in taken if name is not None and each.emptied)
        renewed = tuple(name for each, name in taken if name is not None and _renews(each))
        touched = tuple(dict.fromkeys(name for _, name in taken if name is not None))
        copied = tuple(name for each, name in taken if name is not None and each.copied)
        after = _moment(lineage, step.after)
        after.logged, after.emptied, after.touched = step.logged, emptied, touched
        after.copied, after.renewed, after.altered = copied, renewed, altered
        found.append(after)
    return found


def _moment(lineage: _Lineage, definitions: Definitions) -> _Moment:
    versions = {
        name: _Version(lineage.names[name], table, list(lineage.columns[lineage.names[name]]))
        for name, table in definitions.tables.items()
        if name in lineage.names
    }
    return _Moment(versions, definitions, frozenset(lineage.without_author))


def _begin(lineage: _Lineage, tables: dict[str, HistoryTable], table: Table, name: str) -> None:
    history = tables.setdefault(name, HistoryTable(name))
    lineage.names[table.database, table.name] = name
    lineage.columns[name] = list(history.first(table))
    lineage.seen[name] = []


def _renews(step: TableStep) -> bool:
    """Whether the server opens a table as a new one, which an ALTER in place does not."""
    names = {each.full_name for each in (step.before, step.after) if each is not None}
    return step.emptied or step.copied or len(names) > 1


def _take(
    lineage: _Lineage,
    tables: dict[str, HistoryTable],
    step: TableStep,
    mode: SqlMode,
    altered: dict[str, list[_Altered]],
) -> str | None:
    """
    Take what a statement did to one table, and return its History table; None for an exceptions table.

    Args:
        lineage: The tables of the cluster.
        tables: The History tables.
        step: What it did.
        mode: ``sql_mode`` of the statement.
        altered: Takes the columns that it fills in every row, by History table.
    """
    before, after = step.before, step.after
    if (before is not None and is_exceptions_table(before)) or (after is not None and is_exceptions_table(after)):
        return None
    if before is not None and after is None and not step.emptied:
        return lineage.names.get((before.database, before.name))  # it comes back with its rows
    name = None if before is None else lineage.names.pop((before.database, before.name), None)
    if after is None:
        return name
    if before is None or name is None:
        return _create(lineage, tables, after)
    lineage.names[after.database, after.name] = name
    sources = step.sources or (None,) * len(after.columns)
    old, kept = lineage.columns[name], _kept(before, after, sources, mode)
    left = set(kept)
    lineage.seen[name] += [column.name for place, column in enumerate(before.columns) if place not in left]
    columns = tables[name].next(after, old, kept, lineage.seen[name])
    lineage.columns[name] = list(columns)
    if not step.emptied:
        altered[name] = [
            _Altered(
                column,
                definition,
                None if source is None or definition.generated else old[source],
                None if source is None or definition.generated else before.columns[source],
                mode,
            )
            for column, definition, source, same in zip(columns, after.columns, sources, kept, strict=True)
            if same is None
        ]
    if step.emptied:
        lineage.without_author.discard(name)
    elif step.copied:
        lineage.without_author.add(name)
    return name


def _kept(before: Table, after: Table, sources: Sequence[int | None], mode: SqlMode) -> list[int | None]:
    """Return, per column, the ordinal of the column whose values it keeps; those of the key identify rows, and stay."""
    key = set(after.key_ordinals)
    pairs = enumerate(zip(after.columns, sources, strict=True))
    kept = [
        source if source is not None and (place in key or keeps_values(before.columns[source], column, mode)) else None
        for place, (column, source) in pairs
    ]
    changed, known = {after.columns[place].name.lower() for place, each in enumerate(kept) if each is None}, -1
    while known != len(changed):  # a stored column is computed anew, and others may be computed of it
        known = len(changed)
        for place, column in enumerate(after.columns):
            if column.generated == "stored" and changed & {name.lower() for name in column.depends_on}:
                kept[place] = None
                changed.add(column.name.lower())
    return kept


def _create(lineage: _Lineage, tables: dict[str, HistoryTable], table: Table) -> str:
    """Begin a new table; one that was there before under that name goes on if its key is the same."""
    name, number = lineage.name_of(table), 1
    while name in lineage.names.values() or (name in tables and not tables[name].continues(table)):
        number += 1
        name = f"{lineage.name_of(table)} ({number})"
    _begin(lineage, tables, table, name)
    lineage.without_author.discard(name)
    return name


def _definitions(
    configuration: Configuration,
    log: ClusterLog,
    moments: Sequence[_Moment],
    tables: Mapping[str, HistoryTable],
    whole: Mapping[str, Table],
) -> ClusterDefinitions:
    made = [_in_force(configuration, log.cluster, moment, tables, whole) for moment in moments]
    steps = tuple(
        DefinitionStep(
            moment.logged.file,
            moment.logged.position,
            moment.logged.server_id,
            moment.logged.statement.text,
            after,
            moment.emptied,
            moment.touched,
            moment.copied,
            moment.renewed,
            altered={
                name: tuple(_placed(each, tables[name]) for each in own) for name, own in moment.altered.items() if own
            },
            commits=bool(moment.copied) or moment.logged.statement.words().accept("TRUNCATE"),
        )
        for moment, after in zip(moments[1:], made[1:], strict=True)
        if moment.logged is not None
    )
    return ClusterDefinitions(made[0], steps, log.error)


def _placed(altered: _Altered, history: HistoryTable) -> AlteredColumn:
    """Return a column that a statement fills in every row, where the History table has it."""
    place, *source = history.places([altered.column, *([] if altered.source is None else [altered.source])])
    return AlteredColumn(place, altered.after, source[0] if source else None, altered.before, altered.mode)


def _in_force(
    configuration: Configuration,
    cluster: ClusterConfiguration,
    moment: _Moment,
    tables: Mapping[str, HistoryTable],
    whole: Mapping[str, Table],
) -> Moment:
    versions, views = {}, {}
    for name, version in moment.versions.items():
        history = tables[version.history]
        places = history.places(version.columns)
        layout = layout_of_history(whole[version.history]) if history.changes else None
        versions[name] = TableVersion(version.history, version.table, places, layout, whole[version.history])
        views[name] = view_of(whole[version.history], version.table, places)
    others = [table for table in moment.definitions.tables.values() if is_exceptions_table(table)]
    known = configuration.set_up(cluster, Schema((*views.values(), *others)))
    run_table = partial(configuration.databases.run_table, cluster.name)
    setups: dict[str, TableSetup] = {}
    for name, made in versions.items():
        setup = known[run_table(views[name]).full_name]
        if made.history in moment.without_author and setup.function is not None:
            setup = _without_author_bits(setup, made.table.full_name)
        setups[made.history] = attrs.evolve(
            setup, declared=made.table, places=made.places, conversions=cluster.conversions
        )
    return Moment(versions, setups)


def _without_author_bits(setup: TableSetup, name: str) -> TableSetup:
    """Return the setup of a table that was copied: the copy lacks the hidden columns that epoch functions need."""
    assert setup.function is not None
    if setup.function.spec.argument is Argument.COLUMN:
        return setup
    warning = f"Table {name} : No extra row author bits in table."
    return attrs.evolve(setup, function=None, exceptions=None, warnings=(warning,))
