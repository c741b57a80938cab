"""JSON columns in compiled loops: the texts of the scalar codec, or none at all."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.columnar.json_columns import JsonReader
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.errors import FormatError
from ndb_formats.types.json_binary import decode_json, encode_json
from ndb_formats.types.json_values import JsonValue, json_text
from tests.strategies import JSON_VALUES

PREFIX = 4


def texts(documents: list[bytes | None], *, quoted: bool = True) -> list[bytes | None] | None:
    """Return what the compiled loops print of documents, laid out as in a rows event."""
    data, cells = b"", []
    for document in documents:
        cells.append(NULL_CELL if document is None else len(data))
        data += b"" if document is None else len(document).to_bytes(PREFIX, "little") + document
    found = JsonReader(PREFIX, quoted=quoted).texts(np.frombuffer(data, np.uint8), 0, np.array(cells, np.uint32))
    if found is None:
        return None
    offsets, out = found[0].tolist(), found[1].tobytes()
    values = [out[start:end] for start, end in pairwise(offsets)]
    return [None if each is None else value for each, value in zip(documents, values, strict=True)]


def test_numbers_of_few_digits_and_of_many() -> None:
    """The shortest text that gives the same double, with a point; worked by hand from MySQL's rules."""
    numbers = [0.0, -0.0, 2.5, -19.99, 1e-15, 0.1, 123456789012345.0, 1e15, 1e300, 0.1 + 0.2, 1e-16]
    expected = "0.0 -0.0 2.5 -19.99 0.000000000000001 0.1 123456789012345.0 1e15 1e300 0.30000000000000004 1e-16"
    assert texts([encode_json(numbers)]) == [f"[{expected.replace(' ', ', ')}]".encode()]


def test_escapes_and_nesting() -> None:
    """Control characters, quotes and backslashes are escaped; empty containers have nothing inside."""
    value = {"a": [], "b": {}, "long enough to be copied": 'x"\\\n\x01' * 3, "c": [[1, [None]], True, "Łódź"]}
    assert texts([None, encode_json(value)]) == [None, json_text(decode_json(encode_json(value))).encode()]


@given(st.lists(st.none() | JSON_VALUES, max_size=6))
def test_every_value_is_printed_as_by_the_scalar_codec(values: list[JsonValue]) -> None:
    """Whatever is printed is right; a document that a server would not write so is left to the scalar codec."""
    documents = [None if value is None else encode_json(value) for value in values]
    expected = [None if each is None else json_text(decode_json(each)).encode() for each in documents]
    assert texts(documents) in (expected, None)


@given(JSON_VALUES, st.data())
def test_a_document_with_a_wrong_byte(value: JsonValue, data: st.DataObject) -> None:
    """No byte makes the loops print something else, or read beyond the document."""
    document = bytearray(encode_json(value))
    document[data.draw(st.integers(0, len(document) - 1))] = data.draw(st.integers(0, 255))
    found = texts([bytes(document)])
    try:
        expected = [json_text(decode_json(bytes(document))).encode()]
    except (FormatError, UnicodeEncodeError):
        assert found is None
        return
    assert found in (expected, None)


def test_only_whole_documents_of_text_have_no_quotes_in_a_log() -> None:
    """mysqlbinlog prints these without quotes, so the scalar codec prints them."""
    assert texts([encode_json("a")], quoted=False) is None
    assert texts([encode_json(["a"])], quoted=False) == [b'["a"]']
