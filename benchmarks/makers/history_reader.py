"""
A History on disk as one in memory, for the reference engine; row by row, so for small ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from conflict.history.grid.epoch_files import read_schedule
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest, read_manifest
from conflict.history.grid.schemas import CHANGES, IMAGES, KEYS, keys_part, part
from conflict.history.model import Cluster, History
from conflict.history.run import Run
from conflict.history.timeline import Origin, RowChange, Transaction, timeline_of
from ndb_formats.cursor import Cursor
from ndb_formats.events.row_image import RowImage, RowLayout, take_image
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.events.table_map import bits

__all__ = ["read_history"]


def read_history(folder: Folder, run: Run) -> History:
    """Return a History; its run says what the tables are, and the roles of the clusters."""
    manifest = read_manifest(folder)
    numbers = run.numbers
    layouts = manifest.layouts(numbers)
    schedule = read_schedule(folder, list(manifest.clusters))
    clusters = []
    for cluster in run.clusters:
        changes = sorted(_changes(folder, manifest, cluster.name, layouts), key=lambda item: item[0])
        transactions = [
            Transaction(epoch, group, tuple(change for _, change in items))
            for (epoch, group), items in groupby(changes, key=lambda item: (item[0][0], item[0][1]))
        ]
        timeline = timeline_of(transactions, schedule[cluster.name].applies())
        clusters.append(Cluster(cluster.name, cluster.server_id, timeline, cluster.role))
    return History(tuple(clusters), {layout.table: layout for layout in layouts if layout is not None})


def _changes(
    folder: Folder, manifest: Manifest, cluster: str, layouts: list[RowLayout | None]
) -> Iterator[tuple[tuple[int, int, int], RowChange]]:
    """Yield a cluster's changes, each after its epoch, group and ordinal."""
    for bucket in range(manifest.buckets):
        parts = [keys_part(bucket, batch) for batch in manifest.batches]
        identities = folder.read_tables(parts, KEYS).column("identity").to_pylist()
        rows, images = (
            folder.read_tables((part(kind, cluster, bucket, batch) for batch in manifest.batches), schema).to_pylist()
            for kind, schema in (("changes", CHANGES), ("images", IMAGES))
        )
        for row, image in zip(rows, images, strict=True):
            layout = layouts[row["table"]]
            assert layout is not None
            change = RowChange(
                layout.table,
                identities[row["key"]][2:],
                Operation(row["operation"]),
                _image(layout, row["before_columns"], image["before"]),
                _image(layout, row["after_columns"], image["after"]),
                row["transaction_id"],
                ConflictFlag(row["flags"]),
                Origin(manifest.files[cluster][row["file"]], row["position"], row["payload_position"], row["row"]),
            )
            yield (row["epoch"], row["group"], row["ordinal"]), change


def _image(layout: RowLayout, columns: bytes, data: bytes | None) -> RowImage | None:
    if data is None:
        return None
    flags: list[Any] = list(bits(columns, 8 * len(columns)))
    return take_image(Cursor(data), layout, tuple(place for place, here in enumerate(flags) if here))
