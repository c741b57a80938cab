"""
How far a recording is explained by an epoch with open rows: its moments are chosen by the exceptions rows recorded.

An applier may have used up numbers of the exceptions table before the rows of the epoch, which leaves a gap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product

import attrs

from conflict.engine.ledger.open_places import JudgedOperation, OpenEpoch, RowAnswer
from conflict.history.timeline import START, Position
from ndb_formats.types.values import Value


@attrs.frozen
class TrackedOperation:
    """
    An operation on which pass TRACK may have decided otherwise than was decided here.

    Attributes:
        epoch: Its foreign epoch.
        moves: What each candidate moves counters by, beyond what was counted.
        exceptions: The exceptions table to which a rejected operation goes; None if there is none.
        rows: How many more rows each candidate adds to that table in one pass.
    """

    epoch: int
    moves: tuple[tuple[tuple[str, int], ...], ...]
    exceptions: str | None
    rows: tuple[int, ...]


@attrs.frozen
class RecordedEpoch:
    """
    A foreign epoch that an applier applied.

    Attributes:
        epoch: The epoch.
        rows: How many rows it added to each exceptions table.
        position: The own position at which it was committed.
        disturbed: Whether the cluster itself changed anything since the epoch that was applied before.
    """

    epoch: int
    rows: Mapping[str, int]
    position: Position = START
    disturbed: bool = False


@attrs.frozen
class Gap:
    """
    Numbers that may have been used up before the rows of an epoch.

    Attributes:
        known: How many, as far as the passes are known.
        or_more: Whether any more are possible. While other transactions change rows, an applier that waits too long for
            a lock, or finds other transactions in conflict, goes over an epoch again; how often, nothing shows.
    """

    known: frozenset[int]
    or_more: bool = False

    def __contains__(self, numbers: int) -> bool:
        return numbers in self.known or (self.or_more and numbers >= min(self.known))


NO_GAP = Gap(frozenset((0,)))


def gap_before(tracked: Iterable[TrackedOperation], applied: RecordedEpoch, table: str, gap: int, further: int) -> Gap:
    """Return the numbers that may have been used up before the rows of an epoch that were `gap` here."""
    mine = [each for each in tracked if each.epoch == applied.epoch]
    # Two passes at most were rolled back here, each with its own decisions.
    less = 2 * sum(min(each.rows) for each in mine if each.exceptions == table)
    return Gap(frozenset((max(0, gap + less), gap + further)), bool(mine) or applied.disturbed)


ExceptionsRow = tuple[Value, ...]
# How many rows of each exceptions table are explained.
Seen = Mapping[str, int]
Matches = Callable[[Seen, str, ExceptionsRow], bool]


@attrs.frozen
class _Explained:
    """
    What an epoch with open rows explains of a recording.

    Attributes:
        seen: Per exceptions table, how many recorded rows are explained after it.
        moved: How far the counters are from those that were decided, without zeros.
    """

    seen: Mapping[str, int]
    moved: frozenset[tuple[str, int]]


@attrs.frozen
class _Partial:
    """The rows that are explained so far, and the answers of each open row that agree with them."""

    seen: tuple[tuple[str, int], ...]
    left: tuple[tuple[int, ...], ...]


def explanations(epoch: OpenEpoch, seen: Seen, matches: Matches) -> Iterator[_Explained]:
    """
    Yield every way in which the moments of an epoch explain the next rows of a recording.

    Args:
        epoch: The epoch.
        seen: Per exceptions table, how many recorded rows are explained before it.
        matches: Whether the recorded row that comes next, after some of a table, is a given one.
    """
    tables = {each.exceptions[0] for _, each in _operations(epoch) if each.exceptions is not None}
    started = tuple((table, seen.get(table, 0)) for table in sorted(tables | seen.keys()))
    partial = {_Partial(started, tuple(tuple(range(len(row.answers))) for row in epoch.rows))}
    for place, operations in _in_order(epoch):
        partial = {after for before in partial for after in _next(before, place, operations, matches)}
    yielded = set()
    for each in partial:
        for moved in _moves(epoch, each.left):
            if (each.seen, moved) not in yielded:
                yielded.add((each.seen, moved))
                yield _Explained(dict(each.seen), moved)


def _operations(epoch: OpenEpoch) -> Iterator[tuple[int | None, JudgedOperation]]:
    """Yield the operations of all answers, each with the place of its open row; None for one that is not open."""
    yield from ((None, each) for each in epoch.rejected)
    for place, row in enumerate(epoch.rows):
        yield from ((place, each) for answer in row.answers for each in answer.operations)


def _in_order(epoch: OpenEpoch) -> list[tuple[int | None, tuple[JudgedOperation, ...]]]:
    """Return the operations in the order of their exceptions rows; of an open row, as every answer has it."""
    found: list[tuple[int | None, tuple[JudgedOperation, ...]]] = [(None, (each,)) for each in epoch.rejected]
    for place, row in enumerate(epoch.rows):
        found += [(place, judged) for judged in zip(*(answer.operations for answer in row.answers), strict=True)]
    return sorted(found, key=lambda each: (not each[1][0].with_transaction, each[1][0].number))


def _next(
    partial: _Partial, place: int | None, operations: tuple[JudgedOperation, ...], matches: Matches
) -> Iterator[_Partial]:
    """Yield what is explained after one more operation, for each of its outcomes that agrees with the recording."""
    kept: dict[tuple[str, ExceptionsRow] | None, list[int]] = {}
    for answer in (0,) if place is None else partial.left[place]:
        kept.setdefault(operations[answer].exceptions, []).append(answer)
    for exceptions, answers in kept.items():
        seen = dict(partial.seen)
        if exceptions is not None:
            if not matches(seen, *exceptions):
                continue
            seen[exceptions[0]] += 1
        left = list(partial.left)
        if place is not None:
            left[place] = tuple(answers)
        yield _Partial(tuple(sorted(seen.items())), tuple(left))


def _moves(epoch: OpenEpoch, left: Iterable[tuple[int, ...]]) -> set[frozenset[tuple[str, int]]]:
    """Return how far the answers that are left can move the counters, all rows together."""
    found: set[frozenset[tuple[str, int]]] = {frozenset()}
    for row, answers in zip(epoch.rows, left, strict=True):
        own = {_difference(row.answers[answer], row.answers[row.chosen]) for answer in answers}
        found = {_sum(before, move) for before, move in product(found, own)}
    return found


def _difference(answer: RowAnswer, chosen: RowAnswer) -> frozenset[tuple[str, int]]:
    moved = Counter(dict(answer.counters))
    moved.subtract(dict(chosen.counters))
    return frozenset((name, by) for name, by in moved.items() if by)


def _sum(before: Iterable[tuple[str, int]], move: Iterable[tuple[str, int]]) -> frozenset[tuple[str, int]]:
    total = Counter(dict(before))
    total.update(dict(move))
    return frozenset((name, by) for name, by in total.items() if by)
