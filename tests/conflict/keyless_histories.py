"""Random Histories with changes of a table without a primary key among those of `random_histories`."""

from __future__ import annotations

from random import Random

import attrs

from conflict.config.configuration import Configuration
from conflict.history.model import History, RowChange, Transaction
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowImage, layout_of_types
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.types.column_types import WireType
from tests.conflict.random_histories import SCHEMA

__all__ = ["LOOSE", "with_loose_rows", "with_loose_table"]

LOOSE = "db.loose"
_SCHEMA = parse_schema(SCHEMA + "CREATE TABLE loose (v INT);", database="db")
_LAYOUT = layout_of_types(
    next(table for table in _SCHEMA.tables if table.full_name == LOOSE), (WireType(ColumnCode.LONG),)
)


def with_loose_table(run: Configuration) -> Configuration:
    """Return a run that has the table without a primary key too."""
    return attrs.evolve(run, schema=_SCHEMA)


def with_loose_rows(history: History, seed: int, *, inserts_only: bool) -> History:
    """
    Return a History with a change of the table at the end of some transactions.

    Args:
        history: Of tables with a primary key.
        seed: Of the source of chance.
        inserts_only: Whether no row is deleted or updated, so that no applier stops because of one.
    """
    chance, number = Random(seed), 0
    clusters = []
    for cluster in history.clusters:
        timeline = []
        for item in cluster.timeline:
            if isinstance(item, Transaction) and item.changes and chance.random() < 0.5:
                number += 1
                change = _change(chance, number, item.changes[0].transaction_id, inserts_only=inserts_only)
                item = attrs.evolve(item, changes=(*item.changes, change))  # noqa: PLW2901
            timeline.append(item)
        clusters.append(attrs.evolve(cluster, timeline=tuple(timeline)))
    return attrs.evolve(history, clusters=tuple(clusters), layouts={**history.layouts, LOOSE: _LAYOUT})


def _change(chance: Random, number: int, transaction: int | None, *, inserts_only: bool) -> RowChange:
    # Rows of their own make no transaction depend on another one.
    value = number if inserts_only else chance.randint(1, 3)
    kind = Operation.WRITE_ROW if inserts_only or chance.random() < 0.7 else Operation.DELETE_ROW
    image = RowImage(_LAYOUT, (0,), (value.to_bytes(4, "little"),))
    before, after = (None, image) if kind is Operation.WRITE_ROW else (image, None)
    return RowChange(LOOSE, value.to_bytes(4, "little"), kind, before, after, transaction)
