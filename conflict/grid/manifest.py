"""
`history.json`: what a History on disk holds, and what it is a History of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import attrs

from conflict.config.configuration import Configuration
from conflict.errors import HistoryError
from conflict.grid.folder import Folder
from conflict.grid.key_buckets import TableNumbers
from conflict.rules.table_setup import TableSetup
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowLayout, layout_of_types
from ndb_formats.schema.tables import Table
from ndb_formats.types.column_types import WireType

__all__ = [
    "MANIFEST",
    "Manifest",
    "SegmentFacts",
    "Subject",
    "load_manifest",
    "resolve_columns",
    "table_definitions",
    "table_numbers",
    "types_from_json",
    "types_to_json",
]

FORMAT = 6
MANIFEST = "history.json"


@attrs.frozen
class SegmentFacts:
    """
    One run of epochs.

    Attributes:
        file: Binlog file it came from.
        start: First position read.
        stop: Position after the last; where a transaction is not complete there, after the last that is.
        first_epoch: First own epoch; 0 if it has none.
        last_epoch: Last own epoch; 0 if it has none.
        changes: Row changes the cluster itself made in it.
        digest: What the beginning of the file and the bytes before `stop` add up to, to know the file by.
    """

    file: str
    start: int
    stop: int
    first_epoch: int
    last_epoch: int
    changes: int
    digest: str = ""


@attrs.frozen(kw_only=True)
class Subject:
    """
    What a History is of. All of it stands fast once the first row is written.

    Attributes:
        buckets: Into how many buckets keys are divided.
        clusters: Server id of each cluster, in order.
        tables: The columns of each table, and its primary key, as text; in the order of their numbers.
        resolve_columns: The column whose values stand among the narrow columns, per table.
    """

    buckets: int
    clusters: dict[str, int]
    tables: dict[str, tuple[str, ...]] = attrs.field(repr=False)
    resolve_columns: dict[str, str]

    def differences(self, configuration: Configuration, *, writing: bool) -> list[str]:
        """
        Return how a run differs from what the History is of, in words.

        Args:
            configuration: The run.
            writing: Whether it is to add to the History; to resolve it, a run may do without a column that is kept.
        """
        numbers = table_numbers(configuration)
        tables = table_definitions(numbers)
        found = []
        if self.clusters != configuration.server_ids:
            found.append(f"it is of {_servers(self.clusters)}, not of {_servers(configuration.server_ids)}")
        if list(self.tables) != list(tables):
            found.append(f"its tables are {_names(self.tables)}, not {_names(tables)}, in that order")
        for name in self.tables.keys() & tables.keys():
            columns, others = (", ".join(each[name]) for each in (self.tables, tables))
            held, wanted = (each.resolve_columns.get(name) for each in (self, numbers))
            if columns != others:
                found.append(f"its table {name} is ({columns}), not ({others})")
            if held != wanted and (writing or wanted is not None):
                kept, needed = (f"column {each}" if each else "no column" for each in (held, wanted))
                found.append(f"it keeps {kept} of {name} for a conflict function, not {needed}")
        return found


@attrs.frozen(kw_only=True)
class Manifest(Subject):
    """
    A History on disk.

    Attributes:
        batches: How many times binlogs were ingested.
        files: Binlog files per cluster, by number.
        segments: Runs per cluster, in order.
        types: Wire types of the columns of each table.
        errors: Per cluster, why its binlogs could not be read to the end.
        left_out: Per cluster, row operations read of an epoch that was cut off.
        assumed: Per applying cluster, foreign epochs whose place was assumed.
        last_epochs: Per cluster, the last own epoch that can be resolved.
        epochs_left_out: Per cluster, own epochs after that, which build on epochs of the other one that are not there.
        changes: How many row changes both clusters made themselves, up to the last epochs that can be resolved.
    """

    batches: int
    files: dict[str, tuple[str, ...]]
    segments: dict[str, tuple[SegmentFacts, ...]]
    types: dict[str, tuple[WireType, ...]] = attrs.field(repr=False)
    errors: dict[str, str]
    left_out: dict[str, int]
    assumed: dict[str, int]
    last_epochs: dict[str, int]
    epochs_left_out: dict[str, int]
    changes: int

    def layouts(self, numbers: TableNumbers) -> list[RowLayout | None]:
        """Return the layout of each table, by number; None where no binlog mentions the table."""
        return [
            layout_of_types(table, self.types[table.full_name]) if table.full_name in self.types else None
            for table in numbers.tables
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the document."""
        document = attrs.asdict(self, recurse=True)
        document["types"] = types_to_json(self.types)
        return {"format": FORMAT, **document}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Read the document."""
        facts = {name: value for name, value in document.items() if name != "format"}
        for name in ("files", "tables"):
            facts[name] = {key: tuple(values) for key, values in facts[name].items()}
        facts["segments"] = {
            name: tuple(SegmentFacts(**segment) for segment in segments) for name, segments in facts["segments"].items()
        }
        facts["types"] = types_from_json(facts["types"])
        return cls(**facts)


def types_to_json(types: Mapping[str, Sequence[WireType]]) -> dict[str, Any]:
    """Return wire types per table as a document."""
    return {name: [[int(wire.code), wire.length, wire.scale] for wire in wires] for name, wires in types.items()}


def types_from_json(document: dict[str, Any]) -> dict[str, tuple[WireType, ...]]:
    """Read wire types per table."""
    return {
        name: tuple(WireType(ColumnCode(code), length, scale) for code, length, scale in wires)
        for name, wires in document.items()
    }


def load_manifest(history: Folder) -> Manifest | None:
    """
    Read `history.json`; None if there is none.

    Raises:
        HistoryError: It was written by another version.
    """
    if not history.exists(MANIFEST):
        return None
    document = history.read_json(MANIFEST)
    if document.get("format") != FORMAT:
        message = f"{history.uri} was written by another version of ndb-conflict; ingest the binlogs again"
        raise HistoryError(message)
    return Manifest.from_json(document)


def table_definitions(numbers: TableNumbers) -> dict[str, tuple[str, ...]]:
    """Return what decides how the rows of each table are read and known apart, as text."""
    return {table.full_name: tuple(_definition(table)) for table in numbers.tables}


def _definition(table: Table) -> Iterator[str]:
    for column in table.columns:
        collation = f" collate {column.collation}" if column.collation else ""
        yield f"{column.name} {column.sql_type}{collation}"
    yield f"primary key {', '.join(table.primary_key)}"


def _servers(clusters: Mapping[str, int]) -> str:
    return " and ".join(f"cluster {name} with server id {server_id}" for name, server_id in clusters.items())


def _names(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def resolve_columns(setups: dict[str, dict[str, TableSetup]]) -> dict[str, str]:
    """Return the column that a conflict function compares, per table."""
    return {
        name: setup.function.column
        for site in setups.values()
        for name, setup in site.items()
        if setup.function is not None and setup.function.column is not None
    }


def table_numbers(configuration: Configuration) -> TableNumbers:
    """Number the tables of a run."""
    return TableNumbers(configuration.data_schema.tables, resolve_columns(configuration.setups()))
