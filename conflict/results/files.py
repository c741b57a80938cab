"""
Reads results from their files. `conflict.engine.ledger.layout` has the files and folders.

The folder that a result goes to: nothing of the user's is lost, and the result is there whole or not at all.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from conflict.engine.ledger.arrow_rows import NOT_KNOWN_IN, row_schema
from conflict.engine.ledger.contradictions import CONTRADICTIONS
from conflict.engine.ledger.layout import (
    APPLIED_EPOCHS,
    OUTCOMES,
    UNDECIDED,
    applied_epochs_path,
    open_places_path,
    open_rows_path,
)
from conflict.errors import ConfigurationError
from conflict.history.grid.folder import Folder
from conflict.history.grid.stored_folder import StoredFolder
from conflict.history.grid.whole_files import put_back, refuse_unwritable, whole_folder
from conflict.rules.decision import Verdict
from ndb_formats.schema.tables import Table
from ndb_formats.schema.value_conversions import NOT_KNOWN, KnownValue
from ndb_formats.stored import path_of
from ndb_formats.types.values import Value

RESULT = "run.json"  # every result has one


def check_target(target: Folder, inputs: Iterable[Path], *, replace: bool) -> None:
    """
    Make sure, before the work, that a result can be written.

    Args:
        target: Where it is to go.
        inputs: Files and folders that the run reads.
        replace: Whether a result that is there may be replaced.

    Raises:
        ConfigurationError: Something else is there, or an input is inside it, or the folder cannot be made.
    """
    stored = isinstance(target, StoredFolder)
    _refuse_what_is_there(target, replace=replace, before="" if stored else put_back(Path(target.uri)))
    path = path_of(target.uri).resolve()
    inside = next((each for each in inputs if path in (each.resolve(), *each.resolve().parents)), None)
    if inside is not None:
        message = f"{inside}, which the run reads, is inside {target.uri}; give another folder for the result"
        raise ConfigurationError(message)
    if isinstance(target, StoredFolder):
        target.refuse_unwritable()
    else:
        refuse_unwritable(Path(target.uri))


def refuse_nesting(history: Folder, target: Folder) -> None:
    """
    Make sure that neither the History that is kept nor the result is inside the other.

    Raises:
        ConfigurationError: One is.
    """
    first, second = (path_of(each.uri).resolve() for each in (history, target))
    if first in (second, *second.parents) or second in first.parents:
        message = f"the History in {history.uri} and the result in {target.uri} must not be inside each other"
        raise ConfigurationError(message)


def _refuse_what_is_there(target: Folder, *, replace: bool, before: str = "") -> None:
    if not target.exists():
        return
    if not replace:
        message = f"{target.uri} exists already{before}; give another folder, or replace the result in it with --force"
        raise ConfigurationError(message)
    if not target.exists(RESULT):
        message = f"{target.uri} exists already and is no result, which is all that --force replaces"
        raise ConfigurationError(message)


@contextlib.contextmanager
def whole_or_not_at_all(target: Folder, *, replace: bool = False) -> Iterator[Folder]:
    """
    Give a folder to write to, and put it in place of `target` only if nothing went wrong.

    See `conflict.history.grid.whole_files`, and of object storage `conflict.history.grid.stored_folder`.

    Args:
        target: Where the result is to be.
        replace: Whether a result that is there is replaced.

    Raises:
        ConfigurationError: Something is there by now, see `check_target`; or another process writes there.
    """
    if isinstance(target, StoredFolder):
        new = target.emptied()
        with new.published():
            yield new
        target.remove_objects()
        return
    with whole_folder(Path(target.uri), lambda: _refuse_what_is_there(target, replace=replace)) as work:
        yield Folder(str(work))


def rejected_examples(out: Folder, clusters: Sequence[str], count: int) -> list[dict[str, Any]]:
    """
    Return the first rejected outcomes of each applier, at most `count`, as dictionaries.

    They are the first in the order of the log, among as many as are looked at; the files have another order.
    """
    order = ("epoch", "source_epoch", "group", "ordinal", "table", "key")
    rejected = pads.field("verdict") == Verdict.REJECTED.name
    return [each for name in clusters for each in _first(out, "outcomes", name, OUTCOMES, rejected, order, count)]


def contradicted_example(out: Folder, clusters: Sequence[str], tables: Sequence[str]) -> dict[str, Any] | None:
    """Return the first row of an applier, in some tables, for which a binlog shows something else; None without one."""
    order, chosen = ("epoch", "group", "table", "key"), pads.field("table").isin([*tables])
    found = (_first(out, "contradictions", name, CONTRADICTIONS, chosen, order, 1) for name in clusters)
    return next((rows[0] for rows in found if rows), None)


def _first(
    out: Folder, part: str, applier: str, schema: pa.Schema, chosen: pads.Expression, order: Sequence[str], count: int
) -> list[dict[str, Any]]:
    """Return the first rows of an applier's part of a result, among as many as are looked at."""
    path = f"{part}/applier={applier}"
    if not out.exists(path):
        return []
    dataset = pads.dataset(out.here(path), schema=schema, format="parquet", partitioning=None)
    found = dataset.head(_MOST_LOOKED_AT, filter=chosen).sort_by([(name, "ascending") for name in order])
    return [{**each, "applier": applier} for each in found.slice(0, count).to_pylist()]


_MOST_LOOKED_AT = 10_000


def read_rows(out: Folder, path: str, table: Table) -> list[tuple[Value, ...]]:
    """Return the rows of a table, or of an exceptions table, of a result; none if `path` does not exist."""
    if not out.exists(path):
        return []
    schema = row_schema(table)
    data = pads.dataset(out.here(path), schema=schema, format="parquet", partitioning=None).to_table()
    return list(zip(*(column.to_pylist() for column in data.columns), strict=True))


def read_rows_in_part(out: Folder, path: str, table: Table) -> list[tuple[KnownValue, ...]]:
    """Return the rows of a table of a result with values that only the server knows; none if `path` does not exist."""
    if not out.exists(path):
        return []
    schema = pa.schema([*row_schema(table), NOT_KNOWN_IN])
    data = pads.dataset(out.here(path), schema=schema, format="parquet", partitioning=None).to_table()
    unknown = data[NOT_KNOWN_IN.name].to_pylist()
    return [
        tuple(NOT_KNOWN if name in missing else value for name, value in row.items() if name != NOT_KNOWN_IN.name)
        for row, missing in zip(data.to_pylist(), unknown, strict=True)
    ]


def read_applied_epochs(out: Folder, applier: str) -> list[dict[str, Any]]:
    """Return the foreign epochs that an applier applied, in order, as dictionaries."""
    applied: list[dict[str, Any]] = out.read_table(applied_epochs_path(applier), APPLIED_EPOCHS).to_pylist()
    return applied


def count_rejected(out: Folder, applier: str) -> Counter[tuple[int, int, str]]:
    """Return how many operations an applier rejected, by foreign epoch, own epoch, and table."""
    path = f"outcomes/applier={applier}"
    if not out.exists(path):
        return Counter()
    dataset = pads.dataset(out.here(path), schema=OUTCOMES, format="parquet", partitioning=None)
    rejected = dataset.to_table(
        ["source_epoch", "epoch", "table"], filter=pads.field("verdict") == Verdict.REJECTED.name
    )
    return Counter(zip(*(column.to_pylist() for column in rejected.columns), strict=True))


def read_tracked(out: Folder, applier: str) -> list[dict[str, Any]]:
    """Return the open decisions of an applier's pass TRACK, without those that depend on open places and moments."""
    path = f"undecided/applier={applier}"
    if not out.exists(path):
        return []
    dataset = pads.dataset(out.here(path), schema=UNDECIDED, format="parquet", partitioning=None)
    others = (open_places_path(applier), open_rows_path(applier))
    files = [file for file in dataset.files if not file.endswith(others)]
    kept = pads.dataset(files, schema=UNDECIDED, format="parquet", partitioning=None) if files else None
    return [] if kept is None else kept.to_table().to_pylist()
