"""
What a real MySQL server says of every character of its character sets, for `tools/charset_tables.py`.

Usage: ``MYSQL_SOCKET=... python -m tests.mysql_server.record_characters FILE``. A line has a character set, the bytes
of one character, and its UTF-8, both in hexadecimal digits.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from ndb_formats.types.charsets import PYTHON_CODEC
from ndb_formats.types.collation_names import max_bytes
from tests.mysql_server.server import Server

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


def characters_of(server: Server, charset: str) -> Iterator[tuple[bytes, str]]:
    """Yield each sequence of bytes that is one whole character in a character set, and that character."""
    codes = codes_of(charset)
    for start in range(0, len(codes), _AT_ONCE):
        part = codes[start : start + _AT_ONCE]
        rows = ",".join(f"ROW(x'{code.hex()}')" for code in part)
        text = f"CONVERT(column_0 USING {charset})"
        whole = f"LENGTH({text}) = LENGTH(column_0) AND CHAR_LENGTH({text}) = 1"
        lines = server.run(f"SELECT {whole}, HEX(CONVERT({text} USING utf8mb4)) FROM (VALUES {rows}) AS codes")
        for code, line in zip(part, lines.splitlines(), strict=True):
            is_whole, letter = line.split("\t")
            if is_whole == "1" and letter != "NULL":
                yield code, bytes.fromhex(letter).decode()


def main() -> None:
    """Write the file that is named."""
    server = Server.from_environment()
    with Path(sys.argv[1]).open("w", encoding="ascii") as out:
        for charset in CHARSETS:
            out.writelines(
                f"{charset}\t{code.hex()}\t{letter.encode().hex()}\n" for code, letter in characters_of(server, charset)
            )


if __name__ == "__main__":
    main()
