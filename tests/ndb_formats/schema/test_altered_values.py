"""What ALTER TABLE makes of stored values: as a real server did, or not known."""

import json
import lzma
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from typing import Any

import attrs
import pytest

from ndb_formats.events.table_map_of_table import wire_type_of
from ndb_formats.schema.altered_values import added_value, altered_value, keeps_values
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.session import NO_MODE, SqlMode
from ndb_formats.schema.tables import Column
from ndb_formats.schema.value_conversions import NOT_KNOWN
from ndb_formats.types.column_types import Codec, codec_of
from ndb_formats.types.values import Value
from tests.corpora import RECORDINGS

STRICT = SqlMode.STRICT_TRANS_TABLES
REFUSED = "refused"
NUMBERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal")


@cache
def column(kind: str) -> Column:
    """Return a column of a type."""
    return parse_create_table(f"CREATE TABLE t (k INT PRIMARY KEY, c {kind})").columns[1]


@cache
def codec(kind: str) -> Codec:
    """Return the codec of a column of a type."""
    found = column(kind)
    return codec_of(wire_type_of(found), unsigned=found.unsigned, charset=found.charset, members=found.members)


def decoded(kind: str, data: str | None) -> Value:
    """Return the value of some bytes; None is NULL."""
    return None if data is None else codec(kind).decode(bytes.fromhex(data))


@attrs.frozen
class Recorded:
    """What a server made of one value: its bytes afterwards, None for NULL, or `REFUSED`."""

    before: str
    after: str
    mode: SqlMode
    value: Value
    data: str | None


def recorded() -> Iterator[Recorded]:
    """Yield what a server made of values."""
    content = lzma.decompress((RECORDINGS / "definitions" / "altered_values.json.xz").read_bytes())
    for before, own in json.loads(content)["pairs"].items():
        for after, values in own.items():
            for data, loose, strict in values if values != REFUSED else ():
                value = decoded(before, data)
                yield Recorded(before, after, NO_MODE, value, loose)
                yield Recorded(before, after, STRICT, value, strict)


def test_every_known_value_is_the_servers():
    """Of 1,305 pairs of types, to the byte; what the server refuses is never known."""
    wrong, known = [], Counter[bool]()
    for each in recorded():
        found = altered_value(each.value, column(each.before), column(each.after), each.mode)
        known[found is not NOT_KNOWN] += each.data != REFUSED
        if found is NOT_KNOWN:
            continue
        data = None if found is None else codec(each.after).encode(found).hex()
        if data != each.data:
            wrong.append((each, found))
    assert wrong == []
    assert known[True] > 6 * known[False]


def test_values_that_stay_are_the_same():
    """Where a column keeps its values, the server changed none that it did not refuse."""
    for each in recorded():
        if each.data != REFUSED and keeps_values(column(each.before), column(each.after), each.mode):
            assert decoded(each.after, each.data) == each.value, each


def test_exact_numbers_are_always_known():
    """From any integer or decimal to any other, unless the server refuses it."""
    for each in recorded():
        if {column(each.before).type, column(each.after).type} <= set(NUMBERS) and each.data != REFUSED:
            found = altered_value(each.value, column(each.before), column(each.after), each.mode)
            assert found is not NOT_KNOWN, each


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("INT", None),
        ("INT DEFAULT 5", 5),
        ("INT NOT NULL", 0),
        ("VARCHAR(5) NOT NULL", ""),
        ("ENUM('p', 'q') NOT NULL", "p"),
        ("ENUM('p', 'q') NOT NULL DEFAULT 'q'", "q"),
        ("ENUM('p', 'q')", None),
        ("SET('p', 'q') NOT NULL", ""),
        ("DECIMAL(5,2) NOT NULL DEFAULT 1.005", Decimal("1.01")),
        ("INT DEFAULT (5 + 1)", NOT_KNOWN),
        ("INT AS (k + 1) STORED", NOT_KNOWN),
        ("TIMESTAMP DEFAULT CURRENT_TIMESTAMP", NOT_KNOWN),
        ("INT NOT NULL AUTO_INCREMENT UNIQUE", NOT_KNOWN),
        ("JSON NOT NULL", NOT_KNOWN),
    ],
)
def test_a_new_column(definition: str, value: Any):
    """Has its default, the zero of its type, or the first member; what the server computes is not known."""
    assert added_value(column(definition)) == value


@pytest.mark.parametrize("kind", ["TIME(3)", "DATETIME(3)"])
def test_a_fraction_under_another_rule(kind: str):
    """TIME_TRUNCATE_FRACTIONAL cuts fractions; here that is not known."""
    value = "10:20:30.500" if kind == "TIME(3)" else "2020-01-02 10:20:30.500"
    shorter = column(kind.removesuffix("(3)"))
    assert altered_value(value, column(kind), shorter, SqlMode.TIME_TRUNCATE_FRACTIONAL) is NOT_KNOWN
    assert str(altered_value(value, column(kind), shorter, NO_MODE)).endswith("10:20:31")


def test_null_in_a_column_that_may_not_be_null():
    """It becomes the zero of the type, unless strict mode refuses it; of a TIMESTAMP, the time of the statement."""
    assert altered_value(None, column("INT"), column("INT NOT NULL"), NO_MODE) == 0
    assert altered_value(None, column("INT"), column("INT NOT NULL"), STRICT) is NOT_KNOWN
    stamp = "TIMESTAMP NOT NULL DEFAULT '2000-01-01'"
    assert altered_value(None, column("TIMESTAMP NULL"), column(stamp), NO_MODE) is NOT_KNOWN
    assert not keeps_values(column("TIMESTAMP NULL"), column(stamp), STRICT)


def test_a_generated_column():
    """Has its values as long as its expression stays."""
    old, new = column("INT AS (k + 1) STORED"), column("INT AS (k + 2) STORED")
    assert altered_value(2, old, old, NO_MODE) == 2
    assert altered_value(2, old, new, NO_MODE) is NOT_KNOWN
