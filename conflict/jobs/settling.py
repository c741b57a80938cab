"""
What the resolve job settles in memory, on the rows that matter: places of untraced epochs, and moments of judging.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

import attrs

from conflict.columnar.apply_order import Located
from conflict.config.configuration import Configuration
from conflict.grid.epoch_files import read_summaries
from conflict.grid.manifest import Manifest
from conflict.grid.tables import TableNumbers
from conflict.history.model import Cluster, DefinitionChange, EpochApply, History, Position
from conflict.history.scheduling.schedule import epoch_ends
from conflict.history.scheduling.start import Bounds
from conflict.history.timeline import timeline_of
from conflict.jobs.resolve_run import ResolveRun
from conflict.jobs.runner import Runner, StageProgress
from conflict.jobs.touched_rows import TouchedTask, Wanted, read_touched, touched_history
from conflict.reference.background import Recorded
from conflict.reference.moments import Moments, find_moments
from conflict.reference.placement import Placed, place_untraced
from ndb_formats.events.row_image import RowLayout

__all__ = ["NOWHERE", "Settling", "layouts_of"]

Applies = Mapping[str, Sequence[EpochApply]]
NOWHERE: Position = (0, -1)


@attrs.frozen
class Settling:
    """
    Reads the rows of some epochs from a History on disk, and settles on them what the binlogs leave open.

    Attributes:
        runner: Runs the tasks.
        run: The run.
        configuration: Its configuration.
        progress: Called with the name of the stage, tasks done, and their number.
        changes: Per cluster, the changes of definitions.
    """

    runner: Runner
    run: ResolveRun
    configuration: Configuration
    progress: StageProgress
    changes: Mapping[str, Sequence[DefinitionChange]] = attrs.field(factory=dict)

    def place_untraced(self, applies: Applies) -> Placed:
        """Place the epochs that left no trace, from the rows that they touch."""
        wanted = {name: Wanted.of_applies(own, lambda apply: apply.window is not None) for name, own in applies.items()}
        history, recorded, _ = self._read("placing epochs", applies, wanted)
        setups, skip_missing = self.configuration.setups_at_start(), self.configuration.skip_missing
        return place_untraced(history, setups, recorded, skip_missing=skip_missing)

    def find_moments(self, applies: Applies, wanted: Mapping[str, AbstractSet[Position]]) -> tuple[Moments, Located]:
        """
        Find when the rows of some epochs were judged.

        Args:
            applies: Per cluster, the epoch applies of its applier, at their places.
            wanted: Per cluster, the own positions of those to look at.

        Returns:
            The moments, and where their rows are.
        """
        chosen = {name: Wanted.of_applies(own, _at(wanted[name])) for name, own in applies.items()}
        history, recorded, located = self._read("finding moments", applies, chosen)
        setups, skip_missing = self.configuration.setups_at_start(), self.configuration.skip_missing
        return find_moments(history, setups, recorded, skip_missing=skip_missing, wanted=wanted), located

    @property
    def _bounds(self) -> list[Bounds]:
        """Per cluster, the own epochs that are read."""
        bounds, manifest = self.run.part.bounds, self.run.manifest
        return [
            Bounds(last=manifest.last_epochs[name]) if bounds is None else bounds[name] for name in manifest.segments
        ]

    def _read(self, stage: str, applies: Applies, wanted: Mapping[str, Wanted]) -> tuple[History, Recorded, Located]:
        """Return a History of the rows that some epochs touch, what the binlogs show of them, and where they are."""
        run, manifest = self.run, self.run.manifest
        tasks = [TouchedTask(run, bucket, wanted) for bucket in range(manifest.buckets)]
        parts = self.runner(read_touched, tasks, partial(self.progress, stage))
        clusters, recorded = [], {}
        for cluster in self.configuration.clusters:
            transactions, recorded[cluster.name] = touched_history(parts, cluster.name, run)
            if cluster.name in run.part.shows:
                recorded[cluster.name].setdefault(NOWHERE, {})  # its binlog shows something, if not of these rows
            timeline = timeline_of(transactions, applies[cluster.name], self.changes.get(cluster.name, ()))
            start = run.part.starts.get(cluster.name)
            clusters.append(Cluster(cluster.name, cluster.server_id, timeline, cluster.role, start))
        ends = {
            name: epoch_ends([each for each in read_summaries(run.history, name, len(segments)) if each.number in read])
            for (name, segments), read in zip(manifest.segments.items(), self._bounds, strict=True)
        }
        kept = {name: tuple(own) for name, own in applies.items()}
        history = History(tuple(clusters), layouts_of(manifest, run.numbers), {}, kept, ends)
        return history, recorded, {row: place for part in parts for row, place in part.located.items()}


def _at(positions: AbstractSet[Position]) -> Callable[[EpochApply], bool]:
    return lambda apply: apply.traced and (apply.epoch, apply.group) in positions


def layouts_of(manifest: Manifest, numbers: TableNumbers) -> dict[str, RowLayout]:
    """Return how the rows of each table of a History are read."""
    return {layout.table: layout for layout in manifest.layouts(numbers) if layout is not None}
