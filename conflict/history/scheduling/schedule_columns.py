"""
The epoch applies of one applier in columns, and the table of these columns.

An `EpochApply` is made only of those that somebody looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any, Self

import attrs
import numpy as np
import numpy.typing as npt

from conflict.history.timeline import START, EpochApply, Position, Window
from conflict.rules.replication_table import Role

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
Columns = Mapping[str, npt.NDArray[Any]]
_GIVEN = Window(START)  # represents no window: the place is given
_ROLES = list(Role)
_LABELS = tuple(role.value for role in _ROLES)


def role_number(role: Role | None) -> int:
    """Return the number of a role."""
    return -1 if role is None else _ROLES.index(role)


def role_of(number: int) -> Role | None:
    """Return the role with a number; the inverse of `role_number`."""
    return None if number < 0 else _ROLES[number]


@attrs.frozen
class Column:
    """
    One fact of epoch applies, in a column. `EpochApply` has its meaning and its default.

    Attributes:
        name: Its name in memory, in the arrays of the engines, and in ``schedule.parquet``.
        kind: Its numpy type. In Arrow it has the same type, or is a string if it has labels.
        of: Returns the number of an epoch apply; by default the attribute of that name.
        none: The number that stands for None, which is NULL in Arrow; None where there always is a value.
        labels: In Arrow, the strings in place of the numbers from 0.
    """

    name: str
    kind: type[np.generic]
    of: Callable[[EpochApply], int] = attrs.field()
    none: int | None = None
    labels: tuple[str, ...] = ()

    @of.default
    def _attribute(self) -> Callable[[EpochApply], int]:
        return attrgetter(self.name)


# The field table of an epoch apply, in the order of ``schedule.parquet``. `ScheduleColumns`, the Arrow schema and what
# the engines receive are made from it. The names of the clusters and the moments of rows are kept beside it.
COLUMNS = {
    each.name: each
    for each in (
        Column("foreign_epoch", np.uint64),
        Column("epoch", np.uint64),
        Column("group", np.int32),
        Column("traced", np.bool_),
        Column("restarted", np.bool_),
        Column("arrived_epoch", np.uint64, lambda apply: apply.arrived[0]),
        Column("arrived_group", np.int32, lambda apply: apply.arrived[1]),
        Column("before_epoch", np.uint64, lambda apply: (apply.window or _GIVEN).before[0]),
        Column("before_group", np.int32, lambda apply: (apply.window or _GIVEN).before[1]),
        Column("certain", np.bool_, lambda apply: (apply.window or _GIVEN).certain),
        Column("applied", np.bool_),
        Column("period", np.int32),
        Column("role", np.int8, lambda apply: role_number(apply.role), none=-1, labels=_LABELS),
        Column("committed", np.int64, lambda apply: apply.committed or 0, none=0),
        Column("server", np.uint32),
        Column("source_server", np.uint32),
    )
}


def with_defaults(count: int, columns: Columns) -> dict[str, npt.NDArray[Any]]:
    """
    Return all columns of some epoch applies: those given; the others as of an `EpochApply` that is given no more.

    The others take the memory of one value, and cannot be written to.
    """
    nothing = EpochApply(0, 0, "", 0)
    others = {name: each.kind(each.of(nothing)) for name, each in COLUMNS.items() if name not in columns}
    return {**{name: np.broadcast_to(value, count) for name, value in others.items()}, **columns}


# Where those without a trace were found to be: which ones, their places, and whether they were applied at all.
PLACES = ("foreign_epoch", "period", "epoch", "group", "applied")


class ColumnsOnDemand(Mapping[str, npt.NDArray[Any]]):
    """All of `COLUMNS`, each made when it is asked for."""

    @property
    def length(self) -> int:
        """How many epoch applies there are."""
        raise NotImplementedError

    def at(self, name: str, numbers: Int64) -> npt.NDArray[Any]:
        """Return a column of some epoch applies, given by number in order."""
        return self[name][numbers]

    def __iter__(self) -> Iterator[str]:
        return iter(COLUMNS)

    def __len__(self) -> int:
        return len(COLUMNS)


def _at(columns: Columns, name: str, numbers: Int64) -> npt.NDArray[Any]:
    return columns.at(name, numbers) if isinstance(columns, ColumnsOnDemand) else columns[name][numbers]


def _length(columns: Columns) -> int:
    return columns.length if isinstance(columns, ColumnsOnDemand) else len(columns["epoch"])


@attrs.frozen(eq=False)
class _Stretch(ColumnsOnDemand):
    """Columns of epoch applies one after the other."""

    columns: Columns
    which: slice

    @property
    def length(self) -> int:
        """How many they are."""
        return len(range(_length(self.columns))[self.which])

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name][self.which]

    def at(self, name: str, numbers: Int64) -> npt.NDArray[Any]:
        """Return a column of some of them."""
        places = range(_length(self.columns))[self.which]
        return _at(self.columns, name, places.start + places.step * numbers)


@attrs.frozen(eq=False)
class _Replaced(ColumnsOnDemand):
    """Columns, some of them others in their place."""

    columns: Columns
    others: Columns

    @property
    def length(self) -> int:
        """How many epoch applies there are."""
        return _length(self.columns)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.others[name] if name in self.others else self.columns[name]

    def at(self, name: str, numbers: Int64) -> npt.NDArray[Any]:
        """Return a column of some epoch applies."""
        return _at(self.others if name in self.others else self.columns, name, numbers)


@attrs.frozen(eq=False)
class _Changed(ColumnsOnDemand):
    """Columns, in which a few epoch applies, given by number in order, have other values."""

    columns: Columns
    numbers: Int64
    others: Columns

    @property
    def length(self) -> int:
        """How many epoch applies there are."""
        return _length(self.columns)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        column = self.columns[name]
        if name in self.others and len(self.numbers):
            column = column.copy()
            column[self.numbers] = self.others[name]
        return column


@attrs.frozen(eq=False)
class ScheduleColumns:
    """
    The epoch applies of one applier in order, those that may have been among them; see `EpochApply`.

    Attributes:
        source: The cluster that made the epochs.
        columns: By name, all of `COLUMNS`, shape (applies,). Those of a History on disk can be read each time that one
            is asked for: there can be very many epochs.
    """

    source: str
    columns: Columns

    def __len__(self) -> int:
        return _length(self.columns)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    @classmethod
    def of_applies(cls, source: str, applies: Sequence[EpochApply]) -> Self:
        """Return epoch applies of one source in columns, without their moments."""
        columns = ((each, [each.of(apply) for apply in applies]) for each in COLUMNS.values())
        return cls(source, {each.name: np.array(numbers, each.kind) for each, numbers in columns})

    def applies(self, numbers: Int64 | None = None) -> tuple[EpochApply, ...]:
        """Return some of the epoch applies, by default all."""
        chosen = self if numbers is None else self.chosen(numbers)
        found: dict[str, list[Any]] = {name: each.tolist() for name, each in chosen.columns.items()}
        arrived, before = (
            list(zip(found.pop(f"{name}_epoch"), found.pop(f"{name}_group"), strict=True))
            for name in ("arrived", "before")
        )
        found["arrived"], found["window"] = arrived, list(map(_window, before, found.pop("certain")))
        found["role"] = list(map(role_of, found["role"]))
        found["committed"] = [each or None for each in found["committed"]]
        rows = zip(*found.values(), strict=True)
        return tuple(EpochApply(source=self.source, **dict(zip(found, row, strict=True))) for row in rows)

    @cached_property
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
        if isinstance(which, slice):
            return attrs.evolve(self, columns=_Stretch(self.columns, which))
        numbers = np.flatnonzero(which) if which.dtype == np.bool_ else which
        return attrs.evolve(self, columns={name: _at(self.columns, name, numbers) for name in self.columns})

    def with_columns(self, **columns: npt.NDArray[Any]) -> ScheduleColumns:
        """Return them with other columns."""
        return attrs.evolve(self, columns=_Replaced(self.columns, columns))

    def applied_alone(self) -> ScheduleColumns:
        """Return those that count as applied; nothing is copied if these are the first ones, as they mostly are."""
        return self.chosen(chosen_by(self["applied"]))

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
        changed = {name: _at(self.columns, name, numbers).copy() for name in names}
        for place, key in enumerate(zip(*(each.tolist() for each in self._keys(numbers)), strict=True)):
            apply = found.get(key)
            changed["applied"][place] = apply is not None
            if apply is not None:
                changed["epoch"][place], changed["group"][place] = apply.epoch, apply.group
        return attrs.evolve(self, columns=_Changed(self.columns, numbers, changed))

    def with_given(self, known: Columns) -> ScheduleColumns:
        """
        Return them with places given that were found before.

        Args:
            known: By name, `PLACES` of those, in the order of their foreign epochs.
        """
        numbers = self.windowed
        foreign, period = self._keys(numbers)
        at = np.searchsorted(known["foreign_epoch"], foreign)
        there = np.flatnonzero(at < len(known["foreign_epoch"]))
        same = (known["foreign_epoch"][at[there]] == foreign[there]) & (known["period"][at[there]] == period[there])
        numbers, at = numbers[there[same]], at[there[same]]
        (epoch, group), count = _GIVEN.before, len(numbers)
        changed: dict[str, npt.NDArray[Any]] = {name: known[name][at] for name in ("epoch", "group", "applied")}
        changed["before_epoch"], changed["before_group"] = np.full(count, epoch, np.uint64), np.full(count, group)
        changed["certain"] = np.full(count, _GIVEN.certain)
        return attrs.evolve(self, columns=_Changed(self.columns, numbers, changed))

    def _keys(self, numbers: Int64) -> tuple[npt.NDArray[Any], ...]:
        return tuple(_at(self.columns, name, numbers) for name in ("foreign_epoch", "period"))


def known_before(own: ScheduleColumns, theirs: ScheduleColumns | None, returned: int = 0) -> npt.NDArray[np.uint64]:
    """
    Return the max replicated epoch before each epoch apply; the place of an apply does not change it.

    Computes docs/concepts.md, "Max replicated epoch"; `ReplayedCluster.applied` does so for one epoch apply.

    Args:
        own: The epoch applies of one applier, of one source.
        theirs: Those of the source, of the applier, as far as its binlog reports them; None for none.
        returned: What had come back before the first one.
    """
    shown, newest = _newest_shown(theirs)
    foreign, applied, periods = own["foreign_epoch"], own["applied"], np.flatnonzero(np.diff(own["period"])) + 1
    known, surely = np.empty(len(own), np.uint64), np.uint64(returned)
    for start, stop in pairwise([0, *periods.tolist(), len(own)]):
        latest = surely
        for first in range(start, stop, _AT_ONCE):
            part = slice(first, min(first + _AT_ONCE, stop))
            here = np.maximum.accumulate(np.append(latest, _news_of(foreign[part], shown, newest)))
            known[part], latest, counted = here[:-1], here[-1], np.flatnonzero(applied[part])
            surely = here[counted[-1] + 1] if len(counted) else surely
    return known


_AT_ONCE = 1 << 18  # epoch applies that are looked at together: there can be very many


def _newest_shown(theirs: ScheduleColumns | None) -> tuple[UInt64, UInt64]:
    """Return own epochs that show foreign ones, in order, and the newest foreign epoch that each shows."""
    if theirs is None:
        return np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    traced = chosen_by(theirs["traced"])
    epochs, foreign = (theirs[name][traced] for name in ("epoch", "foreign_epoch"))
    other = np.append(True, epochs[1:] != epochs[:-1])[: len(epochs)]
    if other.all():
        return epochs, foreign
    starts = np.flatnonzero(other)
    return epochs[starts], np.maximum.reduceat(foreign, starts)


def _news_of(epochs: UInt64, shown: UInt64, newest: UInt64) -> UInt64:
    """Return what each of some epochs shows, 0 for nothing; the other arguments as of `_newest_shown`."""
    if not len(shown):
        return np.zeros(len(epochs), np.uint64)
    place = np.minimum(np.searchsorted(shown, epochs), len(shown) - 1)
    return np.where(shown[place] == epochs, newest[place], np.uint64(0))


def chosen_by(which: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_] | slice:
    """Return what chooses the epoch applies of which something holds; nothing is copied if these are the first ones."""
    count = int(np.count_nonzero(which))
    return slice(count) if which[:count].all() else which


def stored_once(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a column; one with the same value everywhere takes the memory of one value, and cannot be written to."""
    # Mostly the ends tell that values differ.
    same = len(column) > 0 and bool(column[0] == column[-1]) and bool((column == column[0]).all())
    return np.broadcast_to(column[0], len(column)) if same else column


def narrowed(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a column of integers in the smallest unsigned type that holds them, or as it is if one is negative."""
    once = stored_once(column)
    if once is not column or not len(column) or int(column.min()) < 0:
        return once
    kind = np.min_scalar_type(int(column.max()))
    return column.astype(kind) if kind.itemsize < column.dtype.itemsize else column


def among(values: npt.NDArray[np.uint64], few: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return which of many values are among a few sorted ones."""
    found = np.zeros(len(values), np.bool_)
    for first in range(0, len(values) if len(few) else 0, _AT_ONCE):
        part = values[first : first + _AT_ONCE]
        found[first : first + _AT_ONCE] = few[np.minimum(np.searchsorted(few, part), len(few) - 1)] == part
    return found


def _window(before: Position, certain: bool) -> Window | None:
    return None if certain and before == _GIVEN.before else Window(before, certain)
