"""
A result on disk, read again: what `conflict.read_result` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from conflict.config.database_names import DatabaseNames
from conflict.config.option_values import By, Moment, known_name, known_table, moment_of
from conflict.decoding.common_types import common_schema
from conflict.discovery.logs import refuse_inputs
from conflict.engine.ledger.arrow_rows import NOT_KNOWN_IN, row_schema
from conflict.engine.ledger.layout import (
    APPLIED_EPOCHS,
    OUTCOMES,
    RESOLVE_AGAIN,
    UNDECIDED,
    applied_epochs_path,
    exceptions_path,
    refuse_damaged_result,
    rows_folder,
    rows_in_part_folder,
)
from conflict.engine.ledger.result_tables import find_table, read_run
from conflict.engine.ledger.table_keys import table_of, typed_keys
from conflict.errors import HistoryError
from conflict.history.grid.catalogue import refusing_contradictions
from conflict.history.grid.folder import Folder
from conflict.history.grid.stored_folder import folder_of
from conflict.history.grid.whole_files import refuse_moved_away
from conflict.results.conflicts import count_conflicts, read_conflicts
from conflict.results.glance import ResultSummary, summary_of
from conflict.rules.decision import Verdict
from ndb_formats.schema.tables import full_name, split_full_name
from ndb_formats.stored import is_address, path_of

_SUFFIXES = ("$EX", "$ex")  # of exceptions tables


@attrs.frozen(repr=False)
class Result:
    """
    The folder that `resolve` wrote. Printed, it answers at a glance; a notebook shows that as a table.

    Attributes:
        folder: The folder.
        run: The document `run.json`: configuration, versions, all figures of the summary.
        counters: The document `counters.json`: every `Ndb_conflict_*` counter, by cluster.
    """

    folder: Folder
    run: dict[str, Any]
    counters: dict[str, dict[str, int]]

    @property
    def clusters(self) -> tuple[str, ...]:
        """Names of the clusters."""
        with self._reading():
            return tuple(self.run["configuration"]["clusters"])

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables, ``database.table``."""
        with self._reading():
            return tuple(self.run["configuration"]["tables"])

    @property
    def summary(self) -> ResultSummary:
        """The result in a few figures."""
        with self._reading():
            return summary_of(self.run)

    @property
    def conflicts(self) -> pa.Table:
        """The operations that were rejected, on all clusters; columns as of `outcomes`."""
        found = self.outcomes()
        return found.filter(pc.equal(found["verdict"], Verdict.REJECTED.name))

    def conflicts_by(
        self, by: By | str, since: Moment | None = None, until: Moment | None = None, table: str | None = None
    ) -> pa.Table:
        """
        Count the conflicts; the counts of all rows add up to their number.

        Args:
            by: ``table``, ``hour``, ``minute``, ``second``, ``key``, ``cause`` or ``transaction``; see
                docs/conflicts.md for the columns.
            since: Leave out what committed before, a datetime or text, in UTC without an offset; None for all.
            until: Leave out what committed then or later.
            table: Of this table alone, ``database.table``, or a table that one database alone has.
        """
        first = None if since is None else moment_of(since, "since")
        last = None if until is None else moment_of(until, "until")
        name = None if table is None else self.table_named(table)
        with self._reading():
            found = read_conflicts(self.folder, self.clusters, first, until=last, table=name)
            return count_conflicts(found, By(by), self.databases)

    def table_named(self, name: str) -> str:
        """
        Return the full name of a table: ``database.table``, of a table that one database alone has.

        A table whose database appliers rename has the name of the first cluster here; it can be given by any.

        Raises:
            ConfigurationError: Several databases have it.
            HistoryError: The result has no such table.
        """
        return known_table(self.databases.run_name(name), self.tables)

    @property
    def databases(self) -> DatabaseNames:
        """The names that clusters use for databases which appliers rename."""
        with self._reading():
            return DatabaseNames(self.run["configuration"]["databases"])

    def cluster_named(self, name: str) -> str:
        """
        Return the name of a cluster.

        Raises:
            HistoryError: The result has no such cluster.
        """
        return known_name("cluster", name, self.clusters)

    def applied_epochs(self, applier: str) -> pa.Table:
        """
        Return which epochs of the other cluster an applier applied; columns as `APPLIED_EPOCHS`.

        Raises:
            HistoryError: The result has no such cluster.
        """
        return self.folder.read_table(applied_epochs_path(self.cluster_named(applier)), APPLIED_EPOCHS)

    def outcomes(self, applier: str | None = None, table: str | None = None) -> pa.Table:
        """
        Return what became of the operations that appliers received.

        Args:
            applier: One of the clusters; None for all.
            table: ``database.table``, or a table that one database alone has; None for all.

        Returns:
            Columns as `OUTCOMES`; for all clusters, with a column `applier` before them. Of one table, with a column
            `key_values` after them: a struct of the key columns in their types, where text is as it compares.

        Raises:
            HistoryError: The result has no such cluster or table.
        """
        found = self._outcomes_of(None if applier is None else self.cluster_named(applier))
        if table is None:
            return found
        name = self.table_named(table)
        columns = self._columns_of(name)
        found = found.filter(pc.equal(found["table"], name))
        with self._reading():
            key = self.run["configuration"]["primary_keys"][name]
            if not key:
                return found
            table_of_key = table_of({each: columns[each] for each in key}, key)
            values = typed_keys(found["identity"], found["key"], table_of_key)
            return found.append_column("key_values", values)

    def undecided(self, applier: str) -> pa.Table:
        """
        Return the decisions of an applier that the binlogs leave open; columns as `UNDECIDED`.

        Raises:
            HistoryError: The result has no such cluster.
        """
        return self._all_parts(f"undecided/applier={self.cluster_named(applier)}", UNDECIDED)

    def _columns_of(self, table: str) -> dict[str, str]:
        """Return the SQL types of a table's columns."""
        with self._reading():
            columns: dict[str, str] = self.run["configuration"]["tables"][table]
            return columns

    def _outcomes_of(self, applier: str | None) -> pa.Table:
        if applier is not None:
            return self._all_parts(f"outcomes/applier={applier}", OUTCOMES)
        return self._of_all("applier", self._outcomes_of, OUTCOMES)

    def exceptions(self, table: str, cluster: str | None = None) -> pa.Table:
        """
        Return the rows of an exceptions table.

        Args:
            table: The table or the exceptions table itself, ``database.table``, or one that one database alone has.
            cluster: One of the clusters; None for all.

        Returns:
            The columns of the exceptions table, and `NDB$outcome`, which tells the outcome of each row; for all
            clusters, with a column `cluster` before them. Empty, without columns, if there are no rows.

        Raises:
            HistoryError: The result has no such cluster or table.
        """
        if cluster is None:
            return self._of_all("cluster", partial(self.exceptions, table))
        self.cluster_named(cluster)
        judged = table[: -len(_SUFFIXES[0])] if table.endswith(_SUFFIXES) else table
        database, name = split_full_name(self.databases.own_name(cluster, self.table_named(judged)))
        paths = [exceptions_path(cluster, full_name(database, name + suffix)) for suffix in _SUFFIXES]
        return self._all_parts(next(filter(self.folder.exists, paths), paths[0]))

    def rows(self, cluster: str, table: str) -> pa.Table:
        """
        Return the rows that a table holds on a cluster at the end.

        Args:
            cluster: One of the clusters.
            table: ``database.table``, or a table that one database alone has; by its last name.

        Raises:
            HistoryError: The result has no such cluster or table, or was made without final rows.
        """
        return self._final_rows(cluster, table, rows_folder, ())

    def rows_in_part(self, cluster: str, table: str) -> pa.Table:
        """
        Return the rows of a table on a cluster at the end with values that a statement gave and only the server knows.

        Such a value is NULL here, and the last column, ``NDB$not_known``, lists the names of the columns that have one.
        Arguments and errors as for `rows`, which does not have these rows.
        """
        return self._final_rows(cluster, table, rows_in_part_folder, (NOT_KNOWN_IN,))

    def _final_rows(
        self, cluster: str, table: str, folder: Callable[[str, str], str], more: Sequence[pa.Field]
    ) -> pa.Table:
        name = self.table_named(table)
        columns = self._columns_of(name)
        self.cluster_named(cluster)
        with self._reading():
            wanted = self.run["final_rows"]
        if not wanted:
            message = "the result was made without final rows; resolve with final rows to have them"
            raise HistoryError(message)
        path = folder(cluster, self.databases.own_name(cluster, name))
        if self.folder.exists(path):
            return self._all_parts(path)
        with self._reading():
            return pa.schema([*row_schema(table_of(columns)), *more]).empty_table()

    def spark(self, part: str) -> Any:
        """
        Return a table of the result as a DataFrame of Spark, read where it is by the format ``ndb_result``.

        Args:
            part: A folder of the result: ``outcomes``, ``applied_epochs``, ``rows/A/shop.orders`` and so on.
        """
        from conflict.spark.data_source import register  # noqa: PLC0415  # Spark only if it is asked for
        from conflict.spark.session import spark_session  # noqa: PLC0415

        spark = spark_session()
        register(spark)
        return spark.read.format("ndb_result").option("table", part).load(self.folder.uri)

    def batches(self, part: str) -> pa.RecordBatchReader:
        """
        Return a table of the result batch by batch, in types that other programs have: ``uint64`` is a decimal.

        Args:
            part: As for `spark`.

        Raises:
            HistoryError: The result has no such table, or a file of it is damaged.
        """
        found = find_table(self.folder, part)
        schema = common_schema(found.schema)
        batches = (each for file in found.files for each in file.batches(schema))
        return pa.RecordBatchReader.from_batches(schema, batches)

    def address(self, part: str) -> str:
        """
        Return where a table of the result is, for other programs: a folder of Parquet files, or an address of one.

        On object storage it is the address of this version, which another result that replaces it does not have.

        Args:
            part: A folder of the result: ``outcomes``, ``applied_epochs``, ``rows/A/shop.orders`` and so on.

        Raises:
            HistoryError: The result on object storage has no such folder.
        """
        return self.folder.address(part)

    def __repr__(self) -> str:
        return f"Result of {self.folder.uri}\n{self.summary}"

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()  # the protocol of notebooks

    def _of_all(self, label: str, part_of: Callable[[str], pa.Table], schema: pa.Schema | None = None) -> pa.Table:
        parts = [
            table.add_column(0, label, pa.array([name] * table.num_rows, pa.string()))
            for name in self.clusters
            if (table := part_of(name)).num_columns
        ]
        with self._reading():
            return pa.concat_tables(parts) if parts else (schema or pa.schema([])).empty_table()

    def _all_parts(self, path: str, schema: pa.Schema | None = None) -> pa.Table:
        if not self.folder.exists(path):
            return (schema or pa.schema([])).empty_table()
        with self._reading():
            place = self.folder.here(path)
            return pads.dataset(place, schema=schema, format="parquet", partitioning=None).to_table()

    def _reading(self) -> AbstractContextManager[None]:
        """Say of files that do not fit together that they do not."""
        return refusing_contradictions(self.folder, RESOLVE_AGAIN)


def read_result(folder: str) -> Result:
    """
    Read a result.

    Args:
        folder: A path, or an address of object storage.

    Raises:
        HistoryError: There is no result in it, one of another version, or it is not as it was written.
        ConfigurationError: It cannot be opened.
    """
    found = folder_of(folder) if is_address(str(folder)) else Folder(str(folder))
    refuse_moved_away(path_of(found.uri))
    if not (found.exists("run.json") and found.exists("counters.json")):
        refuse_inputs(path_of(found.uri))
    run = read_run(found)
    with refusing_contradictions(found, RESOLVE_AGAIN):
        refuse_damaged_result(found, run)
    return Result(found, run, found.read_json("counters.json"))
