"""
The rows of a story on their clusters: what the result says that happened is done once more, on rows of the engine.

Nothing is judged again. Of a log that starts in the middle, rows are known as far as it has shown them: see
`conflict.engine.inference`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import attrs

from conflict.config.definitions import DefinitionStep
from conflict.engine.inference.observed import ObservedCluster
from conflict.engine.inference.rows import NOT_KNOWN, in_part, is_partial
from conflict.engine.reference.cluster import LoggedChange
from conflict.engine.reference.decide import compared_value, stored_value
from conflict.engine.reference.epoch_pass import as_taken
from conflict.engine.reference.row_store import Row, RowKey
from conflict.engine.reference.spelling import as_spelled_here
from conflict.explaining.drafts import EventDraft, StoryFacts
from conflict.explaining.events import EventKind
from conflict.explaining.outcomes import RecordedOutcome
from conflict.explaining.row_changes import WantedRow, values_of
from conflict.explaining.statements import places_after
from conflict.history.model import Cluster, Start
from conflict.history.timeline import DefinitionChange, Position, RowChange
from conflict.rules.functions import ConflictFunction
from conflict.rules.own_rule import Image
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from ndb_formats.types.values import ABSENT, Value


@attrs.frozen
class CarriedOut:
    """
    What an event met, and what it left.

    Attributes:
        met: The row before it; None if there was none, `NOT_KNOWN` if it is not known whether there was one.
        row: The columns of the row after it; None if there is none, or none is known.
        exists: Whether the row exists after it; None if that is not known.
        setup: How the cluster sets up the table; None if it has none.
        role: The role of the cluster.
        change: The operation as the cluster's own table takes it.
        written: The columns that it wrote.
    """

    met: Row | None
    row: Mapping[str, Value] | None
    exists: bool | None
    setup: TableSetup | None
    role: Role
    change: RowChange | None = None
    written: Sequence[str] = ()

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
class StoryRows:
    """
    The rows of a story while its events are carried out, each cluster's in its own order.

    Attributes:
        clusters: The clusters.
        statements: Per cluster, the statements that change definitions and are still to come, in order.
        rows: The rows that are followed.
    """

    clusters: Mapping[str, ObservedCluster]
    statements: Mapping[str, list[DefinitionChange]]
    rows: frozenset[WantedRow]

    @classmethod
    def of(
        cls,
        facts: StoryFacts,
        setups: Mapping[str, dict[str, TableSetup]],
        roles: Mapping[str, Role] = MappingProxyType({}),
    ) -> StoryRows:
        """
        Return the rows before anything happened.

        Args:
            facts: What is known of the story.
            setups: Per cluster, how its server sets up each table at the start.
            roles: The roles of the clusters that have one.
        """
        every = {table: layout for log in facts.logs.values() for table, layout in log.layouts.items()}
        clusters = {}
        for name, log in facts.logs.items():
            start = Start(facts.starts[name]) if name in facts.starts else None
            cluster = Cluster(name, facts.server_ids[name], (), roles.get(name, Role.NONE), start)
            clusters[name] = ObservedCluster(cluster, setups[name], {**every, **log.layouts})
        rows = frozenset(change.row for log in facts.logs.values() for change in log.changes if change.key)
        return cls(clusters, {name: [*log.statements] for name, log in facts.logs.items()}, rows)

    def carry_out(self, draft: EventDraft) -> CarriedOut:
        """Carry out an event on the row of its cluster; a row without a key is not followed, nor one before a start."""
        cluster, row = self.clusters[draft.cluster], draft.row
        self._define(cluster, (draft.epoch, draft.group))
        draft.setup = setup = cluster.setups.get(row[0])
        start = cluster.cluster.start
        if row not in self.rows or (start is not None and draft.epoch < start.epoch):
            return CarriedOut(NOT_KNOWN, None, None, setup, cluster.role)
        met, change = cluster.store.get(row), None
        if draft.statement is not None:
            self._define(cluster, (draft.epoch, draft.group + 1))
            _take_columns(draft.statement, cluster, row)
        elif draft.kind is EventKind.REFRESHED and met is not None and met is not NOT_KNOWN:
            cluster.store.put(row, met.changed_here(draft.epoch))
        elif draft.writes:
            change = _write(draft, cluster)
        cluster.store.commit()
        left = cluster.store.get(row)
        written = () if change is None else tuple(values_of(change.after) or ())
        return CarriedOut(met, _shown(cluster, row), _exists(left), setup, cluster.role, change, written)

    def _define(self, cluster: ObservedCluster, moment: Position) -> None:
        """Carry out the statements before a moment."""
        waiting = self.statements[cluster.name]
        while waiting and (waiting[0].epoch, waiting[0].group) < moment:
            cluster.define(waiting.pop(0))


def _take_columns(statement: DefinitionStep, cluster: ObservedCluster, key: RowKey) -> None:
    """Take the columns of a row away that a table does not have after a statement."""
    places, row = places_after(statement, key[0]), cluster.store.get(key)
    if places is None:
        cluster.store.put(key, None)
    elif row is not None and row is not NOT_KNOWN:
        left = {place: payload for place, payload in row.payloads.items() if place in places}
        cluster.store.put(key, attrs.evolve(row, payloads=left))


def _write(draft: EventDraft, cluster: ObservedCluster) -> RowChange:
    """Write an operation to its row, and return it as the cluster's own table takes it."""
    assert draft.change is not None
    change, setup = draft.change.logged, draft.setup
    written = change
    if draft.verdict is not None and draft.verdict.writes_row and setup is not None:
        source = None if draft.cause is None else draft.cause.setup
        change = as_taken(LoggedChange(change, draft.operation_group, -1, 0, source), setup)[0].change
        change = change if draft.decided is None else _merged(change, draft.decided, cluster.store.get(draft.row))
        written = as_spelled_here(change, cluster.store.get(draft.row), setup.table)
    cluster.store.write(written, local=draft.kind is EventKind.COMMITTED, epoch=draft.epoch)
    _keep_key(cluster, draft.row, change)
    return change


def _merged(change: RowChange, decided: RecordedOutcome, row: Row | None) -> RowChange:
    """Return an operation with what a merge wrote in its place, if it was merged."""
    image = change.before if change.after is None else change.after
    if not decided.merged or image is None:
        return change
    written = {image.layout.names.index(each["name"]): each["payload"] for each in decided.merged}
    if row is None:  # an insert brings the key
        written = dict(zip(image.present, image.payloads, strict=True)) | written
    after = RowImage(image.layout, tuple(written), tuple(written.values()))
    operation = Operation.WRITE_ROW if row is None else Operation.UPDATE_ROW
    return attrs.evolve(change, operation=operation, after=after)


def _shown(cluster: ObservedCluster, key: RowKey) -> dict[str, Value] | None:
    """Return the columns of a row that are known."""
    row = cluster.store.get(key)
    if row is None or row is NOT_KNOWN:
        return None
    places = tuple(sorted(row.payloads))
    return values_of(RowImage(cluster.layouts[key[0]], places, tuple(row.payloads[place] for place in places)))


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
