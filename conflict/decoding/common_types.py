"""
Arrow types that Spark, Delta and Iceberg do not have, as types that they have and that hold the same values.
"""

from __future__ import annotations

import pyarrow as pa

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20),
    pa.timestamp("ms", tz="UTC"): pa.timestamp("us", tz="UTC"),
    pa.null(): pa.string(),
}


def common_schema(schema: pa.Schema) -> pa.Schema:
    """Return columns in types that Spark has."""
    return pa.schema([pa.field(each.name, common_type(each.type)) for each in schema])


def common_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of Spark that holds the values of a type."""
    if pa.types.is_dictionary(kind):
        return common_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, common_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", common_type(kind.value_type)))  # Spark compares the name, too
    return pa.string() if pa.types.is_decimal256(kind) else _WIDER.get(kind, kind)
