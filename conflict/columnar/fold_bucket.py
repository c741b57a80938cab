"""
Folds a bucket: compiled, or as Python where a function of a user's own has a say.
"""

from __future__ import annotations

from collections.abc import Sequence

from conflict.columnar.appliers import Site, function_arrays, user_functions
from conflict.columnar.kernels.arrays import BucketRows, Conflicts, EpochApplies, Int16
from conflict.columnar.kernels.fold import Folded, fold
from conflict.columnar.kernels.interpreted import Decide, interpreted_fold
from conflict.rules.decision import Cause, Verdict, stored_precision
from conflict.rules.functions import ConflictFunction
from conflict.rules.user_policies import by_numbers
from ndb_formats.events.rows_event import Operation

__all__ = ["fold_bucket"]

WRITE = int(Operation.WRITE_ROW)
SKIPPED = (int(Verdict.SKIPPED), int(Cause.NONE), 0, 0)
DISCARDED = (int(Verdict.DISCARDED), int(Cause.NONE), 0, 0)
EXISTS = (int(Verdict.REJECTED), int(Cause.ROW_ALREADY_EXISTS), 0, 0)


def fold_bucket(
    rows: Sequence[BucketRows],
    key_table: Int16,
    sites: Sequence[Site],
    applies: EpochApplies,
    conflicts: Conflicts,
    *,
    candidates: bool = False,
) -> Folded:
    """
    Decide the operations of a bucket; its images are not needed.

    Args:
        rows: Of both clusters, all those of some keys.
        key_table: Table number of each key. Shape (keys,).
        sites: Both sites.
        applies: All takes in order.
        conflicts: The transactions in conflict.
        candidates: Whether it is wanted what may have been decided besides what was (see `Folded`).

    Raises:
        ConfigurationError: A user's function failed, or returned what is no decision.
    """
    users = user_functions(sites)
    decide = interpreted_fold({number: _rule(function) for number, function in users.items()}) if users else fold
    return decide(applies, rows, function_arrays(sites), conflicts, key_table, candidates=candidates)


def _rule(function: ConflictFunction) -> Decide:
    """Return a user's function in the shape of the kernels' rules, with what the applier adds to every function."""
    judge = by_numbers(function)

    def decide(
        operation: int,
        reflected: bool,
        exists: bool,
        local: bool,
        epoch: int,
        value: int,
        before_given: bool,
        before: int,
        after_given: bool,
        after: int,
        complete: bool,
        needs_before: bool,
        needs_after: bool,
        max_replicated: int,
    ) -> tuple[int, int, int, int]:
        if (needs_before and not before_given) or (needs_after and not after_given):
            return SKIPPED
        if function.spec.conditional_write and operation == WRITE and not exists and not complete:
            return EXISTS
        decision = judge(
            int(operation),
            bool(exists),
            bool(local),
            stored_precision(int(epoch), function.gci_bits),
            int(value) if function.column is not None else None,
            int(before) if before_given else None,
            int(after) if after_given else None,
            int(max_replicated),
        )
        return DISCARDED if reflected and decision[0] == Verdict.REJECTED else decision

    return decide
