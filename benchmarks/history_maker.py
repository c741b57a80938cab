"""
Histories of any size quickly: what `ingest` would write of two clusters that work on one table, straight to disk.

    python -m benchmarks.history_maker --changes 10000000 --out DIR --seed 1

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
import zlib
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.history_kernels import (
    Epochs,
    Members,
    Rows,
    State,
    Zipf,
    buckets_of,
    consequences_of,
    count_members,
    find_members,
    image_bytes,
    make_rows,
)
from benchmarks.history_shape import CLUSTERS, Clock, Shape, server_id
from conflict.configuration import ClusterConfiguration, Configuration
from conflict.functions import FUNCTIONS, Argument
from conflict.grid import CHANGES, CONSEQUENCES, IMAGES, KEYS, TAKES, Folder, keys_part, part
from conflict.history import Role
from conflict.manifest import Manifest, RunFacts
from conflict.replication_table import ReplicationRow
from ndb_formats.column_types import WireType
from ndb_formats.constants import ColumnCode
from ndb_formats.create_table import parse_schema

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
FIRST_MICROSECOND, SLOT_MICROSECONDS = 1_700_000_000_000_000, 100_000
IDENTITY = bytes(2) + b"\1" + (8).to_bytes(4, "little")  # table number, not NULL, length
SLOTS_OF_CHANCE = 65536
EVENT_BYTES = 96

Array = npt.NDArray[Any]


def usual_binlog_type(function: str) -> int:
    """Return how tables with a function are usually logged: whole rows to compare, or only what changed."""
    (spec,) = (spec for spec in FUNCTIONS if spec.name == function)
    return 7 if spec.argument is Argument.COLUMN else 8


def configuration(function: str, binlog_type: int | None = None) -> Configuration:
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
    if not by_column and not spec.uses_role:
        rows = [
            ReplicationRow("bench", "account", server_id(0), number, text),
            ReplicationRow("bench", "account", server_id(1), number, None),
        ]
    roles = (Role.PRIMARY, Role.SECONDARY) if spec.uses_role else (Role.NONE, Role.NONE)
    clusters = tuple(
        ClusterConfiguration(name, server_id(place), (), role, transaction_ids=True)
        for place, (name, role) in enumerate(zip(CLUSTERS, roles, strict=True))
    )
    return Configuration(clusters, parse_schema(SCHEMA, database="bench"), tuple(rows))


@attrs.frozen
class _Plan:
    """
    What all buckets share.

    Attributes:
        shape: Of the History.
        clocks: Of both clusters.
        bucket_of: Bucket of each key, by id from 1 on; even ids have their home on A. Shape (keys,).
        choices: Per cluster, see `count_members`.
        counts: Changes per cluster and bucket. Shape (2, buckets).
    """

    shape: Shape
    clocks: tuple[Clock, Clock]
    bucket_of: Array
    choices: tuple[Array, Array]
    counts: Array


@cache
def _plan(shape: Shape) -> _Plan:
    clocks = (Clock.make(shape, 0), Clock.make(shape, 1))
    table = np.array([_crc_entry(number) for number in range(256)], np.uint32)
    bucket_of = buckets_of(1, shape.keys, zlib.crc32(IDENTITY), table, shape.buckets)
    weights = [_weights(shape, home) for home in (0, 1)]
    hot, new = [], []
    for home, weight in enumerate(weights):
        mine = bucket_of[home::2]
        hot.append(_choices(np.bincount(mine, weight, shape.buckets)))
        new.append(_choices(np.bincount(mine, minlength=shape.buckets).astype(np.float64)))
    choices = [np.stack([new[home], hot[home], hot[1 - home], hot[1 - home], hot[home]]) for home in (0, 1)]
    counts = [count_members(_epochs(clocks[home]), choices[home], shape.buckets) for home in (0, 1)]
    return _Plan(shape, clocks, bucket_of, (choices[0], choices[1]), np.stack(counts))


def _crc_entry(number: int) -> int:
    for _ in range(8):
        number = (number >> 1) ^ (0xEDB88320 if number & 1 else 0)
    return number


def _weights(shape: Shape, home: int) -> Array:
    """Return how often the keys of a home are changed, the hottest first."""
    return (np.arange(1, len(range(home, shape.keys, 2)) + 1) + float(shape.flat)) ** -shape.skew


def _choices(weights: Array) -> Array:
    """Return a bucket per piece of chance, in proportion to weights."""
    ends = np.cumsum(weights) / weights.sum() * SLOTS_OF_CHANCE
    return np.searchsorted(ends, np.arange(SLOTS_OF_CHANCE) + 0.5).astype(np.uint16)


def _epochs(clock: Clock) -> Epochs:
    shape = clock.shape
    first, second = shape.chance(clock.cluster, 5).integers(0, 2**62, 2).tolist()
    return Epochs(
        (first, second),
        clock.starts,
        clock.pattern,
        clock.patterns,
        clock.singles,
        clock.load_end,
        clock.inserts,
        shape.away,
        shape.clashes,
        shape.churn,
    )


def make_history(shape: Shape, folder: Folder, *, processes: int = 1) -> Manifest:
    """
    Write a History.

    Args:
        shape: What it shall look like.
        folder: Where it goes.
        processes: How many processes make it.
    """
    write = partial(_write_bucket, shape, folder)
    buckets = range(shape.buckets)
    if processes == 1:
        for bucket in buckets:
            write(bucket)
    else:
        with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
            list(pool.map(write, buckets))
    plan = _plan(shape)
    folder.write_table("takes.parquet", pa.concat_tables(_takes(plan, applier) for applier in (0, 1)))
    manifest = _manifest(plan)
    folder.write_json("history.json", manifest.to_json())
    return manifest


def _edges(shape: Shape) -> list[int]:
    """Return the first slot of each run, and the end."""
    return [run * shape.slots // shape.runs for run in range(shape.runs + 1)]


def _manifest(plan: _Plan) -> Manifest:
    shape = plan.shape
    edges = _edges(shape)
    files = {name: tuple(f"{name}.binlog.{run:06d}" for run in range(1, shape.runs + 1)) for name in CLUSTERS}
    facts = {}
    for name, clock in zip(CLUSTERS, plan.clocks, strict=True):
        ends = clock.starts[edges].tolist()
        facts[name] = tuple(
            RunFacts(
                file=files[name][run],
                start=4,
                stop=4 + EVENT_BYTES * (ends[run + 1] - ends[run]),
                first_epoch=int(clock.epochs[edges[run]]),
                last_epoch=int(clock.epochs[edges[run + 1] - 1]),
                changes=ends[run + 1] - ends[run],
            )
            for run in range(shape.runs)
        )
    return Manifest(
        buckets=shape.buckets,
        batches=1,
        clusters={name: server_id(number) for number, name in enumerate(CLUSTERS)},
        files=files,
        runs=facts,
        types={TABLE: TYPES},
        resolve_columns={TABLE: RESOLVE} if shape.binlog_type == 7 else {},
        errors={},
        left_out={},
        assumed=dict.fromkeys(CLUSTERS, 0),
        last_epochs={name: int(clock.epochs[-1]) for name, clock in zip(CLUSTERS, plan.clocks, strict=True)},
        epochs_left_out={},
        changes=shape.changes,
    )


def _take_places(own: Clock, source: Clock) -> tuple[Array, Array, Array]:
    """Return the slots of the source that are taken, and slot and group of the applier's epoch."""
    foreign = np.flatnonzero(source.taken < own.shape.slots)
    slot = source.taken[foreign]
    return foreign, slot, own.place[slot] + foreign - own.seen(source, after=False)[slot] - 1


def _takes(plan: _Plan, applier: int) -> pa.Table:
    """Return the takes of an applier: each in its place, and after what its epoch carries news of."""
    own, source = plan.clocks[applier], plan.clocks[1 - applier]
    foreign, slot, group = _take_places(own, source)
    news = source.seen(own, after=True)[foreign]
    last = own.transactions + own.takes(source) - 1
    some = news >= 0
    columns = (
        [CLUSTERS[applier]] * len(foreign),
        [CLUSTERS[1 - applier]] * len(foreign),
        source.epochs[foreign],
        own.epochs[slot],
        group,
        np.ones(len(foreign), np.bool_),
        np.zeros(len(foreign), np.bool_),
        np.where(some, own.epochs[news], np.uint64(0)),
        np.where(some, last[news], -1),
    )
    arrays = [pa.array(column).cast(field.type) for column, field in zip(columns, TAKES, strict=True)]
    return pa.table(arrays, schema=TAKES)


def _write_bucket(shape: Shape, folder: Folder, bucket: int) -> None:
    """Make one bucket and write its parts."""
    plan = _plan(shape)
    members = tuple(
        find_members(_epochs(clock), plan.choices[number], bucket, plan.counts[number, bucket])
        for number, clock in enumerate(plan.clocks)
    )
    state, rows, ids = _fill(plan, bucket, members)
    _write_keys(folder, bucket, state, ids)
    for number in (0, 1):
        for name, schema, table in (
            ("changes", CHANGES, _changes(plan, number, members[number], rows[number], state)),
            ("images", IMAGES, _images(plan, members[number], rows[number], ids)),
        ):
            cuts = np.searchsorted(members[number].slot, _edges(shape)).tolist()
            _write_runs(folder, name, number, bucket, pa.table(table, schema=schema), cuts)
        entries, cuts = _consequences(plan, number, members[1 - number], rows[1 - number], state)
        _write_runs(folder, "consequences", number, bucket, pa.table(entries, schema=CONSEQUENCES), cuts)


def _fill(plan: _Plan, bucket: int, members: tuple[Members, ...]) -> tuple[State, tuple[Rows, Rows], Array]:
    """Decide all changes of a bucket; returns the keys, the rows, and the id of every key."""
    shape, clocks = plan.shape, plan.clocks
    ids, zipfs = [], []
    for home in (0, 1):
        places = np.flatnonzero(plan.bucket_of[home::2] == bucket)
        ids.append(2 * places + home + 1)
        sums = np.cumsum(_weights(shape, home)[places])
        guide = np.searchsorted(sums, np.arange(len(sums)) / len(sums) * sums[-1], "right")
        zipfs.append(Zipf(sums, np.minimum(guide, len(sums) - 1)))
    first = np.array([0, len(ids[0]), len(ids[0]) + len(ids[1])], np.int64)
    clock_arrays = tuple(
        (own.seen(other, after=False), own.seen(other, after=True), own.place) for own, other in (clocks, clocks[::-1])
    )
    pace = SLOT_MICROSECONDS // int(max(np.diff(clock.starts).max() for clock in clocks))
    seed = int(shape.chance(2, bucket).integers(2**62))
    state, rows, enough = make_rows(
        members, clock_arrays, seed, shape.window[1], first, tuple(zipfs), (FIRST_MICROSECOND, SLOT_MICROSECONDS, pace)
    )
    if not enough:
        message = f"bucket {bucket} has too few keys for its changes"
        raise ValueError(message)
    return state, rows, np.concatenate(ids).astype(np.uint64)


def _write_keys(folder: Folder, bucket: int, state: State, ids: Array) -> None:
    """Write the keys that were inserted, by number."""
    count = int(state.there[2])
    known = np.flatnonzero(state.number >= 0)
    ordered = np.empty(count, np.uint64)
    ordered[state.number[known]] = ids[known]
    identities = np.empty((count, len(IDENTITY) + 8), np.uint8)
    identities[:, : len(IDENTITY)] = np.frombuffer(IDENTITY, np.uint8)
    identities[:, len(IDENTITY) :] = ordered.astype("<u8").view(np.uint8).reshape(-1, 8)
    offsets = np.arange(count + 1, dtype=np.int32) * identities.shape[1]
    columns = [
        pa.array(np.arange(count, dtype=np.int32)),
        pa.array(np.zeros(count, np.int16)),
        _binary(offsets, identities, None),
        pc.binary_join_element_wise("id", pc.cast(pa.array(ordered), pa.string()), "="),
    ]
    folder.write_table(keys_part(bucket, 0), pa.table(columns, schema=KEYS))


def _binary(offsets: Array, data: Array, missing: Array | None) -> pa.Array:
    """Return binary values; those that are missing are NULL."""
    validity, nulls = None, 0
    if missing is not None:
        validity = pa.py_buffer(np.packbits(~missing, bitorder="little"))
        nulls = int(missing.sum())
    buffers = [validity, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers, nulls)


def _write_runs(folder: Folder, kind: str, cluster: int, bucket: int, table: pa.Table, cuts: list[int]) -> None:
    for run, (start, stop) in enumerate(zip(cuts, cuts[1:], strict=False)):
        if start < stop:
            folder.write_table(part(kind, CLUSTERS[cluster], run, bucket), table.slice(start, stop - start))


def _sets(shape: Shape, rows: Rows) -> tuple[Array, Array]:
    """Return the columns of before and after images, one bit each; 0 for no image."""
    by_type = {
        7: ((0, ALL, ALL), (ALL, ALL, 0)),
        8: ((0, ONLY_KEY, ONLY_KEY), (ALL, WRITTEN, 0)),
        9: ((0, ONLY_KEY, ALL), (ALL, NO_KEY, 0)),
    }
    before, after = (np.array((0, *sets), np.uint8)[rows.operation] for sets in by_type[shape.binlog_type])
    noted = (after == WRITTEN) & (rows.value & np.uint64(1) == 1)
    after[noted] = WRITTEN_NOTE
    return before, after


def _bitmaps(sets: Array) -> pa.DictionaryArray:
    known = np.array([ALL, ONLY_KEY, NO_KEY, WRITTEN, WRITTEN_NOTE], np.uint8)
    numbers = np.zeros(32, np.int32)
    numbers[known] = np.arange(len(known))
    indices = pa.array(numbers[sets], mask=sets == 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array([bytes([each]) for each in known.tolist()], pa.binary()))


def _changes(plan: _Plan, number: int, members: Members, rows: Rows, state: State) -> list[Any]:
    """Return the columns of `CHANGES`."""
    shape, clock = plan.shape, plan.clocks[number]
    count, slot = len(members.slot), members.slot
    behind = members.transaction >= clock.place[slot]
    group = members.transaction + np.where(behind, clock.takes(plan.clocks[1 - number])[slot], 0)
    before, after = _sets(shape, rows)
    compared = shape.binlog_type == 7
    none = np.zeros(count, np.uint64)
    change = clock.starts[slot] + members.ordinal
    run = np.searchsorted(_edges(shape), slot, "right") - 1
    transactions = np.concatenate([[0], np.cumsum(clock.transactions)])
    transaction = (transactions[slot] + members.transaction).astype(np.uint64)
    return [
        state.number[rows.place],
        np.zeros(count, np.int16),
        rows.operation,
        np.zeros(count, np.int16),
        clock.epochs[slot],
        group.astype(np.int32),
        members.ordinal,
        _bitmaps(before),
        np.where(before & 8, rows.before, none) if compared else none,
        _bitmaps(after),
        np.where(after & 8, rows.value, none) if compared else none,
        transaction + np.uint64(server_id(number) << 56),
        run.astype(np.int16),
        (4 + EVENT_BYTES * (change - clock.starts[_edges(shape)][run])).astype(np.uint64),
        np.zeros(count, np.int32),
    ]


def _images(plan: _Plan, members: Members, rows: Rows, ids: Array) -> list[pa.Array]:
    """Return the columns of `IMAGES`."""
    before, after = _sets(plan.shape, rows)
    keys = ids[rows.place]
    return [
        _binary(*image_bytes(keys, values, sets), sets == 0)
        for values, sets in ((rows.before, before), (rows.value, after))
    ]


def _consequences(plan: _Plan, applier: int, members: Members, rows: Rows, state: State) -> tuple[list[Any], list[int]]:
    """Return the columns of `CONSEQUENCES` of what an applier did of the other's changes, and where runs end."""
    own, source = plan.clocks[applier], plan.clocks[1 - applier]
    foreign, slots, groups = _take_places(own, source)
    place, taken, effect = consequences_of(members, rows, len(state.number), len(foreign))
    columns = [
        state.number[place],
        np.zeros(len(place), np.int16),
        own.epochs[slots[taken]],
        groups[taken].astype(np.int32),
        effect,
    ]
    return columns, np.searchsorted(slots[taken], _edges(plan.shape)).tolist()


def main() -> None:
    """Write a History."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    for name, field in attrs.fields_dict(Shape).items():
        if name != "window":
            kind = float if field.type == "float" else int
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
