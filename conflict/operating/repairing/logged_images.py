"""
The images of row changes whose places in the binlogs are known.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conflict.config.arguments import StageProgress, no_progress
from conflict.config.configuration import Configuration
from conflict.history.grid.schemas import PLACE
from conflict.history.scheduling.schedule_columns import among
from conflict.results.conflicts import numbered
from ndb_formats.columnar.records import RECORDS, records_of
from ndb_formats.columnar.selected_changes import ChangeReading, ends_log, selected_changes
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import Selection

IMAGES = ("server_id", "before", "after")
_STAGE = "reading images"


def images_at(
    changes: pa.Table,
    configuration: Configuration,
    schemas: Mapping[str, Schema],
    progress: StageProgress = no_progress,
) -> pa.Table:
    """
    Return changes with the columns `IMAGES`: who logged each, and its images as maps from column name to text.

    A column that is not logged is absent from its map; one that is NULL has no text.

    Args:
        changes: Rows with the columns of `PLACE`.
        configuration: The run whose binlogs they are in.
        schemas: By cluster, the tables where its binlogs start, if not those of the configuration.
        progress: Called with the files that were read, and their number.
    """
    wanted = frozenset(changes["file"].drop_null().unique().to_pylist())
    read, total = 0, sum(str(file) in wanted for file in configuration.files)
    found = [RECORDS.empty_table().select([*PLACE, *IMAGES])]
    for cluster in configuration.clusters:
        mine = [file for file in cluster.files if str(file) in wanted]
        schema = schemas.get(cluster.name) or configuration.schema_of(cluster)
        parts = _read(cluster.files, schema, _positions(changes, mine))
        found += [pa.Table.from_batches([part.select([*PLACE, *IMAGES])]) for part in parts]
        read += len(mine)
        progress(_STAGE, read, total)
    return _joined(changes, pa.concat_tables(found))


def _positions(changes: pa.Table, files: Sequence[Path]) -> dict[str, npt.NDArray[np.uint64]]:
    """Return the positions of the events of changes, per file, in order."""
    found = {}
    for file in files:
        mine = changes.filter(pc.equal(changes["file"], str(file)))["position"]
        found[str(file)] = np.unique(mine.to_numpy())
    return found


def _read(
    files: Sequence[Path], schema: Schema, positions: Mapping[str, npt.NDArray[np.uint64]]
) -> Iterator[pa.RecordBatch]:
    """Yield the row changes of events at some positions of some of the files, as `RECORDS`."""
    by_name = {os.fspath(file): str(file) for file in files}
    wanted = {path for path, name in by_name.items() if name in positions}
    reading = ChangeReading(schema, only=wanted, is_end=ends_log)
    for block in selected_changes(list(by_name), Selection(), reading):
        name = by_name[block.file]
        for batch in block.batches:
            here = batch.records.column("position").to_numpy()
            kept = batch.where(among(here, positions[name]))
            if len(kept):
                yield records_of([kept], name)


def _joined(changes: pa.Table, records: pa.Table) -> pa.Table:
    """Return changes with the images of the records at the same places; NULL where there is none."""
    places = changes.select(list(PLACE))
    both = pa.concat_tables([places.cast(records.select(list(PLACE)).schema), records.select(list(PLACE))])
    codes = numbered(both, PLACE)
    place_of = np.full(int(codes.max(initial=-1)) + 1, -1)
    place_of[codes[len(changes) :]] = np.arange(len(records))
    taken = place_of[codes[: len(changes)]]
    rows = pa.array(taken, mask=taken < 0)
    for name in IMAGES:
        changes = changes.append_column(name, records[name].combine_chunks().take(rows))
    return changes
