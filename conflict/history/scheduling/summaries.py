"""
What the schedule needs to know of the own epochs of a cluster, as objects or in columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import attrs
import numpy as np
import numpy.typing as npt

from conflict.history.epochs import AppliedEpoch, BinlogEpoch
from conflict.history.timeline import START, Position

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]


@attrs.frozen
class Summary:
    """
    What the schedule needs to know of one own epoch.

    Attributes:
        number: The epoch.
        transactions: Groups that are user transactions.
        applied: Foreign epochs in it.
        changes: How many row changes its transactions made.
        committed: Microsecond since 1970 at which it committed; None if not known.
        unread: Whether it has rows of tables that are not read.
    """

    number: int
    transactions: tuple[int, ...]
    applied: tuple[AppliedEpoch, ...]
    changes: int = 0
    committed: int | None = attrs.field(default=None, eq=False)
    unread: bool = False


def summarize(epoch: BinlogEpoch) -> Summary:
    """Return what the schedule needs to know of an epoch."""
    groups = tuple(transaction.group for transaction in epoch.transactions)
    changes = sum(len(transaction.changes) for transaction in epoch.transactions)
    return Summary(epoch.number, groups, epoch.applied, changes, epoch.committed, epoch.unread)


@attrs.frozen
class Positions(Sequence[Position]):
    """
    Own positions, in columns. Both arrays have shape (positions,).

    Attributes:
        epochs: The epoch of each. uint64.
        groups: The group of each. int32, or a smaller type if it holds them.
    """

    epochs: UInt64 = attrs.field(eq=attrs.cmp_using(np.array_equal))
    groups: npt.NDArray[Any] = attrs.field(eq=attrs.cmp_using(np.array_equal))

    def __len__(self) -> int:
        return len(self.epochs)

    def __getitem__(self, place: int) -> Position:  # type: ignore[override]  # no slices
        return int(self.epochs[place]), int(self.groups[place])


@attrs.frozen(eq=False)
class _ListedPositions(Sequence[Position]):
    """The own positions of the groups of lists, each made when it is asked for."""

    numbers: UInt64
    lists: Lists

    def __len__(self) -> int:
        return len(self.lists.groups)

    def __getitem__(self, place: int) -> Position:  # type: ignore[override]  # no slices
        number = range(len(self))[place]
        return int(self.numbers[self.lists.list_of(number)]), int(self.lists.groups[number])


@attrs.frozen(eq=False)
class Lists:
    """
    A list of groups per epoch.

    Attributes:
        offsets: Where that of each epoch starts, and the end. int64 or uint32, shape (epochs + 1,).
        groups: All lists, one after the other. int32, or a smaller type if it holds them.
    """

    offsets: npt.NDArray[Any]
    groups: npt.NDArray[Any]

    @property
    def last(self) -> Int32:
        """The highest group of each epoch, 0 for none. Shape (epochs,)."""
        filled = self.offsets[1:] > self.offsets[:-1]
        found = np.zeros(len(filled), np.int32)
        if filled.any():
            found[filled] = np.maximum.reduceat(self.groups, self.offsets[:-1][filled].astype(np.intp, copy=False))
        return found

    def list_of(self, place: int) -> int:
        """Return the epoch, by number from 0, in whose list an element is."""
        return int(np.searchsorted(self.offsets, np.asarray(place, self.offsets.dtype), "right")) - 1

    def part(self, start: int, stop: int) -> Lists:
        """Return those of some epochs one after the other."""
        offsets = self.offsets[start : stop + 1]
        return Lists(offsets - offsets[0], self.groups[offsets[0] : offsets[-1]])


@attrs.frozen(eq=False, slots=False)
class SummaryColumns(Sequence[Summary]):
    """
    The summaries of the own epochs of a cluster in columns, in order; see `Summary`.

    Attributes:
        number: uint64, shape (epochs,).
        changes: int64, or a smaller type if it holds them, shape (epochs,).
        committed: 0 if not known. int64, shape (epochs,).
        unread: bool, shape (epochs,).
        transactions: Groups that are user transactions.
        applied: Groups of the foreign epochs.
        server_id: Of each foreign epoch. uint64, shape (foreign epochs,).
        epoch: Of each foreign epoch. uint64, shape (foreign epochs,).
        through: Of each foreign epoch. uint64, shape (foreign epochs,).
    """

    number: UInt64
    changes: npt.NDArray[Any]
    committed: Int64
    unread: npt.NDArray[np.bool_]
    transactions: Lists
    applied: Lists
    server_id: UInt64
    epoch: UInt64
    through: UInt64

    @classmethod
    def of(cls, summaries: Sequence[Summary]) -> SummaryColumns:
        """Return summaries in columns."""
        if isinstance(summaries, SummaryColumns):
            return summaries
        foreign = [each for summary in summaries for each in summary.applied]
        return cls(
            np.array([each.number for each in summaries], np.uint64),
            np.array([each.changes for each in summaries], np.int64),
            np.array([each.committed or 0 for each in summaries], np.int64),
            np.array([each.unread for each in summaries], np.bool_),
            _lists([each.transactions for each in summaries]),
            _lists([[foreign.group for foreign in each.applied] for each in summaries]),
            *(np.array([getattr(each, name) for each in foreign], np.uint64) for name in _FOREIGN),
        )

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, place: int) -> Summary:  # type: ignore[override]  # no slices
        number = range(len(self))[place]
        return next(iter(self.part(number, number + 1)))

    def __iter__(self) -> Iterator[Summary]:
        foreign = list(map(AppliedEpoch, *(each.tolist() for each in (self.applied.groups, *self._foreign))))
        groups = self.transactions.groups.tolist()
        plain = (each.tolist() for each in (self.number, self.changes, self.committed, self.unread))
        bounds = (pairwise(each.offsets.tolist()) for each in (self.transactions, self.applied))
        for number, changes, committed, unread, own, applied in zip(*plain, *bounds, strict=True):
            mine, theirs = tuple(groups[slice(*own)]), tuple(foreign[slice(*applied)])
            yield Summary(number, mine, theirs, changes, committed or None, unread)

    def part(self, start: int, stop: int) -> SummaryColumns:
        """Return those of some epochs one after the other."""
        epochs, foreign = slice(start, stop), slice(self.applied.offsets[start], self.applied.offsets[stop])
        return SummaryColumns(
            self.number[epochs],
            self.changes[epochs],
            self.committed[epochs],
            self.unread[epochs],
            self.transactions.part(start, stop),
            self.applied.part(start, stop),
            self.server_id[foreign],
            self.epoch[foreign],
            self.through[foreign],
        )

    def between(self, first: int, last: int) -> SummaryColumns:
        """Return those of the epochs from `first` to `last`."""
        start = int(np.searchsorted(self.number, np.uint64(first)))
        return self.part(start, max(start, int(np.searchsorted(self.number, np.uint64(last), "right"))))

    def with_ids(self, ids: Mapping[int, int | None]) -> SummaryColumns:
        """Return them with other server ids of foreign epochs; those with None are left out."""
        kept, server_id = np.ones(len(self.epoch), np.bool_), self.server_id.copy()
        for before, after in ids.items():
            mine = self.server_id == np.uint64(before)
            kept[mine] = after is not None
            server_id[mine] = before if after is None else after
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])[self.applied.offsets]
        return attrs.evolve(
            self,
            applied=Lists(offsets, self.applied.groups[kept]),
            server_id=server_id[kept],
            epoch=self.epoch[kept],
            through=self.through[kept],
        )

    def of_server(self, server_id: int) -> npt.NDArray[np.bool_]:
        """Return which foreign epochs are of a server."""
        return np.asarray(self.server_id == np.uint64(server_id))

    @property
    def _foreign(self) -> tuple[UInt64, UInt64, UInt64]:
        return self.server_id, self.epoch, self.through

    @cached_property
    def ends(self) -> Positions:
        """The last group of each own epoch."""
        return Positions(self.number, np.maximum(self.transactions.last, self.applied.last))

    @property
    def commits(self) -> Sequence[Position]:
        """The positions of the user transactions."""
        return _ListedPositions(self.number, self.transactions)

    @property
    def traces(self) -> Positions:
        """The position of each foreign epoch."""
        return Positions(np.repeat(self.number, np.diff(self.applied.offsets)), self.applied.groups)


_AT_ONCE = 1 << 18  # epochs that are looked at together: there can be very many


def last_known(ends: Positions, source: SummaryColumns, applier_id: int) -> Positions:
    """
    Return, by epoch of a source, the last own position of an applier that the epoch has news of; START for none.

    Args:
        ends: The last group of each own epoch of the applier.
        source: The epochs of the source.
        applier_id: Server id of the applier.
    """
    epochs, groups = np.full(len(source), START[0], np.uint64), np.full(len(source), START[1], np.int32)
    newest, told = np.uint64(0), np.False_  # the newest epoch that the source knows of, and whether it knows of any
    for first in range(0, len(source), _AT_ONCE):
        offsets = source.applied.offsets[first : first + _AT_ONCE + 1].astype(np.int64)
        shown, ends_at = slice(offsets[0], offsets[-1]), offsets[1:] - offsets[0]
        mine = source.server_id[shown] == np.uint64(applier_id)
        news = np.maximum.accumulate(np.append(newest, np.where(mine, source.epoch[shown], np.uint64(0))))
        tells = np.logical_or.accumulate(np.append(told, mine))
        passed = np.searchsorted(ends.epochs, news[ends_at], "right") * tells[ends_at]
        some = np.flatnonzero(passed)
        epochs[first + some], groups[first + some] = ends.epochs[passed[some] - 1], ends.groups[passed[some] - 1]
        newest, told = news[-1], tells[-1]
    return Positions(epochs, groups)


def distinct(values: UInt64) -> list[int]:
    """Return the different ones among many equal values, in order of appearance."""
    if not len(values) or (values == values[0]).all():
        return [int(each) for each in values[:1]]
    found, first = np.unique(values, return_index=True)
    return found[np.argsort(first)].tolist()  # type: ignore[no-any-return]


_FOREIGN = ("server_id", "epoch", "through")


def _lists(lists: Sequence[Sequence[int]]) -> Lists:
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in lists], dtype=np.int64)]).astype(np.int64)
    return Lists(offsets, np.array([group for each in lists for group in each], np.int32))


@attrs.frozen(eq=False)
class EpochSizes:
    """
    How many row changes own epochs have. All arrays have shape (epochs,).

    Attributes:
        numbers: The epochs, in order. uint64.
        changes: The row changes of each. int64, or a smaller type if it holds them.
        unread: Whether each has rows of tables that are not read. bool.
    """

    numbers: npt.NDArray[np.uint64]
    changes: npt.NDArray[Any]
    unread: npt.NDArray[np.bool_]

    @classmethod
    def of_summaries(cls, summaries: Iterable[Summary]) -> Self:
        """Return those of some epochs, in order."""
        own = list(summaries)
        return cls(
            np.array([each.number for each in own], np.uint64),
            np.array([each.changes for each in own], np.int64),
            np.array([each.unread for each in own], np.bool_),
        )

    def of(self, epochs: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Return how many changes epochs have; 0 for one that is not there."""
        place = np.searchsorted(self.numbers, epochs)
        found = np.append(self.numbers, np.uint64(0))[place] == epochs
        return np.where(found, np.append(self.changes, 0)[place], 0)

    def between(self, first: int, last: int) -> EpochSizes:
        """Return those of the epochs from `first` to `last`."""
        start = np.searchsorted(self.numbers, np.uint64(first))
        stop = np.searchsorted(self.numbers, np.uint64(last), "right")
        return EpochSizes(self.numbers[start:stop], self.changes[start:stop], self.unread[start:stop])


def epoch_ends(applier: Sequence[Summary]) -> Positions:
    """Return the last group of each own epoch."""
    return SummaryColumns.of(applier).ends
