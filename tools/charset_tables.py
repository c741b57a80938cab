"""
Make `ndb_formats/types/charset_data/differences.xz` from what a MySQL server said of every character.

Usage: ``python tools/charset_tables.py CHARACTERS``. Each line of that file has a character set, the bytes of one
character in hexadecimal digits, and its UTF-8 in such digits, from
``CONVERT(CONVERT(x'..' USING cs) USING utf8mb4)`` for all sequences that are one character.
"""

import json
import lzma
import sys
from collections import defaultdict
from pathlib import Path

from ndb_formats.types.charsets import PYTHON_CODEC

_DATA = Path(__file__).parents[1] / "ndb_formats/types/charset_data/differences.xz"


def characters(lines: list[str]) -> dict[str, dict[bytes, str | None]]:
    """Return the character of each byte sequence, None for no character, by character set."""
    found: dict[str, dict[bytes, str | None]] = defaultdict(dict)
    for line in lines:
        charset, code, text = line.split("\t")
        raw, letter = bytes.fromhex(code), bytes.fromhex(text).decode()
        found[charset][raw] = None if letter in ("", "\ufffd") or (letter == "?" and raw != b"?") else letter
    return found


def differences(charset: str, letters: dict[bytes, str | None]) -> dict[str, object] | None:
    """Return how a character set differs from Python's codec; None if it does not."""
    codec = PYTHON_CODEC[charset]
    python = {raw: _decoded(raw, codec) for raw in letters}
    unlike = {raw: letter for raw, letter in letters.items() if python[raw] != letter}
    if not unlike or charset == "latin1":
        return None
    if max(map(len, letters)) == 1:
        return {"single": "".join(letters[bytes([byte])] or chr(0xDC00 + byte) for byte in range(256))}
    right = {letter for raw, letter in letters.items() if raw not in unlike}
    missing, wrong = {}, {}
    for raw, letter in unlike.items():
        other = python[raw]
        if other is None or len(other) != 1:
            missing[raw.hex()] = letter
        elif other not in right:
            wrong[other] = letter or raw.decode("ascii", "surrogateescape")
        elif letter is not None:
            print(charset, raw.hex(), "is", letter, "and not", other, "which another code is")
    missing = {raw: letter for raw, letter in missing.items() if letter}
    return {"missing": missing, "wrong": wrong} if missing or wrong else None


def _decoded(raw: bytes, codec: str | None) -> str | None:
    try:
        return raw.decode(codec) if codec else None
    except UnicodeDecodeError:
        return None


def main() -> None:
    """Write the data file from the file of characters that is named."""
    found = characters(Path(sys.argv[1]).read_text().splitlines())
    data = {charset: unlike for charset, letters in found.items() if (unlike := differences(charset, letters))}
    for charset, unlike in data.items():
        print(charset, {kind: len(values) for kind, values in unlike.items()})
    _DATA.write_bytes(lzma.compress(json.dumps(data, separators=(",", ":")).encode(), preset=9))


if __name__ == "__main__":
    main()
