"""
The files of a result. Computes docs/result.md, "The output folder".

    applied_epochs/applier=A/...parquet       one row per epoch of the other cluster that an applier applied
    outcomes/applier=A/...parquet             one row per operation of these that was not simply applied; with
                                              --all-outcomes, per operation
    merged/applier=A/...parquet               what a resolver of one's own wrote in place of operations that it merged
    undecided/applier=A/...parquet            one row per open decision
    contradictions/applier=A/...parquet       one row per row that the binlog of A shows otherwise than was derived
    overwritten/cluster=A/...parquet          one row per own change of A that its applier overwrote unseen
    exceptions/<cluster>/<table>.parquet      rows of exceptions tables
    rows/<cluster>/<table>/...parquet         final rows of the tables
    skipped_epochs/applier=A.parquet          row changes of epochs that the applier of A never applied
    repeated_epochs/applier=A.parquet         row changes of epochs that it applied again
    readings/2, readings/3 ...                results of other readings of the binlogs, with the files above
    state/                                    with --keep-state, what a later run goes on from
    counters.json                             status counters per cluster
    files.parquet                             what each of these files is; `run.json` says what it is itself
    run.json                                  configuration, versions, summary
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.errors import HistoryError
from conflict.history.grid.catalogue import (
    FileFacts,
    damages,
    facts_of,
    read_catalogue,
    refuse_damages,
    write_catalogue,
)
from conflict.history.grid.folder import Folder
from conflict.history.grid.path_names import table_as_path


@attrs.frozen(kw_only=True)
class ResultOptions:
    """
    Which parts of a result are written.

    Attributes:
        final_rows: Write the final rows of the tables, and compare them between the clusters. Without them no values
            are read: the number of rows that differ stays unknown where only values can tell.
        all_outcomes: Write an outcome for every operation, not only for operations that were not simply applied.
        epoch_range: Divide outcomes and overwritten changes into ranges of so many global checkpoints of the applier;
            None not to divide them.
        whole_open_epochs: Read all rows of an epoch with a row that may have been judged at several moments, and tell
            which others are rejected (`OpenEpoch.rejected`). The rows that are open are the same.
        keep_state: Write what a later run needs to go on from there.
        after: An earlier result with such a state: only epochs that were applied after it are decided, and told of.
    """

    final_rows: bool = True
    all_outcomes: bool = False
    epoch_range: int | None = None
    whole_open_epochs: bool = False
    keep_state: bool = False
    after: Folder | None = None


DEFAULT_OPTIONS = ResultOptions()


# Raised when the columns or the entries of a result change.
RESULT_FORMAT = 9
# Folder of exceptions rows without numbers, which is not part of a finished result.
STAGED_EXCEPTIONS = "staged_exceptions"
# The folders that hold a part per bucket.
BUCKET_PARTS = (
    *("outcomes", "merged", "overwritten", "exceptions", STAGED_EXCEPTIONS, "rows", "rows_in_part", "undecided"),
    "contradictions",
)

# A row of a table: its key as text for people, which two rows can have, and the bytes that tell it from all others, by
# which everything joins (`ndb_formats.schema.row_keys.key_of`); of a table without a primary key, its values.
ROW_KEY = (pa.field("key", pa.string()), pa.field("identity", pa.binary()))
APPLIED_EPOCHS = pa.schema(
    [("source", pa.string()), ("source_epoch", pa.uint64()), ("epoch", pa.uint64()), ("group", pa.int32())]
)
OUTCOMES = pa.schema(
    [
        ("source", pa.string()),
        ("source_epoch", pa.uint64()),
        ("group", pa.int32()),
        ("ordinal", pa.int32()),
        ("epoch", pa.uint64()),
        ("table", pa.string()),
        *ROW_KEY,
        ("operation", pa.string()),
        ("refresh", pa.bool_()),
        ("verdict", pa.string()),
        ("cause", pa.string()),
        ("incoming", pa.uint64()),
        ("stored", pa.uint64()),
        ("file", pa.string()),
        ("position", pa.uint64()),
        ("payload_position", pa.uint32()),
        ("row", pa.int32()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("transaction_id", pa.uint64()),
        ("own_cause", pa.string()),
        ("winner_cluster", pa.string()),
        ("winner_epoch", pa.uint64()),
        ("winner_operation", pa.string()),
        ("winner_refresh", pa.bool_()),
        ("winner_file", pa.string()),
        ("winner_position", pa.uint64()),
        ("winner_payload_position", pa.uint32()),
        ("winner_row", pa.int32()),
    ]
)
# Columns that were written in place of operations whose verdict is MERGED, as text for people and as bytes of a binlog.
MERGED = pa.schema(
    [
        *(OUTCOMES.field(name) for name in ("source_epoch", "epoch", "group", "ordinal", "table", "key", "identity")),
        ("columns", pa.list_(pa.struct([("name", pa.string()), ("value", pa.string()), ("payload", pa.binary())]))),
    ]
)
# Changes of a cluster that its own applier overwrote: `epoch` and `group` are those of the change, `applied_epoch` is
# the own epoch in which the change that won was applied. Other columns mean the same as those of outcomes.
OVERWRITTEN = pa.schema(
    [
        *(OUTCOMES.field(name) for name in ("epoch", "group", "table", "key", "identity", "operation")),
        *(OUTCOMES.field(name) for name in ("file", "position", "payload_position", "row", "time", "transaction_id")),
        ("applied_epoch", pa.uint64()),
        *(OUTCOMES.field(name) for name in OUTCOMES.names if name.startswith("winner_") and name != "winner_refresh"),
    ]
)
# Beside the columns of an exceptions table, what tells the outcome of a row from others. A server refuses other columns
# with such a name.
OUTCOME_PLACE = pa.field(
    "NDB$outcome",
    pa.struct(
        [
            ("applier", pa.string()),
            ("source_epoch", pa.uint64()),
            ("epoch", pa.uint64()),
            ("group", pa.int32()),
            ("ordinal", pa.int32()),
            ("table", pa.string()),
            *ROW_KEY,
        ]
    ),
)
# Columns beside rows of exceptions tables without numbers: the epoch apply; whether the operation was rejected for a
# cause of its own, not with its transaction; and its order in the epoch (see `conflict.engine.columnar.order`).
EPOCH_APPLY, OWN_CAUSE = pa.field("apply", pa.int64()), pa.field("own_cause", pa.bool_())
OPERATION_ORDER = pa.field("operation_order", pa.list_(pa.int64()))
STAGED = (EPOCH_APPLY, OWN_CAUSE, OPERATION_ORDER, OUTCOME_PLACE)
# Decisions that the binlogs leave open: the decision made here, and the candidates, each as its cause or verdict.
UNDECIDED = pa.schema(
    [
        ("source_epoch", pa.uint64()),
        ("table", pa.string()),
        *ROW_KEY,
        ("operation", pa.string()),
        ("decided", pa.string()),
        ("candidates", pa.list_(pa.string())),
    ]
)


def outcomes_note(*, all_outcomes: bool) -> str:
    """Return what the rows of `outcomes/` are, for the reader of `run.json`."""
    if all_outcomes:
        return "outcomes/ has one row for every operation that an applier received"
    return (
        "outcomes/ has one row for every operation that was not simply applied; every other change of the epochs "
        "in applied_epochs/ was applied (resolve with --all-outcomes to have a row for each)"
    )


def applied_epochs_path(applier: str) -> str:
    """Return the path of the epochs that an applier applied."""
    return f"applied_epochs/applier={applier}/epochs.parquet"


def in_epoch_ranges(rows: pa.Table, epochs: str, width: int | None) -> Iterator[tuple[int | None, pa.Table]]:
    """
    Yield rows by ranges of epochs, with the first global checkpoint of each range: the upper half of an epoch.

    Args:
        rows: The rows.
        epochs: The column with their epochs.
        width: The global checkpoints of a range; None for all rows at once, of no range.
    """
    if width is None:
        yield None, rows
        return
    checkpoints = rows.column(epochs).to_numpy() >> np.uint64(32)
    first = checkpoints - checkpoints % np.uint64(width)
    for each in np.unique(first):
        yield int(each), rows.filter(pa.array(first == each))


def _in_range(first: int | None) -> str:
    return "" if first is None else f"/applied_in={first}"


def outcomes_path(applier: str, bucket: int, first: int | None = None) -> str:
    """Return the path of the outcomes of a bucket's operations on an applier, in a range of `in_epoch_ranges`."""
    return f"outcomes/applier={applier}{_in_range(first)}/bucket={bucket:05d}.parquet"


def merged_path(applier: str, bucket: int) -> str:
    """Return the path of what an applier wrote in place of operations that a resolver of one's own merged."""
    return f"merged/applier={applier}/bucket={bucket:05d}.parquet"


def overwritten_path(cluster: str, bucket: int, first: int | None = None) -> str:
    """Return the path of a cluster's own changes in a bucket that its applier overwrote in a range, likewise."""
    return f"overwritten/cluster={cluster}{_in_range(first)}/bucket={bucket:05d}.parquet"


def staged_exceptions_path(cluster: str, table: str, bucket: int) -> str:
    """Return the path of a bucket's rows of an exceptions table, which have no numbers yet."""
    return f"{STAGED_EXCEPTIONS}/{cluster}/{table_as_path(table)}/bucket={bucket:05d}.parquet"


def applied_epochs_table(
    source: str, source_epoch: npt.NDArray[np.uint64], epoch: npt.NDArray[np.uint64], group: npt.NDArray[np.int32]
) -> pa.Table:
    """
    Return the epochs that an applier applied, in order.

    Args:
        source: Name of the other cluster.
        source_epoch: Its epochs. Shape (applies,).
        epoch: Own epoch in which each was applied. Shape (applies,).
        group: Group of that epoch. Shape (applies,).

    Returns:
        `APPLIED_EPOCHS`, with a dictionary in place of strings.
    """
    sources = labelled(np.zeros(len(epoch), np.int8), [source])
    return pa.table([sources, source_epoch, epoch, group], names=APPLIED_EPOCHS.names)


def labelled(numbers: np.ndarray, labels: Sequence[str]) -> pa.DictionaryArray:
    """Return the label of each number, NULL for a negative one. Shape (numbers,)."""
    missing = numbers < 0
    indices = pa.array(numbers, mask=missing if missing.any() else None)
    return pa.DictionaryArray.from_arrays(indices, pa.array(labels, pa.string()))


def times_of(microseconds: npt.NDArray[np.int64]) -> pa.Array:
    """Return moments, given in microseconds since 1970, as Arrow; NULL for 0."""
    unknown = microseconds == 0
    return pa.array(microseconds, mask=unknown if unknown.any() else None).cast(OUTCOMES.field("time").type)


def exceptions_path(cluster: str, table: str) -> str:
    """Return the path of the rows of an exceptions table."""
    return f"exceptions/{cluster}/{table_as_path(table)}.parquet"


def undecided_path(applier: str, bucket: int) -> str:
    """Return the path of an applier's open decisions on a bucket."""
    return f"undecided/applier={applier}/bucket={bucket:05d}.parquet"


def open_places_path(applier: str) -> str:
    """Return the path of an applier's decisions that depend on when it applied an epoch."""
    return f"undecided/applier={applier}/places.parquet"


def open_rows_path(applier: str) -> str:
    """Return the path of an applier's decisions that depend on when it judged a row."""
    return f"undecided/applier={applier}/rows.parquet"


def skipped_path(applier: str) -> str:
    """Return the path of the rows of epochs that an applier never applied."""
    return f"skipped_epochs/applier={applier}.parquet"


SKIPPED = pa.schema(
    [
        ("source", pa.string()),
        ("source_epoch", pa.uint64()),
        ("table", pa.string()),
        ("operation", pa.string()),
        *ROW_KEY,
    ]
)


def unlogged_path(cluster: str) -> str:
    """Return the path of the rows that a cluster changed without a log."""
    return f"unlogged_changes/cluster={cluster}.parquet"


UNLOGGED = pa.schema(
    [
        ("table", pa.string()),
        *ROW_KEY,
        ("change", pa.string()),
        ("after_epoch", pa.uint64()),
        ("shown_epoch", pa.uint64()),
        ("file", pa.string()),
        ("position", pa.uint64()),
    ]
)


def rows_folder(cluster: str, table: str) -> str:
    """Return the path of the final rows of a table, given as ``database.table``."""
    return f"rows/{cluster}/{table_as_path(table)}"


def rows_path(cluster: str, table: str, bucket: int) -> str:
    """Return the path of a bucket's final rows of a table."""
    return f"{rows_folder(cluster, table)}/bucket={bucket:05d}.parquet"


def rows_in_part_folder(cluster: str, table: str) -> str:
    """Return the path of final rows with values that only the server knows; see `with_unknown`."""
    return f"rows_in_part/{cluster}/{table_as_path(table)}"


def rows_in_part_path(cluster: str, table: str, bucket: int) -> str:
    """Return the path of a bucket's final rows of a table that are known in part."""
    return f"{rows_in_part_folder(cluster, table)}/bucket={bucket:05d}.parquet"


FILES = "files.parquet"
ENTRY = "files"  # of `run.json`
RESOLVE_AGAIN = "Resolve again, with --force to replace it"


def catalogue_result(out: Folder) -> dict[str, Any]:
    """
    List the files of a result, and return what `run.json` says of the list.

    `run.json` is not there yet; an earlier list, of a sweep that goes on, is no part of the result.
    """
    return {ENTRY: attrs.asdict(write_catalogue(out, FILES, facts_of(out, sorted(out.sizes().keys() - {FILES}))))}


def refuse_damaged_result(out: Folder, run: Mapping[str, Any], remedy: str = RESOLVE_AGAIN) -> None:
    """
    Make sure that a result consists of the files that were written, as they were written.

    Args:
        out: Its folder.
        run: Its document `run.json`.
        remedy: What to do if it does not.

    Raises:
        HistoryError: It does not, or another version wrote it.
    """
    if ENTRY not in run:
        message = f"the result in {out.uri} was written by another version of ndb-conflict; resolve again"
        raise HistoryError(message)
    there = out.sizes()
    what = f"the result in {out.uri}"
    refuse_damages(what, damages(out, [FileFacts(**run[ENTRY])], there), remedy)
    facts = read_catalogue(out, FILES)
    refuse_damages(what, damages(out, facts, there), remedy)
    others = there.keys() - {FILES, *(each.path for each in facts)}
    foreign = (path for path in sorted(others) if path.endswith(".parquet"))
    refuse_damages(what, (f"{path} does not belong to it" for path in foreign), remedy)
