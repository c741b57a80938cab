"""
Follows the binlog of one cluster: the statements that change definitions, and the tables that its changes name.

What does not fit together and changes no answer, or not all of them, is a note; a sentence that holds for several
tables is said once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration
from conflict.config.database_names import DatabaseNames
from conflict.config.schema_file import logged_name
from conflict.history.preparing.other_engines import OtherEngines
from conflict.history.run import Run
from conflict.rules.replication_table import rows_without_table
from ndb_formats.columnar.log_scan import LoggedTable, LogItem, ScannedStatement
from ndb_formats.errors import FormatError, SchemaError, did_you_mean
from ndb_formats.events.agreed_definition import check_definition, definition_of
from ndb_formats.rules.update_format import is_ndb
from ndb_formats.schema.create_table import definitions_before
from ndb_formats.schema.definitions import Definitions
from ndb_formats.schema.statements import TableStep
from ndb_formats.schema.tables import Table, full_name, split_full_name

MOST_NAMES = 10
_CHANGED_ELSEWHERE = (
    "it becomes a table of NDB with rows that were changed in another engine, which the binlogs of NDB do not hold"
)


class NoteKind(Enum):
    """What a note says: of one table, and of several."""

    NOT_READ = (
        (
            "is not in the schema, and the binlogs do not name its columns: its rows are not read, and transactions "
            "that touch it are judged without them; give its definition"
        ),
        (
            "are not in the schema, and the binlogs do not name their columns: their rows are not read, and "
            "transactions that touch them are judged without them; give their definitions"
        ),
    )
    TAKEN = (
        "is not in the schema; its definition is taken from the binlogs",
        "are not in the schema; their definitions are taken from the binlogs",
    )
    OTHER_ENGINE = (
        "is not a table of NDB: its changes are no part of the run",
        "are no tables of NDB: their changes are no part of the run",
    )


@attrs.frozen
class DefinitionNote:
    """
    One note.

    Attributes:
        table: ``database.table``.
        place: File and position of the event that shows it.
        what: What it says; a text is of this table alone.
    """

    table: str
    place: str
    what: NoteKind | str


def sentences_of(notes: Iterable[DefinitionNote]) -> tuple[str, ...]:
    """Return notes as sentences without a full stop; each table once, with the first place that shows it."""
    first: dict[tuple[NoteKind | str, str], DefinitionNote] = {}
    for note in notes:
        first.setdefault((note.what, note.table), note)
    together: dict[NoteKind | str, list[DefinitionNote]] = {}
    for (what, _), note in first.items():
        together.setdefault(what, []).append(note)
    return tuple(_joined(what, same) for what, same in together.items())


def some_of(names: Iterable[str]) -> str:
    """Return names in order, with commas; of many, the first ones and how many more there are."""
    every = sorted(names)
    more = f" and {len(every) - MOST_NAMES:,} more" if len(every) > MOST_NAMES else ""
    return ", ".join(every[:MOST_NAMES]) + more


def _joined(what: NoteKind | str, notes: list[DefinitionNote]) -> str:
    shown = some_of(note.table for note in notes)
    one, several = what.value if isinstance(what, NoteKind) else (what, what)
    if len(notes) == 1:
        return f"{notes[0].place}: table {shown} {one}"
    return f"tables {shown} {several}; the first is at {notes[0].place}"


def sentences_on_rows(run: Run) -> tuple[str, ...]:
    """Return, as sentences without a full stop, which rows of mysql.ndb_replication are for no table or server."""
    tables = set[tuple[str, str]]()
    for cluster, setups in run.setups.over_time.items():
        own = run.databases.own_schema(cluster, run.schema).tables
        shown = (run.shown_on(cluster, each) for every in setups.values() for each in every)
        tables |= {(table.database, table.name) for table in (*own, *shown)}
    names = [f"{database}.{table}" for database, table in tables]
    without_table = tuple(
        f"row {row.db!r}, {row.table_name!r}, {row.server_id} of mysql.ndb_replication matches no table"
        f"{did_you_mean(f'{row.db}.{row.table_name}', names)}"
        for row in rows_without_table(run.configuration.replication, tables)
    )
    return (*without_table, *_rows_of_other_servers(run))


def _rows_of_other_servers(run: Run) -> Iterator[str]:
    """Yield which functions are given for other servers alone; a dump has the rows of all servers that replicate."""
    known = [cluster.server_id for cluster in run.clusters]
    rows = [row for cluster in run.clusters for row in run.configuration.replication_of(cluster) if row.conflict_fn]
    ours = {(row.db, row.table_name) for row in rows if row.server_id in (0, *known)}
    others: dict[int, dict[str, None]] = {}
    for row in rows:
        if (row.db, row.table_name) not in ours:
            others.setdefault(row.server_id, {})[f"{row.db}.{row.table_name}"] = None
    for server, names in others.items():
        yield (
            f"the conflict functions of {some_of(names)} in mysql.ndb_replication are in rows for server_id {server}, "
            f"and the logs are of servers {' and '.join(map(str, sorted(known)))}: none is in force"
        )


@attrs.define
class _Step:
    """A statement, and the definitions after it."""

    logged: ScannedStatement
    tables: tuple[TableStep, ...]
    after: Definitions


@attrs.define
class ClusterLog:
    """
    What was followed of one cluster's log.

    Attributes:
        cluster: The cluster.
        start: Definitions at the start.
        own: Whether its tables differ from those of the run.
        steps: Statements that changed definitions.
        added: Tables that the schema lacks, as their Table_map events tell them.
        unfollowed: Tables of statements that could not be followed, and what is to be said of each.
        logged: Database and name of each table of the log.
        others: Database and name of tables that are only changed outside of NDB's epochs.
        reads: Whether rows of a table can be read.
        error: Why it cannot be followed any further.
        notes: What is to be said.
        names: The run's names of databases.
        engines: The tables that are of another engine.
    """

    cluster: ClusterConfiguration
    start: Definitions
    own: bool = False
    steps: list[_Step] = attrs.field(factory=list)
    added: list[Table] = attrs.field(factory=list)
    unfollowed: list[tuple[str | None, str]] = attrs.field(factory=list)
    logged: frozenset[tuple[str, str]] = frozenset()
    others: frozenset[tuple[str, str]] = frozenset()
    reads: bool = False
    error: FormatError | None = None
    notes: list[DefinitionNote] = attrs.field(factory=list)
    names: DatabaseNames = attrs.field(factory=DatabaseNames)
    engines: OtherEngines = attrs.field(factory=OtherEngines)

    def run_name(self, table: str | None) -> str | None:
        """Return the full name that the run gives a table of the log."""
        if table is None:
            return None
        database, name = split_full_name(table)
        return full_name(self.names.run_database(self.cluster.name, database), name)

    @property
    def undefined_tables(self) -> frozenset[str]:
        """The run's names of the tables that it changes and that no schema and no statement defines."""
        kinds = (NoteKind.NOT_READ, NoteKind.TAKEN)
        named = (self.run_name(note.table) for note in self.notes if note.what in kinds)
        return frozenset(name for name in named if name is not None)

    @property
    def logged_tables(self) -> frozenset[str]:
        """The run's names of the tables that it changes."""
        named = (self.run_name(full_name(*each)) for each in self.logged)
        return frozenset(name for name in named if name is not None)

    @property
    def known(self) -> bool:
        """Whether any table is known at any time."""
        return bool(self.start.tables or self.steps)

    @classmethod
    def read(cls, configuration: Configuration, cluster: ClusterConfiguration, scan: Sequence[LogItem]) -> ClusterLog:
        """Follow a cluster's log."""
        schema = configuration.schema_of(cluster)
        small = all(name == (name[0].lower(), name[1].lower()) for name in _logged(scan))
        start = Definitions.of(schema.tables, inexact_keys=schema.inexact_keys)
        start = attrs.evolve(start, any_case=small)
        if configuration.schema_at_end:
            start = definitions_before(start, [each.statement for each in scan if isinstance(each, ScannedStatement)])
        own = cluster.schema is not None or configuration.schema_at_end
        names = configuration.databases
        log = cls(cluster, start, own=own, logged=_logged(scan), others=_others(scan), names=names)
        current, log.start = start, log._of_ndb(start)
        for item in scan:
            try:
                if isinstance(item, ScannedStatement):
                    current = log._follow(item, current)
                elif isinstance(item, LoggedTable):
                    current = log._check(item, current)
            except FormatError as error:
                event = "QUERY_EVENT" if isinstance(item, ScannedStatement) else "TABLE_MAP_EVENT"
                log.error = error.located(file=item.file, position=item.position, event=event)
                break
        return log

    def _follow(self, item: ScannedStatement, current: Definitions) -> Definitions:
        try:
            after, steps = current.after(item.statement)
        except FormatError as error:
            after, steps = self._unfollowed(item, current, item.statement.shown_in(error))
        changed = next((each.before for each in steps if self._brings_unknown_rows(each)), None)
        if changed is not None:
            after, steps = self._unfollowed(item, current, SchemaError(_CHANGED_ELSEWHERE, table=changed.full_name))
        named = tuple(self._as_logged(each) for each in steps)
        if named != steps:
            steps, after = named, attrs.evolve(after, tables=current.with_steps(named).tables)
        kept = tuple(step for each in steps if (step := self._step_of_ndb(each)) is not None)
        if kept:
            self.steps.append(_Step(item, kept, self._of_ndb(after)))
        return after

    def _unfollowed(
        self, item: ScannedStatement, current: Definitions, error: FormatError
    ) -> tuple[Definitions, tuple[TableStep, ...]]:
        """Leave out the table of a statement that cannot be followed from there on."""
        found = None if error.table is None else current.find(*split_full_name(error.table))
        table = "" if error.table is None else f"table {error.table}: "
        place = f"{item.file}, position {item.position}"
        left = "" if found is None else "; from here on the table is left out"
        self.unfollowed.append((error.table, f"{place}: {table}{error.message}{left}"))
        if found is None:
            return current, ()
        step = TableStep(found, None, emptied=True)
        return current.with_steps([step]), (step,)

    def _as_logged(self, step: TableStep) -> TableStep:
        """Return a step that names the new table as the log does."""
        if step.after is None:
            return step
        database, name = logged_name((step.after.database, step.after.name), self.logged)
        return attrs.evolve(step, after=attrs.evolve(step.after, database=database, name=name))

    def is_other(self, table: Table) -> bool:
        """Whether a table is of another engine: as it declares, else by where it is changed."""
        return not is_ndb(table) if table.engine is not None else (table.database, table.name) in self.others

    def _of_ndb(self, definitions: Definitions) -> Definitions:
        """Return the definitions of the tables that can be part of a run."""
        tables = {name: table for name, table in definitions.tables.items() if not self.is_other(table)}
        return attrs.evolve(definitions, tables=tables)

    def _brings_unknown_rows(self, step: TableStep) -> bool:
        """Whether a step brings a table to NDB with rows that another engine logged."""
        before, after = step.before, step.after
        kept = before is not None and after is not None and not step.emptied and not self.is_other(after)
        return kept and before is not None and self.is_other(before) and self.engines.is_changed(before)

    def _step_of_ndb(self, step: TableStep) -> TableStep | None:
        """Return what a step does to tables of NDB; one that gets another engine is gone, if it does not come back."""
        before = None if step.before is None or self.is_other(step.before) else step.before
        after = None if step.after is None or self.is_other(step.after) else step.after
        if before is None and after is None:
            self.engines.move(step)
            return None
        if before is not None and after is not None:
            return step
        if before is not None:
            self.engines.leave(step, len(self.steps))
        elif (returned := self.engines.come_back(step)) is not None:
            number, step = returned
            left = self.steps[number]
            left.tables = tuple(
                attrs.evolve(each, emptied=each.emptied and each.before != step.before) for each in left.tables
            )
            return step
        return TableStep(before, after, emptied=True)

    def _check(self, item: LoggedTable, current: Definitions) -> Definitions:
        table_map = item.table_map
        if table_map.database == "mysql":
            return current
        known = current.find(table_map.database, table_map.table)

        def note(what: NoteKind | str) -> None:
            self.notes.append(DefinitionNote(table_map.full_name, f"{item.file}, position {item.position}", what))

        if known is not None and self.is_other(known):
            self.engines.change(known)
            note(NoteKind.OTHER_ENGINE)
            return current
        if known is not None:
            self.reads = True
            for each in check_definition(table_map, known):
                note(f"column {each.column}: {each}; this changes no answer")
            return current
        if (table_map.database, table_map.table) in self.others:
            note(NoteKind.OTHER_ENGINE)
            return current
        defined = definition_of(table_map)
        if defined is None:
            note(NoteKind.NOT_READ)
            return current
        defined = current.allowed(defined)
        self.reads = True
        note(NoteKind.TAKEN)
        self.added.append(defined)
        start = {**self.start.tables, (defined.database, defined.name): defined}
        self.start = attrs.evolve(self.start, tables=start)
        for step in self.steps:
            step.after = attrs.evolve(
                step.after, tables={**step.after.tables, (defined.database, defined.name): defined}
            )
        return attrs.evolve(current, tables={**current.tables, (defined.database, defined.name): defined})


def _logged(scan: Sequence[LogItem]) -> frozenset[tuple[str, str]]:
    return frozenset((each.table_map.database, each.table_map.table) for each in scan if isinstance(each, LoggedTable))


def _others(scan: Sequence[LogItem]) -> frozenset[tuple[str, str]]:
    """Return database and name of each table that no transaction of NDB changes."""
    logged = [item for item in scan if isinstance(item, LoggedTable)]
    ours = {(item.table_map.database, item.table_map.table) for item in logged if item.of_ndb}
    return frozenset((item.table_map.database, item.table_map.table) for item in logged) - ours
