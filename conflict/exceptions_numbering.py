"""
Numbers the rows of exceptions tables, which buckets leave unnumbered.

``NDB$count`` runs from 1 per applier and table, over all buckets, in the order in which operations were taken.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from conflict.bucket_task import Site
from conflict.exceptions_table import ExceptionsTable
from conflict.grid import Folder
from conflict.kernels.arrays import TakeArrays
from conflict.outputs import exceptions_path, staged_exceptions_path
from conflict.typed_rows import row_schema
from ndb_formats.schema import Table

__all__ = ["number_exceptions"]

_COUNT_COLUMN = 3


def number_exceptions(out: Folder, sites: Sequence[Site], takes: TakeArrays, buckets: int) -> None:
    """Join the buckets' parts of each exceptions table, number them, and write the tables."""
    numbered: list[dict[str, pa.Table]] = []
    tables: dict[str, ExceptionsTable] = {}
    for site in sites:
        own = [setup.exceptions for setup in site.setups if setup.exceptions is not None]
        tables.update({exceptions.table.full_name: exceptions for exceptions in own})
        numbered.append({each.table.full_name: _numbered(out, site, each.table, buckets) for each in own})
    for number, site in enumerate(sites):
        for name, exceptions in tables.items():
            schema = row_schema(exceptions.table)
            parts = [numbered[number][name]] if name in numbered[number] else []
            if exceptions.replicated and name in numbered[1 - number]:
                parts.append(_received(numbered[1 - number][name], takes, number))
            if parts:
                rows = pa.concat_tables(rows.select(schema.names) for rows in parts).cast(schema)
                out.write_table(exceptions_path(site.name, name), rows)
    out.delete("staged_exceptions")


def _numbered(out: Folder, site: Site, definition: Table, buckets: int) -> pa.Table:
    """Return one applier's rows of a table in order, numbered, the take beside them."""
    name = definition.full_name
    fields = [*row_schema(definition), pa.field("take", pa.int64()), pa.field("order", pa.string())]
    schema = pa.schema(fields)
    rows = out.read_tables((staged_exceptions_path(site.name, name, bucket) for bucket in range(buckets)), schema)
    places = [
        (take, json.loads(order))
        for take, order in zip(rows.column("take").to_pylist(), rows.column("order").to_pylist(), strict=True)
    ]
    rows = rows.take(pa.array(sorted(range(len(places)), key=places.__getitem__), pa.int64()))
    field = schema.field(_COUNT_COLUMN)
    return rows.set_column(_COUNT_COLUMN, field, pa.array(range(1, len(rows) + 1), field.type))


def _received(rows: pa.Table, takes: TakeArrays, applier: int) -> pa.Table:
    """Return those rows of the other side's table whose epochs this applier took."""
    mine = takes.foreign_epoch[takes.applier == applier]
    made_in = takes.epoch[np.asarray(rows.column("take").to_numpy(), np.int64)]
    return rows.filter(pa.array(np.isin(made_in, mine)))
