"""
The table of epochs of a log as files: INSERT statements for `mysql.ndb_binlog_index`, and Parquet.
"""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from conflict.decoding.staging import staged_file
from conflict.history.ingestion.epoch_table import EPOCH_TABLE

_TABLE = "mysql.ndb_binlog_index"
_ROWS = 1000  # of a statement


def index_statements(table: pa.Table, server: int) -> str:
    """
    Return statements that put a table of epochs into the table of a server, and leave the rows that it has.

    They are not logged: the table is of one SQL node alone.

    Args:
        table: Columns as `EPOCH_TABLE`.
        server: Server id of the SQL node.
    """
    out = io.StringIO()
    out.write(f"-- {_TABLE} as the log of server {server} tells; for that server alone.\nSET sql_log_bin = 0;\n")
    names = ", ".join(f"`{name}`" for name in EPOCH_TABLE.names)
    for start in range(0, table.num_rows, _ROWS):
        rows = zip(*(column.to_pylist() for column in table.slice(start, _ROWS).columns), strict=True)
        values = ",\n".join("(" + ", ".join(map(_literal, row)) + ")" for row in rows)
        out.write(f"INSERT IGNORE INTO {_TABLE} ({names}) VALUES\n{values};\n")
    out.write("SET sql_log_bin = 1;\n")
    return out.getvalue()


def _literal(value: object) -> str:
    """Return a value as SQL; 0 for what a log does not tell, as the columns of the table take no NULL."""
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    return str(value or 0)


def write_index(table: pa.Table, server: int, sql: Path | None, parquet: Path | None) -> None:
    """
    Write a table of epochs, each file whole or not at all.

    Args:
        table: Columns as `EPOCH_TABLE`.
        server: Server id of the SQL node.
        sql: File for the statements; None for none.
        parquet: File for the table; None for none.
    """
    if sql is not None:
        with staged_file(sql) as out:
            out.write(index_statements(table, server).encode())
    if parquet is not None:
        with staged_file(parquet) as out:
            pq.write_table(table, out)
