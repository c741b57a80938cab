"""
JSON diffs: what an after image has in position of a document under ``binlog_row_value_options=PARTIAL_JSON``.

    diffs       to the end of the column's bytes
    diff        operation u8, path, value (not for REMOVE)
    path        packed length, text: ``$.a."b c"[0]``, with members and array cells, and no wildcards and no ranges
    value       packed length, a binary JSON document

A diff keeps the text of its path, so that it encodes to the same bytes.

Source: MySQL `json_diff.cc`, `json_path.cc`, and `log_event.cc` (`print_json_diff`) for the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import groupby
from typing import TypeAlias

import attrs

from ndb_formats.cursor import Cursor, packed
from ndb_formats.errors import CorruptError
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.json_values import JsonOpaque, JsonValue, json_text


@attrs.frozen
class JsonCell:
    """
    An array cell in a path.

    Attributes:
        index: Its number, from 0.
        from_end: Whether it counts from the last cell backwards (``last-2``).
    """

    index: int
    from_end: bool = False

    def position_in(self, length: int) -> int:
        """Return its position in an array of that length; negative if it is before the first cell."""
        return length - 1 - self.index if self.from_end else self.index


Leg: TypeAlias = str | JsonCell

_SPACE = r"[ \t\n\v\f\r]*"
_LEG = re.compile(
    rf"""{_SPACE}(?:
        \.{_SPACE}(?P<name>"(?:[^"\\]|\\.)*"|[^ \t\n\v\f\r\[.*"]+)
        |\[{_SPACE}(?:(?P<last>last){_SPACE}(?:-{_SPACE}(?P<back>[0-9]+))?|(?P<cell>[0-9]+)){_SPACE}\]
    ){_SPACE}""",
    re.VERBOSE | re.DOTALL,
)
_SCOPE = re.compile(rf"{_SPACE}\${_SPACE}")
_MAX_INDEX_DIGITS = 10
_SHOWN = 200


def path_legs(path: str) -> tuple[Leg, ...]:
    """
    Return the legs of a path, each the name of a member or a cell.

    Raises:
        CorruptError: It is not a path, or one that can match more than one value.
    """
    scope = _SCOPE.match(path)
    end = scope.end() if scope else -1
    legs: list[Leg] = []
    while 0 <= end < len(path):
        match = _LEG.match(path, end)
        legs += [] if match is None else [_leg(match, path)]
        end = -1 if match is None else match.end()
    if end < 0:
        raise CorruptError(_no_path(path))
    return tuple(legs)


def _leg(match: re.Match[str], path: str) -> Leg:
    name = match["name"]
    if name is not None:
        return _member_name(name, path)
    digits = match["back"] or "0" if match["last"] else match["cell"]
    digits = digits.lstrip("0") or "0"
    if len(digits) > _MAX_INDEX_DIGITS:
        raise CorruptError(_no_path(path))
    return JsonCell(int(digits), bool(match["last"]))


def _member_name(name: str, path: str) -> str:
    """Return a name without quotes and escapes; unquoted names may have escapes too."""
    try:
        plain = str(json.loads(name if name.startswith('"') else f'"{name}"'))
        plain.encode("utf-8")
    except ValueError:
        raise CorruptError(_no_path(path)) from None
    return plain


def _no_path(path: str) -> str:
    shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}..."
    return f"JSON diff: {shown!r} is not a path to one value"


class DiffOperation(IntEnum):
    """The operation of a diff, spelled and numbered as in `json_diff.h`."""

    REPLACE = 0
    INSERT = 1
    REMOVE = 2


@attrs.frozen
class JsonDiff:
    """
    One change of a document.

    Attributes:
        operation: Replace, insert or remove.
        path: Text of the path to the member or cell.
        value: Its new value; None for a removal.
    """

    operation: DiffOperation
    path: str
    value: JsonDocument | None = None


@attrs.frozen
class JsonChange:
    """
    A partial update of a JSON column: diffs, and not the new value.

    Attributes:
        data: The encoded diffs.
    """

    data: bytes

    @property
    def diffs(self) -> tuple[JsonDiff, ...]:
        """
        The diffs, in order.

        Raises:
            FormatError: The bytes are not diffs.
        """
        return decode_diffs(self.data)

    @property
    def text(self) -> str:
        """The change as SQL, with ``?`` for the column."""
        return " ".join(diff_text(self.diffs, "?").replace("\n###", "").split())


def decode_diffs(data: bytes) -> tuple[JsonDiff, ...]:
    """
    Return the diffs of one column; `data` is without the length prefix.

    Raises:
        TruncatedError: The last diff is cut short.
        CorruptError: An operation, path or value is not valid.
    """
    cursor = Cursor(data)
    diffs = []
    while cursor.remaining:
        code = cursor.uint(1)
        if code not in DiffOperation._value2member_map_:
            message = f"JSON diff: operation {code} is not known"
            raise CorruptError(message)
        operation = DiffOperation(code)
        path = _path_text(cursor.take(cursor.packed()))
        path_legs(path)
        value = None
        if operation is not DiffOperation.REMOVE:
            value = JsonDocument(cursor.take(cursor.packed()))
            value.value  # noqa: B018  # refuse bad bytes here, not when the diff is applied
        diffs.append(JsonDiff(operation, path, value))
    return tuple(diffs)


def _path_text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"JSON diff: the path is not UTF-8: {error.reason} at byte {error.start}"
        raise CorruptError(message) from None


def encode_diffs(diffs: Iterable[JsonDiff]) -> bytes:
    """
    Return the bytes of diffs; the inverse of `decode_diffs`.

    Raises:
        ValueError: A diff that needs a value has none, or a removal has one.
    """
    return b"".join(part for diff in diffs for part in _parts(diff))


def _parts(diff: JsonDiff) -> Iterable[bytes]:
    if (diff.value is None) is not (diff.operation is DiffOperation.REMOVE):
        message = f"{diff.operation.name} {'without' if diff.value is None else 'with'} a value"
        raise ValueError(message)
    path = diff.path.encode("utf-8")
    yield bytes([diff.operation])
    yield packed(len(path)) + path
    if diff.value is not None:
        yield packed(len(diff.value.data)) + diff.value.data


def apply_diffs(document: JsonDocument, diffs: Iterable[JsonDiff]) -> JsonDocument:
    """
    Return the document after all changes, in the form without gaps.

    Raises:
        CorruptError: A diff does not fit the document: its member or cell is missing, or already there for an INSERT.
    """
    value = document.value
    for diff in diffs:
        legs = path_legs(diff.path)
        parent = _seek(value, legs[:-1])
        if not legs or not _apply(diff, parent, legs[-1]):
            message = f"JSON diff: {diff.operation.name} {diff.path} does not fit the document"
            raise CorruptError(message)
    return JsonDocument.of(value)


def _seek(value: JsonValue, legs: Sequence[Leg]) -> JsonValue:
    """Return the value at the end of a path; None if there is none."""
    for leg in legs:
        if isinstance(value, dict) and isinstance(leg, str):
            value = value.get(leg)
        elif isinstance(value, list) and isinstance(leg, JsonCell):
            position = leg.position_in(len(value))
            value = value[position] if 0 <= position < len(value) else None
        else:
            return None
    return value


def _apply(diff: JsonDiff, parent: JsonValue, leg: Leg) -> bool:
    """Change one member or cell of `parent`, and return whether that was possible."""
    new = None if diff.value is None else diff.value.value
    inserts = diff.operation is DiffOperation.INSERT
    if isinstance(parent, dict) and isinstance(leg, str):
        if (leg in parent) is inserts:
            return False
        if diff.operation is DiffOperation.REMOVE:
            del parent[leg]
        else:
            parent[leg] = new
        return True
    if isinstance(parent, list) and isinstance(leg, JsonCell):
        position = leg.position_in(len(parent))
        if inserts:
            parent.insert(max(position, 0), new)
            return True
        if not 0 <= position < len(parent):
            return False
        parent[position : position + 1] = [] if diff.operation is DiffOperation.REMOVE else [new]
        return True
    return False


_LINE = "\n###      "
_ESCAPES = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 39: "\\'", 92: "\\\\"}
_QUOTING = {code: _ESCAPES.get(code, f"\\x{code:02x}") for code in (*range(32), 39, 92)}


def diff_text(diffs: Sequence[JsonDiff], column: str) -> str:
    """
    Return diffs as `mysqlbinlog` prints them: nested calls of SQL functions, the first diff innermost.

    Args:
        diffs: The diffs of one column, in order.
        column: The text for the column, such as ``@6``.
    """
    calls = [(name, list(group)) for name, group in groupby(diffs, key=_function)]
    opening = _LINE.join(f"{name}(" for name, _ in reversed(calls))
    closing = f",{_LINE}".join(f",{_LINE}".join(map(_arguments, group)) + ")" for _, group in calls)
    return f"{opening}{column}, {closing}" if calls else column


def _function(diff: JsonDiff) -> str:
    if diff.operation is DiffOperation.INSERT and diff.path.endswith("]"):
        return "JSON_ARRAY_INSERT"
    return f"JSON_{diff.operation.name}"


def _arguments(diff: JsonDiff) -> str:
    path = _sql_quote(diff.path)
    return path if diff.value is None else f"{path}, {_sql_value(diff.value.value)}"


def _sql_value(value: JsonValue) -> str:
    text = json_text(value, quoted=False)
    if isinstance(value, dict | list):
        return f"CAST({_sql_quote(text)} AS JSON)"
    is_text = isinstance(value, str) or (isinstance(value, JsonOpaque) and not value.is_number)
    return _sql_quote(text) if is_text else text


def _sql_quote(text: str) -> str:
    return f"'{text.translate(_QUOTING)}'"
