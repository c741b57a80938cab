"""What to do with the changes of each table when a file is rewritten, and what was done, counted."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import attrs

from ndb_formats.constants import APPLY_STATUS
from ndb_formats.errors import FormatError
from ndb_formats.events.agreed_definition import agreed_definition
from ndb_formats.events.logged_statement import definitions_without_faults, statement_of
from ndb_formats.events.query_event import QueryEvent
from ndb_formats.events.row_image import RowLayout, layout_of
from ndb_formats.events.rows_event import Operation, RowsEvent
from ndb_formats.events.table_map import TableMap
from ndb_formats.rules.images import Logging
from ndb_formats.rules.relogging import LoggedAs, Relogged, relogged_columns
from ndb_formats.rules.row_image_rules import EventColumns, RowImageRule
from ndb_formats.rules.update_format import UpdateFormat, is_ndb
from ndb_formats.schema.definitions import Definitions
from ndb_formats.schema.row_keys import with_inexact_columns
from ndb_formats.schema.tables import Schema, Table

NO_DEFINITION = "the definition of the table is not known; give a schema with its CREATE TABLE statement"
OTHER_ENGINE = "its engine is not the one that the given format is for"
_MARIADB_COMPRESSED = "compressed row events of MariaDB are not rewritten"


@attrs.frozen
class Target:
    """
    The format to write.

    Attributes:
        update_format: For NDB tables; None to leave them as they are.
        row_image: For tables of other engines; None to leave them as they are.
    """

    update_format: UpdateFormat | None = None
    row_image: RowImageRule | None = None

    @property
    def logging(self) -> Logging:
        """The settings of a server that writes it."""
        settings = Logging()
        return Logging(self.update_format or settings.update_format, self.row_image or settings.row_image)

    def applies_to(self, table: Table) -> bool:
        """Return whether the changes of a table are to be rewritten."""
        return (self.update_format if is_ndb(table) else self.row_image) is not None


@attrs.frozen
class RewriteOutcome:
    """
    What became of changes.

    Attributes:
        table: ``database.table``.
        operation: Their operation as logged.
        result: What their columns rest on, or why they were kept as they were.
        rewritten: Whether they were rewritten, and not kept.
    """

    table: str
    operation: Operation
    result: str
    rewritten: bool


@attrs.define
class Counts:
    """
    What became of all changes.

    Attributes:
        rows: Row changes by outcome.
        lacking: Names of the columns that an outcome is about.
    """

    rows: Counter[RewriteOutcome] = attrs.field(factory=Counter)
    lacking: dict[RewriteOutcome, set[str]] = attrs.field(factory=dict)

    def add(self, outcome: RewriteOutcome, lacking: tuple[str, ...] = (), rows: int = 1) -> None:
        """Count changes with one outcome."""
        self.rows[outcome] += rows
        if lacking:
            self.lacking.setdefault(outcome, set()).update(lacking)

    @property
    def complete(self) -> bool:
        """Whether every change that the format applies to was rewritten."""
        return all(outcome.rewritten or outcome.result == OTHER_ENGINE for outcome in self.rows)


@attrs.define
class TablePlan:
    """
    What to do with the changes of one table.

    Attributes:
        name: ``database.table``.
        logging: The settings to rewrite for.
        logged_as: The format of the log.
        counts: Where changes are counted.
        kept_why: Why its changes are kept as they are; None if they are rewritten.
    """

    name: str
    logging: Logging
    logged_as: LoggedAs
    counts: Counts
    kept_why: str | None = None
    _definition: Table | None = None
    _layout: RowLayout | None = None
    _decisions: dict[tuple[EventColumns, frozenset[int], bool], Relogged] = attrs.field(factory=dict)

    @property
    def table(self) -> Table:
        """Its definition, if its changes are rewritten."""
        assert self._definition is not None
        return self._definition

    @property
    def layout(self) -> RowLayout:
        """The layout of its rows, if its changes are rewritten."""
        assert self._layout is not None
        return self._layout

    @property
    def is_logged(self) -> bool:
        """Whether the other format logs its changes at all."""
        ndb = self.kept_why is None and is_ndb(self.table)
        return not ndb or self.logging.update_format.logged

    def decide(self, source: EventColumns, changed: frozenset[int], *, reads: bool) -> Relogged:
        """Return what an event looks like in the other format, and count it; arguments as `relogged_columns`."""
        key = source, changed, reads
        if key not in self._decisions:
            self._decisions[key] = relogged_columns(
                self.table, source, changed, self.logging, logged_as=self.logged_as, reads=reads
            )
        found = self._decisions[key]
        names = tuple(self.table.columns[ordinal].name for ordinal in found.lacking)
        result = found.obstacle or found.basis
        self.counts.add(RewriteOutcome(self.name, source.operation, result, found.obstacle is None), names)
        return found

    def count_kept(self, rows: RowsEvent) -> None:
        """Count the rows of an event that is kept as it is, or the event if its rows cannot be read."""
        if self.name != APPLY_STATUS:
            why = self.kept_why or _MARIADB_COMPRESSED
            number = sum(1 for _ in rows.rows(self._layout)) if self._layout is not None else 1
            self.counts.add(RewriteOutcome(self.name, rows.operation, why, rewritten=False), rows=number)


@attrs.define
class Plans:
    """
    The plans of all tables of a run.

    Attributes:
        target: The format to write.
        schema: Definitions of tables at the start.
        logged_as: The format of the files, as far as it is known.
        counts: What became of the changes.
        known: Definitions after the statements so far.
    """

    target: Target
    schema: Schema = attrs.field(factory=Schema)
    logged_as: LoggedAs = attrs.field(factory=LoggedAs)
    counts: Counts = attrs.field(factory=Counts)
    _plans: dict[bytes, TablePlan] = attrs.field(factory=dict)
    known: Definitions = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.known = Definitions.of(self.schema.tables, inexact_keys=self.schema.inexact_keys)

    def of(self, body: bytes, table_map: TableMap) -> TablePlan:
        """Return the plan for the rows events that refer to a Table_map event, given its body and value."""
        if body not in self._plans:
            self._plans[body] = self._plan(table_map)
        return self._plans[body]

    def note_statement(self, query: QueryEvent) -> None:
        """Take what a statement in the log does to definitions; one that cannot be followed makes its table unknown."""
        statement = statement_of(query)
        if statement is not None:
            self.known = definitions_without_faults(self.known, statement)
            self._plans.clear()

    def _definition(self, table_map: TableMap) -> Table | None:
        """Return the definition of a table, from its full metadata if no schema has it; None if nothing tells it."""
        known = self.known.schema.find(table_map.database, table_map.table, any_case=True)
        found = agreed_definition(table_map, known)
        return with_inexact_columns(found) if found is not None and self.schema.inexact_keys else found

    def _plan(self, table_map: TableMap) -> TablePlan:
        plan = TablePlan(table_map.full_name, self.target.logging, self.logged_as, self.counts)
        with suppress(FormatError):
            plan = attrs.evolve(plan, layout=layout_of(table_map))
        if table_map.full_name == APPLY_STATUS:
            return attrs.evolve(plan, kept_why=OTHER_ENGINE)
        table = self._definition(table_map)
        if table is None:
            return attrs.evolve(plan, kept_why=NO_DEFINITION)
        if table.engine is None and self.target.row_image is None:
            table = attrs.evolve(table, engine="NDB")
        if not self.target.applies_to(table):
            return attrs.evolve(plan, kept_why=OTHER_ENGINE)
        try:
            return attrs.evolve(plan, definition=table, layout=layout_of(table_map, table))
        except FormatError as error:
            return attrs.evolve(plan, kept_why=error.message)
