"""
A folder of Parquet and JSON files on any filesystem that pyarrow knows.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

__all__ = ["Folder"]

_DICTIONARY_BYTES = 1 << 27
_STRETCH = 8  # so many times does a number stand in a row, on average, that is written with how often
_LOOKED_UP = {"position", "transaction_id"}  # of few rows


def _small(schema: pa.Schema) -> dict[str, Any]:
    """
    Return how a table is written that is read once or twice: what costs least to write and to read again.

    Epochs come in long stretches of the same number, which lz4 alone makes small. Other integers are split into streams
    of their first, second, ... bytes before that; unsigned ones are kept as differences, for Spark does not read them
    so. What has a dictionary keeps it. Statistics of a column cost as much as the column; readers get them for one
    epoch, by which they look for rows.
    """
    epochs = [name for name in schema.names if _is_epoch(name)]
    integers = [field for field in schema if pa.types.is_integer(field.type) and not _is_epoch(field.name)]
    encodings = {
        field.name: "DELTA_BINARY_PACKED" if pa.types.is_unsigned_integer(field.type) else "BYTE_STREAM_SPLIT"
        for field in integers
    }
    dictionaries = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    return {
        "compression": "lz4",
        "column_encoding": encodings,
        "use_dictionary": dictionaries,
        "dictionary_pagesize_limit": _DICTIONARY_BYTES,
        "write_statistics": epochs[:1],
        # To other readers a dictionary is not another type.
        "store_schema": not dictionaries,
    }


def _quick(table: pa.Table) -> dict[str, Any]:
    """
    Return how a table is written that is read again and again: what costs least to read.

    A number that stands many times in a row is written once with how often, as Parquet does with what has a dictionary;
    all others stand as they are, which takes half the time to read that lz4 does. What is looked up for few rows is
    kept small.
    """
    small = _small(table.schema)
    stretches = [name for name in table.schema.names if name not in _LOOKED_UP and _comes_in_stretches(table[name])]
    dictionaries = list(dict.fromkeys(small["use_dictionary"] + stretches))
    return {
        **small,
        "compression": {name: "lz4" if name in _LOOKED_UP else "none" for name in table.schema.names},
        "column_encoding": {name: small["column_encoding"][name] for name in _LOOKED_UP & set(table.schema.names)},
        "use_dictionary": dictionaries,
    }


def _comes_in_stretches(column: pa.ChunkedArray) -> bool:
    """Whether a column holds numbers, none of them NULL, that stand there many times in a row."""
    if not pa.types.is_integer(column.type) or column.null_count:
        return False
    values = column.to_numpy()
    return int(np.count_nonzero(values[1:] != values[:-1])) * _STRETCH < len(values)


def _is_epoch(name: str) -> bool:
    return name.endswith("epoch")


@attrs.frozen
class Folder:
    """
    A folder on any filesystem that pyarrow knows: a local path, or a URI such as ``s3://bucket/path``.

    Attributes:
        uri: Where it is.
    """

    uri: str

    def _resolve(self, path: str = "") -> tuple[pafs.FileSystem, str]:
        filesystem, base = pafs.FileSystem.from_uri(self.uri) if "://" in self.uri else (_LOCAL, self.uri)
        return filesystem, posixpath.join(base, path) if path else base

    def below(self, path: str) -> Folder:
        """Return a folder below this one."""
        return Folder(posixpath.join(self.uri, path))

    def exists(self, path: str = "") -> bool:
        """Whether something is there."""
        filesystem, full = self._resolve(path)
        return bool(filesystem.get_file_info(full).type != pafs.FileType.NotFound)

    def write_table(self, path: str, table: pa.Table, *, quick: bool = False) -> None:
        """Write one Parquet file; nobody ever sees half of it. `quick` is for what is read again and again."""
        filesystem, full = self._resolve(path)
        filesystem.create_dir(posixpath.dirname(full), recursive=True)
        beside = _beside(full)
        options = _quick(table) if quick else _small(table.schema)
        pq.write_table(table, beside, filesystem=filesystem, **options)
        filesystem.move(beside, full)

    def read_table(self, path: str, schema: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
        """Read one Parquet file; one that is not there is empty."""
        wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        if not self.exists(path):
            return wanted.empty_table()
        filesystem, full = self._resolve(path)
        dictionaries = [field.name for field in wanted if pa.types.is_dictionary(field.type)]
        with filesystem.open_input_file(full) as source:
            file = pq.ParquetFile(source, read_dictionary=dictionaries)
            # A task has a core; more threads would take those of other tasks.
            return file.read(wanted.names, use_threads=False).cast(wanted)

    def may_be_null(self, path: str, column: str) -> bool:
        """Whether a column of a Parquet file says that it can hold NULL; one of a file that is not there cannot."""
        if not self.exists(path):
            return False
        filesystem, full = self._resolve(path)
        with filesystem.open_input_file(full) as source:
            return bool(pq.read_schema(source).field(column).nullable)

    def read_tables(self, paths: Iterable[str], schema: pa.Schema) -> pa.Table:
        """Read several Parquet files as one table."""
        return pa.concat_tables([schema.empty_table(), *(self.read_table(path, schema) for path in paths)])

    def write_json(self, path: str, document: object) -> None:
        """Write a JSON file; nobody ever sees half of it."""
        filesystem, full = self._resolve(path)
        filesystem.create_dir(posixpath.dirname(full), recursive=True)
        beside = _beside(full)
        with filesystem.open_output_stream(beside) as stream:
            stream.write((json.dumps(document, indent=2) + "\n").encode())
        filesystem.move(beside, full)

    def read_json(self, path: str) -> Any:
        """Read a JSON file."""
        filesystem, full = self._resolve(path)
        with filesystem.open_input_stream(full) as stream:
            return json.loads(stream.read())

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file."""
        filesystem, full = self._resolve(path)
        filesystem.create_dir(posixpath.dirname(full), recursive=True)
        with filesystem.open_output_stream(full) as stream:
            stream.write(data)

    def read_bytes(self, path: str) -> bytes:
        """Read a file."""
        filesystem, full = self._resolve(path)
        with filesystem.open_input_stream(full) as stream:
            return bytes(stream.read())

    def write_arrays(self, path: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """
        Write arrays with one dimension as one Arrow file: a row with a list for each.

        Who has mapped an earlier file of that name keeps what it saw.
        """
        filesystem, full = self._resolve(path)
        filesystem.create_dir(posixpath.dirname(full), recursive=True)
        columns = {
            name: pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), pa.array(array))
            for name, array in arrays.items()
        }
        batch = pa.record_batch(columns)
        beside = _beside(full)
        with filesystem.open_output_stream(beside) as stream, pa.ipc.new_file(stream, batch.schema) as writer:
            writer.write_batch(batch)
        filesystem.move(beside, full)

    def read_arrays(self, path: str) -> dict[str, npt.NDArray[Any]]:
        """Read what `write_arrays` wrote; from a local folder only the parts of it that are looked at."""
        filesystem, full = self._resolve(path)
        local = isinstance(filesystem, pafs.LocalFileSystem)
        source = pa.memory_map(full) if local else pa.BufferReader(self.read_bytes(path))
        batch = pa.ipc.open_file(source).get_batch(0)
        return {name: column.values.to_numpy() for name, column in zip(batch.schema.names, batch.columns, strict=True)}

    def delete(self, path: str = "") -> None:
        """Delete a file or folder, if it is there."""
        filesystem, full = self._resolve(path)
        kind = filesystem.get_file_info(full).type
        if kind == pafs.FileType.Directory:
            filesystem.delete_dir(full)
        elif kind == pafs.FileType.File:
            filesystem.delete_file(full)

    def move_to(self, target: Folder) -> None:
        """Rename the folder; what stands at the target must be gone."""
        filesystem, full = self._resolve()
        _, destination = target._resolve()  # a folder of the same class
        filesystem.create_dir(posixpath.dirname(destination), recursive=True)
        filesystem.move(full, destination)


def _beside(path: str) -> str:
    """Return where a file is written before it is renamed; Spark passes over names that start with a dot."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f".{name}.incomplete")


_LOCAL = pafs.LocalFileSystem()
