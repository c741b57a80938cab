"""Texts that nobody meant: changes to a sound one, by characters, tokens and lines."""

from __future__ import annotations

import random
import re

__all__ = ["mutated_text"]

_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)
_PIECES = (
    *("'", '"', "`", "(", ")", "[", "]", "{", "}", ",", ";", ".", "=", "\\", "\t", "\n", "\r", "--", "/*", "*/", "/*!"),
    *(
        "#",
        "0x",
        "0b1",
        "x'0g'",
        "-1",
        "0",
        "1e999",
        "NULL",
        "\\N",
        "DEFAULT",
        "\0",
        "\x1b[2J",
        "\ufeff",
        "é",
        "\U0001d518",
    ),
    *(
        "\uff19",
        "true",
        "nan",
        "inf",
        "1979-05-27T07:32:00Z",
        "[[x]]",
        "'''",
        '"""',
        "_utf8'x'",
        "@@x",
        "18446744073709551616",
    ),
    *("PRIMARY KEY", "UNIQUE", "ENUM('a')", "DECIMAL(99,99)", "GENERATED ALWAYS AS", "CHARACTER SET nope", "$"),
)


def mutated_text(text: str, chance: random.Random, most: int = 6000) -> bytes:
    """Return a text with one to four changes, as bytes, now and then not UTF-8."""
    if len(text) > most:
        start = chance.randrange(len(text) - most) if chance.random() < 0.5 else 0
        text = text[start : start + most]
    for _ in range(chance.choice((1, 1, 2, 3, 4))):
        text = _changed(text, chance)
    data = text.encode("utf-8", "surrogatepass")
    if chance.random() < 0.02:
        place = chance.randrange(len(data) + 1)
        data = data[:place] + bytes([chance.randrange(128, 256)]) + data[place:]
    return data


def _changed(text: str, chance: random.Random) -> str:
    tokens = _TOKEN.findall(text) or [""]
    place, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
    kind = chance.randrange(10)
    if kind == 0:
        del tokens[place : place + chance.choice((1, 1, 3, 20))]
    elif kind == 1:
        tokens[place] = chance.choice(_PIECES)
    elif kind == 2:
        tokens.insert(place, chance.choice(_PIECES))
    elif kind == 3:
        tokens[place] = tokens[other]
    elif kind == 4:
        tokens[place:place] = tokens[other : other + chance.randrange(1, 30)]
    elif kind == 5:
        del tokens[place:]
    elif kind == 6:
        tokens[place] = _number(chance)
    elif kind == 7:
        tokens[place] = chance.choice(_PIECES) * chance.choice((2, 10, 300, 3000))
    elif kind == 8:
        tokens[place] = chr(chance.choice((chance.randrange(0x250), chance.randrange(0xD800), 0xFFFD, 0x2028)))
    else:
        lines = text.split("\n")
        chance.shuffle(lines)
        return "\n".join(lines) if chance.random() < 0.3 else "\r\n".join(text.split("\n"))
    return "".join(tokens)


def _number(chance: random.Random) -> str:
    number = chance.choice((-1, 0, 1, 7, 8, 255, 256, 2**31, 2**32, 2**63, 2**64, 10**30))
    if chance.random() < 0.02:
        return "9" * 5000  # more digits than Python reads
    return str(number + chance.randrange(-1, 2))
