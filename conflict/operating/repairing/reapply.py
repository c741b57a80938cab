"""
Changes of users that were lost are applied again: of each row the last ones, as many as fit together.

Computes docs/repair.md, "Lost changes"; `conflict.operating.repairing.fitting` has when a change fits.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

import attrs
import pyarrow as pa

from conflict.engine.reference.row_store import RowKey
from conflict.history.timeline import Origin, Transaction
from conflict.operating.repairing.ended_run import EndedRun, origin_of
from conflict.operating.repairing.fitting import LostChange, Reapplied, RowAgain, Story, UnfitError, place_of
from conflict.operating.repairing.newest import ChangeOrder
from conflict.rules.decision import Cause


def lost_in_history(ended: EndedRun, lost: pa.Table) -> list[LostChange]:
    """Return lost changes as the History has them, in the order in which they committed."""
    why = {origin_of(row): (_why(row), row["cause"] == Cause.TRANS_IN_CONFLICT.name) for row in lost.to_pylist()}
    found = []
    for name in ended.clusters:
        for item in ended.cluster(name).cluster.timeline:
            if isinstance(item, Transaction):
                position = item.epoch, item.group
                own = (each for each in item.changes if each.origin in why)
                found += [
                    LostChange(name, position, each, *why[each.origin]) for each in own if each.origin is not None
                ]
    return sorted(
        found, key=lambda each: (ended.committed_at(each.cluster, each.position[0]), each.cluster, each.position)
    )


def _why(row: Mapping[str, object]) -> str:
    if row["cause"] is None:
        return "overwritten unseen"
    return f"rejected by {row['rejected_by']}, {row['own_cause'] or row['cause']}"


@attrs.frozen(eq=False)
class Allowed:
    """
    What may be applied again.

    Attributes:
        deletes: Whether lost deletes may.
        raises: Whether the column that a function compares may get a greater value than any change set.
        failed: Rows that may not be repaired, and why.
    """

    deletes: bool = False
    raises: bool = False
    failed: Mapping[RowKey, str] = attrs.field(factory=dict)


def reapplied(
    ended: EndedRun, lost: Sequence[LostChange], allowed: Allowed
) -> list[Reapplied | tuple[LostChange, str]]:
    """
    Return what is applied again, and each change that is not, with why.

    Of a transaction that was rejected as a whole, all changes are applied again, or none.

    Args:
        ended: The clusters.
        lost: The lost changes, in the order in which they committed.
        allowed: What may be applied again.
    """
    order = ChangeOrder(ended)
    repeated = [each for each in lost if order.repeats(each.transaction, each.origin)]
    lost = [each for each in lost if not order.repeats(each.transaction, each.origin)]
    rows: dict[RowKey, list[LostChange]] = {}
    for each in lost:
        rows.setdefault(each.row, []).append(each)
    story = Story.of(order, rows.keys(), {each.origin for each in lost})
    whole = {each.transaction for each in lost if each.as_transaction}
    refused: set[Origin] = set()
    while True:
        found = [each for row, own in rows.items() for each in _of_row(ended, story, (row, own), allowed, refused)]
        broken = whole.intersection(each[0].transaction for each in found if isinstance(each, tuple))
        taken = (change for each in found if isinstance(each, Reapplied) for change in each.changes)
        more = {each.origin for each in taken if each.transaction in broken}
        if not more:
            return [*found, *((each, _repeated(ended, each)) for each in repeated)]
        refused |= more


def _repeated(ended: EndedRun, lost: LostChange) -> str:
    """Return why nothing was lost with a change."""
    return f"{ended.other(lost.cluster)} had the row like that already, as after a repair"


def _of_row(
    ended: EndedRun,
    story: Story,
    changes: tuple[RowKey, Sequence[LostChange]],
    allowed: Allowed,
    refused: Container[Origin],
) -> Iterator[Reapplied | tuple[LostChange, str]]:
    """Yield what is applied again of the lost changes of a row, and what is not."""
    row, own = changes
    reason = ended.doubt(row) or allowed.failed.get(row)
    if reason is None and ended.differs(row):
        reason = "the row differs between the clusters; repair it first, and plan again"
    if reason is not None:
        yield from ((each, reason) for each in own)
        return
    one = RowAgain(ended, story, row, allowed.deletes, allowed.raises)
    yield from _last_that_fit(one, own, refused)


def _last_that_fit(
    one: RowAgain, changes: Sequence[LostChange], refused: Container[Origin]
) -> Iterator[Reapplied | tuple[LostChange, str]]:
    """
    Yield what applies the last changes of a row again, as many as fit together, and why those before them are left.

    One that is left stops those before it: they are not what users wanted last.
    """
    for start, first in enumerate(changes):
        try:
            found = _together(one, changes[start:], refused)
        except UnfitError as unfit:
            later = f"a later change of the row does not fit on top of it: {place_of(unfit.change.change)}"
            yield first, str(unfit) if unfit.change is first else later
            continue
        yield from ((each, found) for each in changes[start:]) if isinstance(found, str) else [found]
        return


def _together(one: RowAgain, changes: Sequence[LostChange], refused: Container[Origin]) -> Reapplied | str:
    """
    Return what applies changes again, or why they have no effect.

    Raises:
        UnfitError: One of them does not fit, or may not be applied again.
    """
    for each in changes:
        if each.origin in refused:
            raise UnfitError(each, "another change of its transaction does not fit")
    return one.with_all(changes)
