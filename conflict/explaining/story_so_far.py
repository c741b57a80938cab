"""
Tells the events of a story one after the other, and follows the row on each cluster while it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from conflict.explaining.carried_out import CarriedOut, StoryRows
from conflict.explaining.drafts import EventDraft, StoryFacts
from conflict.explaining.events import EventKind, StoryEvent, Winner, is_same_place, moment_of, verb
from conflict.explaining.outcomes import RecordedOutcome
from conflict.explaining.row_changes import WantedRow, values_of
from conflict.explaining.sentences import (
    applied_sentence,
    decided_sentence,
    lost_words,
    winner_words,
)
from conflict.explaining.statements import statement_sentence
from conflict.history.timeline import Origin
from conflict.rules.decision import Cause, Verdict

Seat = tuple[str, WantedRow]  # a row on a cluster
_NO_NAMES: Mapping[str, str] = {}


@attrs.define
class StorySoFar:
    """
    A story as far as it is told; where something stands by row and cluster, events are their numbers.

    Attributes:
        events: The events.
        writers: By column, the event whose operation wrote it last.
        changed: The event that last wrote or removed the row.
        made: The event that last made or removed the row.
        numbers: Number of each event, by the identity of its draft.
    """

    events: list[StoryEvent] = attrs.field(factory=list)
    writers: dict[Seat, dict[str, int]] = attrs.field(factory=dict)
    changed: dict[Seat, int] = attrs.field(factory=dict)
    made: dict[Seat, int] = attrs.field(factory=dict)
    numbers: dict[int, int] = attrs.field(factory=dict)

    def origin(self, number: int) -> StoryEvent:
        """Return the event that brought about what another one did to a row: the user's change, or the refresh."""
        event = self.events[number - 1]
        if event.kind is EventKind.JUDGED and event.cause_number is not None:
            return self.events[event.cause_number - 1]
        return event

    def change_words(self, number: int) -> str:
        """Return what an event did to a row in words, as the change that brought it about."""
        origin = self.origin(number)
        at = f"event {number}" if origin.number == number else f"event {origin.number}, applied in event {number}"
        what = "refresh" if origin.refresh else verb(origin.operation)
        return f"the {what} of {origin.cluster} in its epoch {origin.epoch} ({at})"


def tell(
    drafts: Sequence[EventDraft],
    facts: StoryFacts,
    rows: StoryRows,
    *,
    reason: Callable[[RecordedOutcome], str] = lambda outcome: "",
    names: Mapping[str, str] = _NO_NAMES,
) -> StorySoFar:
    """
    Tell events.

    Args:
        drafts: The events, in an order of causes: all changes of some rows.
        facts: What they were made of.
        rows: The rows, on which they are carried out.
        reason: Why a transaction is in conflict, for an operation that was rejected with it.
        names: Of binlogs, by path: what tells each from the others.
    """
    told = StorySoFar()
    for number, draft in enumerate(drafts, start=1):
        told.numbers[id(draft)] = number
        done = rows.carry_out(draft)
        won, cites = _won(draft, told, names)
        sentence = _sentence(draft, done, reason) + won + facts.came_again(draft)
        event = _event(draft, number, told, facts, sentence)
        told.events.append(attrs.evolve(event, row=done.row, row_known=done.exists is not None, cites=cites))
        _note(draft, number, done, told)
    return told


def _event(draft: EventDraft, number: int, told: StorySoFar, facts: StoryFacts, sentence: str) -> StoryEvent:
    change, outcome, applied = draft.change, draft.decided, draft.kind is not EventKind.NOT_APPLIED
    table, identity = draft.row
    heard = draft.kind is EventKind.HEARD
    timed = applied and draft.statement is None  # a statement stands between epochs
    event = StoryEvent(
        number,
        draft.cluster,
        draft.kind,
        draft.epoch if applied else None,
        moment_of(facts.logs[draft.cluster].times.get(draft.epoch)) if timed else None,
        draft.source,
        draft.source_epoch,
        table,
        draft.key,
        identity=identity,
        cause_number=None if draft.cause is None else told.numbers.get(id(draft.cause)),
        sentence=sentence,
    )
    if draft.statement is not None:
        event = attrs.evolve(event, place=Origin(draft.statement.file, draft.statement.position))
    if change is not None and not heard:
        event = attrs.evolve(
            event,
            operation=change.operation,
            refresh=change.refresh,
            transaction_id=change.logged.transaction_id if change.own else None,
            group=change.group,
            before=values_of(change.logged.before),
            after=values_of(change.logged.after),
            place=change.place,
            logged=None if draft.logged is None else draft.logged.place,
        )
    if draft.kind is EventKind.JUDGED:
        event = attrs.evolve(event, verdict=Verdict.APPLIED.name)
    if outcome is not None:
        event = attrs.evolve(
            event,
            operation=outcome["operation"],
            refresh=bool(outcome["refresh"]),
            **{name: outcome[name] for name in ("transaction_id", "group", "ordinal")},
            **{name: outcome[name] for name in ("verdict", "cause", "own_cause", "incoming", "stored")},
            winner=outcome.winner,
            candidates=facts.open.get(outcome.open_decision, ()),
            place=event.place or outcome.place,
        )
    return event


def _won(draft: EventDraft, told: StorySoFar, names: Mapping[str, str]) -> tuple[str, tuple[int, ...]]:
    """Return as the end of a sentence what an operation lost against, or a refresh carries; and the events named."""
    outcome, changed = draft.decided, told.changed.get((draft.cluster, draft.row))
    if draft.kind is EventKind.REFRESHED and changed is not None:
        return f"; it carries {told.change_words(changed)}", (changed,)
    if outcome is None:
        return "", ()
    winner = outcome.winner
    if winner is None:
        if outcome.decision.cause is not Cause.ROW_DOES_NOT_EXIST or changed is None:
            return "", ()
        return f". What won is {told.change_words(changed)}", (changed,)
    number = _number_at(winner, draft.row, told)
    if number is None:
        return f". What won is {winner_words(winner, names)}", ()
    if winner.refresh and changed is not None:
        sent = f"; the refresh of epoch {winner.epoch} (event {number}) carries it"
        return f". What won is {told.change_words(changed)}{sent}", (changed, number)
    if changed is not None and told.origin(changed).number == number:
        number = changed
    return f". What won is {told.change_words(number)}", (number,)


def _number_at(winner: Winner, row: WantedRow, told: StorySoFar) -> int | None:
    """Return the number of the event that a winner is."""
    for event in reversed(told.events):
        if (event.cluster, event.epoch, (event.table, event.identity)) != (winner.cluster, winner.epoch, row):
            continue
        if winner.refresh and event.kind is EventKind.REFRESHED:
            return event.number
        if event.kind is EventKind.COMMITTED and event.place is not None and is_same_place(event.place, winner.place):
            return event.number
    return None


def _sentence(draft: EventDraft, done: CarriedOut, reason: Callable[[RecordedOutcome], str]) -> str:
    change, outcome, cluster = draft.change, draft.decided, draft.cluster
    if draft.statement is not None:
        return statement_sentence(draft.statement, draft.row[0])
    if draft.kind is EventKind.COMMITTED:
        return f"a user's {verb(change.operation if change else None)} is committed on {cluster}"
    if draft.kind is EventKind.REFRESHED:
        gone = change is not None and change.operation == "DELETE_ROW"
        what = "that the row does not exist" if gone else "the row as it stands here"
        return f"{cluster} logs {what} (a refresh), for the other cluster to take over"
    if draft.kind is EventKind.LOGGED:
        return f"the applier of {cluster} logs the {verb(change.operation if change else None)}"
    if draft.kind is EventKind.HEARD:
        return f"{cluster} hears that its epochs up to {draft.source_epoch} have been applied by the other cluster"
    if draft.kind is EventKind.NOT_APPLIED:
        return draft.why_not
    if outcome is not None and outcome.decision.verdict is not Verdict.APPLIED:
        said = decided_sentence(outcome, done.function)
        if done.function is not None and done.function.spec.by_epoch:
            said += lost_words(outcome, cluster, draft.source)
        if outcome.decision.cause is Cause.TRANS_IN_CONFLICT and outcome.own_decision is None:
            said += reason(outcome)
        return said
    if change is None:
        return "the refresh is applied" if outcome and outcome["refresh"] else "the operation is applied"
    return applied_sentence(draft, done)


def _note(draft: EventDraft, number: int, done: CarriedOut, told: StorySoFar) -> None:
    """Note what an event did to the row of its cluster."""
    seat = draft.cluster, draft.row
    if not draft.row[1] or not (draft.statement is not None or draft.writes):
        return
    writers = told.writers.setdefault(seat, {})
    writers.update(dict.fromkeys(done.written, number))
    if draft.statement is None:
        told.changed[seat] = number
    if not done.exists:
        writers.clear()
    if done.existed != done.exists and not _updated_unknown(draft, done):
        told.made[seat] = told.changed[seat] = number


def _updated_unknown(draft: EventDraft, done: CarriedOut) -> bool:
    """Whether an event updated a row that is older than the log: it was there before, and nothing made it."""
    return done.existed is None and draft.change is not None and draft.change.operation == "UPDATE_ROW"
