"""Many keys at once: the bytes and texts that the scalar functions give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.columnar.kernels.keys import buckets_of
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.keys import KeyRows, are_equal, key_parts, key_texts, put_keys, slices
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import layout_of_types
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.row_keys import key_of, key_text
from ndb_formats.schema.tables import Table
from ndb_formats.types.column_types import WireType, codec_of

words = st.text(st.sampled_from("aAäÄåßéE\u017f z€"), max_size=6)
latin = st.text(st.sampled_from("aAäÄåß[]\\ zZ@`{"), max_size=6)
# Letters that languages take as one, what collations ignore, and what compares like a blank.
odd = st.text(st.sampled_from("aAchCHlLå\0\t \u0301\u00a0ß"), max_size=6)
# Declared type, wire type, values of it.
COLUMNS: dict[str, tuple[str, WireType, st.SearchStrategy[Any]]] = {
    "tiny": ("TINYINT", WireType(ColumnCode.TINY), st.integers(-128, 127)),
    "medium": ("MEDIUMINT", WireType(ColumnCode.INT24), st.integers(-(2**23), 2**23 - 1)),
    "int": ("INT", WireType(ColumnCode.LONG), st.integers(-(2**31), 2**31 - 1)),
    "big": ("BIGINT UNSIGNED", WireType(ColumnCode.LONGLONG), st.integers(0, 2**64 - 1)),
    "date": ("DATE", WireType(ColumnCode.DATE), st.sampled_from(["2024-02-29", "0000-00-00", "1999-12-31"])),
    "moment": (
        "DATETIME(3)",
        WireType(ColumnCode.DATETIME2, 3),
        st.sampled_from(["2024-02-29 23:59:59.999", "1000-01-01 00:00:00.000"]),
    ),
    "year": ("YEAR", WireType(ColumnCode.YEAR), st.sampled_from([0, 1901, 2155])),
    "decimal": ("DECIMAL(10,4)", WireType(ColumnCode.NEWDECIMAL, 10, 4), st.decimals(-999, 999, places=4)),
    "double": ("DOUBLE", WireType(ColumnCode.DOUBLE, 8), st.sampled_from([0.5, -1e300, 3.0])),
    "enum": ("ENUM('a','ö','b c')", WireType(ColumnCode.ENUM, 1), st.sampled_from(["a", "ö", "b c"])),
    "binary": ("BINARY(5)", WireType(ColumnCode.STRING, 5), st.binary(max_size=5)),
    "bytes": ("VARBINARY(300)", WireType(ColumnCode.VARCHAR, 300), st.binary(max_size=12)),
    "text": ("VARCHAR(20) COLLATE utf8mb4_0900_ai_ci", WireType(ColumnCode.VARCHAR, 80), words),
    "exact": ("VARCHAR(20) COLLATE utf8mb4_bin", WireType(ColumnCode.VARCHAR, 80), words),
    "case": ("VARCHAR(20) COLLATE utf8mb4_0900_as_cs", WireType(ColumnCode.VARCHAR, 80), words),
    "plain": ("VARCHAR(20) COLLATE utf8mb4_general_ci", WireType(ColumnCode.VARCHAR, 80), words),
    "danish": ("VARCHAR(20) COLLATE utf8mb4_danish_ci", WireType(ColumnCode.VARCHAR, 80), odd),
    "spanish": ("CHAR(20) COLLATE utf8mb4_spanish2_ci", WireType(ColumnCode.STRING, 80), odd),
    "traditional": ("VARCHAR(20) COLLATE utf8mb4_es_trad_0900_as_cs", WireType(ColumnCode.VARCHAR, 80), odd),
    "ignoring": ("VARCHAR(20) COLLATE utf8mb4_0900_ai_ci", WireType(ColumnCode.VARCHAR, 80), odd),
    "general": ("CHAR(20) COLLATE utf8mb4_general_ci", WireType(ColumnCode.STRING, 80), odd),
    "wide": ("VARCHAR(20) CHARACTER SET utf16", WireType(ColumnCode.VARCHAR, 80), words),
    "old": ("CHAR(20) CHARACTER SET latin1", WireType(ColumnCode.STRING, 20), latin),
}


def table_of(names: list[str]) -> Table:
    """Return a table whose key has columns of these types, the last one first."""
    columns = ", ".join(f"c{place} {COLUMNS[name][0]} NOT NULL" for place, name in enumerate(names))
    key = ", ".join(f"c{place}" for place in reversed(range(len(names))))
    text = f"CREATE TABLE t ({columns}, PRIMARY KEY ({key})) DEFAULT CHARSET=utf8mb4"
    return parse_schema(text, database="d").tables[0]


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return names of types, and rows of them."""
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=3))
    return names, draw(st.lists(st.tuples(*(COLUMNS[name][2] for name in names)), max_size=8))


def compare(names: list[str], values: list[tuple[Any, ...]], missing: frozenset[tuple[int, int]] = frozenset()) -> None:
    """Make keys both ways; `missing` names values, by row and column, that are NULL."""
    table = table_of(names)
    layout = layout_of_types(table, tuple(COLUMNS[name][1] for name in names))
    payloads = [
        [
            None if (row, place) in missing else codec.encode(value)
            for place, (codec, value) in enumerate(zip(layout.codecs, each, strict=True))
        ]
        for row, each in enumerate(values)
    ]
    data, cells = b"some", np.full((len(names), len(values)), NULL_CELL, np.uint32)
    for row, each in enumerate(payloads):
        for place, payload in enumerate(each):
            if payload is not None:
                cells[place, row] = len(data) - 4
                data += layout.codecs[place].put(payload)
    array = np.frombuffer(data, np.uint8)
    parts = [
        key_parts(table.columns[place], slices(layout.codecs[place], array, 4, cells[place]))
        for place in table.key_ordinals
    ]
    found, offsets = put_keys([KeyRows(259, np.arange(len(values)), parts)], len(values))
    columns = [table.columns[place] for place in table.key_ordinals]
    expected = [key_of(columns, [each[place] for place in table.key_ordinals]) for each in payloads]
    bounds = list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
    assert [found[start:end].tobytes() for start, end in bounds] == [b"\x03\x01" + key for key in expected]
    codecs = [layout.codecs[place] for place in table.key_ordinals]
    texts = key_texts(table, layout, found, offsets[:-1] + 2, offsets[1:])
    assert texts.to_pylist() == [key_text(columns, codecs, key) for key in expected]


@given(rows())
def test_any_rows(rows: tuple[list[str], list[tuple[Any, ...]]]):
    """Keys of one to three columns of any types."""
    compare(*rows)


@pytest.mark.parametrize("name", COLUMNS)
@given(data=st.data())
def test_any_type(name: str, data: st.DataObject):
    """Every type on its own, and with NULLs."""
    values = data.draw(st.lists(st.tuples(COLUMNS[name][2]), max_size=8))
    compare([name], values)
    compare([name], values, frozenset({(0, 0), (2, 0)}))


@pytest.mark.parametrize("name", COLUMNS)
@given(data=st.data())
def test_equal_values(name: str, data: st.DataObject):
    """Two columns of values are equal if each pair of them makes the same key, NULLs among them."""
    table = table_of([name])
    (codec,) = layout_of_types(table, (COLUMNS[name][1],)).codecs
    values = st.none() | COLUMNS[name][2].map(codec.encode)
    pairs = data.draw(st.lists(st.one_of(st.tuples(values, values), values.map(lambda each: (each, each))), max_size=4))
    cells, stored = np.full((2, len(pairs)), NULL_CELL, np.uint32), b""
    for row, pair in enumerate(pairs):
        for image, payload in enumerate(pair):
            if payload is not None:
                cells[image, row] = len(stored)
                stored += codec.put(payload)
    array = np.frombuffer(stored, np.uint8)
    first, second = (slices(codec, array, 0, each) for each in cells)
    expected = all(key_of(table.columns, [one]) == key_of(table.columns, [other]) for one, other in pairs)
    assert are_equal(table.columns[0], first, second) == expected


def test_keys_of_two_tables():
    """Rows of tables lie in any order; each key starts with the number of its table."""
    array = np.frombuffer(b"\x05\x07\x09", np.uint8)
    tiny = codec_of(WireType(ColumnCode.TINY))
    column = table_of(["tiny"]).columns[0]
    first, second = (key_parts(column, slices(tiny, array, 0, np.array(cells, np.uint32))) for cells in ([0, 2], [1]))
    keys = [KeyRows(0, np.array([2, 0]), [first]), KeyRows(1, np.array([1]), [second])]
    found, offsets = put_keys(keys, 3)
    one = bytes([1, 1, 0, 0, 0])
    assert found.tobytes() == b"\0\0" + one + b"\x09" + b"\1\0" + one + b"\x07" + b"\0\0" + one + b"\x05"
    assert offsets.tolist() == [0, 8, 16, 24]


def test_buckets():
    """The CRC32 of the identity, modulo their number."""
    data = np.frombuffer(b"123456789a", np.uint8)
    out = np.empty(3, np.int32)
    buckets_of(data, np.array([0, 9, 10, 10]), 16, out)
    assert out.tolist() == [6, 3, 0]
