"""
A counter: of two updates, the changes of both are added up.

An update brings the difference between its old and its new values, and an insert counts from 0. A column that holds no
number takes the new value.
"""

from __future__ import annotations

from conflict.resolvers.resolver import resolver
from conflict.rules.decision import Decision
from conflict.rules.seen import APPLY, FoundRow, IncomingChange, merge, reject
from ndb_formats.types.values import MaybeValue, Value


@resolver(reads=["values"], needs={"update": "changed before"})
def sum_of_deltas(row: FoundRow, change: IncomingChange) -> Decision:
    """Add what a change adds."""
    if not row.exists:
        return APPLY if change.kind == "write" else reject("ROW_DOES_NOT_EXIST")
    if change.kind == "delete":
        return APPLY
    sums: dict[str, Value] = {}
    for name in change.new:
        if name not in change.key and change.new[name] != change.old.get(name):
            sums[name] = _sum(row.values[name], change.old.get(name), change.new[name])
    return merge(sums) if sums else APPLY


def _sum(stored: MaybeValue, old: MaybeValue, new: MaybeValue) -> Value:
    mine, before = stored or 0, old or 0
    if isinstance(mine, int) and isinstance(before, int) and isinstance(new, int):
        return mine + new - before
    return new  # type: ignore[return-value]  # an image has what it brings
