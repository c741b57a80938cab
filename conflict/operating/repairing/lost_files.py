"""
Lost changes as a file: CSV, JSON lines or Parquet.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from conflict.decoding.staging import staged_file
from conflict.decoding.table_files import hexadecimal, no_formulas
from conflict.errors import ConfigurationError

_SUFFIXES = (".csv", ".jsonl", ".parquet")


def check_suffix(target: Path | None) -> None:
    """
    Make sure that the name of a file says its format.

    Raises:
        ConfigurationError: It does not.
    """
    if target is not None and target.suffix not in _SUFFIXES:
        message = f"{target}: the name of the file says its format; give {', '.join(_SUFFIXES)}"
        raise ConfigurationError(message)


def write_lost(changes: pa.Table, target: Path) -> None:
    """
    Write changes; the file appears whole.

    In CSV, images are JSON objects: a column that is not logged is left out, NULL is null.

    Args:
        changes: As `conflict.operating.repairing.lost.Losses.changes`.
        target: The file; its suffix is the format.
    """
    write = {".csv": _write_csv, ".jsonl": _write_lines, ".parquet": _write_parquet}[target.suffix]
    with staged_file(target) as out:
        write(changes, out)


def _write_parquet(changes: pa.Table, out: BinaryIO) -> None:
    pq.write_table(changes, out)


def _write_csv(changes: pa.Table, out: BinaryIO) -> None:
    columns = {}
    for field in changes.schema:
        column = changes[field.name]
        if pa.types.is_map(field.type):
            texts = [None if each is None else _json(dict(each)) for each in column.to_pylist()]
            column = pa.chunked_array([pa.array(texts, pa.string())])
        elif pa.types.is_string(field.type):
            column = no_formulas(column)
        elif pa.types.is_binary(field.type):
            column = pa.chunked_array([hexadecimal(chunk) for chunk in column.chunks], pa.string())
        columns[field.name] = column
    options = pyarrow.csv.WriteOptions(quoting_style="needed")
    pyarrow.csv.write_csv(pa.table(columns), out, options)


def _write_lines(changes: pa.Table, out: BinaryIO) -> None:
    for batch in changes.to_batches():
        for row in batch.to_pylist():
            for image in ("before", "after"):
                row[image] = None if row[image] is None else dict(row[image])
            out.write(f"{_json(row)}\n".encode())


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> str:
    assert isinstance(value, datetime | bytes)
    return value.hex() if isinstance(value, bytes) else value.isoformat()
