"""Words, documents and tables that several parts of a report share."""

import json

import pyarrow as pa
import pytest

from conflict.reporting.cost import types_usable_with
from conflict.reporting.html.glossary import words_explained
from conflict.reporting.html.page import document_text
from conflict.rules.functions import FUNCTIONS
from conflict.telling.drawing import draw
from conflict.telling.value import Chart, Form


def test_a_list_of_a_document_takes_one_line() -> None:
    """However long; the text is the document again."""
    document = {"a": list(range(200)), "b": [{"c": None, "d": []}, "e"], "f": {}, "g": 1.5}
    text = document_text(document)
    assert json.loads(text) == document
    assert text.splitlines()[1].startswith(' "a": [0, 1, 2,')
    assert len(text.splitlines()) == 12


def test_functions_and_the_types_that_the_manual_allows() -> None:
    """The manual rules NDB$MAX out with type 9, though every change carries what it compares; policies have no type."""
    assert types_usable_with("NDB$MAX(x)") == (7,)
    assert types_usable_with("NDB$EPOCH2() @A") == (6, 7, 8, 9)
    assert types_usable_with("OVERWRITE") == ()
    by_type = {
        number: [each.name for each in FUNCTIONS if number in types_usable_with(each.name)] for number in (2, 3, 7)
    }
    assert by_type == {2: [], 3: ["NDB$MAX_INS", "NDB$MAX_DEL_WIN_INS"], 7: [each.name for each in FUNCTIONS]}


def test_only_words_that_a_page_has_are_explained() -> None:
    """The primary behind a function, and what became of changes."""
    assert list(words_explained("NDB$EPOCH() @A loses least")) == ["@A", "lost, lost update"]
    assert words_explained("nothing") == {}


@pytest.mark.parametrize(
    ("values", "named"), [((10.0, 100.0, 1000.0), True), ((0.0, 400.0), True), ((50.0, 90.0, 99.0, 100.0), False)]
)
def test_the_values_of_an_axis_are_named_where_there_is_room(values: tuple[float, ...], named: bool) -> None:
    """Over more than a decade the axis is logarithmic, so that 10 and 100 stand apart; 99 and 100 do not."""
    data = pa.table({"x": values, "f": [0.0] * len(values), "g": [0.0] * len(values)})
    svg = draw(Chart("c", "t", Form.LINES, data, "rows", "x"), "svg").decode()
    assert all(f">{value:,g}<" in svg for value in values) == named
