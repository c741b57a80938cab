"""JSON diffs of partial updates: bytes, paths, what they do, and how mysqlbinlog prints them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.errors import CorruptError, FormatError, TruncatedError
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.json_diff import (
    DiffOperation,
    JsonCell,
    JsonDiff,
    apply_diffs,
    decode_diffs,
    diff_text,
    encode_diffs,
    path_legs,
)
from ndb_formats.types.json_values import JsonOpaque, JsonUint, JsonValue
from tests.strategies import JSON_DIFFS, JSON_VALUES

REPLACE, INSERT, REMOVE = DiffOperation


def replace(path: str, value: JsonValue) -> JsonDiff:
    """Return a diff that replaces a value."""
    return JsonDiff(REPLACE, path, JsonDocument.of(value))


def insert(path: str, value: JsonValue) -> JsonDiff:
    """Return a diff that adds a value."""
    return JsonDiff(INSERT, path, JsonDocument.of(value))


def remove(path: str) -> JsonDiff:
    """Return a diff that takes a value away."""
    return JsonDiff(REMOVE, path)


def test_a_recorded_diff():
    """UPDATE blobs SET j = JSON_SET(j, '$.a', 2), from MySQL 9.7.4: bytes, printed text, and the row afterwards."""
    data = bytes.fromhex("0003242e6103050200")
    diffs = decode_diffs(data)
    assert diffs == (JsonDiff(REPLACE, "$.a", JsonDocument(bytes.fromhex("050200"))),)
    assert encode_diffs(diffs) == data
    assert diff_text(diffs, "@6") == "JSON_REPLACE(@6, '$.a', 2)"
    before = "0002002b0012000100130001000501000214006162030017000401000b0d000c150000000000000004400173"
    after = "0002002b0012000100130001000502000214006162030017000401000b0d000c150000000000000004400173"
    assert apply_diffs(JsonDocument(bytes.fromhex(before)), diffs) == JsonDocument(bytes.fromhex(after))


@pytest.mark.parametrize(
    ("data", "diffs"),
    [
        ("", ()),
        ("0203242e61", (remove("$.a"),)),
        ("0104245b305d 020400", (insert("$[0]", None),)),
        ("0203242e61 0003242e62 020401", (remove("$.a"), replace("$.b", True))),
    ],
)
def test_bytes(data: str, diffs: tuple[JsonDiff, ...]):
    """Diffs stand one after the other; a removal has no value."""
    assert decode_diffs(bytes.fromhex(data)) == diffs
    assert encode_diffs(diffs) == bytes.fromhex(data)


def test_a_long_value_has_a_longer_length():
    """A value of more than 250 bytes has its length in three bytes."""
    data = encode_diffs([replace("$.a", "x" * 300)])
    assert data == bytes.fromhex("0003242e61 fc2f01 0cac02") + b"x" * 300
    assert decode_diffs(data) == (replace("$.a", "x" * 300),)


@pytest.mark.parametrize(
    ("path", "legs"),
    [
        ("$", ()),
        ("$.a", ("a",)),
        ("$.a.b[3]", ("a", "b", JsonCell(3))),
        ('$."b c"[0]', ("b c", JsonCell(0))),
        (r'$."q\"\\\u00e9"', ('q"\\é',)),
        ('$."a.b[1]*"."$"', ("a.b[1]*", "$")),
        ("$.é$_", ("é$_",)),
        ("$[last]", (JsonCell(0, from_end=True),)),
        ("$[last-2].x", (JsonCell(2, from_end=True), "x")),
        (" $ . a [ 1 ] [ last - 1 ] ", ("a", JsonCell(1), JsonCell(1, from_end=True))),
        ('$.""', ("",)),
    ],
)
def test_paths(path: str, legs: tuple[str | JsonCell, ...]):
    """A path is a list of names, in quotes where they need them, and cells."""
    assert path_legs(path) == legs


@pytest.mark.parametrize(
    "path",
    ["", "a", "$a", "$.", "$.*", "$[*]", "$**.a", "$[1 to 2]", "$[-1]", "$[1", '$."a', '$."\\x"', '$."\\ud800"',
     '$."\t"', "$[99999999999]", "$[last-]", "$.a.", "$ $"],
)  # fmt: skip
def test_paths_to_no_or_several_values_are_corrupt(path: str):
    """Wildcards, ranges and broken paths are not in a diff."""
    with pytest.raises(CorruptError, match="not a path to one value"):
        path_legs(path)


@pytest.mark.parametrize(
    ("before", "diffs", "after"),
    [
        ({"a": 1}, [replace("$.a", "x")], {"a": "x"}),
        ({"a": [1, 2]}, [replace("$.a[1]", None)], {"a": [1, None]}),
        ({"a": [1, 2]}, [replace("$.a[last]", 3), replace("$.a[last-1]", 4)], {"a": [4, 3]}),
        ({"a": 1}, [insert("$.bb", {}), insert("$.bb.c", [])], {"a": 1, "bb": {"c": []}}),
        ([1], [insert("$[0]", 0), insert("$[9]", 2)], [0, 1, 2]),
        ([1], [insert("$[last]", 0), insert("$[last-9]", -1)], [-1, 0, 1]),
        ({"a": 1, "b": 2}, [remove("$.a")], {"b": 2}),
        ([1, [2, 3]], [remove("$[1][0]"), remove("$[0]")], [[3]]),
        ([None], [replace("$[0]", JsonUint(7))], [JsonUint(7)]),
        ([], [], []),
    ],
)
def test_applying(before: JsonValue, diffs: list[JsonDiff], after: JsonValue):
    """Diffs change a document one after the other; a cell beyond an array's end is added at its end."""
    assert apply_diffs(JsonDocument.of(before), diffs) == JsonDocument.of(after)


@pytest.mark.parametrize(
    ("before", "diff"),
    [
        ({"a": 1}, replace("$.b", 1)),
        ({"a": 1}, replace("$", 1)),
        ({"a": 1}, remove("$")),
        ({"a": 1}, remove("$.b")),
        ({"a": 1}, insert("$.a", 1)),
        ({"a": 1}, insert("$[0]", 1)),
        ({"a": None}, insert("$.a.b", 1)),
        ({"a": None}, replace("$.a[0]", 1)),
        ([1], replace("$[1]", 1)),
        ([1], remove("$[last-1]")),
        ([1], insert("$.a", 1)),
        ([[1]], replace("$[1][0]", 1)),
        (1, replace("$[0]", 1)),
    ],
)
def test_diffs_that_do_not_fit(before: JsonValue, diff: JsonDiff):
    """A place that does not exist, or is taken, means that the document is another one."""
    with pytest.raises(CorruptError, match=f"{diff.operation.name} .* does not fit"):
        apply_diffs(JsonDocument.of(before), [diff])


@pytest.mark.parametrize(
    ("diffs", "text"),
    [
        ([], "@2"),
        ([remove("$.a")], "JSON_REMOVE(@2, '$.a')"),
        ([insert("$.a", "it's")], r"JSON_INSERT(@2, '$.a', 'it\'s')"),
        ([insert("$[0]", 1.0)], "JSON_ARRAY_INSERT(@2, '$[0]', 1.0)"),
        ([replace('$."a b"', {"k": 'q"'})], """JSON_REPLACE(@2, '$."a b"', CAST('{"k": "q\\\\""}' AS JSON))"""),
        ([replace("$.a", None), replace("$.b", True)], "JSON_REPLACE(@2, '$.a', null,\n###      '$.b', true)"),
        (
            [replace("$.a", 1), insert("$.b", [2]), remove("$.c"), remove("$.d")],
            """JSON_REMOVE(
###      JSON_INSERT(
###      JSON_REPLACE(@2, '$.a', 1),
###      '$.b', CAST('[2]' AS JSON)),
###      '$.c',
###      '$.d')""",
        ),
        ([replace("$.a", JsonOpaque(11, bytes(8)))], "JSON_REPLACE(@2, '$.a', '00:00:00.000000')"),
        ([replace("$.a", JsonOpaque(246, bytes.fromhex("010085")))], "JSON_REPLACE(@2, '$.a', 5)"),
        ([replace("$.a", "\n\x01\\")], r"JSON_REPLACE(@2, '$.a', '\n\x01\\')"),
    ],
)
def test_text(diffs: list[JsonDiff], text: str):
    """Calls of SQL functions, the first change innermost, changes of one kind in one call."""
    assert diff_text(diffs, "@2") == text


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ("03", CorruptError, "operation 3"),
        ("00", TruncatedError, "needs 1"),
        ("0003242e", TruncatedError, "needs 3"),
        ("0003242e61", TruncatedError, "needs 1"),
        ("0003242e61020c", TruncatedError, "needs 2"),
        ("00fb", CorruptError, "0xfb"),
        ("0203242eff", CorruptError, "not UTF-8"),
        ("0203242e2a", CorruptError, "not a path to one value"),
        ("0003242e61020403", CorruptError, "literal 0x03"),
    ],
)
def test_corrupt_diffs(data: str, error: type[FormatError], words: str):
    """What is no diff is an error."""
    with pytest.raises(error, match=words):
        decode_diffs(bytes.fromhex(data))


@pytest.mark.parametrize("diff", [JsonDiff(REPLACE, "$.a"), JsonDiff(REMOVE, "$.a", JsonDocument(b""))])
def test_a_value_belongs_to_all_but_removals(diff: JsonDiff):
    """A diff without what it needs, or with more, is not written."""
    with pytest.raises(ValueError, match="a value"):
        encode_diffs([diff])


@given(st.lists(JSON_DIFFS, max_size=4))
def test_diffs_come_back(diffs: list[JsonDiff]):
    """Any diffs, written and read, are the same."""
    assert decode_diffs(encode_diffs(diffs)) == tuple(diffs)


@given(st.lists(JSON_DIFFS, min_size=1, max_size=3), st.data())
def test_cut_and_changed_bytes_are_handled(diffs: list[JsonDiff], data: st.DataObject):
    """Bytes that are cut or changed give our error, or diffs that can be printed."""
    encoded = bytearray(encode_diffs(diffs))
    encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    length = data.draw(st.integers(0, len(encoded)))
    with suppress(FormatError):
        diff_text(decode_diffs(bytes(encoded[:length])), "@1")


@given(JSON_VALUES, st.lists(JSON_DIFFS, max_size=3))
def test_applying_gives_a_document_or_our_error(before: JsonValue, diffs: list[JsonDiff]):
    """Any diffs on any document give a document, or say that they do not fit."""
    try:
        document = apply_diffs(JsonDocument.of(before), diffs)
    except FormatError:
        return
    assert JsonDocument.of(document.value) == document
