"""
What logs said last of the rows of a bucket, so that a later run looks only at what follows for changes without a log.

See `conflict.engine.columnar.unlogged_rows`: a change is to follow from what the log of its cluster said of the row
before, of what the cluster did itself, or of what its applier did.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.unlogged_rows import applied_states, own_states
from conflict.engine.kernels.arrays import Bool, UInt64
from conflict.engine.kernels.unlogged import UNTOLD, RowStates, suspected_rows
from conflict.history.grid.folder import Folder
from ndb_formats.columnar.kernel import each_read_only

_COLUMNS = ("own_epoch", "own_digest", "applied_epoch", "applied_digest")
_SCHEMA = pa.schema([("key", pa.int32()), ("cluster", pa.int8()), *((name, pa.uint64()) for name in _COLUMNS)])


@attrs.frozen(eq=False)
class ShownRows:
    """
    What logs said last. Shape (keys, clusters).

    Attributes:
        own: Own epoch, 0 for none, and digest of what the cluster did last.
        applied: The same of what its applier did.
    """

    own: tuple[UInt64, UInt64]
    applied: tuple[UInt64, UInt64]

    @classmethod
    def none(cls, keys: int) -> ShownRows:
        """Return that logs said nothing of so many rows."""
        own, digest, applied, other = (np.zeros((keys, 2), np.uint64) for _ in _COLUMNS)
        return cls((own, digest), (applied, other))

    def states(self, bucket: Bucket, side: int, updated: Bool) -> tuple[RowStates, RowStates]:
        """Return what the log of a cluster says: what it said last, and what the bucket holds of it."""
        own, applied = own_states(bucket.changes[side], updated), applied_states(bucket.consequences[side])
        return _after(self.own, side, own), _after(self.applied, side, applied)

    def are_followed(self, bucket: Bucket, updated: tuple[Bool, Bool]) -> bool:
        """Whether all that a bucket holds follows; arguments as of `find_unlogged_rows`."""
        keys = len(bucket.key_table)
        return not any(suspected_rows(*self.states(bucket, side, updated[side]), keys).any() for side in (0, 1))

    def with_later(self, bucket: Bucket, updated: tuple[Bool, Bool]) -> ShownRows:
        """Return what logs said last, also in what a bucket holds."""
        found = ShownRows.none(len(bucket.key_table))
        for side in (0, 1):
            for (epoch, digest), states in zip(
                (found.own, found.applied), self.states(bucket, side, updated[side]), strict=True
            ):
                epoch[states.key, side], digest[states.key, side] = states.epoch, states.after  # the last one stays
        return found


def _after(known: tuple[UInt64, UInt64], side: int, states: RowStates) -> RowStates:
    """Return what was known of rows of a cluster as if its log told it, and then what it tells."""
    epoch, digest = (each[:, side] for each in known)
    key = np.flatnonzero(epoch)
    key = key[np.argsort(epoch[key], kind="stable")]
    before = RowStates(key.astype(np.int32), epoch[key], np.full(len(key), UNTOLD), digest[key])
    columns = (np.concatenate([getattr(each, name) for each in (before, states)]) for name in RowStates._fields)
    return RowStates(*each_read_only(*columns))


def _path(bucket: int) -> str:
    return f"shown/bucket={bucket:05d}.parquet"


def write_shown(folder: Folder, bucket: int, rows: ShownRows) -> None:
    """Write what was said of the rows of a bucket."""
    key, cluster = np.nonzero((rows.own[0] > 0) | (rows.applied[0] > 0))
    columns: list[npt.NDArray[np.generic]] = [
        key,
        cluster,
        *(each[key, cluster] for each in (*rows.own, *rows.applied)),
    ]
    arrays = [pa.array(each).cast(field.type) for each, field in zip(columns, _SCHEMA, strict=True)]
    folder.write_table(_path(bucket), pa.table(arrays, schema=_SCHEMA))


def read_shown(folder: Folder, bucket: int, keys: int) -> ShownRows:
    """Read what was said of the rows of a bucket, which has so many by now."""
    rows, table = ShownRows.none(keys), folder.read_table(_path(bucket), _SCHEMA)
    at = table.column("key").to_numpy(), table.column("cluster").to_numpy()
    arrays: Mapping[str, UInt64] = dict(zip(_COLUMNS, (*rows.own, *rows.applied), strict=True))
    for name, array in arrays.items():
        array[at] = table.column(name).to_numpy()
    return rows
