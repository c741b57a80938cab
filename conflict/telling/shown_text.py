"""
Text from binlogs, files and paths as people see it.

Control characters are escaped, so that no name moves the cursor, changes colours, or hides what stands beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Control characters but the line feed and the tab, lone surrogates, and characters that only change the direction of
# text or join lines.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")

_LONGEST_WORD = 200


def printable(text: str) -> str:
    r"""Return a text with every hidden character as ``\x1b`` or ``\u202e``; line feeds and tabs stay."""
    return _HIDDEN.sub(lambda found: _escaped(ord(found[0])), text)


def one_line(text: str) -> str:
    r"""Return a text that stays on its line: as `printable`, with line feeds and tabs as ``\\n`` and ``\\t``."""
    return printable(text).replace("\n", r"\n").replace("\t", r"\t")


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number and what it counts: ``1 row``, ``2,000 rows``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def percent(share: float, digits: int = 1, unit: str = "%") -> str:
    """
    Return a share as a percentage; what is there is not 0 %.

    Args:
        share: Of 1.
        digits: Digits after the point.
        unit: What follows the number.
    """
    text, least = f"{100 * share:.{digits}f}", 10.0**-digits
    if share > 0 and not float(text):
        return f"<{least:.{digits}f}{unit}"
    return f"{text}{unit}"


def capitalized(text: str) -> str:
    """Return a clause as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def listed(parts: Sequence[str], word: str = "and") -> str:
    """Return texts with commas between, and a word before the last one."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """Return, by path, its last parts: as many as it takes to tell the paths with the same last part apart."""
    alike: dict[str, list[list[str]]] = {}
    for path in dict.fromkeys(paths):
        parts = path.split("/")
        alike.setdefault(parts[-1], []).append(parts)
    names = {}
    for group in alike.values():
        longest = max(map(len, group))
        count = next((n for n in range(1, longest) if len({tuple(each[-n:]) for each in group}) == len(group)), longest)
        names.update({"/".join(each): "/".join(each[-count:]) for each in group})
    return names


def not_utf8(error: UnicodeEncodeError) -> str:
    """Return why a text cannot be written, with the word of it that is not UTF-8."""
    text, start = error.object, error.start
    word = re.split(r"[\s\"']", text[:start])[-1] + re.split(r"[\s\"']", text[start:])[0]
    return f"{printable(word[-_LONGEST_WORD:])} is not UTF-8; give it another name"


def _escaped(number: int) -> str:
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
