"""
`history.json`: what a History on disk holds.
"""

from __future__ import annotations

from typing import Any, Self

import attrs

from conflict.bucketing import TableNumbers
from conflict.configuration import Configuration
from conflict.setup import TableSetup
from ndb_formats.column_types import WireType
from ndb_formats.constants import ColumnCode
from ndb_formats.row_image import RowLayout, layout_of_types

__all__ = ["Manifest", "RunFacts", "resolve_columns", "table_numbers"]

FORMAT = 2


@attrs.frozen
class RunFacts:
    """
    One run of epochs.

    Attributes:
        file: Binlog file it came from.
        start: First position read.
        stop: Position after the last.
        first_epoch: First own epoch; 0 if it has none.
        last_epoch: Last own epoch; 0 if it has none.
        changes: Row changes the cluster itself made in it.
    """

    file: str
    start: int
    stop: int
    first_epoch: int
    last_epoch: int
    changes: int


@attrs.frozen
class Manifest:
    """
    A History on disk.

    Attributes:
        buckets: Into how many buckets keys are divided.
        batches: How many times binlogs were ingested.
        clusters: Server id of each cluster, in order.
        files: Binlog files per cluster, by number.
        runs: Runs per cluster, in order.
        types: Wire types of the columns of each table.
        resolve_columns: The column whose values stand among the narrow columns, per table.
        errors: Per cluster, why its binlogs could not be read to the end.
        left_out: Per cluster, row operations read of an epoch that was cut off.
        assumed: Per applying cluster, foreign epochs whose place was assumed.
        last_epochs: Per cluster, the last own epoch that can be resolved.
        epochs_left_out: Per cluster, own epochs after that, which build on epochs of the other one that are not there.
        changes: How many row changes both clusters made themselves, up to the last epochs that can be resolved.
    """

    buckets: int
    batches: int
    clusters: dict[str, int]
    files: dict[str, tuple[str, ...]]
    runs: dict[str, tuple[RunFacts, ...]]
    types: dict[str, tuple[WireType, ...]] = attrs.field(repr=False)
    resolve_columns: dict[str, str]
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
        document["types"] = {
            name: [[int(wire.code), wire.length, wire.scale] for wire in types] for name, types in self.types.items()
        }
        return {"format": FORMAT, **document}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Read the document."""
        facts = {name: value for name, value in document.items() if name != "format"}
        facts["files"] = {name: tuple(files) for name, files in facts["files"].items()}
        facts["runs"] = {name: tuple(RunFacts(**run) for run in runs) for name, runs in facts["runs"].items()}
        facts["types"] = {
            name: tuple(WireType(ColumnCode(code), length, scale) for code, length, scale in types)
            for name, types in facts["types"].items()
        }
        return cls(**facts)


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
