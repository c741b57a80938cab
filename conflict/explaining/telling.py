"""
Tells the events of a story one after the other, and follows the row on each cluster while it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from conflict.explaining.drafts import Draft, Facts
from conflict.explaining.row_changes import LoggedChange
from conflict.explaining.sentences import (
    Known,
    applied_sentence,
    decided_sentence,
    lost_words,
    verb,
    winner_words,
)
from conflict.explaining.statements import columns_after, statement_sentence
from conflict.explaining.story import Kind, Place, StoryEvent, Winner, moment_of
from conflict.rules.decision import Cause, Verdict
from conflict.rules.functions import ConflictFunction
from conflict.rules.roles import Role
from ndb_formats.types.values import Value

__all__ = ["Function", "Told", "tell"]

ALL_COLUMNS = ""  # who wrote or deleted the row as a whole


@attrs.frozen
class Function:
    """
    How the applier of a cluster judges a table.

    Attributes:
        function: Its conflict function; None if none is set.
        role: The role of the cluster.
    """

    function: ConflictFunction | None
    role: Role = Role.NONE

    @property
    def judges(self) -> bool:
        """Whether the function judges what arrives; with roles, the primary's alone does."""
        return self.function is not None and (not self.function.spec.uses_role or self.role is Role.PRIMARY)


@attrs.define
class Told:
    """
    A story as far as it is told.

    Attributes:
        events: The events.
        rows: The row on each cluster.
        writers: Per cluster and column, number of the event whose operation wrote it last.
        numbers: Number of each event, by the identity of its draft.
    """

    events: list[StoryEvent] = attrs.field(factory=list)
    rows: dict[str, Known] = attrs.field(factory=dict)
    writers: dict[str, dict[str, int]] = attrs.field(factory=dict)
    numbers: dict[int, int] = attrs.field(factory=dict)


def tell(
    drafts: Sequence[Draft],
    facts: Facts,
    function_of: Callable[[Draft], Function],
    *,
    starts_empty: Mapping[str, bool],
    reason: Callable[[Draft], str] = lambda draft: "",
    whole: bool = True,
) -> Told:
    """
    Tell events.

    Args:
        drafts: The events, in an order of causes.
        facts: What they were made of.
        function_of: Event to how the applier of its cluster judges the table then.
        starts_empty: Per cluster, whether it is known that the row did not exist before the log.
        reason: Why a transaction is in conflict, for an operation that was rejected with it.
        whole: Whether these are all changes of one row, so that it can be followed.
    """
    told = Told(
        rows={name: Known(known=starts_empty[name]) for name in facts.logs}, writers={n: {} for n in facts.logs}
    )
    heard = {name: list(_heard_steps(name, facts)) for name in facts.logs}
    for number, draft in enumerate(drafts, start=1):
        told.numbers[id(draft)] = number
        found = function_of(draft)
        met = told.rows[draft.cluster] if whole else Known()
        back = _last_before(heard[draft.cluster], (draft.epoch, draft.group))
        sentence = _sentence(draft, found, met, back, reason) + _won(draft, told, whole=whole)
        if whole:
            _follow(draft, number, told)
        event = _event(draft, number, told, facts, sentence)
        row = told.rows[draft.cluster]
        told.events.append(attrs.evolve(event, row=dict(row.row) if whole and row.row is not None else None))
    return told


def _heard_steps(name: str, facts: Facts) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield the places at which the max replicated epoch of a cluster rose, and its value from there on."""
    highest, server_id = 0, facts.server_ids[name]
    for apply in facts.applied[name]:
        told = facts.logs[apply.source].reported.get(apply.source_epoch, ())
        back = max((epoch for server, epoch in told if server == server_id), default=0)
        if back > highest:
            highest = back
            yield (apply.epoch, apply.group), back


def _last_before(steps: Sequence[tuple[tuple[int, int], int]], place: tuple[int, int]) -> int | None:
    return next((value for where, value in reversed(steps) if where < place), None)


def _event(draft: Draft, number: int, told: Told, facts: Facts, sentence: str) -> StoryEvent:
    change, outcome, applied = draft.change, draft.decided, draft.kind is not Kind.NOT_APPLIED
    table, key = draft.row
    heard = draft.kind is Kind.HEARD
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
        key,
        cause_number=None if draft.cause is None else told.numbers.get(id(draft.cause)),
        sentence=sentence,
    )
    if draft.statement is not None:
        event = attrs.evolve(event, place=Place(draft.statement.file, draft.statement.position, 0, 0))
    if change is not None and not heard:
        event = attrs.evolve(
            event,
            operation=change.operation,
            refresh=change.refresh,
            transaction_id=change.transaction_id if change.own else None,
            group=change.group,
            before=change.before,
            after=change.after,
            place=_place(change),
            logged=None if draft.logged is None else _place(draft.logged),
        )
    if draft.kind is Kind.JUDGED:
        event = attrs.evolve(event, verdict=Verdict.APPLIED.name)
    if outcome is not None:
        event = attrs.evolve(
            event,
            operation=outcome["operation"],
            refresh=bool(outcome["refresh"]),
            **{name: outcome[name] for name in ("transaction_id", "group", "ordinal")},
            **{name: outcome[name] for name in ("verdict", "cause", "own_cause", "incoming", "stored")},
            winner=outcome.winner,
            place=event.place or outcome.place,
        )
    return event


def _won(draft: Draft, told: Told, *, whole: bool) -> str:
    """Return as the end of a sentence what an operation lost against."""
    outcome = draft.decided
    if outcome is None:
        return ""
    if outcome.winner is not None:
        return f". What won is {winner_words(outcome.winner, _number_at(outcome.winner, told))}"
    deleted = told.writers[draft.cluster].get(ALL_COLUMNS)
    if whole and outcome.decision.cause is Cause.ROW_DOES_NOT_EXIST and deleted is not None:
        return f". What won is the delete of event {deleted}"
    return ""


def _number_at(winner: Winner, told: Told) -> int | None:
    """Return the number of the event that a winner is."""
    for event in reversed(told.events):
        here = (event.source, event.source_epoch, event.refresh) == (winner.cluster, winner.epoch, winner.refresh)
        if event.kind is Kind.REFRESHED and here and winner.refresh:
            return event.number
        if event.kind is Kind.COMMITTED and event.place is not None and event.place == winner.place:
            return event.number
    return None


def _place(change: LoggedChange) -> Place:
    return Place(change.file, change.position, change.payload_position, change.row)


def _sentence(draft: Draft, found: Function, met: Known, back: int | None, reason: Callable[[Draft], str]) -> str:
    change, outcome, cluster = draft.change, draft.decided, draft.cluster
    if draft.statement is not None:
        return statement_sentence(draft.statement, draft.row[0])
    if draft.kind is Kind.COMMITTED:
        return f"a user's {verb(change.operation if change else None)} is committed on {cluster}"
    if draft.kind is Kind.REFRESHED:
        gone = change is not None and change.operation == "DELETE_ROW"
        what = "that the row does not exist" if gone else "the row as it stands here"
        return f"{cluster} logs {what} (a refresh), for the other cluster to take over"
    if draft.kind is Kind.LOGGED:
        return f"the applier of {cluster} logs the {verb(change.operation if change else None)}"
    if draft.kind is Kind.HEARD:
        return f"{cluster} hears that its epochs up to {draft.source_epoch} have been applied by the other cluster"
    if draft.kind is Kind.NOT_APPLIED:
        return f"{cluster} had not applied epoch {draft.source_epoch} of {draft.source} when the logs end"
    if outcome is not None and outcome.decision.verdict is not Verdict.APPLIED:
        said = decided_sentence(outcome, found.function)
        if found.function is not None and found.function.spec.refreshes:
            said += lost_words(outcome, cluster, draft.source)
        if outcome.decision.cause is Cause.TRANS_IN_CONFLICT and outcome.own_decision is None:
            said += reason(draft)
        return said
    if change is None:
        return "the refresh is applied" if outcome and outcome["refresh"] else "the operation is applied"
    return applied_sentence(change, found.function, met, back, judged=found.judges)


def _follow(draft: Draft, number: int, told: Told) -> None:
    """Carry out an event on the row of its cluster."""
    row, change = told.rows[draft.cluster], draft.change
    if draft.statement is not None:
        columns = columns_after(draft.statement, draft.row[0])
        if columns is None:
            row.row, row.known = None, True
            told.writers[draft.cluster].clear()
        elif row.row is not None:
            row.row = {name: value for name, value in row.row.items() if name in columns}
        return
    if draft.kind is Kind.REFRESHED:
        row.local, row.epoch = True, draft.epoch
        return
    applied = draft.kind in (Kind.COMMITTED, Kind.LOGGED) or draft.verdict is Verdict.APPLIED
    if not applied or change is None:
        return
    local = draft.kind is Kind.COMMITTED
    row.row, written = _written(row, change, local=local)
    row.known = row.known or row.row is None or change.operation == "WRITE_ROW"
    row.local, row.epoch = local, draft.epoch
    writers = told.writers[draft.cluster]
    if row.row is None:
        writers.clear()
    writers.update(dict.fromkeys((*written, ALL_COLUMNS), number))


def _written(row: Known, change: LoggedChange, *, local: bool) -> tuple[dict[str, Value] | None, Sequence[str]]:
    """Return a row after a change, and the columns that the change wrote."""
    if change.operation == "DELETE_ROW":
        return None, ()
    after = change.after or {}
    older = change.before if row.row is None or local else None
    return {**(older or {}), **(row.row or {}), **after}, tuple(after)
