"""
What is to be said of definitions and binlogs that do not fit together, and change no answer or not all of them.

A sentence that holds for several tables is said once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

import attrs

from conflict.history.run import Run
from conflict.rules.replication_table import rows_without_table
from ndb_formats.errors import did_you_mean

__all__ = ["DefinitionNote", "NoteKind", "sentences_of", "sentences_on_rows", "some_of"]

MOST_NAMES = 10


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
    tables = {(table.database, table.name) for table in run.schema.tables}
    for setups in run.setups.over_time.values():
        tables |= {(each.shown[0].database, each.shown[0].name) for every in setups.values() for each in every}
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
