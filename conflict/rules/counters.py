"""
What a rejection moves: the status counters under their NDB names, and which of them each decision adds to.

A delete of a row that is gone (delete-delete) is rejected and counted as any other; it is only not refreshed, and puts
its transaction in conflict under `NDB$EPOCH2_TRANS` alone: see `moved_counters`.
Source: MySQL manual, "NDB Cluster Status Variables".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from conflict.rules.decision import Decision, Verdict, is_delete_delete, marks_transaction
from conflict.rules.functions import FUNCTIONS, FunctionSpec
from ndb_formats.events.rows_event import Operation

DELETE_DELETE = "Ndb_conflict_epoch_delete_delete_count"
REFRESH_RECEIVED = "Ndb_conflict_refresh_op_count"
REFLECTED_RECEIVED = "Ndb_conflict_reflected_op_prepare_count"
# What copied rows may count as: see docs/definitions.md.
COUNTED_AGAIN = (REFRESH_RECEIVED, REFLECTED_RECEIVED)
REFLECTED_DISCARDED = "Ndb_conflict_reflected_op_discard_count"
TRANSACTION_ROW_CONFLICTS = "Ndb_conflict_trans_row_conflict_count"
TRANSACTION_ROW_REJECTS = "Ndb_conflict_trans_row_reject_count"
TRANSACTION_REJECTS = "Ndb_conflict_trans_reject_count"
TRANSACTION_ITERATIONS = "Ndb_conflict_trans_detect_iter_count"
TRANSACTION_COMMITS = "Ndb_conflict_trans_conflict_commit_count"

_OF_NO_FUNCTION = (
    TRANSACTION_ROW_CONFLICTS,
    TRANSACTION_ROW_REJECTS,
    TRANSACTION_REJECTS,
    TRANSACTION_ITERATIONS,
    TRANSACTION_COMMITS,
    DELETE_DELETE,
    REFLECTED_RECEIVED,
    REFLECTED_DISCARDED,
    REFRESH_RECEIVED,
)
_OF_CONFLICTS = {
    each.lower()
    for each in (
        TRANSACTION_ROW_CONFLICTS,
        TRANSACTION_ROW_REJECTS,
        TRANSACTION_REJECTS,
        DELETE_DELETE,
        REFLECTED_DISCARDED,
        "Ndb_epoch_delete_delete_count",
    )
}
COUNTERS: tuple[str, ...] = (*(spec.counter for spec in FUNCTIONS), *_OF_NO_FUNCTION)


def zero_counters(functions: Sequence[FunctionSpec] = FUNCTIONS) -> dict[str, int]:
    """
    Return every counter at 0, in the order of SHOW STATUS; the result counts an unknown counter from 0.

    Args:
        functions: The known conflict functions; counters of a user's functions come last.
    """
    return Counter(dict.fromkeys((*COUNTERS, *(spec.counter for spec in functions)), 0))


def counts_conflicts(name: str) -> bool:
    """Whether a status variable counts conflicts: what functions reject, not what an applier receives or goes over."""
    return name.lower().startswith("ndb_conflict_fn_") or name.lower() in _OF_CONFLICTS


def moved_counters(spec: FunctionSpec, operation: Operation, decision: Decision | None) -> Counter[str]:
    """
    Return the counters that a decision on a row moves, and by how much; None moves none.

    A delete-delete moves its function's counter, too, as it is rejected; `DELETE_DELETE` counts those that a function
    that refreshes rows leaves without a refresh.
    """
    moved: Counter[str] = Counter()
    if decision is None or decision.verdict is not Verdict.REJECTED:
        return moved
    moved[spec.counter] = 1
    delete_delete = is_delete_delete(operation, decision.cause)
    if marks_transaction(spec.transactional, delete_delete, spec.delete_delete_conflicts):
        moved[TRANSACTION_ROW_CONFLICTS] = 1
    if spec.refreshes and delete_delete:
        moved[DELETE_DELETE] = 1
    return moved


def counts_differ(spec: FunctionSpec, operation: Operation, candidates: Iterable[Decision]) -> bool:
    """Whether several decisions move the counters differently."""
    return len({frozenset(moved_counters(spec, operation, candidate)) for candidate in candidates}) > 1


def conflicts_counted(counters: Mapping[str, int]) -> int:
    """
    Return how many conflicts some counters report; 0 if none.

    These are the operations that a function rejected, and those that were rejected with their transaction. A
    delete-delete that `DELETE_DELETE` tells apart is none. How many operations arrived, or epochs had conflicts, is not
    counted.
    """
    rejected = sum(value for name, value in counters.items() if name not in _OF_NO_FUNCTION)
    return rejected + counters.get(TRANSACTION_ROW_REJECTS, 0) - counters.get(DELETE_DELETE, 0)


def transaction_counters(epochs: int, transactions: int) -> dict[str, int]:
    """
    Return the counters of transactions in conflict: an applier looks for them once in an epoch that has any.

    Args:
        epochs: Epochs with transactions in conflict that were applied.
        transactions: How many transactions were rejected in them.
    """
    return {TRANSACTION_ITERATIONS: epochs, TRANSACTION_REJECTS: transactions, TRANSACTION_COMMITS: epochs}


def add_counters(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of several sets of counters."""
    total = zero_counters()
    for part in parts:
        for name, value in part.items():
            total[name] += value
    return total
