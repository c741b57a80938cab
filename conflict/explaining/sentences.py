"""
What happened, in sentences, with the values that were compared.
"""

from __future__ import annotations

from collections.abc import Mapping

from conflict.engine.inference.rows import is_dated
from conflict.explaining.carried_out import CarriedOut
from conflict.explaining.drafts import EventDraft
from conflict.explaining.events import Winner, place_words, verb
from conflict.explaining.outcomes import RecordedOutcome
from conflict.rules.decision import (
    APPLIED,
    NOTHING_TOLD,
    Cause,
    Compared,
    Decision,
    explain,
    operation_word,
    reason_words,
    value_words,
)
from conflict.rules.deployed import Deployed
from conflict.rules.functions import Cell, ConflictFunction, is_comparing
from ndb_formats.events.rows_event import Operation


def winner_words(winner: Winner, names: Mapping[str, str]) -> str:
    """Return an operation that won, and that no event tells, in words."""
    what = "refresh" if winner.refresh else verb(winner.operation)
    where = "" if winner.place is None else f" ({place_words(winner.place, names)})"
    return f"the {what} of {winner.cluster} in its epoch {winner.epoch}{where}"


def decided_sentence(outcome: RecordedOutcome, function: ConflictFunction | None) -> str:
    """Return what an applier decided on an operation that was not simply applied, and why."""
    decision, own = outcome.decision, outcome.own_decision
    said = explain(decision, operation_word(outcome.operation), _compared_by(outcome, function))
    if decision.cause is Cause.TRANS_IN_CONFLICT and own is not None:
        return f"{said}, and this operation put it there: {own_reason(outcome, function)}"
    return said + _asked(decision, outcome.operation, function)


def own_reason(outcome: RecordedOutcome, function: ConflictFunction | None) -> str:
    """Return why an operation is in conflict itself, whatever becomes of its transaction."""
    own = outcome.own_decision or outcome.decision
    return reason_words(own, _compared_by(outcome, function)) + _asked(own, outcome.operation, function)


def _compared_by(outcome: RecordedOutcome, function: ConflictFunction | None) -> Compared:
    if function is None:
        return NOTHING_TOLD
    refreshed = function.spec.by_epoch and bool(outcome["winner_refresh"])
    return Compared(function.spec.by_epoch, function.column or None, refreshed)


def _asked(decision: Decision, operation: Operation, function: ConflictFunction | None) -> str:
    """Return what a function that compares a column asks of an operation that it rejected; empty for others."""
    if decision.cause is not Cause.ROW_IN_CONFLICT or function is None or not function.column:
        return ""
    return f"; {_rule(function, operation)}"


def _rule(function: ConflictFunction, operation: Operation) -> str:
    """Return what a function that compares a column asks of an operation."""
    words = {
        Cell.EQUAL: "equals the row's",
        Cell.GREATER: "is greater than the row's",
        Cell.AT_LEAST: "is not less than the row's",
        Cell.LESS: "is less than the row's",
    }
    cell = function.spec.cell(operation)
    word = verb(operation.name)
    what = f"{function.spec.name} applies {'an' if word == 'update' else 'a'} {word}"
    return f"{what} only if its {function.column} {words[cell]}" if cell in words else what


def applied_sentence(draft: EventDraft, done: CarriedOut) -> str:
    """
    Return why an operation was applied.

    Args:
        draft: The event.
        done: What it met, and what it left.
    """
    assert draft.change is not None
    operation, function = draft.change.logged.operation, done.function
    said = explain(APPLIED, operation_word(operation))
    if draft.change.refresh:
        if done.as_brought:
            return f"the refresh was applied and changed nothing: the row was as on {draft.source} already"
        return f"the refresh was applied: the row is now as it stood on {draft.source}"
    if done.existed is False and operation is Operation.UPDATE_ROW:
        said += " as a write, which makes the row"
    elif done.existed and operation is Operation.WRITE_ROW:
        said += " over the row that was there"
    if function is None:
        return f"{said}: no conflict function is set for the table here, so nothing was compared"
    if not Deployed(function, done.role).judges:
        return f"{said}: the role of the cluster lets it, and nothing was compared"
    if done.existed is False:
        return f"{said}: no row was there"
    compared = _compared(draft, done, function)
    return f"{said}: {compared}" if compared else said


def lost_words(outcome: RecordedOutcome, here: str, source: str) -> str:
    """Return the rule by which an operation lost that was judged by epoch; empty if it was judged otherwise."""
    told = outcome.own_decision or outcome.decision
    if told.cause is not Cause.ROW_IN_CONFLICT or told.stored is None:
        return ""
    return (
        f"; {source} had not shown that it had that epoch of {here} when it made the change, so {here}'s row stays and "
        f"the change from {source} loses"
    )


def _compared(draft: EventDraft, done: CarriedOut, function: ConflictFunction) -> str:
    """Return what was compared."""
    assert draft.change is not None
    cell, met = function.spec.cell(draft.change.logged.operation), done.met
    if cell is Cell.BY_EPOCH:
        if met is None or not is_dated(met):
            return "the row has not been changed here since an epoch that had come back"
        if not met.local:
            return "the row was last changed here by the applier"
        back = f" (epochs up to {draft.came_back} had)" if draft.came_back >= met.epoch else ""
        return f"the row was last changed here in epoch {met.epoch}, which had come back{back}"
    values = done.compared(function) if is_comparing(cell) else None
    if values is not None:
        return f"it brings {function.column}={value_words(values[0])}, and the row had {value_words(values[1])}"
    return "the row was there, and nothing else is asked" if cell is Cell.REJECT_IF_MISSING else ""
