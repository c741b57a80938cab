"""
What parallel workers would bring: how many epochs of a log an applier could apply side by side.

An epoch is one transaction. It waits until all epochs are committed up to the last earlier one that changed a row of
it: so the logical clock of Gtid events has it where the source tracks changed rows. Epochs are given to workers in the
order of the log, cost as much as their row changes, and commit in that order (replica_preserve_commit_order = ON): a
worker is busy until its epoch has committed. Keys of other tables, such as foreign keys and further unique keys, are
not looked at, and rows of a table without a primary key count as one row.

Source: MySQL manual, "Replica Server Options and Variables" (replica_parallel_workers, replica_preserve_commit_order),
"NDB Cluster Replication Using the Multithreaded Applier".
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conflict.config.arguments import StageProgress, no_progress
from conflict.config.configuration import Configuration
from conflict.history.grid.epoch_files import EPOCHS
from conflict.history.grid.folder import Folder
from conflict.history.grid.memory_folder import MemoryFolder
from conflict.history.grid.schemas import CHANGES, CONSEQUENCES, KEYLESS, KEYS, keys_part, log_part, part
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.tasks import in_threads
from conflict.runs.ingest_job import ingest
from conflict.telling.shown import Shown
from conflict.telling.value import Table, Telling
from ndb_formats.columnar.event_chunks import read_chunks
from ndb_formats.constants import EventType
from ndb_formats.events.gtid_event import CLOCK, LOGICAL, TIME, TIME_BITS
from ndb_formats.events.rows_event import Operation

WORKERS = (1, 2, 4, 8, 16)
ASSUMPTION = (
    "An epoch costs as much as it has row changes, waits for the last earlier epoch that changed one of its rows and "
    "all before that, and commits in the order of the log."
)
_CHUNK_EVENTS, _CHUNK_BYTES = 1 << 18, 1 << 26
_OPERATIONS = pa.array([*map(int, Operation)], pa.int8())
_TIMED = (EventType.GTID_LOG_EVENT, EventType.ANONYMOUS_GTID_LOG_EVENT)

Int64 = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class LoggedRows:
    """
    The row changes in a cluster's log that others apply: its own, refreshes and reflected ones.

    All arrays have shape (rows,).

    Attributes:
        epoch: Number of the epoch of each, from 0, in the order of the log.
        key: A number per row of a table; negative for a table without a primary key.
        table: Number of its table.
    """

    epoch: Int64
    key: Int64
    table: Int64


@attrs.frozen
class SharedRow:
    """
    A row for which epochs wait.

    Attributes:
        table: Its table.
        key: Its primary key as text; None for all rows of a table without one.
        epochs: How many epochs changed it and wait for an earlier one that did, less than `WORKERS[-1]` epochs before.
    """

    table: str
    key: str | None
    epochs: int


@attrs.frozen
class ClusterWorkers:
    """
    What workers would bring to the appliers of one cluster's changes.

    Attributes:
        epochs: How many epochs with changes its log has.
        changes: Their row changes.
        speedup: By number of workers, how many times faster than one worker all epochs are applied.
        logged: The same by the logical clock that the log has; None if it has none.
        tables: By table, how many epochs wait for a row of it, most first.
        rows: The rows for which most epochs wait.
    """

    epochs: int
    changes: int
    speedup: Mapping[int, float]
    logged: Mapping[int, float] | None
    tables: Mapping[str, int]
    rows: tuple[SharedRow, ...]


@attrs.frozen(repr=False, eq=False)
class ParallelWorkers(Shown):
    """
    What parallel workers would bring. Printed, it is a table of clusters, and the rows for which most epochs wait.

    Attributes:
        clusters: By the cluster that made the changes, what workers would bring to those who apply them.
    """

    clusters: Mapping[str, ClusterWorkers]

    def document(self) -> dict[str, Any]:
        """Return the document of ``--json``."""
        return {"workers": list(WORKERS), "clusters": {name: _plain(each) for name, each in self.clusters.items()}}

    def telling(self) -> Telling:
        """Return what is told of it."""
        figures, rows, sentences = list[list[object]](), list[list[object]](), list[str]()
        for name, found in self.clusters.items():
            for words, times in (("could be", found.speedup), ("as logged", found.logged)):
                if times is not None:
                    figures.append([name, words, found.epochs, found.changes, *(round(times[n], 2) for n in WORKERS)])
            if found.logged is None:
                sentences.append(f"The log of {name} has no last_committed and sequence_number.")
            elif found.logged[WORKERS[-1]] == 1 < found.speedup[WORKERS[-1]]:
                sentences.append(
                    f"By the log of {name}, each epoch waits for the one before, so workers bring nothing: set "
                    f"ndb_log_transaction_dependency = ON in the my.cnf of {name}."
                )
            rows += [[name, each.table, each.key or "all rows: no primary key", each.epochs] for each in found.rows]
        headings = ("changes of", "order", "epochs", "row changes", *(f"{n} workers" for n in WORKERS))
        return Telling(
            "Parallel workers",
            ASSUMPTION,
            tuple(sentences),
            (
                Table("How many times faster than one worker", headings, figures, texts=2),
                Table("Rows for which most epochs wait", ("changes of", "table", "key", "epochs"), rows, texts=3),
            ),
        )


def _plain(each: ClusterWorkers) -> dict[str, Any]:
    figures = attrs.asdict(each)
    for name in ("speedup", "logged"):
        times = figures[name]
        figures[name] = None if times is None else {str(count): round(value, 4) for count, value in times.items()}
    return figures


def waits_for(rows: LoggedRows) -> tuple[Int64, Int64]:
    """
    Return, per row change, the last earlier epoch that changed the same row, and per epoch the last one of its rows.

    Returns:
        Numbers of epochs; -1 for none. Shapes (rows,) and (epochs,).
    """
    count = int(rows.epoch.max()) + 1 if len(rows.epoch) else 0
    order = np.lexsort((rows.epoch, rows.key))
    key, epoch = rows.key[order], rows.epoch[order]
    same_key = np.concatenate([[False], key[1:] == key[:-1]])
    first = np.concatenate([[True], (key[1:] != key[:-1]) | (epoch[1:] != epoch[:-1])])
    before = np.where(same_key, np.concatenate([[-1], epoch[:-1]]), -1)
    # The first change of a row in an epoch knows the epoch before; the others take it from the first.
    of_first = before[np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))] if len(first) else before
    by_row = np.empty(len(order), np.int64)
    by_row[order] = of_first
    by_epoch = np.full(count, -1, np.int64)
    np.maximum.at(by_epoch, rows.epoch, by_row)
    return by_row, by_epoch


def speedup(costs: Int64, waits: Int64, workers: int) -> float:
    """
    Return how many times faster some workers apply epochs than one.

    Args:
        costs: The cost of each epoch, in the order of the log.
        waits: Up to which earlier epoch all have to be committed before each; -1 for none.
        workers: How many workers there are.
    """
    committed, start = (
        [0] * workers,
        0,
    )  # as commits are in order, the first worker that is free is that of `workers` ago
    for cost, wait in zip(costs.tolist(), waits.tolist(), strict=True):
        start = max(start, committed[-workers], committed[workers + wait])
        committed.append(max(start + cost, committed[-1]))
    return int(costs.sum()) / committed[-1] if committed[-1] else 1.0


def workers_of(configuration: Configuration, progress: StageProgress = no_progress) -> ParallelWorkers:
    """
    Return what workers would bring to those who apply the changes of each cluster.

    Args:
        configuration: A run with the binlogs of its clusters.
        progress: Called with the name of a stage, what is done, and what there is to do.

    Raises:
        HistoryError: The binlogs contradict each other.
        FormatError: A binlog cannot be read.
    """
    run = make_run(configuration)
    names = [table.full_name for table in run.data_schema.tables]
    with tempfile.TemporaryDirectory() as place:
        history = MemoryFolder.at(str(Path(place, "history")))
        try:
            ingest(in_threads, run, history, buckets=1, progress=progress)
            keys = _read(history, keys_part(0, 0), KEYS, ("key", "text"))
            texts = dict(zip(keys["key"].to_pylist(), keys["text"].to_pylist(), strict=True)) if len(keys) else {}
            clusters = {
                cluster.name: _workers(*_rows_of(history, cluster.name), cluster.files, names, texts)
                for cluster in configuration.clusters
            }
            return ParallelWorkers(clusters)
        finally:
            history.delete()


def _rows_of(history: Folder, cluster: str) -> tuple[LoggedRows, Int64]:
    """Return the rows of a cluster's log that others apply, and per epoch when it was committed."""
    keyed = _read(history, part("changes", cluster, 0, 0), CHANGES, ("table", "epoch", "operation", "key"))
    applied = _read(history, part("consequences", cluster, 0, 0), CONSEQUENCES, ("table", "epoch", "flags", "key"))
    keyless = _read(history, log_part("keyless", cluster, 0), KEYLESS, ("table", "epoch", "operation", "own"))
    # Statements that change definitions are in the columns, too; they are no changes that an applier receives.
    keyed, keyless = (each.filter(pc.is_in(each["operation"], _OPERATIONS)) for each in (keyed, keyless))
    # Of what its own applier wrote, others apply refreshes and reflected changes alone.
    parts = keyed, applied.filter(pc.greater(applied["flags"], 0)), keyless.filter(keyless["own"])
    table = np.concatenate([each["table"].to_numpy().astype(np.int64) for each in parts])
    keys = [each["key"].to_numpy().astype(np.int64) for each in parts[:2]]
    key = np.concatenate([*keys, -1 - parts[2]["table"].to_numpy().astype(np.int64)])
    epochs = np.concatenate([each["epoch"].to_numpy().astype(np.uint64) for each in parts])
    numbers, epoch = np.unique(epochs, return_inverse=True)
    logged = _read(history, log_part("epochs", cluster, 0), EPOCHS, ("number", "committed"))
    of_number = np.argsort(logged["number"].to_numpy(), kind="stable")
    which = of_number[np.searchsorted(logged["number"].to_numpy(), numbers, sorter=of_number)]
    return LoggedRows(epoch.astype(np.int64), key, table), logged["committed"].to_numpy().astype(np.int64)[which]


def _read(history: Folder, path: str, schema: pa.Schema, columns: tuple[str, ...]) -> pa.Table:
    return history.read_table(path, schema, columns) if history.exists(path) else schema.empty_table().select(columns)


def _workers(
    rows: LoggedRows, committed: Int64, files: Sequence[Path], names: Sequence[str], texts: Mapping[int, str]
) -> ClusterWorkers:
    by_row, by_epoch = waits_for(rows)
    costs = np.bincount(rows.epoch, minlength=len(by_epoch)).astype(np.int64)
    clock = logged_waits(files, committed)
    near = (by_row >= 0) & (rows.epoch - by_row < WORKERS[-1])
    pairs = np.unique(np.stack([rows.epoch, rows.table, rows.key])[:, near], axis=1)
    of_tables = np.unique(pairs[:2], axis=1)[1]
    tables = {names[number]: int((of_tables == number).sum()) for number in np.unique(of_tables).tolist()}
    found, counts = np.unique(pairs[1:], axis=1, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:10]
    return ClusterWorkers(
        len(costs),
        int(costs.sum()),
        {each: speedup(costs, by_epoch, each) for each in WORKERS},
        None if clock is None else {each: speedup(costs, clock, each) for each in WORKERS},
        dict(sorted(tables.items(), key=lambda item: -item[1])),
        tuple(
            SharedRow(names[int(found[0, each])], texts.get(int(found[1, each])), int(counts[each]))
            for each in most.tolist()
        ),
    )


def logged_waits(files: Sequence[Path], committed: Int64) -> Int64 | None:
    """
    Return for which earlier epoch each epoch waits by last_committed and sequence_number; None if a log lacks these.

    Args:
        files: The files of a log.
        committed: When each epoch was committed, by its Gtid event: microseconds since 1970.
    """
    parts = [_clocks(str(file)) for file in files]
    clocks = np.concatenate([each for each in parts if len(each)] or [np.empty((0, 3), np.int64)])
    file = np.repeat(np.arange(len(parts)), [len(each) for each in parts])
    order = np.argsort(clocks[:, 0], kind="stable")
    which = (
        order[np.minimum(np.searchsorted(clocks[order, 0], committed), max(len(order) - 1, 0))] if len(order) else order
    )
    if len(which) != len(committed) or (clocks[which, 0] != committed).any() or not clocks[which, 2].all():
        return None
    found = np.full(len(committed), -1, np.int64)
    for number in np.unique(file[which]).tolist():
        here = np.flatnonzero(file[which] == number)
        _, last, sequence = clocks[which[here]].T
        # Numbers begin anew in each file, whose first transaction waits for the files before.
        found[here] = np.concatenate([[here[0] - 1], here])[np.searchsorted(sequence, last, side="right")]
    return found


def _clocks(file: str) -> Int64:
    """Return when the transactions of a file were committed, and their last_committed and sequence_number."""
    found = [np.empty((0, 3), np.int64)]
    for chunk in read_chunks(file, start=4, stop=None, verify=False, events=_CHUNK_EVENTS, span=_CHUNK_BYTES):
        events = np.flatnonzero(np.isin(chunk.types, _TIMED))
        starts = chunk.starts[events][chunk.ends[events] - chunk.starts[events] >= TIME.stop]
        starts = starts[chunk.data[starts + CLOCK] == LOGICAL]
        fields = np.zeros((len(starts), 24), np.uint8)
        fields[:, :23] = chunk.data[starts[:, None] + np.arange(CLOCK + 1, TIME.stop)]
        last, sequence, time = fields.view("<i8").T
        found.append(np.stack([time & TIME_BITS, last, sequence], axis=1))
    return np.concatenate(found)
