"""
Notes on a deployed conflict function: facts to know that are no reason against it.

Source: MySQL manual, "NDB Cluster Replication Conflict Resolution".
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.compatibility.deployment import Deployment
from conflict.rules.functions import FUNCTIONS

__all__ = ["notes_of"]

# Extra GCI bits that distinguish the epochs of a global checkpoint at the default 2000 ms and 100 ms: 20 epochs.
_ENOUGH_GCI_BITS = 5


def notes_of(deployment: Deployment) -> tuple[str, ...]:
    """Return facts that the settings do not show, or that follow from them."""
    return (*_column_notes(deployment), *_epoch_notes(deployment))


def _column_notes(deployment: Deployment) -> Iterator[str]:
    name, spec = deployment.function.column, deployment.function.spec
    column = None if name is None else deployment.table.find(name)
    if column is None:
        return
    if name in deployment.table.primary_key:
        yield f"{name} is a column of the primary key, so it is the same before and after every update."
    elif column.nullable:
        yield f"{name} can be NULL, which compares as 0."
    if spec not in FUNCTIONS and not spec.needs:
        yield "The function does not say which images it needs; a value that the image lacks is None for it."
    if deployment.on_both is False:
        yield (
            "Only one of the clusters has the function: it rejects changes that the other one keeps, and no row is "
            "refreshed, so the clusters can diverge."
        )


def _epoch_notes(deployment: Deployment) -> Iterator[str]:
    function, spec, source = deployment.function, deployment.function.spec, deployment.source
    if not spec.refreshes:
        return
    yield "The row of mysql.ndb_replication must exist before the table is created."
    yield "The other cluster needs ndb_log_apply_status=ON, which shows which epochs have reached it."
    if not spec.uses_role:
        yield "The primary, whose changes win, is the cluster whose server id the function's row names."
        yield "Delete-delete is not refreshed: a row that both clusters delete can differ when it is inserted again."
    elif deployment.role is None:
        yield "Both clusters need ndb_applier_conflict_role: one PRIMARY, the other SECONDARY."
    if spec.transactional and source.transaction_ids is None:
        yield "The other cluster needs ndb_log_transaction_id=ON; without ids the applier stops with 1296."
    if spec.transactional and source.format.minimal and source.format.updated_only:
        yield "Reads that ndb_log_exclusive_reads logs arrive without an after image, and have no effect."
    if function.gci_bits < _ENOUGH_GCI_BITS:
        yield (
            f"{function.gci_bits} extra GCI bits do not distinguish all epochs of a global checkpoint, so more "
            "conflicts are found than there are."
        )
