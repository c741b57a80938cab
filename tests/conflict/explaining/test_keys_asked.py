"""How rows are asked for by their keys."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.engine.ledger.table_keys import TableKey
from conflict.errors import ConfigurationError, HistoryError
from conflict.explaining.keys_asked import GivenKey, identity_asked, key_as_given
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.types.values import Value
from tests.conflict.keyed_logs import TWO_OF_ONE_TEXT, TWO_TEXTS


def key_of(columns: str) -> TableKey:
    """Return the key of a table."""
    return TableKey.of(parse_create_table(f"CREATE TABLE d.t ({columns})"))


def values(columns: str, given: GivenKey) -> list[Value]:
    """Return the values of the key that is asked for."""
    key = key_of(columns)
    return key.values(identity_asked("d.t", key, given))


BOTH = "a INT, b CHAR(4) CHARACTER SET latin1 COLLATE latin1_bin, PRIMARY KEY (a, b)"


@pytest.mark.parametrize(
    ("columns", "given", "expected"),
    [
        (BOTH, "a=1, b=x ", [1, "x"]),
        (BOTH, "b=x,a=1", [1, "x"]),
        (BOTH, {"b": "x", "a": 1}, [1, "x"]),
        (BOTH, '{"b": "x", "a": 1}', [1, "x"]),
        (BOTH, "a=1, b=2, a=3", [1, "2, a=3"]),
        ("a INT PRIMARY KEY", "5", [5]),
        ("a INT PRIMARY KEY", "a=-5", [-5]),
        ("a INT PRIMARY KEY", 5, [5]),
        ("a BIGINT UNSIGNED PRIMARY KEY", str(2**64 - 1), [2**64 - 1]),
        ("a BIGINT UNSIGNED PRIMARY KEY", f'{{"a": {2**63}}}', [2**63]),
        *(
            ("a DECIMAL(20,8) PRIMARY KEY", given, [Decimal("1E-8")])
            for given in ("1e-8", "a=.00000001", '{"a": 1e-8}', {"a": Decimal("1E-8")})
        ),
        ("a DATE PRIMARY KEY", {"a": date(2026, 11, 20)}, ["2026-11-20"]),
        ("a DATETIME(3) PRIMARY KEY", "2026-11-20 01:02:03", ["2026-11-20 01:02:03.000"]),
        ("a VARBINARY(4) PRIMARY KEY", "00ff", [b"\x00\xff"]),
        ("a BINARY(2) PRIMARY KEY", {"a": b"a"}, [b"a\x00"]),
        ("a ENUM('x', 'y') PRIMARY KEY", "y", ["y"]),
        ("a FLOAT PRIMARY KEY", "0.5", [0.5]),
        ("a VARCHAR(20) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY", "ÄB", ["ab"]),
        ("a VARCHAR(20) COLLATE utf8mb4_bin PRIMARY KEY", "x, a=y", ["x, a=y"]),
        ("a VARCHAR(20) COLLATE utf8mb4_bin PRIMARY KEY", '{"b": 1}', ['{"b": 1}']),
        ("a VARCHAR(20) COLLATE utf8mb4_bin PRIMARY KEY", '{"a": "{}"}', ["{}"]),
        # One of the two ways to read it has no INT.
        ("a INT, b VARCHAR(20) COLLATE utf8mb4_bin, PRIMARY KEY (a, b)", "a=1, b=2, b=3", [1, "2, b=3"]),
        *((TWO_TEXTS, dict(zip("ab", key, strict=True)), list(key)) for key in TWO_OF_ONE_TEXT),
    ],
)
def test_keys_that_are_understood(columns: str, given: GivenKey, expected: list[Value]) -> None:
    """Columns in any order, values as they compare, numbers and moments in any spelling, as text or by columns."""
    assert values(columns, given) == expected


@pytest.mark.parametrize(
    ("columns", "given", "said"),
    [
        (BOTH, "7", r"of table d\.t it is a=\.\.\., b=\.\.\."),
        (BOTH, "a=1", r"of table d\.t it is a=\.\.\., b=\.\.\."),
        (BOTH, {"a": 1}, r"of table d\.t it is a=\.\.\., b=\.\.\."),
        ("a INT PRIMARY KEY", "x", "x is no value of a, int"),
        ("a INT PRIMARY KEY", str(2**31), "is no value of a, int"),
        ("a TINYINT UNSIGNED PRIMARY KEY", "-1", "is no value of a, tinyint unsigned"),
        ("a DECIMAL(5,2) PRIMARY KEY", "1.234", "is no value of a"),
        ("a DATE PRIMARY KEY", "yesterday", "is no value of a"),
        ("a DATE PRIMARY KEY", "2026-15-40", "is no value of a"),
        ("a ENUM('x', 'y') PRIMARY KEY", "z", "is no value of a"),
        ("a VARBINARY(4) PRIMARY KEY", "xyz", "is no value of a"),
        (
            TWO_TEXTS,
            "a=x, b=1, b=2",
            r"""can be 2 keys; .*--key '{"a": "x", "b": "1, b=2"}' or --key '{"a": "x, b=1", "b": "2"}'""",
        ),
    ],
)
def test_keys_that_are_not(columns: str, given: GivenKey, said: str) -> None:
    """The message says what the key is, what is wrong with a value, or how to tell two keys of one text apart."""
    with pytest.raises((ConfigurationError, HistoryError), match=said):
        values(columns, given)


TEXTS = st.text(st.sampled_from(" ,=ab'\"{}\\\n1é"), max_size=8)


@given(st.tuples(TEXTS, TEXTS))
def test_what_names_a_row_finds_it(key: tuple[str, str]) -> None:
    """Whatever the texts are, the command that is told for a row asks for that row, as its columns do."""
    both = key_of(TWO_TEXTS)
    identity = both.identity(key)
    assert identity_asked("d.t", both, key_as_given("d.t", both, identity)) == identity
    by_column: Mapping[str, object] = dict(zip("ab", key, strict=True))
    assert identity_asked("d.t", both, by_column) == identity
