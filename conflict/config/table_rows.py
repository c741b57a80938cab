r"""
Rows of one table as users give them as text with a header line; as statements, see `conflict.config.statement_rows`.

Text is CSV, or has tabs as `mysql --batch` prints them. Escapes are those of SELECT ... INTO OUTFILE (MySQL manual,
"LOAD DATA Statement"). Two liberties are taken with files from other programs: a quote inside quotes may be doubled,
and a backslash before a character that needs none, as in the pattern ``my\_table``, stays.

Values are not checked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import attrs

from conflict.errors import ConfigurationError

Cell = str | bytes | None  # None is NULL, bytes are a value written in hex


@attrs.frozen
class InputRow:
    """
    One row of a file.

    Attributes:
        place: Its place in the file, for messages.
        cells: Values by column name in lower case; from TOML they can have any type.
        replaces: Whether it replaces an earlier row with the same key.
    """

    place: str
    cells: Mapping[str, object]
    replaces: bool = False


_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_ESCAPED = '0bnrtZ\\"\r\n'
_HEX = re.compile(r"0x((?:[0-9A-Fa-f]{2})*)")


def delimited_rows(text: str, needed: Sequence[str]) -> Iterator[InputRow]:
    """
    Yield the rows below a header line; tabs separate fields if the header has one, else commas.

    Args:
        text: The lines.
        needed: Columns that the header must name; a first line without them is refused.

    Raises:
        ConfigurationError: There is no header, a line has another number of fields, or a quote is not closed.
    """
    delimiter = "\t" if "\t" in text.lstrip().split("\n", maxsplit=1)[0] else ","
    lines = _lines(text, delimiter)
    first, names = next(lines, (0, None))
    if names is None:
        message = "the file is empty; a header line with the names of the columns is needed"
        raise ConfigurationError(message)
    header = [str(name).lower() for name in names]
    if not set(needed) <= set(header):
        message = (
            f"line {first} must name the columns, {', '.join(needed)} among them; "
            "SELECT ... INTO OUTFILE does not write such a line, so add it"
        )
        raise ConfigurationError(message)
    for line, cells in lines:
        if len(cells) != len(header):
            message = f"line {line} has {len(cells)} fields, the header line has {len(header)}"
            raise ConfigurationError(message)
        yield InputRow(f"line {line}", dict(zip(header, cells, strict=True)))


def _lines(text: str, delimiter: str) -> Iterator[tuple[int, list[Cell]]]:
    """Yield line number and fields of each line that is not empty; a quoted field can hold line ends."""
    field = re.compile(
        rf'[ ]*"(?P<quoted>(?:[^"\\]|\\.|"")*)"[ \r]*(?=[{delimiter}\n]|\Z)|(?P<plain>(?:[^{delimiter}\n\\]|\\.)*\\?)',
        re.DOTALL,
    )
    position, start, cells = 0, 0, list[Cell]()
    while True:
        found = field.match(text, position)
        assert found is not None  # the empty field always matches
        line = 1 + text.count("\n", 0, start)
        cells.append(_cell(found, delimiter, line))
        position = found.end()
        if text.startswith(delimiter, position):
            position += 1
            continue
        if cells != [""]:
            yield line, cells
        if position >= len(text):
            return
        position, cells = position + 1, []
        start = position


def _cell(found: re.Match[str], delimiter: str, line: int) -> Cell:
    quoted = found["quoted"]
    if quoted is not None:
        return _unescape(quoted.replace('""', '"'), delimiter)
    plain = found["plain"].strip(" \r")
    if plain.startswith('"') and delimiter == ",":
        message = f"line {line}: a quoted field is not closed, or goes on after its quote"
        raise ConfigurationError(message)
    if plain in (r"\N", "NULL"):
        return None
    in_hex = _HEX.fullmatch(plain)
    return bytes.fromhex(in_hex[1]) if in_hex else _unescape(plain, delimiter)


def _unescape(text: str, delimiter: str) -> str:
    def replacement(found: re.Match[str]) -> str:
        character = found[1]
        return _ESCAPES.get(character, character) if character in _ESCAPED + delimiter else found[0]

    return re.sub(r"\\(.)", replacement, text, flags=re.DOTALL)
