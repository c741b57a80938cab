"""
A folder of Parquet and JSON files.
"""

from __future__ import annotations

import errno
import json
import mmap
import posixpath
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import accumulate, chain
from typing import Any, Protocol

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from conflict.errors import HistoryError
from conflict.history.grid.blocks import BlockPlace, Parts, read_block, write_blocks

# Values that conflict functions compare: they hardly compress, and every resolve that needs them reads them all.
_COMPARED = ("before_value", "after_value")
_DIGESTS = ("before_digest", "after_digest")
ARROW = ".arrow"
HIDDEN = re.compile(r"(^|/)[._]")
_DELETIONS, _PAUSE = 40, 0.05  # seconds
_DICTIONARY_BYTES, _COMPARED_DICTIONARY_BYTES = 1 << 27, 1 << 14


def _write_options(schema: pa.Schema) -> dict[str, Any]:
    """
    Return how the columns of a table are written: small, and cheap to write and to read.

    Integers are written as differences, which every Spark 4 reads. Epochs stay as they are: each number is repeated
    for many rows. Compared values stay uncompressed, with a dictionary as long as there are few of them; digests stay
    as they are.
    Statistics cost as much as the column itself; one epoch has them, by which readers find rows.
    """
    epochs = [name for name in schema.names if name.endswith("epoch")]
    compared = [name for name in schema.names if name in _COMPARED]
    encodings = {
        field.name: "DELTA_BINARY_PACKED"
        for field in schema
        if pa.types.is_integer(field.type) and field.name not in (*epochs, *compared, *_DIGESTS)
    }
    dictionaries = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    return {
        "compression": {name: "none" if name in (*compared, *_DIGESTS) else "lz4" for name in schema.names},
        "column_encoding": encodings,
        "use_dictionary": dictionaries + compared,
        "dictionary_pagesize_limit": _COMPARED_DICTIONARY_BYTES if compared else _DICTIONARY_BYTES,
        "write_statistics": epochs[:1],
        "store_schema": not dictionaries,  # other readers see values, not a dictionary
        "write_page_checksum": True,
    }


class Attempt(Protocol):
    """An attempt of a task (see `conflict.history.grid.attempts`): it writes each file at a place of its own."""

    def own_file(self, full: str) -> str:
        """Return where a file is for this attempt, given its full path."""
        ...

    def new_file(self, full: str) -> AbstractContextManager[str | None]:
        """Give a place for a file, given its full path; None for a file that is in none of the folders."""
        ...


running: list[Attempt] = []  # a worker's process has one task at a time, whatever threads it starts


def current_attempt() -> Attempt | None:
    """Return the attempt that this process makes; None in a driver, and where tasks run in threads."""
    return running[-1] if running else None


@attrs.frozen
class Folder:
    """
    A folder on this machine, or on a share; of one on object storage see `conflict.history.grid.stored_folder`.

    Attributes:
        uri: Where it is: an absolute path.
    """

    uri: str

    def place(self, path: str = "") -> tuple[pafs.FileSystem, str]:
        """Return the filesystem, and the full path there of a file or folder below this one."""
        return LOCAL, posixpath.join(self.uri, path) if path else self.uri

    def _now(self, path: str = "") -> tuple[pafs.FileSystem, str]:
        """Return where a file is now: one that an attempt of a task has written is not in its place yet."""
        (filesystem, full), attempt = self.place(path), current_attempt()
        return filesystem, full if attempt is None else attempt.own_file(full)

    def _resolve(self, path: str = "") -> tuple[pafs.FileSystem, str]:
        """Return where a file can be read."""
        return self._now(path)

    @property
    def is_apart(self) -> bool:
        """Whether tasks write to a copy of their own, and not where the driver does."""
        return False

    def here(self, path: str) -> str | list[str]:
        """Return where a folder below this one is, for who reads all its files; or all these files."""
        return posixpath.join(self.uri, path)

    def address(self, path: str) -> str:
        """Return where a file or folder is, for who has this path or address alone; it stays what it was."""
        return posixpath.join(self.uri, path)

    def forget(self) -> None:
        """Remove what this process keeps of a folder elsewhere; it is fetched again when it is needed."""

    def below(self, path: str) -> Folder:
        """Return a folder below this one."""
        return Folder(posixpath.join(self.uri, path))

    def exists(self, path: str = "") -> bool:
        """Whether a file or folder exists."""
        filesystem, full = self._now(path)
        return bool(filesystem.get_file_info(full).type != pafs.FileType.NotFound)

    def write_table(self, path: str, table: pa.Table, group_rows: int | None = None) -> None:
        """
        Write one Parquet file, or an Arrow file if the name ends in ``.arrow``.

        It is written beside its place first, so that no reader sees half of it.

        Args:
            path: The file.
            table: What is in it.
            group_rows: How many rows can be read without the others; None for about a million.
        """
        with self._written(path) as (filesystem, beside):
            if path.endswith(ARROW):
                with filesystem.open_output_stream(beside) as stream, pa.ipc.new_file(stream, table.schema) as writer:
                    writer.write_table(table)
            else:
                options = _write_options(table.schema)
                pq.write_table(table, beside, row_group_size=group_rows, filesystem=filesystem, **options)

    def write_rows(self, path: str, parts: Iterable[pa.Table]) -> None:
        """Write one Parquet file of the rows of tables, at least one; each is made when those before it are written."""
        following = iter(parts)
        first = next(following)
        with (
            self._written(path) as (filesystem, beside),
            pq.ParquetWriter(beside, first.schema, filesystem=filesystem, **_write_options(first.schema)) as writer,
        ):
            for _ in map(writer.write_table, chain([first], following)):
                pass  # and nothing of a table is held while the next one is made

    def write_parts(self, path: str, parts: Sequence[pa.Table]) -> npt.NDArray[np.int64]:
        """
        Write the tables of all buckets, so that those of some can be read without the others.

        Args:
            path: The file.
            parts: The tables, at least one; they have one schema.

        Returns:
            Where each block of the file starts, and where the last one ends; shape (`blocks.ranges_of` + 1,).
        """
        with self._written(path) as (filesystem, beside), filesystem.open_output_stream(beside) as stream:
            return np.fromiter(write_blocks(stream, parts), np.int64)

    @contextmanager
    def parts(self, places: Sequence[BlockPlace]) -> Iterator[list[Parts]]:
        """
        Give the tables that `write_parts` wrote, of some buckets; nothing of them is left here after the block.

        Raises:
            HistoryError: A file is missing or damaged.
        """
        yield [self._block(place) for place in places]

    def _block(self, place: BlockPlace) -> Parts:
        """Return a block of a file that is here, which is mapped."""
        _, full = self._resolve(place.path)
        with self._readable(place.path), pa.memory_map(full) as source:
            source.seek(place.start)
            return read_block(source.read_buffer(place.stop - place.start), place.buckets.start)

    @contextmanager
    def _written(self, path: str) -> Iterator[tuple[pafs.FileSystem, str]]:
        """
        Give a name beside a file, and rename what was written there; on an error nothing is left of it.

        In an attempt of a task, the driver renames it (see `conflict.history.grid.attempts`).
        """
        (filesystem, full), attempt = self.place(path), current_attempt()
        folder, name = posixpath.split(full)
        with nullcontext() if attempt is None else attempt.new_file(full) as own:
            if own is None:
                filesystem.create_dir(folder, recursive=True)
            beside = own or posixpath.join(folder, incomplete(name))
            try:
                yield filesystem, beside
            except BaseException:
                with suppress(OSError):
                    filesystem.delete_file(beside)
                raise
            if own is None:
                filesystem.move(beside, full)

    def read_table(self, path: str, schema: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
        """
        Read what `write_table` wrote; a file that does not exist is read as an empty table.

        Raises:
            HistoryError: It is damaged.
        """
        wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        if not self.exists(path):
            return wanted.empty_table()
        filesystem, full = self._resolve(path)
        if path.endswith(ARROW):
            source = pa.memory_map(full) if isinstance(filesystem, pafs.LocalFileSystem) else self.read_bytes(path)
            return pa.ipc.open_file(source).read_all().select(wanted.names).cast(wanted)
        dictionaries = [field.name for field in wanted if pa.types.is_dictionary(field.type)]
        with self._readable(path), filesystem.open_input_file(full) as source:
            file = pq.ParquetFile(source, read_dictionary=dictionaries, page_checksum_verification=True)
            # A task has one core; more threads would compete with other tasks.
            return file.read(wanted.names, use_threads=False).cast(wanted)

    @property
    def lasts(self) -> bool:
        """Whether what is written is there after this process."""
        return True

    def read_rows(self, path: str, schema: pa.Schema, first: int, count: int) -> pa.Table:
        """Read some rows, at least one, of a Parquet file that exists, and of the others those in the same groups."""
        filesystem, full = self._resolve(path)
        dictionaries = [field.name for field in schema if pa.types.is_dictionary(field.type)]
        with self._readable(path), filesystem.open_input_file(full) as source:
            file = pq.ParquetFile(source, read_dictionary=dictionaries, page_checksum_verification=True)
            ends = list(accumulate(file.metadata.row_group(each).num_rows for each in range(file.num_row_groups)))
            groups = range(bisect_right(ends, first), bisect_left(ends, first + count) + 1)
            table = file.read_row_groups(groups, schema.names, use_threads=False).cast(schema)
            return table.slice(first - ([0, *ends][groups[0]]), count)

    def read_groups(self, path: str, schema: pa.Schema, rows: range | None = None) -> Iterator[pa.Table]:
        """Yield rows of a Parquet file, by default all, group by group; a file that does not exist has none."""
        if not self.exists(path):
            return
        filesystem, full = self._resolve(path)
        with self._readable(path), filesystem.open_input_file(full) as source:
            file, first = pq.ParquetFile(source, page_checksum_verification=True), 0
            for number in range(file.num_row_groups):
                count = file.metadata.row_group(number).num_rows
                wanted = range(first, first + count) if rows is None else _common(rows, range(first, first + count))
                if wanted:
                    group = file.read_row_group(number, schema.names, use_threads=False).cast(schema)
                    yield group.slice(wanted.start - first, len(wanted))
                first += count

    def rows_within(self, path: str, column: str, least: int, greatest: int) -> tuple[int, int]:
        """
        Return the first row of a Parquet file whose value of an ascending unsigned column is in a range, and how many.

        Only the groups at the ends of the range are read. A file that does not exist has no rows.
        """
        filesystem, full = self._resolve(path)
        if not self.exists(path):
            return 0, 0
        with self._readable(path), filesystem.open_input_file(full) as source:
            file = pq.ParquetFile(source, page_checksum_verification=True)
            place, first, count = file.schema_arrow.get_field_index(column), 0, 0
            for number in range(file.num_row_groups):
                group = file.metadata.row_group(number)
                known = group.column(place).statistics
                if known.max < least:
                    first += group.num_rows
                elif known.min >= least and known.max <= greatest:
                    count += group.num_rows
                elif known.min <= greatest:
                    values = file.read_row_group(number, [column], use_threads=False).column(0).to_numpy()
                    before, until = int((values < least).sum()), int((values <= greatest).sum())
                    first, count = first + before, count + max(until - before, 0)
            return first, count

    def rows(self, path: str) -> int:
        """
        Return the number of rows of a Parquet file; 0 if it does not exist.

        Raises:
            HistoryError: It is damaged.
        """
        if not self.exists(path):
            return 0
        with self._footer(path) as source:
            return int(pq.read_metadata(source).num_rows)

    @contextmanager
    def _footer(self, path: str) -> Iterator[pa.NativeFile]:
        """Give a Parquet file, whose end alone is read."""
        filesystem, full = self._resolve(path)
        with self._readable(path), filesystem.open_input_file(full) as source:
            yield source

    @contextmanager
    def _readable(self, path: str) -> Iterator[None]:
        """Say which file cannot be read, and what to do."""
        try:
            yield
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            missing = isinstance(error, FileNotFoundError)
            if is_of_storage(error) and not missing:
                raise
            cause = "it is missing" if missing else " ".join(str(error).split())
            message = f"{posixpath.join(self.uri, path)} is damaged ({cause}); make the folder again"
            raise HistoryError(message) from error

    def may_be_null(self, path: str, column: str) -> bool:
        """Whether the schema of a Parquet file lets a column be NULL; False if the file does not exist."""
        if not self.exists(path):
            return False
        with self._footer(path) as source:
            return bool(pq.read_schema(source).field(column).nullable)

    def read_tables(self, paths: Iterable[str], schema: pa.Schema) -> pa.Table:
        """Read several Parquet files as one table."""
        return pa.concat_tables([schema.empty_table(), *(self.read_table(path, schema) for path in paths)])

    def write_json(self, path: str, document: object) -> None:
        """Write a JSON file."""
        self.write_bytes(path, (json.dumps(document, indent=2) + "\n").encode())

    def read_json(self, path: str) -> Any:
        """
        Read a JSON file.

        Raises:
            HistoryError: It is damaged.
        """
        filesystem, full = self._resolve(path)
        with self._readable(path), filesystem.open_input_stream(full) as stream:
            return _parsed(stream.read())

    def write_bytes(self, path: str, *parts: bytes | memoryview) -> None:
        """Write a file, beside its place first, so that no reader sees half of it."""
        with self._written(path) as (filesystem, beside), filesystem.open_output_stream(beside) as stream:
            for part in parts:
                stream.write(part)

    def read_bytes(self, path: str) -> bytes:
        """Read a file."""
        filesystem, full = self._resolve(path)
        with filesystem.open_input_stream(full) as stream:
            return bytes(stream.read())

    def mapped(self, path: str) -> mmap.mmap:
        """Return a file that is not empty, mapped; what is changed of it is changed in this process alone."""
        return self._mapped(self._resolve(path)[1])

    @staticmethod
    def _mapped(full: str) -> mmap.mmap:
        with open(full, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Read some bytes of a file."""
        filesystem, full = self._resolve(path)
        with filesystem.open_input_file(full) as source:
            source.seek(start)
            return bytes(source.read(length))

    def sizes(self, paths: Iterable[str] | None = None) -> dict[str, int]:
        """
        Return the sizes of files by their paths; files that do not exist are left out.

        Args:
            paths: The files; None for all, at any depth, except those whose names, or whose folders' names, start with
                a dot or with ``_``, which Spark ignores.
        """
        filesystem, base = self._now()
        if paths is not None:
            wanted = list(paths)
            found = zip(wanted, filesystem.get_file_info([self._now(path)[1] for path in wanted]), strict=True)
            return {path: info.size for path, info in found if info.type == pafs.FileType.File}
        everything = filesystem.get_file_info(pafs.FileSelector(base, recursive=True))
        files = {
            posixpath.relpath(info.path, base): info.size for info in everything if info.type == pafs.FileType.File
        }
        return {path: size for path, size in files.items() if not HIDDEN.search(path)}

    def write_arrays(self, path: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """
        Write arrays of one dimension as one Arrow file, with one row that holds a list per array.

        A process that has mapped an earlier file of that name keeps the old content.
        """
        columns = {
            name: pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), pa.array(array))
            for name, array in arrays.items()
        }
        batch = pa.record_batch(columns)
        with (
            self._written(path) as (filesystem, beside),
            filesystem.open_output_stream(beside) as stream,
            pa.ipc.new_file(stream, batch.schema) as writer,
        ):
            writer.write_batch(batch)

    def read_arrays(self, path: str) -> dict[str, npt.NDArray[Any]]:
        """Read what `write_arrays` wrote; a local file is mapped into memory, not copied."""
        filesystem, full = self._resolve(path)
        local = isinstance(filesystem, pafs.LocalFileSystem)
        source = pa.memory_map(full) if local else pa.BufferReader(self.read_bytes(path))
        batch = pa.ipc.open_file(source).get_batch(0)
        return {name: column.values.to_numpy() for name, column in zip(batch.schema.names, batch.columns, strict=True)}

    def delete(self, path: str = "") -> None:
        """Delete a file or folder, if it exists; a thread of an interrupted run may still write its last file there."""
        filesystem, full = self._now(path)
        kind = filesystem.get_file_info(full).type
        if kind == pafs.FileType.File:
            filesystem.delete_file(full)
        for attempt in range(_DELETIONS if kind == pafs.FileType.Directory else 0):
            try:
                filesystem.delete_dir(full)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY or attempt == _DELETIONS - 1:
                    raise
                time.sleep(_PAUSE)
            else:
                break


def _common(one: range, other: range) -> range:
    return range(max(one.start, other.start), min(one.stop, other.stop))


def is_of_storage(error: Exception) -> bool:
    """Whether an error is one of the operating system or of storage, and not of the content of a file."""
    return getattr(error, "errno", None) is not None


def _parsed(data: bytes) -> Any:
    """Return a JSON document."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        message = f"no JSON: {error}"
        raise pa.ArrowInvalid(message) from error


def incomplete(name: str) -> str:
    """Return the name that a file has before it is whole; Spark ignores names that start with a dot."""
    return f".{name}.incomplete"


LOCAL = pafs.LocalFileSystem()
