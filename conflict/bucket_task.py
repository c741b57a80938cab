"""
Resolves one bucket: runs the kernels, and writes the bucket's share of the result.

This is what a Spark task does; it needs no Spark itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from conflict.bucket import Bucket
from conflict.counters import DELETE_DELETE, REFRESH_RECEIVED
from conflict.decision import Cause, Verdict
from conflict.exceptions_table import UNKNOWN_TRANSACTION_ID, ConflictRecord
from conflict.functions import Image
from conflict.grid import Folder
from conflict.kernels.arrays import BucketRows, FunctionArrays, TakeArrays
from conflict.kernels.fold import Folded, fold
from conflict.kernels.provenance import ABSENT_IMAGE, FinalRows, trace_images
from conflict.outputs import OUTCOMES, key_texts, outcome_arrays, staged_exceptions_path
from conflict.resolution import Effect
from conflict.setup import TableSetup
from conflict.typed_rows import row_schema, rows_to_arrow
from ndb_formats.default_values import default_value
from ndb_formats.events.rows_event import Operation
from ndb_formats.extra_row_info import ConflictFlag
from ndb_formats.row_image import RowImage
from ndb_formats.values import Value

__all__ = ["BucketSummary", "Site", "first_unusable", "function_arrays", "resolve_bucket"]

DELETE, UPDATE, WRITE = int(Operation.DELETE_ROW), int(Operation.UPDATE_ROW), int(Operation.WRITE_ROW)
APPLIED, REJECTED = int(Verdict.APPLIED), int(Verdict.REJECTED)


@attrs.frozen
class Site:
    """
    One cluster as a task needs it.

    Attributes:
        name: Its name.
        server_id: Its server id.
        setups: How it set up each table, in the order of the table numbers.
    """

    name: str
    server_id: int
    setups: tuple[TableSetup, ...]


@attrs.define
class BucketSummary:
    """
    What a bucket adds to the whole; small enough to go back to the driver.

    Attributes:
        counters: Per cluster, its status counters.
        tables: Per cluster and table, how often each thing happened (see `TableSummary`).
        rows: Per cluster and table, how many rows there are at the end.
        differing_rows: Per table, how many keys differ between the clusters at the end.
        compared: Rows per epoch that an applier is known, or was found, to have touched.
        contradicted: How many of those the engine and the binlog see differently.
        unexplained: Per cluster, own changes of rows that should not be there.
    """

    counters: dict[str, dict[str, int]] = attrs.field(factory=dict)
    tables: dict[str, dict[str, dict[str, int]]] = attrs.field(factory=dict)
    rows: dict[str, dict[str, int]] = attrs.field(factory=dict)
    differing_rows: dict[str, int] = attrs.field(factory=dict)
    compared: int = 0
    contradicted: int = 0
    unexplained: dict[str, int] = attrs.field(factory=dict)


def function_arrays(sites: Sequence[Site]) -> FunctionArrays:
    """Return which function each site applies to each table, as arrays."""
    functions = [[setup.function for setup in site.setups] for site in sites]
    return FunctionArrays(
        np.array([[0 if each is None else each.spec.code for each in site] for site in functions], np.int8),
        np.array([[0 if each is None else each.gci_bits for each in site] for site in functions], np.int8),
        np.array([[each is not None and each.spec.refreshes for each in site] for site in functions], np.bool_),
    )


@attrs.frozen(order=True)
class Unusable:
    """An operation that an applier cannot judge, or whose table it does not have; the earliest comes first."""

    epoch: int
    group: int
    ordinal: int
    table: int
    operation: int
    file: int
    position: int
    row: int


def first_unusable(bucket: Bucket, sites: Sequence[Site], taken: Sequence[np.ndarray]) -> dict[str, Unusable]:
    """
    Return, per applying site, the first operation of the other one that stops it.

    Args:
        bucket: A bucket; its images are not needed.
        sites: Both sites.
        taken: Per applying site, the foreign epochs that it takes, sorted.
    """
    found = {}
    for number, site in enumerate(sites):
        rows, changes = bucket.rows[1 - number], bucket.changes[1 - number]
        bad = np.flatnonzero(_unusable(rows, site) & np.isin(rows.epoch, taken[number]))
        if len(bad):
            names = [field.name for field in attrs.fields(Unusable)]
            candidates = changes.take(pa.array(bad)).select(names).to_pylist()
            found[site.name] = min(Unusable(**candidate) for candidate in candidates)
    return found


def _unusable(rows: BucketRows, site: Site) -> np.ndarray:
    lookup = np.zeros((len(site.setups), 4, 2), np.bool_)  # table, operation, image that must hold the column
    refused = np.zeros(len(site.setups), np.bool_)
    for number, setup in enumerate(site.setups):
        refused[number] = setup.refusal is not None
        if setup.function is not None:
            for operation, image in setup.function.spec.needs.items():
                lookup[number, operation, 0 if image is Image.BEFORE else 1] = True
    needs_before = lookup[rows.table, rows.operation, 0] & (rows.before_presence == 0)
    needs_after = lookup[rows.table, rows.operation, 1] & (rows.after_presence == 0)
    return np.asarray(needs_before | needs_after | refused[rows.table])


def resolve_bucket(
    bucket: Bucket, sites: Sequence[Site], takes: TakeArrays, files: Mapping[str, Sequence[str]], out: Folder
) -> BucketSummary:
    """
    Resolve a bucket and write its parts of the result.

    Args:
        bucket: The bucket.
        sites: Both sites, in the order of the clusters.
        takes: All takes in order.
        files: Per cluster, its binlog files by number.
        out: Folder of the result.
    """
    task = _Task(bucket, tuple(sites), takes, fold(takes, bucket.rows, function_arrays(sites), len(bucket.keys)))
    for number, site in enumerate(sites):
        source = sites[1 - number].name
        table = outcome_arrays(bucket, number, takes, task.folded, source, task.key_texts, files[source])
        path = f"outcomes/applier={site.name}/bucket={bucket.number:05d}.parquet"
        out.write_table(path, table.cast(OUTCOMES))
    _write_exceptions(task, out)
    summary = _summarize(task)
    _write_rows(task, out, summary)
    _compare(task, summary)
    return summary


class _Task:
    """A bucket with all that was found out about it."""

    def __init__(self, bucket: Bucket, sites: tuple[Site, ...], takes: TakeArrays, folded: Folded) -> None:
        self.bucket, self.sites, self.takes, self.folded = bucket, sites, takes, folded
        decisions, refreshes = folded.decisions, folded.refreshes
        sets, images = bucket.column_sets()
        self.final: FinalRows = trace_images(takes, bucket.rows, images, sets, bucket.slots, decisions, refreshes)
        self.applier = takes.applier[decisions.take]
        self.key, self.operation = self._operations()
        self.table = bucket.key_table[self.key]
        self.key_texts = key_texts(bucket)

    def _operations(self) -> tuple[np.ndarray, np.ndarray]:
        """Return key and operation of each decision."""
        source, refreshes = self.folded.decisions.source, self.folded.refreshes
        key, operation = np.zeros(len(source), np.int32), np.zeros(len(source), np.int8)
        refreshed = source < 0
        made = -1 - source[refreshed]
        key[refreshed] = refreshes.key[made]
        operation[refreshed] = np.where(refreshes.exists[made], WRITE, DELETE)
        for side in (0, 1):
            mine = ~refreshed & (self.applier == 1 - side)
            key[mine] = self.bucket.rows[side].key[source[mine]]
            operation[mine] = self.bucket.rows[side].operation[source[mine]]
        return key, operation

    def images_of(self, decision: int) -> tuple[RowImage | None, RowImage | None]:
        """Return the before and after image of an operation."""
        source = int(self.folded.decisions.source[decision])
        if source >= 0:
            side = 1 - int(self.applier[decision])
            return self.bucket.row_image(side, source, "before"), self.bucket.row_image(side, source, "after")
        refresh = -1 - source
        key = int(self.key[decision])
        if not self.folded.refreshes.exists[refresh]:
            return self._key_image(key), None
        payloads = self.payloads(key, self.final.refreshed[refresh])
        layout = self.bucket.layouts[int(self.bucket.key_table[key])]
        assert layout is not None
        return None, RowImage(layout, tuple(sorted(payloads)), tuple(payloads[place] for place in sorted(payloads)))

    def is_read(self, decision: int) -> bool:
        """Whether an operation is a read under an exclusive lock."""
        source = int(self.folded.decisions.source[decision])
        flags = self.bucket.rows[1 - int(self.applier[decision])].flags
        return source >= 0 and bool(flags[source] & int(ConflictFlag.READ))

    def _key_image(self, key: int) -> RowImage:
        """Return an image of the key columns alone, out of any change of that key."""
        ordinals = tuple(sorted(self.bucket.numbers.tables[int(self.bucket.key_table[key])].key_ordinals))
        for side in (0, 1):
            rows = np.flatnonzero(self.bucket.rows[side].key == key)
            for which in ("before", "after"):
                image = self.bucket.row_image(side, int(rows[0]), which) if len(rows) else None
                if image is not None:
                    payloads = tuple(image.payloads[image.present.index(place)] for place in ordinals)
                    return RowImage(image.layout, ordinals, payloads)
        message = f"key {key} of bucket {self.bucket.number} has no change"
        raise AssertionError(message)

    def payloads(self, key: int, images: np.ndarray) -> dict[int, bytes | None]:
        """Return the column bytes that image numbers stand for."""
        width = int(self.bucket.slots[key + 1] - self.bucket.slots[key])
        found: dict[int, bytes | None] = {}
        cache: dict[int, RowImage] = {}
        for place in range(width):
            number = int(images[place])
            if number == ABSENT_IMAGE:
                continue
            image = cache.get(number) or cache.setdefault(number, self.bucket.image(number))
            found[place] = image.payloads[image.present.index(place)]
        return found


def _write_exceptions(task: _Task, out: Folder) -> None:
    """Write the rows of exceptions tables, not numbered yet, each with what its place in the order depends on."""
    decisions, takes = task.folded.decisions, task.takes
    rejected = np.flatnonzero(decisions.verdict == REJECTED)
    staged: dict[tuple[int, int], list[tuple[int, str, tuple[Value, ...]]]] = {}
    for decision in rejected.tolist():
        applier, table = int(task.applier[decision]), int(task.table[decision])
        exceptions = task.sites[applier].setups[table].exceptions
        if exceptions is None:
            continue
        take = int(decisions.take[decision])
        before, after = task.images_of(decision)
        record = ConflictRecord(
            server_id=task.sites[applier].server_id,
            source_server_id=task.sites[1 - applier].server_id,
            source_epoch=int(takes.foreign_epoch[take]),
            count=0,
            operation=Operation(int(task.operation[decision])),
            cause=Cause(int(decisions.cause[decision])),
            transaction_id=UNKNOWN_TRANSACTION_ID,
            before=before,
            after=after,
            read=task.is_read(decision),
        )
        order = json.dumps(_order(task, decision))
        staged.setdefault((applier, table), []).append((take, order, exceptions.row(record)))
    for (applier, table), entries in staged.items():
        setup = task.sites[applier].setups[table]
        assert setup.exceptions is not None
        rows = rows_to_arrow(setup.exceptions.table, [row for _, _, row in entries])
        rows = rows.append_column("take", pa.array([take for take, _, _ in entries], pa.int64()))
        rows = rows.append_column("order", pa.array([order for _, order, _ in entries]))
        name = setup.exceptions.table.full_name
        out.write_table(staged_exceptions_path(task.sites[applier].name, name, task.bucket.number), rows)


def _order(task: _Task, decision: int) -> list[Any]:
    """Return an operation's place in its foreign epoch; a refresh stands where its cause stood in its own."""
    source = int(task.folded.decisions.source[decision])
    if source >= 0:
        rows = task.bucket.rows[1 - int(task.applier[decision])]
        return [int(rows.group[source]), 0, int(rows.ordinal[source]), []]
    refreshes = task.folded.refreshes
    take, cause = int(refreshes.take[-1 - source]), int(refreshes.decision[-1 - source])
    return [int(task.takes.group[take]), 1, take, _order(task, cause)]


def _summarize(task: _Task) -> BucketSummary:
    decisions, refreshes = task.folded.decisions, task.folded.refreshes
    summary = BucketSummary()
    for number, site in enumerate(task.sites):
        mine = task.applier == number
        counters: Counter[str] = Counter({REFRESH_RECEIVED: int((mine & (decisions.source < 0)).sum())})
        tables = {}
        for table, setup in enumerate(site.setups):
            here = mine & (task.table == table)
            rejected = here & (decisions.verdict == REJECTED)
            causes = {cause.name: int((rejected & (decisions.cause == cause)).sum()) for cause in Cause if cause}
            verdicts = {each.name.lower(): int((here & (decisions.verdict == each)).sum()) for each in Verdict}
            sent = (refreshes.cluster == number) & (task.bucket.key_table[refreshes.key] == table)
            tables[setup.table.full_name] = {**verdicts, **causes, "refreshes": int(sent.sum())}
            if setup.function is not None:
                counters[setup.function.spec.counter] += verdicts["rejected"]
                if setup.function.spec.refreshes:
                    missing = decisions.cause == Cause.ROW_DOES_NOT_EXIST
                    counters[DELETE_DELETE] += int((rejected & missing & (task.operation == DELETE)).sum())
        summary.counters[site.name] = dict(counters)
        summary.tables[site.name] = tables
        summary.unexplained[site.name] = int(task.folded.unexplained[number])
    return summary


def _write_rows(task: _Task, out: Folder, summary: BucketSummary) -> None:
    """Write the final rows of both clusters, and count where they differ."""
    for table, definition in enumerate(task.bucket.numbers.tables):
        keys = np.flatnonzero(task.bucket.key_table == table).tolist()
        sides = [dict(_final_rows(task, side, table, keys)) for side in (0, 1)]
        differing = sum(sides[0].get(key) != sides[1].get(key) for key in keys)
        summary.differing_rows[definition.full_name] = differing
        for side, site in zip(sides, task.sites, strict=True):
            if site.setups[table].refusal is not None:
                side.clear()  # the table does not exist there
            summary.rows.setdefault(site.name, {})[definition.full_name] = len(side)
            if side:
                path = f"rows/{site.name}/{definition.full_name}/bucket={task.bucket.number:05d}.parquet"
                out.write_table(path, rows_to_arrow(definition, list(side.values())).cast(row_schema(definition)))


def _final_rows(task: _Task, side: int, table: int, keys: Sequence[int]) -> Iterator[tuple[int, tuple[Value, ...]]]:
    columns, layout = task.bucket.numbers.tables[table].columns, task.bucket.layouts[table]
    slots = task.bucket.slots
    for key in keys:
        if not task.final.exists[side, key]:
            continue
        assert layout is not None
        payloads = task.payloads(key, task.final.images[side, slots[key] : slots[key + 1]])
        decoded = (
            (None if (payload := payloads[place]) is None else layout.codecs[place].decode(payload))
            if place in payloads
            else default_value(column)
            for place, column in enumerate(columns)
        )
        yield key, tuple(decoded)


def _compare(task: _Task, summary: BucketSummary) -> None:
    """Compare what the appliers were found to do with what their binlogs show."""
    for number in range(len(task.sites)):
        found = _effects(task, number)
        shown = task.bucket.consequences[number]
        columns = [shown.column(name).to_numpy() for name in ("epoch", "group", "key", "effect")]
        columns[1] = columns[1] + 1
        recorded = np.stack([column.astype(np.uint64) for column in columns], axis=1)
        together, times = np.unique(np.concatenate([found, np.unique(recorded, axis=0)]), axis=0, return_counts=True)
        contradicted = together[times == 1][:, :3]
        summary.contradicted += len(np.unique(contradicted, axis=0))
        summary.compared += len(np.unique(together[:, :3], axis=0))


def _effects(task: _Task, number: int) -> np.ndarray:
    """Return (epoch, group + 1, key, `Effect`) of every row that an applier touched, one per take and key."""
    decisions, refreshes, takes = task.folded.decisions, task.folded.refreshes, task.takes
    reads = np.zeros(len(decisions), np.bool_)
    own = (decisions.source >= 0) & (task.applier == number)
    reads[own] = task.bucket.rows[1 - number].flags[decisions.source[own]] & int(ConflictFlag.READ) != 0
    chosen = np.flatnonzero((task.applier == number) & (decisions.verdict == APPLIED) & ~reads)
    order = chosen[np.lexsort((chosen, task.key[chosen], decisions.take[chosen]))]
    pairs = np.stack([decisions.take[order], task.key[order]], axis=1)
    starts = np.flatnonzero(np.any(np.diff(pairs, axis=0, prepend=-1), axis=1))
    ends = np.append(starts[1:], len(order))[: len(starts)] - 1
    existed = decisions.existed[order[starts]]
    deleted = task.operation[order[ends]] == DELETE
    touched = {
        (int(take), int(key)): Effect.DELETED if gone else Effect.CHANGED
        for (take, key), before, gone in zip(pairs[starts].tolist(), existed, deleted, strict=True)
        if before or not gone
    }
    for refresh in np.flatnonzero(refreshes.cluster == number).tolist():
        effect = Effect.REFRESHED if refreshes.exists[refresh] else Effect.REFRESHED_ABSENT
        touched[int(refreshes.take[refresh]), int(refreshes.key[refresh])] = effect
    # Takes without a trace can stand at one place; what the last of them did to a row counts.
    found = {
        (int(takes.epoch[take]), int(takes.group[take]) + 1, key): int(effect)
        for (take, key), effect in sorted(touched.items())
    }
    return np.array([(*place, effect) for place, effect in found.items()], np.uint64).reshape(-1, 4)
