"""
The events of a story before they are told: what was logged, joined with what was decided on it.

An operation that travels is a user's change, a refresh, or a reflected one. Each is looked up in what the other
cluster's applier decided: by its place in the binlog if a user made it, else in the order of the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import attrs

from conflict.config.definitions import DefinitionStep
from conflict.engine.reference.spelling import operations_of
from conflict.explaining.events import EventKind, is_same_place
from conflict.explaining.outcomes import Applied, OpenDecision, RecordedOutcome
from conflict.explaining.row_changes import ChangeInLog, RowLog, WantedRow
from conflict.rules.decision import Verdict
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Table

_LATE = 2**64  # after every epoch
_KINDS = frozenset(each.name for each in Operation)
# In one group of an epoch, what comes first.
_PHASES = {
    EventKind.COMMITTED: 0,
    EventKind.JUDGED: 1,
    EventKind.LOGGED: 2,
    EventKind.REFRESHED: 3,
    EventKind.HEARD: 4,
    EventKind.NOT_APPLIED: 5,
    EventKind.DEFINED: 6,
}


def _came_back(facts: StoryFacts) -> dict[str, list[tuple[Applied, int]]]:
    found: dict[str, list[tuple[Applied, int]]] = {}
    for name, epochs in facts.applied.items():
        highest, server_id, own = 0, facts.server_ids[name], found.setdefault(name, [])
        for apply in epochs:
            reported = facts.logs[apply.source].reported.get(apply.source_epoch, ())
            highest = max([highest, *(epoch for server, epoch in reported if server == server_id)])
            own.append((apply, highest))
    return found


def _applied_as(facts: StoryFacts) -> dict[tuple[str, str, int], list[tuple[Applied, int]]]:
    found: dict[tuple[str, str, int], list[tuple[Applied, int]]] = {}
    for applier, epochs in facts.came_back.items():
        before = 0
        for each, back in epochs:
            found.setdefault((applier, each.source, each.source_epoch), []).append((each, before))
            before = back
    return found


@attrs.frozen
class StoryFacts:
    """
    What is known of the operations of a story.

    Attributes:
        logs: Per cluster, what its binlogs hold of them.
        applied: Per applier, the epochs that it applied.
        decided: The outcomes of the operations.
        server_ids: Server id of each cluster.
        sources: Per cluster, those that it replicates from.
        by_epoch: Clusters that judge by epoch, for which it matters what has come back.
        told_of: The rows of the story, each with its key as text.
        open: What else the decisions can be that the binlogs leave open.
        filtered: Per cluster and source, the tables whose changes its applier drops.
        skipped: The epochs that appliers never applied, although they applied later ones: applier, source and epoch.
        again: Why an epoch was applied again, by applier, source, its epoch and own epoch of the applier.
        tables: Definitions, by ``database.table``.
        starts: The first own epoch of each cluster whose log starts in the middle: rows are not followed before.
        came_back: Per applier, what it applied, in order, each with the cluster's max replicated epoch from there on.
        applied_as: Per applier, source and its epoch: when it was applied, in order, and what had come back until then.
    """

    logs: Mapping[str, RowLog]
    applied: Mapping[str, Sequence[Applied]]
    decided: Sequence[RecordedOutcome]
    server_ids: Mapping[str, int]
    sources: Mapping[str, Sequence[str]]
    by_epoch: frozenset[str] = frozenset()
    told_of: Mapping[WantedRow, str] = MappingProxyType({})
    open: Mapping[OpenDecision, tuple[str, ...]] = attrs.field(factory=dict)
    filtered: Mapping[str, Mapping[str, frozenset[str]]] = attrs.field(factory=dict)
    skipped: frozenset[tuple[str, str, int]] = frozenset()
    again: Mapping[tuple[str, str, int, int], str] = attrs.field(factory=dict)
    tables: Mapping[str, Table] = attrs.field(factory=dict)
    starts: Mapping[str, int] = attrs.field(factory=dict)
    came_back: Mapping[str, Sequence[tuple[Applied, int]]] = attrs.field(
        default=attrs.Factory(_came_back, takes_self=True), repr=False
    )
    applied_as: Mapping[tuple[str, str, int], Sequence[tuple[Applied, int]]] = attrs.field(
        default=attrs.Factory(_applied_as, takes_self=True), repr=False
    )

    def came_again(self, draft: EventDraft) -> str:
        """Return as the end of a sentence that the epoch of an operation was applied before; else nothing."""
        place = draft.cluster, draft.source, draft.source_epoch, draft.epoch
        why = self.again.get(place) if draft.kind is EventKind.JUDGED else None
        return "" if why is None else f" (epoch {draft.source_epoch} of {draft.source} was applied before: {why})"

    def drops(self, applier: str, source: str, table: str) -> bool:
        """Whether an applier drops the changes of a table from a source."""
        return table in self.filtered.get(applier, {}).get(source, ())

    def why_not(self, applier: str, source: str, epoch: int, table: str) -> str:
        """Return why an applier did not take an operation, as a sentence without a full stop."""
        if self.drops(applier, source, table):
            return f"a filter of {applier} drops the changes of {table} (replicate_*)"
        if (applier, source, epoch) in self.skipped:
            return f"{applier} never applied epoch {epoch} of {source}, and applied later ones: it was skipped"
        return f"{applier} had not applied epoch {epoch} of {source} when the logs end"


@attrs.define(eq=False)
class EventDraft:
    """
    An event that is not told yet.

    Attributes:
        kind: What it is.
        cluster: Where it happened.
        epoch: Epoch of that cluster.
        group: Group of that epoch.
        source: Cluster that made the operation.
        source_epoch: Its epoch there.
        change: The operation as it is logged; None if no binlog shows it.
        decided: The outcome; None for an operation that was simply applied.
        logged: What the cluster itself logged.
        cause: The event that it follows from.
        sequence: Order among the events of a group.
        statement: The statement, for one that changes the definition of the table.
        told_of: The row that a statement is told of.
        told_key: Its key as text.
        why_not: Why the applier did not apply the operation, as a sentence without a full stop.
        came_back: Of a decision, the highest own epoch of the cluster that had come back; 0 if none is known.
        setup: How the cluster sets up the table, once the event is carried out.
    """

    kind: EventKind
    cluster: str
    epoch: int
    group: int
    source: str
    source_epoch: int
    change: ChangeInLog | None = None
    decided: RecordedOutcome | None = None
    logged: ChangeInLog | None = None
    cause: EventDraft | None = None
    sequence: int = 0
    statement: DefinitionStep | None = None
    told_of: WantedRow | None = None
    told_key: str = ""
    why_not: str = ""
    came_back: int = 0
    setup: TableSetup | None = None

    @property
    def order(self) -> tuple[int, ...]:
        """Its place among the events of its cluster; an applier goes through an epoch in the order of its groups."""
        return self.epoch, self.group, _PHASES[self.kind], self.source_epoch, self.operation_group, self.sequence

    @property
    def operation_group(self) -> int:
        """The group of the source's epoch to which the operation belongs."""
        if self.decided is not None:
            return int(self.decided["group"])
        return self.change.group if self.change else 0

    @property
    def verdict(self) -> Verdict | None:
        """What the applier decided; None if the event is no decision."""
        if self.kind is not EventKind.JUDGED:
            return None
        return Verdict.APPLIED if self.decided is None else self.decided.decision.verdict

    @property
    def writes(self) -> bool:
        """Whether it writes its row."""
        applied = self.verdict is not None and self.verdict.writes_row
        return (applied or self.kind in (EventKind.COMMITTED, EventKind.LOGGED)) and self.change is not None

    @property
    def row(self) -> WantedRow:
        """The row."""
        if self.told_of is not None:
            return self.told_of
        found = self.change or self.decided
        assert found is not None
        return found.row

    @property
    def key(self) -> str:
        """The key of the row as text."""
        if self.change is not None:
            return self.change.key
        return self.told_key if self.decided is None else str(self.decided["key"])


def drafts_of(facts: StoryFacts) -> list[EventDraft]:
    """Return the events in an order of causes."""
    logged = [_logged(change) for log in facts.logs.values() for change in log.changes]
    committed = [each for each in logged if each.kind is EventKind.COMMITTED]
    effects = [each for each in logged if each.kind is not EventKind.COMMITTED]
    outcomes: _Outcomes = {}
    for each in facts.decided:
        place = each.applier, each["source"], each["source_epoch"], each["epoch"], each.row
        outcomes.setdefault(place, []).append(each)
    judged = [each for draft in (*committed, *effects) for each in _judged(draft, facts, outcomes)]
    judged += [_without_log(each) for left in outcomes.values() for each in left]
    judged.sort(key=lambda each: each.order)
    here: dict[tuple[str, int, WantedRow], list[EventDraft]] = {}
    for draft in judged:
        here.setdefault((draft.cluster, draft.epoch, draft.row), []).append(draft)
    logs_of = {id(each): _logged_for(each, here.get((each.cluster, each.epoch, each.row), [])) for each in effects}
    for draft in judged:  # what the other cluster decided on a reflected operation follows from that one
        draft.cause = logs_of.get(id(draft.cause)) or draft.cause
    drafts = [*committed, *judged, *(each for each in effects if logs_of[id(each)] is None)]
    drafts += [each for row in facts.told_of if drafts for each in _defined(facts, row)]  # else there is no story
    for number, draft in enumerate(drafts):
        draft.sequence = number
    drafts += [each for name in sorted(facts.by_epoch) for each in _heard(name, facts, drafts)]
    return _in_order_of_causes(drafts, facts.logs)


def _defined(facts: StoryFacts, row: WantedRow) -> list[EventDraft]:
    """Return the statements that change the row's table; one that an applier carried out follows from the first."""
    names = {server_id: name for name, server_id in facts.server_ids.items()}
    found: list[EventDraft] = []
    for name, log in facts.logs.items():
        for each in (each for each in log.statements if row[0] in each.step.touched):
            source = names.get(each.step.server_id, name)
            draft = EventDraft(EventKind.DEFINED, name, each.epoch, each.group, source, each.epoch)
            draft.statement, draft.told_of, draft.told_key = each.step, row, facts.told_of[row]
            found.append(draft)
    for name in facts.logs:
        origins = [each for each in found if each.cluster == each.source]
        for draft in (each for each in found if each.cluster == name != each.source):
            same = (each for each in origins if each.source == draft.source and _text(each) == _text(draft))
            draft.cause = next(same, None)
            origins = [each for each in origins if each is not draft.cause]
    return found


def _text(draft: EventDraft) -> str:
    return "" if draft.statement is None else draft.statement.text


def _logged(change: ChangeInLog) -> EventDraft:
    kind = EventKind.REFRESHED if change.refresh else EventKind.LOGGED
    kind = EventKind.COMMITTED if change.own else kind
    return EventDraft(kind, change.cluster, change.epoch, change.group, change.cluster, change.epoch, change)


# By applier, source and its epoch, own epoch, and row: those that no operation has taken yet.
_Outcomes = dict[tuple[str, str, int, int, WantedRow], list[RecordedOutcome]]


def _judged(cause: EventDraft, facts: StoryFacts, outcomes: _Outcomes) -> Iterator[EventDraft]:
    """Yield what other appliers decided on an operation, and take its outcomes from those that are left."""
    change = cause.change
    assert change is not None
    for applier, sources in facts.sources.items():
        if cause.cluster not in sources:
            continue
        dropped = facts.drops(applier, cause.cluster, change.table)
        applies = () if dropped else facts.applied_as.get((applier, cause.cluster, cause.epoch), ())
        for apply, back in applies:
            place = applier, cause.cluster, cause.epoch, apply.epoch, change.row
            left = outcomes.get(place, [])
            operations = _operations(change, facts)
            for operation in operations:
                kinds = {operation.operation} if len(operations) > 1 else _KINDS
                found = next((each for each in left if each["operation"] in kinds and _is_of(each, operation)), None)
                if found is not None:
                    left.remove(found)
                elif not change.own:
                    continue  # what an applier logged has an outcome, wherever it goes
                yield EventDraft(
                    EventKind.JUDGED,
                    applier,
                    apply.epoch,
                    apply.group,
                    cause.cluster,
                    cause.epoch,
                    operation,
                    found,
                    cause=cause,
                    came_back=back,
                )
        if not applies and (change.own or change.logged.flags):
            why = facts.why_not(applier, cause.cluster, cause.epoch, change.table)
            late = EventDraft(EventKind.NOT_APPLIED, applier, _LATE, 0, cause.cluster, cause.epoch, change, cause=cause)
            yield attrs.evolve(late, why_not=why)


def _operations(change: ChangeInLog, facts: StoryFacts) -> list[ChangeInLog]:
    """Return the operations as which an applier takes a change: it, or a delete and a write if it spells a key anew."""
    table = facts.tables.get(change.table)
    found = [change.logged] if table is None else list(operations_of(change.logged, table))
    return [change] if len(found) == 1 else [attrs.evolve(change, logged=each) for each in found]


def _is_of(outcome: RecordedOutcome, change: ChangeInLog) -> bool:
    """Whether an outcome of an epoch and a row is that of an operation."""
    if change.own:
        return is_same_place(change.place, outcome.place)
    return outcome["ordinal"] < 0 and bool(outcome["refresh"]) == change.refresh


def _without_log(outcome: RecordedOutcome) -> EventDraft:
    return EventDraft(
        EventKind.JUDGED,
        outcome.applier,
        outcome["epoch"],
        outcome["group"],
        outcome["source"],
        outcome["source_epoch"],
        decided=outcome,
    )


def _logged_for(effect: EventDraft, here: Sequence[EventDraft]) -> EventDraft | None:
    """
    Return the decision for which an applier logged something, and note it there; a refresh stays an event.

    Args:
        effect: What it logged.
        here: The decisions on the row in the epoch in which it logged that.
    """
    wanted = {Verdict.REJECTED} if effect.kind is EventKind.REFRESHED else {Verdict.APPLIED, Verdict.MERGED}
    mine = [each for each in here if each.group == effect.group] or here
    found = [each for each in mine if each.verdict in wanted]
    if effect.kind is EventKind.REFRESHED:
        effect.cause = found[0] if found else None
        return None
    if not found:
        return None
    found[-1].logged = effect.change
    return found[-1]


def _heard(name: str, facts: StoryFacts, drafts: Sequence[EventDraft]) -> Iterator[EventDraft]:
    """Yield when a cluster learned that the other one had applied its changes and refreshes."""
    mine = [each for each in drafts if each.cluster == name and each.kind in (EventKind.COMMITTED, EventKind.REFRESHED)]
    waiting = sorted({each.epoch for each in mine})
    for apply, back in facts.came_back[name]:
        news = [epoch for epoch in waiting if epoch <= back]
        if news:
            waiting = waiting[len(news) :]
            cause = next((each for each in reversed(mine) if each.epoch == news[-1]), None)
            change = None if cause is None else cause.change
            yield EventDraft(EventKind.HEARD, name, apply.epoch, apply.group, name, back, change, cause=cause)


def _in_order_of_causes(drafts: Sequence[EventDraft], logs: Mapping[str, RowLog]) -> list[EventDraft]:
    """Return events by time, but none before its cause, and those of a cluster in its order."""
    queues = {
        name: sorted((each for each in drafts if each.cluster == name), key=lambda each: each.order) for name in logs
    }
    told: list[EventDraft] = []
    done: set[int] = set()
    while any(queues.values()):
        heads = [queue[0] for queue in queues.values() if queue]
        ready = [each for each in heads if each.cause is None or id(each.cause) in done] or heads
        chosen = min(ready, key=lambda each: (each.kind is EventKind.NOT_APPLIED, _time(each, logs)))
        queues[chosen.cluster].pop(0)
        told.append(chosen)
        done.add(id(chosen))
    return told


def _time(draft: EventDraft, logs: Mapping[str, RowLog]) -> int:
    """Return when the epoch of an event committed; what was before the first one comes first."""
    times = logs[draft.cluster].times
    is_early = draft.kind is EventKind.DEFINED or draft.epoch < next(iter(times), 0)
    return times.get(draft.epoch, 0 if is_early else _LATE)
