"""
Random pairs of texts for a collation: of all of Unicode, many of them equal or nearly so.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable
from functools import cached_property

import attrs

from ndb_formats.types.charsets import PYTHON_CODEC, charset_of_collation, decode_text, encode_text
from ndb_formats.types.collation_names import max_bytes
from ndb_formats.types.collations import comparison_of

__all__ = ["PairMaker"]


def _range(first: int, last: int) -> str:
    return "".join(chr(code) for code in range(first, last + 1) if not 0xD800 <= code < 0xE000)


_KANA = "かカｶガがアあァぁーｰゝゞヽヾんンハばぱパﾊㇰﾞﾟ\u3099\u309a"
# What a letter is drawn from, pool by pool: scripts, letters with marks, ligatures, characters that collations ignore.
_POOLS = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    _range(0x20, 0x7E),
    _range(0x00, 0x1F) + _range(0x7F, 0xA0) + "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u2028\u2060\ufeff\ufff9",
    " \u00a0\u2003\u2007\u202f\u3000\t\n",
    _range(0xA1, 0x17F),
    _range(0x180, 0x2FF),
    _range(0x300, 0x36F),
    _range(0x370, 0x52F),
    _range(0x5B0, 0x6FF),
    _range(0x900, 0xDFF),
    _range(0xE00, 0x10FF),
    _range(0x1100, 0x11FF) + _range(0xAC00, 0xAC40) + _range(0xD7A0, 0xD7FF),
    _range(0x1AB0, 0x1FFF),
    _range(0x2000, 0x23FF),
    _range(0x2460, 0x24FF) + _range(0x2E80, 0x2FDF),
    _range(0x3040, 0x30FF) + _range(0x31F0, 0x31FF) + _range(0xFF66, 0xFF9F),
    _KANA,
    _range(0x3190, 0x33FF),
    _range(0x4E00, 0x4E60) + _range(0xF900, 0xF940) + _range(0x3400, 0x3420) + _range(0x9FA0, 0x9FFF) + "一二三中国國",
    _range(0xA640, 0xA7FF) + _range(0xAB30, 0xABFF),
    _range(0xE000, 0xE010) + _range(0xFDD0, 0xFDEF) + "\ufffd\ufffe\uffff",
    _range(0xFB00, 0xFDFF),
    _range(0xFE00, 0xFFEF),
    _range(0x10000, 0x10500),
    _range(0x11000, 0x11700),
    _range(0x16F00, 0x17010) + _range(0x1B000, 0x1B130),
    _range(0x1D100, 0x1D7FF),
    _range(0x1F100, 0x1F650),
    _range(0x20000, 0x20010) + _range(0x2F800, 0x2F840) + _range(0x30000, 0x30010) + _range(0xE0001, 0xE0110),
    _range(0x0, 0x10FFFF),
)
# Letters that some language takes as one, or as two.
_WORDS = (
    *("aa", "AA", "Aa", "aA", "ae", "oe", "ue", "ss", "ch", "CH", "cH", "Ch", "ll", "LL", "lL", "lj", "nj", "dz", "dž"),
    *("dzs", "cs", "sz", "zs", "gy", "ny", "rr", "th", "ij", "i\u0307", "\u02bcn", "l·", "ｶﾞ", "か\u3099", "カー"),
)


@attrs.frozen
class PairMaker:
    """Makes pairs for one collation; `seed` says which."""

    collation: str
    seed: int

    def pairs(self, count: int) -> list[tuple[bytes, bytes]]:
        """Return so many pairs, in the collation's character set."""
        rng = random.Random(f"{self.collation} {self.seed}")
        found = []
        while len(found) < count:
            text = self._text(rng)
            other = self._near(text, rng) if rng.random() < 0.9 else self._text(rng)
            one, two = self._encoded(text), self._encoded(other)
            if one is not None and two is not None:
                found.append((one, two))
        return found

    @cached_property
    def _charset(self) -> str:
        charset = charset_of_collation(self.collation)
        # Of character sets that are not decoded, only bytes count; latin1 has a letter for each.
        return charset if PYTHON_CODEC.get(charset) else "latin1"

    @cached_property
    def _pools(self) -> list[str]:
        if max_bytes(self._charset) > 1:
            last = 0xFFFF if self._charset == "utf8mb3" else 0x10FFFF
            pools = ("".join(letter for letter in pool if ord(letter) <= last) for pool in _POOLS)
            found = [pool for pool in pools if pool]
            return found + [_KANA] * len(found) if "_ja_" in self.collation else found
        size = 128 if self._charset == "ascii" else 256
        letters = [decode_text(bytes([byte]), self._charset) for byte in range(size)]
        return [*("".join(letters[start : start + 32]) for start in range(0, size, 32)), "".join(letters)]

    @cached_property
    def _alike(self) -> dict[str, list[str]]:
        """Characters by what the project's own table gives for them: a wrong entry makes a wrong pair."""
        table, found = comparison_of(self.collation).table, dict[str, list[str]]()
        for code, text in table.texts.items() if table else ():
            found.setdefault(text, []).append(chr(code))
        return found

    def _text(self, rng: random.Random) -> str:
        units = [
            rng.choice(_WORDS) if rng.random() < 0.1 else rng.choice(rng.choice(self._pools))
            for _ in range(rng.choice((1, 1, 2, 2, 3, 4, 6)))
        ]
        return "".join(units)

    def _near(self, text: str, rng: random.Random) -> str:
        letters = list(text)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            place = rng.randrange(len(letters)) if letters else 0
            kind = rng.random()
            if not letters or kind < 0.1:
                letters.insert(place, rng.choice(rng.choice(self._pools)))
            elif kind < 0.2:
                letters.append(rng.choice((" ", "  ", "\0", "\u0301", "\u00a0", "s", "e")))
            elif kind < 0.28:
                del letters[place]
            elif kind < 0.36:
                own = (pool for pool in self._pools if letters[place] in pool)
                letters[place] = rng.choice(next(own, self._pools[0]))
            elif kind < 0.42:
                letters = list("".join(letters))[::-1]
            else:
                letters[place] = self._alternative(letters[place], rng)
        return "".join(letters)

    def _alternative(self, letter: str, rng: random.Random) -> str:
        """Return what Unicode or the project's table take as much the same letter."""
        table = comparison_of(self.collation).table
        own = table.texts[ord(letter)] if table and len(letter) == 1 and ord(letter) in table.texts else letter
        ways: list[Callable[[], str]] = [
            letter.swapcase,
            letter.casefold,
            lambda: unicodedata.normalize("NFD", letter),
            lambda: unicodedata.normalize("NFKD", letter),
            lambda: unicodedata.normalize("NFKD", letter)[:1],
            lambda: unicodedata.normalize("NFKC", letter.upper()),
            lambda: rng.choice([own, *self._alike.get(own, [])]),
            lambda: rng.choice([own, *self._alike.get(own, [])]),
        ]
        return rng.choice(ways)()

    def _encoded(self, text: str) -> bytes | None:
        """Return the bytes of a text; None if the character set does not have all its characters."""
        try:
            payload = encode_text(text, self._charset)
        except UnicodeEncodeError:
            return None
        return payload if decode_text(payload, self._charset) == text else None
