"""
What two extensions of PostgreSQL do by default: of two changes of a row, the one with the later commit timestamp stays.

Both turn an insert of a row that exists into an update. Of a row that is missing, pgactive discards an update and a
delete, while Spock records an update as an exception and skips a delete. pgactive applies a delete whatever its time;
Spock compares that, too, with the time of the row's last write.

Source: https://github.com/aws/pgactive (md/conflicts-types.md), and
https://docs.pgedge.com/spock-v5/v5-0-6/conflict_types/
"""

from __future__ import annotations

from conflict.resolvers.examples.last_writer import is_later
from conflict.resolvers.resolver import resolver
from conflict.rules.decision import Decision
from conflict.rules.seen import APPLY, IGNORE, FoundRow, IncomingChange, reject


@resolver(reads=["times", "sites"])
def pgactive(row: FoundRow, change: IncomingChange) -> Decision:
    """Apply a delete, and any other change that is later than the row; discard changes of a missing row."""
    if not row.exists:
        return APPLY if change.kind == "write" else IGNORE
    if change.kind == "delete":
        return APPLY
    return _if_later(row, change)


@resolver(reads=["times", "sites"])
def spock(row: FoundRow, change: IncomingChange) -> Decision:
    """Apply a change that is later than the row; an update of a missing row is an exception, a delete is skipped."""
    if row.exists:
        return _if_later(row, change)
    if change.kind == "update":
        return reject("ROW_DOES_NOT_EXIST")
    return APPLY if change.kind == "write" else IGNORE


def _if_later(row: FoundRow, change: IncomingChange) -> Decision:
    return APPLY if is_later(row, change) else reject(incoming=change.committed, stored=row.committed)
