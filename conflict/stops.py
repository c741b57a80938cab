"""
From an operation that a bucket cannot use to the stop of its applier.
"""

from __future__ import annotations

from collections.abc import Sequence

from conflict.bucket_task import Site, Unusable
from conflict.history import Origin
from conflict.resolution import Stop, StopError
from conflict.stop_words import missing_information, no_such_table
from ndb_formats.events.rows_event import Operation

__all__ = ["stop_of"]


def stop_of(unusable: Unusable, site: Site, files: Sequence[str]) -> Stop:
    """Return the stop that an operation causes on a site."""
    setup = site.setups[unusable.table]
    operation = Operation(unusable.operation)
    origin = Origin(files[unusable.file], unusable.position, unusable.row) if unusable.file >= 0 else None
    if setup.refusal is not None or setup.function is None:
        error, column = StopError.NO_SUCH_TABLE, None
        message = no_such_table(setup.table.full_name, site.name)
    else:
        error, column = StopError.FROM_NDB, setup.function.column
        message = missing_information(setup.function, operation, setup.function.spec.needs[operation])
    return Stop(error, unusable.epoch, setup.table.full_name, column, operation, origin, message)
