"""
The stop of an applier, as results report it, from the operation that stops it.
"""

from __future__ import annotations

from collections.abc import Sequence

from conflict.columnar.applier_stops import Phase, StoppingOperation
from conflict.columnar.cluster_setup import ClusterSetup
from conflict.history.model import Origin
from conflict.results.model import Stop
from conflict.rules.roles import Role
from conflict.rules.stop_messages import (
    StopError,
    blob_refresh,
    duplicate_value,
    missing_information,
    no_such_table,
    no_transaction_ids,
    role_not_set,
)
from ndb_formats.events.rows_event import Operation

__all__ = ["stop_of"]


def stop_of(stopping: StoppingOperation, cluster: ClusterSetup, files: Sequence[str]) -> Stop:
    """
    Return the stop that an operation causes.

    Args:
        stopping: The operation.
        cluster: The cluster whose applier stops.
        files: Binlog files of the other cluster by number.
    """
    if stopping.stop is not None:
        return stopping.stop
    operation = Operation(stopping.operation)
    place = (stopping.position, stopping.payload_position, stopping.row)
    origin = Origin(files[stopping.file], *place) if stopping.file >= 0 else None
    error, column, message = _reason(stopping, cluster, operation)
    return Stop(error, stopping.foreign_epoch, _table_name(stopping, cluster), column, operation, origin, message)


def _table_name(stopping: StoppingOperation, cluster: ClusterSetup) -> str:
    """Return the name of the table, as results have it: that of its History table."""
    tables = cluster.wholes or tuple(setup.table for setup in cluster.setups)
    return tables[stopping.table].full_name


def _reason(
    stopping: StoppingOperation, cluster: ClusterSetup, operation: Operation
) -> tuple[StopError, str | None, str]:
    """Return the server error, the column whose value is missing if one is, and the message."""
    setup = cluster.over_time(stopping.table)[stopping.version]
    name, function = _table_name(stopping, cluster), setup.function
    if stopping.phase is Phase.COMMIT:
        return StopError.DUPLICATE_VALUE, None, duplicate_value(name)
    if stopping.phase is Phase.REJECT:
        return StopError.FROM_NDB, None, blob_refresh(name)
    if stopping.table in cluster.misfits:
        return StopError.NO_CONVERSION, *cluster.misfits[stopping.table]
    if setup.refusal is not None or function is None:
        return StopError.NO_SUCH_TABLE, None, no_such_table(name, cluster.name)
    if function.spec.uses_role and cluster.role is Role.NONE:
        return StopError.FROM_NDB, None, role_not_set(function, cluster.name)
    if function.spec.transactional:
        return StopError.FROM_NDB, None, no_transaction_ids(function)
    message = missing_information(function, operation, function.spec.needs[operation])
    return StopError.FROM_NDB, function.column, message
