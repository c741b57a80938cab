"""
The typed values of keys, from their texts in a result.

Texts are as they compare: under a collation that ignores case, the value may have another case in the row.
"""

from __future__ import annotations

import re
from binascii import unhexlify
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.results.arrow_rows import row_schema
from ndb_formats.schema.create_table import parse_create_table

__all__ = ["key_schema", "key_values"]


def key_schema(columns: Mapping[str, str], key: Sequence[str]) -> pa.Schema:
    """
    Return the Arrow types of key columns.

    Args:
        columns: SQL type of each column of the table.
        key: Names of the key columns, in key order.
    """
    definitions = ", ".join(f"`{name.replace('`', '``')}` {columns[name]}" for name in key)
    return row_schema(parse_create_table(f"CREATE TABLE t ({definitions})"))


def key_values(texts: pa.ChunkedArray, schema: pa.Schema) -> pa.StructArray:
    """
    Return keys as structs of their columns.

    A text column that holds what looks like the start of the next column, ``, b=``, is cut there.

    Args:
        texts: Keys as `ndb_formats.schema.row_keys.key_text` writes them: ``a=1, b=two``.
        schema: Their columns, in key order.
    """
    whole = texts.combine_chunks()
    # Names of groups are numbers, because a column can have any name.
    parts = (f"{re.escape(field.name)}=(?P<g{number}>.*?)" for number, field in enumerate(schema))
    found = pc.extract_regex(whole, f"(?s)^{', '.join(parts)}$")
    columns = [_typed(column, field.type) for column, field in zip(found.flatten(), schema, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=list(schema))


def _typed(texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_binary(kind):
        return texts.cast(kind)
    # Every byte has two digits, so all values can be read at once.
    texts = pa.concat_arrays([texts])
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[: len(texts) + 1]
    data = unhexlify(bytes(texts.buffers()[2] or b"")[offsets[0] : offsets[-1]])
    starts = pa.py_buffer((offsets - offsets[0]) // 2)
    return pa.BinaryArray.from_buffers(kind, len(texts), [texts.buffers()[0], starts, pa.py_buffer(data)])
