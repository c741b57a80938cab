"""Typed values of keys, from their texts."""

import pyarrow as pa

from conflict.results.arrow_rows import key_schema, key_values


def values(columns: dict[str, str], *texts: str) -> list[dict[str, object]]:
    """Return keys that have all these columns as dictionaries."""
    found: list[dict[str, object]] = key_values(
        pa.chunked_array([pa.array(texts, pa.string())]), key_schema(columns, [*columns])
    ).to_pylist()
    return found


def test_numbers_keep_all_their_digits():
    """Unsigned numbers of 64 bits, and negative ones."""
    found = values({"a": "bigint unsigned", "b": "tinyint"}, f"a={2**64 - 1}, b=-128", "a=0, b=127")
    assert found == [{"a": 2**64 - 1, "b": -128}, {"a": 0, "b": 127}]


def test_texts_and_bytes():
    """A text may hold lines and signs, bytes are two digits each; a column can have any name."""
    found = values(
        {"a": "varchar(20)", "b.` (": "varbinary(4)"}, "a=x=1\n, y, b.` (=00ff", "a=, b.` (=", "a=z, b.` (=41"
    )
    assert [tuple(row.values()) for row in found] == [("x=1\n, y", b"\x00\xff"), ("", b""), ("z", b"A")]


def test_moments_and_decimals():
    """Moments are text, as in all results."""
    (found,) = values({"d": "date", "n": "decimal(5,2)"}, "d=2026-11-20, n=-1.50")
    assert (found["d"], str(found["n"])) == ("2026-11-20", "-1.50")


def test_no_keys():
    """Give no values."""
    assert values({"a": "int"}) == []
