"""
A result on disk, read again: what `conflict.read_result` returns.
"""

from __future__ import annotations

from typing import Any

import attrs
import pyarrow as pa
import pyarrow.dataset as pads

from conflict.errors import HistoryError
from conflict.grid.folder import Folder
from conflict.results.layout import APPLIED_EPOCHS, OUTCOMES, applied_epochs_path, exceptions_path

__all__ = ["Result", "read_result"]


@attrs.frozen
class Result:
    """
    The folder that `resolve` wrote.

    Attributes:
        folder: The folder.
        run: The document `run.json`: configuration, versions, all figures of the summary.
        counters: The document `counters.json`: every `Ndb_conflict_*` counter, by cluster.
    """

    folder: Folder
    run: dict[str, Any] = attrs.field(repr=False)
    counters: dict[str, dict[str, int]] = attrs.field(repr=False)

    def applied_epochs(self, applier: str) -> pa.Table:
        """Return which epochs of the other cluster an applier applied; columns as `APPLIED_EPOCHS`."""
        return self.folder.read_table(applied_epochs_path(applier), APPLIED_EPOCHS)

    def outcomes(self, applier: str) -> pa.Table:
        """Return what became of the operations that an applier received; columns as `OUTCOMES`."""
        return self._all_parts(f"outcomes/applier={applier}", OUTCOMES)

    def exceptions(self, cluster: str, table: str) -> pa.Table:
        """Return the rows of a cluster's exceptions table, named as ``database.table$EX``; empty if it has none."""
        return self._all_parts(exceptions_path(cluster, table))

    def rows(self, cluster: str, table: str) -> pa.Table:
        """Return the rows that a table holds on a cluster at the end; empty if it has none."""
        return self._all_parts(f"rows/{cluster}/{table}")

    def _all_parts(self, path: str, schema: pa.Schema | None = None) -> pa.Table:
        if not self.folder.exists(path):
            return (schema or pa.schema([])).empty_table()
        return pads.dataset(f"{self.folder.uri}/{path}", schema=schema, format="parquet", partitioning=None).to_table()


def read_result(folder: str) -> Result:
    """
    Read a result.

    Args:
        folder: A path, or a URI that pyarrow knows.

    Raises:
        HistoryError: There is no result in it.
    """
    found = Folder(str(folder))
    if not (found.exists("run.json") and found.exists("counters.json")):
        message = f"there is no result in {found.uri}; make one with ndb-conflict resolve"
        raise HistoryError(message)
    return Result(found, found.read_json("run.json"), found.read_json("counters.json"))
