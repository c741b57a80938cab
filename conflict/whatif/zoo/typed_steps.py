"""
A schedule in the notation of `conflict.History`: what to type to have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from conflict.history.timeline import EpochApply
from conflict.whatif.diverging.retelling import TakenStep
from conflict.whatif.diverging.scope import NAMES, Scope, Values
from conflict.whatif.diverging.state import NAME, cells
from conflict.whatif.diverging.steps import Commit, Load, RowWish, SetBack
from ndb_formats.events.rows_event import Operation


@attrs.frozen
class TypedSteps:
    """
    A schedule as the arguments of a `History`.

    Attributes:
        start: The rows that both clusters hold at first.
        lanes: The steps of each cluster.
    """

    start: tuple[str, ...]
    lanes: Mapping[str, tuple[str, ...]]


def typed_steps(scope: Scope, walk: Sequence[TakenStep]) -> TypedSteps:
    """
    Return a schedule as it is typed.

    An applier that is set back takes the rows at first again; then they are not rows at first, but the first steps.
    """
    sets_back = any(isinstance(each.step, SetBack) for each in walk)
    steps = [each for each in walk if sets_back or not isinstance(each.step, Load)]
    start = tuple(_change(scope, walk[0], RowWish(row, Operation.WRITE_ROW)) for row in range(_loaded(walk)))
    epochs = [_numbers(side, steps) for side in (0, 1)]
    lanes = {name: tuple(_lane(scope, side, steps, epochs)) for side, name in enumerate(NAMES)}
    return TypedSteps(() if sets_back else start, lanes)


def _loaded(walk: Sequence[TakenStep]) -> int:
    step = walk[0].step
    return step.rows if isinstance(step, Load) else 0


def _numbers(side: int, steps: Sequence[TakenStep]) -> dict[int, int]:
    """Return the number of each epoch of a cluster, from 1."""
    found = {event.item.epoch for each in steps for event in each.events if event.side == side}
    return {epoch: number for number, epoch in enumerate(sorted(found), start=1)}


def _lane(scope: Scope, side: int, steps: Sequence[TakenStep], epochs: Sequence[Mapping[int, int]]) -> Iterator[str]:
    """Yield the steps of a cluster; each names its epoch."""
    for each in steps:
        if isinstance(each.step, SetBack) and each.step.side == side:
            yield "rewind"
        for event in each.events:
            if event.side != side:
                continue
            number = epochs[side][event.item.epoch]
            if isinstance(event.item, EpochApply):
                foreign = epochs[1 - side].get(event.item.foreign_epoch)
                if foreign is not None:
                    yield f"{number}: apply {foreign}"
            else:
                yield f"{number}: {'; '.join(_change(scope, each, wish) for wish in _wishes(each))}"


def _wishes(taken: TakenStep) -> Sequence[RowWish]:
    if isinstance(taken.step, Commit):
        return taken.step.wishes
    return [RowWish(row, Operation.WRITE_ROW) for row in range(_loaded([taken]))]


def _change(scope: Scope, taken: TakenStep, wish: RowWish) -> str:
    """Return a change as it is typed: an insert sets all columns, an update those that the transaction sets."""
    row = wish.row + 1
    if wish.operation is Operation.DELETE_ROW:
        return f"delete {row}"
    side = taken.step.side if isinstance(taken.step, Commit) else 0
    stored = taken.state.sides[side].rows[NAME, scope.keys[wish.row]]
    values = dict(zip((column.name for column in scope.table.columns[1:]), cells(stored, scope) or (), strict=True))
    if wish.operation is Operation.UPDATE_ROW:
        written = {scope.table.columns[scope.first_data_column + wish.column].name}
        if scope.resolve_column is not None and scope.values is not Values.UNSET:
            written.add(scope.resolve_column)
        values = {name: value for name, value in values.items() if name in written}
    texts = (f"{_name(name)}={value}" for name, value in values.items())
    verb = "insert" if wish.operation is Operation.WRITE_ROW else "update"
    return " ".join((verb, str(row), *texts))


def _name(name: str) -> str:
    return name if name.isidentifier() else f"`{name.replace('`', '``')}`"
