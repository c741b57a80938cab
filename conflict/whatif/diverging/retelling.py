"""
A schedule carried out again, step by step, and as a History that both engines resolve.

A schedule in words: what each cluster did, step by step, and how the rows end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from conflict.engine.ledger.resolution import Outcome
from conflict.history.model import History
from conflict.history.shown_effects import Effect
from conflict.history.timeline import EpochApply, RowChange, Timeline, Transaction
from conflict.rules.decision import Compared, Decision, explain, operation_word
from conflict.whatif.diverging.scope import NAMES, Scope
from conflict.whatif.diverging.state import EPOCH, NAME, BothStates, ClusterState, cells
from conflict.whatif.diverging.steps import Commit, Load, SetBack, Step, StepEvent, taken
from ndb_formats.events.rows_event import Operation

_VERBS = {Operation.WRITE_ROW: "inserts", Operation.UPDATE_ROW: "updates", Operation.DELETE_ROW: "deletes"}


@attrs.frozen
class _Line:
    """
    What happened in one step.

    Attributes:
        number: The step, from 1; 0 for what both clusters held at first.
        cluster: Who took it; None for both.
        text: A clause, as in "A ...".
    """

    number: int
    cluster: str | None
    text: str


def timeline(scope: Scope, walk: Sequence[TakenStep]) -> list[_Line]:
    """Return what happened, the rows at first before it."""
    lines = list[_Line]()
    for number, each in enumerate(walk):
        if isinstance(each.step, Load):
            lines.append(_Line(0, None, _rows(each.state.sides[0], scope)))
            continue
        if isinstance(each.step, SetBack):
            text = f"stops its applier, and sets it back to the start of {NAMES[1 - each.step.side]}'s binlog"
        elif isinstance(each.step, Commit):
            text = "; ".join(_commit(event, each.step, scope) for event in each.events)
        else:
            text = "; ".join(_apply(event, scope) for event in _telling(each.events))
        lines.append(_Line(number, NAMES[each.step.side], text))
    return lines


def ending(scope: Scope, walk: Sequence[TakenStep]) -> dict[str, str]:
    """Return the rows of each cluster at the end."""
    return {name: _rows(side, scope) for name, side in zip(NAMES, walk[-1].state.sides, strict=True)}


def unsettled(walk: Sequence[TakenStep]) -> dict[str, int]:
    """Return how many row operations of each cluster the other one has still to take where the schedule ends."""
    return {name: walk[-1].state.unsettled(number) for number, name in enumerate(NAMES)}


def _rows(side: ClusterState, scope: Scope) -> str:
    texts = []
    for number, key in enumerate(scope.keys, start=1):
        row = side.rows.get((NAME, key))
        texts.append(f"no row {number}" if row is None else f"row {number}: {_values(cells(row, scope) or (), scope)}")
    return "\n".join(texts)


def _values(values: Sequence[int], scope: Scope) -> str:
    """Return the values of columns after the key, without those that were never written or that an image lacks."""
    names = [column.name for column in scope.table.columns[1:]]
    return ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True) if value >= 0)


def _commit(event: StepEvent, step: Commit, scope: Scope) -> str:
    assert isinstance(event.item, Transaction)
    wished = zip(step.wishes, event.item.changes, strict=True)
    changes = ", ".join(_change(wish.operation, change, scope) for wish, change in wished)
    return f"epoch {event.item.epoch // EPOCH}: {changes}"


def _change(operation: Operation, change: RowChange, scope: Scope) -> str:
    """Return what users did, which a format may log as another operation."""
    text = f"{_VERBS[operation]} row {scope.keys.index(change.key) + 1}"
    after = cells(change.after, scope)
    return text if after is None else f"{text} ({_values(after, scope)})"


def _apply(event: StepEvent, scope: Scope) -> str:
    assert not isinstance(event.item, Transaction)
    own, foreign = event.item.epoch // EPOCH, event.item.foreign_epoch // EPOCH
    text = f"epoch {own}: applies epoch {foreign} of {event.item.source}"
    if event.stop is not None:
        return f"{text}, and stops: {event.stop.message}"
    parts = [*(_outcome(each, scope) for each in event.outcomes), *_refreshes(event, scope)]
    return f"{text}: {'; '.join(parts)}" if parts else f"{text}, which tells what arrived there"


def _telling(events: Sequence[StepEvent]) -> Sequence[StepEvent]:
    """Return the epoch applies without those that did nothing, unless none did."""
    return [event for event in events if event.outcomes or event.stop is not None] or events


def _outcome(outcome: Outcome, scope: Scope) -> str:
    by_epoch = scope.by_epoch
    incoming, stored = (
        value // EPOCH if by_epoch and value is not None else value for value in (outcome.incoming, outcome.stored)
    )
    kind = "refresh" if outcome.refresh else operation_word(outcome.operation)
    what = f"{kind} of row {scope.keys.index(outcome.key) + 1}"
    merged = outcome.merged_columns(scope.table)
    return explain(Decision(outcome.verdict, outcome.cause, incoming, stored, merged), what, Compared(by_epoch))


def _refreshes(event: StepEvent, scope: Scope) -> Iterator[str]:
    rows = [key for key, effect in event.effects.items() if effect in (Effect.REFRESHED, Effect.REFRESHED_ABSENT)]
    if rows:
        numbers = sorted(scope.keys.index(key) + 1 for key in rows)
        yield f"refreshes row{'s' if len(rows) > 1 else ''} {' and '.join(map(str, numbers))} on the other cluster"


@attrs.frozen
class TakenStep:
    """
    A step that was taken.

    Attributes:
        step: The step.
        events: What the clusters did.
        state: Both clusters after it.
    """

    step: Step
    events: tuple[StepEvent, ...]
    state: BothStates


def retell(scope: Scope, steps: Sequence[Step]) -> list[TakenStep]:
    """Take all steps of a schedule, the load first."""
    state, walk = BothStates((ClusterState({}), ClusterState({}))), list[TakenStep]()
    for step in steps:
        state, events = taken(state, step, scope)
        walk.append(TakenStep(step, tuple(events), state))
    return walk


def history_of(scope: Scope, walk: Sequence[TakenStep]) -> History:
    """Return what happened, without its consequences."""
    clusters = tuple(
        attrs.evolve(cluster, timeline=_timeline(number, walk)) for number, cluster in enumerate(scope.clusters)
    )
    return History(clusters, {NAME: scope.layout})


def _timeline(number: int, walk: Sequence[TakenStep]) -> Timeline:
    events = [event for each in walk for event in each.events if event.side == number]
    logged = {event.item.epoch for event in events if event.changes}
    items: list[Transaction | EpochApply] = []
    period, restarted = 0, False
    for each in walk:
        if isinstance(each.step, SetBack) and each.step.side == number:
            period, restarted = period + 1, True
        for event in each.events:
            if event.side != number:
                continue
            item = event.item
            if isinstance(item, EpochApply):
                item = _placed(attrs.evolve(item, period=period, restarted=restarted), event, logged)
                restarted = False
            items.append(item)
    return tuple(items)


def _placed(apply: EpochApply, event: StepEvent, logged: set[int]) -> EpochApply:
    """Return an epoch apply with or without a trace: an epoch that changed nothing is not logged, nor is one undone."""
    if event.stop is None and apply.epoch in logged:
        return apply
    return attrs.evolve(apply, traced=False, group=apply.group - 1)
