"""
The changes of a made History with the values of their after images as columns, for programs that cannot read images.

One Parquet file per cluster and bucket beside the History. The column ``carried`` has a bit for each column of the
table, the lowest for the first: an absent value is NULL and has no bit.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.makers.history_maker import SCHEMA, TYPES
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import layout_of_grown, read_manifest
from conflict.history.grid.schemas import CHANGES, IMAGES, part
from ndb_formats.columnar.column_arrays import ColumnReader
from ndb_formats.columnar.kernel import each_read_only
from ndb_formats.columnar.kernels.values import find_cells
from ndb_formats.schema.create_table import parse_schema

__all__ = ["values_of"]

(TABLE,) = parse_schema(SCHEMA, database="bench").tables
LAYOUT = layout_of_grown(TABLE, TYPES)
PLACE = ("key", "epoch", "group", "ordinal", "operation")


def values_of(history: Path) -> Path:
    """Return the folder with the values of a History, which are written if they are not there."""
    target = history.with_name(f"{history.name}-values")
    if not target.exists():
        folder, out = Folder(str(history)), Folder(str(target))
        manifest = read_manifest(folder)
        for cluster in manifest.clusters:
            for bucket in range(manifest.buckets):
                _write(folder, out, cluster, bucket)
    return target


def _write(history: Folder, out: Folder, cluster: str, bucket: int) -> None:
    changes, images = (
        history.read_tables([part(kind, cluster, bucket, 0)], schema)
        for kind, schema in (("changes", CHANGES), ("images", IMAGES))
    )
    bitmaps = changes.column("after_columns").combine_chunks().cast(pa.binary()).to_pylist()
    carried = np.array([each[0] if each else 0 for each in bitmaps], np.uint8)
    columns = {name: changes.column(name) for name in PLACE}
    columns |= {"bucket": pa.array(np.full(len(changes), bucket, np.int32)), "carried": pa.array(carried)}
    columns |= _columns(images.column("after").combine_chunks(), carried)
    out.write_table(f"cluster={cluster}/bucket={bucket:05d}.parquet", pa.table(columns))


def _columns(images: pa.Array, carried: npt.NDArray[np.uint8]) -> dict[str, pa.Array]:
    """Return the columns of images that carry some of them."""
    sets = [[place for place in range(len(TYPES)) if number >> place & 1] for number in range(1 << len(TYPES))]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in sets])])
    places = np.array([place for each in sets for place in each], np.int32)
    widths = np.array([codec.width for codec in LAYOUT.codecs], np.int64)
    prefixed = np.array([codec.prefixed for codec in LAYOUT.codecs], np.bool_)
    data = np.frombuffer(images.buffers()[2], np.uint8)
    starts = np.frombuffer(images.buffers()[1], np.int32, len(images) + 1)
    found = (data, starts, carried.astype(np.int32), offsets, places, np.where(prefixed, widths, -1), widths)
    cells, _ = find_cells(*each_read_only(*found))
    readers = [ColumnReader.of(codec, text=True) for codec in LAYOUT.codecs]
    return {
        name: reader.array(data, 0, cells[place])
        for place, (name, reader) in enumerate(zip(LAYOUT.names, readers, strict=True))
    }
