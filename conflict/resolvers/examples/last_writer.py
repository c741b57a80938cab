"""
Last writer wins: of two changes, the one that committed last stays.

Of two that committed at once, it is that of the site with the greater id, so that both sites choose alike.
"""

from __future__ import annotations

from conflict.resolvers.resolver import resolver
from conflict.rules.decision import Decision
from conflict.rules.seen import APPLY, FoundRow, IncomingChange, reject


def is_later(row: FoundRow, change: IncomingChange) -> bool:
    """
    Whether a change comes after the last write of its row; a write whose time is not known comes first.

    Changes of one site come in their order, so of two in one epoch, which have one time, the second is later.
    """
    return (change.committed or 0, change.site or 0) >= (row.committed or 0, row.site or 0)


@resolver(reads=["times", "sites"])
def last_writer(row: FoundRow, change: IncomingChange) -> Decision:
    """Apply a change that comes after the last write of its row."""
    if not row.exists:
        return APPLY if change.kind == "write" else reject("ROW_DOES_NOT_EXIST")
    return APPLY if is_later(row, change) else reject(incoming=change.committed, stored=row.committed)
