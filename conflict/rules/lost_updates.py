"""
When a change that a user committed is lost. The one definition: docs/compare.md, "Lost updates".

A change is lost if another cluster rejected it, or if a change that had not seen it overwrote what it wrote. A change
writes *parts* of its row: columns, that the row is there, and that it is gone. The tables below say which.
`conflict.engine.kernels.lost_changes` holds the same for arrays.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

import attrs

from conflict.rules.decision import Cause, Verdict, is_delete_delete
from ndb_formats.events.rows_event import Operation

Change = TypeVar("Change", bound=Hashable)
THERE, GONE = -1, -2  # parts of a row that are no columns: that it is there, that it is gone


class Parts(NamedTuple):
    """What of a row an operation concerns: all columns but the key, that it is there, that it is gone."""

    columns: bool
    there: bool
    gone: bool


# An update concerns its columns. Of an insert and a delete: what they write; what they leave nothing of that the same
# cluster wrote before; what they overwrite on another cluster. An insert over a row that is there changes
# its columns alone, and a row that both clusters delete is gone as both wanted.
WRITTEN = {Operation.WRITE_ROW: Parts(True, True, False), Operation.DELETE_ROW: Parts(False, False, True)}
HIDDEN = {Operation.WRITE_ROW: Parts(True, True, True), Operation.DELETE_ROW: Parts(True, True, True)}
OVERWRITTEN = {Operation.WRITE_ROW: Parts(True, False, True), Operation.DELETE_ROW: Parts(True, True, False)}


def loses(verdict: Verdict, operation: Operation, cause: Cause, own_cause: Cause = Cause.NONE) -> bool:
    """
    Whether a decision on a user's change loses it.

    A delete whose row is gone already loses nothing, also where that puts its transaction in conflict, with which it is
    rejected: the cause is then that of the transaction, and `own_cause` that of the delete.
    """
    return verdict is Verdict.REJECTED and not is_delete_delete(operation, own_cause or cause)


@attrs.frozen
class RowWrite:
    """
    A change as far as it matters here.

    Attributes:
        operation: Its operation as it was logged.
        updated: The columns that it sets, or of its after image; without those of the key.
        columns: All columns of the table without those of the key.
    """

    operation: Operation
    updated: frozenset[int]
    columns: frozenset[int]

    def parts(self, meaning: Mapping[Operation, Parts]) -> frozenset[int]:
        """Return which parts of the row it concerns; `meaning` is `WRITTEN`, `HIDDEN` or `OVERWRITTEN`."""
        if self.operation is Operation.WRITE_ROW and self.updated != self.columns:
            # An update, of a binlog type that logs updates as writes; where the row is gone, it makes it again.
            return self.updated | {GONE} if meaning is OVERWRITTEN else self.updated
        if self.operation not in meaning:
            return self.updated
        found = meaning[self.operation]
        row = {THERE: found.there, GONE: found.gone}
        return frozenset(self.columns if found.columns else ()) | {part for part, concerned in row.items() if concerned}


def write(authors: Mapping[int, Change], change: Change, written: RowWrite) -> dict[int, Change]:
    """Return who wrote each part of a row of a cluster, after a change of its own users."""
    hidden = written.parts(HIDDEN)
    left = {part: author for part, author in authors.items() if part not in hidden}
    return left | dict.fromkeys(written.parts(WRITTEN), change)


def overwrite(
    authors: Mapping[int, Change], change: Change, written: RowWrite
) -> tuple[dict[int, Change], set[Change]]:
    """
    Return the same after a change of another cluster was applied, and the changes that it overwrote, in part or whole.

    Those that `change` had not seen are lost.
    """
    taken = written.parts(OVERWRITTEN)
    left = {part: author for part, author in authors.items() if part not in taken}
    after = dict.fromkeys(written.parts(WRITTEN), change) | left
    return after, {author for part, author in authors.items() if part in taken}
