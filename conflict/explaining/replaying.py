"""
The rows of a story on their clusters: the reference applier does again what the result says that it did.

Each event is carried out on the cluster that the reference engine would have then: its rows, the setups in force, its
max replicated epoch. The result has the last word on a decision: an operation can depend on rows that are not in the
story. Of a log that starts in the middle, rows are known as far as it has shown them: see `conflict.engine.inference`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

import attrs

from conflict.config.definitions import DefinitionStep
from conflict.engine.inference.observed import ObservedCluster, ObservedPass
from conflict.engine.inference.rows import NOT_KNOWN, in_part, is_partial
from conflict.engine.reference.cluster import LoggedChange as Entry
from conflict.engine.reference.decide import compared_value, stored_value
from conflict.engine.reference.epoch_pass import ApplierStopped
from conflict.engine.reference.row_store import Row, RowKey
from conflict.explaining.drafts import EventDraft, StoryFacts
from conflict.explaining.events import EventKind
from conflict.explaining.row_changes import WantedRow, values_of
from conflict.explaining.statements import places_after
from conflict.history.model import Cluster, Start
from conflict.history.run import Run
from conflict.history.timeline import DefinitionChange, EpochApply, Position, RowChange, Transaction
from conflict.rules.decision import Cause, Verdict
from conflict.rules.functions import ConflictFunction, Image
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.types.values import ABSENT, Value


@attrs.frozen
class Heard:
    """
    What an event met.

    Attributes:
        met: The row before it; None if there was none, `NOT_KNOWN` if it is not known whether there was one.
        row: The columns of the row after it; None if there is none, or none is known.
        written: The columns that it wrote.
        came_back: The highest own epoch of the cluster that had come back; None if none is known.
        change: The operation as the applier's own table takes it.
        setup: How the cluster sets up the table; None if it has none.
        exists: Whether the row exists after it; None if that is not known.
        role: The role of the cluster.
    """

    met: Row | None
    row: Mapping[str, Value] | None
    written: Sequence[str] = ()
    came_back: int | None = None
    change: RowChange | None = None
    setup: TableSetup | None = None
    exists: bool | None = None
    role: Role = Role.NONE

    @property
    def function(self) -> ConflictFunction | None:
        """The conflict function of the table on the cluster; None if none is set."""
        return None if self.setup is None else self.setup.function

    @property
    def existed(self) -> bool | None:
        """Whether the row existed; None if that is not known."""
        return _exists(self.met)

    @property
    def as_brought(self) -> bool:
        """Whether the row was already as the operation leaves it."""
        after = None if self.change is None else self.change.after
        if after is None or self.met is None:
            return after is None and self.met is None
        pairs = zip(after.present, after.payloads, strict=True)
        return all(self.met.payloads.get(ordinal, ABSENT) == payload for ordinal, payload in pairs)

    def compared(self, function: ConflictFunction) -> tuple[int, int] | None:
        """Return the values that a function compared: that of the operation, and that of the row."""
        change, setup, met = self.change, self.setup, self.met
        if change is None or setup is None or met is None:
            return None
        image = change.before if function.spec.needs.get(change.operation) is Image.BEFORE else change.after
        if is_partial(met) and setup.table.ordinal(function.column or "") not in met.payloads:
            return None
        brought, stored = compared_value(image, function, setup.table), stored_value(met, function, setup.table)
        return None if brought is None or stored is None else (brought, stored)


@attrs.define
class ReplayedStory:
    """
    The clusters of a story while its events are carried out, each cluster's in its own order.

    Attributes:
        clusters: The clusters.
        layouts: How the rows of each table are read.
        statements: Per cluster, the statements that change definitions and are still to come, in order.
        came_back: Per cluster, its max replicated epoch from which epoch and group on.
        rows: The rows that are followed.
        entries: By the identity of an operation, it as the next applier takes it.
        starts: The first own epoch of each cluster whose log starts in the middle: rows are not followed before.
    """

    clusters: Mapping[str, ObservedCluster]
    layouts: Mapping[str, Mapping[str, RowLayout]]
    statements: dict[str, list[DefinitionChange]]
    came_back: Mapping[str, list[tuple[Position, int]]]
    rows: frozenset[WantedRow]
    entries: dict[int, Entry] = attrs.field(factory=dict)
    starts: Mapping[str, int] = MappingProxyType({})

    @classmethod
    def of(cls, run: Run, facts: StoryFacts, starts: Mapping[str, int]) -> ReplayedStory:
        """
        Return the clusters of a run before anything happened.

        Args:
            run: The run.
            facts: What is known of the story.
            starts: The first own epoch of each cluster whose log starts in the middle.
        """
        roles = {each.name: each.role for each in run.clusters}
        filtered = {each.name: run.filtered(each) for each in run.clusters}
        return cls.of_setups(run.setups.at_start, facts, starts, roles, filtered)

    @classmethod
    def of_setups(
        cls,
        setups: Mapping[str, dict[str, TableSetup]],
        facts: StoryFacts,
        starts: Mapping[str, int],
        roles: Mapping[str, Role],
        filtered: Mapping[str, Mapping[str, frozenset[str]]] = MappingProxyType({}),
    ) -> ReplayedStory:
        """Return the clusters before anything happened, given how their servers set up the tables and their roles."""
        clusters, layouts = {}, {name: log.layouts for name, log in facts.logs.items()}
        for name in facts.logs:
            start = Start(starts[name]) if name in starts else None
            cluster = Cluster(
                name,
                facts.server_ids[name],
                (),
                roles.get(name, Role.NONE),
                start,
                filtered=filtered.get(name, {}),
            )
            clusters[name] = ObservedCluster(cluster, setups[name], dict(layouts[name]))
        came_back = {
            name: [((apply.epoch, apply.group), back) for apply, back in facts.came_back(name) if back]
            for name in facts.logs
        }
        rows = frozenset(change.row for log in facts.logs.values() for change in log.changes if change.key)
        statements = {name: [*log.statements] for name, log in facts.logs.items()}
        return cls(clusters, layouts, statements, came_back, rows, starts=starts)

    def hear(self, draft: EventDraft) -> Heard:
        """Carry out an event on the row of its cluster, and return what it met; a row without a key is not followed."""
        cluster, moment = self.clusters[draft.cluster], (draft.epoch, draft.group)
        self._define(cluster, moment)
        steps = self.came_back[cluster.name]
        place = bisect_left(steps, (moment, 0))
        back = steps[place - 1][1] if place else None
        cluster.max_replicated_epoch = back or 0
        key, role = draft.row, cluster.role
        if key not in self.rows or draft.epoch < self.starts.get(cluster.name, 0):
            return Heard(NOT_KNOWN, None, came_back=back, setup=cluster.setups.get(draft.row[0]), role=role)
        met, change = cluster.store.get(key), None if draft.change is None else draft.change.logged
        written = None
        if draft.statement is not None:
            self._define(cluster, (draft.epoch, draft.group + 1))
            self._take_columns(draft.statement, cluster, key)
        elif change is not None:
            change, written = self._carry_out(draft, change, cluster)
        if written is not None:
            _keep_key(cluster, key, written)
        cluster.store.commit()
        names = () if written is None else tuple(values_of(written.after) or ())
        row = self._shown(cluster, key)
        exists = _exists(cluster.store.get(key))
        return Heard(met, row, names, back, change, cluster.setups.get(key[0]), exists, role)

    def _define(self, cluster: ObservedCluster, moment: Position) -> None:
        """Carry out the statements before a moment."""
        waiting = self.statements[cluster.name]
        while waiting and (waiting[0].epoch, waiting[0].group) < moment:
            cluster.define(waiting.pop(0))

    def _take_columns(self, statement: DefinitionStep, cluster: ObservedCluster, key: RowKey) -> None:
        """Take the columns of a row away that a table does not have after a statement."""
        places, row = places_after(statement, key[0]), cluster.store.get(key)
        if places is None:
            cluster.store.put(key, None)
        elif row is not None and row is not NOT_KNOWN:
            left = {place: payload for place, payload in row.payloads.items() if place in places}
            cluster.store.put(key, attrs.evolve(row, payloads=left))

    def _carry_out(
        self, draft: EventDraft, change: RowChange, cluster: ObservedCluster
    ) -> tuple[RowChange, RowChange | None]:
        """Carry out an operation, and return it as the cluster's own table takes it, and what it wrote of that."""
        moment = draft.epoch, draft.group
        if draft.kind is EventKind.JUDGED:
            return self._judge(draft, change, cluster)
        if draft.kind is EventKind.COMMITTED:
            cluster.make(change, Transaction(*moment, (change,)))
        elif draft.kind is EventKind.LOGGED:
            cluster.store.write(change, local=False, epoch=draft.epoch)
        elif draft.kind is EventKind.REFRESHED:
            row = cluster.store.get((change.table, change.key))
            if row is not None and row is not NOT_KNOWN:
                cluster.store.put((change.table, change.key), row.changed_here(draft.epoch))
        if draft.kind not in (EventKind.COMMITTED, EventKind.LOGGED, EventKind.REFRESHED):
            return change, None
        ordinal = 0 if draft.kind is EventKind.COMMITTED else -1
        self.entries[id(draft.change)] = Entry(
            change, draft.group, ordinal, cluster.server_id, cluster.setups.get(change.table)
        )
        return change, None if draft.kind is EventKind.REFRESHED else change

    def _judge(
        self, draft: EventDraft, change: RowChange, cluster: ObservedCluster
    ) -> tuple[RowChange, RowChange | None]:
        """Let the reference applier decide on an operation, and see to it that the row is as the result says."""
        source, group = self.clusters[draft.source], draft.operation_group
        entry = self.entries.get(id(draft.change))
        if entry is None:  # a reflected operation
            entry = Entry(change, group, -1, source.server_id, source.setups.get(change.table))
        in_conflict = draft.decided is not None and draft.decided["cause"] == Cause.TRANS_IN_CONFLICT.name
        rejected = frozenset({entry.group}) if in_conflict else frozenset[int]()
        apply = EpochApply(draft.epoch, draft.group, draft.source, draft.source_epoch)
        current = ObservedPass(cluster, source.cluster, apply, rejected)
        with suppress(ApplierStopped):
            current.handle(entry)
        decided = current.decided[-1] if current.decided else None
        taken = change if decided is None else decided.entry.change
        verdict = None if decided is None else decided.decision.verdict
        if (verdict is Verdict.APPLIED) != (draft.verdict is Verdict.APPLIED):
            cluster.store.roll_back()
            if draft.verdict is Verdict.APPLIED:
                cluster.store.write(taken, local=False, epoch=draft.epoch)
        return taken, taken if draft.verdict is Verdict.APPLIED else None

    def _shown(self, cluster: ObservedCluster, key: RowKey) -> dict[str, Value] | None:
        """Return the columns of a row that are known."""
        row = cluster.store.get(key)
        if row is None or row is NOT_KNOWN:
            return None
        places = tuple(sorted(row.payloads))
        layout = self.layouts[cluster.name].get(key[0]) or next(
            each[key[0]] for each in self.layouts.values() if key[0] in each
        )
        return values_of(RowImage(layout, places, tuple(row.payloads[place] for place in places)))


def _exists(row: Row | None) -> bool | None:
    """Whether a row exists; None if that is not known."""
    return None if row is NOT_KNOWN else row is not None


def _keep_key(cluster: ObservedCluster, key: RowKey, change: RowChange) -> None:
    """Note the key of a row of which not all is known: the before image of an operation on it carries it."""
    row, setup = cluster.store.get(key), cluster.setups.get(key[0])
    if row is None or not is_partial(row) or setup is None or change.before is None:
        return
    before = zip(change.before.present, change.before.payloads, strict=True)
    own = {place: payload for place, payload in before if place in setup.table.key_ordinals}
    cluster.store.put(key, in_part(row, {**own, **row.payloads}))
