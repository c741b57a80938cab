"""Errors: what they say, what they are, how they travel."""

import pickle

import pytest

from ndb_formats.errors import (
    ChecksumError,
    CorruptError,
    FormatError,
    SchemaError,
    SettingError,
    TruncatedError,
    UnsupportedError,
    did_you_mean,
)


def test_message_without_a_location():
    """An error that knows no place is its message alone."""
    assert str(FormatError("bad")) == "bad"


def test_message_starts_with_the_location():
    """File, position, event, table and column stand before the message."""
    error = CorruptError("bad", file="f", position=4, event="E", table="d.t", column="c")
    assert str(error) == "f, position 4, E, table d.t, column c: bad"


def test_position_zero_is_a_location():
    """Position 0 is known, not missing."""
    assert str(FormatError("bad", position=0)) == "position 0: bad"


def test_located_fills_in_the_missing_parts_only():
    """What the code that noticed the fault knows is never overwritten."""
    error = FormatError("bad", position=0, column="c")
    assert error.located(file="f", position=9, event="E", table="t", column="z") is error
    assert (error.file, error.position, error.event, error.table, error.column) == ("f", 0, "E", "t", "c")


@pytest.mark.parametrize(
    "kind", [FormatError, TruncatedError, CorruptError, ChecksumError, UnsupportedError, SchemaError, SettingError]
)
def test_errors_survive_pickling(kind: type[FormatError]):
    """An error that crosses a process keeps its type, message and place."""
    error = kind("bad", file="f", position=3, event="E", table="d.t", column="c")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error)
    assert copy.__dict__ == error.__dict__


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("shop.ordes", " (did you mean shop.orders?)"),
        ("SHOP.ORDERS", " (did you mean shop.orders?)"),
        ("ordesr", " (did you mean shop.orders?)"),  # no database is given
        ("stok", " (did you mean shop.stock?)"),
        ("customers", ""),
        ("shop.orders", ""),  # something else is wrong with it
    ],
)
def test_the_nearest_name(given: str, meant: str) -> None:
    """Of tables, with or without a database; none that is unlike."""
    assert did_you_mean(given, ["shop.orders", "shop.stock"]) == meant
