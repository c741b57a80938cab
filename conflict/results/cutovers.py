"""
Channels that moved to other SQL nodes, and epochs that an applier applied again: what the schedule shows of both.

A binlog names the SQL node from whose binlog an epoch was applied. Which SQL node applied it is in no binlog: see
`conflict.history.scheduling.servers.with_servers`. Computes docs/result.md, "Channels that move".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs
import pyarrow as pa

from conflict.engine.ledger.layout import ROW_KEY
from conflict.history.epochs import MICROSECONDS
from conflict.history.grid.folder import Folder
from conflict.history.grid.schemas import table_of_rows
from conflict.history.timeline import EpochApply

# The rows of an epoch that was applied again, and the own epoch of its applier in which it was.
REPEATED = pa.schema(
    [
        ("source", pa.string()),
        ("source_epoch", pa.uint64()),
        ("epoch", pa.uint64()),
        ("table", pa.string()),
        ("operation", pa.string()),
        *ROW_KEY,
    ]
)


@attrs.frozen
class Cutover:
    """
    A channel that moved.

    Attributes:
        applier: The applying cluster.
        source: The other one.
        epoch: Own epoch of the applier in which the first epoch came through the other SQL nodes.
        committed: Microsecond since 1970 at which that committed, as the applier's log says; None if not known.
        last_epoch: The last epoch of the source before, as far as epochs left a trace.
        first_epoch: The first epoch of the source from then on.
        source_servers: Server ids of the SQL nodes of the source whose log was read, before and from then on.
        applier_servers: Server ids of the SQL nodes that are taken to have applied, before and from then on.
    """

    applier: str
    source: str
    epoch: int
    committed: int | None
    last_epoch: int
    first_epoch: int
    source_servers: tuple[int, int]
    applier_servers: tuple[int, int]


RowOfEpoch = tuple[str, str, str, bytes | None]  # table, operation, and the key as text and as identity


@attrs.frozen
class Repeat:
    """
    An epoch that an applier applied again.

    Attributes:
        applier: The applying cluster.
        source: The cluster that made it.
        source_epoch: The epoch.
        first: Own epoch in which it was applied first.
        epoch: Own epoch in which it was applied again.
        shown: Whether the applier's log shows it; else it follows from epochs around it.
        changes: Its row changes.
    """

    applier: str
    source: str
    source_epoch: int
    first: int
    epoch: int
    shown: bool
    changes: tuple[RowOfEpoch, ...] = attrs.field(default=(), repr=False)


@attrs.frozen
class ChannelMoves:
    """
    What became of the channels of a run.

    Attributes:
        cutovers: Where they moved.
        repeats: Epochs that were applied again, whether a channel moved or a replica was set back.
    """

    cutovers: tuple[Cutover, ...] = ()
    repeats: tuple[Repeat, ...] = ()

    @property
    def repeated(self) -> dict[str, set[int]]:
        """By source, the epochs that were applied again by any applier."""
        found: dict[str, set[int]] = {}
        for each in self.repeats:
            found.setdefault(each.source, set()).add(each.source_epoch)
        return found

    def with_changes(self, changes: Mapping[tuple[str, int], Sequence[RowOfEpoch]]) -> ChannelMoves:
        """Return it with the row changes of the epochs, by source and epoch."""
        rows = {place: tuple(each) for place, each in changes.items()}
        repeats = (attrs.evolve(each, changes=rows.get((each.source, each.source_epoch), ())) for each in self.repeats)
        return attrs.evolve(self, repeats=tuple(repeats))

    def to_json(self, skipped: Collection[tuple[str, str, int]]) -> dict[str, Any]:
        """
        Return the part of `run.json` that holds them.

        Args:
            skipped: Applier, source and epoch of each epoch that was never applied.
        """
        return {
            "cutovers": [self._cutover(each, skipped) for each in self.cutovers],
            "repeated_epochs": [
                {
                    **{name: getattr(each, name) for name in ("applier", "source", "source_epoch", "first", "epoch")},
                    "shown": each.shown,
                    "changes": dict(Counter(table for table, *_ in each.changes)),
                }
                for each in self.repeats
            ],
        }

    def _cutover(self, each: Cutover, skipped: Collection[tuple[str, str, int]]) -> dict[str, Any]:
        again = [
            repeat.source_epoch
            for repeat in self.repeats
            if (repeat.applier, repeat.source) == (each.applier, each.source)
            and repeat.epoch >= each.epoch
            and repeat.source_epoch <= each.last_epoch
        ]
        never = [
            epoch
            for applier, source, epoch in skipped
            if (applier, source) == (each.applier, each.source) and each.last_epoch < epoch < each.first_epoch
        ]
        moment = None if each.committed is None else datetime.fromtimestamp(each.committed / MICROSECONDS, UTC)
        committed = None if moment is None else moment.isoformat()
        return {**attrs.asdict(each), "committed": committed, "applied_again": again, "never_applied": never}


def moves_of(applies: Mapping[str, Sequence[EpochApply]], committed: Mapping[str, Mapping[int, int]]) -> ChannelMoves:
    """
    Return what became of channels.

    Args:
        applies: Per applier, its epoch applies in order, with the SQL nodes at both ends.
        committed: Per cluster, microsecond since 1970 at which own epochs committed.
    """
    cutovers, repeats = list[Cutover](), list[Repeat]()
    for applier, own in applies.items():
        for source in dict.fromkeys(each.source for each in own):
            mine = [each for each in own if each.source == source and each.applied]
            cutovers += _cutovers(applier, mine, committed.get(applier, {}))
            repeats += _repeats(applier, mine)
    return ChannelMoves(tuple(cutovers), tuple(repeats))


def _cutovers(applier: str, applies: Sequence[EpochApply], committed: Mapping[int, int]) -> Iterator[Cutover]:
    before: EpochApply | None = None
    for each in (each for each in applies if each.traced):
        if before is not None and each.source_server != before.source_server:
            yield Cutover(
                applier,
                each.source,
                each.epoch,
                committed.get(each.epoch),
                before.foreign_epoch,
                each.foreign_epoch,
                (before.source_server, each.source_server),
                (before.server, each.server),
            )
        before = each


def _repeats(applier: str, applies: Sequence[EpochApply]) -> Iterator[Repeat]:
    first: dict[int, int] = {}
    for each in applies:
        if each.foreign_epoch in first:
            yield Repeat(applier, each.source, each.foreign_epoch, first[each.foreign_epoch], each.epoch, each.traced)
        first.setdefault(each.foreign_epoch, each.epoch)


def repeated_path(applier: str) -> str:
    """Return the path of the rows of epochs that an applier applied again."""
    return f"repeated_epochs/applier={applier}.parquet"


def write_repeats(out: Folder, moves: ChannelMoves) -> None:
    """Write the rows of epochs that were applied again."""
    for applier in dict.fromkeys(each.applier for each in moves.repeats):
        rows = [
            (each.source, each.source_epoch, each.epoch, *change)
            for each in moves.repeats
            if each.applier == applier
            for change in each.changes
        ]
        out.write_table(repeated_path(applier), table_of_rows(rows, REPEATED))
