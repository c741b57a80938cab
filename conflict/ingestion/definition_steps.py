"""
Where statements that change definitions stand in a History on disk.

A segment starts with them. Their effect on rows is kept as rows of `CHANGES` at its beginning, one per key: see
`conflict.grid.schemas.RowStep`. They come after all epochs before the statement, under an epoch that no other row has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conflict.grid.key_numbering import SegmentStep
from conflict.grid.manifest import Manifest, SegmentFacts
from conflict.grid.schemas import RowStep
from conflict.history.model import DefinitionChange
from conflict.history.reading import kept_changes, placed_changes
from conflict.history.run import Run
from conflict.history.tables import TableNumbers

__all__ = ["changes_that_count", "definition_changes", "row_steps"]


def definition_changes(run: Run, manifest: Manifest) -> dict[str, list[DefinitionChange]]:
    """Return the changes of definitions of each cluster, each after the own epoch that comes before it."""
    changes: dict[str, list[DefinitionChange]] = {name: [] for name in manifest.segments}
    for name, known in run.definitions.items():
        segments = manifest.segments[name]
        for step in known.steps:
            place = _segment_of(segments, step.file, step.position)
            if place is not None:
                before = [facts.last_epoch for facts in segments[:place] if facts.last_epoch]
                changes[name].append(DefinitionChange(before[-1] if before else 0, step))
    return placed_changes(run.links, changes) if run.definitions else changes


def changes_that_count(run: Run, manifest: Manifest) -> dict[str, list[DefinitionChange]]:
    """Return those changes of definitions that do not come after all that is resolved."""
    return {
        name: kept_changes(own, manifest.last_epochs[name], cut=manifest.is_cut(name))
        for name, own in definition_changes(run, manifest).items()
    }


def row_steps(run: Run, manifest: Manifest, numbers: TableNumbers) -> Mapping[str, Sequence[SegmentStep]]:
    """Return, per cluster, what the statements do to the rows of each table, and at the start of which segment."""
    found: dict[str, list[SegmentStep]] = {}
    for name, changes in definition_changes(run, manifest).items():
        segments = manifest.segments[name]
        for change in changes:
            place = _segment_of(segments, change.step.file, change.step.position)
            assert place is not None
            following = next((facts.first_epoch for facts in segments[place:] if facts.last_epoch), None)
            position = step_position(change.epoch, following)
            for table in change.step.touched:
                kind = RowStep.EMPTIED if table in change.step.emptied else RowStep.CHANGED
                found.setdefault(name, []).append(SegmentStep(place, numbers.number(table), kind, *position))
    return found


def step_position(before: int, following: int | None) -> tuple[int, int]:
    """
    Return the own epoch and group under which the effect of a statement stands.

    It has to come after the epoch before the statement and what the applier did then, and before the next epoch.
    """
    return (before + 1, 0) if following != before + 1 else (before + 1, -1)


def _segment_of(segments: Sequence[SegmentFacts], file: str, position: int) -> int | None:
    """Return the segment in which an event stands; None if it was not read."""
    for number, facts in enumerate(segments):
        if facts.file == file and facts.start <= position < facts.stop:
            return number
    return None
