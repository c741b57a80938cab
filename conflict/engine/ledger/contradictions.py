"""
Rows of which a binlog shows another effect, other values or another mark than was derived.

Computes docs/result.md, "Contradictions".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs
import pyarrow as pa

from conflict.engine.ledger.layout import ROW_KEY
from conflict.history.epochs import BinlogEpoch
from conflict.history.grid.columns import KnownImage, digest_of, other_values
from conflict.history.model import Cluster
from conflict.history.roles import FittingMarks, Mark, mark_of
from conflict.history.shown_effects import Effect, effect_of
from conflict.history.timeline import DefinitionChange, EpochApply, RowChange
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowImage

CONTRADICTIONS = pa.schema(
    [
        ("epoch", pa.uint64()),
        ("group", pa.int32()),
        ("table", pa.string()),
        *ROW_KEY,
        ("derived", pa.string()),
        ("shown", pa.string()),
    ]
)
OTHER_VALUES = "CHANGED to other values"

# (own epoch, group) -> (table, key) -> effect, or image that the row was given
Effects = Mapping[tuple[int, int], Mapping[tuple[str, bytes], Effect]]
Images = Mapping[tuple[int, int], Mapping[tuple[str, bytes], RowImage]]
# The same, with the digest of an image where the image itself was not kept (see `conflict.history.grid.columns`).
ShownImages = Mapping[tuple[int, int], Mapping[tuple[str, bytes], RowImage | int]]


@attrs.frozen
class ContradictedRow:
    """
    A row for which a binlog shows another effect than was derived.

    Attributes:
        epoch: Own epoch of the epoch apply.
        group: Its group in that epoch.
        table: ``database.table``.
        key: Its identity.
        derived: The effect that was derived; None for none.
        shown: The effect in the binlog; None for none. The same as `derived` if the row was given other values, or was
            marked otherwise.
        mark: Its mark in the binlog, where the effect is as derived and the mark fits neither role nor function.
    """

    epoch: int
    group: int
    table: str
    key: bytes
    derived: Effect | None
    shown: Effect | None
    mark: Mark | None = None


def contradicted_rows(
    derived: tuple[Effects, Images], shown: tuple[Effects, ShownImages]
) -> tuple[int, list[ContradictedRow]]:
    """
    Compare the effects of one applier with those that its binlog shows.

    Values are compared where both images carry the same columns.

    Args:
        derived: The effects that were derived, and the last image that each changed row was given.
        shown: The same of the binlog.

    Returns:
        How many rows were compared, and those that differ.
    """
    compared, found = 0, []
    for place in sorted(derived[0].keys() | shown[0].keys()):
        mine, theirs = derived[0].get(place, {}), shown[0].get(place, {})
        given, written = derived[1].get(place, {}), shown[1].get(place, {})
        for row in sorted(mine.keys() | theirs.keys()):
            compared += 1
            effects = mine.get(row), theirs.get(row)
            same_kind = effects[0] is effects[1]
            if not same_kind or (effects[0] is Effect.CHANGED and _other_values(given.get(row), written.get(row))):
                found.append(ContradictedRow(*place, *row, *effects))
    return compared, found


def _other_values(given: RowImage | None, written: RowImage | int | None) -> bool:
    """Whether two images carry the same columns with other values."""
    if given is None or written is None:
        return False
    if isinstance(written, KnownImage):
        written = written.digest
    if isinstance(written, int):
        return other_values(digest_of(given), written)
    return given.present == written.present and given.payloads != written.payloads


def contradicted_marks(
    cluster: Cluster, setups: Mapping[str, TableSetup], epochs: Sequence[BinlogEpoch], fitting: FittingMarks
) -> Iterator[ContradictedRow]:
    """
    Yield the rows whose mark is not one of the role and the function that their applier had.

    Args:
        cluster: The cluster.
        setups: How its server set up each table at the start.
        epochs: What its binlog shows.
        fitting: Which marks roles and functions allow.
    """
    changes: dict[tuple[int, int], list[RowChange]] = {}
    for epoch in epochs:
        for group, change in epoch.consequences:
            changes.setdefault((epoch.number, group), []).append(change)
    role, allowed = cluster.role, dict[tuple[str, Role], frozenset[Mark]]()
    for item in cluster.timeline:
        if isinstance(item, DefinitionChange):
            setups = item.step.after.setups
            allowed.clear()
        if not isinstance(item, EpochApply):
            continue
        role = item.role or role
        for change in changes.pop((item.epoch, item.group), ()) if item.traced else ():
            mark, place = mark_of(change.flags), (change.table, role)
            if place not in allowed:
                allowed[place] = fitting.marks(setups, *place)
            if mark is not None and mark not in allowed[place]:
                effect = effect_of(change)
                yield ContradictedRow(item.epoch, item.group, change.table, change.key, effect, effect, mark)


def kind_text(derived: str | None, shown: str | None) -> str:
    """Return a kind of contradiction as the summary names it, from the two columns of `CONTRADICTIONS`."""
    return f"derived {derived or 'nothing'}, shown {shown or 'nothing'}"


def contradictions_path(applier: str, bucket: int) -> str:
    """Return the path of the contradictions of an applier's work on a bucket."""
    return f"contradictions/applier={applier}/bucket={bucket:05d}.parquet"


def marked_text(shown: str | None, mark: Mark) -> str:
    """Return an effect with a mark that it should not have, as results name it."""
    return f"{shown} {mark}"
