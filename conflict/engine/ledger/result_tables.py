"""
The tables of a result: folders of Parquet files with the same columns. Computes docs/result.md, "The output folder".

A part ``applier=A`` of a path is a column after those of the files. Whoever finds a table looks at the list of files,
not at the files: who reads one makes sure that it is the one that is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from conflict.config.database_names import DatabaseNames
from conflict.engine.ledger.arrow_rows import NOT_KNOWN_IN, row_schema
from conflict.engine.ledger.contradictions import CONTRADICTIONS
from conflict.engine.ledger.layout import (
    APPLIED_EPOCHS,
    ENTRY,
    FILES,
    MERGED,
    OUTCOMES,
    OVERWRITTEN,
    RESOLVE_AGAIN,
    RESULT_FORMAT,
    SKIPPED,
    UNDECIDED,
    UNLOGGED,
    rows_folder,
    rows_in_part_folder,
)
from conflict.engine.ledger.table_keys import table_of
from conflict.errors import HistoryError
from conflict.history.grid.catalogue import FileFacts, damages, read_catalogue, refuse_damages
from conflict.history.grid.folder import Folder, is_of_storage
from ndb_formats.stored import opened_at

_PARQUET = ".parquet"
_BATCH_ROWS = 1 << 14
_LABELS = {"applier": pa.string(), "cluster": pa.string(), "applied_in": pa.int64()}
_LABELLED: dict[str, tuple[str, pa.Schema]] = {
    "applied_epochs": ("applier", APPLIED_EPOCHS),
    "outcomes": ("applier", OUTCOMES),
    "merged": ("applier", MERGED),
    "undecided": ("applier", UNDECIDED),
    "contradictions": ("applier", CONTRADICTIONS),
    "overwritten": ("cluster", OVERWRITTEN),
    "skipped_epochs": ("applier", SKIPPED),
    "unlogged_changes": ("cluster", UNLOGGED),
}


@attrs.frozen
class TableFile:
    """
    One file of a table.

    Attributes:
        address: Where it is: a path, or an address of object storage.
        rows: Its rows.
        bytes: Its size.
        labels: By name, the columns that its path gives.
    """

    address: str
    rows: int
    bytes: int
    labels: Mapping[str, str]

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """
        Yield its rows.

        Args:
            schema: The columns that are wanted.

        Raises:
            HistoryError: It is damaged, is gone, or is not the one that was listed.
        """
        names = [name for name in schema.names if name not in self.labels]
        try:
            with opened_at(self.address, self.bytes) as source:
                file = pq.ParquetFile(source, page_checksum_verification=True)
                self._refuse(file.metadata.num_rows)
                for batch in file.iter_batches(_BATCH_ROWS, columns=names, use_threads=False):
                    yield self._fitted(batch, schema)
        except (OSError, pa.ArrowException) as error:
            gone = isinstance(error, FileNotFoundError)
            if is_of_storage(error) and not gone:
                raise
            cause = "it is gone: the result may have been replaced" if gone else " ".join(str(error).split())
            message = f"{self.address} cannot be read ({cause}); load the result again, or resolve again"
            raise HistoryError(message) from error

    def _refuse(self, rows: int) -> None:
        if rows != self.rows:
            message = f"{self.address} has {rows} rows, but {self.rows} were written. {RESOLVE_AGAIN}"
            raise HistoryError(message)

    def _fitted(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """Return rows in the types that are wanted, with the columns that the path gives."""
        columns = [
            pa.repeat(pa.scalar(self.labels[field.name], pa.string()), len(batch)).cast(field.type)
            if field.name in self.labels
            else _plain(batch.column(field.name)).cast(field.type)
            for field in schema
        ]
        return pa.record_batch(columns, schema=schema)


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


@attrs.frozen
class ResultTable:
    """
    A table of a result.

    Attributes:
        schema: Its columns.
        files: Its files.
    """

    schema: pa.Schema
    files: tuple[TableFile, ...]


def find_table(folder: Folder, name: str) -> ResultTable:
    """
    Find a table of a result.

    Args:
        folder: The result.
        name: A folder or a file of it: ``outcomes``, ``rows/A/shop.orders``, ``exceptions/A/shop.orders$EX``.

    Raises:
        HistoryError: There is no result, or it is damaged or of another version; or it has no such table.
    """
    run, listed = _listed(folder)
    name = name.strip("/").removesuffix(_PARQUET)
    below = {each: rest for each in listed if (rest := _below(each.path, name)) is not None}
    tables = sorted({_table_of(name, rest) for rest in below.values()})
    if len(tables) > 1:
        message = f"{name} of the result in {folder.uri} is several tables; give one: {', '.join(tables)}"
        raise HistoryError(message)
    files = tuple(
        TableFile(folder.address(each.path), each.rows, each.bytes, _labels(rest)) for each, rest in below.items()
    )
    schema = _schema_of(run, name)
    if schema is None and files:
        with opened_at(files[0].address, files[0].bytes) as source:
            schema = pq.read_schema(source)
    if schema is None:
        message = f"the result in {folder.uri} has no table {name}; it has {', '.join(_names(listed))}"
        raise HistoryError(message)
    label = _LABELLED.get(name, ("",))[0]
    labels = dict.fromkeys([*([label] if label else []), *(each for file in files for each in file.labels)])
    return ResultTable(pa.schema([*schema, *(pa.field(each, _LABELS[each]) for each in labels)]), files)


def read_run(folder: Folder) -> dict[str, Any]:
    """
    Read the document `run.json` of a result.

    Raises:
        HistoryError: There is no result, or it is of another version.
    """
    if not (folder.exists("run.json") and folder.exists("counters.json")):
        message = f"there is no result in {folder.uri}; make one with ndb-conflict resolve"
        raise HistoryError(message)
    run = folder.read_json("run.json")
    if not isinstance(run, dict) or run.get("format") != RESULT_FORMAT:
        message = f"the result in {folder.uri} is of another version of ndb-conflict; resolve the binlogs again"
        raise HistoryError(message)
    return run


def _listed(folder: Folder) -> tuple[dict[str, Any], list[FileFacts]]:
    """Return the document `run.json` of a result, and its Parquet files, which are there with their sizes."""
    run = read_run(folder)
    there, what = folder.sizes(), f"the result in {folder.uri}"
    refuse_damages(what, damages(folder, [FileFacts(**run[ENTRY])], there), RESOLVE_AGAIN)
    facts = [each for each in read_catalogue(folder, FILES) if each.path.endswith(_PARQUET)]
    refuse_damages(
        what, (f"{each.path} is missing or cut" for each in facts if there.get(each.path) != each.bytes), RESOLVE_AGAIN
    )
    return run, facts


def _below(path: str, name: str) -> str | None:
    """Return the rest of the path of a file after the name of a table; None if it is no file of it."""
    if path == f"{name}{_PARQUET}":
        return ""
    return path.removeprefix(f"{name}/") if path.startswith(f"{name}/") else None


def _table_of(above: str, rest: str) -> str:
    """Return the table of a file below a folder: with the folders that give no column, or its own name."""
    *folders, file = rest.split("/")
    named = [above, *(each for each in folders if "=" not in each)]
    stem = file.removesuffix(_PARQUET)
    return "/".join([*named, stem] if "." in stem and "=" not in stem else named)


def _labels(rest: str) -> dict[str, str]:
    pairs = (each.removesuffix(_PARQUET).partition("=") for each in rest.split("/"))
    return {name: value for name, _, value in pairs if name in _LABELS}


def _schema_of(run: Mapping[str, Any], name: str) -> pa.Schema | None:
    """Return the columns of a table that may be without rows; None if they are known from its files alone."""
    if name in _LABELLED:
        return _LABELLED[name][1]
    kind, _, rest = name.partition("/")
    cluster, configuration = rest.partition("/")[0], run["configuration"]
    names = DatabaseNames(configuration["databases"])
    folder, more = {
        "rows": (rows_folder, ()),
        "rows_in_part": (rows_in_part_folder, (NOT_KNOWN_IN,)),
    }.get(kind, (None, ()))
    if folder is None or not run["final_rows"] or cluster not in configuration["clusters"]:
        return None
    for table, columns in configuration["tables"].items():
        if folder(cluster, names.own_name(cluster, table)) == name:
            return pa.schema([*row_schema(table_of(columns)), *more])
    return None


def _names(files: Iterable[FileFacts]) -> list[str]:
    """Return the names of the tables of a result: those that have files, and those that every result has."""
    found = {_table_of(first, rest) for each in files for first, _, rest in [each.path.partition("/")]}
    return sorted({*_LABELLED, *found})
