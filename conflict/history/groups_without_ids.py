"""
The groups of an epoch whose events have no transaction ids (`ndb_log_transaction_id=OFF`).

The events of an NDB transaction stand together in the binlog. Of an epoch apply, the row changes and the reflected
rows come first, then the `ndb_apply_status` row of the foreign epoch, then the refreshes. So their order divides the
log into epoch applies, and into the cluster's own changes between them. Own transactions that follow each other stay
one group.

`conflict/ingestion/kernels/epochs.py` has the same rules over arrays.
"""

from __future__ import annotations

from enum import IntEnum

import attrs

__all__ = ["GroupsWithoutIds", "Part"]


class Part(IntEnum):
    """What part of a group an event is."""

    OWN = 1
    ARRIVING = 2
    STATUS = 3
    REFRESH = 4


@attrs.define
class GroupsWithoutIds:
    """Numbers the groups of one epoch by the order of its events."""

    _number: int = 0
    _last: Part | None = None

    def group_of(self, part: Part) -> tuple[str, int]:
        """Return the identity of the group of the event that comes next."""
        last = self._last
        if part is Part.REFRESH:
            goes_on = last in (Part.ARRIVING, Part.STATUS)
            self._last = last if goes_on else Part.ARRIVING
        else:
            goes_on = last is part is not Part.STATUS or (part is Part.STATUS and last is Part.ARRIVING)
            self._last = part
        self._number += not goes_on
        return "without id", self._number
