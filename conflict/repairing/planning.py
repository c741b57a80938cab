"""
A plan: which rows are repaired by which statements, in which order, and which are left to review.

What the proof does not bear out goes to review, and the rest is proved again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from conflict.engine.reference.row_store import RowKey
from conflict.repairing.ended_run import EndedRun
from conflict.repairing.equal import equal_rows
from conflict.repairing.proof import Proof, prove
from conflict.repairing.script import Numbered
from conflict.repairing.sql_values import NotWritableError
from conflict.repairing.statements import RepairedRow
from conflict.repairing.winners import Rule
from conflict.rules.foreign_keys import KeyLink, links_on
from ndb_formats.events.rows_event import Operation

__all__ = ["EQUAL", "REAPPLY", "Planned", "ReviewedRow", "planned"]

EQUAL, REAPPLY = "equal", "reapply"
_MOST_PROOFS = 10


@attrs.frozen
class ReviewedRow:
    """
    A row, or a lost change of it, that no statement repairs.

    Attributes:
        kind: ``equal`` or ``reapply``: what it would have been.
        row: Table and identity of the row.
        reason: Why it is left.
    """

    kind: str
    row: RowKey
    reason: str


@attrs.frozen(eq=False)
class Planned:
    """
    A plan that was proved.

    Attributes:
        files: The statements of each cluster, in the order in which they run.
        reviewed: What is left.
        proof: What comes out.
    """

    files: Sequence[tuple[str, Sequence[Numbered]]]
    reviewed: Sequence[ReviewedRow]
    proof: Proof


@attrs.frozen(eq=False)
class _Repair:
    """A repair and its statement."""

    kind: str
    repaired: RepairedRow
    sql: str


def planned(
    ended: EndedRun, rules: Sequence[Rule], size: int, progress: Callable[[int, int], None] = lambda done, total: None
) -> Planned:
    """
    Plan the repair of a run.

    Args:
        ended: The clusters as they ended.
        rules: Which cluster's row stands.
        size: Most rows of a transaction.
        progress: Called with how often the plan was proved, and the most often.
    """
    repairs: list[_Repair] = []
    reviewed: list[ReviewedRow] = []
    for row, found in equal_rows(ended, rules):
        if isinstance(found, str):
            reviewed.append(ReviewedRow(EQUAL, row, found))
            continue
        try:
            repairs.append(_Repair(EQUAL, found, found.sql))
        except NotWritableError as error:
            reviewed.append(ReviewedRow(EQUAL, row, str(error)))
    for done in range(_MOST_PROOFS):
        progress(done, _MOST_PROOFS)
        files = [(cluster, _arranged(ended, cluster, repairs, size)) for cluster in ended.clusters]
        files = [(cluster, statements) for cluster, statements in files if statements]
        proof = prove(ended, [(cluster, _transactions(statements)) for cluster, statements in files])
        failed = proof.failed
        if not failed:
            break
        reviewed += [
            ReviewedRow(each.kind, each.repaired.row, failed[each.repaired.row])
            for each in repairs
            if each.repaired.row in failed
        ]
        repairs = [each for each in repairs if each.repaired.row not in failed]
    progress(_MOST_PROOFS, _MOST_PROOFS)
    return Planned(files, sorted(reviewed, key=lambda each: each.row), proof)


def _transactions(statements: Sequence[Numbered]) -> list[list[RepairedRow]]:
    found: dict[int, list[RepairedRow]] = {}
    for each in statements:
        found.setdefault(each.transaction, []).append(each.repaired)
    return list(found.values())


def _arranged(ended: EndedRun, cluster: str, repairs: Sequence[_Repair], size: int) -> list[Numbered]:
    """
    Return the statements of a cluster in an order that keeps keys.

    Rows of parents come before those that refer to them, and go after them. Rows that nothing refers to go first, so
    that their unique values are free.
    """
    links = links_on(ended.cluster(cluster).setups)
    parents, rank = {link.parent for link in links}, _ranks(links)

    def place(each: _Repair) -> tuple[int, int, RowKey]:
        name, height = each.repaired.name, rank.get(each.repaired.name, 0)
        if each.repaired.operation is Operation.DELETE_ROW:
            return (2, -height, each.repaired.row) if name in parents else (0, 0, each.repaired.row)
        return 1, height, each.repaired.row

    own = sorted((each for each in repairs if each.repaired.table.cluster == cluster), key=place)
    return [
        Numbered(number + 1, number // size + 1, each.kind, each.repaired, ended.key_text(each.repaired.row), each.sql)
        for number, each in enumerate(own)
    ]


def _ranks(links: Sequence[KeyLink]) -> dict[str, int]:
    """Return how many foreign keys stand above each table; tables that refer to one another in a ring have any."""
    rank: dict[str, int] = {}
    for _ in links:
        for link in links:
            if link.parent != link.child:
                rank[link.child] = max(rank.get(link.child, 0), rank.get(link.parent, 0) + 1)
    return rank
