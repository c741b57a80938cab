"""
Since when rows differ between the clusters of a simulation, and for how long they did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from conflict.reference.row_store import RowKey, RowStore

__all__ = ["Differences"]


@attrs.define(eq=False)
class Differences:
    """
    The rows that are not the same on all clusters.

    Attributes:
        stores: The rows of each cluster.
        since: Since when each row differs.
        stale: For how long rows differed.
        row_time: The sum of these.
        differed: For how long any row did, but for those that do now.
        began: Since when any does.
    """

    stores: Sequence[RowStore]
    since: dict[RowKey, int] = attrs.field(factory=dict)
    stale: list[int] = attrs.field(factory=list)
    row_time: int = 0
    differed: int = 0
    began: int = 0

    def note(self, keys: Iterable[RowKey], now: int) -> None:
        """Look at rows that a cluster changed just now."""
        for key in keys:
            differs, since = self._differs(key), self.since.get(key)
            if differs and since is None:
                self.began = self.began if self.since else now
                self.since[key] = now
            elif not differs and since is not None:
                del self.since[key]
                self.stale.append(now - since)
                self.row_time += now - since
                if not self.since:
                    self.differed += now - self.began

    def forget(self, now: int) -> None:
        """Begin anew; rows that differ do so from now on."""
        self.since = dict.fromkeys(self.since, now)
        self.stale, self.row_time, self.differed, self.began = [], 0, 0, now

    def _differs(self, key: RowKey) -> bool:
        first, *others = [store.get(key) for store in self.stores]
        for row in others:
            if first is None or row is None:
                if first is not row:
                    return True
            elif first.payloads != row.payloads and any(
                first.payloads.get(column) != row.payloads.get(column) for column in {*first.payloads, *row.payloads}
            ):
                return True
        return False
