"""
Operations that are put into quiet recordings: what a server or an operator would have left in the binlogs.

A place is taken only where what follows is known without an engine: the rows concerned are not changed again by
anyone, and the max replicated epochs that come out otherwise meet no change of a row that they could decide.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import attrs

from conflict.config.configuration import Configuration
from ndb_formats.events.row_image import RowImage
from ndb_formats.types.values import Value
from tests.faults.edited_logs import EditedLog, EditedPair, LoggedEpoch, LoggedRow, Row

T = TypeVar("T")
Values = dict[int, bytes | None]


@attrs.frozen(eq=False)
class Planted:
    """
    A fault in a recording.

    Attributes:
        kind: What it is.
        configuration: The run on the edited logs.
        names: What a result must name: an epoch, a table, or a row.
        applier: Cluster whose applier it concerns; empty for none.
        source_epochs: Epochs of the other cluster whose decisions it concerns.
        truth: Logs that hold all that happened on each cluster.
        given: The edited logs, where they do not hold all that happened.
        changed: Whether any byte of the given logs differs from those of the recording.
        place: For people.
    """

    kind: str
    configuration: Configuration = attrs.field(repr=False)
    names: tuple[object, ...]
    applier: str = ""
    source_epochs: frozenset[int] = frozenset()
    truth: tuple[EditedLog, EditedLog] = attrs.field(kw_only=True, repr=False)
    given: tuple[EditedLog, EditedLog] | None = attrs.field(default=None, repr=False)
    changed: bool = True
    place: str = ""

    @property
    def loses(self) -> bool:
        """Whether epochs are in no log."""
        return self.kind.startswith(("incident, epochs", "missing")) and not self.kind.endswith("other log")


Plant = Callable[[EditedPair, Path, random.Random], Iterator[Planted]]  # its places, in seeded order


def shuffled(items: Sequence[T], chance: random.Random) -> list[T]:
    """Return items in another order."""
    return chance.sample(items, len(items))


def final_rows(log: EditedLog) -> dict[Row, dict[str, Value]]:
    """Return the rows at the end of a log, as it shows them: what its cluster changed, and what its applier did."""
    found = dict[Row, dict[str, Value]]()
    for row in (row for each in log.epochs for row in each.rows() if row.key):
        if row.after is None:
            found.pop(row.row, None)
        else:
            found[row.row] = {**found.get(row.row, {}), **_shown(row.before), **_shown(row.after)}
    return found


def _shown(image: RowImage | None) -> dict[str, Value]:
    return {} if image is None else image.by_name()


def values_of(image: RowImage | None) -> Values:
    return {} if image is None else dict(zip(image.present, image.payloads, strict=True))


def _of_group(own: LoggedEpoch, row: LoggedRow, group: int | None, epoch: int) -> bool:
    """Whether a row belongs to a group of an applied epoch."""
    if row.status is not None:
        return row.status[1] == epoch and row.transaction_id == group
    return row.transaction_id == group and any(
        number == epoch and each == group for (_, number), each in own.applied().items()
    )


def of_groups(groups: Sequence[tuple[int | None, int]]) -> Callable[[LoggedEpoch, LoggedRow], bool]:
    """Return what tells the rows of some groups, each given with the epoch that was applied."""
    return lambda own, row: any(_of_group(own, row, *each) for each in groups)


def is_simple(pair: EditedPair, side: int, own: LoggedEpoch, epoch: int, group: int | None) -> bool:
    """Whether all changes of an epoch were applied as they were, and none of their rows was changed afterwards."""
    log, source = pair.logs[side], pair.logs[1 - side]
    made = next((each for each in source.epochs if each.number == epoch), None)
    if made is None or group is None:
        return False
    sent, arrived = [row.row for row in made.own() if row.key], [row.row for row in own.group(group)]
    if not sent or sorted(sent) != sorted(arrived) or len(set(sent)) < len(sent):
        return False
    rows = set(sent)
    if any(row.row in rows for row in own.rows() if row.transaction_id != group):
        return False
    if any(row.row in rows for row in made.rows() if not row.own):
        return False
    return not any(
        row.row in rows
        for each, after in ((log, own.number), (source, epoch))
        for later in each.epochs
        if later.number > after
        for row in later.rows()
    )


def decide_the_same(pair: EditedPair, edited: EditedPair, without: Collection[tuple[int, int]] = ()) -> bool:
    """
    Whether other max replicated epochs change no decision.

    Args:
        pair: The recording.
        edited: What became of it.
        without: Sides, and epochs of the other one that these did not apply, whose own changes do not count.
    """
    for side in (0, 1):
        before, after = pair.highest(side), _highest_without(edited, side, {each for at, each in without if at == side})
        own = pair.logs[side].epochs
        for epoch in edited.logs[1 - side].epochs:
            first, last = sorted((before[epoch.number], after[epoch.number]))
            changed = {row.row for each in own if first < each.number <= last for row in each.rows() if row.key}
            if (side, epoch.number) not in without and any(row.row in changed for row in epoch.rows()):
                return False
    return True


def _highest_without(pair: EditedPair, side: int, skipped: set[int]) -> dict[int, int]:
    """Return the max replicated epochs of a side that never applied some epochs."""
    own, found, highest = pair.logs[side].server_id, dict[int, int](), 0
    for epoch in pair.logs[1 - side].epochs:
        found[epoch.number] = highest
        if epoch.number not in skipped:
            highest = max([highest, *(number for server, number in epoch.applied() if server == own)])
    return found
