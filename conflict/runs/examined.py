"""
Which epoch applies are looked at for the moments at which their rows were judged, and with which of their rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import attrs
import numpy as np

from conflict.engine.columnar.contested import ContestedRows
from conflict.history.grid.epoch_files import read_epoch_sizes
from conflict.history.model import Position
from conflict.runs.resolve_run import ResolveRun
from conflict.runs.resolve_stages import Resolved

__all__ = ["Examined"]

# So many rows that may be open are looked at, and so many row changes of epochs that are looked at with all their rows:
# each is tried by the reference engine.
MAX_OPEN_ROWS, MAX_OPEN_CHANGES = 300_000, 30_000


@attrs.define
class Examined:
    """
    What is looked at.

    Attributes:
        rows: By applier and own position of the epoch apply, the rows; None for all rows of the epoch.
        left: How many epoch applies with rows that may be open were too many, the last time.
    """

    rows: dict[str, dict[Position, ContestedRows | None]]
    left: int = 0

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))

    def add_open(self, resolved: Resolved, run: ResolveRun) -> bool:
        """
        Add the rows of a result that may be open, the first ones up to a limit; return whether any is new.

        Where transactions are judged and the binlogs contradict the result, they may have been judged otherwise. Then
        all rows of an epoch are looked at, as where they are asked for.
        """
        contradicted = any(summary.contradicted for summary in resolved.summaries)
        whole = run.options.whole_open_epochs or (run.needs_rounds and contradicted)
        chosen = _first(resolved, run, whole=whole)
        self.left = len(np.unique(resolved.contested.apply)) - len(np.unique(chosen.apply))
        added = [
            self._add(name, place, None if whole else rows)
            for name, own in resolved.rows_at(chosen).items()
            for place, rows in own.items()
        ]
        return any(added)

    def add_whole(self, positions: Mapping[str, AbstractSet[Position]]) -> bool:
        """Add epoch applies with all rows, by applier and own position; return whether any is new."""
        added = [self._add(name, place, None) for name, own in positions.items() for place in own]
        return any(added)

    def _add(self, name: str, place: Position, rows: ContestedRows | None) -> bool:
        known = self.rows[name]
        if place not in known or (rows is None and known[place] is not None):
            known[place] = rows
            return True
        before = known[place]
        if before is None or rows is None:
            return False
        joined = ContestedRows.joined([before, rows])
        _, first = np.unique(np.stack([joined.bucket, joined.key]), axis=1, return_index=True)
        known[place] = joined.chosen(np.sort(first))
        return len(first) > len(before)


def _first(resolved: Resolved, run: ResolveRun, *, whole: bool) -> ContestedRows:
    """Return the rows that may be open of the first epoch applies, up to a limit."""
    rows, applies = resolved.contested, resolved.found.applies
    numbers, starts = np.unique(rows.apply, return_index=True)
    ends = np.append(starts, len(rows))[1:]
    read, most = ends, MAX_OPEN_ROWS
    if whole:
        changes = [
            read_epoch_sizes(run.history, name, len(segments)) for name, segments in run.manifest.segments.items()
        ]
        epochs = zip(applies.applier[numbers].tolist(), applies.foreign_epoch[numbers].tolist(), strict=True)
        read, most = np.cumsum([changes[1 - applier].get(epoch, 0) for applier, epoch in epochs]), MAX_OPEN_CHANGES
    kept = int(np.searchsorted(read, most, "right"))
    return rows.chosen(slice(0, int(ends[kept - 1]) if kept else 0))
