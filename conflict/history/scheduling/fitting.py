"""
An arriving change as the applier's own table takes it, where the tables of the two clusters differ at that moment.

An applier goes by the places of columns, not by their names. Columns that only the source has, at its end, are left
out; those that only the applier has keep their values or get their defaults. A type that may not be converted stops it.
"""

from __future__ import annotations

import attrs

from conflict.history.model import RowChange
from conflict.rules.stops import Misfit
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.image_conversion import converted_image
from ndb_formats.events.row_image import RowImage
from ndb_formats.rules.replica.conversions import conversion, is_allowed

__all__ = ["fitted", "misfit"]


def misfit(source: TableSetup, replica: TableSetup) -> Misfit | None:
    """Return the first column that an applier may not convert; None if there is none."""
    theirs, mine = (setup.shown[0] for setup in (source, replica))
    if theirs == mine:
        return None
    for place, (column, other) in enumerate(zip(theirs.columns, mine.columns, strict=False), start=1):
        if not is_allowed(conversion(column, other), replica.conversions):
            return Misfit(place, other.name, column.sql_type, other.sql_type)
    return None


def fitted(change: RowChange, source: TableSetup, replica: TableSetup) -> RowChange:
    """Return a change with the values where the applier has its columns, which `misfit` has checked."""
    pairs = zip(source.shown[1], replica.shown[1], strict=False)
    moved = {place: other for place, other in pairs if place != other}
    if not moved and len(source.shown[1]) <= len(replica.shown[1]):
        return change
    kept = dict(zip(source.shown[1], replica.shown[1], strict=False))
    return attrs.evolve(change, before=_moved(change.before, kept), after=_moved(change.after, kept))


def _moved(image: RowImage | None, kept: dict[int, int]) -> RowImage | None:
    if image is None:
        return None
    chosen = [(place, payload) for place, payload in zip(image.present, image.payloads, strict=True) if place in kept]
    part = RowImage(image.layout, tuple(place for place, _ in chosen), tuple(payload for _, payload in chosen))
    places = [kept.get(place, place) for place in range(len(image.layout.codecs))]
    return converted_image(part, places, image.layout)
