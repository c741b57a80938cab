"""
A schedule in words: what each cluster did, step by step, and how the rows end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from conflict.diverging.retelling import Told
from conflict.diverging.scope import NAMES, Scope
from conflict.diverging.state import EPOCH, NAME, Side, cells
from conflict.diverging.steps import Commit, Event, Load, SetBack
from conflict.history.model import RowChange, Transaction
from conflict.history.shown_effects import Effect
from conflict.results.model import Outcome
from conflict.rules.decision import Compared, Decision, explain, operation_word
from ndb_formats.events.rows_event import Operation

__all__ = ["Line", "ending", "timeline", "unsettled"]

_VERBS = {Operation.WRITE_ROW: "inserts", Operation.UPDATE_ROW: "updates", Operation.DELETE_ROW: "deletes"}


@attrs.frozen
class Line:
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


def timeline(scope: Scope, told: Sequence[Told]) -> list[Line]:
    """Return what happened, the rows at first before it."""
    lines = list[Line]()
    for number, each in enumerate(told):
        if isinstance(each.step, Load):
            lines.append(Line(0, None, _rows(each.state.sides[0], scope)))
            continue
        if isinstance(each.step, SetBack):
            text = f"stops its applier, and sets it back to the start of {NAMES[1 - each.step.side]}'s binlog"
        elif isinstance(each.step, Commit):
            text = "; ".join(_commit(event, each.step, scope) for event in each.events)
        else:
            text = "; ".join(_apply(event, scope) for event in _telling(each.events))
        lines.append(Line(number, NAMES[each.step.side], text))
    return lines


def ending(scope: Scope, told: Sequence[Told]) -> dict[str, str]:
    """Return the rows of each cluster at the end."""
    return {name: _rows(side, scope) for name, side in zip(NAMES, told[-1].state.sides, strict=True)}


def unsettled(told: Sequence[Told]) -> dict[str, int]:
    """Return how many row operations of each cluster the other one has still to take where the schedule ends."""
    return {name: told[-1].state.unsettled(number) for number, name in enumerate(NAMES)}


def _rows(side: Side, scope: Scope) -> str:
    texts = []
    for number, key in enumerate(scope.keys, start=1):
        row = side.rows.get((NAME, key))
        texts.append(f"no row {number}" if row is None else f"row {number}: {_values(cells(row, scope) or (), scope)}")
    return "\n".join(texts)


def _values(values: Sequence[int], scope: Scope) -> str:
    """Return the values of columns after the key, without those that were never written or that an image lacks."""
    names = [column.name for column in scope.table.columns[1:]]
    return ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True) if value >= 0)


def _commit(event: Event, step: Commit, scope: Scope) -> str:
    assert isinstance(event.item, Transaction)
    wished = zip(step.wishes, event.item.changes, strict=True)
    changes = ", ".join(_change(wish.operation, change, scope) for wish, change in wished)
    return f"epoch {event.item.epoch // EPOCH}: {changes}"


def _change(operation: Operation, change: RowChange, scope: Scope) -> str:
    """Return what users did, which a format may log as another operation."""
    text = f"{_VERBS[operation]} row {scope.keys.index(change.key) + 1}"
    after = cells(change.after, scope)
    return text if after is None else f"{text} ({_values(after, scope)})"


def _apply(event: Event, scope: Scope) -> str:
    assert not isinstance(event.item, Transaction)
    own, foreign = event.item.epoch // EPOCH, event.item.foreign_epoch // EPOCH
    text = f"epoch {own}: applies epoch {foreign} of {event.item.source}"
    if event.stop is not None:
        return f"{text}, and stops: {event.stop.message}"
    parts = [*(_outcome(each, scope) for each in event.outcomes), *_refreshes(event, scope)]
    return f"{text}: {'; '.join(parts)}" if parts else f"{text}, which tells what arrived there"


def _telling(events: Sequence[Event]) -> Sequence[Event]:
    """Return the epoch applies without those that did nothing, unless none did."""
    return [event for event in events if event.outcomes or event.stop is not None] or events


def _outcome(outcome: Outcome, scope: Scope) -> str:
    by_epoch = scope.by_epoch
    values = [
        value // EPOCH if by_epoch and value is not None else value for value in (outcome.incoming, outcome.stored)
    ]
    kind = "refresh" if outcome.refresh else operation_word(outcome.operation)
    what = f"{kind} of row {scope.keys.index(outcome.key) + 1}"
    return explain(Decision(outcome.verdict, outcome.cause, *values), what, Compared(by_epoch))


def _refreshes(event: Event, scope: Scope) -> Iterator[str]:
    rows = [key for key, effect in event.effects.items() if effect in (Effect.REFRESHED, Effect.REFRESHED_ABSENT)]
    if rows:
        numbers = sorted(scope.keys.index(key) + 1 for key in rows)
        yield f"refreshes row{'s' if len(rows) > 1 else ''} {' and '.join(map(str, numbers))} on the other cluster"
