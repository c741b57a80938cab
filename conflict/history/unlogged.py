"""
Rows that are not what their cluster's log says: changed without a log, or set back when all data nodes went down.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import attrs

from conflict.history.timeline import END, Origin, Position

if TYPE_CHECKING:  # numpy is not loaded for the help of commands
    from conflict.history.restarts import Disconnect


class UnloggedKind(Enum):
    """What a change without a log did to a row, or a crash to its last changes."""

    CHANGED = "changed"
    INSERTED = "inserted"
    DELETED = "deleted"
    GONE = "gone"
    MAY_BE_GONE = "may be gone"

    @property
    def by_crash(self) -> bool:
        """Whether data nodes that went down took changes of the row (see `conflict.history.reading.crashes`)."""
        return self in {UnloggedKind.GONE, UnloggedKind.MAY_BE_GONE}


@attrs.frozen
class UnloggedChange:
    """
    A row that a cluster changed without a log, or that a crash set back.

    See `conflict.history.reading.unlogged_changes`, and `crashes` beside it.

    Attributes:
        table: ``database.table``.
        key: Identity of the row.
        kind: What happened to it.
        after: Own position of the last change of the row that the log holds before.
        shown: Own position of the change that shows it; after a crash, of the first epoch.
        origin: Where that change is logged; None for a refresh. Of a crash, where its incident is.
        kept: After a crash, own position of the last change of the row that survived; `START` if the row is as before
            the log. None if it is not known which one that is.
    """

    table: str
    key: bytes
    kind: UnloggedKind
    after: Position
    shown: Position
    origin: Origin | None = None
    kept: Position | None = None


@attrs.frozen
class Crash:
    """
    A restart of all data nodes of a cluster from a global checkpoint.

    Attributes:
        disconnect: The incident.
        last: The last own epoch before it.
        first: The first one after it; None if there is none.
        durable: The last GCI that has certainly survived.
        latest: The last GCI that can have survived.
    """

    disconnect: Disconnect
    last: int
    first: int | None
    durable: int
    latest: int

    @property
    def shown(self) -> Position:
        """The own position up to which rows are not what the log says."""
        return END if self.first is None else (self.first, 0)

    @property
    def origin(self) -> Origin:
        """Where the incident is logged."""
        return Origin(self.disconnect.file, self.disconnect.position)
