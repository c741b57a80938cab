"""
What a History holds after more segments were read, and where changes of definitions stand in it.

A segment starts with them. Their effect on rows is kept as rows of `CHANGES` at its beginning, one per key: see
`conflict.history.grid.schemas.RowStep`. They come after all epochs before the statement, under an epoch that no other
row has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import attrs

from conflict.errors import HistoryError
from conflict.history.grid.key_numbering import SegmentStep
from conflict.history.grid.manifest import Manifest, SegmentFacts
from conflict.history.grid.schemas import RowStep, batch_of
from conflict.history.ingestion.plan import Plan
from conflict.history.ingestion.segments import SegmentRecord
from conflict.history.reading.epoch_logs import disordered
from conflict.history.run import KeptAlone, Run, TableNumbers
from conflict.history.scheduling.cluster_schedule import kept_changes, placed_changes
from conflict.history.timeline import END, DefinitionChange, statement_positions
from ndb_formats.errors import SchemaError, WrongKeyError
from ndb_formats.types.column_types import WireType


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


def files_kept_alone(run: Run, held: Manifest) -> dict[str, KeptAlone]:
    """Return, by cluster, the files that a History has read and that are not given any more, if there are any."""
    if held.segments.keys() != run.links.server_ids.keys():
        return {}  # of other clusters
    changes, found = definition_changes(run, held), dict[str, KeptAlone]()
    for cluster in run.clusters:
        known, given = held.files[cluster.name], [str(file) for file in cluster.files]
        files = tuple(file for file in known if file not in given)
        if files:
            read = (facts.last_epoch for facts in held.segments[cluster.name] if facts.file in files)
            statements = tuple(each for each in changes[cluster.name] if each.step.file in files)
            in_front = len(cluster.servers) == 1 and known[: len(files) + 1] == (*files, *given[:1])
            found[cluster.name] = KeptAlone(files, max(read, default=0), statements, in_front)
    return found


def changes_that_count(run: Run, manifest: Manifest) -> dict[str, list[DefinitionChange]]:
    """Return those changes of definitions that do not come after all that is resolved."""
    found = {}
    for name, own in definition_changes(run, manifest).items():
        kept = kept_changes(own, manifest.last_epochs[name], cut=manifest.is_cut(name))
        found[name] = _with_positions(kept, manifest.segments[name])
    return found


def _with_positions(changes: Sequence[DefinitionChange], segments: Sequence[SegmentFacts]) -> list[DefinitionChange]:
    """Return changes of definitions with their own positions."""
    places = [_segment_of(segments, each.step.file, each.step.position) for each in changes]
    following = [next((facts.first_epoch for facts in segments[place:] if facts.last_epoch), None) for place in places]
    positions = statement_positions([each.epoch for each in changes], following)
    return [
        attrs.evolve(each, epoch=epoch, group=group) for each, (epoch, group) in zip(changes, positions, strict=True)
    ]


def refuse_other_statements(run: Run, held: Manifest) -> None:
    """
    Make sure that a run knows the statements of a History, whose steps stand among the rows.

    Raises:
        HistoryError: Files that are not given hold some, or they count otherwise.
    """
    for name, own in definition_changes(run, held).items():
        known = held.steps.get(name, 0)
        if len(own) != known:
            message = (
                f"the History holds {known} changes of definitions of cluster {name}, and the binlogs that are given "
                f"have {len(own)} of them. Give all files from the first one on, or ingest into another folder"
            )
            raise HistoryError(message)


def refuse_moved_steps(run: Run, held: Manifest, grown: Manifest) -> None:
    """
    Make sure that the steps of a History stay where they stand among its rows.

    Raises:
        HistoryError: It ended with a statement, and the next epoch takes the number under which that stands.
    """
    steps = row_steps(run, grown, run.numbers)
    for name, own in row_steps(run, held, run.numbers).items():
        if steps[name][: len(own)] != own:
            message = (
                f"the History ends with a change of definitions of cluster {name}, and the number of the next epoch "
                "leaves no place for it between the epochs; ingest all files into another folder"
            )
            raise HistoryError(message)


def row_steps(run: Run, manifest: Manifest, numbers: TableNumbers) -> Mapping[str, Sequence[SegmentStep]]:
    """Return, per cluster, what the statements do to the rows of each table, and the segment that begins with each."""
    found: dict[str, list[SegmentStep]] = {}
    for name, changes in definition_changes(run, manifest).items():
        segments = manifest.segments[name]
        for change in _with_positions(changes, segments):
            place = _segment_of(segments, change.step.file, change.step.position)
            assert place is not None
            for table in change.step.touched:
                kind = RowStep.EMPTIED if table in change.step.emptied else RowStep.CHANGED
                step = SegmentStep(place, numbers.number(table), kind, change.epoch, change.group)
                found.setdefault(name, []).append(step)
    return found


def refuse_early_statements(run: Run, held: Manifest, grown: Manifest) -> None:
    """
    Make sure that a History was not read past a statement of the other cluster that was not known yet.

    Raises:
        HistoryError: It was; what the applier logged for that statement was taken for an epoch.
    """
    known = definition_changes(run, grown)
    for name, own in definition_changes(run, held).items():
        for before, after in zip(own, known[name], strict=False):
            if before.step.commits and before.follows == END[0] != after.follows:
                message = (
                    f"the History holds the binlog of cluster {name} past a statement of the other cluster "
                    f"({before.step.file}, position {before.step.position}), whose binlog did not hold it yet, so that "
                    "what the applier logged for it was taken for an epoch; ingest all files into another folder"
                )
                raise HistoryError(message)


def _segment_of(segments: Sequence[SegmentFacts], file: str, position: int) -> int | None:
    """Return the segment in which an event stands; None if it was not read."""
    for number, facts in enumerate(segments):
        if facts.file == file and facts.start <= position < facts.stop:
            return number
    return None


Value = TypeVar("Value")


@attrs.frozen
class KeptSegments:
    """
    What an ingest keeps of the segments that it read of one cluster.

    Attributes:
        records: The segments, up to the first one with an error.
        error: Why the binlogs could not be read to their end; None if they could.
        left_out: Row operations of the epoch that the error cut off.
    """

    records: tuple[SegmentRecord, ...]
    error: str | None
    left_out: int


def kept_segments(records: Sequence[SegmentRecord]) -> KeptSegments:
    """
    Decide what to keep of the segments of one cluster. Last segments without a whole transaction are not kept.

    Raises:
        WrongKeyError: A table has another primary key, so that no segment is right.
    """
    errors = [place for place, record in enumerate(records) if record.error is not None]
    if errors and records[errors[0]].wrong_key:
        raise WrongKeyError(records[errors[0]].error or "")
    kept = records[: errors[0] + 1] if errors else records
    error, left_out = (kept[-1].error, kept[-1].left_out) if kept else (None, 0)
    while kept and kept[-1].facts.stop == kept[-1].facts.start:
        kept = kept[:-1]
    return KeptSegments(tuple(kept), error, left_out)


def extended(
    held: Manifest | None, plan: Plan, kept: Mapping[str, KeptSegments], merged: Sequence[int] = ()
) -> Manifest:
    """
    Return the manifest of a History with the segments that were read; its schedule is not yet derived.

    Args:
        held: What the History held before; None for a new one.
        plan: What was read.
        kept: What is kept of it, per cluster.
        merged: The batches that the new one replaces.

    Raises:
        HistoryError: Epochs do not rise.
        SchemaError: The columns of a table change.
    """
    new = held is None or any(each.records for each in kept.values())
    held = held or _empty(plan)
    segments = {name: (*held.segments[name], *(record.facts for record in each.records)) for name, each in kept.items()}
    for facts in segments.values():
        _refuse_disorder(facts)
    read = {name: each for name, each in kept.items() if plan.segments[name]}
    if new:
        left = tuple(batch for batch in held.batches if batch not in merged)
        listed = tuple(each for each in held.listed if batch_of(each.path) not in merged)
        held = attrs.evolve(
            held, buckets=plan.buckets, batches=(*left, plan.batch), listed=listed, merged=tuple(merged)
        )
    return attrs.evolve(
        held,
        tables=plan.tables,
        resolve_columns=plan.resolve_columns,
        files=plan.files if new else held.files,
        segments=segments,
        types=_types(held.types, [record for each in kept.values() for record in each.records]),
        errors=_updated(held.errors, {name: each.error for name, each in read.items()}),
        left_out=_updated(held.left_out, {name: each.left_out for name, each in read.items()}),
    )


def _empty(plan: Plan) -> Manifest:
    """Return the manifest of a History without segments."""
    zeros = dict.fromkeys(plan.clusters, 0)
    return Manifest(
        buckets=plan.buckets,
        clusters=plan.clusters,
        tables=plan.tables,
        resolve_columns=plan.resolve_columns,
        databases=plan.databases,
        batches=(),
        files=plan.files,
        segments=dict.fromkeys(plan.clusters, ()),
        types={},
        errors={},
        left_out={},
        assumed=zeros,
        last_epochs=zeros,
        epochs_left_out=zeros,
        changes=0,
    )


def _updated(known: Mapping[str, Value], read: Mapping[str, Value | None]) -> dict[str, Value]:
    """Return `known` with the entries of `read` in place of older ones; only those that say something are kept."""
    older = {name: value for name, value in known.items() if name not in read}
    return older | {name: value for name, value in read.items() if value}


def _refuse_disorder(segments: Sequence[SegmentFacts]) -> None:
    with_epochs = [segment for segment in segments if segment.last_epoch]
    for before, after in pairwise(with_epochs):
        if after.first_epoch <= before.last_epoch:
            raise disordered(str(after.file), after.first_epoch, f"{before.last_epoch} of {before.file}")


def _types(
    known: Mapping[str, tuple[WireType, ...]], records: Sequence[SegmentRecord]
) -> dict[str, tuple[WireType, ...]]:
    types = dict(known)
    for record in records:
        for name, wires in record.types.items():
            shorter, longer = sorted((types.get(name, wires), wires), key=len)
            if longer[: len(shorter)] != shorter:
                message = (
                    "its columns are not the same in all binlogs; give only binlogs in which they are, and if a "
                    "statement has changed them since the last ingest, ingest all of them into another folder"
                )
                raise SchemaError(message, file=record.facts.file, table=name)
            types[name] = longer
    return types
