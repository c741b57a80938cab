"""
Paths of JSON diffs: ``$.a."b c"[0]``, with members and array cells, and no wildcards and no ranges.

Source: MySQL `json_path.cc`.
"""

from __future__ import annotations

import json
import re
from typing import TypeAlias

import attrs

from ndb_formats.errors import CorruptError

__all__ = ["JsonCell", "Leg", "path_legs"]


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
