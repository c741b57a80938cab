"""
A plan: which rows are repaired by which statements, in which order, and which are left to review.

What the proof does not bear out goes to review, and the rest is proved again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

import attrs

from conflict.engine.reference.row_store import RowKey
from conflict.operating.repairing.ended_run import EndedRun
from conflict.operating.repairing.equal import equal_rows
from conflict.operating.repairing.fitting import LostChange, Reapplied
from conflict.operating.repairing.proof import Proof, prove
from conflict.operating.repairing.reapply import Allowed, reapplied
from conflict.operating.repairing.script import Numbered
from conflict.operating.repairing.sql_values import NotWritableError
from conflict.operating.repairing.statements import RepairedRow
from conflict.operating.repairing.winners import Rule
from conflict.rules.foreign_keys import KeyLink, links_on
from ndb_formats.events.rows_event import Operation

EQUAL, REAPPLY = "equal", "reapply"


@attrs.frozen
class ReviewedRow:
    """
    A row, or a lost change of it, that no statement repairs.

    Attributes:
        kind: ``equal`` or ``reapply``: what it would have been.
        row: Table and identity of the row.
        reason: Why it is left.
        change: The lost change; None for a row that differs.
    """

    kind: str
    row: RowKey
    reason: str
    change: LostChange | None = None


@attrs.frozen(eq=False)
class Wanted:
    """
    What a plan is to do.

    Attributes:
        rules: Which cluster's row stands, of rows that differ; the first rule that is for a row decides.
        reapply: Whether lost changes are applied again.
        lost: Lost changes to apply again, in the order in which they committed.
        deletes: Whether lost deletes are applied again.
        raises: Whether the column that a function compares may get a greater value for that.
        rows_per_transaction: Most rows of a transaction.
    """

    rules: Sequence[Rule] = ()
    reapply: bool = False
    lost: Sequence[LostChange] = ()
    deletes: bool = False
    raises: bool = False
    rows_per_transaction: int = 100


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

    def reviewed_of(self, kind: str) -> list[ReviewedRow]:
        """Return what is left of a kind."""
        return [each for each in self.reviewed if each.kind == kind]

    @property
    def reapplied(self) -> int:
        """How many lost changes are applied again."""
        return sum(each.changes for _, statements in self.files for each in statements)


@attrs.frozen(eq=False)
class _Repair:
    """A repair and its statement, with the lost changes that it applies again."""

    kind: str
    repaired: RepairedRow
    sql: str
    changes: tuple[LostChange, ...] = ()


def planned(
    ended: EndedRun, wanted: Wanted, progress: Callable[[int, int], None] = lambda done, total: None
) -> Planned:
    """
    Plan the repair of a run.

    Args:
        ended: The clusters as they ended.
        wanted: What the plan is to do.
        progress: Called with how often the plan was proved, and how often it is, as far as is known.
    """
    failed: dict[RowKey, str] = {}
    for done in count():
        progress(done, done + 1)
        repairs, reviewed = _written(ended, wanted, failed)
        files = [
            (cluster, _arranged(ended, cluster, repairs, wanted.rows_per_transaction)) for cluster in ended.clusters
        ]
        files = [(cluster, statements) for cluster, statements in files if statements]
        proof = prove(ended, [(cluster, _transactions(statements)) for cluster, statements in files])
        if not proof.failed:
            break
        failed |= proof.failed
    progress(done + 1, done + 1)
    return Planned(files, sorted(reviewed, key=lambda each: each.row), proof)


def _written(ended: EndedRun, wanted: Wanted, failed: dict[RowKey, str]) -> tuple[list[_Repair], list[ReviewedRow]]:
    """Return repairs with their statements, and what is left to review; `failed` gets the rows without a statement."""
    while True:
        repairs: list[_Repair] = []
        reviewed: list[ReviewedRow] = []
        before = len(failed)
        for each in _drafted(ended, wanted, failed):
            if isinstance(each, ReviewedRow):
                reviewed.append(each)
                continue
            try:
                repairs.append(attrs.evolve(each, sql=each.repaired.sql))
            except NotWritableError as error:
                failed[each.repaired.row] = str(error)
        if len(failed) == before:
            return repairs, reviewed


def _drafted(ended: EndedRun, wanted: Wanted, failed: Mapping[RowKey, str]) -> Iterator[_Repair | ReviewedRow]:
    """Yield repairs, without their statements yet, and what is left to review: `failed` has why rows are."""
    for row, found in equal_rows(ended, wanted.rules):
        why = found if isinstance(found, str) else failed.get(row)
        if why is not None:
            yield ReviewedRow(EQUAL, row, why)
        elif isinstance(found, RepairedRow):
            yield _Repair(EQUAL, found, "")
    for each in reapplied(ended, wanted.lost, Allowed(wanted.deletes, wanted.raises, failed)):
        if isinstance(each, Reapplied):
            yield _Repair(REAPPLY, each.repaired, "", each.changes)
        else:
            change, reason = each
            yield ReviewedRow(REAPPLY, change.row, reason, change)


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
        Numbered(
            number + 1,
            number // size + 1,
            each.kind,
            each.repaired,
            ended.key_text(each.repaired.row),
            each.sql,
            len(each.changes),
        )
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
