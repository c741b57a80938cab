"""
Certification as in Galera: of two transactions that changed a row unseen, the one that committed first stays, whole.

Galera certifies a transaction before it commits, by the keys of the rows that it changed, in one order for all nodes;
one that fails is rolled back where it was made. Here both have committed: the rows of a rejected transaction are
refreshed, which takes it back where it was made. A row keeps only its last write, where Galera's index keeps all that
a transaction can be in conflict with.

Source: https://galeracluster.com/library/documentation/certification-based-replication.html
"""

from __future__ import annotations

from conflict.resolvers.examples.last_writer import is_later
from conflict.resolvers.resolver import resolver
from conflict.rules.decision import Decision
from conflict.rules.seen import APPLY, IGNORE, FoundRow, IncomingChange, reject


@resolver(reads=["times", "sites", "unseen"], transactional=True)
def certification(row: FoundRow, change: IncomingChange) -> Decision:
    """Reject the transaction of a change that the row's last write precedes, unseen; a row that is gone is skipped."""
    if not row.exists:
        return APPLY if change.kind == "write" else IGNORE
    failed = row.unseen and is_later(row, change)
    return reject(incoming=change.committed, stored=row.committed) if failed else APPLY
