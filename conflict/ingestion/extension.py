"""
What a History holds after more segments were read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import attrs

from conflict.grid.manifest import Manifest, SegmentFacts
from conflict.history.epochs import disordered
from conflict.ingestion.plan import Plan
from conflict.ingestion.segment_records import SegmentRecord
from ndb_formats.errors import SchemaError, WrongKeyError
from ndb_formats.types.column_types import WireType

__all__ = ["KeptSegments", "extended", "kept_segments"]

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


def extended(held: Manifest | None, plan: Plan, kept: Mapping[str, KeptSegments]) -> Manifest:
    """
    Return the manifest of a History with the segments that were read; its schedule is not yet derived.

    Args:
        held: What the History held before; None for a new one.
        plan: What was read.
        kept: What is kept of it, per cluster.

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
    return attrs.evolve(
        held,
        batches=plan.batch + new,
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
        batches=0,
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
            if types.setdefault(name, wires) != wires:
                message = "its columns are not the same in all binlogs; give only binlogs in which they are"
                raise SchemaError(message, file=record.facts.file, table=name)
    return types
