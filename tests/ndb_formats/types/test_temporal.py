"""Temporal types: hand-worked bytes, and every value there and back."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.types import temporal
from tests.strategies import DATES, PRECISIONS, datetimes, times, timestamps


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("0000-00-00", "000000"),
        ("1000-01-01", "21d007"),  # 1000 << 9 | 1 << 5 | 1
        ("2024-02-29", "5dd00f"),  # 2024 << 9 | 2 << 5 | 29
        ("2024-00-00", "00d00f"),
        ("9999-12-31", "9f1f4e"),
        ("0001-02-31", "5f0200"),
    ],
)
def test_date_vectors(text: str, data: str):
    """DATE is year, month and day packed into three bytes; zero parts are kept."""
    assert temporal.decode_date(bytes.fromhex(data)) == text
    assert temporal.encode_date(text).hex() == data


@pytest.mark.parametrize(
    ("text", "precision", "data"),
    [
        ("00:00:00", 0, "800000"),
        ("12:34:56", 0, "80c8b8"),  # 12 << 12 | 34 << 6 | 56
        ("838:59:59", 0, "b46efb"),
        ("-838:59:59", 0, "4b9105"),
        ("-00:00:01", 0, "7fffff"),
        ("00:00:00.9", 1, "8000005a"),
        ("-00:00:00.1", 1, "7ffffff6"),
        ("-00:00:00.01", 2, "7fffffff"),
        ("-00:00:01.00", 2, "7fffff00"),
        ("-00:00:01.50", 2, "7ffffece"),
        ("12:34:56.789", 3, "80c8b81ed2"),
        ("-00:00:00.001", 3, "7ffffffff6"),
        ("00:00:00.0001", 4, "8000000001"),
        ("-838:59:59.0000", 4, "4b91050000"),
        ("-00:00:00.00001", 5, "7ffffffffff6"),
        ("00:00:00.000001", 6, "800000000001"),
        ("-00:00:00.000001", 6, "7fffffffffff"),
        ("-838:59:59.000000", 6, "4b9105000000"),
        ("838:59:58.999999", 6, "b46efa0f423f"),
    ],
)
def test_time2_vectors(text: str, precision: int, data: str):
    """TIME counts from 0x800000 up and down, fraction included."""
    assert temporal.decode_time2(bytes.fromhex(data), precision) == text
    assert temporal.encode_time2(text, precision).hex() == data


# 2024-02-29 12:30:45 is 99b2bac7ad: ((2024*13+2) << 5 | 29) << 17 | 12 << 12 | 30 << 6 | 45.
@pytest.mark.parametrize(
    ("text", "precision", "data"),
    [
        ("0000-00-00 00:00:00", 0, "8000000000"),
        ("0000-00-00 00:00:00.000000", 6, "8000000000000000"),
        ("1000-01-01 00:00:00", 0, "8cb2420000"),
        ("2038-01-19 03:14:07.99", 2, "99dfe6338763"),
        ("9999-12-31 23:59:59.999999", 6, "fef3ff7efb0f423f"),
        ("2024-02-29 12:30:45", 0, "99b2bac7ad"),
        ("2024-02-29 12:30:45.1", 1, "99b2bac7ad0a"),
        ("2024-02-29 12:30:45.12", 2, "99b2bac7ad0c"),
        ("2024-02-29 12:30:45.123", 3, "99b2bac7ad04ce"),
        ("2024-02-29 12:30:45.1234", 4, "99b2bac7ad04d2"),
        ("2024-02-29 12:30:45.12345", 5, "99b2bac7ad01e23a"),
        ("2024-02-29 12:30:45.123456", 6, "99b2bac7ad01e240"),
    ],
)
def test_datetime2_vectors(text: str, precision: int, data: str):
    """DATETIME is five packed bytes and the fraction; the zero date is kept."""
    assert temporal.decode_datetime2(bytes.fromhex(data), precision) == text
    assert temporal.encode_datetime2(text, precision).hex() == data


@pytest.mark.parametrize(
    ("text", "precision", "data"),
    [
        ("0000-00-00 00:00:00", 0, "00000000"),
        ("0000-00-00 00:00:00.000", 3, "000000000000"),
        ("1970-01-01 00:00:01", 0, "00000001"),
        ("1970-01-01 00:00:01.001", 3, "00000001000a"),
        ("2001-09-09 01:46:40", 0, "3b9aca00"),  # second 1 000 000 000
        ("2001-09-09 01:46:40.1", 1, "3b9aca000a"),
        ("2001-09-09 01:46:40.12", 2, "3b9aca000c"),
        ("2001-09-09 01:46:40.123", 3, "3b9aca0004ce"),
        ("2001-09-09 01:46:40.1234", 4, "3b9aca0004d2"),
        ("2001-09-09 01:46:40.12345", 5, "3b9aca0001e23a"),
        ("2001-09-09 01:46:40.123456", 6, "3b9aca0001e240"),
        ("2038-01-19 03:14:07", 0, "7fffffff"),
        ("2106-02-07 06:28:15", 0, "ffffffff"),
    ],
)
def test_timestamp2_vectors(text: str, precision: int, data: str):
    """TIMESTAMP is seconds since 1970 in UTC; zero is the zero date."""
    assert temporal.decode_timestamp2(bytes.fromhex(data), precision) == text
    assert temporal.encode_timestamp2(text, precision).hex() == data


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("00:00:00", "000000"),
        ("12:34:56", "40e201"),  # 123456
        ("-12:34:56", "c01dfe"),
        ("838:59:59", "a7f57f"),  # 8385959
        ("-838:59:59", "590a80"),
    ],
)
def test_old_time_vectors(text: str, data: str):
    """TIME before MySQL 5.6 is the decimal number HHMMSS."""
    assert temporal.decode_old_time(bytes.fromhex(data)) == text
    assert temporal.encode_old_time(text).hex() == data


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("0000-00-00 00:00:00", "0000000000000000"),
        ("2024-02-29 12:30:45", "e5c3aa8b68120000"),  # 20240229123045
    ],
)
def test_old_datetime_vectors(text: str, data: str):
    """DATETIME before MySQL 5.6 is the decimal number YYYYMMDDHHMMSS."""
    assert temporal.decode_old_datetime(bytes.fromhex(data)) == text
    assert temporal.encode_old_datetime(text).hex() == data


@given(DATES)
def test_date_round_trip(text: str):
    """Every DATE comes back, zero and impossible ones too."""
    assert temporal.decode_date(temporal.encode_date(text)) == text


@pytest.mark.parametrize(
    ("values", "encode", "decode"),
    [
        (times, temporal.encode_time2, temporal.decode_time2),
        (datetimes, temporal.encode_datetime2, temporal.decode_datetime2),
        (timestamps, temporal.encode_timestamp2, temporal.decode_timestamp2),
    ],
)
@given(data=st.data())
def test_fractional_round_trip(
    data: st.DataObject,
    values: Callable[[int], st.SearchStrategy[str]],
    encode: Callable[[str, int], bytes],
    decode: Callable[[bytes, int], str],
):
    """Every TIME, DATETIME and TIMESTAMP comes back, with all its digits."""
    precision = data.draw(PRECISIONS)
    text = data.draw(values(precision))
    assert decode(encode(text, precision), precision) == text


@given(times(0))
def test_old_time_round_trip(text: str):
    """Every TIME of the old layout comes back."""
    assert temporal.decode_old_time(temporal.encode_old_time(text)) == text


@given(datetimes(0))
def test_old_datetime_round_trip(text: str):
    """Every DATETIME of the old layout comes back."""
    assert temporal.decode_old_datetime(temporal.encode_old_datetime(text)) == text


@given(st.data())
def test_times_order_as_their_bytes_do(data: st.DataObject):
    """An earlier TIME has smaller bytes, below zero too."""
    precision = data.draw(PRECISIONS)
    one, two = data.draw(times(precision)), data.draw(times(precision))
    assert (temporal.encode_time2(one, precision) < temporal.encode_time2(two, precision)) == (
        _microseconds(one) < _microseconds(two)
    )


def _microseconds(text: str) -> int:
    whole, _, digits = text.lstrip("-").partition(".")
    hour, minute, second = map(int, whole.split(":"))
    total = (hour * 3600 + minute * 60 + second) * 1_000_000 + int(digits.ljust(6, "0"))
    return -total if text.startswith("-") else total


@pytest.mark.parametrize(
    ("decode", "size"),
    [(temporal.decode_time2, 3), (temporal.decode_datetime2, 5), (temporal.decode_timestamp2, 4)],
)
@given(data=st.data())
def test_any_bytes_decode_to_text(data: st.DataObject, decode: Callable[[bytes, int], str], size: int):
    """Bytes that no server writes still give text with the fraction's digits."""
    precision = data.draw(PRECISIONS)
    width = size + temporal.fraction_bytes(precision)
    text = decode(data.draw(st.binary(min_size=width, max_size=width)), precision)
    assert ("." in text) == (precision > 0)
