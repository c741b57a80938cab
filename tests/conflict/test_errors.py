"""Errors of `conflict`."""

import pytest

from conflict.errors import ConfigurationError, ConflictError, HistoryError, NotBuiltError


@pytest.mark.parametrize(
    ("error", "builtin"),
    [(ConfigurationError, ValueError), (HistoryError, ValueError), (NotBuiltError, LookupError)],
)
def test_each_error_is_also_a_builtin_one(error: type[ConflictError], builtin: type[Exception]):
    """One root catches all of them, and so does the builtin that a caller would expect."""
    assert issubclass(error, ConflictError)
    assert issubclass(error, builtin)


@pytest.mark.parametrize("error", [ConfigurationError, HistoryError, NotBuiltError])
def test_an_error_says_its_message(error: type[ConflictError]):
    """Nothing is added to the words."""
    assert str(error("what to change")) == "what to change"
