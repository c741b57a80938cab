"""
The logs of a run as its History has them, for the reference engine: epochs with own rows, and what appliers logged.

Of what appliers logged, the History has digests in place of images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from conflict.engine.columnar.bucket import Bucket
from conflict.engine.ledger.careful import CareKind
from conflict.history.epochs import BinlogEpoch
from conflict.history.grid.columns import KnownImage
from conflict.history.grid.epoch_files import read_summaries
from conflict.history.grid.manifest import Manifest
from conflict.history.grid.writer import IDENTITY_PREFIX
from conflict.history.ingestion.extension import definition_changes
from conflict.history.reading.readings import ClusterReading
from conflict.history.run import Run
from conflict.history.scheduling.servers import of_clusters
from conflict.history.shown_effects import Effect
from conflict.history.timeline import RowChange, Transaction
from conflict.runs.rows.keyless_rows import keyless_epochs, read_keyless
from conflict.runs.rows.task_inputs import TaskInputs
from conflict.runs.rows.touched_rows import TouchedRows, rows_of_keys, touched_history
from ndb_formats.errors import FormatError
from ndb_formats.events.row_image import RowLayout
from ndb_formats.events.rows_event import ConflictFlag, Operation

# Why the kernels leave a run whose History tells the reference engine all that binlogs do: it needs no image and no
# transaction id of what appliers logged.
TOLD_BY_HISTORY = frozenset(
    (
        *(CareKind.MIDDLE_LINKS, CareKind.MIDDLE_REFRESHES, CareKind.MIDDLE_REJECTED, CareKind.MIDDLE_STOP),
        *(CareKind.MIDDLE_RESPELLED, CareKind.UNLOGGED_DOUBTS, CareKind.ONE_SIDED_DEFINITION, CareKind.OTHER_FORM),
    )
)


def readings_of_history(run: Run, common: TaskInputs, manifest: Manifest) -> dict[str, ClusterReading]:
    """
    Return what was read of each cluster's binlogs.

    Args:
        run: The run.
        common: What tasks on its History have in common.
        manifest: All that is known of the History, its segments among it, which no task has.
    """
    buckets = [common.load_bucket(number) for number in range(manifest.buckets)]
    parts = [rows_of_keys(each, np.ones(len(each.key_table), np.bool_)) for each in buckets]
    if manifest.has_rows_without_key:
        parts.append(read_keyless(common))
    layouts = [layout for layout in manifest.layouts(common.numbers) if layout is not None]
    read = {each.name: list(_epochs(common, each.name, buckets, parts)) for each in run.clusters}
    epochs, changes = of_clusters(run.links, read), definition_changes(run, manifest)
    return {
        cluster.name: ClusterReading(
            cluster,
            epochs[cluster.name],
            {layout.table: layout for layout in layouts},
            changes[cluster.name],
            FormatError(manifest.errors[cluster.name]) if cluster.name in manifest.errors else None,
            manifest.left_out.get(cluster.name, 0),
        )
        for cluster in run.clusters
    }


def _epochs(
    run: TaskInputs, name: str, buckets: Sequence[Bucket], parts: Sequence[TouchedRows]
) -> Iterator[BinlogEpoch]:
    """Yield the own epochs of a cluster."""
    transactions = dict[int, list[Transaction]]()
    for each in touched_history(parts, name, run)[0]:
        transactions.setdefault(each.epoch, []).append(each)
    logged = dict[int, list[tuple[int, RowChange]]]()
    layouts = run.manifest.layouts(run.numbers)
    for bucket in buckets:
        for number, group, change in _logged(bucket, list(run.manifest.clusters).index(name), layouts):
            logged.setdefault(number, []).append((group, change))
    for epoch in keyless_epochs(run, name) if run.manifest.has_rows_without_key else ():
        logged.setdefault(epoch.number, []).extend(epoch.consequences)
    for summary in read_summaries(run.history, name, run.manifest.batches):
        yield BinlogEpoch(
            summary.number,
            tuple(transactions.get(summary.number, ())),
            summary.applied,
            tuple(logged.get(summary.number, ())),
            committed=summary.committed or 0,
            unread=summary.unread,
        )


def _logged(bucket: Bucket, side: int, layouts: Sequence[RowLayout | None]) -> Iterator[tuple[int, int, RowChange]]:
    """Yield what the applier of a cluster logged in a bucket, each with its own epoch and group."""
    columns = bucket.consequences[side]
    rows = np.arange(len(columns))
    if not len(rows):
        return
    identities = bucket.keys.column("identity").take(pa.array(columns.of_rows("key", rows))).to_pylist()
    names = ("epoch", "group", "table", "effect", "flags", "after_digest")
    arrays = [columns.of_rows(name, rows).tolist() for name in names]
    for epoch, group, table, effect, flags, digest, identity in zip(*arrays, identities, strict=True):
        layout = layouts[table]
        assert layout is not None
        gone = effect in (Effect.DELETED, Effect.REFRESHED_ABSENT)
        yield (
            epoch,
            group,
            RowChange(
                layout.table,
                identity[IDENTITY_PREFIX:],
                Operation.DELETE_ROW if gone else Operation.UPDATE_ROW,
                None,
                KnownImage(layout, (), (), digest=digest) if digest and not gone else None,
                flags=ConflictFlag(flags),
            ),
        )
