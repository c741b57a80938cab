"""
First writer wins: of two changes that have not seen each other, the one that committed first stays.
"""

from __future__ import annotations

from conflict.resolvers.examples.last_writer import is_later
from conflict.resolvers.resolver import resolver
from conflict.rules.decision import Decision
from conflict.rules.seen import APPLY, FoundRow, IncomingChange, reject


@resolver(reads=["times", "sites", "unseen"])
def first_writer(row: FoundRow, change: IncomingChange) -> Decision:
    """Apply a change unless the row was written here before it, where the other site cannot have seen it."""
    if not row.exists:
        return APPLY if change.kind == "write" else reject("ROW_DOES_NOT_EXIST")
    lost = row.unseen and is_later(row, change)
    return reject(incoming=change.committed, stored=row.committed) if lost else APPLY
