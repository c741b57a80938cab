"""Typed values of keys, from their identities."""

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.engine.ledger.table_keys import TableKey, table_of, typed_keys
from ndb_formats.constants import ColumnCode
from ndb_formats.types.column_types import WireType, codec_of
from ndb_formats.types.values import Value


def values(columns: dict[str, str], *keys: tuple[Value, ...]) -> list[tuple[object, ...]]:
    """Return keys that have all these columns, after their way through identities."""
    table = table_of(columns, columns)
    key = TableKey.of(table)
    identities = [key.identity(each) for each in keys]
    texts = pa.chunked_array([pa.array(map(key.text, identities), pa.string())])
    found = typed_keys(pa.chunked_array([pa.array(identities, pa.binary())]), texts, table).to_pylist()
    return [tuple(row.values()) for row in found]


@pytest.mark.parametrize(
    ("columns", "keys"),
    [
        ({"a": "bigint unsigned", "b": "tinyint"}, [(2**64 - 1, -128), (2**63, 0), (0, 127)]),
        ({"a": "varchar(20)", "b.` (": "varbinary(4)"}, [("x=1\n, y", b"\x00\xff"), ("", b""), ("'z'", b"A")]),
        ({"a": "varchar(20)", "b": "varchar(20)"}, [("x, b=1", "2"), ("x", "1, b=2"), ("null", "")]),
        ({"d": "date", "n": "decimal(5,2)"}, [("2026-11-20", Decimal("-1.50")), ("0000-00-00", Decimal("0.00"))]),
        ({"t": "time(3)", "d": "datetime(6)"}, [("-838:59:59.125", "2026-11-20 00:00:00.000001")]),
        ({"a": "binary(3)", "e": "enum('x', 'y, e=x')"}, [(b"a\0\0", "y, e=x")]),
        ({"f": "float", "b": "bit(64)", "y": "year"}, [(0.5, 2**64 - 1, 2026)]),
    ],
)
def test_values_come_back(columns: dict[str, str], keys: list[tuple[Value, ...]]) -> None:
    """Numbers with all digits, texts and bytes with anything in them, moments as text; a column can have any name."""
    assert values(columns, *keys, keys[0]) == [*keys, keys[0]]


TEXTS = st.text(st.sampled_from(" ,=ab'\"\\\n\0NUL1é"), max_size=8)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=8))
def test_any_texts_come_back(keys: list[tuple[str, str]]) -> None:
    """Commas, equals signs, quotes and lines are parts of texts like any other."""
    columns = dict.fromkeys("ab", "varchar(20) collate utf8mb4_0900_bin")
    assert values(columns, *keys) == keys


def test_moments_in_an_older_form() -> None:
    """A table keeps the form of MySQL 5.5, which its definition does not tell; the text of a key does."""
    table = table_of({"t": "time", "s": "timestamp"}, ("t", "s"))
    old = [codec_of(WireType(ColumnCode.TIME)), codec_of(WireType(ColumnCode.TIMESTAMP))]
    key = TableKey(table.key_columns, old)
    moment = ("10:11:12", "2026-11-20 01:02:03")
    identity = key.identity(moment)
    columns = pa.chunked_array([[identity]], pa.binary()), pa.chunked_array([[key.text(identity)]], pa.string())
    assert [tuple(row.values()) for row in typed_keys(*columns, table).to_pylist()] == [moment]


def test_no_keys() -> None:
    """Give no values."""
    assert values({"a": "int"}) == []
