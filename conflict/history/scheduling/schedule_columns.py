"""
The epoch applies of one applier in columns. An `EpochApply` is made only of those that somebody looks at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

import attrs
import numpy as np
import numpy.typing as npt

from conflict.history.timeline import START, EpochApply, Position, Window
from conflict.rules.replication_table import Role

Int64 = npt.NDArray[np.int64]
# A column and its type. `before_...` and `certain` are the window, `role` is the number of a role; -1 is none.
COLUMNS: Mapping[str, type[np.generic]] = {
    "foreign_epoch": np.uint64,
    "epoch": np.uint64,
    "group": np.int32,
    "traced": np.bool_,
    "restarted": np.bool_,
    "arrived_epoch": np.uint64,
    "arrived_group": np.int32,
    "before_epoch": np.uint64,
    "before_group": np.int32,
    "certain": np.bool_,
    "applied": np.bool_,
    "period": np.int32,
    "role": np.int8,
    "committed": np.int64,
    "server": np.uint32,
    "source_server": np.uint32,
}
_GIVEN = Window(START)  # represents no window: the place is given
_ROLES = list(Role)


@attrs.frozen(eq=False)
class ScheduleColumns:
    """
    The epoch applies of one applier in order, those that may have been among them; see `EpochApply`.

    Attributes:
        source: The cluster that made the epochs.
        columns: By name, an array of a type of `COLUMNS`, shape (applies,). `committed` is 0 if not known.
    """

    source: str
    columns: Mapping[str, npt.NDArray[Any]]

    def __len__(self) -> int:
        return len(self.columns["epoch"])

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    @classmethod
    def of_applies(cls, source: str, applies: Sequence[EpochApply]) -> Self:
        """Return epoch applies of one source in columns, without their moments."""
        columns = list(zip(*map(_row, applies), strict=True)) or [()] * len(COLUMNS)
        return cls(
            source,
            {name: np.array(each, kind) for (name, kind), each in zip(COLUMNS.items(), columns, strict=True)},
        )

    def applies(self, numbers: Int64 | None = None) -> tuple[EpochApply, ...]:
        """Return some of the epoch applies, by default all."""
        chosen = (each if numbers is None else each[numbers] for each in self.columns.values())
        rows = zip(*(each.tolist() for each in chosen), strict=True)
        return tuple(_apply(self.source, dict(zip(self.columns, row, strict=True))) for row in rows)

    @property
    def windowed(self) -> Int64:
        """The numbers of those whose place is not given."""
        epoch, group = _GIVEN.before
        given = (self["before_epoch"] == epoch) & (self["before_group"] == group) & self["certain"]
        return np.flatnonzero(~given)

    @property
    def roles(self) -> frozenset[Role]:
        """The roles in which the applier made some of them, where these are known to change."""
        found = map(role_of, np.unique(self["role"]).tolist())
        return frozenset(role for role in found if role is not None)

    def chosen(self, which: npt.NDArray[Any] | slice) -> ScheduleColumns:
        """Return some of them, in order."""
        return attrs.evolve(self, columns={name: each[which] for name, each in self.columns.items()})

    def with_columns(self, **columns: npt.NDArray[Any]) -> ScheduleColumns:
        """Return them with other columns."""
        return attrs.evolve(self, columns={**self.columns, **columns})

    def applied_alone(self) -> ScheduleColumns:
        """Return those that count as applied; nothing is copied if these are the first ones, as they mostly are."""
        applied, count = self["applied"], int(np.count_nonzero(self["applied"]))
        return self.chosen(slice(count) if applied[:count].all() else applied)

    def traced_at(self, positions: Collection[Position]) -> Int64:
        """Return the numbers of those with a trace at some own positions, in order."""
        epochs = np.array(sorted({epoch for epoch, _ in positions}), np.uint64)
        numbers = np.flatnonzero(self["traced"] & among(self["epoch"], epochs))
        places = zip(self["epoch"][numbers].tolist(), self["group"][numbers].tolist(), strict=True)
        return numbers[np.array([place in positions for place in places], np.bool_)]

    def with_places(self, placed: Sequence[EpochApply]) -> ScheduleColumns:
        """Return them with those that have a window at the places where they are in `placed`, or not applied."""
        numbers, names = self.windowed, ("epoch", "group", "applied")
        found = {(each.foreign_epoch, each.period): each for each in placed if each.window is not None}
        changed = {name: self[name].copy() for name in names}
        for number, *key in zip(*(each.tolist() for each in self._keys(numbers)), strict=True):
            apply = found.get(tuple(key))
            changed["applied"][number] = apply is not None
            if apply is not None:
                changed["epoch"][number], changed["group"][number] = apply.epoch, apply.group
        return self.with_columns(**changed)

    def _keys(self, numbers: Int64) -> tuple[npt.NDArray[Any], ...]:
        return numbers, self["foreign_epoch"][numbers], self["period"][numbers]


def known_before(own: ScheduleColumns, theirs: ScheduleColumns | None, returned: int = 0) -> npt.NDArray[np.uint64]:
    """
    Return the max replicated epoch before each epoch apply; the place of an apply does not change it.

    Args:
        own: The epoch applies of one applier, of one source.
        theirs: Those of the source, of the applier, as far as its binlog reports them; None for none.
        returned: What had come back before the first one.
    """
    news = np.zeros(len(own), np.uint64)
    if theirs is not None and theirs["traced"].any():
        epochs, foreign = (theirs[name][theirs["traced"]] for name in ("epoch", "foreign_epoch"))
        starts = np.flatnonzero(np.append(True, epochs[1:] != epochs[:-1]))
        shown, newest = epochs[starts], np.maximum.reduceat(foreign, starts)
        place = np.minimum(np.searchsorted(shown, own["foreign_epoch"]), len(shown) - 1)
        news = np.where(shown[place] == own["foreign_epoch"], newest[place], 0).astype(np.uint64)
    known, surely = np.empty(len(own), np.uint64), np.uint64(returned)
    starts = np.flatnonzero(np.diff(own["period"])) + 1
    for start, stop in pairwise([0, *starts.tolist(), len(own)]):
        here = np.maximum.accumulate(np.append(surely, news[start:stop]))
        known[start:stop] = here[:-1]
        surely = here[int(np.flatnonzero(np.append(True, own["applied"][start:stop]))[-1])]
    return known


def stored_once(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a column; one with the same value everywhere takes the memory of one value, and cannot be written to."""
    same = len(column) > 0 and bool((column == column[0]).all())
    return np.broadcast_to(column[0], len(column)) if same else column


def among(values: npt.NDArray[np.uint64], few: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return which of many values are among a few sorted ones."""
    if not len(few):
        return np.zeros(len(values), np.bool_)
    return np.asarray(few[np.minimum(np.searchsorted(few, values), len(few) - 1)] == values)


def role_number(role: Role | None) -> int:
    """Return the number of a role."""
    return -1 if role is None else _ROLES.index(role)


def role_of(number: int) -> Role | None:
    """Return the role with a number; the inverse of `role_number`."""
    return None if number < 0 else _ROLES[number]


def _row(apply: EpochApply) -> tuple[object, ...]:
    """Return an epoch apply as values of `COLUMNS`."""
    window = apply.window or _GIVEN
    return (
        apply.foreign_epoch,
        apply.epoch,
        apply.group,
        apply.traced,
        apply.restarted,
        *apply.arrived,
        *window.before,
        window.certain,
        apply.applied,
        apply.period,
        role_number(apply.role),
        apply.committed or 0,
        apply.server,
        apply.source_server,
    )


def _apply(source: str, row: dict[str, Any]) -> EpochApply:
    """Return the epoch apply of values of `COLUMNS`."""
    arrived, before = ((row.pop(f"{name}_epoch"), row.pop(f"{name}_group")) for name in ("arrived", "before"))
    window = Window(before, row.pop("certain"))
    role, committed = row.pop("role"), row.pop("committed") or None
    return EpochApply(
        **row,
        source=source,
        arrived=arrived,
        window=None if window == _GIVEN else window,
        role=role_of(role),
        committed=committed,
    )
