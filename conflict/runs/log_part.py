"""
The part of a History on disk that a run reads, and its schedule; see `conflict.history.scheduling.start`.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pyarrow as pa

from conflict.history.grid.columns import GridColumns
from conflict.history.grid.epoch_files import read_summaries, schedule_table
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest
from conflict.history.grid.schemas import CONSEQUENCES, SCHEDULE, part
from conflict.history.model import EpochApply, Start
from conflict.history.reading import schedule_of
from conflict.history.run import Run
from conflict.history.scheduling.start import (
    Bounds,
    bounds_of,
    certain_applies,
    consistent_cut,
    refuse_changes,
    starts_in_the_middle,
)

__all__ = ["WHOLE", "LogPart", "part_of_log"]


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


def part_of_log(run: Run, history: Folder, manifest: Manifest) -> tuple[LogPart, pa.Table, Manifest]:
    """
    Return what a run reads of a History, the schedule of that part as `SCHEDULE`, and its figures.

    Raises:
        ConfigurationError: A cluster has no epoch left, or it starts in the middle and definitions change.
    """
    span = run.span
    whole = WHOLE, history.read_table("schedule.parquet", SCHEDULE), manifest
    if not span.cuts and span.empty:
        return whole
    read = {name: read_summaries(history, name, len(segments)) for name, segments in manifest.segments.items()}
    usable = consistent_cut(read, run.links.server_ids)
    if not span.cuts and not starts_in_the_middle(span, run.links, usable):
        return whole
    refuse_changes(run.definitions)
    if span.cuts:
        bounds = bounds_of(span, run.links, usable)
        read = {name: [each for each in own if each.number in bounds[name]] for name, own in read.items()}
    summaries = consistent_cut(read, run.links.server_ids)
    middle = starts_in_the_middle(span, run.links, summaries)
    hints = run.hints(usable)
    starts, assumed, placed = dict[str, Start](), dict[str, int](), list[tuple[str, EpochApply]]()
    for cluster in run.clusters:
        name = cluster.name
        cut = name in manifest.errors or len(summaries[name]) < len(read[name]) or bool(span.last)
        applies, assumed[name] = schedule_of(run.links, cluster, summaries, hints, cut=cut)
        if middle:
            starts[name] = Start(summaries[name][0].number if summaries[name] else 0)
            applies = certain_applies(applies, starts[name].epoch)
        placed += [(name, apply) for apply in applies]
    kept = {name: Bounds(own[0].number, own[-1].number) if own else Bounds(1, 0) for name, own in summaries.items()}
    figures = attrs.evolve(
        manifest,
        assumed=assumed,
        last_epochs={name: bounds.last for name, bounds in kept.items()},
        epochs_left_out={name: len(read[name]) - len(own) for name, own in summaries.items()},
        changes=sum(summary.changes for own in summaries.values() for summary in own),
    )
    shows = frozenset(name for name in starts if _shows_effects(history, manifest, name, kept[name]))
    return LogPart(kept, starts, shows), schedule_table(placed), figures


def _shows_effects(history: Folder, manifest: Manifest, name: str, bounds: Bounds) -> bool:
    """Whether the binlog of a cluster shows something of its applier's work."""
    segments = range(len(manifest.segments[name]))
    return any(
        GridColumns(history, paths, CONSEQUENCES, bounds.last, bounds.first).kept[1] > 0
        for bucket in range(manifest.buckets)
        for paths in [[part("consequences", name, segment, bucket) for segment in segments]]
    )
