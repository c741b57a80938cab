"""
Histories of any size quickly: what `ingest` would write of two clusters that work on one table, straight to disk.

    python -m benchmarks.makers.history_maker --changes 10000000 --out DIR --seed 1

Everything is decided by numbers that look like chance but depend on the seed and on a change's own number alone. So a
bucket is made without the others, in little memory, by any process, and the same shape gives the same bytes.

What is made is plausible: rows are inserted once, by their home, before anything else happens to them; what was deleted
is inserted again; a cluster changes what it can see; images hold what the binlog type logs. The consequences are those
of clusters that apply every change. An engine contradicts them wherever it finds a conflict, so resolve such a History
with ``use_evidence=False``: there is no other order of takes that would explain them.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.makers.history_buckets import IDENTITY, MadeBucket, Plan, Side, made_buckets, plan_of
from benchmarks.makers.history_images import image_bytes
from benchmarks.makers.history_rows import consequences_of
from benchmarks.makers.history_shape import CLUSTERS, Clock, Shape, server_id
from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.history.grid.catalogue import facts_of
from conflict.history.grid.columns import digests_of_columns
from conflict.history.grid.epoch_files import write_schedule
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest, SegmentFacts, with_files, with_schedule, write_manifest
from conflict.history.grid.schemas import CHANGES, CONSEQUENCES, IMAGES, KEYS, keys_part, never_null, part
from conflict.history.ingestion.kernels.events import add_values
from conflict.history.run import Run, table_definitions
from conflict.history.scheduling.schedule_columns import ScheduleColumns, with_defaults
from conflict.history.shown_effects import Effect
from conflict.rules.functions import FUNCTIONS, Argument
from conflict.rules.replication_table import ReplicationRow, Role
from ndb_formats.constants import ColumnCode
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.types.column_types import WireType

__all__ = ["Shape", "configuration", "make_history", "usual_binlog_type"]

TABLE = "bench.account"
SCHEMA = """
CREATE TABLE account (
    id BIGINT UNSIGNED NOT NULL PRIMARY KEY, customer INT UNSIGNED, status TINYINT, updated_at BIGINT UNSIGNED,
    note VARCHAR(20) CHARACTER SET utf8mb4
) ENGINE=NDB;
"""
TYPES = (
    WireType(ColumnCode.LONGLONG),
    WireType(ColumnCode.LONG),
    WireType(ColumnCode.TINY),
    WireType(ColumnCode.LONGLONG),
    WireType(ColumnCode.VARCHAR, 80),
)
RESOLVE = "updated_at"
ALL, ONLY_KEY, NO_KEY, WRITTEN, WRITTEN_NOTE = 0b11111, 0b00001, 0b11110, 0b01100, 0b11100
UPDATED = 0b01000
# Columns of the before and after image of each operation, one bit each; 0 for no image.
IMAGE_SETS = {
    7: np.array([(0, 0, ALL, ALL), (0, ALL, ALL, 0)], np.uint8),
    8: np.array([(0, 0, ONLY_KEY, ONLY_KEY), (0, ALL, WRITTEN, 0)], np.uint8),
    9: np.array([(0, 0, ONLY_KEY, ALL), (0, ALL, NO_KEY, 0)], np.uint8),
}
BUCKETS_AT_ONCE = 8
EVENT_BYTES = 96

Array = npt.NDArray[Any]


def usual_binlog_type(function: str) -> int:
    """Return how tables with a function are usually logged: whole rows to compare, or only what changed."""
    (spec,) = (spec for spec in FUNCTIONS if spec.name == function)
    return 7 if spec.argument is Argument.COLUMN else 8


def configuration(function: str, binlog_type: int | None = None) -> Run:
    """
    Return the run that a made History belongs to.

    The functions that compare a column stand on both clusters. Those by epoch stand on A alone, or, where they have
    roles, on both with A as the primary.

    Args:
        function: Name of the conflict function, such as ``NDB$MAX``.
        binlog_type: Of the table; None is the usual one.
    """
    (spec,) = (spec for spec in FUNCTIONS if spec.name == function)
    number = binlog_type or usual_binlog_type(function)
    by_column = spec.argument is Argument.COLUMN
    text = f"{function}({RESOLVE if by_column else ''})"
    rows = [ReplicationRow("bench", "account", 0, number, text)]
    if spec.on_primary_alone:
        rows = [
            ReplicationRow("bench", "account", server_id(0), number, text),
            ReplicationRow("bench", "account", server_id(1), number, None),
        ]
    roles = (Role.PRIMARY, Role.SECONDARY) if spec.uses_role else (Role.NONE, Role.NONE)
    clusters = tuple(
        ClusterConfiguration(name, (LoggingServer(server_id(place)),), role, transaction_ids=True)
        for place, (name, role) in enumerate(zip(CLUSTERS, roles, strict=True))
    )
    return Run(Configuration(clusters, parse_schema(SCHEMA, database="bench"), tuple(rows)))


def make_history(shape: Shape, folder: Folder, *, processes: int = 1) -> Manifest:
    """
    Write a History.

    Args:
        shape: What it shall look like.
        folder: Where it goes.
        processes: How many processes make it.
    """
    count = min(BUCKETS_AT_ONCE, -(-shape.buckets // processes))
    write = partial(_write_buckets, shape, folder, count=count)
    parts = range(0, shape.buckets, count)
    if min(processes, len(parts)) == 1:
        for first in parts:
            write(first)
    else:
        with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
            list(pool.map(write, parts))
    plan = plan_of(shape)
    write_schedule(folder, ((name, _applies(plan, applier)) for applier, name in enumerate(CLUSTERS)))
    parts = [path for path in folder.sizes() if "/" in path]
    manifest = with_schedule(folder, with_files(folder, _manifest(plan), 0, facts_of(folder, parts)))
    write_manifest(folder, manifest)
    return manifest


def _edges(shape: Shape) -> list[int]:
    """Return the first slot of each run, and the end."""
    return [run * shape.slots // shape.segments for run in range(shape.segments + 1)]


def _manifest(plan: Plan) -> Manifest:
    shape = plan.shape
    edges = _edges(shape)
    files = {name: tuple(f"{name}.binlog.{run:06d}" for run in range(1, shape.segments + 1)) for name in CLUSTERS}
    facts = {}
    for name, clock in zip(CLUSTERS, plan.clocks, strict=True):
        ends = clock.starts[edges].tolist()
        facts[name] = tuple(
            SegmentFacts(
                file=files[name][run],
                start=4,
                stop=4 + EVENT_BYTES * (ends[run + 1] - ends[run]),
                first_epoch=int(clock.epochs[edges[run]]),
                last_epoch=int(clock.epochs[edges[run + 1] - 1]),
                changes=ends[run + 1] - ends[run],
            )
            for run in range(shape.segments)
        )
    return Manifest(
        buckets=shape.buckets,
        batches=(0,),
        clusters={name: server_id(number) for number, name in enumerate(CLUSTERS)},
        tables=table_definitions(configuration("NDB$EPOCH").numbers),
        files=files,
        segments=facts,
        types={TABLE: TYPES},
        resolve_columns={TABLE: RESOLVE} if shape.binlog_type == 7 else {},
        errors={},
        left_out={},
        assumed=dict.fromkeys(CLUSTERS, 0),
        last_epochs={name: int(clock.epochs[-1]) for name, clock in zip(CLUSTERS, plan.clocks, strict=True)},
        epochs_left_out={},
        changes=shape.changes,
    )


def _apply_places(own: Clock, source: Clock) -> tuple[Array, Array, Array]:
    """Return the slots of the source that are taken, and slot and group of the applier's epoch."""
    foreign = np.flatnonzero(source.applied < own.shape.slots)
    slot = source.applied[foreign]
    return foreign, slot, own.place[slot] + foreign - own.seen(source, after=False)[slot] - 1


def _applies(plan: Plan, applier: int) -> ScheduleColumns:
    """Return the takes of an applier: each in its place, and after what its epoch carries news of."""
    own, source = plan.clocks[applier], plan.clocks[1 - applier]
    foreign, slot, group = _apply_places(own, source)
    news = source.seen(own, after=True)[foreign]
    last = own.transactions + own.applies(source) - 1
    some = news >= 0
    columns = {
        "foreign_epoch": source.epochs[foreign],
        "epoch": own.epochs[slot],
        "group": group,
        "arrived_epoch": np.where(some, own.epochs[news], np.uint64(0)),
        "arrived_group": np.where(some, last[news], -1),
    }
    return ScheduleColumns(CLUSTERS[1 - applier], with_defaults(len(foreign), columns))


def _write_buckets(shape: Shape, folder: Folder, first: int, *, count: int) -> None:
    """Make consecutive buckets and write their parts."""
    plan = plan_of(shape)
    for bucket in made_buckets(plan, first, count):
        _write_keys(folder, bucket)
        for cluster, side in enumerate(bucket.sides):
            before, after = _sets(shape, side)
            changes = _changes(plan, cluster, bucket, before, after)
            _write_rows(folder, "changes", cluster, bucket.number, never_null(pa.table(changes, schema=CHANGES)))
            keys = bucket.ids[side.place]
            images = [_images(keys, side.before, before), _images(keys, side.value, after)]
            _write_rows(folder, "images", cluster, bucket.number, pa.table(images, schema=IMAGES))
            table = pa.table(_consequences(plan, cluster, bucket), schema=CONSEQUENCES)
            _write_rows(folder, "consequences", cluster, bucket.number, table)


def _write_keys(folder: Folder, bucket: MadeBucket) -> None:
    """Write the keys that were inserted, by number."""
    known = np.flatnonzero(bucket.numbers >= 0)
    count = len(known)
    ids = np.empty(count, np.uint64)
    ids[bucket.numbers[known]] = bucket.ids[known]
    identities = np.empty((count, len(IDENTITY) + 8), np.uint8)
    identities[:, : len(IDENTITY)] = np.frombuffer(IDENTITY, np.uint8)
    identities[:, len(IDENTITY) :] = ids.astype("<u8").view(np.uint8).reshape(-1, 8)
    offsets = np.arange(count + 1, dtype=np.int32) * identities.shape[1]
    columns = [
        pa.array(np.arange(count, dtype=np.int32)),
        pa.array(np.zeros(count, np.int16)),
        _binary(offsets, identities, None),
        pc.binary_join_element_wise("id", pc.cast(pa.array(ids), pa.string()), "="),
    ]
    folder.write_table(keys_part(bucket.number, 0), pa.table(columns, schema=KEYS))


def _binary(offsets: Array, data: Array, missing: Array | None) -> pa.Array:
    """Return binary values; those that are missing are NULL."""
    validity, nulls = None, 0
    if missing is not None:
        validity = pa.py_buffer(np.packbits(~missing, bitorder="little"))
        nulls = int(missing.sum())
    buffers = [validity, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers, nulls)


def _write_rows(folder: Folder, kind: str, cluster: int, bucket: int, table: pa.Table) -> None:
    if len(table):
        folder.write_table(part(kind, CLUSTERS[cluster], bucket, 0), table)


def _sets(shape: Shape, side: Side) -> tuple[Array, Array]:
    """Return the columns of before and after images, one bit each; 0 for no image."""
    before_sets, after_sets = IMAGE_SETS[shape.binlog_type]
    before, after = before_sets[side.operation], after_sets[side.operation]
    after[(after == WRITTEN) & (side.value & np.uint64(1) == 1)] = WRITTEN_NOTE
    return before, after


def _bitmaps(sets: Array) -> pa.Array:
    """Return sets of columns as `CHANGES` has them; 0 is no image."""
    encoded = pa.array(sets).dictionary_encode()
    bitmaps = pa.array([bytes([each]) if each else b"" for each in encoded.dictionary.to_pylist()], pa.binary())
    return pa.DictionaryArray.from_arrays(encoded.indices, bitmaps)


def _changes(plan: Plan, cluster: int, bucket: MadeBucket, before: Array, after: Array) -> list[Any]:
    """Return the columns of `CHANGES`, with the columns that the images carry."""
    side, clock = bucket.sides[cluster], plan.clocks[cluster]
    count, slot, edges = len(side.slot), side.slot, np.array(_edges(plan.shape))
    applies = clock.applies(plan.clocks[1 - cluster])
    group = side.transaction + np.where(side.transaction >= clock.place[slot], applies[slot], 0)
    compared = RESOLVE if plan.shape.binlog_type == 7 else None
    none = np.zeros(count, np.uint64)
    run = np.searchsorted(edges, slot, "right") - 1
    change = clock.starts[slot] + side.ordinal
    transactions = np.concatenate([[0], np.cumsum(clock.transactions)])
    transaction = (transactions[slot] + side.transaction).astype(np.uint64)
    return [
        bucket.numbers[side.place],
        np.zeros(count, np.int16),
        side.operation,
        np.zeros(count, np.int16),
        clock.epochs[slot],
        group.astype(np.int32),
        side.ordinal.astype(np.int32),
        _bitmaps(before),
        np.where(before & UPDATED, side.before, none) if compared else none,
        _digests(bucket, side, side.before, np.where(before == _KEY_ALONE, 0, before)),
        _bitmaps(after),
        np.where(after & UPDATED, side.value, none) if compared else none,
        _digests(bucket, side, side.value, after),
        transaction + np.uint64(server_id(cluster) << 56),
        run.astype(np.int32),
        (4 + EVENT_BYTES * (change - clock.starts[edges[run]])).astype(np.uint64),
        np.zeros(count, np.uint32),
        np.zeros(count, np.int32),
    ]


_KEY_ALONE = 1  # the set of columns of a before image that has no digest


def _digests(bucket: MadeBucket, side: Side, values: Array, sets: Array) -> Array:
    """Return the digests of images with those resolve columns (see `conflict.history.grid.columns`)."""
    offsets, data = image_bytes(bucket.ids[side.place], values, sets)
    starts, sizes = offsets[:-1].astype(np.int64), np.where(sets == 0, -1, np.diff(offsets)).astype(np.int64)
    digests = digests_of_columns([bytes([each]) if each else b"" for each in range(256)])[sets]
    add_values(data, starts, sizes, digests)
    return digests


def _images(keys: Array, values: Array, sets: Array) -> pa.Array:
    """Return images of rows with those keys and resolve columns."""
    return _binary(*image_bytes(keys, values, sets), sets == 0)


def _consequences(plan: Plan, applier: int, bucket: MadeBucket) -> list[Any]:
    """Return the columns of `CONSEQUENCES` of what an applier did of the other's changes."""
    own, source, side = plan.clocks[applier], plan.clocks[1 - applier], bucket.sides[1 - applier]
    foreign, slots, groups = _apply_places(own, source)
    place, applied, effect, last = consequences_of(side.slot, side.place, side.operation, len(bucket.ids), len(foreign))
    _, after = _sets(plan.shape, side)
    return [
        bucket.numbers[place],
        np.zeros(len(place), np.int16),
        own.epochs[slots[applied]],
        groups[applied].astype(np.int32),
        effect,
        np.zeros(len(place), np.int16),
        np.where(effect == Effect.CHANGED, _digests(bucket, side, side.value, after)[last], np.uint64(0)),
    ]


def main() -> None:
    """Write a History."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    for name, field in attrs.fields_dict(Shape).items():
        if name != "window":
            kind = float if str(field.type) == "float" else int
            default = None if field.default is attrs.NOTHING else field.default
            parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=default, required=name == "changes")
    parser.add_argument("--window", type=int, nargs=2, default=(1, 3), metavar=("FEWEST", "MOST"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", required=True)
    arguments = vars(parser.parse_args())
    folder, processes = Folder(arguments.pop("out")), arguments.pop("processes")
    arguments["window"] = tuple(arguments["window"])
    shape, started = Shape(**arguments), time.perf_counter()
    make_history(shape, folder, processes=processes)
    seconds = time.perf_counter() - started
    print(f"{shape.changes:,} row changes in {seconds:.1f} s, {shape.buckets} buckets")


if __name__ == "__main__":
    main()
