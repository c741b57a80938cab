"""Whether two expressions are the same."""

import pytest

from ndb_formats.rules.replica.expressions import same_expression


@pytest.mark.parametrize(
    ("typed", "other", "same"),
    [
        ("a + b * 2", "( `a` + ( `b` * 2 ) )", True),
        ("A + 1", "(`a` + 1)", True),
        ("(a + b) * 2", "a + b * 2", False),
        ("concat(a, 'x')", "concat(`a`,_utf8mb4'x')", True),
        ("concat(a, 'x')", "concat(a, 'X')", False),
        ("a + 1", "a + 2", False),
        ("1 2 3 (", "1 2 3 (", True),
        ("1 2 3 (", "1 2 4 (", False),
        ("a", None, False),
        (None, None, True),
    ],
)
def test_expressions(typed: str | None, other: str | None, same: bool):
    """Spelling does not matter, values and structure do; what cannot be read is compared as text."""
    assert same_expression(typed, other) is same
    assert same_expression(other, typed) is same
