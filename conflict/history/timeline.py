"""What happened on a cluster, in order: its transactions, its epoch applies and its changes of definitions."""

from __future__ import annotations

from collections.abc import Sequence

from conflict.history.model import DefinitionChange, EpochApply, Timeline, Transaction

__all__ = ["timeline_of"]

_Order = tuple[int, int, int, int, int]  # epoch, group, after groups of that number, and two places among equals


def timeline_of(
    transactions: Sequence[Transaction], applies: Sequence[EpochApply], changes: Sequence[DefinitionChange] = ()
) -> Timeline:
    """Merge a cluster's transactions, epoch applies and changes of definitions, in the order in which they happened."""
    keys = [((item.epoch, item.group, 0, 0, 0), item) for item in transactions]
    items: list[tuple[_Order, Transaction | EpochApply | DefinitionChange]] = [*keys]
    taken = [
        ((item.epoch, item.group, 0 if item.traced else 1, order, 0), item)
        for order, item in enumerate(applies)
        if item.applied
    ]
    items += taken
    for order, change in enumerate(changes):
        before = [key for key, item in taken if item.period == 0 and item.foreign_epoch <= change.follows]
        place = (change.epoch, change.group, 1, -1, 0)
        last = max([place, *before])
        items.append(((*last[:4], order + 1), change))
    return tuple(item for _, item in sorted(items, key=lambda entry: entry[0]))
