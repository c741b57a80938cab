"""
The keys of a table's rows: as identities, which tell rows apart; as typed values; and as text for people.

Two rows can have the same text: ``a=x, b=1, b=2`` is the key ('x, b=1', '2') and ('x', '1, b=2'). So results have the
identity of each row beside its text, and everything that joins rows joins them by it.

Typed texts are as they compare: under a collation that ignores case, the value may have another case in the row.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import attrs
import pyarrow as pa

from conflict.engine.ledger.arrow_rows import arrow_array, row_schema
from ndb_formats.constants import ColumnCode
from ndb_formats.errors import FormatError
from ndb_formats.events.row_image import RowLayout
from ndb_formats.events.table_map_of_table import wire_type_of
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.row_keys import key_of, key_payload, key_text, key_values, value_text
from ndb_formats.schema.tables import Column, Table
from ndb_formats.types.column_types import Codec, WireType, codec_of
from ndb_formats.types.values import Value

# The form of servers before MySQL 5.6, which a table keeps that was made there.
_OLD_MOMENTS = {"time": ColumnCode.TIME, "datetime": ColumnCode.DATETIME, "timestamp": ColumnCode.TIMESTAMP}


def has_moments(table: Table) -> bool:
    """Whether a key has a column whose form is not in the definition of the table."""
    return any(column.type in _OLD_MOMENTS for column in table.key_columns)


def _codecs(column: Column) -> list[Codec]:
    """Return the codecs that a column can have, the likeliest first."""
    wires = [wire_type_of(column)]
    if column.type in _OLD_MOMENTS and not column.length:
        wires.append(WireType(_OLD_MOMENTS[column.type]))
    return [codec_of(wire, unsigned=column.unsigned, charset=column.charset, members=column.members) for wire in wires]


def _payload(column: Column, codec: Codec, value: Value) -> bytes | None:
    try:
        return key_payload(column, codec, value)
    except (ValueError, OverflowError, struct.error):
        message = f"{value_text(value)} is no value of {column.name}, {column.sql_type}"
        raise ValueError(message) from None


@attrs.frozen
class TableKey:
    """
    The primary key of a table.

    Attributes:
        columns: Its columns, in key order.
        codecs: Their codecs.
    """

    columns: Sequence[Column]
    codecs: Sequence[Codec]

    @classmethod
    def of(cls, table: Table, layout: RowLayout | None = None) -> TableKey:
        """Return the key of a table; `layout` is how its rows are logged, None for what its definition says."""
        if layout is None:
            return cls(table.key_columns, [_codecs(column)[0] for column in table.key_columns])
        return cls(table.key_columns, [layout.codecs[ordinal] for ordinal in table.key_ordinals])

    @classmethod
    def that_gives(cls, table: Table, identity: bytes, text: str) -> TableKey:
        """Return the key of a table by which an identity has this text: a definition does not tell all of its form."""
        forms = (cls(table.key_columns, codecs) for codecs in product(*map(_codecs, table.key_columns)))
        return next((form for form in forms if form.gives(identity, text)), cls.of(table))

    def gives(self, identity: bytes, text: str) -> bool:
        """Whether an identity has this text."""
        try:
            return self.text(identity) == text
        except (FormatError, ValueError):
            return False

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def values(self, identity: bytes) -> list[Value]:
        """Return the values of the columns, of a text as it compares."""
        return key_values(self.columns, self.codecs, identity)

    def text(self, identity: bytes) -> str:
        """Return a key as text for people."""
        return key_text(self.columns, self.codecs, identity)

    def identity(self, values: Sequence[Value]) -> bytes:
        """
        Return the identity of the row whose key columns have these values; texts in any spelling.

        Raises:
            ValueError: A value is none of its column.
        """
        parts = zip(self.columns, self.codecs, values, strict=True)
        return key_of(self.columns, [_payload(*part) for part in parts])


def table_of(columns: Mapping[str, str], key: Iterable[str] = ()) -> Table:
    """
    Return a table with some columns.

    Args:
        columns: SQL type of each column.
        key: Names of the key columns, in key order.
    """
    definitions = ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in columns.items())
    return attrs.evolve(parse_create_table(f"CREATE TABLE t ({definitions})"), primary_key=tuple(key))


def typed_keys(identities: pa.ChunkedArray, texts: pa.ChunkedArray, table: Table) -> pa.StructArray:
    """
    Return keys as structs of their columns.

    Args:
        identities: The keys, as `ndb_formats.schema.row_keys.key_of` makes them.
        texts: The same as text.
        table: Their table, of key columns alone.

    Raises:
        FormatError: A key is not one of the table.
    """
    schema, distinct = row_schema(table), identities.combine_chunks().dictionary_encode()
    examples = zip(identities[:1].to_pylist(), texts[:1].to_pylist(), strict=True)
    keys = [TableKey.that_gives(table, *example) for example in examples]
    values = [key.values(each) for key in keys for each in distinct.dictionary.to_pylist()]
    columns = zip(*values, strict=True) if values else [()] * len(schema)
    arrays = [arrow_array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=list(schema)).take(distinct.indices)
