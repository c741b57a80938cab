"""
What all tasks of the resolve job have in common, and the part of a History on disk that they read.

The part is cut by `conflict.history.scheduling.start`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cached_property

import attrs
import numpy as np

from conflict.config.database_names import DatabaseNames
from conflict.engine.columnar.applier_stops import can_log_stopping
from conflict.engine.columnar.bucket import TOGETHER, Bucket, CarefulRows, load_bucket
from conflict.engine.columnar.bucket_view import BucketView
from conflict.engine.columnar.keys.foreign_keys import LinkedKeys, linked_keys
from conflict.engine.columnar.keys.unique_keys import has_unique_keys
from conflict.engine.columnar.setups import ClusterSetup, RequiredOverTime, required_over_time, transactional_tables
from conflict.engine.kernels.arrays import Bool, Int64
from conflict.engine.ledger.layout import ResultOptions
from conflict.history.grid.columns import columns_of_bucket
from conflict.history.grid.epoch_files import read_all_summaries, read_schedule
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest
from conflict.history.model import Cluster, Start, whole_start
from conflict.history.run import Run, TableNumbers
from conflict.history.scheduling.cluster_schedule import schedule_of
from conflict.history.scheduling.schedule_columns import ScheduleColumns
from conflict.history.scheduling.start import (
    Bounds,
    bounds_of,
    certain_applies,
    consistent_cut,
    refuse_changes,
    returned_before,
    starts_in_the_middle,
)
from conflict.history.timeline import Timeline
from conflict.history.unlogged import UnloggedChange
from conflict.runs.rows.window import Window


@attrs.frozen
class LogPart:
    """
    The part of the logs that a run reads.

    Attributes:
        bounds: Per cluster, the own epochs that are read; None for all that can be resolved.
        starts: Per cluster, where its log starts in the middle; empty if all tables were empty before.
        shows: Clusters whose binlogs show something of their applier's work, if they start in the middle.
    """

    bounds: Mapping[str, Bounds] | None = None
    starts: Mapping[str, Start] = attrs.field(factory=dict)
    shows: frozenset[str] = frozenset()

    @property
    def starts_in_the_middle(self) -> bool:
        """Whether tables held rows before."""
        return bool(self.starts)


WHOLE = LogPart()


# What a run reads of a History; per applier, the epoch applies of that part; and what the History holds of it.
ReadPart = tuple[LogPart, Mapping[str, ScheduleColumns], Manifest]


def part_of_log(run: Run, history: Folder, manifest: Manifest) -> ReadPart:
    """
    Return what a run reads of a History.

    Raises:
        ConfigurationError: A cluster has no epoch left, or it starts in the middle and definitions change.
    """
    span = run.span
    names = [cluster.name for cluster in run.clusters]
    if not span.cuts and span.empty:
        return WHOLE, read_schedule(history, names), manifest
    read = read_all_summaries(history, run.links, manifest.batches)
    usable = consistent_cut(read, run.links.server_ids, with_holes=span.cuts)
    if not span.cuts and not starts_in_the_middle(span, run.links, usable):
        return WHOLE, read_schedule(history, names), manifest
    refuse_changes(run.definitions)
    if span.cuts:
        bounds = bounds_of(span, run.links, usable)
        read = {name: own.between(bounds[name].first, bounds[name].last) for name, own in read.items()}
    summaries = consistent_cut(read, run.links.server_ids)
    middle = starts_in_the_middle(span, run.links, summaries)
    hints = run.hints(usable)
    starts, assumed, schedule = dict[str, Start](), dict[str, int](), dict[str, ScheduleColumns]()
    for cluster in run.clusters:
        name = cluster.name
        cut = name in manifest.errors or len(summaries[name]) < len(read[name]) or bool(span.last)
        restarts = run.restarts_of(cluster)
        (applies,), assumed[name] = schedule_of(run.links, cluster, summaries, hints, cut=cut, restarts=restarts)
        if middle:
            first = summaries[name][0].number if summaries[name] else 0
            starts[name] = Start(first, returned=returned_before(run.links, summaries, name))
            applies = certain_applies(applies, starts[name].epoch)
        schedule[name] = applies
    kept = {name: Bounds(own[0].number, own[-1].number) if own else Bounds(1, 0) for name, own in summaries.items()}
    figures = attrs.evolve(
        manifest,
        assumed=assumed,
        last_epochs={name: bounds.last for name, bounds in kept.items()},
        epochs_left_out={name: len(read[name]) - len(own) for name, own in summaries.items()},
        changes=sum(int(own.changes.sum()) for own in summaries.values()),
    )
    shows = frozenset(name for name in starts if _shows_effects(history, manifest, name, kept[name]))
    return LogPart(kept, starts, shows), schedule, figures


def _shows_effects(history: Folder, manifest: Manifest, name: str, bounds: Bounds) -> bool:
    """Whether the binlog of a cluster shows something of its applier's work."""
    return any(
        columns_of_bucket(history, manifest, "consequences", name, bucket, bounds).kept
        for bucket in range(manifest.buckets)
    )


class PartKind(IntEnum):
    """
    What a part of the rows holds.

    `BUCKET` is what the kernels decide of a bucket. `OLDER` are its rows that are older than the log and that they
    cannot tell, which its own task gives to the reference engine. `CAREFUL` are careful rows, of any buckets.
    """

    BUCKET = 0
    OLDER = 1
    CAREFUL = 2


@attrs.frozen
class Part:
    """
    A part of the rows that is decided, and written, by itself.

    Attributes:
        kind: What it holds.
        bucket: The bucket; of careful rows, one from which some come.
    """

    kind: PartKind
    bucket: int

    def number(self, run: TaskInputs) -> int:
        """Return its number in the names of the result's files."""
        return self.kind * run.manifest.buckets + self.bucket


@attrs.frozen(slots=False)
class TaskInputs:
    """
    What all tasks of a run have in common.

    Attributes:
        history: Folder of the History.
        out: Folder of the result.
        manifest: What the History holds.
        numbers: The tables.
        clusters: Both clusters.
        options: What the result holds.
        part: The part of the logs that is read.
        view: What another policy or format makes of the logged changes; None for the changes as they are.
        careful: Rows of keyed tables that the reference engine resolves; None for none.
        respelled: Those of them whose keys are spelled in several ways; None for none.
        unlogged: Per cluster, the rows that it changed without a log, if they are followed; they are among `careful`.
        databases: The names that clusters use for databases which appliers rename.
        left_out: Rows that are not read at all; None for none.
        window: What an earlier result knows of the epochs before those that are decided; None to decide all.
    """

    history: Folder
    out: Folder
    manifest: Manifest
    numbers: TableNumbers
    clusters: tuple[ClusterSetup, ...]
    options: ResultOptions
    part: LogPart = WHOLE
    view: BucketView | None = None
    careful: CarefulRows | None = None
    respelled: CarefulRows | None = None
    unlogged: Mapping[str, tuple[UnloggedChange, ...]] = attrs.field(factory=dict)
    databases: DatabaseNames = attrs.field(factory=DatabaseNames)
    left_out: CarefulRows | None = None
    window: Window | None = None

    def start_of(self, name: str) -> Start | None:
        """Return where the log of a cluster starts, if some rows of it are not known; None if all are."""
        if self.unlogged and name not in self.part.starts:
            return whole_start(self.numbers.tables)
        return self.part.starts.get(name)

    def cluster_with(self, cluster: ClusterSetup, timeline: Timeline) -> Cluster:
        """Return a cluster of a History with some items of its timeline."""
        return Cluster(
            cluster.name,
            cluster.server_id,
            timeline,
            cluster.role,
            self.start_of(cluster.name),
            filtered={each.name: cluster.filtered for each in self.clusters if each is not cluster},
            restarts=cluster.restarts,
            unlogged=self.unlogged.get(cluster.name, ()),
        )

    def with_careful(self, rows: CarefulRows) -> TaskInputs:
        """Return the run with more rows that are left to the reference engine."""
        return attrs.evolve(self, careful=rows if self.careful is None else self.careful.joined(rows))

    @property
    def has_careful_keys(self) -> bool:
        """Whether rows are careful ones beside those of whole tables."""
        return self.careful is not None and any(map(len, self.careful.keys.values()))

    @property
    def looks_at_effects(self) -> bool:
        """Whether the effects in the binlogs show rows that are not known."""
        return self.part.starts_in_the_middle or bool(self.unlogged)

    @property
    def shared(self) -> Folder:
        """Where the driver and the tasks leave what later tasks read; removed at the end."""
        return self.out.below("shared")

    @property
    def first_epochs(self) -> list[int]:
        """Per cluster, the first own epoch of its log, if the logs start in the middle."""
        return [self.part.starts[cluster.name].epoch for cluster in self.clusters]

    @cached_property
    def checks_unique_keys(self) -> bool:
        """Whether a table has unique keys besides the primary key."""
        return bool(has_unique_keys(self.clusters).any())

    @property
    def has_careful_rows(self) -> bool:
        """Whether the reference engine resolves rows beside the buckets."""
        return self.manifest.has_rows_without_key or self.careful is not None

    @cached_property
    def linked(self) -> LinkedKeys:
        """The ends of all foreign keys."""
        return linked_keys(self.numbers.tables)

    @cached_property
    def filtered(self) -> Bool:
        """Whether an applier drops the changes of each table. Shape (tables,)."""
        names = frozenset[str]().union(*(cluster.filtered for cluster in self.clusters))
        return np.array([table.full_name in names for table in self.numbers.tables], np.bool_)

    @cached_property
    def required(self) -> tuple[RequiredOverTime, RequiredOverTime]:
        """Per cluster, what new rows must be given of tables whose definitions change."""
        return required_over_time(self.clusters, 0), required_over_time(self.clusters, 1)

    def load_bucket(self, number: int, *, images: bool = True) -> Bucket:
        """Read a bucket, with its images or without."""
        bucket = self.load_undecided(number, images=images)
        return bucket if self.window is None else self.window.told(bucket)

    def load_undecided(self, number: int, *, images: bool = True) -> Bucket:
        """Read a bucket, also what binlogs show of epoch applies that were told before, as far as its rows lack it."""
        layouts = self.manifest.layouts(self.numbers)
        bounds = self.part.bounds if self.window is None else self.window.bounds_of(number, self.manifest)
        bucket = load_bucket(self.history, number, self.manifest, self.numbers, layouts, images=images, bounds=bounds)
        bucket.required = self.required
        if self.window is not None:
            bucket = self.window.later(bucket)
        return bucket if self.left_out is None else bucket.of_keys(~self.left_out.of(number, bucket.key_table))

    def load_unseen(self, number: int) -> Bucket:
        """Read what a bucket holds, without images, that an earlier result had not read; all without one."""
        bounds = self.part.bounds if self.window is None else self.window.unseen(self.manifest)
        layouts = self.manifest.layouts(self.numbers)
        return load_bucket(self.history, number, self.manifest, self.numbers, layouts, images=False, bounds=bounds)

    def careful_keys(self, bucket: Bucket) -> Bool:
        """Return which rows of a bucket the reference engine resolves. Shape (keys,)."""
        if self.careful is None:
            return np.zeros(len(bucket.key_table), np.bool_)
        return self.careful.of(bucket.number, bucket.key_table)

    def careful_homes(self, bucket: Bucket) -> Int64:
        """
        Return the bucket with whose careful rows each row is resolved, if it is one. Shape (keys,).

        Rows that a foreign key or a unique key binds to others are resolved with these, all others in their own bucket.
        """
        bound = (self.linked.tables | has_unique_keys(self.clusters))[bucket.key_table]
        homes = np.where(bound, TOGETHER, bucket.number)
        if self.careful is not None and bucket.number in self.careful.homes:
            homes[self.careful.keys[bucket.number]] = self.careful.homes[bucket.number]
        return homes

    @cached_property
    def needs_rounds(self) -> bool:
        """Whether transactions can be in conflict, or what one applier logs can stop the other."""
        transactional = bool(transactional_tables(self.clusters).any())
        if self.part.starts_in_the_middle:
            return transactional  # a stop is left to the reference engine
        if self.careful is not None:
            return True  # a foreign key can stop an applier
        return self.checks_unique_keys or transactional or can_log_stopping(self.clusters)

    @cached_property
    def refreshes_tell(self) -> bool:
        """Whether a refresh of a row tells that its transaction was rejected: no function refreshes single rows."""
        for cluster, transactional in zip(self.clusters, transactional_tables(self.clusters), strict=True):
            functions = [setup.function for setup in cluster.setups if setup.function is not None]
            single = any(function.spec.refreshes and not function.spec.transactional for function in functions)
            if single and transactional.any():
                return False
        return True
