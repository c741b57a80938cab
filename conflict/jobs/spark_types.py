"""
Arrow types that Spark does not have, as types that it has and that hold the same values.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["spark_type"]

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20),
    pa.timestamp("ms", tz="UTC"): pa.timestamp("us", tz="UTC"),
    pa.null(): pa.string(),
}


def spark_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that Spark reads values of a type as."""
    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, spark_type(field.type)) for field in kind])
    return pa.string() if pa.types.is_decimal256(kind) else _WIDER.get(kind, kind)
