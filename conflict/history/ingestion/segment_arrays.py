"""
What a walk over a segment finds, as arrays: its events, its rows and their shapes, the rows of `ndb_apply_status`.

The shape of a row event is its table, its operation, and the columns of both images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.config.definitions import Moment, TableVersion
from conflict.history.run import TableNumbers
from conflict.history.shown_effects import bitmap_of
from ndb_formats.columnar.tables import BatchShape
from ndb_formats.constants import APPLY_STATUS
from ndb_formats.events.row_image import has_same_bytes
from ndb_formats.schema.tables import Schema, full_name
from ndb_formats.selection import has_status_columns, is_status_image
from ndb_formats.types.column_types import WireType

Int32 = npt.NDArray[np.int32]


@attrs.define(eq=False)
class RowShapes:
    """
    The shapes of rows met in a segment. Lists are indexed by the number of a shape in the table register.

    Attributes:
        tables: The tables to read, by the names in the binlog.
        numbers: Their numbers.
        of_status: Whether its rows are of `ndb_apply_status`.
        table: Number of its table.
        operation: `Operation` of its rows.
        before: Bitmap of the columns of the before image; no bytes if there is none.
        after: Bitmap of the columns of the after image; no bytes if there is none.
        places: Position in the History table of each column.
        keyless: Whether its table has no primary key.
        types: Wire types of the columns of each History table met.
    """

    tables: Mapping[str, TableVersion]
    numbers: TableNumbers
    of_status: list[bool] = attrs.field(factory=list)
    table: list[int] = attrs.field(factory=list)
    operation: list[int] = attrs.field(factory=list)
    before: list[bytes] = attrs.field(factory=list)
    after: list[bytes] = attrs.field(factory=list)
    places: list[Sequence[int]] = attrs.field(factory=list)
    keyless: list[bool] = attrs.field(factory=list)
    types: dict[str, tuple[WireType, ...]] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return len(self.table)

    def add(self, shape: BatchShape) -> None:
        """
        Add a new shape.

        Raises:
            UnreadableError: Its rows cannot be resolved, or the columns of its table have changed.
        """
        status = shape.table_map.full_name == APPLY_STATUS
        known = has_status_columns(shape.layout.types) and is_status_image(shape.after)
        if status and shape.after is not None and not known:
            raise UnreadableError
        version = None if status else self.tables.get(shape.table_map.full_name)
        self.of_status.append(status)
        self.table.append(0 if status else self._table(shape, version))
        self.keyless.append(version is not None and not version.table.primary_key)
        self.operation.append(int(shape.operation))
        places = range(len(shape.layout.codecs)) if version is None else version.places
        self.places.append(places)
        for bitmaps, columns in ((self.before, shape.before), (self.after, shape.after)):
            bitmaps.append(bitmap_of(None if columns is None else [places[each] for each in columns]))

    def _table(self, shape: BatchShape, version: TableVersion | None) -> int:
        carried = shape.before if shape.before is not None else shape.after
        if version is None or (version.layout is not None and not version.table.primary_key):
            raise UnreadableError
        if not set(version.table.key_ordinals) <= set(carried or ()):
            raise UnreadableError
        if version.layout is not None and not has_same_bytes(shape.layout, version.places, version.layout):
            raise UnreadableError  # values have to be converted
        types = shape.layout.types if version.layout is None else version.layout.types
        if self.types.setdefault(version.history, types) != types:
            raise UnreadableError
        return self.numbers.number(version.history)

    def tables_of(self, shape: Int32) -> npt.NDArray[np.int16]:
        """Return the table number of each row by its shape."""
        return np.array(self.table, np.int16)[shape]

    def operations_of(self, shape: Int32) -> npt.NDArray[np.int8]:
        """Return the operation of each row by its shape."""
        return np.array(self.operation, np.int8)[shape]

    def columns_of(self, shape: Int32) -> tuple[pa.DictionaryArray, pa.DictionaryArray]:
        """Return the columns that the before and after image of each row carry, by its shape."""
        before, after = (pa.array(bitmaps, pa.binary()).dictionary_encode() for bitmaps in (self.before, self.after))
        first, second = (
            pa.DictionaryArray.from_arrays(each.indices.to_numpy()[shape], each.dictionary) for each in (before, after)
        )
        return first, second


def tables_in_force(
    schema: Schema, moment: Moment | None, databases: Mapping[str, str] = MappingProxyType({})
) -> dict[str, TableVersion]:
    """
    Return the tables to read by their names in the binlog.

    Args:
        schema: The tables, where definitions never change.
        moment: What is in force; None where definitions never change.
        databases: The names in `schema` of databases that have other ones in the log.
    """
    if moment is not None:
        return {full_name(database, name): version for (database, name), version in moment.versions.items()}
    own = {name: database for database, name in databases.items()}
    found = {}
    for table in schema.tables:
        if table.full_name != APPLY_STATUS:
            logged = attrs.evolve(table, database=own.get(table.database, table.database))
            places = tuple(range(len(table.columns)))
            found[logged.full_name] = TableVersion(table.full_name, logged, places, None, table)
    return found


Bool = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]
UInt16 = npt.NDArray[np.uint16]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]


class UnreadableError(Exception):
    """A segment cannot be read in columns; the scalar reader reads it, and reports what is wrong if anything is."""


class Events(NamedTuple):
    """
    The events of a segment. All arrays have shape (events,).

    Attributes:
        role: `conflict.history.ingestion.kernels.events.EventRole`. uint8.
        transaction_id: Transaction id. uint64.
        no_id: Whether it has no transaction id. bool.
        server_id: Server on which the change was made. uint32.
        flags: Conflict flags; 0 for none. uint16.
        position: Where it starts in the file. int64.
        payload_position: Where it starts inside its compressed transaction; 0 outside of one. uint32.
        stop: Where it ends. int64.
        second: Second since 1970 of its header. uint32.
        committed: A Gtid event: microsecond since 1970 at which its transaction committed; else 0. int64.
        shape: Number of its `RowShapes` entry; -1 for none. int32.
        rows: How many rows it has. int64.
    """

    role: Bytes
    transaction_id: UInt64
    no_id: Bool
    server_id: UInt32
    flags: UInt16
    position: Int64
    payload_position: UInt32
    stop: Int64
    second: UInt32
    committed: Int64
    shape: Int32
    rows: Int64


class SegmentRows(NamedTuple):
    """
    The rows of a segment, including those of `ndb_apply_status`. All arrays except `keys` have shape (rows,).

    Attributes:
        event: Number of its event. int64.
        number: Its number in the event. int32.
        source: Number of the array of bytes that holds it. int32.
        before_start: Where its before image starts in that array. int64.
        before_size: Bytes of the before image; -1 if there is none. int64.
        after_start: Where its after image starts. int64.
        after_size: Bytes of the after image; -1 if there is none. int64.
        digest: Digest of the after image (see `conflict.history.grid.columns`); 0 if there is none, or the row was only
            read. uint64.
        before_digest: Digest of the before image; 0 if there is none, it carries the key alone, or the row was only
            read. uint64.
        before_value: Value of the resolve column in the before image; 0 if it is NULL or absent. uint64.
        after_value: The same of the after image. uint64.
        bucket: Its bucket. int32.
        key_size: Bytes of its identity. int64.
        keys: Identities, one after the other. Shape (bytes,), uint8.
    """

    event: Int64
    number: Int32
    source: Int32
    before_start: Int64
    before_size: Int64
    after_start: Int64
    after_size: Int64
    digest: UInt64
    before_digest: UInt64
    before_value: UInt64
    after_value: UInt64
    bucket: Int32
    key_size: Int64
    keys: Bytes


class StatusRows(NamedTuple):
    """
    Rows that were written to `ndb_apply_status`, in the order of the binlog. All arrays have shape (rows,).

    Attributes:
        event: Number of its event. int64.
        number: Its number in the event. int32.
        server_id: Column `server_id`. uint64.
        epoch: Column `epoch`. uint64.
        has_log: Whether column `log_name` is not empty. bool.
        of_statement: Whether an applier wrote it that carried out a statement. bool.
    """

    event: Int64
    number: Int32
    server_id: UInt64
    epoch: UInt64
    has_log: Bool
    of_statement: Bool


Arrays = TypeVar("Arrays", Events, SegmentRows, StatusRows)


def joined_pieces(pieces: Sequence[Arrays]) -> Arrays:
    """Return pieces, at least one, as one."""
    if len(pieces) == 1:
        return pieces[0]
    return type(pieces[0])._make(map(np.concatenate, zip(*pieces, strict=True)))


def no_status_rows() -> StatusRows:
    """Return arrays without rows."""
    kinds = (np.int64, np.int32, np.uint64, np.uint64, np.bool_, np.bool_)
    return StatusRows._make(np.zeros(0, kind) for kind in kinds)
