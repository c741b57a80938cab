"""
What an applier simply applied, change by change, put together from a result and the History it was found in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conflict.errors import HistoryError
from conflict.grid.folder import Folder
from conflict.grid.manifest import Manifest, read_manifest
from conflict.grid.schemas import CHANGES, KEYS, SCHEDULE, keys_part, part
from conflict.results.layout import APPLIED, APPLIED_EPOCHS, OUTCOMES, applied_epochs_path, labelled, outcomes_path
from ndb_formats.events.rows_event import Operation

__all__ = ["applied_changes", "applied_places"]

_READ = pa.schema(
    [CHANGES.field(name) for name in ("key", "table", "operation", "epoch", "group", "ordinal")]
    + [CHANGES.field(name) for name in ("file", "position", "row")]
)
_OTHERS = ("source_epoch", "epoch", "ordinal")
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
Arrays = Mapping[str, np.ndarray]


def applied_changes(out: Folder, history: Folder, applier: str) -> Iterator[pa.Table]:
    """
    Yield the changes of the other cluster that one applier applied as they stood, bucket by bucket.

    They are those of all epochs that it took (`APPLIED_EPOCHS`), but for those that stand in its
    `conflict.results.layout.OUTCOMES` with an ordinal that is not negative; changes of other epochs were not taken.

    Args:
        out: Folder of a result of the Spark engine.
        history: The History that was resolved.
        applier: The cluster that applied them.

    Yields:
        The columns of `OUTCOMES` that the two share, from `source_epoch` to `row`: all but `source`,
        `refresh`, `verdict`, `cause`, `incoming` and `stored`. In the order of both epochs and `ordinal`.

    Raises:
        HistoryError: The result is not of that History, or holds nothing of that applier.
    """
    if not out.exists(applied_epochs_path(applier)):
        message = f"{out.uri} does not say which epochs {applier} took; give a result, and one of its clusters"
        raise HistoryError(message)
    manifest = read_manifest(history)
    (source,) = (name for name in manifest.clusters if name != applier)
    applies = _arrays(out.read_table(applied_epochs_path(applier), APPLIED_EPOCHS, ("source_epoch", "epoch")))
    _check(applies, history, out, applier)
    applied = out.read_json(APPLIED)[applier]
    if len(applied) != manifest.buckets:
        raise _other_history(out, history, f"that has {manifest.buckets} buckets and not {len(applied)}")
    for bucket in range(manifest.buckets):
        parts = [part("changes", source, run, bucket) for run in range(len(manifest.segments[source]))]
        changes = history.read_tables(parts, _READ)
        outcomes = out.read_table(outcomes_path(applier, bucket), OUTCOMES, _OTHERS)
        own = outcomes.filter(pc.greater_equal(outcomes["ordinal"], 0))  # others are of what the applier there logged
        places = applied_places(applies, changes, _arrays(own))
        if places is None or len(places[0]) != applied[bucket]:
            raise _other_history(out, history, f"its bucket {bucket} has not just the changes that {applier} took")
        keys = history.read_tables([keys_part(bucket, batch) for batch in range(manifest.batches)], KEYS)
        rows, apply = places
        yield _named(changes.take(pa.array(rows)), applies["epoch"][apply], keys, manifest, source)


def _arrays(table: pa.Table) -> dict[str, np.ndarray]:
    return {name: table[name].to_numpy() for name in table.column_names}


def _other_history(out: Folder, history: Folder, reason: str) -> HistoryError:
    message = f"{out.uri} is not a result of the History {history.uri}: {reason}"
    return HistoryError(f"{message}; give the History that the Spark engine resolved")


def _check(applies: Arrays, history: Folder, out: Folder, applier: str) -> None:
    """Check that a History knows all epochs that were taken."""
    known = history.read_table("schedule.parquet", SCHEDULE, ("applier", "foreign_epoch"))
    mine = known["foreign_epoch"].to_numpy()[known["applier"].to_numpy() == applier]
    strange = np.setdiff1d(applies["source_epoch"], mine)
    if len(strange):
        raise _other_history(out, history, f"in it {applier} did not take epoch {strange[0]}")


def applied_places(applies: Arrays, changes: pa.Table, others: Arrays) -> tuple[Int64, Int64] | None:
    """
    Return which rows of a bucket were applied as they stood, and the number of the take of each.

    None if an outcome is of no row that was taken.

    Args:
        applies: Both epochs of each.
        changes: The rows, in the order of epoch and ordinal.
        others: Both epochs and the ordinal of each outcome.
    """
    epochs, starts, counts = np.unique(changes["epoch"].to_numpy(), return_index=True, return_counts=True)
    places = _code(np.repeat(np.arange(len(epochs)), counts), changes["ordinal"].to_numpy())
    own_epochs = np.unique(applies["epoch"])
    here = np.flatnonzero(np.isin(applies["source_epoch"], epochs))
    source, own = _find(epochs, applies["source_epoch"][here]), _find(own_epochs, applies["epoch"][here])
    # What is taken twice in one own epoch is one pair of epochs here, and each of its changes is there twice.
    pairs, first, times = np.unique(_code(source, own), return_index=True, return_counts=True)
    place = pairs >> 32
    count = counts[place]
    before = np.cumsum(count) - count
    rows = np.repeat(starts[place] - before, count) + np.arange(count.sum())
    left = np.repeat(times, count)

    source, own = _find(epochs, others["source_epoch"]), _find(own_epochs, others["epoch"])
    pair, row = _find(pairs, _code(source, own)), _find(places, _code(source, others["ordinal"]))
    if min(pair.min(initial=0), row.min(initial=0)) < 0:
        return None
    np.subtract.at(left, before[pair] + row - starts[place[pair]], 1)
    if left.min(initial=0) < 0:
        return None
    return np.repeat(rows, left), here[first][np.repeat(np.repeat(np.arange(len(pairs)), count), left)]


def _code(high: np.ndarray, low: np.ndarray) -> Int64:
    """Return two numbers as one; those of a negative one are of nothing."""
    return np.where(high < 0, -1, (high.astype(np.int64) << 32) | low)


def _find(among: np.ndarray, wanted: np.ndarray) -> Int64:
    """Return where numbers stand among sorted ones, -1 for those that do not."""
    place = np.searchsorted(among, wanted)
    known = np.append(among, among[:1])[place] == wanted if len(among) else np.zeros(len(wanted), np.bool_)
    return np.where(known, place, -1)


def _named(applied: pa.Table, epoch: UInt64, keys: pa.Table, manifest: Manifest, source: str) -> pa.Table:
    number = {name: applied[name].to_numpy() for name in ("table", "operation", "file")}
    columns = {
        "source_epoch": applied["epoch"],
        "group": applied["group"],
        "ordinal": applied["ordinal"],
        "epoch": epoch,
        "table": labelled(number["table"], list(manifest.tables)).cast(pa.string()),
        "key": keys["text"].take(applied["key"]),
        "operation": labelled(number["operation"] - 1, [each.name for each in Operation]).cast(pa.string()),
        "file": labelled(number["file"], manifest.files[source]).cast(pa.string()),
        "position": applied["position"],
        "row": applied["row"],
    }
    return pa.table(columns, schema=pa.schema([OUTCOMES.field(name) for name in columns]))
