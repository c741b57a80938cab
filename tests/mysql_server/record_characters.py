"""
What a real MySQL server says of every character of its character sets, for `tools/charset_tables.py`.

Usage: ``MYSQL_SOCKET=... python -m tests.mysql_server.record_characters FILE``. A line has a character set, the bytes
of one character, and its UTF-8, both in hexadecimal digits.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ndb_formats.types.charsets import PYTHON_CODEC
from ndb_formats.types.collation_names import max_bytes
from tests.mysql_server.connection import Connection

_AT_ONCE = 5_000
# Python's codecs of these are right by definition, but for what `tests` of the values say.
UNICODE = frozenset({"ucs2", "utf16", "utf16le", "utf32", "utf8mb3", "utf8mb4", "gb18030"})
CHARSETS = sorted(set(PYTHON_CODEC) - UNICODE)


def codes_of(charset: str) -> list[bytes]:
    """Return every sequence of bytes that may be one character: of up to three bytes, in the EUC sets alone."""
    codes = [bytes([byte]) for byte in range(256)]
    if max_bytes(charset) > 1:
        codes += [bytes([lead, trail]) for lead in range(0x80, 0x100) for trail in range(0x30, 0x100)]
    if max_bytes(charset) > 2:
        codes += [bytes([0x8F, one, two]) for one in range(0xA1, 0xFF) for two in range(0xA1, 0xFF)]
    return codes


def characters_of(server: Connection, charset: str) -> Iterator[tuple[bytes, str]]:
    """Yield each sequence of bytes that is one whole character in a character set, and that character."""
    codes = codes_of(charset)
    row = "" if b"MariaDB" in (server.run("SELECT VERSION()")[0][0] or b"") else "ROW"
    server.run("SET sql_mode = ''")
    for start in range(0, len(codes), _AT_ONCE):
        part = codes[start : start + _AT_ONCE]
        rows = ",".join(f"{row}(x'{code.hex()}')" for code in part)
        text = f"CONVERT(code USING {charset})"
        whole = f"LENGTH({text}) = LENGTH(code) AND CHAR_LENGTH({text}) = 1"
        query = f"SELECT {whole}, CONVERT({text} USING utf8mb4) FROM codes"
        answer = server.run(f"WITH codes (code) AS (VALUES {rows}) {query}")
        for code, (is_whole, letter) in zip(part, answer, strict=True):
            if is_whole == b"1" and letter is not None:
                yield code, letter.decode()


def main() -> None:
    """Write the file that is named."""
    with Connection(os.environ["MYSQL_SOCKET"]) as server, Path(sys.argv[1]).open("w", encoding="ascii") as out:
        for charset in CHARSETS:
            out.writelines(
                f"{charset}\t{code.hex()}\t{letter.encode().hex()}\n" for code, letter in characters_of(server, charset)
            )


if __name__ == "__main__":
    main()
