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
_FINEST = 2  # digits of a percentage after the point


def printable(text: str) -> str:
    r"""Return a text with every hidden character as ``\x1b`` or ``\u202e``; line feeds and tabs stay."""
    return _HIDDEN.sub(lambda found: _escaped(ord(found[0])), text)


def one_line(text: str) -> str:
    r"""Return a text that stays on its line: as `printable`, with line feeds and tabs as ``\\n`` and ``\\t``."""
    return printable(text).replace("\n", r"\n").replace("\t", r"\t")


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number and what it counts: ``1 row``, ``2,000 rows``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def percent(share: float, digits: int | None = 1, unit: str = " %") -> str:
    """
    Return a share as a percentage: only nothing is 0 %, and only the whole is 100 %.

    What would be either by rounding has up to two digits after the point: ``0.03 %``, ``<0.01 %``, ``>99.99 %``.

    Args:
        share: Of 1; not negative.
        digits: Digits after the point; None for three digits in all.
        unit: What follows the number.
    """
    value = 100 * share
    finest = max(digits or 0, _FINEST)
    texts = [f"{value:.3g}"] if digits is None and not 0 < value < 10.0**-finest else []
    texts += [f"{value:.{places}f}" for places in range(finest if digits is None else digits, finest + 1)]
    for text in texts:
        if (float(text) == 0) == (share == 0) and (float(text) == 100) == (share == 1):
            return f"{text}{unit}"
    least = 10.0**-finest
    bound = f"<{least:.{finest}f}" if value < 1 else f">{100 - least:.{finest}f}" if share < 1 else ">100"
    return f"{bound}{unit}"


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
