"""
What a simulation reads and writes: records per cluster, epoch, change and row, in the form that compiled code receives.

Times are whole microseconds since the start of the run. Data columns hold numbers that name the change that wrote them
(see `written_value`), so that two rows are equal exactly if their columns are.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from conflict.engine.kernels.arrays import Bool, Int8, Int16, Int32, Int64, UInt64
from conflict.engine.kernels.records import Changes, DecisionBuffers, Records, Rules, Schedule, Work
from ndb_formats.columnar.kernel import inlined, interpreted_by, unsigned

NEVER = np.int64(2**62)  # later than any time
FOREVER = 10**15  # ends what has no end; later than all that happens
RESOLVE_BIT = np.uint64(1 << 63)  # of a set of columns: the resolve column; data column n has bit n


class Wish(IntEnum):
    """What a transaction wants with a row; what it does depends on whether its cluster has the row then."""

    READ = 0
    INSERT = 1  # fails, with its transaction, if the row is there
    UPDATE = 2  # finds nothing if the row is not there
    DELETE = 3  # the same
    PUT = 4  # updates, or inserts if the row is not there
    SWAP = 5  # deletes, or inserts if the row is not there


class Stamp(IntEnum):
    """What a resolve column is set to."""

    NONE = 0  # the table has no such column
    CLOCK = 1  # the time of the cluster's clock, in microseconds
    VERSION = 2  # the value that the row had there, plus 1


# What does not change, per cluster. Durations in microseconds, `bandwidth` in bytes per second (0 is unlimited).
# `source` is the cluster that it replicates from, by number, -1 for none; it `relays` what it applies to a third one.
# `workers` are those of its applier that the log of its source lets work side by side.
SETTINGS = np.dtype(
    [
        *[("phase", "i8"), ("epoch", "i8"), ("checkpoint", "i8"), ("first_checkpoint", "i8"), ("skew", "i8")],
        *[("think", "i8"), ("retry_delay", "i8"), ("bandwidth", "i8"), ("per_epoch", "i8"), ("per_row", "i8")],
        *[
            ("retries", "i4"),
            ("source", "i4"),
            ("workers", "i4"),
            ("optimistic", "?"),
            ("transactional", "?"),
            ("relays", "?"),
        ],
    ],
    align=True,
)
# What a cluster logs of a table, by operation: whether an update carries all columns, and whether images carry the
# resolve column, if it was written and if it was not. `writes` is set where updates are logged as writes.
TABLE = np.dtype(
    [
        *[("columns", "i4"), ("stamp", "i4"), ("row_bytes", "i4"), ("transactional", "?"), ("delete_delete", "?")],
        *[("writes", "?"), ("whole", "?"), ("delete_before", "?")],
        *[("before_written", "?"), ("before_other", "?"), ("after_written", "?"), ("after_other", "?")],
    ],
    align=True,
)
# What moves on, per cluster: its queues of transactions, its open epoch, and its applier. An applier that lacks a value
# to compare has `stopped`, at the own epoch `stop_epoch` and its group `stop_group`.
SITE = np.dtype(
    [
        *[("next_start", "i8"), ("thinking", "i8"), ("thought", "i8"), ("retried", "i8"), ("failed", "i8")],
        *[("tick", "i8"), ("first_change", "i8"), ("stop", "i8"), ("queue_start", "i8")],
        *[("logged", "i8"), ("sent_at", "i8"), ("last_arrival", "i8"), ("bytes", "i8")],
        *[("next_foreign", "i8"), ("apply_at", "i8"), ("begun", "i8"), ("free_at", "i8")],
        *[("known", "u8"), ("last_apply", "i8"), ("groups", "i4"), ("content", "?")],
        *[("stopped", "?"), ("stop_group", "i4"), ("stop_epoch", "u8")],
    ],
    align=True,
)
# One logged epoch: changes from `first` to before `last`, entries of its applier from `queue_start` to before
# `queue_stop` of the log's queue, and when it ended and arrived where it is replicated to.
EPOCH = np.dtype(
    [
        *[("number", "u8"), ("first", "i8"), ("last", "i8"), ("queue_start", "i8"), ("queue_stop", "i8")],
        *[("bytes", "i8"), ("closed", "i8"), ("arrived", "i8")],
    ],
    align=True,
)
# When an applier began with an epoch of its source, and when it had applied it.
TAKEN = np.dtype([("begun", "i8"), ("applied", "i8")])
# What the users of a cluster got: transactions that committed, failed for good, or were tried again; operations that
# found no row; reads, and reads of rows that differed between the clusters.
TOTALS = np.dtype(
    [("committed", "i8"), ("failed", "i8"), ("again", "i8"), ("missed", "i8"), ("reads", "i8"), ("stale_reads", "i8")],
    align=True,
)
# How far the buffers are filled; how many rows differ, since when any does, for how long any did, and the integral of
# their number over time.
RUN = np.dtype(
    [
        *[("now", "i8"), ("made", "i8"), ("seen", "i8"), ("sent", "i8"), ("applies", "i8"), ("groups", "i8")],
        *[("differing", "i8"), ("since", "i8"), ("differed", "i8"), ("row_time", "i8"), ("stale", "i8")],
    ],
    align=True,
)


class Intentions(NamedTuple):
    """
    What the users of each cluster want, in order of time, one cluster's after the other's.

    Attributes:
        begin: First transaction of each cluster, and the number of all. Shape (clusters + 1,).
        start: When each transaction starts. Shape (transactions,).
        first: Its first wish; one more at the end. Shape (transactions + 1,).
        kind: `Wish`. Shape (wishes,).
        key: Row. Shape (wishes,).
        writes: Columns that it sets, as a set of bits. Shape (wishes,).
    """

    begin: Int64
    start: Int64
    first: Int64
    kind: Int8
    key: Int32
    writes: UInt64


class Intervals(NamedTuple):
    """
    Intervals of each cluster, in order of time, one cluster's after the other's.

    Attributes:
        begin: First interval of each cluster, and the number of all. Shape (clusters + 1,).
        start: When each starts.
        end: When it is over.
    """

    begin: Int64
    start: Int64
    end: Int64


class MoreOfChanges(NamedTuple):
    """
    More of each change than `Changes` has. Shape (changes,) unless said.

    Attributes:
        at: When it committed.
        transaction: Number of its transaction among those of its cluster.
        carried: Columns of its after image, as a set of bits.
        written: Columns that it set, as a set of bits; those of a delete are not kept.
        columns: Data columns of its after image. Shape (changes, columns).
    """

    at: Int64
    transaction: Int64
    carried: UInt64
    written: UInt64
    columns: UInt64


class MoreOfEntries(NamedTuple):
    """
    More of each entry that an applier logged than `Log` has.

    Attributes:
        carried: Columns of its after image. Shape (entries,).
        columns: Data columns. Shape (entries, columns).
    """

    carried: UInt64
    columns: UInt64


class MoreOfRows(NamedTuple):
    """
    More of each row than `State` has.

    Attributes:
        columns: Data columns; 0 is NULL. Shape (keys, clusters, columns).
        version: How often it changed. Shape (keys, clusters).
        touched: The last transaction that wanted it, by number from 1. Shape (keys, clusters).
        passed: The last epoch apply that changed it, by number from 1. Shape (keys,).
        before: Whether it existed before that. Shape (keys,).
        carried: The columns that it wrote. Shape (keys,).
        sent: The last epoch apply from which it was relayed, by number from 1. Shape (keys,).
        author: The cluster that made the last change of that. Shape (keys,).
        wrote: The columns that this epoch apply wrote, of a row that is relayed. Shape (keys,).
        value: The resolve column before that. Shape (keys, clusters), or (0, clusters) if no cluster relays.
        brought: The last epoch of its source that changed it, by number from 1. Shape (keys, clusters), or
            (0, clusters) if no applier has several workers.
        since: Since when it differs between the clusters; -1 if it does not. Shape (keys,).
        last_apply: For `conflict.engine.kernels.dependencies`. Shape (keys,).
        last_group: The same.
    """

    columns: UInt64
    version: Int32
    touched: Int64
    passed: Int64
    before: Bool
    carried: UInt64
    sent: Int64
    author: Int8
    wrote: UInt64
    value: UInt64
    brought: Int64
    since: Int64
    last_apply: Int32
    last_group: Int32


class World(NamedTuple):
    """
    A simulation.

    Attributes:
        settings: `SETTINGS`, shape (clusters,).
        tables: `TABLE`, shape (clusters, tables).
        intentions: What users want.
        latency: Of the link from each cluster, per tick of its epochs. Shape (clusters, ticks).
        outages: When the link from each cluster is down.
        stops: When the applier of each cluster is stopped.
        rules: What appliers do with tables.
        key_table: Table of each key.
        changes: Own changes of each cluster, and those that it relays.
        made: More of them.
        schedule: The epoch applies.
        own_end: Changes of the applier's cluster below this number, among its own, come before each. Shape (applies,).
        work: The state of the rows, and what appliers log.
        entries: More of what they log.
        decisions: Those of passes that were committed.
        tracked: Those of pass TRACK.
        conflicts: Transactions in conflict by epoch apply: offsets, shape (applies + 1,), and groups.
        pairs: Scratch for dependencies. Shape (pairs, 4).
        rows: More of the rows.
        epochs: `EPOCH`, shape (clusters, most logged epochs).
        learnt: Per logged epoch and open one, the highest epoch of each cluster that was applied in it, or that an
            epoch applied in it had news of; 0 for none. Shape (clusters, most logged epochs + 1, clusters).
        taken: `TAKEN` per applier and epoch of its source. Shape (clusters, most logged epochs).
        queues: Per cluster, transactions that think and that wait to be tried again, and when. Shape
            (clusters, 2, longest).
        tries: How often each transaction was tried again. Shape (transactions,).
        read: The version of each row that was wanted, where transactions check it. Shape (wishes,).
        site: `SITE`, shape (clusters,).
        totals: `TOTALS`, shape (clusters,).
        run: `RUN`, shape (1,).
        stale: How long rows differed. Shape (capacity,).
    """

    settings: Records
    tables: Records
    intentions: Intentions
    latency: Int64
    outages: Intervals
    stops: Intervals
    rules: Rules
    key_table: Int16
    changes: Changes
    made: MoreOfChanges
    schedule: Schedule
    own_end: Int32
    work: Work
    entries: MoreOfEntries
    decisions: DecisionBuffers
    tracked: DecisionBuffers
    conflicts: tuple[Int64, Int32]
    pairs: Int32
    rows: MoreOfRows
    epochs: Records
    learnt: UInt64
    taken: Records
    queues: tuple[Int64, Int64]
    tries: Int32
    read: Int32
    site: Records
    totals: Records
    run: Records
    stale: Int64


@inlined
def written_value(side, number, clusters):
    """Return the value of a data column that the change of that number among a cluster's own ones wrote."""
    return unsigned(number) * unsigned(clusters) + unsigned(side) + unsigned(1)


def _bit(column):
    return 1 << column


@interpreted_by(_bit)
@inlined
def column_bit(column):
    """Return the set of one data column."""
    return unsigned(1) << unsigned(column)


@inlined
def all_columns(table):
    """Return the set of all data columns of a table; `TABLE`."""
    return column_bit(table["columns"]) - unsigned(1)
