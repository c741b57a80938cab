"""
Finds one set of answers to all questions that the binlogs leave open, such that the result agrees with a recording.

An open question is the place of an epoch that left no trace, whether it was applied at all, or whether the applier was
restarted. The answers are chosen so that counters, exceptions rows with their numbers, and the stop are those of the
recording. They must be consistent: in the order of one applier, and in the order of cause and effect of both. If there
are such answers, the result is made with them; any other difference is then a contradiction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from itertools import islice, product
from typing import Any

import attrs

from conflict.engine.ledger.open_places import Alternative, OpenEpoch, OpenPlace, OpenSchedule, PossibleRestart
from conflict.engine.ledger.resolution import ClusterResult, Stop
from conflict.history.timeline import Position
from conflict.judge.open_epochs import NO_GAP, Gap, RecordedEpoch, TrackedOperation, explanations, gap_before
from conflict.judge.result_differences import plain_value, recorded_value
from ndb_formats.types.values import Value

_SERVER_ID, _COUNT = 0, 3
# So many ways to agree with each side are tried for one that goes with the other side's.
_MOST_WAYS = 64

Row = tuple[object, ...]
_Moves = frozenset[tuple[str, int]]  # counters, and by how much they move


@attrs.frozen
class OpenSide:
    """
    One side of a result, with what it leaves open.

    Attributes:
        name: The side.
        server_ids: Server ids of its SQL nodes, in order: the exceptions rows that each made carry its own, and are
            numbered for themselves.
        result: Its result as it was decided.
        applied: The epochs that its applier applied, in order.
        places: Its open places, in order.
        restarts: Where a restart would have used up numbers.
        epochs: What moments leave open, by foreign epoch and own position.
        tracked: Operations on which pass TRACK may have decided otherwise.
        expected: Its part of `expected.json`.
        database: The case's database.
    """

    name: str
    server_ids: Sequence[int]
    result: ClusterResult
    applied: Sequence[RecordedEpoch]
    places: Sequence[OpenPlace]
    restarts: Sequence[PossibleRestart]
    epochs: Mapping[tuple[int, Position], OpenEpoch]
    tracked: Sequence[TrackedOperation]
    expected: Mapping[str, Any] = attrs.field(repr=False)
    database: str

    @property
    def is_open(self) -> bool:
        """Whether anything is open."""
        repeated = any(each.disturbed for each in self.applied)
        return bool(self.places or self.restarts or self.epochs or self.tracked or repeated)


@attrs.frozen
class _Step:
    """
    What the applier did next: it applied an epoch, or may have.

    Attributes:
        rows: Per exceptions table, the rows of each way; without their numbers.
        place: The open place; None if it surely applied the epoch.
        gaps: Per exceptions table, the numbers that may have been used up before the first row.
        epoch: What the moments of its rows leave open; None if nothing.
    """

    rows: tuple[Mapping[str, tuple[Row, ...]], ...]
    place: OpenPlace | None = None
    gaps: Mapping[str, Gap] = attrs.field(factory=dict)
    epoch: OpenEpoch | None = None


class _Phase(Enum):
    """Whether the epochs of a period are being applied; none between two that were can be left out."""

    WAITING = 1
    RUNNING = 2
    ENDED = 3


@attrs.frozen
class _Run:
    """The epochs of a period, before its last trace or after it (`OpenPlace.led_on`), and their phase."""

    stretch: tuple[int, bool]
    phase: _Phase


@attrs.frozen
class _State:
    """
    How far a recording is explained.

    Attributes:
        seen: Per exceptions table, how many rows.
        moved: How far counters are from those that were decided, without zeros.
        stopped: Error of the stop; 0 for none.
        run: How far the epochs of a period are applied.
    """

    seen: tuple[int, ...]
    moved: frozenset[tuple[str, int]] = frozenset()
    stopped: int = 0
    run: _Run = _Run((0, False), _Phase.RUNNING)


Way = dict[OpenPlace, Alternative]


def agreeing_results(sides: Sequence[OpenSide], schedule: OpenSchedule) -> dict[str, ClusterResult] | None:
    """
    Return the results with answers that agree with a recording; None if no answers do.

    Args:
        sides: Both sides.
        schedule: What the schedule leaves open; tells which answers go together.
    """
    ways = [list(islice(_ways(side), _MOST_WAYS)) for side in sides]
    for chosen in product(*ways):
        if schedule.allows({place: answer for way in chosen for place, answer in way.items()}):
            return {side.name: _with_answers(side, way) for side, way in zip(sides, chosen, strict=True)}
    return None


def _ways(side: OpenSide) -> Iterator[Way]:
    """Yield answers for the places of one side that agree with its recording."""
    tables = sorted(_own_tables(side))
    recorded = [_recorded_rows(side, table) for table in tables]
    steps = list(_steps(side, tables))
    # Paths are followed backwards over the states that were reached, so that each state is made once.
    reached: list[dict[_State, list[tuple[_State, Alternative | None]]]] = [{_State((0,) * len(tables)): []}]
    for step in steps:
        following: dict[_State, list[tuple[_State, Alternative | None]]] = {}
        for state in reached[-1]:
            for after, answer in _advance(state, step, tables, recorded):
                following.setdefault(after, []).append((state, answer))
        reached.append(following)
    wanted = side.expected["status_difference"]
    moved = {name: wanted[name] - side.result.counters.get(name, 0) for name in wanted}
    possible = _tracked_moves(side.tracked)
    open_stop = any(place.alternatives[place.chosen].stop for place in side.places)
    certain_stop = 0 if open_stop else _error(side.result.stop)
    for state in reached[-1]:
        explained = all(seen == len(rows) for seen, rows in zip(state.seen, recorded, strict=True))
        left = Counter(moved)
        left.subtract(dict(state.moved))
        explained = explained and (state.stopped or certain_stop) == side.expected["applier"]["errno"]
        if explained and frozenset((name, by) for name, by in left.items() if by) in possible:
            yield from _paths(steps, reached, len(steps), state)


def _error(stop: Stop | None) -> int:
    return 0 if stop is None else int(stop.error)


def _paths(
    steps: Sequence[_Step],
    reached: Sequence[Mapping[_State, Sequence[tuple[_State, Alternative | None]]]],
    number: int,
    state: _State,
) -> Iterator[Way]:
    """Yield the answers that lead to a state after some steps."""
    first: Way = {}
    branches = [(number, state, first)]
    while branches:
        number, state, way = branches.pop()
        if number == 0:
            yield way
            continue
        for before, answer in reached[number][state]:
            place = steps[number - 1].place
            known = way if place is None or answer is None else {**way, place: answer}
            branches.append((number - 1, before, known))


def _advance(
    state: _State, step: _Step, tables: Sequence[str], recorded: Sequence[Sequence[tuple[int, Row]]]
) -> Iterator[tuple[_State, Alternative | None]]:
    """Yield the states after a step that agree with the recorded rows, each with the answer that leads to it."""
    if step.epoch is not None and not state.stopped:
        yield from ((after, None) for after in _advance_open(state, step.epoch, step.gaps, tables, recorded))
        return
    if step.place is None:
        seen = _matched(state, step.rows[0], step.gaps, tables, recorded)
        if seen is not None and not state.stopped:
            yield attrs.evolve(state, seen=seen), None
        return
    place = step.place
    decided = Counter(dict(place.alternatives[place.chosen].counters))
    for rows, answer in zip(step.rows, place.alternatives, strict=True):
        applied = bool(answer.choices)
        run = _after(state.run, place, applied=applied)
        seen = _matched(state, rows, {}, tables, recorded)
        if run is None or seen is None or (state.stopped and applied):
            continue
        moved = Counter(dict(state.moved))
        moved.update(dict(answer.counters))
        moved.subtract(decided)
        kept = frozenset((name, by) for name, by in moved.items() if by)
        yield _State(seen, kept, state.stopped or _error(answer.stop), run), answer


def _advance_open(
    state: _State,
    epoch: OpenEpoch,
    gaps: Mapping[str, Gap],
    tables: Sequence[str],
    recorded: Sequence[Sequence[tuple[int, Row]]],
) -> Iterator[_State]:
    """Yield the states after an epoch with open rows that agree with the recorded rows."""
    known, before = dict(zip(tables, recorded, strict=True)), dict(zip(tables, state.seen, strict=True))

    def matches(seen: Mapping[str, int], table: str, row: tuple[Value, ...]) -> bool:
        place = seen[table]
        if place >= len(known[table]):
            return False
        count, values = known[table][place]
        last = _last(known[table], place)
        gap = gaps.get(table, NO_GAP) if place == before[table] else NO_GAP
        return count - last - 1 in gap and values == _plain(plain_value(value) for value in row)

    for explained in explanations(epoch, before, matches):
        moved = Counter(dict(state.moved))
        moved.update(dict(explained.moved))
        kept = frozenset((name, by) for name, by in moved.items() if by)
        yield attrs.evolve(state, seen=tuple(explained.seen[table] for table in tables), moved=kept)


def _after(run: _Run, place: OpenPlace, *, applied: bool) -> _Run | None:
    """Return how far the epochs of a period are applied after a place; None if that would leave a hole."""
    stretch = place.period, place.led_on
    phase = run.phase if run.stretch == stretch else (_Phase.RUNNING if place.begun else _Phase.WAITING)
    if applied:
        return None if phase is _Phase.ENDED else _Run(stretch, _Phase.RUNNING)
    if phase is _Phase.RUNNING:
        return None if place.led_on else _Run(stretch, _Phase.ENDED)
    return _Run(stretch, phase)


def _matched(
    state: _State,
    rows: Mapping[str, tuple[Row, ...]],
    gaps: Mapping[str, Gap],
    tables: Sequence[str],
    recorded: Sequence[Sequence[tuple[int, Row]]],
) -> tuple[int, ...] | None:
    """Return how many recorded rows are explained after some more; None if they are not the ones recorded."""
    seen = []
    for table, done, known in zip(tables, state.seen, recorded, strict=True):
        mine = rows.get(table, ())
        found = known[done : done + len(mine)]
        if tuple(row for _, row in found) != mine:
            return None
        for number, (count, _) in enumerate(found):
            gap = gaps.get(table, NO_GAP) if number == 0 else NO_GAP
            if count - _last(known, done + number) - 1 not in gap:
                return None
        seen.append(done + len(mine))
    return tuple(seen)


def _steps(side: OpenSide, tables: Sequence[str]) -> Iterator[_Step]:
    """Yield what the applier did, in order: certain epochs with the rows that were decided, and open places."""
    decided = {table: _decided_rows(side, table) for table in tables}
    done = dict.fromkeys(tables, 0)
    further = {restart.number: restart.rows for restart in side.restarts}
    waiting = list(side.places)
    for number, applied in enumerate([*side.applied, None]):
        chosen = None
        while waiting and waiting[0].number == number and chosen is None:
            place = waiting.pop(0)
            yield _Step(tuple(_alternative_rows(each, tables) for each in place.alternatives), place)
            answer = place.alternatives[place.chosen]
            chosen = place if answer.choices and answer.stop is None else None
        if applied is None:
            continue
        rows: dict[str, tuple[Row, ...]] = {}
        gaps: dict[str, Gap] = {}
        for table in tables:
            first, count = done[table], applied.rows.get(table, 0)
            mine, done[table] = decided[table][first : first + count], first + count
            gap = mine[0][0] - _last(decided[table], first) - 1 if mine else 0
            gaps[table] = gap_before(side.tracked, applied, table, gap, further.get(number, {}).get(table, 0))
            if mine:
                rows[table] = tuple(row for _, row in mine)
        if chosen is None:
            epoch = side.epochs.get((applied.epoch, applied.position))
            agrees = epoch is not None and _chosen_rows(epoch, tables) == {
                table: mine for table, mine in rows.items() if mine
            }
            yield _Step((rows,), None, gaps, epoch if agrees else None)


def _chosen_rows(epoch: OpenEpoch, tables: Sequence[str]) -> dict[str, tuple[Row, ...]]:
    """Return the exceptions rows of an epoch as its moments were chosen, per table."""
    open_operations = (each for row in epoch.rows for each in row.answers[row.chosen].operations)
    found: dict[str, tuple[Row, ...]] = {}
    for each in sorted((*epoch.rejected, *open_operations), key=lambda each: (not each.with_transaction, each.number)):
        if each.exceptions is not None and each.exceptions[0] in tables:
            table, row = each.exceptions
            found[table] = (*found.get(table, ()), _plain(plain_value(value) for value in row))
    return found


def _tracked_moves(tracked: Iterable[TrackedOperation]) -> set[_Moves]:
    """Return how far the decisions of pass TRACK can move the counters, all together."""
    found: set[_Moves] = {frozenset()}
    for moves, times in Counter(each.moves for each in tracked).items():
        together: set[_Moves] = {frozenset()}
        for _ in range(times):
            together = {_sum(before, move) for before in together for move in set(moves)}
        found = {_sum(before, move) for before in found for move in together}
    return found


def _sum(before: _Moves, move: Iterable[tuple[str, int]]) -> _Moves:
    total = Counter(dict(before))
    total.update(dict(move))
    return frozenset((name, by) for name, by in total.items() if by)


def _own_tables(side: OpenSide) -> set[str]:
    """Return the exceptions tables that the side itself writes to."""
    return {table for table, rows in side.result.exceptions.items()} & {
        f"{side.database}.{table}" for table in side.expected["exceptions"]
    }


def _plain(row: Iterable[object]) -> Row:
    values = list(row)
    return (*values[:_COUNT], None, *values[_COUNT + 1 :])


def _decided_rows(side: OpenSide, table: str) -> list[tuple[int, Row]]:
    """Return the rows of an exceptions table as they were decided, each after its number, in that order."""
    own = [row for row in side.result.exceptions[table] if row[_SERVER_ID] in side.server_ids]
    rows = [[plain_value(value) for value in row] for row in own]
    return [(int(str(row[_COUNT])), _plain(row)) for row in sorted(rows, key=partial(_order, side))]


def _recorded_rows(side: OpenSide, table: str) -> list[tuple[int, Row]]:
    """Return the recorded rows of an exceptions table, each after its number, in that order."""
    own = [row for row in _recorded(side, table) if row[_SERVER_ID] in side.server_ids]
    return [(row[_COUNT], _plain(row)) for row in sorted(own, key=partial(_order, side))]


def _order(side: OpenSide, row: Sequence[object]) -> tuple[int, int]:
    """Return the place of an exceptions row among those of a side: a channel moves from an SQL node to the next one."""
    return side.server_ids.index(int(str(row[_SERVER_ID]))), int(str(row[_COUNT]))


def _last(rows: Sequence[tuple[int, Row]], place: int) -> int:
    """Return the number of the row before one of some rows; 0 for the first one of an SQL node."""
    if place == 0 or rows[place - 1][1][_SERVER_ID] != rows[place][1][_SERVER_ID]:
        return 0
    return rows[place - 1][0]


def _alternative_rows(answer: Alternative, tables: Sequence[str]) -> dict[str, tuple[Row, ...]]:
    found: dict[str, tuple[Row, ...]] = {}
    for table, row in answer.exceptions:
        if table in tables:
            found[table] = (*found.get(table, ()), _plain(plain_value(value) for value in row))
    return found


def _with_answers(side: OpenSide, way: Way) -> ClusterResult:
    """Return the result with answers that agree with the recording (see `_ways`): counters and exceptions are its."""
    stop = next((answer.stop for answer in way.values() if answer.stop is not None), side.result.stop)
    if any(place.alternatives[place.chosen].stop and not answer.stop for place, answer in way.items()):
        stop = None
    exceptions = dict(side.result.exceptions)
    for table in _own_tables(side):
        others = [row for row in exceptions[table] if row[_SERVER_ID] not in side.server_ids]
        exceptions[table] = [*(row for row in _recorded(side, table) if row[_SERVER_ID] in side.server_ids), *others]
    counters = {**side.result.counters, **side.expected["status_difference"]}
    return attrs.evolve(side.result, counters=counters, stop=stop, exceptions=exceptions)


def _recorded(side: OpenSide, table: str) -> list[tuple[Any, ...]]:
    contents = side.expected["exceptions"][table.removeprefix(f"{side.database}.")]
    return [
        tuple(recorded_value(value, kind) for value, kind in zip(row, contents["types"], strict=True))
        for row in contents["rows"]
    ]
