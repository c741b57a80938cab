"""Which rows end different: found by columns as they are row by row."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from conflict.engine.ledger.table_keys import TableKey, table_of
from conflict.explaining.row_ends import differing_rows

TYPES = {"a": "int", "b": "varchar(8)", "d": "decimal(9,2)", "f": "double"}
SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.string()), ("d", pa.decimal128(9, 2)), ("f", pa.float64())])
VALUES = st.tuples(
    st.sampled_from([None, Decimal("1.50"), Decimal("-2.00")]), st.sampled_from([None, 0.0, -0.0, 1.5, 1e300])
)
ROWS = st.dictionaries(st.tuples(st.integers(0, 3), st.sampled_from(["x", "y"])), VALUES)


class Ends:
    """A result, as far as `differing_rows` reads it: the rows of each cluster, by key."""

    def __init__(self, ends: dict[str, dict[Any, Any]], whole: dict[str, bool], *, other: bool) -> None:
        self.ends, self.clusters, self.other = ends, tuple(ends), other
        gaps = {name: {"s.t": {"rows": 0 if whole[name] else 1}} for name in ends}
        self.run = {"differing_rows": {"s.t": 1}, "not_known": gaps}

    def rows(self, cluster: str, _table: str) -> pa.Table:
        rows = [dict(zip(SCHEMA.names, (*key, *values), strict=True)) for key, values in self.ends[cluster].items()]
        found = pa.Table.from_pylist(rows, SCHEMA)
        if self.other and cluster == self.clusters[-1]:  # one column is wider, another one is missing
            return found.set_column(0, "a", found["a"].cast(pa.int64())).drop_columns(["f"])
        return found


@given(st.lists(ROWS, min_size=2, max_size=3), st.lists(st.booleans(), min_size=3, max_size=3), st.booleans())
def test_by_columns_as_row_by_row(ends: list[dict[Any, Any]], whole: list[bool], other: bool) -> None:
    """A row differs if a common value does, or if it is missing where all rows are known."""
    names = "ABC"[: len(ends)]
    key = TableKey.of(table_of({each: TYPES[each] for each in "ab"}, ["a", "b"]))
    result: Any = Ends(dict(zip(names, ends, strict=True)), dict(zip("ABC", whole, strict=True)), other=other)
    expected = set()
    for number in range(1, len(ends)):
        first, second = ends[0], ends[number]
        common = slice(0, 1 if other and number == len(ends) - 1 else 2)
        for row in first.keys() | second.keys():
            if row in first and row in second:
                differs = first[row][common] != second[row][common]
            else:
                differs = whole[0 if row in second else number]
            if differs:
                expected.add(key.identity(list(row)))
    found = differing_rows(result, "s.t", key)
    assert len(found) == len(expected)
    assert {identity for _, identity in found} == expected
