"""
CSV of row changes: a column for every field, those of images as ``before.x`` and ``after.x``.

Numbers stand without quotes and all texts in quotes; NULL and absent are nothing at all, and an empty text is ``""``.
Bytes are hexadecimal digits after ``0x``.
A text that a spreadsheet would take for a formula has ``'`` before it, and so has one that starts with ``'``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ndb_formats.columnar.records import decimal_texts

__all__ = ["CsvWriter", "flat_table", "no_formulas"]

_STARTS = "^[=+@\t\r'-]"
_PLAIN_PLACES = 6
_NUMBER = "^[+-][0-9 .:,]*$"


class CsvWriter:
    """Writes one CSV file, or to a stream."""

    def __init__(self, target: Path | BinaryIO, schema: pa.Schema) -> None:
        """Write the names of the columns of a schema."""
        flat = flat_table(schema.empty_table())
        options = pyarrow.csv.WriteOptions(quoting_style="needed")
        self._writer = pyarrow.csv.CSVWriter(target, flat.schema, write_options=options)

    def write_table(self, table: pa.Table) -> None:
        """Write rows."""
        self._writer.write_table(flat_table(table))

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()


def flat_table(table: pa.Table) -> pa.Table:
    """Return rows with a column for every field of their images, in types that CSV has."""
    flat = table.flatten()
    return pa.Table.from_arrays([_plain(column) for column in flat.columns], flat.schema.names)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return no_formulas(column)
    if pa.types.is_binary(kind):
        return pa.chunked_array([_hexadecimal(chunk) for chunk in column.chunks], pa.string())
    if pa.types.is_decimal256(kind) or (pa.types.is_decimal(kind) and kind.scale > _PLAIN_PLACES):
        # Arrow writes small numbers of so many digits after the point with an exponent.
        return pa.chunked_array([decimal_texts(chunk) for chunk in column.chunks], pa.string())
    return column


def no_formulas(texts: Any) -> Any:
    """
    Return an array of texts with ``'`` before those that a spreadsheet would take for a formula.

    Numbers and times are none.
    """
    starts = pc.match_substring_regex(texts, _STARTS)
    if not pc.any(starts).as_py():
        return texts
    formulas = pc.and_not(starts, pc.match_substring_regex(texts, _NUMBER))
    mark = pa.scalar("'", texts.type)
    return pc.if_else(formulas, pc.binary_join_element_wise(mark, texts, pa.scalar("", texts.type)), texts)


def _hexadecimal(values: pa.BinaryArray) -> pa.Array:
    encoded = values.dictionary_encode()
    texts = ["0x" + value.hex().upper() for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)
