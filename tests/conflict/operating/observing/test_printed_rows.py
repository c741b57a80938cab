"""Rows come out of each form in which the client prints them as they went in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.config.printed_rows import printed_rows
from conflict.errors import ConfigurationError
from tests.conflict.operating.observing.printed import FORMS

NAMES = ["NDB$server_id", "note", "x$OLD"]
# Blanks at the ends are lost, a text NULL is NULL, and digits after 0x are bytes: those the forms do not tell apart.
TEXTS = st.text(st.characters(codec="ascii", exclude_categories=("Cc",)), min_size=1).filter(
    lambda text: text.strip(" ") == text and text not in ("NULL", r"\N") and not text.startswith(("0x", '"'))
)
CELLS = st.one_of(st.none(), st.integers(0, 2**64 - 1), TEXTS)
ROWS = st.lists(st.tuples(st.integers(0, 2**32 - 1), CELLS, CELLS), min_size=1)


@pytest.mark.parametrize("form", FORMS)
@given(rows=ROWS)
def test_every_form(form: str, rows: list[tuple[object, ...]]):
    """Bars, colons, backslashes and tabs in values change nothing."""
    found = [[*row.cells.items()] for row in printed_rows(FORMS[form](NAMES, rows))]
    names = [name.lower() for name in NAMES]
    assert found == [[*zip(names, (None if v is None else str(v) for v in row), strict=True)] for row in rows]


@pytest.mark.parametrize("form", FORMS)
def test_no_rows(form: str):
    assert [*printed_rows(FORMS[form](NAMES, []))] == []


def test_bytes_and_long_values():
    """Of --binary-as-hex; and a value of several lines, below each other."""
    text = FORMS["below each other"](NAMES, [[1, "0x00FF", "one\ntwo: 2\n  three"], [2, "", None]])
    assert [[*row.cells.values()] for row in printed_rows(text)] == [
        ["1", b"\0\xff", "one\ntwo: 2\n  three"],
        ["2", "", None],
    ]


def test_a_line_that_does_not_fit():
    text = FORMS["box"](NAMES, [[1, "a", "b"]]).replace("| a ", "| a | a ")
    with pytest.raises(ConfigurationError, match="line 4 is no row of the box"):
        [*printed_rows(text)]
