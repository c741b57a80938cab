"""
What a resolver of one's own is shown of an operation and of the row that it meets, and what a merge makes of both.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from conflict.engine.reference.row_store import Row
from conflict.errors import ConfigurationError
from conflict.history.row_identities import payloads_of
from conflict.history.timeline import RowChange
from conflict.rules.decision import Decision, IncomingOperation, RowState
from conflict.rules.own_rule import Read
from conflict.rules.seen import ColumnValues, FoundRow, IncomingChange
from conflict.rules.table_setup import TableSetup
from ndb_formats.errors import FormatError
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import Operation
from ndb_formats.types.values import MaybeValue

_NOTHING: Mapping[str, MaybeValue] = {}


@attrs.frozen
class Sight:
    """
    What there is to see of an operation besides what every conflict function sees.

    Attributes:
        setup: The table on the applier's cluster.
        layout: How its rows are read.
        site: Server id under which the operation is logged.
        committed: When it committed there; see `conflict.rules.seen.FoundRow`.
        hides_update: Whether it is a write that may be an update, by how its cluster logs the table.
    """

    setup: TableSetup
    layout: RowLayout
    site: int
    committed: int | None
    hides_update: bool = False

    def of(
        self, reads: frozenset[Read], state: RowState, row: Row | None, incoming: IncomingOperation, change: RowChange
    ) -> tuple[FoundRow, IncomingChange]:
        """Return the row and the operation with all that a rule reads."""
        by = None if row is None else row.by
        epochs, sites, times = Read.EPOCHS in reads, Read.SITES in reads, Read.TIMES in reads
        found = FoundRow(
            state.exists,
            (epochs or sites) and state.local,
            state.epoch if epochs else 0,
            state.value,
            self._values(reads, None if row is None else row.stored(self.setup, self.layout)),
            by.site if by is not None and sites else None,
            by.committed if by is not None and times else None,
            state.local and state.epoch > incoming.max_replicated_epoch if Read.UNSEEN in reads else None,
        )
        arriving = IncomingChange(
            incoming.operation,
            incoming.before,
            incoming.after,
            incoming.max_replicated_epoch if epochs else 0,
            self._values(reads, payloads_of(change.before)),
            self._values(reads, payloads_of(change.after)),
            self.site if sites else None,
            self.committed if times else None,
            self.setup.table.primary_key,
        )
        return found, arriving

    def _values(self, reads: frozenset[Read], payloads: Mapping[int, bytes | None] | None) -> Mapping[str, MaybeValue]:
        if payloads is None or Read.VALUES not in reads:
            return _NOTHING
        return ColumnValues(self.setup.table, self.layout, payloads)


def merged_change(
    change: RowChange, decision: Decision, row: Row | None, setup: TableSetup, layout: RowLayout
) -> RowChange:
    """
    Return the operation that a merge is: an update with the columns that it writes; a write if there is no row.

    Raises:
        ConfigurationError: It writes a column that is not there or part of the key, or no value of its type.
    """
    table, name = setup.table, "" if setup.function is None else setup.function.spec.name
    written: dict[int, bytes | None] = {} if row is not None else payloads_of(change.after)
    for column, value in decision.writes:
        if table.find(column) is None or table.ordinal(column) in table.key_ordinals:
            message = f"function {name} merges column {column}, which is no column of {table.full_name} besides the key"
            raise ConfigurationError(message)
        place = table.ordinal(column)
        try:
            written[place] = None if value is None else layout.codecs[place].encode(value)
        except (FormatError, ValueError, TypeError, OverflowError, AttributeError) as error:
            of = table.columns[place].sql_type
            message = f"function {name} merges {column} = {value!r}, which no {of} holds ({error})"
            raise ConfigurationError(message) from error
    images = (*payloads_of(change.before).items(), *payloads_of(change.after).items())
    written |= {place: payload for place, payload in images if place in table.key_ordinals}
    places = tuple(sorted(written))
    after = RowImage(layout, places, tuple(written[place] for place in places))
    operation = Operation.WRITE_ROW if row is None else Operation.UPDATE_ROW
    return attrs.evolve(change, operation=operation, after=after, unknown=frozenset())
