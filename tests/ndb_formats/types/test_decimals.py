"""DECIMAL: hand-worked bytes, every value of every type, order."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.errors import CorruptError
from ndb_formats.types.decimals import decimal_as_shown, decimal_size, decimal_text, decode_decimal, encode_decimal
from tests.strategies import decimal_types, decimals

NINES_35_30 = "9" * 35 + "." + "9" * 30

# SQL value, (precision, scale), bytes: groups of nine digits in four bytes, top bit flipped, negative inverted.
VECTORS = [
    ("0", (10, 0), "8000000000"),
    ("1", (10, 0), "8000000001"),
    ("-1", (10, 0), "7ffffffffe"),
    ("1234567890", (10, 0), "810dfb38d2"),
    ("-1234567890", (10, 0), "7ef204c72d"),
    ("9999999999", (10, 0), "893b9ac9ff"),
    ("1234567890.1234", (14, 4), "810dfb38d204d2"),
    ("-1234567890.1234", (14, 4), "7ef204c72dfb2d"),
    ("0.00000", (5, 5), "800000"),
    ("0.12345", (5, 5), "803039"),
    ("-0.12345", (5, 5), "7fcfc6"),
    ("0.99999", (5, 5), "81869f"),
    ("-0.00001", (5, 5), "7ffffe"),
    ("9.99", (3, 2), "8963"),
    ("-9.99", (3, 2), "769c"),
    ("99", (2, 0), "e3"),
    ("0.5", (1, 1), "85"),
    ("1.250", (10, 3), "8000000100fa"),
    ("0." + "0" * 30, (65, 30), "80" + "00" * 29),
    (NINES_35_30, (65, 30), "85f5e0ff" + "3b9ac9ff" * 6 + "03e7"),
    ("-" + NINES_35_30, (65, 30), "7a0a1f00" + "c4653600" * 6 + "fc18"),
    ("0." + "0" * 29 + "1", (65, 30), "80" + "00" * 28 + "01"),
]


@pytest.mark.parametrize(("text", "type_", "data"), VECTORS)
def test_golden_vectors(text: str, type_: tuple[int, int], data: str):
    """Hand-worked bytes decode to the SQL value, digit for digit, and encode back."""
    assert str(decode_decimal(bytes.fromhex(data), *type_)) == str(Decimal(text))
    assert encode_decimal(Decimal(text), *type_).hex() == data


@pytest.mark.parametrize(
    ("type_", "size"),
    [
        ((1, 0), 1),
        ((2, 0), 1),
        ((3, 0), 2),
        ((5, 0), 3),
        ((9, 0), 4),
        ((10, 0), 5),
        ((5, 5), 3),
        ((18, 9), 8),
        ((65, 30), 30),
    ],
)
def test_size(type_: tuple[int, int], size: int):
    """Nine digits take four bytes, fewer take 1, 1, 2, 2, 3, 3, 4, 4."""
    assert decimal_size(*type_) == size


@given(st.data())
def test_round_trip(data: st.DataObject):
    """Every value of every DECIMAL comes back, with exactly its digits."""
    precision, scale = data.draw(decimal_types())
    value = data.draw(decimals(precision, scale))
    encoded = encode_decimal(value, precision, scale)
    assert len(encoded) == decimal_size(precision, scale)
    decoded = decode_decimal(encoded, precision, scale)
    assert (decoded, decoded.as_tuple().exponent) == (value, -scale)


@given(st.data())
def test_bytes_order_as_values_do(data: st.DataObject):
    """Values of one type compare as their bytes do."""
    type_ = data.draw(decimal_types())
    one, two = data.draw(decimals(*type_)), data.draw(decimals(*type_))
    assert (encode_decimal(one, *type_) < encode_decimal(two, *type_)) == (one < two)


def test_fewer_digits_after_the_point_are_filled_up():
    """1.5 in DECIMAL(10,3) is 1.500, and 1E+2 is 100.000."""
    assert encode_decimal(Decimal("1.5"), 10, 3).hex() == "8000000101f4"
    assert str(decode_decimal(encode_decimal(Decimal("1E+2"), 10, 3), 10, 3)) == "100.000"


@pytest.mark.parametrize(
    ("value", "type_", "message"),
    [
        ("100", (2, 0), "does not fit"),
        ("1", (5, 5), "does not fit"),
        ("1.25", (5, 1), "more than 1 digits"),
        ("NaN", (5, 1), "more than"),
        ("Infinity", (5, 1), "more than"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(value: str, type_: tuple[int, int], message: str):
    """Nothing is rounded and nothing is cut."""
    with pytest.raises(ValueError, match=message):
        encode_decimal(Decimal(value), *type_)


@pytest.mark.parametrize(("data", "type_"), [("e4", (2, 0)), ("803b9aca00", (10, 0)), ("83e8", (3, 0))])
def test_a_group_with_too_large_a_number_is_corrupt(data: str, type_: tuple[int, int]):
    """100 in two digits, or 10^9 in nine, is no DECIMAL."""
    with pytest.raises(CorruptError, match="decimal digits"):
        decode_decimal(bytes.fromhex(data), *type_)


@pytest.mark.parametrize(("value", "text"), [("1E-10", "0.0000000001"), ("-1.50", "-1.50"), ("0E-8", "0.00000000")])
def test_text_has_no_exponent(value: str, text: str):
    """As the server shows values."""
    assert decimal_text(Decimal(value)) == text


@pytest.mark.parametrize(
    ("given", "shown"),
    [("1e-2", "0.01"), (".5", "0.50"), ("-0", "0.00"), ("1e2", "100.00"), ("0.001", "0.001"), ("NULL", "NULL")],
)
def test_any_spelling_is_shown_with_the_digits_of_the_column(given: str, shown: str):
    """What no DECIMAL(n,2) can hold stays as it is, and so is found nowhere."""
    assert decimal_as_shown(given, 2) == shown
