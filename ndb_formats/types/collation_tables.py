"""
The tables of collations: which texts are equal, as a MySQL 9 server says.

A table gives a *canonical text* for each *unit*, a character or a contraction, and a unit that it leaves out is its
own. Two texts are equal if and only if the canonical texts of their units, one after the other, are equal. The program
`tools.collation_tables` makes the tables from the weights that a server gives (WEIGHT_STRING(), see the manual,
"Unicode Character Sets").

A file in `collation_data` is text in xz format. A line ``name base`` starts a table; it changes that of ``base``, or
stands alone if that is ``-``. A line of it, after a blank, is ``unit count step text``, all characters as hexadecimal
digits joined by ``+``: `count` characters in a row, where the last character of the text moves on by `step` with each.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

import attrs

__all__ = ["CollationTable", "table_of"]

_FILES = ("general", "single_byte", "uca_400", "uca_520", "uca_900")
# More characters in a row with the same text than this are kept as a range.
_LONG = 4096
# Stand around a contraction of the end of a text with its start. It is ignorable, so it stands for no other character.
_CIRCULAR = "\u034f"


class _Texts(dict[int, str]):
    """Canonical text by code point, for `str.translate`; long ranges of code points have one text."""

    ranges: tuple[tuple[int, int, str], ...] = ()

    def __missing__(self, code: int) -> str:
        for first, end, text in self.ranges:
            if first <= code < end:
                return text
        raise KeyError(code)


@attrs.frozen(eq=False)
class CollationTable:
    """
    Which texts are equal under a collation, trailing blanks aside.

    Attributes:
        texts: Canonical text by code point, for `str.translate`.
        contractions: Canonical texts of contractions.
        circular: Whether the last character of a text may be the first one of a contraction with its first one. The
            server compares level by level, and of Japanese it then takes on all levels but the first what it read last
            for what precedes the text.
    """

    texts: Mapping[int, str]
    contractions: Mapping[str, str]
    circular: bool
    _pattern: re.Pattern[str] | None

    @classmethod
    def of(cls, texts: Mapping[int, str], contractions: Mapping[str, str], *, circular: bool) -> CollationTable:
        """Return a table."""
        # The longest contraction counts, from the left.
        longest = sorted(contractions, key=len, reverse=True)
        pattern = re.compile("|".join(map(re.escape, longest))) if longest else None
        return cls(texts, contractions, circular, pattern)

    def canonical(self, text: str) -> str:
        """Return the text that stands for all that are equal to a text."""
        if self._pattern is None:
            return text.translate(self.texts)
        around = self.contractions.get(text[-1:] + text[:1]) if self.circular else None
        parts, end = [] if around is None else [_CIRCULAR, around, _CIRCULAR], 0
        for found in self._pattern.finditer(text):
            parts += [text[end : found.start()].translate(self.texts), self.contractions[found[0]]]
            end = found.end()
        return "".join([*parts, text[end:].translate(self.texts)])


@cache
def table_of(name: str) -> CollationTable | None:
    """Return the table of a name in the files, such as ``0900_ai_ci`` or ``latin1_swedish_ci``; None if none has it."""
    place = _places().get(name)
    if place is None:
        return None
    base, lines = place
    changed = table_of(base) if base != "-" else None
    texts, contractions = _Texts(), dict[str, str]()
    if changed is not None:
        assert isinstance(changed.texts, _Texts)
        texts.update(changed.texts)
        texts.ranges = changed.texts.ranges
        contractions.update(changed.contractions)
    _read(lines, texts, contractions)
    return CollationTable.of(texts, contractions, circular=name.startswith("ja_"))


def _read(lines: Iterable[str], texts: _Texts, contractions: dict[str, str]) -> None:
    for line in lines:
        unit, count, step, digits = line.split()
        text = "" if digits == "-" else "".join(chr(int(each, 16)) for each in digits.split("+"))
        if "+" in unit:
            contractions["".join(chr(int(each, 16)) for each in unit.split("+"))] = text
            continue
        first, end = int(unit, 16), int(unit, 16) + int(count)
        if step == "1":
            texts.update((code, text[:-1] + chr(ord(text[-1]) + code - first)) for code in range(first, end))
        elif end - first > _LONG:
            texts.ranges = (*texts.ranges, (first, end, text))
        else:
            texts.update(dict.fromkeys(range(first, end), text))


@cache
def _places() -> dict[str, tuple[str, list[str]]]:
    """Return base and lines of every table in the files."""
    found: dict[str, tuple[str, list[str]]] = {}
    for file in _FILES:
        data = files("ndb_formats.types").joinpath("collation_data", f"{file}.xz").read_bytes()
        lines: list[str] = []
        for line in lzma.decompress(data).decode().splitlines():
            if line.startswith(" "):
                lines.append(line)
                continue
            lines = []
            name, base = line.split()
            found[name] = base, lines
    return found
