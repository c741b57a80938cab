"""
The definitions of tables over the time of a cluster's binlogs, as far as they change.

A table whose definition changes has one *History table*, with every column that it ever had. A *version* is what the
table is from one statement to the next, and where its columns are in the History table. So a row keeps its identity
through ALTER and RENAME, and all its images have the same columns.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from conflict.rules.table_setup import Refusal, RefusalKind, TableSetup
from ndb_formats.errors import FormatError
from ndb_formats.events.row_image import RowLayout
from ndb_formats.schema.session import NO_MODE, SqlMode
from ndb_formats.schema.tables import Column, Table

Name = tuple[str, str]  # database and table


@attrs.frozen
class TableVersion:
    """
    A table from one statement to the next.

    Attributes:
        history: Name of its History table.
        table: Its definition.
        places: Position of each of its columns in the History table.
        layout: How rows of the History table are read; None for a table that never changes, whose Table_map events say
            it.
        whole: The History table.
    """

    history: str
    table: Table
    places: tuple[int, ...]
    layout: RowLayout | None
    whole: Table = attrs.field(repr=False)


@attrs.frozen(eq=False)
class Moment:
    """
    What is in force on one cluster from one statement to the next.

    Attributes:
        versions: The tables that there are, without the exceptions tables, by database and name.
        setups: How the server set them up, by the name of the History table. Columns of the setups' tables stand where
            the History table has them.
    """

    versions: Mapping[Name, TableVersion]
    setups: dict[str, TableSetup] = attrs.field(repr=False)

    def find(self, database: str, name: str) -> TableVersion | None:
        """Return a table, or None."""
        return self.versions.get((database, name))


@attrs.frozen
class AlteredColumn:
    """
    A column that a statement fills in every row; see `ndb_formats.schema.altered_values`.

    Attributes:
        place: Its position in the History table.
        after: Its definition.
        source: Position of the column whose values are converted; None for a new column.
        before: The definition of that column; None for a new column.
        mode: ``sql_mode`` of the statement.
    """

    place: int
    after: Column
    source: int | None = None
    before: Column | None = None
    mode: SqlMode = NO_MODE


@attrs.frozen(eq=False)
class DefinitionStep:
    """
    A statement that changed definitions.

    Attributes:
        file: Path of its file.
        position: Position of its event.
        server_id: Server on which it was run first.
        text: The statement.
        after: What is in force from then on.
        emptied: The History tables that it left without rows.
        touched: The History tables that it changed.
        copied: Those of them whose rows were copied into a new table.
        renewed: The History tables that the server opened as new ones: all that it changed other than online.
        altered: By History table, the columns that it filled in every row.
        commits: Whether it commits a transaction of NDB, as TRUNCATE does and an ALTER that copies a table.
    """

    file: str
    position: int
    server_id: int
    text: str
    after: Moment = attrs.field(repr=False)
    emptied: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    renewed: tuple[str, ...] = ()
    altered: Mapping[str, tuple[AlteredColumn, ...]] = attrs.field(factory=dict)
    commits: bool = False


@attrs.frozen(eq=False)
class ClusterDefinitions:
    """
    The definitions on one cluster over the time of its binlogs.

    Attributes:
        start: What is in force at first.
        steps: The statements that changed it, in order.
        error: Why the log cannot be followed any further, with its place; None if it can.
    """

    start: Moment
    steps: tuple[DefinitionStep, ...] = ()
    error: FormatError | None = None

    @property
    def end(self) -> Moment:
        """What is in force at the end."""
        return self.steps[-1].after if self.steps else self.start

    @property
    def setups(self) -> dict[str, TableSetup]:
        """
        How the server set up each table at the end, or last; those that are gone by then are refused.

        An exceptions table that was in use at any time is there, because it holds rows.
        """
        last = dict(self.start.setups)
        for step in self.steps:
            for name, setup in step.after.setups.items():
                used = last[name].exceptions if name in last else None
                last[name] = attrs.evolve(setup, exceptions=setup.exceptions or used)
        return {name: setup if name in self.end.setups else _dropped(setup) for name, setup in last.items()}

    @property
    def moments(self) -> list[Moment]:
        """What was in force from the start on, and after each statement."""
        return [self.start, *(step.after for step in self.steps)]

    @property
    def setups_over_time(self) -> dict[str, list[TableSetup]]:
        """Every setup of each table, one after the other."""
        found: dict[str, list[TableSetup]] = {}
        for moment in self.moments:
            for name, setup in moment.setups.items():
                found.setdefault(name, []).append(setup)
        return found

    def at(self, file: str, position: int, files: tuple[str, ...]) -> Moment:
        """
        Return what is in force at a place.

        Args:
            file: Path of a file.
            position: Position in it; a statement at this position is not done yet.
            files: The cluster's files in order.
        """
        here, found = (files.index(file), position), self.start
        for step in self.steps:
            if (files.index(step.file), step.position) >= here:
                break
            found = step.after
        return found

    def step_at(self, file: str, position: int) -> DefinitionStep | None:
        """Return the statement at a place, or None."""
        return next((step for step in self.steps if (step.file, step.position) == (file, position)), None)


def _dropped(setup: TableSetup) -> TableSetup:
    return attrs.evolve(setup, refusal=Refusal(RefusalKind.DROPPED, 0, None, "the table was dropped"))
